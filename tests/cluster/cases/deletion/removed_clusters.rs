//! Deploy items whose cluster is gone: they go as they are where they say so, and fail where they do not (C-28).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::{Method, StatusCode};
use orangery_tests::{
    external_deployer::{ExternalDeployer, TYPE, item},
    kube::HOST_NAMESPACE,
    objects::{NAMESPACE, Objects},
    proxy::{Fate, Fates, ProxyRequest},
    tree::{
        API, any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
        subinstallation,
    },
    world::World,
};
use serde_json::{Value, json};

/// An item that goes without being uninstalled where its cluster is removed.
fn skipping(mut item: Value) -> Value {
    item["onDelete"] = json!({"skipUninstallIfClusterRemoved": true});
    item
}

/// An Installation of these items on the Target `cluster`.
fn deploying(name: &str, items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    on_cluster(installation(name, &blueprint(fields)))
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Deletes a Target, and what was kept of it, and waits until the operator knows: an import of it fails.
async fn lose_target(cluster: &Objects, name: &str) {
    cluster.delete(&any("Target", name)).await;
    for namespace in [NAMESPACE, HOST_NAMESPACE] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace}});
        for kept in cluster.list(&secret).await.iter().filter(|secret| secret["type"] == "orangery.dev/kubeconfig") {
            cluster.delete(kept).await;
        }
    }
    let mut probe = installation("probe", &blueprint(json!({"imports": imports_cluster()})));
    probe["spec"]["imports"] = json!({"targets": [{"name": "cluster", "target": format!("#{name}")}]});
    cluster.apply(&probe).await;
    let has_ended = |object: &Value| {
        let (status, annotations) = (&object["status"], &object["metadata"]["annotations"]);
        object["metadata"]["name"] == "probe"
            && annotations["landscaper.gardener.cloud/operation"].is_null()
            && status["jobID"].is_string()
            && status["jobID"] == status["jobIDFinished"]
    };
    while cluster.expect_that(&probe, "has not ended", has_ended).await["status"]["phase"] != "Failed" {
        ask(cluster, "probe").await;
    }
    cluster.delete(&probe).await;
    cluster.expect_absent(&probe).await;
}

/// The DeployItem of this item.
async fn object_of(cluster: &Objects, name: &str) -> Value {
    ExternalDeployer(cluster).find(name).await.unwrap_or_else(|| panic!("there is no item {name}"))
}

/// The failure of a deletion.
async fn deletion_failure(cluster: &Objects, name: &str) -> String {
    let failed = cluster.expect(&in_phase("Installation", name, "DeleteFailed")).await;
    failed["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Waits for the event that tells that the DeployItem went without being uninstalled, because this Target is gone.
async fn expect_skipped(cluster: &Objects, object: &Value, target: &str) {
    let name = &object["metadata"]["name"];
    let note = format!(
        "Target default/{target} does not exist any more, so its cluster counts as removed \
         (onDelete.skipUninstallIfClusterRemoved): nothing was uninstalled, what DeployItem {} had deployed was left where it \
         was",
        name.as_str().unwrap_or_default()
    );
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let message = |event: &Value| {
        (&event["reason"], &event["note"], &event["regarding"]["name"])
            == (&json!("UninstallSkipped"), &json!(note), name)
    };
    cluster.expect_that(&event, &note, message).await;
}

#[tokio::test]
async fn c_28_without_its_target_an_item_goes_as_it_is_if_it_says_so_and_fails_if_not() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    let kept = cluster.expect(&any("Target", "cluster")).await;
    let items = [deploys("held", &[], "1"), skipping(deploys("left", &[], "1"))];
    cluster.apply(&deploying("root", &items)).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let (held, left) = (object_of(&cluster, "held").await, object_of(&cluster, "left").await);
    lose_target(&cluster, "cluster").await;
    cluster.delete(&any("Installation", "root")).await;
    let expected = format!(
        "execution root failed: deploy item held failed: DeployItem {} cannot be uninstalled: Target default/cluster does not exist; create it \
         again, or, to leave what was deployed where it is, set spec.onDelete.skipUninstallIfClusterRemoved or annotate the \
         DeployItem landscaper.gardener.cloud/delete-without-uninstall=true; then reconcile again",
        held["metadata"]["name"].as_str().unwrap_or_default()
    );
    assert_eq!(deletion_failure(&cluster, "root").await, expected);
    expect_skipped(&cluster, &left, "cluster").await;
    cluster.expect_absent(&left).await;
    // The one way out: the Target comes back.
    cluster
        .apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "cluster"}, "spec": kept["spec"]}))
        .await;
    ask(&cluster, "root").await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("held")).await;
    cluster.expect(&config_map("left")).await;
}

