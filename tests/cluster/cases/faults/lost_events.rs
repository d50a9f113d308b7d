//! Watches that lose what they should tell, and timers that nobody needs (C-11).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use orangery_tests::{
    external_deployer::{ExternalDeployer, TYPE},
    history::{History, Version},
    proxy::{Echo, Fate, Fates, ProxyRequest},
    tree::{
        any, becomes_ready, blueprint, config, deploys, executions, imports_cluster, in_phase, installation, mocks,
        on_cluster, subinstallation,
    },
    world::World,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Two silences in a row take at most one and a half minutes.
const PATIENCE: Duration = Duration::from_secs(150);

/// A network that drops every event of every watch, from a moment on.
#[derive(Default)]
struct Deaf(AtomicBool);

impl Fates for Deaf {
    fn request(&self, _: &ProxyRequest) -> Fate {
        Fate::Pass
    }

    fn event(&self, _: &ProxyRequest) -> Echo {
        if self.0.load(Ordering::SeqCst) { Echo::Drop } else { Echo::Pass }
    }
}

fn external_item(name: &str, after: &[&str]) -> Value {
    json!({"name": name, "type": TYPE, "dependsOn": after, "config": config("1")})
}

/// An Installation of these items on the Target `cluster`, with the sub-installations.
fn tree(name: &str, items: &[Value], subinstallations: &[Value]) -> Value {
    on_cluster(installation(
        name,
        &blueprint(json!({
            "imports": imports_cluster(),
            "deployExecutions": executions(items),
            "subinstallations": subinstallations,
        })),
    ))
}

/// A root that exports `out`, and one that imports it.
fn siblings() -> [Value; 2] {
    let out = json!([{"name": "out", "type": "data", "schema": {"type": "string"}}]);
    let export = json!([{"name": "e", "type": "Jinja", "template": r#"{"exports": {"out": "x"}}"#}]);
    let mut exporter = installation("exporter", &blueprint(json!({"exports": out, "exportExecutions": export})));
    let mut importer = installation("importer", &blueprint(json!({"imports": out})));
    let data = json!({"data": [{"name": "out", "dataRef": "out"}]});
    exporter["spec"]["exports"] = data.clone();
    importer["spec"]["imports"] = data;
    [exporter, importer]
}

/// Says that the ConfigMap of an item is ready, once it is there.
async fn make_ready(world: &World, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    world.objects.expect(&object).await;
    let ready = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"ready": "yes"}});
    world.objects.merge(&ready).await;
}

/// Waits until a version is seen that is as asked.
async fn comes(history: &History, what: &str, is: impl Fn(&Version) -> bool) {
    if let Err(seen) = history.wait_within(PATIENCE, |seen| seen.iter().any(&is)).await {
        panic!("{what} did not come: {:#?}", seen.last().map(|version| &version.object));
    }
}

fn installation_in(phase: &'static str, name: &'static str) -> impl Fn(&Version) -> bool {
    move |version| version.kind == "Installation" && version.name == name && version.phase() == phase
}

#[tokio::test]
async fn c_11_with_events_dropped_it_still_converges() {
    let network = Arc::new(Deaf::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, network.clone()).await;
    world.start();
    world.ready().await;
    let history = History::begin(world.objects.client()).await;
    // One waits for an external deployer and then for an object in its target, one is interrupted, and one that is being deleted
    // waits for a sibling that its user deletes.
    world
        .objects
        .apply(&tree("heard", &[external_item("elsewhere", &[]), becomes_ready("ready", &["elsewhere"])], &[]))
        .await;
    world.objects.apply(&tree("stopped", &[external_item("endless", &[])], &[])).await;
    for name in ["elsewhere", "endless"] {
        ExternalDeployer(&world.objects).triggered(name).await;
    }
    for sibling in siblings() {
        world.objects.apply(&sibling).await;
        world
            .objects
            .expect(&in_phase("Installation", sibling["metadata"]["name"].as_str().unwrap(), "Succeeded"))
            .await;
    }
    world.objects.delete(&any("Installation", "exporter")).await;
    world.objects.expect(&in_phase("Installation", "exporter", "InitDelete")).await;

    network.0.store(true, Ordering::SeqCst);
    let interrupt = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    world.objects.annotate(&any("Installation", "stopped"), interrupt).await;
    world.objects.delete(&any("Installation", "importer")).await;
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    let is_of_ours = |version: &Version| version.kind == "DeployItem" && version.object["spec"]["type"] != TYPE;
    comes(&history, "the next item", |version| is_of_ours(version) && version.is_running()).await;
    make_ready(&world, "ready").await;

    tokio::join!(
        comes(&history, "what was to be heard", installation_in("Succeeded", "heard")),
        comes(&history, "what was interrupted", installation_in("Failed", "stopped")),
        comes(&history, "the end of the exporter", |version| version.gone && version.name == "exporter"),
    );
    assert!(world.calls("silence").await > 0, "nothing but the net can have told it");
    world.end().await;
}

