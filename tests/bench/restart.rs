//! Starting, and starting again.

use std::{
    fs,
    future::pending,
    time::{Duration, Instant},
};

use orangery_tests::{binary::Binary, cluster::Cluster, requests::Requests, usage::peak_resident_mebibytes};
use tokio::time::timeout;

use crate::{
    figures::{Figures, Samples, display},
    load::{self, Installations, Run},
};

const STARTS: usize = 5;
const IDLE: Duration = Duration::from_secs(5);

/// What jobs are made of.
const OURS: [&str; 3] = ["installations", "executions", "deployitems"];

/// From the start of the process to the moment its server can be reached.
pub(crate) async fn starts(figures: &mut Figures) {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let binary = crate::binary_with(cache.path());
    let begin = Instant::now();
    let cluster = Cluster::start(&binary, &["--data", "state"]).await;
    figures.add("`up` from start to ready, first time", &display(begin.elapsed()));
    let mut seen = Installations::watch(cluster.client()).await;
    Run::new("first", 1).create(cluster.client()).await;
    seen.until(1, |_, now| now.succeeded()).await;
    figures.add("`up` from start to the first success, components compiled on the way", &display(begin.elapsed()));
    cluster.kill().await;
    let mut samples = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        let cluster = Cluster::start(&binary, &["--data", "state"]).await;
        samples.push(begin.elapsed());
        cluster.kill().await;
    }
    figures.add("`up` from start to ready, later", &Samples::new(samples).text());
}

/// A restart beside many finished trees: nothing is done for them, and new work starts at once.
pub(crate) async fn with_finished_triples(size: usize, figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = Cluster::start(&binary, &["--data", "state"]).await;
    let mut seen = Installations::watch(cluster.client()).await;
    let run = Run::new("done", size);
    tokio::join!(run.create(cluster.client()), seen.until(size, |_, now| now.succeeded()));
    let peak = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
    figures.add(&format!("{size} finished triples: peak resident memory"), &format!("{peak:.0} MiB"));
    cluster.kill().await;

    let begin = Instant::now();
    let cluster = Cluster::start(&binary, &["--data", "state"]).await;
    figures.add(&format!("restart with {size} finished triples: ready"), &display(begin.elapsed()));
    let mut seen = Installations::watch_one(cluster.client(), &load::name("new", 0)).await;
    Run::new("new", 1).create(cluster.client()).await;
    seen.until_succeeded(&load::name("new", 0)).await;
    figures.add(&format!("restart with {size} finished triples: a new one succeeded"), &display(begin.elapsed()));
    let all = Requests::counted(cluster.client()).await;
    let ours = OURS.map(|resource| all.writes_to(resource)).iter().sum::<u64>();
    let text = format!("{} in all, {ours} of them to {}", all.writes(), OURS.join(", "));
    figures.add(&format!("restart with {size} finished triples: writes, the new one's included"), &text);

    let before = Requests::counted(cluster.client()).await;
    drop(timeout(IDLE, pending::<()>()).await);
    let idle = Requests::counted(cluster.client()).await - before;
    let text = format!("{} reads and {} writes in {}", idle.reads(), idle.writes(), display(IDLE));
    figures.add(&format!("idle beside {size} finished triples"), &text);
    operator_alone(&binary, &cluster, size, figures).await;
    cluster.kill().await;
}

/// An operator in a process of its own beside the finished triples: what it needs is not what the server needs.
async fn operator_alone(binary: &Binary, cluster: &Cluster, size: usize, figures: &mut Figures) {
    let kubeconfig = binary.folder().join("alone.kubeconfig");
    fs::write(&kubeconfig, cluster.kubeconfig()).expect("a file in a temporary folder");
    let begin = Instant::now();
    let mut operator = binary.start(&[
        "run",
        "--mock-deployer",
        "--default-policy=compatible",
        "--kubeconfig",
        &kubeconfig.to_string_lossy(),
    ]);
    operator.logged("the operator is ready").await;
    let ready = begin.elapsed();
    // It looks at all of them once.
    drop(timeout(IDLE, pending::<()>()).await);
    let peak = operator.id().and_then(peak_resident_mebibytes).unwrap_or_default();
    let text = format!("ready after {}, peak resident memory {peak:.0} MiB", display(ready));
    figures.add(&format!("an operator alone beside {size} finished triples"), &text);
    operator.kill().await;
}
