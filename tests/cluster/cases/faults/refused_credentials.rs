//! A target cluster that takes the credentials of a Target not yet, or no longer for a moment: a token is rotated, rights spread.

use orangery_tests::{
    objects::NAMESPACE,
    tree::{API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

/// The kubeconfig with a token that nobody has.
fn with_a_token_of_nobody(kubeconfig: &str) -> String {
    let (before, rest) = kubeconfig.split_once("token").expect("a token");
    let length = rest.find(|end: char| ['}', '\n', ','].contains(&end)).unwrap_or(rest.len());
    let quote = if before.ends_with('"') { "\"" } else { "" };
    format!("{before}token{quote}: \"yesterday-4f0c91\"{}", rest.split_at(length).1)
}

/// The Secret with a kubeconfig, and the Target that refers to it.
fn target(kubeconfig: &str) -> [Value; 2] {
    let named = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let content = json!({"kubeconfig": kubeconfig});
    let reference = json!({"name": "credentials", "key": "kubeconfig"});
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "secretRef": reference});
    [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": named("credentials"), "stringData": content}),
        json!({"apiVersion": API, "kind": "Target", "metadata": named("elsewhere"), "spec": spec}),
    ]
}

#[tokio::test]
async fn c_39_credentials_that_are_refused_are_told_at_once_and_tried_again_until_they_are_taken() {
    let cluster = crate::cluster().await;
    for object in target(&with_a_token_of_nobody(cluster.kubeconfig())) {
        cluster.apply(&object).await;
    }
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("cm", &[], "x")])});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["imports"]["targets"][0]["target"] = json!("elsewhere");
    cluster.apply(&root).await;
    let is_told = |item: &Value| {
        let conditions = item["status"]["conditions"].to_string();
        conditions.contains("does not accept the credentials") && conditions.contains("TransientError")
    };
    let item = json!({"apiVersion": API, "kind": "DeployItem"});
    let told = cluster.expect_that(&item, "does not say that its credentials are refused", is_told).await;
    assert_ne!(told["status"]["jobIDFinished"], told["status"]["jobID"], "it is tried again: {told:#}");
    let [secret, _] = target(cluster.kubeconfig());
    cluster.apply(&secret).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}
