//! DataObjects with data of Secrets, by policy encrypted or refused (C-81).

use std::fs;

use orangery_tests::{
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{any, ask, blueprint, executions, in_phase, installation, mocks, subinstallation},
};
use serde_json::{Value, json};

use super::{CANARY, check, secret};
use crate::cases::policies::{policy, put, refused};

/// A root that imports the value, has an item export it, and exports what the item does.
fn exporter(name: &str) -> Value {
    let value = json!({"name": "value", "type": "data", "schema": {"type": "string"}});
    let template = json!({"exports": {"out": {"of": "{{ values.deployitems.item.content }}"}}}).to_string();
    let mut root = installation(
        name,
        &blueprint(json!({
            "imports": [value],
            "deployExecutions": executions(&[mocks("item", &[], "Succeeded", "{{ imports.value }}")]),
            "exports": [{"name": "out", "type": "data", "schema": {}}],
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": template}],
        })),
    );
    root["spec"]["imports"] = json!({"data": [{"name": "value", "secretRef": {"name": "canary", "key": "value"}}]});
    root["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": format!("{name}-out")}]});
    root
}

/// A root that imports what another one exports; its blueprint asks for the very value.
fn follower(of: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"of": {"const": CANARY}}, "required": ["of"]});
    let import = json!({"name": "out", "type": "data", "schema": schema});
    let mut root = installation("follower", &blueprint(json!({"imports": [import]})));
    root["spec"]["imports"] = json!({"data": [{"name": "out", "dataRef": format!("{of}-out")}]});
    root
}

async fn data_objects(cluster: &Cluster) -> Vec<Value> {
    cluster.list(&any("DataObject", "")).await
}

#[tokio::test]
async fn c_81_under_the_restricted_profile_no_data_object_shows_a_value_of_a_secret() {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, &["--default-policy=restricted"]).await;
    cluster.apply(&secret()).await;
    cluster.apply(&exporter("root")).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.apply(&follower("root")).await;
    cluster.expect(&in_phase("Installation", "follower", "Succeeded")).await;
    let found = data_objects(&cluster).await;
    let encrypted = found.iter().filter(|object| object["data"]["orangery.dev/encrypted"].is_string());
    // The copy of the import, the exports of the items, the export and its copy.
    assert_eq!((encrypted.count(), found.len()), (4, 4), "{found:#?}");
    check("a DataObject", &json!(found).to_string());
    let kubeconfig = binary.folder().join("kubeconfig-of-the-test");
    fs::write(&kubeconfig, cluster.kubeconfig()).expect("the file can be written");
    let kubeconfig = kubeconfig.to_string_lossy();
    let items = cluster.list(&any("DeployItem", "")).await;
    let item = items.first().and_then(|item| item["metadata"]["name"].as_str()).expect("there is an item");
    for arguments in
        [&["inspect", "-o", "json"][..], &["why", "installation/root", "-o", "json"], &["plan", item, "-o", "json"]]
    {
        let ended = binary.run(&[arguments, &["--kubeconfig", &*kubeconfig]].concat()).await;
        check(arguments.first().unwrap_or(&""), &(ended.stdout + &ended.stderr));
    }
}

#[tokio::test]
async fn c_81_a_policy_refuses_data_of_secrets_before_any_of_it_is_written() {
    let cluster = crate::cluster().await;
    cluster.apply(&secret()).await;
    put(&cluster, &policy("team", json!({"dataObjects": {"secretData": "Refused"}}))).await;
    cluster.apply(&exporter("root")).await;
    let line = "spec.dataObjects.secretData";
    let message = refused(&cluster, &any("Installation", "root"), "Failed", line).await;
    let sentence = "is refused by NamespacePolicy team, line spec.dataObjects.secretData; leave it out, or have an administrator \
                    set secretData: Encrypted there";
    assert!(message.contains("data of Secrets in the DataObject ") && message.contains(sentence), "{message}");
    assert_eq!(data_objects(&cluster).await, Vec::<Value>::new());
    // What the policy allows from now on starts the job that it refused.
    put(&cluster, &policy("team", json!({"dataObjects": {"secretData": "Readable"}}))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let open = |object: &Value| {
        object["metadata"]["name"] == "root-out"
            && object["metadata"]["namespace"] == NAMESPACE
            && object["data"] == json!({"of": CANARY})
            && object["metadata"]["labels"]["orangery.dev/secret-data"].is_string()
    };
    cluster.expect_that(&any("DataObject", ""), "is not readable", open).await;
}

/// A root whose gate expressions read the value: of an item, and of a sub-installation.
fn gated() -> Value {
    let value = json!({"name": "value", "type": "data", "schema": {"type": "string"}});
    let when = format!("size(imports.value) == {}", CANARY.len());
    let mut item = mocks("item", &[], "Succeeded", "x");
    item["when"] = json!(when);
    let mut sub = subinstallation("sub", &blueprint(json!({})));
    sub["when"] = json!(when);
    let fields = json!({"imports": [value], "deployExecutions": executions(&[item]), "subinstallations": [sub]});
    let mut root = installation("gated", &blueprint(fields));
    root["spec"]["imports"] = json!({"data": [{"name": "value", "secretRef": {"name": "canary", "key": "value"}}]});
    root
}

#[tokio::test]
async fn c_81_what_gate_expressions_read_of_secrets_is_shown_by_nothing_that_holds_it() {
    let cluster = crate::cluster_with(&["--default-policy=restricted"]).await;
    cluster.apply(&secret()).await;
    cluster.apply(&gated()).await;
    cluster.expect(&in_phase("Installation", "gated", "Succeeded")).await;
    let root = cluster.expect(&any("Installation", "gated")).await;
    let execution = cluster.expect(&any("Execution", "gated")).await;
    for held in [&root["status"]["workflow"]["imports"]["value"], &execution["spec"]["imports"]["value"]] {
        assert!(held["orangery.dev/encrypted"].is_string(), "{held}");
    }
    check("a gate expression", &json!([root, execution]).to_string());
    // Both were answered, and the next job reads what the first one has written.
    assert_eq!(cluster.list(&any("DeployItem", "")).await.len(), 1);
    assert_eq!(cluster.list(&any("Installation", "")).await.len(), 2);
    ask(&cluster, "gated").await;
    let again = |found: &Value| {
        let status = &found["status"];
        status["jobID"] != root["status"]["jobID"] && status["jobID"] == status["jobIDFinished"]
    };
    let done = cluster.expect_that(&any("Installation", "gated"), "did not end", again).await;
    assert_eq!(done["status"]["phase"], "Succeeded", "{done:#}");
    cluster.delete(&any("Installation", "gated")).await;
    cluster.expect_absent(&any("Installation", "gated")).await;
}

#[tokio::test]
async fn c_81_a_policy_refuses_gate_expressions_that_read_secrets_before_anything_holds_it() {
    let cluster = crate::cluster().await;
    cluster.apply(&secret()).await;
    put(&cluster, &policy("team", json!({"dataObjects": {"secretData": "Refused"}}))).await;
    cluster.apply(&gated()).await;
    refused(&cluster, &any("Installation", "gated"), "Failed", "spec.dataObjects.secretData").await;
    let root = cluster.expect(&any("Installation", "gated")).await;
    assert_eq!(root["status"]["workflow"], Value::Null, "{root:#}");
    assert_eq!(cluster.list(&any("Execution", "")).await, Vec::<Value>::new());
}
