//! The figures of an operator as Prometheus text (`docs/rules.md`, Metrics), and the endpoint that serves them.
//!
//! Counted where it happens (queues, clients) or from what is known (stores) at the moment of asking; nothing is
//! collected in between. Low cardinality: controllers, kinds and verbs, never objects.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::IntoResponse as _,
    routing::get,
};
use orangery_api::condition::Condition;
use orangery_controllers::Stores;
use orangery_core::condition;
use orangery_plugin::Occupancy;
use orangery_reconcile::{Queue, QueueCounts};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::bounded::BoundedListener;
pub use self::reader::MetricsReaders;
use crate::{operator::Operator, requests::Requests};

mod bounded;
mod reader;

/// Where figures come from. Clones show the same.
#[derive(Clone)]
pub struct Figures {
    /// Not there as long as this process waits for its lease.
    active: Arc<OnceLock<Active>>,
    requests: Requests,
    occupancy: Arc<dyn Fn() -> Occupancy + Send + Sync>,
}

/// What an active operator has.
struct Active {
    stores: Stores,
    queues: Vec<(&'static str, Queue)>,
    writes_of_others: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// Why the endpoint cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be served at {address}: {source}; choose another --metrics-address")]
pub struct ServeError {
    address: SocketAddr,
    source: std::io::Error,
}

impl Figures {
    /// Those of a client, of components by what their calls hold, and soon of an operator.
    pub fn new(requests: Requests, occupancy: impl Fn() -> Occupancy + Send + Sync + 'static) -> Self {
        Self { active: Arc::default(), requests, occupancy: Arc::new(occupancy) }
    }

    /// From now on the figures of the operator are shown, and it has to be ready. There is one in a process.
    pub fn show(&self, operator: &Operator) {
        let active = Active {
            stores: operator.stores().clone(),
            queues: operator.queues().to_vec(),
            writes_of_others: Box::new(operator.writes_of_others()),
        };
        drop(self.active.set(active));
    }

    /// Serves `/metrics`, `/healthz` (the process answers) and `/readyz` (the first lists are in, or another operator is
    /// the active one) until `stop`; metrics to these readers, health to everybody.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve(
        self,
        address: SocketAddr,
        readers: MetricsReaders,
        stop: CancellationToken,
    ) -> Result<SocketAddr, ServeError> {
        listen(self.router(readers), address, stop).await
    }

    /// The same without `/metrics`: what is served says nothing about any object.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve_health(self, address: SocketAddr, stop: CancellationToken) -> Result<SocketAddr, ServeError> {
        listen(self.health(), address, stop).await
    }

    fn router(self, readers: MetricsReaders) -> Router {
        let health = self.clone().health();
        let text = move |headers: HeaderMap| async move {
            match readers.check(&headers).await {
                Ok(()) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], self.text()).into_response(),
                Err(refused) => refused.into_response(),
            }
        };
        health.route("/metrics", get(text))
    }

    fn health(self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(move || async move { self.ready() }))
    }

    fn ready(&self) -> (StatusCode, &'static str) {
        let Some(active) = self.active.get() else { return (StatusCode::OK, "waits for the lease") };
        let Stores {
            installations,
            executions,
            deploy_items,
            targets,
            data_objects,
            contexts,
            secrets: _,
            config_maps: _,
            target_syncs: _,
        } = &active.stores;
        let synced = [
            installations.is_synced(),
            executions.is_synced(),
            deploy_items.is_synced(),
            targets.is_synced(),
            data_objects.is_synced(),
            contexts.is_synced(),
        ];
        if synced.into_iter().all(|synced| synced) {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "the first lists are not in yet")
        }
    }

    /// All figures, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut page = MetricsText::default();
        // Writing to a string cannot fail.
        let _ = self.write(&mut page);
        page.text
    }

    fn write(&self, page: &mut MetricsText) -> fmt::Result {
        let active = self.active.get();
        let queues = active.map_or(&[][..], |active| &active.queues);
        let counts: Vec<(&str, QueueCounts)> = queues.iter().map(|(name, queue)| (*name, queue.counts())).collect();
        page.family("orangery_lease_held", "gauge", "Whether this operator is the active one.")?;
        page.sample("orangery_lease_held", &[], u8::from(active.is_some()))?;
        let help = "Writes of a status by operators with other Leases while this one is active.";
        page.family("orangery_other_operators_writes_total", "counter", help)?;
        page.sample(
            "orangery_other_operators_writes_total",
            &[],
            active.map_or(0, |active| (active.writes_of_others)()),
        )?;
        write_reconciles(page, &counts)?;
        write_queues(page, &counts)?;
        page.family("orangery_resource_condition", "gauge", "Objects by kind, condition and its status.")?;
        let conditions = active.map(|active| conditions(&active.stores)).unwrap_or_default();
        for ((kind, condition, status), count) in conditions {
            let labels = [("kind", kind), ("type", condition), ("status", status)];
            page.sample("orangery_resource_condition", &labels, count)?;
        }
        write_occupancy(page, (self.occupancy)())?;
        page.family("orangery_api_requests_total", "counter", "Requests to the API server by verb, kind and answer.")?;
        for (asked, count) in self.requests.counts() {
            let code = asked.status.to_string();
            let labels = [("verb", asked.verb), ("kind", asked.resource.as_str()), ("code", code.as_str())];
            page.sample("orangery_api_requests_total", &labels, count)?;
        }
        page.family("orangery_build_info", "gauge", "The version; always 1.")?;
        page.sample("orangery_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1)
    }
}