/// No call of a controller was made by a timer: were they frozen, nothing would have been different.
#[tokio::test]
async fn orc_10_orc_28_c_11_with_timers_frozen_it_still_converges() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Deaf::default())).await;
    world.start();
    world.ready().await;
    let leaf = blueprint(json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(&[deploys("leaf", &[], "1")]),
    }));
    let items = [
        external_item("elsewhere", &[]),
        becomes_ready("ready", &["elsewhere"]),
        mocks("last", &["ready"], "Succeeded", "x"),
    ];
    world.objects.apply(&tree("tree", &items, &[on_cluster(subinstallation("sub", &leaf))])).await;
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    make_ready(&world, "ready").await;
    world.objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;

    world
        .objects
        .apply(&tree("tree", &[deploys("other", &[], "1"), mocks("last", &["other"], "Failed", "x")], &[]))
        .await;
    ExternalDeployer(&world.objects).succeed("elsewhere").await;
    world.objects.expect(&in_phase("Installation", "tree", "Failed")).await;

    world.objects.delete(&any("Installation", "tree")).await;
    world.objects.expect_absent(&any("Installation", "tree")).await;
    assert_eq!((world.calls("timer").await, world.calls("silence").await), (0, 0), "{}", world.log());
    assert!(world.calls("event").await > 0);
    world.end().await;
}

/// A network that keeps every request, from a moment on, and says nothing of it.
#[derive(Default)]
struct Frozen {
    is_frozen: AtomicBool,
    held: Notify,
}

impl Fates for Frozen {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if asked.is_lease() || !self.is_frozen.load(Ordering::SeqCst) {
            return Fate::Pass;
        }
        self.held.notify_one();
        Fate::Hold
    }
}

/// Its own API server is silent for a while, and no connection ends: each request has its time.
#[tokio::test]
async fn c_39_an_operator_whose_requests_got_no_answer_goes_on_when_there_are_answers_again() {
    let network = Arc::new(Frozen::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, network.clone()).await;
    world.start();
    world.ready().await;
    let items = [external_item("elsewhere", &[]), deploys("leaf", &["elsewhere"], "1")];
    world.objects.apply(&tree("tree", &items, &[])).await;
    let deployer = ExternalDeployer(&world.objects);
    deployer.triggered("elsewhere").await;
    network.is_frozen.store(true, Ordering::SeqCst);
    deployer.succeed("elsewhere").await;
    network.held.notified().await;
    network.is_frozen.store(false, Ordering::SeqCst);
    world.objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    world.end().await;
}

/// An API server that takes no events.
struct Mute;

impl Fates for Mute {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if asked.path.contains("/events") { Fate::Refuse(StatusCode::FORBIDDEN) } else { Fate::Pass }
    }
}

#[tokio::test]
async fn flx_32_an_event_that_cannot_be_published_fails_no_reconcile() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Mute) as Arc<dyn Fates>).await;
    world.start();
    let cluster = &world.objects;
    let fails = mocks("item", &[], "Failed", "x");
    cluster.apply(&tree("tree", &[fails], &[])).await;
    let failed = cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    assert!(failed["status"]["lastError"]["message"].to_string().contains("phase Failed"), "{failed:#}");
    cluster.apply(&tree("tree", &[mocks("item", &[], "Succeeded", "x")], &[])).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    world.end().await;
}
