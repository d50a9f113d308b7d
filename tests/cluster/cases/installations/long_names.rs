//! Names as long as names can be: whatever is made of them is taken by the server (C-40).

use orangery_tests::{
    cluster::own_target,
    objects::NAMESPACE,
    tree::{
        API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster, subinstallation,
    },
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
    let deployed = |object: &Value| [&item, &inner].iter().any(|name| object["metadata"]["name"] == json!(name));
    assert!(!left.iter().any(deployed), "{left:?}");
}

/// A blueprint whose import `from` is its export `to`.
fn handing_on(from: &str, to: &str) -> Value {
    let text = json!({"type": "string"});
    blueprint(json!({
        "imports": [{"name": from, "type": "data", "schema": text}],
        "exports": [{"name": to, "type": "data", "schema": text}],
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": format!("{{{{ {{'exports': {{'{to}': imports['{from}']}}}} | tojson }}}}")}],
    }))
}

/// Everything that has a name, with names of this length in this namespace.
async fn deploys_and_goes(namespace: &str, length: usize) {
    let cluster = crate::cluster().await;
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await;
    let named = |begin: &str| name(begin, length);
    let (target, data, context, item) = (named("target"), named("data"), named("context"), named("item"));
    let (import, export, out, inner) = (named("import"), named("export"), named("out"), named("inner"));
    let (clusters, one) = (named("clusters"), name("one", 63));
    let metadata = |name: &str| json!({"name": name, "namespace": namespace});
    let mut own = own_target(cluster.kubeconfig());
    own["metadata"] = metadata(&target);
    cluster.apply(&own).await;
    cluster.apply(&json!({"apiVersion": API, "kind": "DataObject", "metadata": metadata(&data), "data": "x"})).await;
    cluster.apply(&json!({"apiVersion": API, "kind": "Context", "metadata": metadata(&context)})).await;

    // What the child exports in the context of the parent is what the parent exports.
    let text = json!({"type": "string"});
    let mut sub = subinstallation("sub", &handing_on(&import, &export));
    sub["imports"] = json!({"data": [{"name": import, "dataRef": import}]});
    sub["exports"] = json!({"data": [{"name": export, "dataRef": inner}]});
    let mut deployed = deploys(&item, &[], "1");
    deployed["target"] = json!({"import": clusters, "key": one});
    let kind = "landscaper.gardener.cloud/kubernetes-cluster";
    let template = format!("{{{{ {{'exports': {{'{export}': values.dataobjects['{inner}']}}}} | tojson }}}}");
    let fields = json!({
        "imports": [
            {"name": import, "type": "data", "schema": text},
            {"name": clusters, "type": "targetMap", "targetType": kind},
        ],
        "exports": [{"name": export, "type": "data", "schema": text}],
        "deployExecutions": executions(&[deployed]),
        "subinstallations": [sub],
        "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
    });
    let mut root = installation("root", &blueprint(fields));
    root["metadata"]["namespace"] = json!(namespace);
    root["spec"]["context"] = json!(context);
    root["spec"]["imports"] = json!({
        "data": [{"name": import, "dataRef": data}], "targets": [{"name": clusters, "targetMap": {(&one): target}}],
    });
    root["spec"]["exports"] = json!({"data": [{"name": export, "dataRef": out}]});
    cluster.apply(&root).await;
    let of_root = |phase: &str| json!({"apiVersion": API, "kind": "Installation", "metadata": metadata("root"), "status": {"phase": phase}});
    let first = cluster.expect(&of_root("Succeeded")).await;
    let exported = json!({"apiVersion": API, "kind": "DataObject", "metadata": metadata(&out), "data": "x"});
    cluster.expect(&exported).await;
    let config_map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": item, "namespace": NAMESPACE}});
    cluster.expect(&config_map).await;

    // Another job finds what the first one has made, and makes nothing anew.
    let names = async |kind: &str| {
        let all = cluster.list(&json!({"apiVersion": API, "kind": kind, "metadata": {"namespace": namespace}})).await;
        all.iter().map(|object| object["metadata"]["uid"].clone()).collect::<Vec<_>>()
    };
    let before = names("DeployItem").await;
    cluster.annotate(&of_root("Succeeded"), json!({"landscaper.gardener.cloud/operation": "reconcile"})).await;
    let is_second = |object: &Value| {
        let finished = &object["status"]["jobIDFinished"];
        object["metadata"]["name"] == "root"
            && finished != &first["status"]["jobIDFinished"]
            && finished == &object["status"]["jobID"]
    };
    let second = cluster.expect_that(&of_root(""), "did not end its second job", is_second).await;
    assert_eq!(second["status"]["phase"], "Succeeded", "{length}: {second:#}");
    assert_eq!((before.len(), names("DeployItem").await), (1, before), "{length}");
    cluster.delete(&of_root("")).await;
    cluster.expect_absent(&of_root("")).await;
    cluster.expect_absent(&config_map).await;
}

#[tokio::test]
async fn c_150_c_40_whatever_has_a_name_may_have_the_longest_that_there_is() {
    deploys_and_goes(&name("namespace", 63), 63).await;
    for length in [64, 253] {
        deploys_and_goes(NAMESPACE, length).await;
    }
}
