//! Clusters that accept connections and say nothing: when their items end, and what others notice of them.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use orangery_proposal::overlay::overlay;
use orangery_tests::{
    cluster::own_target,
    silence::SilentServer,
    tree::{any, blueprint, deploys, executions, in_phase, installation},
};
use serde_json::{Value, json};

use crate::{
    figures::{Figures, Samples, display},
    latency::hellos,
    place::Place,
};

const CLUSTERS: usize = 100;
const ITEMS: usize = 40;
const OBJECTS: usize = 20;
const HELLOS: usize = 30;

/// Hello-world alone and beside silent clusters, and the time that items on one silent cluster take.
pub(crate) async fn measure(place: &Place, figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = place.start(&binary).await;
    let title = |what: &str| format!("{}: {what}", place.name());
    let alone = hellos(&cluster, "alone", HELLOS).await;
    figures.add(&title("hello-world"), &alone.text());

    let mut servers = Vec::new();
    for number in 0..CLUSTERS {
        let server = SilentServer::start().await;
        cluster.apply(&target(&format!("silent{number}"), server.kubeconfig())).await;
        servers.push(server);
    }
    let items: Vec<Value> = (0..CLUSTERS).map(|number| item(number, number, 1, "5m")).collect();
    cluster.apply(&deploying("many", &items, CLUSTERS)).await;
    let beside = hellos(&cluster, "beside", HELLOS).await;
    figures.add(&title(&format!("hello-world beside {CLUSTERS} silent clusters")), &beside.text());

    let items: Vec<Value> = (0..ITEMS).map(|number| item(CLUSTERS + number, 0, OBJECTS, "10s")).collect();
    let begin = Instant::now();
    cluster.apply(&deploying("timed", &items, 1)).await;
    cluster.expect(&in_phase("Installation", "timed", "Failed")).await;
    let whole = begin.elapsed();
    let ended = cluster.list(&any("DeployItem", "")).await;
    let failed = ended.iter().filter(|item| item.pointer("/status/phase") == Some(&json!("Failed")));
    let took = Samples::new(failed.map(took).collect());
    let figure = format!("{}, whole {}", took.text(), display(whole));
    figures.add(&title(&format!("{ITEMS} items of {OBJECTS} objects on a silent cluster, timeout 10 s")), &figure);
}

fn target(name: &str, kubeconfig: &str) -> Value {
    let mut target = own_target(kubeconfig);
    overlay(&mut target, &json!({"metadata": {"name": name}}));
    target
}

/// An item with so many objects on one of the clusters.
fn item(number: usize, on: usize, objects: usize, timeout: &str) -> Value {
    let name = format!("i{number:03}");
    let mut item = deploys(&name, &[], "1");
    let one = item.pointer("/config/manifests/0").cloned().unwrap_or_default();
    let manifests = (0..objects).map(|object| {
        let mut manifest = one.clone();
        overlay(&mut manifest, &json!({"manifest": {"metadata": {"name": format!("{name}-{object}")}}}));
        manifest
    });
    let manifests: Vec<Value> = manifests.collect();
    let rest = json!({"timeout": timeout, "target": {"import": format!("c{on}")}, "config": {"manifests": manifests}});
    overlay(&mut item, &rest);
    item
}

/// An Installation of these items on the first so many of the clusters.
fn deploying(name: &str, items: &[Value], clusters: usize) -> Value {
    let kind = "landscaper.gardener.cloud/kubernetes-cluster";
    let imports = (0..clusters).map(|on| json!({"name": format!("c{on}"), "type": "target", "targetType": kind}));
    let imports: Vec<Value> = imports.collect();
    let mut installation =
        installation(name, &blueprint(json!({"imports": imports, "deployExecutions": executions(items)})));
    let targets: Vec<Value> =
        (0..clusters).map(|on| json!({"name": format!("c{on}"), "target": format!("silent{on}")})).collect();
    overlay(&mut installation, &json!({"spec": {"imports": {"targets": targets}}}));
    installation
}

/// How long the job of an item took.
fn took(item: &Value) -> Duration {
    let times = item.pointer("/status/transitionTimes");
    let time = |of: &str| times?.get(of)?.as_str()?.parse::<Timestamp>().ok();
    let took = time("finishedTime").zip(time("initTime")).map(|(end, begin)| end.duration_since(begin));
    took.and_then(|took| Duration::try_from(took).ok()).unwrap_or_default()
}
