//! A target cluster that takes the credentials of a Target not yet, or no longer for a moment: a token is rotated, rights spread.

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_tests::{
    cluster::own_target,
    external_deployer::item,
    kube::HOST_NAMESPACE,
    objects::{NAMESPACE, Objects},
    proxy::Proxy,
    road::{Passage, Road},
    tree::{
        API, any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
        subinstallation,
    },
};
use serde_json::{Value, json};

use super::away_targets::{config_map, deploying, waits_for_its_check};

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

/// The kubeconfig of a proxy with this token.
fn with_token(proxy: &Proxy, token: &str) -> String {
    let mut kubeconfig: Value = serde_json::from_str(&proxy.kubeconfig()).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": token});
    kubeconfig.to_string()
}

/// The Secret with it.
fn secret(proxy: &Proxy, token: &str) -> Value {
    let [secret, _] = target(&with_token(proxy, token));
    secret
}

/// Waits until the item says that its credentials are refused, and that it tries again.
async fn is_told(cluster: &Objects) {
    let says = |item: &Value| {
        let status = &item["status"];
        status["conditions"].to_string().contains("does not accept the credentials")
            && status["jobIDFinished"] != status["jobID"]
    };
    cluster.expect_that(&item(), "does not say that its credentials are refused", says).await;
}

/// The kubeconfigs that the operator keeps for deletions.
async fn kept(cluster: &Objects) -> Vec<String> {
    let mut kept = Vec::new();
    for namespace in [NAMESPACE, HOST_NAMESPACE] {
        let of_kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace}});
        let secrets = cluster.list(&of_kind).await.into_iter();
        for secret in secrets.filter(|secret| secret["type"] == "orangery.dev/kubeconfig") {
            let values = secret["data"].as_object().unwrap().values();
            let decoded = values.map(|value| BASE64.decode(value.as_str().unwrap().as_bytes()).unwrap());
            kept.extend(decoded.map(|bytes| String::from_utf8(bytes).unwrap()));
        }
    }
    kept
}

const FIRST: &str = "the-first-token-7c1d";
const SECOND: &str = "the-second-token-94e2";
const THIRD: &str = "the-third-token-0b5a";

/// A token is revoked while an item waits for its check, and again while it waits for an object that a finalizer keeps.
#[tokio::test]
async fn c_181_credentials_that_are_rotated_in_mid_job_are_taken_up_in_that_job() {
    let cluster = crate::cluster().await;
    let road = Arc::new(Road::default());
    let proxy = Proxy::start(cluster.kubeconfig(), road.clone()).await;
    road.switch(Passage::Token(FIRST));
    let [_, mut elsewhere] = target("");
    elsewhere["metadata"]["name"] = json!("away");
    for object in [secret(&proxy, FIRST), elsewhere] {
        cluster.apply(&object).await;
    }
    cluster.apply(&deploying("away", "root", &[becomes_ready("slow", &[])])).await;
    waits_for_its_check(&cluster, "slow").await;
    let job = cluster.expect(&any("Installation", "root")).await["status"]["jobID"].clone();

    // What is watched goes on until something is told.
    road.switch(Passage::Token(SECOND));
    let data =
        |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": data});
    cluster.merge(&data(json!({"ready": "no"}))).await;
    is_told(&cluster).await;
    cluster.merge(&data(json!({"ready": "yes"}))).await;
    cluster.apply(&secret(&proxy, SECOND)).await;
    let done = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    assert_eq!((&done["status"]["jobID"], &done["status"]["jobIDFinished"]), (&job, &job));
    let kept = kept(&cluster).await;
    assert_eq!(kept.len(), 1, "the credentials of the one item are kept");
    assert!(kept.iter().all(|kubeconfig| kubeconfig.contains(SECOND)), "what is kept is not what the job ended with");

    let held = |finalizers: Value| {
        let metadata = json!({"name": "slow", "finalizers": finalizers});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    cluster.merge(&held(json!(["example.com/held"]))).await;
    cluster.delete(&any("Installation", "root")).await;
    let is_deleting =
        |object: &Value| object["metadata"]["name"] == "slow" && object["metadata"]["deletionTimestamp"].is_string();
    cluster.expect_that(&config_map("slow"), "is not deleted", is_deleting).await;
    road.switch(Passage::Token(THIRD));
    cluster.merge(&held(Value::Null)).await;
    is_told(&cluster).await;
    cluster.apply(&secret(&proxy, THIRD)).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("slow")).await;
    for namespace in [NAMESPACE, HOST_NAMESPACE] {
        let metadata = json!({"namespace": namespace});
        let of_type =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "orangery.dev/kubeconfig"});
        cluster.expect_absent(&of_type).await;
    }
}

/// The token in a Target is another one after the job: the copies of the tree, at any depth, have the one before.
#[tokio::test]
async fn c_172_a_tree_with_copies_of_a_target_from_before_its_token_was_rotated_is_deleted_without_a_job() {
    let cluster = crate::cluster().await;
    let road = Arc::new(Road::default());
    let proxy = Proxy::start(cluster.kubeconfig(), road.clone()).await;
    road.switch(Passage::Token(FIRST));
    let away = |token: &str| {
        let mut target = own_target(&with_token(&proxy, token));
        target["metadata"]["name"] = json!("away");
        target
    };
    cluster.apply(&away(FIRST)).await;
    let deploying = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("cm", &[], "x")])});
    let of = |sub: Value| json!({"imports": imports_cluster(), "subinstallations": [on_cluster(sub)]});
    let middle = of(subinstallation("inner", &blueprint(deploying)));
    let outer = of(subinstallation("middle", &blueprint(middle)));
    let mut root = on_cluster(installation("root", &blueprint(outer)));
    root["spec"]["imports"]["targets"][0]["target"] = json!("away");
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let copies =
        cluster.list(&json!({"apiVersion": API, "kind": "Target", "metadata": {"namespace": NAMESPACE}})).await;
    let originals = copies.iter().filter_map(|copy| copy["metadata"]["annotations"]["orangery.dev/copy-of"].as_str());
    assert_eq!(originals.collect::<Vec<_>>(), ["away"; 3]);

    road.switch(Passage::Token(SECOND));
    cluster.apply(&away(SECOND)).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("cm")).await;
}
