//! Many triples at once: created, updated, deleted.

use std::time::{Duration, Instant};

use orangery_tests::{
    cluster::Cluster,
    requests::Requests,
    usage::{cpu_seconds, peak_resident_mebibytes},
};

use crate::{
    figures::{Figures, shown},
    load::{self, Installations},
};

/// What one run took, for comparison with another size.
pub(crate) struct Cost {
    size: usize,
    create: Duration,
    update: Duration,
    delete: Duration,
}

/// What the server and operator had used at a moment.
struct Moment {
    at: Instant,
    requests: Requests,
    processor: f64,
}

impl Moment {
    async fn now(cluster: &Cluster) -> Moment {
        let requests = Requests::counted(cluster.client()).await;
        let processor = cpu_seconds(cluster.process()).unwrap_or_default();
        Moment { at: Instant::now(), requests, processor }
    }
}

/// Runs one size on a fresh server on disk.
pub(crate) async fn measure(size: usize, figures: &mut Figures) -> Cost {
    let binary = crate::binary();
    let cluster = Cluster::start(&binary, &["--data", "state"]).await;
    let client = cluster.client();
    let mut seen = Installations::watch(client).await;

    let before = Moment::now(&cluster).await;
    tokio::join!(load::create(client, "triple", size), seen.until(size, |_, now| now.succeeded()));
    let create = report("create", size, before, &cluster, figures).await;

    let jobs = seen.known().clone();
    let before = Moment::now(&cluster).await;
    let renewed = |name: &str, now: &load::Progress| jobs.get(name).is_some_and(|then| then.job != now.job);
    let done = |name: &str, now: &load::Progress| now.succeeded() && renewed(name, now);
    tokio::join!(load::update(client, "triple", size, "second"), seen.until(size, done));
    let update = report("update", size, before, &cluster, figures).await;

    let before = Moment::now(&cluster).await;
    tokio::join!(load::delete(client, "triple", size), seen.until(0, |_, _| false));
    let delete = report("delete", size, before, &cluster, figures).await;

    let peak = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
    figures.add(&format!("{size} triples: peak resident memory, server included"), &format!("{peak:.0} MiB"));
    cluster.kill().await;
    Cost { size, create, update, delete }
}

async fn report(what: &str, size: usize, before: Moment, cluster: &Cluster, figures: &mut Figures) -> Duration {
    let wall = before.at.elapsed();
    let now = Moment::now(cluster).await;
    let during = now.requests - before.requests;
    let each = |count: u64| count as f64 / size as f64;
    let processor = now.processor - before.processor;
    figures.add(
        &format!("{size} triples: {what}"),
        &format!(
            "{}, {:.2} writes and {:.2} reads each, {processor:.1} CPU s",
            shown(wall),
            each(during.writes()),
            each(during.reads())
        ),
    );
    wall
}

/// How much more one triple costs in the largest run than in the smallest.
pub(crate) fn ratio(costs: &[Cost], figures: &mut Figures) {
    let (Some(small), Some(large)) = (costs.first(), costs.last()) else { return };
    let each = |cost: &Cost, of: fn(&Cost) -> Duration| of(cost).as_secs_f64() / cost.size as f64;
    let times = |of: fn(&Cost) -> Duration| each(large, of) / each(small, of);
    let (create, update, delete) = (times(|cost| cost.create), times(|cost| cost.update), times(|cost| cost.delete));
    figures.add(
        &format!("cost of one triple, {} to {}", small.size, large.size),
        &format!("create × {create:.2}, update × {update:.2}, delete × {delete:.2}"),
    );
}
