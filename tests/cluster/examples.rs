//! Every example, as its README runs it. `UPDATE=1` writes the expected errors anew.

use std::{env, fs};

use orangery_tests::{binary::Ended, cluster::Cluster, repository};
use serde_json::{Value, json};

async fn up_once(example: &str) -> Ended {
    let folder = repository().join("examples").join(example);
    let folder = folder.to_str().expect("the path of the repository is text");
    crate::binary().run(&["up", "--ephemeral", "--port", "0", "--once", folder]).await
}

/// Runs an example that fails, and compares what it prints with the file beside it.
async fn check_fails(example: &str) {
    let ended = up_once(example).await;
    let file = repository().join("examples").join(example).join("expected-error.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, &ended.stderr).expect("the expected error can be written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), expected.as_str()), "printed:\n{}", ended.stdout);
    assert!(!expected.is_empty(), "an error is printed");
}

/// Runs an example that succeeds, and waits for what it says it deploys.
async fn check_deploys(example: &str, expected: &[Value]) {
    let folder = repository().join("examples").join(example);
    let folder = folder.to_str().expect("the path of the repository is text");
    let cluster = Cluster::start(&crate::binary(), &["--ephemeral", folder]).await;
    for object in expected {
        cluster.expect(object).await;
    }
    let ended = up_once(example).await;
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

fn config_map(name: &str, namespace: &str, content: Value) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content})
}

fn data_object(name: &str, content: Value) -> Value {
    let kind = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DataObject"});
    let mut object = kind;
    object["metadata"] = json!({"name": name});
    object["data"] = content;
    object
}

fn succeeded(name: &str) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": name},
        "status": {"phase": "Succeeded"},
    })
}

#[tokio::test]
async fn hello_world_deploys_one_config_map() {
    let greeting = json!({"greeting": "Hello from a sandboxed component"});
    check_deploys("hello-world", &[config_map("hello", "default", greeting), succeeded("hello")]).await;
}

#[tokio::test]
async fn data_flow_hands_the_address_on() {
    let address = "postgres.garden.example:5432";
    let application = config_map("application", "default", json!({"databaseAddress": address}));
    let exported = data_object("database-address", json!(address));
    check_deploys("data-flow", &[application, exported, succeeded("application")]).await;
}

#[tokio::test]
async fn sub_installations_export_through_their_parent() {
    let stock = json!({"orange": "in stock", "lemon": "in stock", "kumquat": "in stock"});
    let front = config_map("front", "default", stock);
    let storefront = data_object("storefront", json!("The orange shop"));
    check_deploys("sub-installations", &[front, storefront, succeeded("shop")]).await;
}

#[tokio::test]
async fn dependencies_deploy_into_the_namespace_that_comes_first() {
    let orange = config_map("orange", "garden", json!({"height": "2 m"}));
    let soil = config_map("soil", "garden", json!({"ph": "6"}));
    check_deploys("dependencies", &[soil, orange, succeeded("garden")]).await;
}

#[tokio::test]
async fn a_wrong_template_prints_where_it_is_wrong() {
    check_fails("errors/wrong-template").await;
}

#[tokio::test]
async fn a_wrong_schema_prints_what_was_expected() {
    check_fails("errors/wrong-schema").await;
}

#[tokio::test]
async fn a_missing_import_prints_which_object_is_missing() {
    check_fails("errors/missing-import").await;
}
