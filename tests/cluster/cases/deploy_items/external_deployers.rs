//! Deploy items of an external deployer.

use orangery_tests::{external_deployer::ExternalDeployer, objects::NAMESPACE, tree};
use serde_json::{Value, json};

const INSTALLATION: &str = r#"
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: foreign
  annotations:
    landscaper.gardener.cloud/operation: reconcile
spec:
  blueprint:
    inline:
      filesystem:
        blueprint.yaml: |
          apiVersion: landscaper.gardener.cloud/v1alpha1
          kind: Blueprint
          deployExecutions:
          - name: default
            type: Jinja
            template: |
              deployItems:
              - name: external
                type: example.com/external
                config:
                  apiVersion: example.com/v1
                  kind: Anything
              - name: mine
                type: landscaper.gardener.cloud/mock
                dependsOn: [external]
                config:
                  apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1
                  kind: ProviderConfiguration
"#;

fn item(name: &str, status: Value) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "DeployItem",
        "metadata": {"labels": {"execution.landscaper.gardener.cloud/name": name}},
        "status": status,
    })
}

fn installation(phase: &str) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "foreign"},
        "status": {"phase": phase},
    })
}

#[tokio::test]
async fn an_external_deployer_does_its_items_over_the_job_protocol() {
    let cluster = crate::cluster().await;
    cluster.apply_yaml(INSTALLATION).await;
    cluster.expect(&installation("Progressing")).await;

    let is_triggered =
        |item: &Value| item["spec"]["type"] == "example.com/external" && item["status"]["jobID"].is_string();
    let external = cluster.expect_that(&item("external", json!({})), "was not triggered", is_triggered).await;
    let job = external["status"]["jobID"].clone();
    assert_eq!(external["status"]["phase"], Value::Null, "nobody but its deployer works on the item: {external}");

    let done = json!({"phase": "Succeeded", "jobIDFinished": job, "observedGeneration": 1});
    cluster.patch_status(&external, done).await;
    cluster.expect(&item("mine", json!({"phase": "Succeeded"}))).await;
    cluster.expect(&installation("Succeeded")).await;
}

#[tokio::test]
async fn an_item_that_no_deployer_begins_fails_at_the_pickup_timeout_and_names_the_missing_deployer() {
    let cluster = crate::cluster_with(&["--pickup-timeout", "1s"]).await;
    cluster.apply_yaml(INSTALLATION).await;
    let failed = cluster.expect(&item("external", json!({"phase": "Failed"}))).await;
    let error = &failed["status"]["lastError"];
    assert_eq!(
        (&error["operation"], &error["reason"], &error["codes"]),
        (&json!("WaitingForPickup"), &json!("PickupTimeout"), &json!(["ERR_TIMEOUT"]))
    );
    assert_eq!(
        error["message"],
        "no deployer has begun within 1s of the trigger: register a component that claims example.com/external, or start a \
         deployer for it"
    );
    let root = cluster.expect(&installation("Failed")).await;
    let message = root["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("no deployer has begun"), "{message}");
}

/// The type was a typo: corrected in the blueprint, or taken out of it, or with its whole tree, nobody waits for a deployer that
/// does not exist.
#[tokio::test]
async fn c_159_a_type_that_nobody_takes_is_corrected_in_the_blueprint_and_holds_no_tree() {
    let cluster = crate::cluster_with(&["--pickup-timeout", "1s"]).await;
    let correct = tree::mocks("x", &[], "Succeeded", "1");
    let mut wrong = correct.clone();
    wrong["type"] = json!("landscaper.gardener.cloud/mokc");
    let of = |name: &str, items: &[Value]| {
        tree::installation(name, &tree::blueprint(json!({"deployExecutions": tree::executions(items)})))
    };
    let is = |name: &str, phase: &str| tree::in_phase("Installation", name, phase);
    let untaken =
        json!({"apiVersion": tree::API, "kind": "DeployItem", "spec": {"type": "landscaper.gardener.cloud/mokc"}});
    for (name, then) in [("corrected", vec![correct]), ("left-out", Vec::new())] {
        cluster.apply(&of(name, std::slice::from_ref(&wrong))).await;
        cluster.expect(&is(name, "Failed")).await;
        cluster.apply(&of(name, &then)).await;
        cluster.expect(&is(name, "Succeeded")).await;
        cluster.expect_absent(&untaken).await;
    }
    cluster.apply(&of("deleted", &[wrong])).await;
    cluster.expect(&is("deleted", "Failed")).await;
    cluster.delete(&tree::any("Installation", "deleted")).await;
    cluster.expect_absent(&tree::any("Installation", "deleted")).await;
}

/// Whatever namespace a reference to exports names, its Secret is looked for in that of its item: one of another is not read.
#[tokio::test]
async fn c_139_exports_are_read_in_the_namespace_of_their_item() {
    let cluster = crate::cluster().await;
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    let secret = |namespace: &str, value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "exported", "namespace": namespace},
            "stringData": {"config": json!({"k": value}).to_string()}})
    };
    cluster.apply(&secret("other", "value-of-the-other-namespace")).await;
    let execution =
        json!({"name": "e", "type": "Jinja", "template": "exports:\n  out: {{ values.deployitems.x.k }}\n"});
    let blueprint = json!({
        "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
        "deployExecutions": tree::items(&[("x", &[])], "1"), "exportExecutions": [execution],
    });
    let mut root = tree::installation("root", &tree::blueprint(blueprint));
    root["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": "out"}]});
    cluster.apply(&root).await;
    let deployer = ExternalDeployer(&cluster);
    let triggered = deployer.triggered("x").await;
    cluster.patch_status(&triggered, json!({"exportRef": {"name": "exported", "namespace": "other"}})).await;
    deployer.succeed("x").await;
    let says = |object: &Value| object["status"].to_string().contains("in Secret exported do not exist");
    cluster.expect_that(&tree::any("Execution", "root"), "does not miss the Secret", says).await;
    cluster.apply(&secret(NAMESPACE, "value-of-its-own")).await;
    cluster.expect(&tree::in_phase("Installation", "root", "Succeeded")).await;
    let exported = |object: &Value| object["data"] == "value-of-its-own";
    cluster.expect_that(&tree::any("DataObject", ""), "was not exported", exported).await;
}
