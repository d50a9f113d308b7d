//! `status.waitingFor`: what is waited for is data, for each kind that waits, and goes with the wait (ORC-08).

use std::fs;

use orangery_tests::{
    cluster::Cluster,
    external_deployer::ExternalDeployer,
    objects::{NAMESPACE, Objects},
    tree::{
        API, any, becomes_ready, blueprint, executions, imports_cluster, in_phase, installation, items, on_cluster,
    },
};
use serde_json::{Value, json};

/// One entry of the list, for a thing in the namespace of the tests.
fn entry(kind: &str, name: &str, until: &str) -> Value {
    json!({"kind": kind, "namespace": NAMESPACE, "name": name, "until": until})
}

/// Waits until an object, of any name where it is empty, waits for exactly this; absent stands for an empty list.
async fn waits_for(cluster: &Objects, kind: &str, name: &str, expected: Option<Value>) -> Value {
    let is_named = |object: &Value| name.is_empty() || object["metadata"]["name"] == name;
    let holds = |object: &Value| is_named(object) && object["status"].get("waitingFor") == expected.as_ref();
    cluster.expect_that(&any(kind, name), &format!("does not wait for {expected:?}"), holds).await
}

#[tokio::test]
async fn orc_08_an_installation_names_the_import_that_it_waits_for() {
    let cluster = crate::cluster().await;
    let fields = json!({
        "imports": [{"name": "v", "type": "data", "schema": {}}], "deployExecutions": items(&[("r", &[])], "1"),
    });
    let mut root = installation("r", &blueprint(fields));
    root["spec"]["imports"] = json!({"data": [{"name": "v", "dataRef": "late"}]});
    root["spec"]["importPolicy"] = json!("Wait");
    cluster.apply(&root).await;
    waits_for(&cluster, "Installation", "r", Some(json!([entry("DataObject", "late", "Exists")]))).await;
    cluster
        .apply(&json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": "late"}, "data": "at last"}))
        .await;
    waits_for(&cluster, "Installation", "r", Some(json!([entry("Execution", "r", "Finished")]))).await;
    ExternalDeployer(&cluster).succeed("r").await;
    cluster.expect(&in_phase("Installation", "r", "Succeeded")).await;
    waits_for(&cluster, "Installation", "r", None).await;
}

#[tokio::test]
async fn orc_08_an_execution_names_its_items_and_counts_those_above_sixteen() {
    let cluster = crate::cluster().await;
    let names: Vec<String> = (0..18).map(|n| format!("i{n:02}")).collect();
    let none: &[&str] = &[];
    let all: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), none)).collect();
    cluster.apply(&installation("tree", &blueprint(json!({"deployExecutions": items(&all, "1")})))).await;
    let theirs = ExternalDeployer(&cluster);
    let mut objects = Vec::new();
    for name in &names {
        let object = theirs.triggered(name).await;
        objects.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    }
    objects.sort();
    let expected = |objects: &[String]| {
        let entries = objects.iter().take(16).map(|name| entry("DeployItem", name, "Finished"));
        Some(Value::Array(entries.collect()))
    };
    let execution = waits_for(&cluster, "Execution", "tree", expected(&objects)).await;
    assert_eq!(execution["status"]["waitingForMore"], 2);
    for name in &names[..17] {
        theirs.succeed(name).await;
    }
    let last = theirs.find(&names[17]).await.unwrap_or_default();
    let last = last["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let execution = waits_for(&cluster, "Execution", "tree", expected(&[last])).await;
    assert_eq!(execution["status"].get("waitingForMore"), None);
    theirs.succeed(&names[17]).await;
    cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
    waits_for(&cluster, "Execution", "tree", None).await;
}

#[tokio::test]
async fn orc_08_a_deploy_item_names_the_object_of_its_cluster_and_room_in_the_operator() {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral", "--max-parallel=1"]).await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("the file can be written");
    let tree = |name: &str| {
        let items = executions(&[becomes_ready(name, &[])]);
        on_cluster(installation(name, &blueprint(json!({"imports": imports_cluster(), "deployExecutions": items}))))
    };
    cluster.apply(&tree("one")).await;
    waits_for(&cluster, "DeployItem", "", Some(json!([entry("ConfigMap", "one", "Ready")]))).await;
    cluster.apply(&tree("two")).await;
    let room = json!([{"kind": "Host", "name": "maxParallel=1", "until": "Room"}]);
    let two = waits_for(&cluster, "DeployItem", "", Some(room.clone())).await;
    let name = two["metadata"]["name"].as_str().unwrap_or_default();
    // `inspect` shows the same.
    let ended = binary.run(&["inspect", "two", "-o", "json", "--kubeconfig", "kubeconfig"]).await;
    let document: Value = serde_json::from_str(&ended.stdout).expect("the output is JSON");
    let item = document.pointer("/installations/0/children/0/children/0");
    assert_eq!(item.map(|item| (&item["name"], &item["waitingFor"])), Some((&json!(name), &room)));
    let ready = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"ready": "yes"}});
    cluster.merge(&ready("one")).await;
    waits_for(&cluster, "DeployItem", name, Some(json!([entry("ConfigMap", "two", "Ready")]))).await;
    cluster.merge(&ready("two")).await;
    cluster.expect(&in_phase("DeployItem", name, "Succeeded")).await;
    waits_for(&cluster, "DeployItem", name, None).await;
}
