//! What each family has at the moment of asking.

use std::fmt;

use orangery_cluster::MOST_WATCHES;
use orangery_plugin::SandboxFigures;
use orangery_reconcile::QueueCounts;

use super::{Active, Figures, family, objects::ObjectCounts, page::MetricsPage, process::ProcessFigures};
use crate::requests::Requests;

impl Figures {
    /// All families, those without samples as well.
    pub(super) fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let active = self.active.get();
        page.one(&family::LEASE_HELD, u64::from(active.is_some()))?;
        // An operator without a Lease has no end.
        let term = active.and_then(|active| active.term.as_ref());
        page.family(&family::LEASE_REMAINING, term.map(|term| ([], term.left().into())))?;
        page.one(&family::OTHER_WRITES, active.map_or(0, |active| (active.writes_of_others)()))?;
        page.family(&family::BUILD, [([env!("CARGO_PKG_VERSION")], 1_u64.into())])?;
        let queues = active.map_or(&[][..], |active| &active.queues);
        let queues: Vec<_> = queues.iter().map(|(name, queue)| (*name, queue.counts())).collect();
        write_reconciles(page, &queues)?;
        write_queues(page, &queues)?;
        write_jobs(page, active)?;
        write_requests(page, &self.requests)?;
        let sandbox = (self.sandbox)();
        write_clusters(page, active)?;
        write_caches(page, active, &sandbox)?;
        write_calls(page, &sandbox)?;
        page.one(&family::MEMORY_LIMIT, self.memory_limit)?;
        let process = ProcessFigures::of_this_process();
        page.one(&family::PROCESS_MEMORY, process.memory)?;
        page.one(&family::PROCESS_CPU, process.cpu)?;
        page.one(&family::PROCESS_FILES, process.files)?;
        page.one(&family::PROCESS_START, process.started)
    }
}

fn write_reconciles(page: &mut MetricsPage<'_>, queues: &[(&'static str, QueueCounts)]) -> fmt::Result {
    let results = queues.iter().flat_map(|(controller, counts)| {
        let results = [
            ("settled", counts.settled),
            ("conflict", counts.conflicts),
            ("retry", counts.retried),
            ("stalled", counts.stalled),
            ("panic", counts.panicked),
        ];
        results.map(|(result, count)| ([*controller, result], count.into()))
    });
    page.family(&family::RECONCILES, results)?;
    let causes = queues.iter().flat_map(|(controller, counts)| {
        let causes = [("event", counts.by_event), ("timer", counts.by_time), ("silence", counts.by_stale_watch)];
        causes.map(|(by, count)| ([*controller, by], count.into()))
    });
    page.family(&family::CALLED, causes)?;
    page.family(&family::RECONCILE_DURATION, queues.iter().map(|(name, counts)| ([*name], counts.busy.into())))?;
    page.family(&family::RECONCILES_RUNNING, queues.iter().map(|(name, counts)| ([*name], counts.running.into())))
}

fn write_queues(page: &mut MetricsPage<'_>, queues: &[(&'static str, QueueCounts)]) -> fmt::Result {
    page.family(&family::QUEUE_DEPTH, queues.iter().map(|(name, counts)| ([*name], counts.queued.into())))?;
    page.family(&family::QUEUE_WAIT, queues.iter().map(|(name, counts)| ([*name], counts.waited.into())))
}

fn write_jobs(page: &mut MetricsPage<'_>, active: Option<&Active>) -> fmt::Result {
    let jobs = active.map(|active| active.jobs.counts()).unwrap_or_default();
    page.family(&family::JOBS, jobs.iter().map(|of| (of.labels, of.number.into())))?;
    let timed = jobs.iter().filter(|of| of.durations.count() > 0);
    page.family(&family::JOB_DURATION, timed.map(|of| (of.labels, of.durations.into())))?;
    let objects = active.map(|active| ObjectCounts::of(&active.stores)).unwrap_or_default();
    page.family(
        &family::OBJECTS,
        objects.phases.iter().map(|((kind, phase), count)| ([*kind, *phase], (*count).into())),
    )?;
    let conditions = objects.conditions.iter();
    page.family(
        &family::CONDITIONS,
        conditions.map(|((kind, condition, status), count)| ([*kind, *condition, *status], (*count).into())),
    )
}

