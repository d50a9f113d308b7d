//! What the garbage collector and a namespace that terminates take before its turn: what a deletion needs of it is kept.

use kube::api::DeleteParams;
use orangery_tests::{
    chart::{end, hook, item as release, packed, revision},
    objects::{NAMESPACE, Objects},
    tree::{
        any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster, subinstallation,
    },
};
use serde_json::{Value, json};

use super::guards::behind_a_secret;

/// The namespace that the trees are in; what they deploy is in another one.
const SHORT: &str = "short";

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHORT}})
}

/// The same object in the namespace of the trees.
fn in_short(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!(SHORT);
    object
}

/// A root `tree` of these items.
fn tree(items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    on_cluster(installation("tree", &blueprint(fields)))
}

/// A root `tree` whose sub-installation has these items: they deploy to a copy of its Target.
fn tree_with_a_subinstallation(items: &[Value]) -> Value {
    let leaf = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(items)}));
    let root = json!({"imports": imports_cluster(), "subinstallations": [on_cluster(subinstallation("sub", &leaf))]});
    on_cluster(installation("tree", &blueprint(root)))
}

/// An item whose inventory has no room in its status: of 800 ConfigMaps with long names.
fn large() -> Value {
    let mut item = deploys("large", &[], "x");
    let config_map = |number: usize| {
        let metadata = json!({
            "name": format!("{}-{number}", "x".repeat(240)), "namespace": NAMESPACE, "labels": {"of": "large"},
        });
        json!({"policy": "manage", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}})
    };
    item["config"]["manifests"] = (0..800).map(config_map).collect();
    item
}

fn config_map_of_large() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"of": "large"}}})
}

/// The Secrets that hold inventories in a namespace.
async fn inventories(cluster: &Objects, namespace: &str) -> Vec<Value> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace}});
    let all = cluster.list(&secret).await;
    all.into_iter().filter(|secret| secret["type"] == "orangery.dev/state").collect()
}

/// Applies a tree in a namespace of its own, and waits until it has succeeded.
async fn deploy_in_short(cluster: &Objects, tree: Value) {
    cluster.apply(&namespace()).await;
    behind_a_secret(cluster, "cluster", SHORT).await;
    cluster.apply(&in_short(tree)).await;
    cluster.expect(&in_short(in_phase("Installation", "tree", "Succeeded"))).await;
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}})
}

#[tokio::test]
async fn c_28_a_namespace_that_terminates_takes_copies_of_targets_along_and_their_items_are_uninstalled() {
    let cluster = crate::cluster().await;
    deploy_in_short(&cluster, tree_with_a_subinstallation(&[deploys("cm", &[], "x")])).await;
    cluster.expect(&config_map()).await;
    cluster.delete(&namespace()).await;
    cluster.expect_absent(&namespace()).await;
    cluster.expect_absent(&config_map()).await;
}

#[tokio::test]
async fn c_23_c_28_a_deletion_in_the_foreground_takes_copies_of_targets_and_their_items_are_uninstalled() {
    let cluster = crate::cluster().await;
    let skipping = |mut item: Value| {
        item["onDelete"] = json!({"skipUninstallIfClusterRemoved": true});
        item
    };
    let items = [deploys("cm", &[], "x"), skipping(deploys("skipping", &[], "x"))];
    cluster.apply(&tree_with_a_subinstallation(&items)).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete_with(&any("Installation", "tree"), &DeleteParams::foreground()).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    cluster.expect_absent(&config_map()).await;
    let skipping = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "skipping"}});
    cluster.expect_absent(&skipping).await;
}

#[tokio::test]
async fn c_28_wf_04_a_gate_expression_is_asked_in_a_deletion_that_takes_copies_of_targets_first() {
    let cluster = crate::cluster().await;
    let metric = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": "metric"});
    let mut last = deploys("last", &["cm"], "x");
    last["deletedWhen"] = json!({"expression": "objects.metric == null", "objects": {"metric": metric}});
    cluster.apply(&tree_with_a_subinstallation(&[deploys("cm", &[], "x"), last])).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete_with(&any("Installation", "tree"), &DeleteParams::foreground()).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    cluster.expect_absent(&config_map()).await;
}

