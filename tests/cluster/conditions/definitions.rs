//! Conditions over definitions of kinds, which come and go while the operator runs (WF-05 … WF-07, WF-24 … WF-26).

use orangery_tests::{
    objects::NAMESPACE,
    theirs::Theirs,
    tree::{ask, in_phase},
};
use serde_json::{Value, json};

use super::{item, says, tree, want};

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
    let theirs = Theirs(&cluster);
    want(&cluster, true).await;
    let items = [item("plain", &[], json!({})), item("widget", &["plain"], when_defined("Widget"))];
    cluster.apply(&tree(&items)).await;
    theirs.succeed("plain").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(theirs.find("widget").await.is_none());
    cluster.apply(&definition("Widget")).await;
    ask(&cluster, "tree").await;
    theirs.succeed("plain").await;
    theirs.succeed("widget").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&definition("Widget")).await;
    cluster.expect_absent(&definition("Widget")).await;
    let before = theirs.find("widget").await.unwrap_or_default();
    ask(&cluster, "tree").await;
    theirs.succeed("plain").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert_eq!(theirs.find("widget").await.unwrap_or_default(), before, "it is left as it is");
}

#[tokio::test]
async fn wf_25_what_depends_on_an_item_that_takes_no_part_goes() {
    let cluster = crate::cluster().await;
    let theirs = Theirs(&cluster);
    want(&cluster, true).await;
    cluster.apply(&definition("Gadget")).await;
    cluster.apply(&tree(&[item("gadget", &[], when_defined("Gadget")), item("app", &["gadget"], json!({}))])).await;
    theirs.succeed("gadget").await;
    theirs.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&definition("Gadget")).await;
    cluster.expect_absent(&definition("Gadget")).await;
    ask(&cluster, "tree").await;
    theirs.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(theirs.find("gadget").await.is_some() && theirs.find("app").await.is_none());
}

#[tokio::test]
async fn wf_07_wf_26_a_kind_that_its_predecessor_defines_is_seen_while_the_job_runs() {
    let cluster = crate::cluster().await;
    let theirs = Theirs(&cluster);
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
    theirs.succeed("defines").await;
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
    theirs.succeed("uses").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}
