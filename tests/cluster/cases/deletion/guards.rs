//! Deletion guards: what is in use stays until nobody uses it any more (ORC-36 … ORC-42).

use orangery_tests::{
    external_deployer::ExternalDeployer,
    objects::{NAMESPACE, Objects},
    tree::{
        API, any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
        subinstallation, wait_until_idle,
    },
};
use serde_json::{Value, json};

const GUARD: &str = "orangery.dev/in-use";

/// Applies a Target of the cluster itself whose kubeconfig stands in a Secret, and the Secret.
pub(super) async fn behind_a_secret(cluster: &Objects, name: &str, namespace: &str) -> [Value; 2] {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "stringData": {"kubeconfig": cluster.kubeconfig()},
    });
    let target = json!({
        "apiVersion": API, "kind": "Target", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "type": "landscaper.gardener.cloud/kubernetes-cluster",
            "secretRef": {"name": name, "key": "kubeconfig"},
        },
    });
    cluster.apply(&secret).await;
    cluster.apply(&target).await;
    [secret, target]
}

/// A tree of one ConfigMap that it deploys to the Target of this name.
fn tree_on(target: &str) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("cm", &[], "x")])});
    let mut tree = on_cluster(installation("tree", &blueprint(fields)));
    tree["spec"]["imports"]["targets"][0]["target"] = json!(target);
    tree
}

fn named(kind: &str, name: &str) -> Value {
    let version = if matches!(kind, "Secret" | "ConfigMap") { "v1" } else { API };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}})
}

/// Whether an object has the guard; `None` where it is not there.
async fn is_guarded(cluster: &Objects, kind: &str, name: &str) -> Option<bool> {
    let all = cluster.list(&named(kind, name)).await;
    let object = all
        .into_iter()
        .find(|object| object["metadata"]["name"] == name && object["metadata"]["namespace"] == NAMESPACE)?;
    let finalizers = object["metadata"]["finalizers"].as_array();
    Some(finalizers.into_iter().flatten().any(|finalizer| finalizer == GUARD))
}

/// Waits until an object is being deleted, and is still there.
async fn is_going(cluster: &Objects, kind: &str, name: &str) {
    let going =
        |object: &Value| object["metadata"]["name"] == name && object["metadata"]["deletionTimestamp"].is_string();
    cluster.expect_that(&named(kind, name), &format!("{kind} {name} is not held"), going).await;
}

#[tokio::test]
async fn orc_36_to_38_orc_40_orc_41_what_an_item_deploys_with_stays_until_the_item_is_gone() {
    let cluster = crate::cluster().await;
    let objects = behind_a_secret(&cluster, "garden", NAMESPACE).await;
    wait_until_idle(&cluster).await;
    assert_eq!(is_guarded(&cluster, "Target", "garden").await, Some(false), "nobody uses it yet");
    cluster.apply(&tree_on("garden")).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    for (kind, name) in [("Target", "garden"), ("Secret", "garden"), ("Context", "default")] {
        assert_eq!(is_guarded(&cluster, kind, name).await, Some(true), "{kind}");
    }
    for object in &objects {
        cluster.delete(object).await;
    }
    for kind in ["Target", "Secret"] {
        is_going(&cluster, kind, "garden").await;
    }
    cluster.delete(&any("Installation", "tree")).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    for kind in ["Target", "Secret"] {
        cluster.expect_absent(&named(kind, "garden")).await;
    }
    cluster.expect_absent(&named("ConfigMap", "cm")).await;
}

#[tokio::test]
async fn orc_35_orc_39_an_object_that_is_no_longer_used_is_released_at_once() {
    let cluster = crate::cluster().await;
    let objects = behind_a_secret(&cluster, "garden", NAMESPACE).await;
    cluster.apply(&tree_on("garden")).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.apply(&tree_on("cluster")).await;
    ask(&cluster, "tree").await;
    let moved = |item: &Value| item["spec"]["target"]["name"] == "cluster" && item["status"]["phase"] == "Succeeded";
    cluster.expect_that(&any("DeployItem", ""), "the item has not moved", moved).await;
    for object in &objects {
        cluster.delete(object).await;
    }
    for kind in ["Target", "Secret"] {
        cluster.expect_absent(&named(kind, "garden")).await;
    }
}

#[tokio::test]
async fn orc_39_what_jobs_write_themselves_is_not_guarded() {
    let cluster = crate::cluster().await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("cm", &[], "x")])});
    let sub = on_cluster(subinstallation("sub", &blueprint(fields)));
    let root =
        on_cluster(installation("tree", &blueprint(json!({"imports": imports_cluster(), "subinstallations": [sub]}))));
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let targets = cluster.list(&named("Target", "")).await;
    let copies: Vec<&Value> = targets.iter().filter(|target| target["metadata"]["name"] != "cluster").collect();
    assert!(!copies.is_empty() && copies.iter().all(|copy| copy["metadata"]["finalizers"].is_null()), "{copies:?}");
    cluster.delete(&any("Installation", "tree")).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
}

