//! A garbage collector that is slow: what it has still to take is in nobody's way.

use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::Objects,
    tree::{API, any, blueprint, in_phase, installation, subinstallation},
};
use serde_json::{Value, json};

const KEY: &str = "data.landscaper.gardener.cloud/key";

/// A sub-installation that exports this value as `out`, and as its own name.
fn exporting(name: &str, value: &str) -> Value {
    let export = |name: &str| json!({"name": name, "type": "data", "schema": {}});
    let template = json!({"exports": {"out": value, name: value}}).to_string();
    let blueprint = blueprint(json!({
        "exports": [export("out"), export(name)],
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
    }));
    let mut sub = subinstallation(name, &blueprint);
    sub["exports"] = json!({"data": [{"name": "out", "dataRef": "out"}, {"name": name, "dataRef": name}]});
    sub
}

fn tree(sub: &Value) -> Value {
    installation("tree", &blueprint(json!({"subinstallations": [sub]})))
}

fn exported(key: &str, value: &str) -> Value {
    json!({"apiVersion": API, "kind": "DataObject", "metadata": {"labels": {KEY: key}}, "data": value})
}

/// The sub-installations that own an object, by their templates.
fn owners(object: &Value) -> Vec<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let names = owners.filter_map(|owner| owner["name"].as_str());
    names.map(|name| name.split('-').next().unwrap_or_default()).collect()
}

/// The tree, once it has ended another job than this one, and well.
async fn ended_after(objects: &Objects, before: &Value) -> Value {
    let has_ended = |tree: &Value| {
        let status = &tree["status"];
        tree["metadata"]["name"] == "tree"
            && status["jobID"] == status["jobIDFinished"]
            && status["jobID"] != before["status"]["jobID"]
    };
    let ended = objects.expect_that(&any("Installation", "tree"), "did not end its next job", has_ended).await;
    assert_eq!(ended["status"]["phase"], "Succeeded", "{ended:#}");
    ended
}

#[tokio::test]
async fn c_125_a_renamed_sub_installation_exports_what_the_former_ones_have_left() {
    let (binary, programs) = super::programs().await;
    let mut server = Kube::start(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let operator = server.operator(&binary, OPERATOR[0], &[]);
    objects.apply(&tree(&exporting("former", "1"))).await;
    let first = objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    objects.expect(&exported("out", "1")).await;
    server.kill(&["kube-controller-manager"]);
    objects.apply(&tree(&exporting("renamed", "2"))).await;
    let second = ended_after(&objects, &first).await;
    let out = objects.expect(&exported("out", "2")).await;
    assert_eq!(owners(&out), ["renamed"], "it has its new owner alone, while the collector is away");
    // The key goes on to a third owner.
    objects.apply(&tree(&exporting("third", "3"))).await;
    ended_after(&objects, &second).await;
    let out = objects.expect(&exported("out", "3")).await;
    assert_eq!(owners(&out), ["third"], "the collector is still away");
    // It takes nothing of the new one.
    server.start_controllers(&programs);
    let is_taken_away = |object: &Value| object["metadata"]["labels"][KEY] == "out" && owners(object) == ["third"];
    objects.expect_that(&exported("out", "3"), "has its former owners still", is_taken_away).await;
    objects.expect(&exported("out", "3")).await;
    objects.expect(&exported("third", "3")).await;
    drop(operator);
}
