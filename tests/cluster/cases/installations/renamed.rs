//! What is called otherwise in a later job: sub-installations, and items with their Targets. What they have deployed stays.

use std::collections::BTreeMap;

use orangery_tests::{
    objects::Objects,
    tree::{
        any, blueprint, deploys, executions, imports_cluster, in_phase, installation, next_job, on_cluster,
        subinstallation,
    },
};
use serde_json::{Value, json};

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// The uid of a ConfigMap.
async fn uid(cluster: &Objects, name: &str) -> Value {
    cluster.expect(&config_map(name)).await["metadata"]["uid"].clone()
}

/// A sub-installation whose items deploy a ConfigMap each; `below` are sub-installations of its own.
fn sub(name: &str, objects: &[&str], below: &[Value]) -> Value {
    let items: Vec<Value> = objects.iter().map(|object| deploys(object, &[], "1")).collect();
    let fields = json!({
        "imports": imports_cluster(), "deployExecutions": executions(&items), "subinstallations": below,
    });
    on_cluster(subinstallation(name, &blueprint(fields)))
}

fn root(subs: &[Value]) -> Value {
    on_cluster(installation("root", &blueprint(json!({"imports": imports_cluster(), "subinstallations": subs}))))
}

/// The Installations below the root, by the names of their templates.
async fn below(cluster: &Objects) -> BTreeMap<String, Value> {
    let mut all = cluster.list(&any("Installation", "")).await;
    all.retain(|one| one["metadata"]["name"] != "root");
    let named = |one: &Value| {
        let template = &one["metadata"]["annotations"]["landscaper.gardener.cloud/subinstallation-name"];
        (template.as_str().unwrap_or_default().to_owned(), one["metadata"]["uid"].clone())
    };
    all.iter().map(named).collect()
}

async fn first_job(cluster: &Objects, root: &Value) {
    cluster.apply(root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

/// They are called otherwise at two levels, and one object is removed as well.
#[tokio::test]
async fn c_168_a_sub_installation_that_is_called_otherwise_keeps_what_it_has_deployed() {
    let cluster = crate::cluster().await;
    first_job(&cluster, &root(&[sub("old", &["x", "y"], &[sub("inner", &["z"], &[])])])).await;
    let (x, z, before) = (uid(&cluster, "x").await, uid(&cluster, "z").await, below(&cluster).await);
    next_job(&cluster, &root(&[sub("new", &["x"], &[sub("deep", &["z"], &[])])])).await;
    cluster.expect_absent(&config_map("y")).await;
    assert_eq!((uid(&cluster, "x").await, uid(&cluster, "z").await), (x, z));
    let after =
        BTreeMap::from([("new".to_owned(), before["old"].clone()), ("deep".to_owned(), before["inner"].clone())]);
    assert_eq!(below(&cluster).await, after);
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    for name in ["x", "z"] {
        cluster.expect_absent(&config_map(name)).await;
    }
}

/// Which is which is told by what they are made from; another one of another blueprint begins anew, and what has left is deleted.
#[tokio::test]
async fn c_168_several_that_are_called_otherwise_are_told_from_each_other() {
    let cluster = crate::cluster().await;
    first_job(&cluster, &root(&[sub("a", &["x"], &[]), sub("b", &["y"], &[]), sub("c", &["z"], &[])])).await;
    let (x, y, before) = (uid(&cluster, "x").await, uid(&cluster, "y").await, below(&cluster).await);
    let second = [sub("p", &["y"], &[]), sub("q", &["x"], &[]), sub("r", &["v"], &[]), sub("s", &["w"], &[])];
    next_job(&cluster, &root(&second)).await;
    assert_eq!((uid(&cluster, "x").await, uid(&cluster, "y").await), (x, y));
    cluster.expect_absent(&config_map("z")).await;
    let after = below(&cluster).await;
    assert_eq!(after.keys().collect::<Vec<_>>(), ["p", "q", "r", "s"]);
    assert_eq!((&after["p"], &after["q"]), (&before["b"], &before["a"]));
}

/// With gate expressions they are made, and so called, when they start.
#[tokio::test]
async fn c_168_one_that_a_gate_expression_decides_about_keeps_what_it_has_deployed() {
    let cluster = crate::cluster().await;
    let gated = |name: &str| {
        let mut sub = sub(name, &["x"], &[]);
        sub["when"] = json!("1 == 1");
        root(&[sub])
    };
    first_job(&cluster, &gated("old")).await;
    let (x, before) = (uid(&cluster, "x").await, below(&cluster).await);
    next_job(&cluster, &gated("new")).await;
    assert_eq!(uid(&cluster, "x").await, x);
    assert_eq!(below(&cluster).await, BTreeMap::from([("new".to_owned(), before["old"].clone())]));
}

/// An Installation of one item on the cluster, which its blueprint calls `target`.
fn on_target(target: &str, name: &str, objects: &[&str]) -> Value {
    let mut item = deploys(name, &[], name);
    let manifest = |object: &&str| {
        let mut manifest = item["config"]["manifests"][0].clone();
        manifest["manifest"]["metadata"]["name"] = json!(object);
        manifest
    };
    item["config"]["manifests"] = objects.iter().map(manifest).collect();
    item["target"] = json!({"import": target});
    let mut imports = imports_cluster();
    imports[0]["name"] = json!(target);
    let mut root =
        installation("root", &blueprint(json!({"imports": imports, "deployExecutions": executions(&[item])})));
    root["spec"]["imports"] = json!({"targets": [{"name": target, "target": "cluster"}]});
    root
}

#[tokio::test]
async fn c_169_an_item_and_its_target_that_are_called_otherwise_keep_what_is_deployed() {
    let cluster = crate::cluster().await;
    first_job(&cluster, &on_target("first", "a", &["x", "y"])).await;
    let x = uid(&cluster, "x").await;
    next_job(&cluster, &on_target("second", "b", &["x"])).await;
    cluster.expect_absent(&config_map("y")).await;
    let moved = cluster.expect(&config_map("x")).await;
    assert_eq!((&moved["metadata"]["uid"], &moved["data"]), (&x, &json!({"content": "b"})));
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("x")).await;
}
