//! Clusters and registries that accept connections and say nothing: what waits for them ends in time, and delays nobody else (C-39,
//! C-323).

use jiff::Timestamp;
use orangery_tests::{
    cluster::{Cluster, own_target},
    objects::Objects,
    silence::SilentServer,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

/// Items on the silent cluster: more than an operator has slots.
const ITEMS: usize = 40;

/// Objects of each of them.
const OBJECTS: usize = 20;

/// How long each may take, in seconds.
const LIMIT: i64 = 10;

/// How much longer it takes at most, on a machine that does much else: 20 requests of 10 s in a row would take longer.
const LATE: i64 = 20;

/// An item that deploys many ConfigMaps and has its time.
fn large_item(number: usize, limit: &str) -> Value {
    let name = format!("i{number:02}");
    let mut item = deploys(&name, &[], "1");
    item["timeout"] = json!(limit);
    let one = item["config"]["manifests"][0].clone();
    let manifests = (0..OBJECTS).map(|object| {
        let mut manifest = one.clone();
        manifest["manifest"]["metadata"]["name"] = json!(format!("{name}-{object}"));
        manifest
    });
    item["config"]["manifests"] = manifests.collect();
    item
}

fn deploying(name: &str, items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    on_cluster(installation(name, &blueprint(fields)))
}

/// A Target, or an Installation, in another namespace.
fn in_namespace(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// The items on the silent cluster, once all of them satisfy a condition.
async fn all_items(cluster: &Objects, what: &str, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
    for number in 0..ITEMS {
        let is_it = |item: &Value| {
            item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == format!("i{number:02}")
        };
        cluster.expect_that(&any("DeployItem", ""), what, |item| is_it(item) && holds(item)).await;
    }
    cluster.list(&any("DeployItem", "")).await
}

/// A time of the job of an item.
fn time(item: &Value, of: &str) -> Timestamp {
    let text = item["status"]["transitionTimes"][of].as_str().unwrap_or_default();
    text.parse().unwrap_or_else(|error| panic!("{of} of {item}: {error}"))
}

/// A cluster whose Target `cluster` is silent, and as many items on it, which have been triggered.
async fn with_items_on_silence(limit: &str) -> (Cluster, SilentServer) {
    let (cluster, silent) = (crate::cluster().await, SilentServer::start().await);
    cluster.apply(&own_target(silent.kubeconfig())).await;
    let items: Vec<Value> = (0..ITEMS).map(|number| large_item(number, limit)).collect();
    cluster.apply(&deploying("silent", &items)).await;
    all_items(&cluster, "is not triggered", |item| item["status"]["jobID"].is_string()).await;
    (cluster, silent)
}

#[tokio::test]
async fn c_39_items_on_a_silent_cluster_delay_no_item_of_another_namespace() {
    let (cluster, _silent) = with_items_on_silence("10m").await;
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "well"}})).await;
    cluster.apply(&in_namespace(own_target(cluster.kubeconfig()), "well")).await;
    cluster.apply(&in_namespace(deploying("well", &[deploys("fast", &[], "1")]), "well")).await;
    cluster.expect(&in_namespace(in_phase("Installation", "well", "Succeeded"), "well")).await;
    let meanwhile = cluster.list(&any("DeployItem", "")).await;
    let ended = meanwhile.iter().filter(|item| item["status"]["jobIDFinished"].is_string()).count();
    assert_eq!((meanwhile.len(), ended), (ITEMS, 0));
}

#[tokio::test]
async fn c_39_items_on_a_silent_cluster_end_in_time() {
    let (cluster, _silent) = with_items_on_silence(&format!("{LIMIT}s")).await;
    let failed = all_items(&cluster, "does not fail", |item| item["status"]["phase"] == "Failed").await;
    for item in &failed {
        let took = time(item, "finishedTime").duration_since(time(item, "initTime")).as_secs();
        assert!((LIMIT - 1..=LIMIT + LATE).contains(&took), "it took {took} s: {item}");
        let message = item["status"]["lastError"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("did not finish within its timeout of 10s"), "{message}");
        assert!(message.contains("did not answer within"), "{message}");
    }
    cluster.expect(&in_phase("Installation", "silent", "Failed")).await;
}

/// Clusters that say nothing, each with a Target of its own in the namespace of one that does not.
const SILENT: usize = 12;

/// Items on each of them: together more than an operator has slots.
const OF_EACH: usize = 4;

#[tokio::test]
async fn c_39_items_on_many_silent_clusters_delay_no_item_of_their_own_namespace() {
    let cluster = crate::cluster().await;
    let mut silent = Vec::new();
    for number in 0..SILENT {
        let (server, name) = (SilentServer::start().await, format!("silent-{number}"));
        let mut target = own_target(server.kubeconfig());
        target["metadata"]["name"] = json!(name);
        cluster.apply(&target).await;
        silent.push(server);
        let items: Vec<Value> = (0..OF_EACH).map(|item| large_item(item, "10m")).collect();
        let mut root = deploying(&name, &items);
        root["spec"]["imports"]["targets"][0]["target"] = json!(name);
        cluster.apply(&root).await;
    }
    let begun = |items: &[Value]| items.iter().filter(|item| item["status"]["phase"] == "Progressing").count();
    let last = format!("silent-{}", SILENT - 1);
    cluster.expect(&in_phase("Installation", &last, "Progressing")).await;
    cluster.apply(&deploying("well", &[deploys("fast", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "well", "Succeeded")).await;
    let meanwhile = cluster.list(&any("DeployItem", "")).await;
    let ended = meanwhile.iter().filter(|item| item["status"]["jobIDFinished"].is_string()).count();
    assert_eq!((meanwhile.len(), ended), (SILENT * OF_EACH + 1, 1), "{} have begun", begun(&meanwhile));
}

/// An Installation whose component version is in a registry.
fn of_registry(name: &str, address: &str) -> Value {
    let context = json!({"type": "OCIRegistry", "baseUrl": format!("http://{address}")});
    // What several ask for at once is asked for once.
    let reference =
        json!({"componentName": format!("example.org/{name}"), "version": "1.0.0", "repositoryContext": context});
    let mut root = installation(name, &blueprint(json!({})));
    root["spec"]["componentDescriptor"] = json!({"ref": reference});
    root["spec"]["blueprint"] = json!({"ref": {"resourceName": "blueprint"}});
    root
}

#[tokio::test]
async fn c_323_installations_whose_registry_is_silent_delay_no_other_one() {
    let (cluster, silent) = (crate::cluster().await, SilentServer::start().await);
    for number in 0..ITEMS {
        cluster.apply(&of_registry(&format!("silent-{number:02}"), silent.address())).await;
    }
    silent.holds(ITEMS).await;
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "well"}})).await;
    let well = installation("well", &blueprint(json!({})));
    cluster.apply(&in_namespace(well, "well")).await;
    cluster.expect(&in_namespace(in_phase("Installation", "well", "Succeeded"), "well")).await;
    assert_eq!(silent.connections(), ITEMS, "all of them still wait for their first answer");
}