#[tokio::test]
async fn c_94_an_inventory_beside_the_status_outlives_its_deletion_by_hand_and_in_the_foreground() {
    // Whether or not guards are on: nobody else has what it says.
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    cluster.apply(&tree(&[large()])).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let kept = inventories(&cluster, NAMESPACE).await;
    assert!(!kept.is_empty());
    for secret in &kept {
        cluster.delete(secret).await;
    }
    ask(&cluster, "tree").await;
    let asked = |tree: &Value| {
        let status = &tree["status"];
        status["jobID"] == status["jobIDFinished"]
            && tree["metadata"]["annotations"]["landscaper.gardener.cloud/operation"].is_null()
    };
    let ended = cluster.expect_that(&any("Installation", "tree"), "has not ended its job", asked).await;
    assert_eq!(ended["status"]["phase"], "Succeeded", "{ended:#}");
    cluster.delete_with(&any("Installation", "tree"), &DeleteParams::foreground()).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    cluster.expect_absent(&config_map_of_large()).await;
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "Secret", "type": "orangery.dev/state"})).await;
}

#[tokio::test]
async fn c_94_an_inventory_beside_the_status_outlives_its_namespace() {
    let cluster = crate::cluster().await;
    let mut item = large();
    // They go slowly, so that the item has to say where it stands: nothing new can be stored.
    for manifest in item["config"]["manifests"].as_array_mut().into_iter().flatten() {
        manifest["manifest"]["metadata"]["finalizers"] = json!(["example.org/hold"]);
    }
    deploy_in_short(&cluster, tree(&[item])).await;
    assert!(!inventories(&cluster, SHORT).await.is_empty());
    cluster.delete(&namespace()).await;
    let waits = |item: &Value| {
        let status = &item["status"];
        status["waitingFor"].to_string().contains(&"x".repeat(240)) && !status.to_string().contains("cannot be kept")
    };
    cluster.expect_that(&in_short(any("DeployItem", "")), "does not wait for what is held", waits).await;
    let all = cluster.list(&config_map_of_large()).await;
    for config_map in all.iter().filter(|map| map["metadata"]["labels"]["of"] == "large") {
        let metadata = json!({"name": config_map["metadata"]["name"], "finalizers": null});
        cluster.merge_where_there(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await;
    }
    cluster.expect_absent(&namespace()).await;
    cluster.expect_absent(&config_map_of_large()).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_28_a_release_with_a_hook_is_uninstalled_in_a_namespace_that_terminates() {
    let cluster = crate::cluster().await;
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n";
    let chart = packed("1.0.0", &[("config.yaml", config), ("bye.yaml", &hook("bye", "pre-delete"))]);
    let mut item = release(&chart, &json!({}))["spec"].take();
    item["name"] = json!("release");
    item["target"] = json!({"import": "cluster"});
    deploy_in_short(&cluster, tree(&[item])).await;
    cluster.expect(&config_map()).await;
    cluster.delete(&namespace()).await;
    end(&cluster, "bye", "Complete").await;
    cluster.expect_absent(&namespace()).await;
    cluster.expect_absent(&config_map()).await;
    cluster.expect_absent(&revision(1, "deployed")).await;
    cluster.expect_absent(&revision(1, "uninstalling")).await;
}

/// The item cannot wait for its own namespace, which waits for the item.
#[tokio::test]
async fn c_176_an_item_that_deploys_the_namespace_it_is_in_goes_with_it() {
    let cluster = crate::cluster().await;
    let mut item = deploys("cm", &[], "x");
    if let Some(manifests) = item["config"]["manifests"].as_array_mut() {
        manifests.push(json!({"policy": "manage", "manifest": namespace()}));
    }
    deploy_in_short(&cluster, tree(&[item])).await;
    cluster.expect(&config_map()).await;
    cluster.delete(&in_short(any("Installation", "tree"))).await;
    cluster.expect_absent(&namespace()).await;
    cluster.expect_absent(&config_map()).await;
}
