//! Which components `run` has by itself.

use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::Objects,
    tree::{any, blueprint, executions, installation, mocks},
};
use serde_json::{Value, json};

/// Whoever may write a mock item decides what stands in its status: only whoever asks for the deployer has it.
#[tokio::test]
async fn c_142_an_operator_that_was_not_asked_to_has_no_mock_deployer() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let _operator = server.plain_operator(&binary, OPERATOR[0], &["--pickup-timeout", "1s"]);
    let items = executions(&[mocks("x", &[], "Succeeded", "1")]);
    objects.apply(&installation("root", &blueprint(json!({"deployExecutions": items})))).await;
    let has_failed = |item: &Value| item["status"]["phase"] == "Failed";
    let failed = objects.expect_that(&any("DeployItem", ""), "does not fail", has_failed).await;
    let message = "no deployer has begun within 1s of the trigger: register a component that claims \
                   landscaper.gardener.cloud/mock, or start a deployer for it";
    let error = &failed["status"]["lastError"];
    assert_eq!((&error["reason"], &error["message"]), (&json!("PickupTimeout"), &json!(message)), "{failed:#}");
}
