//! Conditions over definitions of kinds, which come and go while the operator runs (WF-05 … WF-07, WF-24 … WF-26).

use orangery_tests::{
    external_deployer::ExternalDeployer,
    history::{History, Seen, Version},
    objects::{NAMESPACE, Objects},
    tree::{any, ask, in_phase, wait_until_idle},
};
use serde_json::{Value, json};

use super::{item, says, subinstallations::sub, tree, tree_with, want};

/// The definition of a kind.
pub(super) fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn when_defined(kind: &str) -> Value {
    json!({"activateWhen": {"crdPresent": {"group": "example.org", "kind": kind}}})
}

#[tokio::test]
async fn wf_05_wf_06_wf_24_an_item_whose_kind_is_not_defined_takes_no_part() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let items = [item("plain", &[], json!({})), item("widget", &["plain"], when_defined("Widget"))];
    cluster.apply(&tree(&items)).await;
    deployer.succeed("plain").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(deployer.find("widget").await.is_none());
    cluster.apply(&definition("Widget")).await;
    ask(&cluster, "tree").await;
    deployer.succeed("plain").await;
    deployer.succeed("widget").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&definition("Widget")).await;
    cluster.expect_absent(&definition("Widget")).await;
    let before = deployer.find("widget").await.unwrap_or_default();
    ask(&cluster, "tree").await;
    deployer.succeed("plain").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert_eq!(deployer.find("widget").await.unwrap_or_default(), before, "it is left as it is");
}

#[tokio::test]
async fn wf_25_dependents_of_an_inactive_item_are_deleted() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&definition("Gadget")).await;
    cluster.apply(&tree(&[item("gadget", &[], when_defined("Gadget")), item("app", &["gadget"], json!({}))])).await;
    deployer.succeed("gadget").await;
    deployer.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&definition("Gadget")).await;
    cluster.expect_absent(&definition("Gadget")).await;
    ask(&cluster, "tree").await;
    deployer.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(deployer.find("gadget").await.is_some() && deployer.find("app").await.is_none());
}

#[tokio::test]
async fn wf_07_wf_26_a_kind_that_its_predecessor_defines_is_seen_while_the_job_runs() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let mut waits = json!({"when": {
        "expression": "objects.one != null && objects.one.spec.size == 3",
        "objects": {"one": {"apiVersion": "example.org/v1", "kind": "Thing", "namespace": NAMESPACE, "name": "one"}},
    }});
    waits["activateWhen"] = when_defined("Thing")["activateWhen"].clone();
    let gate = json!({"readyWhen": {
        "expression": "objects.one != null",
        "objects": {"one": {"apiVersion": "example.org/v1", "kind": "Thing", "namespace": NAMESPACE, "name": "one"}},
    }});
    cluster.apply(&tree(&[item("defines", &[], gate), item("uses", &["defines"], waits)])).await;
    deployer.succeed("defines").await;
    says(&cluster, "defines", "readyWhen", "False").await;
    cluster.apply(&definition("Thing")).await;
    let is_established = |definition: &Value| {
        let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
        let is = |one: &Value| one["type"] == "Established" && one["status"] == "True";
        definition["metadata"]["name"] == "things.example.org" && conditions.into_iter().flatten().any(is)
    };
    cluster.expect_that(&definition("Thing"), "the kind is not served", is_established).await;
    let metadata = json!({"name": "one", "namespace": NAMESPACE});
    cluster
        .apply(&json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata, "spec": {"size": 3}}))
        .await;
    deployer.succeed("uses").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

/// The jobs of the tree so far.
fn jobs(seen: &Seen) -> usize {
    jobs_in(seen.versions())
}

fn jobs_in(seen: &[Version]) -> usize {
    let of_tree = seen.iter().filter(|version| version.kind == "Installation" && version.name == "tree");
    let mut jobs: Vec<&str> = of_tree.map(|version| version.jobs().0).collect();
    jobs.dedup();
    jobs.retain(|job| !job.is_empty());
    jobs.len()
}

/// What was last seen of the object of the tree: all of its jobs have ended well.
async fn is_settled(cluster: &Objects, deployer: &ExternalDeployer<'_>, name: &str) {
    deployer.succeed(name).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn orc_33_wf_26_a_definition_that_comes_or_goes_after_the_job_starts_one_each_under_on_change() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let definition = definition("Gizmo");
    let mut tree = tree(&[item("plain", &[], json!({})), item("gizmo", &["plain"], when_defined("Gizmo"))]);
    tree["spec"]["reconcilePolicy"] = json!("OnChange");
    cluster.apply(&tree).await;
    let history = History::begin(cluster.client()).await;
    is_settled(&cluster, &deployer, "plain").await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 1, "nothing has changed");
    let history = History::begin(cluster.client()).await;
    cluster.apply(&definition).await;
    deployer.succeed("plain").await;
    is_settled(&cluster, &deployer, "gizmo").await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 2, "one change, one job beside the last");
    cluster.delete(&definition).await;
    is_settled(&cluster, &deployer, "plain").await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 3);
    let mut manual = any("Installation", "tree");
    manual["spec"] = json!({"reconcilePolicy": "Manual"});
    cluster.merge(&manual).await;
    wait_until_idle(&cluster).await;
    cluster.expect_absent(&definition).await;
    cluster.apply(&definition).await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 3, "who gives the policy up hears no more");
}

#[tokio::test]
async fn orc_33_wf_26_conditions_deep_in_a_tree_start_jobs_of_its_root() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let definition = definition("Gear");
    let present = json!({"target": {"import": "cluster"}, "group": "example.org", "kind": "Gear"});
    let subs = [sub("plain", &[], json!({})), sub("gear", &[], json!({"activateWhen": {"crdPresent": present}}))];
    let mut tree = tree_with(json!({"subinstallations": subs}));
    tree["spec"]["reconcilePolicy"] = json!("OnChange");
    cluster.apply(&tree).await;
    is_settled(&cluster, &deployer, "plain").await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&definition).await;
    deployer.succeed("plain").await;
    is_settled(&cluster, &deployer, "gear").await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 2);
    // A job that fails before it asks is not started again by the same answer; the change of the spec started one as well.
    let broken = json!({"when": "imports.wnted"});
    let mut tree = tree_with(json!({"subinstallations": [sub("plain", &[], broken), subs[1].clone()]}));
    tree["spec"]["reconcilePolicy"] = json!("OnChange");
    tree["metadata"]["annotations"] = json!({});
    cluster.apply(&tree).await;
    cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 3);
    cluster.delete(&definition).await;
    cluster.expect_absent(&definition).await;
    let failed_again = |seen: &[Version]| {
        let last = seen.iter().rfind(|version| version.kind == "Installation" && version.name == "tree");
        last.is_some_and(|tree| tree.phase() == "Failed") && jobs_in(seen) == 4
    };
    history.wait_until(failed_again).await;
    wait_until_idle(&cluster).await;
    assert_eq!(jobs(&history.until_now().await), 4);
}