#[tokio::test]
async fn c_28_the_flag_or_the_annotation_releases_an_item_without_its_target_afterwards() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    cluster.apply(&deploying("root", &[deploys("flagged", &[], "1"), deploys("annotated", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    lose_target(&cluster, "cluster").await;
    cluster.delete(&any("Installation", "root")).await;
    deletion_failure(&cluster, "root").await;
    let flagged = object_of(&cluster, "flagged").await;
    let mut patch = json!({"spec": skipping(json!({}))});
    for field in ["apiVersion", "kind"] {
        patch[field] = flagged[field].clone();
    }
    patch["metadata"] = json!({"name": flagged["metadata"]["name"]});
    cluster.merge(&patch).await;
    let leaves = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    cluster.annotate(&object_of(&cluster, "annotated").await, leaves).await;
    ask(&cluster, "root").await;
    cluster.expect_absent(&any("Installation", "root")).await;
    expect_skipped(&cluster, &flagged, "cluster").await;
    for name in ["flagged", "annotated"] {
        cluster.expect(&config_map(name)).await;
    }
}

/// A deployer elsewhere could only fail: the original does not ask it either.
#[tokio::test]
async fn c_28_an_item_of_another_deployer_goes_as_it_is_and_the_deployer_is_not_asked() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    let external_item = |name: &str| json!({"name": name, "type": TYPE, "target": {"import": "cluster"}, "config": deploys(name, &[], "1")["config"]});
    cluster.apply(&deploying("root", &[skipping(external_item("left")), external_item("held")])).await;
    for item in ["left", "held"] {
        ExternalDeployer(&cluster).succeed(item).await;
    }
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let left = object_of(&cluster, "left").await;
    lose_target(&cluster, "cluster").await;
    cluster.delete(&any("Installation", "root")).await;
    expect_skipped(&cluster, &left, "cluster").await;
    cluster.expect_absent(&left).await;
    ExternalDeployer(&cluster).succeed("held").await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// A deletion in the foreground takes copies away before the items: what counts is the Target that a user keeps.
#[tokio::test]
async fn c_28_a_missing_copy_of_a_target_does_not_count_as_a_removed_cluster_while_the_original_exists() {
    let cluster = crate::cluster().await;
    let leaf = blueprint(json!({
        "imports": imports_cluster(), "deployExecutions": executions(&[skipping(deploys("left", &[], "1"))]),
    }));
    let root = json!({"imports": imports_cluster(), "subinstallations": [on_cluster(subinstallation("sub", &leaf))]});
    cluster.apply(&on_cluster(installation("root", &blueprint(root)))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let left = object_of(&cluster, "left").await;
    let copy = left["spec"]["target"]["name"].as_str().unwrap_or_default().to_owned();
    assert_ne!(copy, "cluster");
    lose_target(&cluster, &copy).await;
    cluster.delete(&any("Installation", "root")).await;
    let message = deletion_failure(&cluster, "root").await;
    let doubt = format!(
        "Target default/{copy} does not exist, and onDelete.skipUninstallIfClusterRemoved does not count because it was a \
         copy of Target default/cluster, which exists; create it again, or, to leave what was deployed where it is, annotate \
         the DeployItem landscaper.gardener.cloud/delete-without-uninstall=true; then reconcile again"
    );
    assert!(message.contains(&doubt), "{message}");
    lose_target(&cluster, "cluster").await;
    ask(&cluster, "root").await;
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
    expect_skipped(&cluster, &left, &copy).await;
    cluster.expect(&config_map("left")).await;
}

/// A job deletes exports before it writes them again.
#[tokio::test]
async fn c_28_a_missing_exported_target_does_not_count_as_a_removed_cluster_while_its_installation_exists() {
    let cluster = crate::cluster().await;
    let kind = "landscaper.gardener.cloud/kubernetes-cluster";
    let target = cluster.expect(&any("Target", "cluster")).await;
    let exports = json!({"exports": {"made": {"type": kind, "config": target["spec"]["config"]}}});
    let mut up = installation(
        "up",
        &blueprint(json!({
            "exports": [{"name": "made", "type": "target", "targetType": kind}],
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": exports.to_string()}],
        })),
    );
    up["spec"]["exports"] = json!({"targets": [{"name": "made", "target": "made"}]});
    cluster.apply(&up).await;
    cluster.expect(&in_phase("Installation", "up", "Succeeded")).await;
    let mut root = deploying("root", &[skipping(deploys("held", &[], "1"))]);
    root["spec"]["imports"] = json!({"targets": [{"name": "cluster", "target": "made"}]});
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    lose_target(&cluster, "made").await;
    cluster.delete(&any("Installation", "root")).await;
    let message = deletion_failure(&cluster, "root").await;
    let doubt = "Target default/made does not exist, and onDelete.skipUninstallIfClusterRemoved does not count because \
                 Installation default/up exports it; create it again";
    assert!(message.contains(doubt), "{message}");
    ask(&cluster, "up").await;
    cluster.expect(&any("Target", "made")).await;
    cluster.expect(&in_phase("Installation", "up", "Succeeded")).await;
    ask(&cluster, "root").await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("held")).await;
}

/// A server that does not say whether the Target `cluster` is there, while this is set.
#[derive(Default)]
struct Silent(AtomicBool);

impl Fates for Silent {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        let is_asked = asked.method == Method::GET && asked.path.ends_with("/targets/cluster");
        if is_asked && self.0.load(Ordering::SeqCst) {
            Fate::Refuse(StatusCode::INTERNAL_SERVER_ERROR)
        } else {
            Fate::Pass
        }
    }
}

#[tokio::test]
async fn c_28_an_unreadable_target_and_an_unreachable_cluster_do_not_count_as_removed() {
    let silent = Arc::new(Silent::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::clone(&silent) as Arc<dyn Fates>).await;
    world.start();
    let cluster = &world.objects;
    let target = cluster.expect(&any("Target", "cluster")).await;
    cluster.apply(&deploying("root", &[skipping(deploys("left", &[], "1"))])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let left = object_of(cluster, "left").await;
    let is_told = |text: &'static str| {
        move |item: &Value| {
            item["status"]["phase"] == "Deleting" && item["status"]["lastError"].to_string().contains(text)
        }
    };

    // Nobody listens there.
    let nowhere = target["spec"]["config"]["kubeconfig"].as_str().unwrap_or_default();
    let server = |text: &str| text.split("http://").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let nowhere = nowhere.replace(&server(nowhere).unwrap_or_default(), "127.0.0.1:1");
    let metadata = json!({"name": "cluster"});
    let moved =
        json!({"apiVersion": API, "kind": "Target", "metadata": metadata, "spec": {"config": {"kubeconfig": nowhere}}});
    cluster.merge(&moved).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_that(&item(), "does not say that its cluster does not answer", is_told("ClusterUnreachable")).await;

    silent.0.store(true, Ordering::SeqCst);
    cluster.delete(&any("Target", "cluster")).await;
    let unread = "Target default/cluster could not be read";
    cluster.expect_that(&item(), "does not say that its Target cannot be read", is_told(unread)).await;

    silent.0.store(false, Ordering::SeqCst);
    cluster.expect_absent(&any("Installation", "root")).await;
    expect_skipped(cluster, &left, "cluster").await;
    cluster.expect(&config_map("left")).await;
    world.end().await;
}