#[tokio::test]
async fn orc_42_a_chain_that_failed_half_way_is_deleted_by_deletes_alone_whatever_their_order() {
    let cluster = crate::cluster().await;
    for first in ["Target", "Secret", "Installation"] {
        behind_a_secret(&cluster, "garden", NAMESPACE).await;
        let mut fields = json!({"imports": imports_cluster()});
        let mut fails = deploys("fails", &["cm"], "x");
        fails["type"] = json!("landscaper.gardener.cloud/mock");
        fails["config"] = json!({
            "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "phase": "Failed",
        });
        fields["deployExecutions"] = executions(&[deploys("cm", &[], "x"), fails]);
        let mut tree = on_cluster(installation("tree", &blueprint(fields)));
        tree["spec"]["imports"]["targets"][0]["target"] = json!("garden");
        cluster.apply(&tree).await;
        cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
        let mut all = vec![("Target", "garden"), ("Secret", "garden"), ("Installation", "tree")];
        all.sort_by_key(|(kind, _)| *kind != first);
        for (kind, name) in &all {
            cluster.delete(&named(kind, name)).await;
        }
        for (kind, name) in &all {
            cluster.expect_absent(&named(kind, name)).await;
        }
        cluster.expect_absent(&named("ConfigMap", "cm")).await;
    }
}

#[tokio::test]
async fn orc_38_a_config_map_that_is_imported_stays_until_its_importer_is_gone() {
    let cluster = crate::cluster().await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}, "data": {"a": "1"}}))
        .await;
    let imports = json!([{"name": "a", "type": "data", "schema": {}}]);
    let mut tree = installation("tree", &blueprint(json!({"imports": imports})));
    tree["spec"]["imports"] = json!({"data": [{"name": "a", "configMapRef": {"name": "data", "key": "a"}}]});
    cluster.apply(&tree).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&named("ConfigMap", "data")).await;
    is_going(&cluster, "ConfigMap", "data").await;
    cluster.delete(&any("Installation", "tree")).await;
    cluster.expect_absent(&named("ConfigMap", "data")).await;
}

#[tokio::test]
async fn orc_40_a_guard_that_was_removed_by_hand_comes_back_with_the_next_job() {
    let cluster = crate::cluster().await;
    behind_a_secret(&cluster, "garden", NAMESPACE).await;
    cluster.apply(&tree_on("garden")).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    for kind in ["Target", "Secret"] {
        let mut freed = named(kind, "garden");
        freed["metadata"]["finalizers"] = Value::Null;
        cluster.merge(&freed).await;
    }
    ask(&cluster, "tree").await;
    for kind in ["Target", "Secret"] {
        let held = |object: &Value| {
            let finalizers = object["metadata"]["finalizers"].as_array();
            object["metadata"]["name"] == "garden"
                && finalizers.into_iter().flatten().any(|finalizer| finalizer == GUARD)
        };
        cluster.expect_that(&named(kind, "garden"), "the guard has not come back", held).await;
    }
}

#[tokio::test]
async fn orc_27_orc_42_a_namespace_that_terminates_takes_guarded_objects_along() {
    let cluster = crate::cluster().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}});
    cluster.apply(&namespace).await;
    behind_a_secret(&cluster, "garden", "short").await;
    let mut tree = tree_on("garden");
    tree["metadata"]["namespace"] = json!("short");
    cluster.apply(&tree).await;
    let mut done = in_phase("Installation", "tree", "Succeeded");
    done["metadata"]["namespace"] = json!("short");
    cluster.expect(&done).await;
    cluster.delete(&namespace).await;
    cluster.expect_absent(&namespace).await;
    cluster.expect_absent(&named("ConfigMap", "cm")).await;
}

#[tokio::test]
async fn without_guards_nothing_is_held_and_held_objects_are_released() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    let [_, mut target] = behind_a_secret(&cluster, "garden", NAMESPACE).await;
    cluster.apply(&tree_on("garden")).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert_eq!(is_guarded(&cluster, "Target", "garden").await, Some(false));
    target["metadata"]["finalizers"] = json!([GUARD]);
    cluster.apply(&target).await;
    cluster.delete(&target).await;
    cluster.expect_absent(&named("Target", "garden")).await;
    assert!(ExternalDeployer(&cluster).find("cm").await.is_some());
}
