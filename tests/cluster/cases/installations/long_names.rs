//! Names as long as names can be: whatever is made of them is taken by the server (C-40).

use orangery_tests::{
    objects::NAMESPACE,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster, subinstallation},
};
use serde_json::{Value, json};

/// A name of so many characters.
fn name(begin: &str, length: usize) -> String {
    format!("{begin}{}", "x".repeat(length - begin.len()))
}

/// A blueprint that deploys one ConfigMap by an item of this name.
fn deploying(item: &str, more: Value) -> Value {
    let mut item = deploys(item, &[], "1");
    item["config"]["manifests"][0]["manifest"]["metadata"]["name"] = item["name"].clone();
    let mut fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
    if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
        fields.extend(more);
    }
    blueprint(fields)
}

#[tokio::test]
async fn c_40_a_tree_whose_names_are_as_long_as_they_can_be_is_deployed_and_deleted() {
    let cluster = crate::cluster().await;
    let (root, item, template, inner) = (name("root", 58), name("item", 63), name("template", 52), name("inner", 63));
    let sub = on_cluster(subinstallation(&template, &deploying(&inner, json!({}))));
    let whole = deploying(&item, json!({"subinstallations": [sub]}));
    cluster.apply(&on_cluster(installation(&root, &whole))).await;
    cluster.expect(&in_phase("Installation", &root, "Succeeded")).await;
    for deployed in [&item, &inner] {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": deployed, "namespace": NAMESPACE}});
        cluster.expect(&object).await;
    }
    let installations = cluster.list(&any("Installation", "")).await;
    let items = cluster.list(&any("DeployItem", "")).await;
    let longest = |objects: &[Value]| {
        objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).map(str::len).max().unwrap_or_default()
    };
    assert_eq!((installations.len(), longest(&installations), items.len(), longest(&items)), (2, 58, 2, 63));
    cluster.delete(&any("Installation", &root)).await;
    cluster.expect_absent(&any("Installation", &root)).await;
    let left = cluster.list(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    assert!(!left.iter().any(|object| object["metadata"]["name"] == json!(item)), "{left:?}");
}
