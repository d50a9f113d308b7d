//! Gate expressions that components answer (WF-08, WF-09).

use orangery_tests::{external_deployer::ExternalDeployer, tree::in_phase};
use serde_json::{Value, json};

use super::{config_map, failure, item, over_metric, says, tree, want};

/// A folder with a component that answers gate expressions of type `example.org/judges`.
pub(crate) fn judges() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let component = std::path::Path::new(env!("OUT_DIR")).join("judges.wasm");
    std::fs::copy(component, folder.path().join("judges.wasm")).expect("the guest was built");
    let registration = json!({
        "apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "judges"},
        "spec": {"version": "1.0.0", "component": {"file": "judges.wasm"}, "gate": {"types": ["example.org/judges"]}},
    });
    std::fs::write(folder.path().join("judges.yaml"), registration.to_string())
        .expect("the registration can be written");
    folder
}

#[tokio::test]
async fn wf_08_wf_09_a_component_answers_and_its_answer_is_shown() {
    let plugins = judges();
    let cluster = crate::cluster_with(&["--plugins", &plugins.path().to_string_lossy()]).await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let mut live = over_metric("");
    live["expression"] = Value::Null;
    live["component"] = json!({"type": "example.org/judges", "config": "live"});
    cluster
        .apply(&tree(&[
            item("db", &[], json!({"readyWhen": live})),
            item("app", &["db"], json!({"when": {"component": {"type": "example.org/judges", "config": "met"}}})),
        ]))
        .await;
    deployer.succeed("db").await;
    says(&cluster, "db", "readyWhen", "False").await;
    cluster.apply(&config_map("metric", &json!({"level": "high"}))).await;
    deployer.succeed("app").await;
    let execution = cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
    let ready = execution.pointer("/status/items/1/conditions/0").cloned().unwrap_or_default();
    assert_eq!(
        (&ready["type"], &ready["status"], &ready["details"]),
        (&json!("readyWhen"), &json!("True"), &json!({"level": 3}))
    );
}

#[tokio::test]
async fn a_component_that_traps_or_is_not_there_fails_its_item_with_the_cause() {
    let plugins = judges();
    let cluster = crate::cluster_with(&["--plugins", &plugins.path().to_string_lossy()]).await;
    want(&cluster, true).await;
    let asks = |type_: &str| json!({"when": {"component": {"type": type_, "config": "trap"}}});
    cluster.apply(&tree(&[item("db", &[], asks("example.org/judges"))])).await;
    let message = failure(&cluster).await;
    let begin = "when of deploy item db cannot be told: component judges 1.0.0: the component crashed: ";
    assert!(message.starts_with(begin) && message.contains("nobody knows trap"), "{message}");
    cluster.apply(&tree(&[item("db", &[], asks("example.org/nobody"))])).await;
    let expected = "when of deploy item db cannot be told: no component serves the gate type \"example.org/nobody\"; known are: example.org/judges; register one or correct the type";
    let is =
        |execution: &Value| execution.pointer("/status/lastError/message").is_some_and(|message| message == expected);
    let execution = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Execution"});
    cluster.expect_that(&execution, "the type was not told", is).await;
}
