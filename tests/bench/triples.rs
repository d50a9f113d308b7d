//! Many triples at once: created, run again, updated, deleted.

use std::time::{Duration, Instant};

use orangery_tests::{cluster::Cluster, objects::NAMESPACE, requests::Requests};
use serde_json::json;

use crate::{
    figures::{Figures, display},
    load::{Installations, Progress, Run},
    place::{self, CpuTime, Place},
};

/// How many triples one namespace has, and ten together.
const SPREAD: usize = 2000;

/// What one run took, for comparison with another size.
pub(crate) struct Cost {
    size: usize,
    create: Duration,
    update: Duration,
    delete: Duration,
}

/// What the server and operator had used at a moment.
pub(crate) struct Moment {
    at: Instant,
    requests: Requests,
    cpu: CpuTime,
}

impl Moment {
    pub(crate) async fn now(cluster: &Cluster) -> Moment {
        let requests = Requests::counted(cluster.client()).await;
        Moment { at: Instant::now(), requests, cpu: CpuTime::used(cluster) }
    }

    /// Processor time of the operator until then, and of the embedded server.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.cpu.operator()
    }
}

/// Runs one size on a fresh server.
pub(crate) async fn measure(place: &Place, size: usize, figures: &mut Figures) -> Cost {
    let binary = crate::binary();
    let cluster = place.start(&binary).await;
    let client = cluster.client();
    let run = Run::new("triple", size);
    let title = |what: &str| format!("{}, {size} triples: {what}", place.name());
    let mut seen = Installations::watch(client).await;

    let before = Moment::now(&cluster).await;
    tokio::join!(run.create(client), seen.until(size, |_, now| now.succeeded()));
    let create = report(&title("create"), size, before, &cluster, figures).await;

    let jobs = seen.known().clone();
    let before = Moment::now(&cluster).await;
    let renewed = |name: &str, now: &Progress| jobs.get(name).is_some_and(|then| then.job != now.job);
    tokio::join!(run.ask(client), seen.until(size, |name, now| now.succeeded() && renewed(name, now)));
    report(&title("run again, nothing changed"), size, before, &cluster, figures).await;

    let jobs = seen.known().clone();
    let before = Moment::now(&cluster).await;
    let renewed = |name: &str, now: &Progress| jobs.get(name).is_some_and(|then| then.job != now.job);
    tokio::join!(run.update(client, "second"), seen.until(size, |name, now| now.succeeded() && renewed(name, now)));
    let update = report(&title("update"), size, before, &cluster, figures).await;

    let before = Moment::now(&cluster).await;
    tokio::join!(run.delete(client), seen.until(0, |_, _| false));
    let delete = report(&title("delete"), size, before, &cluster, figures).await;

    figures.add(&title("peak resident memory of the operator's process"), &place::peak(&cluster));
    cluster.kill().await;
    Cost { size, create, update, delete }
}

/// Creates triples whose templates are for another engine.
pub(crate) async fn with_engine(place: &Place, engine: &str, size: usize, figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = place.start(&binary).await;
    let mut seen = Installations::watch(cluster.client()).await;
    let run = Run { engine, ..Run::new("triple", size) };
    let before = Moment::now(&cluster).await;
    tokio::join!(run.create(cluster.client()), seen.until(size, |_, now| now.succeeded()));
    let title = format!("{}, {size} triples: create, {engine}", place.name());
    report(&title, size, before, &cluster, figures).await;
    cluster.kill().await;
}

pub(crate) async fn report(
    title: &str,
    size: usize,
    before: Moment,
    cluster: &Cluster,
    figures: &mut Figures,
) -> Duration {
    let wall = before.at.elapsed();
    let now = Moment::now(cluster).await;
    let cpu = now.cpu.since(before.cpu);
    let during = now.requests - before.requests;
    let each = |count: u64| count as f64 / size as f64;
    let (writes, reads) = (each(during.writes()), each(during.reads()));
    figures.add(title, &format!("{}, {writes:.2} writes and {reads:.2} reads each, {cpu}", display(wall)));
    wall
}

/// How much more one triple costs in the largest run than in the smallest.
pub(crate) fn ratio(place: &Place, costs: &[Cost], figures: &mut Figures) {
    let (Some(small), Some(large)) = (costs.first(), costs.last()) else { return };
    let each = |cost: &Cost, of: fn(&Cost) -> Duration| of(cost).as_secs_f64() / cost.size as f64;
    let times = |of: fn(&Cost) -> Duration| each(large, of) / each(small, of);
    let (create, update, delete) = (times(|cost| cost.create), times(|cost| cost.update), times(|cost| cost.delete));
    figures.add(
        &format!("{}: cost of one triple, {} to {}", place.name(), small.size, large.size),
        &format!("create × {create:.2}, update × {update:.2}, delete × {delete:.2}"),
    );
}

/// The same number of triples in one namespace and in ten.
pub(crate) async fn namespaces(place: &Place, figures: &mut Figures) {
    let one = spread(place, 1).await.as_secs_f64();
    let ten = spread(place, 10).await.as_secs_f64();
    figures.add(
        &format!("{}: {SPREAD} triples in one namespace, against {} in each of ten", place.name(), SPREAD / 10),
        &format!("{one:.2} s, {ten:.2} s: × {:.2}", one / ten),
    );
}

async fn spread(place: &Place, count: usize) -> Duration {
    let binary = crate::binary();
    let cluster = place.start(&binary).await;
    let target = json!({"apiVersion": orangery_tests::tree::API, "kind": "Target", "metadata": {"name": "cluster"}});
    let target = cluster.expect(&target).await;
    let mut namespaces = vec![NAMESPACE.to_owned()];
    for number in 1..count {
        let name = format!("part-{number}");
        cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
        let (metadata, spec) = (json!({"name": "cluster", "namespace": name}), target.get("spec"));
        let api = orangery_tests::tree::API;
        cluster.apply(&json!({"apiVersion": api, "kind": "Target", "metadata": metadata, "spec": spec})).await;
        namespaces.push(name);
    }
    let run = Run { namespaces: &namespaces, ..Run::new("triple", SPREAD) };
    let mut seen = Installations::watch(cluster.client()).await;
    let begin = Instant::now();
    tokio::join!(run.create(cluster.client()), seen.until(SPREAD, |_, now| now.succeeded()));
    let taken = begin.elapsed();
    cluster.kill().await;
    taken
}
