//! Blueprints that contain themselves.

use orangery_tests::{
    objects::Objects,
    tree::{API, any, blueprint, in_phase, installation},
};
use serde_json::{Value, json};

/// An Installation whose sub-installations of these names are of its own blueprint.
fn endless(name: &str, subs: &[&str]) -> Value {
    let content = "{{ blueprint.inline.filesystem[\"blueprint.yaml\"] | tojson }}";
    let sub = |name: &&str| {
        format!(
            "{{apiVersion: {API}, kind: InstallationTemplate, name: {name}, blueprint: {{filesystem: {{blueprint.yaml: {content} }} }} }}"
        )
    };
    let subs: Vec<String> = subs.iter().map(sub).collect();
    let template = format!("subinstallations: [{}]", subs.join(", "));
    installation(
        name,
        &blueprint(json!({"subinstallationExecutions": [{"name": "s", "type": "Jinja", "template": template}]})),
    )
}

/// Waits until a tree stands so deep.
async fn is_deep(cluster: &Objects, levels: usize) {
    let mut above = "root".to_owned();
    for _ in 1..levels {
        let is_below =
            |object: &Value| object["metadata"]["labels"]["landscaper.gardener.cloud/encompassed-by"] == above.as_str();
        let below = cluster.expect_that(&any("Installation", ""), "has no sub-installation", is_below).await;
        above = below["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    }
}

#[tokio::test]
async fn c_155_a_blueprint_that_contains_itself_fails_with_the_names_that_lead_there() {
    let cluster = crate::cluster().await;
    cluster.apply(&endless("root", &["sub"])).await;
    let root = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = root["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("sub-installation \"sub\" is not made below root > sub-"), "{message}");
    assert!(message.contains("16 Installations stand in each other already"), "{message}");
    assert_eq!(cluster.list(&any("Installation", "")).await.len(), 16);
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
}

#[tokio::test]
async fn c_155_a_tree_that_grows_ends_when_its_root_is_deleted() {
    let cluster = crate::cluster().await;
    cluster.apply(&endless("root", &["one", "two"])).await;
    is_deep(&cluster, 5).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
}

#[tokio::test]
async fn c_155_a_tree_that_grows_ends_when_its_root_is_interrupted() {
    let cluster = crate::cluster().await;
    cluster.apply(&endless("root", &["one", "two"])).await;
    is_deep(&cluster, 5).await;
    cluster.annotate(&any("Installation", "root"), json!({"landscaper.gardener.cloud/operation": "interrupt"})).await;
    let root = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    assert_eq!(root["status"]["jobID"], root["status"]["jobIDFinished"]);
    let made = cluster.list(&any("Installation", "")).await;
    let is_finished = |object: &&Value| object["status"]["jobID"] == object["status"]["jobIDFinished"];
    assert_eq!(made.iter().filter(is_finished).count(), made.len());
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
}
