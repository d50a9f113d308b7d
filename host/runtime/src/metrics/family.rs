//! The families of metrics: their names, types, units, labels and what they tell. `docs/metrics.md` has the same table.

use prometheus_client::{metrics::MetricType, registry::Unit};

/// One family. LabelNames have values of closed sets, or of a bounded number of them (C-390).
pub(super) struct MetricFamily {
    /// The name without its unit, and for a counter without `_total`.
    pub(super) name: &'static str,
    pub(super) unit: Option<Unit>,
    pub(super) sort: MetricType,
    /// What it tells.
    pub(super) help: &'static str,
    pub(super) labels: &'static [&'static str],
}

type LabelNames = &'static [&'static str];

const fn family(
    name: &'static str,
    unit: Option<Unit>,
    sort: MetricType,
    labels: LabelNames,
    help: &'static str,
) -> MetricFamily {
    MetricFamily { name, unit, sort, help, labels }
}

const fn counter(name: &'static str, labels: LabelNames, help: &'static str) -> MetricFamily {
    family(name, None, MetricType::Counter, labels, help)
}

const fn gauge(name: &'static str, labels: LabelNames, help: &'static str) -> MetricFamily {
    family(name, None, MetricType::Gauge, labels, help)
}

const fn bytes(name: &'static str, labels: LabelNames, help: &'static str) -> MetricFamily {
    family(name, Some(Unit::Bytes), MetricType::Gauge, labels, help)
}

const fn durations(name: &'static str, labels: LabelNames, help: &'static str) -> MetricFamily {
    family(name, Some(Unit::Seconds), MetricType::Histogram, labels, help)
}

/// A time in seconds, of this type.
const fn time(name: &'static str, sort: MetricType, help: &'static str) -> MetricFamily {
    family(name, Some(Unit::Seconds), sort, &[], help)
}

pub(super) static LEASE_HELD: MetricFamily =
    gauge("orangery_lease_held", &[], "Whether this operator is the active one.");
pub(super) static LEASE_REMAINING: MetricFamily = time(
    "orangery_lease_remaining",
    MetricType::Gauge,
    "How long this operator may write before it has to renew its Lease.",
);
pub(super) static OTHER_WRITES: MetricFamily = counter(
    "orangery_other_operators_writes",
    &[],
    "Writes of a status by operators with other Leases while this one is active.",
);
pub(super) static BUILD: MetricFamily = gauge("orangery_build_info", &["version"], "The version; always 1.");

pub(super) static RECONCILES: MetricFamily =
    counter("orangery_reconcile", &["controller", "result"], "Calls of a controller by how they ended.");
pub(super) static CALLED: MetricFamily =
    counter("orangery_reconcile_called", &["controller", "by"], "Calls of a controller by what made them.");
pub(super) static RECONCILE_DURATION: MetricFamily =
    durations("orangery_reconcile_duration", &["controller"], "How long calls of a controller took.");
pub(super) static RECONCILES_RUNNING: MetricFamily =
    gauge("orangery_reconcile_running", &["controller"], "Calls of a controller that are under way.");
pub(super) static QUEUE_DEPTH: MetricFamily =
    gauge("orangery_queue_depth", &["controller"], "Objects that wait for a call of their controller.");
pub(super) static QUEUE_WAIT: MetricFamily =
    durations("orangery_queue_wait", &["controller"], "How long objects waited for a call of their controller.");

pub(super) static JOBS: MetricFamily =
    counter("orangery_jobs", &["kind", "result"], "Jobs that have ended, by their phase.");
pub(super) static JOB_DURATION: MetricFamily =
    durations("orangery_job_duration", &["kind", "result"], "How long jobs took from their trigger to their end.");
pub(super) static OBJECTS: MetricFamily = gauge("orangery_objects", &["kind", "phase"], "Objects by kind and phase.");
pub(super) static CONDITIONS: MetricFamily =
    gauge("orangery_resource_condition", &["kind", "type", "status"], "Objects by kind, condition and its status.");

pub(super) static API_REQUESTS: MetricFamily =
    counter("orangery_api_requests", &["verb", "kind", "code"], "Requests to the API server by verb, kind and answer.");
pub(super) static API_DURATION: MetricFamily =
    durations("orangery_api_request_duration", &["verb"], "How long it took until the API server began to answer.");

