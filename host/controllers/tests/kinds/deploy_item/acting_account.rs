//! As whom the operator acts on the cluster of the resources, and which service accounts a Target may name (C-38).

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use orangery_policy::Profile;
use serde_json::{Value, json};

use super::items::{Items, gate, proposal};
use crate::world::Setup;

/// The service account that the operator acts as for the namespace of the tests.
const ACCOUNT: &str = "system:serviceaccount:default:default";

/// Writes a config map on the cluster of the resources, and waits for its value.
fn on_host(name: &str) -> Value {
    let mut whole = proposal(name, json!({}));
    whole["stages"][0]["writes"][0]["on"] = json!("host");
    whole["stages"][0]["gate"] = gate(name, "v");
    whole["stages"][0]["gate"]["ready"][0]["on"] = json!("host");
    whole
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_38_what_is_done_on_the_host_cluster_is_asked_in_the_name_of_the_namespace() {
    let mut world = Items::new().await;
    world.restart_granting(json!({"clusters": {"host": true}, "reads": [{}], "writes": [{}]}));
    world.create("item", &[on_host("a")], json!({})).await;
    assert_eq!(world.job("item", "one").await["phase"], "Succeeded");
    // Another object takes its place: the first is pruned.
    world.patch("item", json!({"spec": {"config": {"proposals": [on_host("b")]}}})).await;
    assert_eq!(world.job("item", "two").await["phase"], "Succeeded");
    assert_eq!((world.value("a").await, world.value("b").await.as_deref()), (None, Some("v")));
    world.delete("item").await;
    world.trigger("item", "three").await;
    world.gone("item").await;
    assert_eq!(world.value("b").await, None);
    let asked = world.asked_about("/configmaps");
    let methods: BTreeSet<&str> = asked.iter().map(|asked| asked.method.as_str()).collect();
    assert_eq!(methods, BTreeSet::from(["DELETE", "GET", "POST"]));
    let as_itself: Vec<_> = asked.iter().filter(|asked| asked.user.as_deref() != Some(ACCOUNT)).collect();
    assert_eq!(as_itself, Vec::<&_>::new());
    // What is the operator's own stays its own.
    assert!(world.asked_about("/deployitems").iter().all(|asked| asked.user.is_none()));
}

/// What the Target `self` is refused with, and the names of those that asked for tokens.
async fn refusal(world: &Items, job: &str) -> (Value, Vec<Option<String>>) {
    let status = world.job("item", job).await;
    let error = &status["lastError"];
    let tokens = world.asked_about("/serviceaccounts/robot/token");
    (
        json!([status["phase"], error["codes"], error["reason"], error["message"]]),
        tokens.into_iter().map(|asked| asked.user).collect(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_38_a_target_names_a_service_account_that_has_opted_in_and_nothing_is_minted_before() {
    let world = Items::new().await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(world.client.clone());
    let robot = json!({"metadata": {"name": "robot"}});
    accounts.create(&PostParams::default(), &serde_json::from_value(robot).unwrap()).await.unwrap();
    let own = json!({"selfConfig": {"serviceAccount": {"name": "robot"}}});
    world.target("self", json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": own})).await;
    world.create("item", &[proposal("a", json!({}))], json!({"target": {"name": "self"}})).await;
    let message = "Target default/self names ServiceAccount default/robot, which Targets may not use; annotate it with \
                   orangery.dev/allow-targets: \"true\" if whoever may write Targets in default may act as this account";
    let expected = json!(["Failed", ["ERR_FORBIDDEN"], "ServiceAccountNotAllowed", message]);
    assert_eq!(refusal(&world, "one").await, (expected.clone(), vec![]));
    assert_eq!(world.value("a").await, None);
    let allow = |value: &str| json!({"metadata": {"annotations": {"orangery.dev/allow-targets": value}}});
    accounts.patch("robot", &PatchParams::default(), &Patch::Merge(allow("true"))).await.unwrap();
    let passed = refusal(&world, "two").await;
    assert_eq!((&passed.0[0], passed.1), (&json!("Succeeded"), vec![Some(ACCOUNT.to_owned())]));
    assert_eq!(world.value("a").await.as_deref(), Some("v"));
    // What is taken back counts at once, though the token is good for longer.
    accounts.patch("robot", &PatchParams::default(), &Patch::Merge(allow("no"))).await.unwrap();
    assert_eq!(refusal(&world, "three").await.0, expected);
}

/// By the profile of the chart, which has no namespace reach the cluster of the resources without a Target.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_38_an_item_reaches_the_host_cluster_where_the_policy_allows_it() {
    let mut world = Items::with(Setup { profile: Profile::Restricted, ..Setup::default() }).await;
    world.restart_granting(json!({"clusters": {"host": true}, "reads": [{}], "writes": [{}]}));
    world.create("item", &[on_host("a")], json!({})).await;
    let status = world.job("item", "one").await;
    let error = &status["lastError"];
    assert_eq!((&status["phase"], &error["codes"]), (&json!("Failed"), &json!(["ERR_POLICY_VIOLATION"])), "{status:#}");
    let message =
        "the cluster that the operator runs in is refused by the default policy, line spec.targets.hostCluster.allow";
    assert!(error["message"].as_str().is_some_and(|said| said.contains(message)), "{error:#}");
    assert_eq!(world.value("a").await, None);
    assert_eq!(world.asked_about("/configmaps"), []);
}