/// Serves pages in the background until `stop`.
async fn listen(pages: Router, address: SocketAddr, stop: CancellationToken) -> Result<SocketAddr, ServeError> {
    let unusable = |source| ServeError { address, source };
    let listener = TcpListener::bind(address).await.map_err(unusable)?;
    let bound = listener.local_addr().map_err(unusable)?;
    let served = axum::serve(BoundedListener::new(listener), pages).with_graceful_shutdown(stop.cancelled_owned());
    tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!(%error, "health and metrics are no longer served");
        }
    });
    Ok(bound)
}

/// What waits holds nothing: between two calls there is no instance of a component.
fn write_occupancy(page: &mut MetricsText, held: Occupancy) -> fmt::Result {
    page.family("orangery_plugin_calls", "gauge", "Calls of components that run.")?;
    page.sample("orangery_plugin_calls", &[], held.calls)?;
    page.family("orangery_plugin_memory_bytes", "gauge", "Linear memory that calls of components hold.")?;
    page.sample("orangery_plugin_memory_bytes", &[], held.bytes)
}

/// What stands for all conditions that the host does not make.
const OTHER: &str = "other";

/// The conditions that have a series of their own.
const SHOWN_CONDITIONS: [&str; 6] = {
    let [ready, reconciling, stalled, progressing] = condition::OWNED;
    [ready, reconciling, stalled, progressing, condition::DRIFTED, condition::OVERWRITE]
};

fn conditions(stores: &Stores) -> BTreeMap<(&'static str, &'static str, &'static str), usize> {
    let mut counts = BTreeMap::new();
    let mut count = |kind: &'static str, conditions: &[Condition]| {
        for Condition { type_, status, .. } in conditions {
            // Whoever may write a status may write any of them, and each would be a series of its own.
            let known = SHOWN_CONDITIONS.iter().find(|shown| *shown == type_).copied();
            let status = ["True", "False", "Unknown"].into_iter().find(|known| known == status);
            *counts.entry((kind, known.unwrap_or(OTHER), status.unwrap_or(OTHER))).or_default() += 1;
        }
    };
    stores.installations.for_each(|object| {
        count("Installation", object.status.as_ref().map_or(&[], |status| &status.conditions));
    });
    stores.executions.for_each(|object| {
        count("Execution", object.status.as_ref().map_or(&[], |status| &status.conditions));
    });
    stores.deploy_items.for_each(|object| {
        count("DeployItem", object.status.as_ref().map_or(&[], |status| &status.conditions));
    });
    counts
}

fn write_reconciles(page: &mut MetricsText, counts: &[(&str, QueueCounts)]) -> fmt::Result {
    page.family("orangery_reconcile_total", "counter", "Calls of a controller by how they ended.")?;
    for (controller, counts) in counts {
        let results = [
            ("settled", counts.settled),
            ("conflict", counts.conflicts),
            ("retry", counts.retried),
            ("stalled", counts.stalled),
            ("panic", counts.panicked),
        ];
        for (result, count) in results {
            page.sample("orangery_reconcile_total", &[("controller", controller), ("result", result)], count)?;
        }
    }
    page.family("orangery_reconcile_called_total", "counter", "Calls of a controller by what made them.")?;
    for (controller, counts) in counts {
        let causes = [("event", counts.by_event), ("timer", counts.by_time), ("silence", counts.by_stale_watch)];
        for (by, count) in causes {
            page.sample("orangery_reconcile_called_total", &[("controller", controller), ("by", by)], count)?;
        }
    }
    page.family("orangery_reconcile_duration_seconds", "summary", "Time spent in calls of a controller.")?;
    for (controller, counts) in counts {
        let labels = [("controller", *controller)];
        page.sample("orangery_reconcile_duration_seconds_sum", &labels, counts.busy.as_secs_f64())?;
        page.sample("orangery_reconcile_duration_seconds_count", &labels, calls(counts))?;
    }
    page.family("orangery_reconcile_running", "gauge", "Calls of a controller that are under way.")?;
    counts.iter().try_for_each(|(controller, counts)| {
        page.sample("orangery_reconcile_running", &[("controller", controller)], counts.running)
    })
}

fn write_queues(page: &mut MetricsText, counts: &[(&str, QueueCounts)]) -> fmt::Result {
    page.family("orangery_queue_depth", "gauge", "Objects that wait for a call of their controller.")?;
    for (controller, counts) in counts {
        page.sample("orangery_queue_depth", &[("controller", controller)], counts.queued)?;
    }
    page.family("orangery_queue_wait_seconds", "summary", "Time that objects waited for a call of their controller.")?;
    counts.iter().try_for_each(|(controller, counts)| {
        let labels = [("controller", *controller)];
        page.sample("orangery_queue_wait_seconds_sum", &labels, counts.waited.as_secs_f64())?;
        page.sample("orangery_queue_wait_seconds_count", &labels, calls(counts) + counts.running as u64)
    })
}

fn calls(counts: &QueueCounts) -> u64 {
    counts.settled + counts.conflicts + counts.retried + counts.stalled + counts.panicked
}

/// Prometheus text as it grows.
#[derive(Default)]
struct MetricsText {
    text: String,
}

impl MetricsText {
    fn family(&mut self, name: &str, sort: &str, help: &str) -> fmt::Result {
        write!(self.text, "# HELP {name} {help}\n# TYPE {name} {sort}\n")
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) -> fmt::Result {
        self.text.push_str(name);
        for (number, (label, value)) in labels.iter().enumerate() {
            let open = if number == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.text, "{open}{label}=\"{value}\"")?;
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.text, "{close} {value}")
    }
}

#[cfg(test)]
mod tests;