pub(super) static CLUSTERS: MetricFamily =
    gauge("orangery_clusters", &[], "Clusters that are kept, by their credentials.");
pub(super) static CLUSTER_SERVERS: MetricFamily =
    gauge("orangery_cluster_servers", &["state"], "API servers of these clusters by whether they answer.");
pub(super) static CLUSTER_WATCHES: MetricFamily =
    gauge("orangery_cluster_watches", &[], "Watches on clusters that are open.");
pub(super) static CLUSTER_WATCHES_LIMIT: MetricFamily =
    gauge("orangery_cluster_watches_limit", &[], "Watches on clusters that may be open at once.");
pub(super) static CLUSTER_REQUESTS: MetricFamily =
    counter("orangery_cluster_requests", &["method", "result"], "Requests to clusters by what they came to.");
pub(super) static CLUSTER_DURATION: MetricFamily = durations(
    "orangery_cluster_request_duration",
    &["method"],
    "How long requests to clusters took, their turn included.",
);

pub(super) static CACHE: MetricFamily = bytes("orangery_cache", &["cache"], "What caches hold.");
pub(super) static CACHE_LIMIT: MetricFamily = bytes("orangery_cache_limit", &["cache"], "What caches may hold.");

pub(super) static PLUGIN_CALLS: MetricFamily = gauge("orangery_plugin_calls", &[], "Calls of components that run.");
pub(super) static PLUGIN_MEMORY: MetricFamily =
    bytes("orangery_plugin_memory", &[], "Linear memory that calls of components hold.");
pub(super) static PLUGIN_MEMORY_LIMIT: MetricFamily =
    bytes("orangery_plugin_memory_limit", &[], "Linear memory that calls of components may hold together.");
pub(super) static PLUGIN_ENDED: MetricFamily =
    counter("orangery_plugin_ended_calls", &["plugin", "result"], "Calls of components by what they came to.");
pub(super) static PLUGIN_LIMITS: MetricFamily =
    counter("orangery_plugin_limits_met", &["plugin", "limit"], "Calls of components that were stopped at a limit.");
pub(super) static PLUGIN_DURATION: MetricFamily = durations(
    "orangery_plugin_call_duration",
    &["plugin"],
    "How long calls of components took, waiting for room included.",
);

pub(super) static MEMORY_LIMIT: MetricFamily =
    bytes("orangery_memory_limit", &[], "Memory that the process may have; 0 where nothing says it.");
pub(super) static PROCESS_MEMORY: MetricFamily =
    bytes("process_resident_memory", &[], "Resident memory of the process.");
pub(super) static PROCESS_CPU: MetricFamily =
    time("process_cpu", MetricType::Counter, "Time on processors that the process has spent.");
pub(super) static PROCESS_FILES: MetricFamily = gauge("process_open_fds", &[], "Files that the process has open.");
pub(super) static PROCESS_START: MetricFamily =
    time("process_start_time", MetricType::Gauge, "When the process began, in seconds since 1970.");

#[cfg(test)]
pub(super) static ALL: &[&MetricFamily] = &[
    &LEASE_HELD,
    &LEASE_REMAINING,
    &OTHER_WRITES,
    &BUILD,
    &RECONCILES,
    &CALLED,
    &RECONCILE_DURATION,
    &RECONCILES_RUNNING,
    &QUEUE_DEPTH,
    &QUEUE_WAIT,
    &JOBS,
    &JOB_DURATION,
    &OBJECTS,
    &CONDITIONS,
    &API_REQUESTS,
    &API_DURATION,
    &CLUSTERS,
    &CLUSTER_SERVERS,
    &CLUSTER_WATCHES,
    &CLUSTER_WATCHES_LIMIT,
    &CLUSTER_REQUESTS,
    &CLUSTER_DURATION,
    &CACHE,
    &CACHE_LIMIT,
    &PLUGIN_CALLS,
    &PLUGIN_MEMORY,
    &PLUGIN_MEMORY_LIMIT,
    &PLUGIN_ENDED,
    &PLUGIN_LIMITS,
    &PLUGIN_DURATION,
    &MEMORY_LIMIT,
    &PROCESS_MEMORY,
    &PROCESS_CPU,
    &PROCESS_FILES,
    &PROCESS_START,
];