fn write_requests(page: &mut MetricsPage<'_>, requests: &Requests) -> fmt::Result {
    let counts = requests.counts();
    let counts: Vec<_> = counts.iter().map(|(asked, count)| (asked, asked.status.to_string(), *count)).collect();
    page.family(
        &family::API_REQUESTS,
        counts
            .iter()
            .map(|(asked, code, count)| ([asked.verb, asked.resource.as_str(), code.as_str()], (*count).into())),
    )?;
    page.family(&family::API_DURATION, requests.durations().into_iter().map(|(verb, took)| ([verb], took.into())))
}

fn write_clusters(page: &mut MetricsPage<'_>, active: Option<&Active>) -> fmt::Result {
    let clusters = active.map(|active| (active.clusters)()).unwrap_or_default();
    page.one(&family::CLUSTERS, clusters.kept)?;
    let answering = clusters.servers.saturating_sub(clusters.silent);
    let states = [("answering", answering), ("silent", clusters.silent)];
    page.family(&family::CLUSTER_SERVERS, states.map(|(state, servers)| ([state], servers.into())))?;
    page.one(&family::CLUSTER_WATCHES, clusters.watches)?;
    page.one(&family::CLUSTER_WATCHES_LIMIT, MOST_WATCHES)?;
    let requests = clusters.requests.iter();
    let results = requests
        .clone()
        .flat_map(|of| of.results.iter().map(|(result, count)| ([of.method, *result], (*count).into())));
    page.family(&family::CLUSTER_REQUESTS, results)?;
    page.family(&family::CLUSTER_DURATION, requests.map(|of| ([of.method], of.durations.into())))
}

fn write_caches(page: &mut MetricsPage<'_>, active: Option<&Active>, sandbox: &SandboxFigures) -> fmt::Result {
    let objects = active.map_or((0, 0), |active| ((active.clusters)().object_bytes, active.object_memory));
    let rendered = active.map_or((0, 0), |active| (active.rendered)());
    let caches = [("cluster_objects", objects), ("rendered", rendered), ("blueprint_code", sandbox.code)];
    page.family(&family::CACHE, caches.map(|(name, (held, _))| ([name], held.into())))?;
    page.family(&family::CACHE_LIMIT, caches.map(|(name, (_, limit))| ([name], limit.into())))
}

/// What waits holds nothing: between two calls there is no instance of a component.
fn write_calls(page: &mut MetricsPage<'_>, sandbox: &SandboxFigures) -> fmt::Result {
    page.one(&family::PLUGIN_CALLS, sandbox.occupancy.calls)?;
    page.one(&family::PLUGIN_MEMORY, sandbox.occupancy.bytes)?;
    page.one(&family::PLUGIN_MEMORY_LIMIT, sandbox.memory_limit)?;
    let calls = sandbox.calls.iter();
    let results = calls.clone().flat_map(|(plugin, counts)| {
        counts.results.iter().map(move |(result, count)| ([&**plugin, result.name()], (*count).into()))
    });
    page.family(&family::PLUGIN_ENDED, results)?;
    let limits = calls.clone().flat_map(|(plugin, counts)| {
        counts.limits.iter().map(move |(limit, count)| ([&**plugin, limit.field()], (*count).into()))
    });
    page.family(&family::PLUGIN_LIMITS, limits)?;
    let called = calls.filter(|(_, counts)| counts.durations.count() > 0);
    page.family(&family::PLUGIN_DURATION, called.map(|(plugin, counts)| ([&**plugin], counts.durations.into())))
}
