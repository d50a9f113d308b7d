//! Plugins: components that are installed while the operator runs (C-260 to C-264).

use orangery_core::digest::sha256;
use orangery_tests::{
    cluster::Cluster,
    kube::HOST_NAMESPACE,
    objects::NAMESPACE,
    tree::{API, any, blueprint, executions, in_phase, installation},
    world::Ground,
};
use serde_json::{Value, json};

use super::faults::refused_writes::{WHY, binding, refuse};

mod candidates;
mod hot_swap;

const TYPE: &str = "example.org/mine";

/// A component that ships with the operator.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let builtin = orangery_builtin::components().iter().find(|builtin| builtin.name == name).expect("it ships");
    let (packed, size, _) = builtin.component.expect("it is built");
    orangery_plugin::unpack(packed, size).expect("it unpacks")
}

/// The same with another digest.
pub(crate) fn renewed(mut component: Vec<u8>) -> Vec<u8> {
    // A custom section: its number, its length, the length of its name, its name.
    component.extend_from_slice(b"\0\x02\x01x");
    component
}

/// A ConfigMap in the namespace of the operator.
fn config_map(name: &str, content: &[u8]) -> Value {
    let namespace = match crate::ground() {
        Ground::Embedded => NAMESPACE,
        Ground::Kube(_) => HOST_NAMESPACE,
    };
    let content = data_encoding::BASE64.encode(content);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
        "binaryData": {"component.wasm": content},
    })
}

fn plugin(name: &str, fields: Value) -> Value {
    let mut spec = json!({"source": {"configMap": {"name": name}}, "deployer": {"itemTypes": [TYPE]}});
    if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        spec.extend(fields);
    }
    json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec})
}

/// Installs a Plugin with a component in a ConfigMap of its name, and waits until it is in use.
async fn install(cluster: &Cluster, name: &str, content: &[u8], fields: Value) -> Value {
    cluster.apply(&config_map(name, content)).await;
    cluster.apply(&plugin(name, fields)).await;
    in_use(cluster, name, content).await
}

/// Waits until a component is in use.
async fn in_use(cluster: &Cluster, name: &str, content: &[u8]) -> Value {
    let digest = sha256(content);
    let is_in_use =
        |plugin: &Value| is_named(plugin, name) && plugin["status"]["digest"] == digest && is(plugin, "Ready", "True");
    cluster.expect_that(&plugin(name, json!({})), "is not in use", is_in_use).await
}

pub(crate) fn is_named(object: &Value, name: &str) -> bool {
    object["metadata"]["name"] == name
}

pub(crate) fn condition<'a>(plugin: &'a Value, kind: &str) -> Option<&'a Value> {
    plugin["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn is(plugin: &Value, kind: &str, status: &str) -> bool {
    condition(plugin, kind).is_some_and(|condition| condition["status"] == status)
}

pub(crate) fn message(plugin: &Value) -> String {
    condition(plugin, "Ready").and_then(|ready| ready["message"].as_str()).unwrap_or_default().to_owned()
}

/// An item that does what the mock deployer is told.
pub(crate) fn item(name: &str, phase: &str) -> Value {
    let mut item = any("DeployItem", name);
    item["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "test-reconcile"});
    item["spec"] = json!({"type": TYPE, "config": {
        "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "phase": phase,
    }});
    item
}

#[tokio::test]
async fn c_260_c_262_a_component_is_installed_and_one_that_cannot_be_used_changes_nothing() {
    let cluster = crate::cluster().await;
    let mock = component("mock");
    let installed = install(&cluster, "mine", &mock, json!({})).await;
    let short = sha256(&mock).chars().take(19).collect::<String>();
    let status = &installed["status"];
    let told = json!({
        "observedGeneration": status["observedGeneration"], "loadedGeneration": status["loadedGeneration"],
        "version": status["version"], "digest": status["digest"], "types": status["types"], "items": status["items"],
        "exports": status["exports"],
    });
    let expected = json!({
        "observedGeneration": 1, "loadedGeneration": 1, "version": short, "digest": sha256(&mock),
        "types": [{"type": TYPE}], "items": 0, "exports": orangery_plugin::inspect(&mock).expect("a component").exports,
    });
    assert_eq!(told, expected);
    assert_eq!(message(&installed), format!("version {short} is in use"));
    let imports = status["imports"].as_array().cloned().unwrap_or_default();
    assert!(imports.iter().all(|import| import["offer"] == "harmless"), "{imports:?}");

    cluster.apply(&item("a", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "a", "Succeeded")).await;
    let has_one = |plugin: &Value| plugin["status"]["items"] == 1;
    cluster.expect_that(&installed, "does not count its item", has_one).await;

    let stays = format!("; version {short} stays in use");
    cluster.apply(&config_map("mine", b"\0asm\x01\0\0\0")).await;
    let stalled = |plugin: &Value| is(plugin, "Stalled", "True");
    let told = cluster.expect_that(&installed, "does not tell of a core module", stalled).await;
    let why = "the file is not a WebAssembly component: it is a core module; build it for the target wasm32-wasip2";
    assert!(message(&told).contains(why) && message(&told).ends_with(&stays), "{}", message(&told));
    assert_eq!((&told["status"]["digest"], is(&told, "Ready", "False")), (&json!(sha256(&mock)), true));
    cluster.apply(&item("b", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "b", "Succeeded")).await;

    // A spec that claims what the component is not.
    cluster.apply(&config_map("mine", &mock)).await;
    in_use(&cluster, "mine", &mock).await;
    cluster
        .merge(&json!({
            "apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "mine"},
            "spec": {"deployer": null, "gate": {"types": [TYPE]}},
        }))
        .await;
    let told = cluster.expect_that(&installed, "does not tell of another world", stalled).await;
    assert!(message(&told).contains("the component exports nothing of a gate engine"), "{}", message(&told));
    assert_eq!((&told["status"]["observedGeneration"], &told["status"]["loadedGeneration"]), (&json!(2), &json!(1)));
    cluster.apply(&item("c", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "c", "Succeeded")).await;
}

#[tokio::test]
async fn c_263_a_job_ends_with_the_component_that_it_began_with_and_the_next_one_has_the_new() {
    let cluster = crate::cluster().await;
    install(&cluster, "mine", &component("mock"), json!({})).await;
    cluster.apply(&item("a", "Progressing")).await;
    cluster.expect(&in_phase("DeployItem", "a", "Progressing")).await;

    // To the deployer of manifests what the mock deployer understands is no configuration.
    let manifest = component("manifest");
    cluster.apply(&config_map("mine", &manifest)).await;
    in_use(&cluster, "mine", &manifest).await;
    let mut ends = item("a", "Succeeded");
    ends["metadata"]["annotations"] = Value::Null;
    cluster.merge(&ends).await;
    cluster.expect(&in_phase("DeployItem", "a", "Succeeded")).await;

    cluster.annotate(&any("DeployItem", "a"), json!({"landscaper.gardener.cloud/operation": "test-reconcile"})).await;
    let failed = cluster.expect(&in_phase("DeployItem", "a", "Failed")).await;
    let why = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("apiVersion"), "{why}");
}

#[tokio::test]
async fn c_264_a_guard_of_a_plugin_that_may_not_be_taken_away_is_told_and_taken_away_once_it_may() {
    let cluster = crate::cluster().await;
    install(&cluster, "one", &component("mock"), json!({})).await;
    let size = |of: &str| format!("(has({of}.metadata.finalizers) ? size({of}.metadata.finalizers) : 0)");
    refuse(&cluster, "plugins", &format!("oldObject == null || {} >= {}", size("object"), size("oldObject"))).await;
    let one = plugin("one", json!({}));
    cluster.delete(&one).await;
    let is_told = |plugin: &Value| is_named(plugin, "one") && message(plugin).contains(WHY);
    cluster.expect_that(&one, "does not say why it stays", is_told).await;
    cluster.delete(&binding()).await;
    let gone = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "one"}});
    cluster.expect_absent(&gone).await;
}

#[tokio::test]
async fn c_261_c_264_a_plugin_stays_and_serves_until_its_items_are_gone_or_another_one_serves_them() {
    let cluster = crate::cluster().await;
    let mock = component("mock");
    install(&cluster, "one", &mock, json!({})).await;
    let two =
        install(&cluster, "two", &renewed(mock.clone()), json!({"priority": 5, "namespaces": ["nowhere-*"]})).await;
    assert_eq!(two["status"]["types"], json!([{"type": TYPE}]));
    cluster.apply(&item("a", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "a", "Succeeded")).await;
    let one = plugin("one", json!({}));
    let serves = |plugin: &Value| is_named(plugin, "one") && plugin["status"]["items"] == 1;
    cluster.expect_that(&one, "does not count its item", serves).await;

    cluster.delete(&one).await;
    let is_held = |plugin: &Value| is_named(plugin, "one") && message(plugin).ends_with("there are 1");
    let held = cluster.expect_that(&one, "is not held by its item", is_held).await;
    assert!(is(&held, "Reconciling", "True"), "{held}");
    // It serves meanwhile: its item may be changed and deleted.
    cluster.annotate(&any("DeployItem", "a"), json!({"landscaper.gardener.cloud/operation": "test-reconcile"})).await;
    let job = |item: &Value| is_named(item, "a") && item["status"]["jobID"] == item["status"]["jobIDFinished"];
    cluster.expect_that(&any("DeployItem", "a"), "does not end its second job", job).await;
    cluster.delete(&any("DeployItem", "a")).await;
    cluster.expect_absent(&any("DeployItem", "a")).await;
    cluster
        .expect_absent(&json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "one"}}))
        .await;

    // Where another one serves the items, nothing holds it.
    install(&cluster, "one", &mock, json!({})).await;
    cluster.apply(&item("b", "Succeeded")).await;
    cluster.expect(&in_phase("DeployItem", "b", "Succeeded")).await;
    cluster.merge(&json!({
        "apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "two"}, "spec": {"namespaces": null},
    }))
    .await;
    let is_taken =
        |plugin: &Value| is_named(plugin, "one") && plugin["status"]["types"][0]["servedBy"] == "the Plugin two";
    let taken = cluster.expect_that(&one, "does not tell who serves its type", is_taken).await;
    assert!(
        message(&taken)
            .ends_with(&format!("but {TYPE} is served by the Plugin two, which comes first; see spec.priority"))
    );
    assert_eq!(taken["status"]["items"], 0);
    cluster.delete(&one).await;
    cluster
        .expect_absent(&json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "one"}}))
        .await;

    // What ships comes before a Plugin of the same priority.
    let claims = json!({"deployer": {"itemTypes": ["landscaper.gardener.cloud/kubernetes-manifest"]}});
    let three = install(&cluster, "three", &mock, claims).await;
    assert_eq!(three["status"]["types"][0]["servedBy"], "the registered plugin manifest");
}

/// Its job waits for an external deployer by then, and nothing of the item changes.
#[tokio::test]
async fn c_261_an_item_that_nobody_serves_is_begun_by_a_plugin_that_is_installed() {
    let cluster = crate::cluster().await;
    let of_type = json!({"name": "a", "type": TYPE, "config": item("a", "Succeeded")["spec"]["config"]});
    let root = installation("root", &blueprint(json!({"deployExecutions": executions(&[of_type])})));
    cluster.apply(&root).await;
    let any_item = json!({"apiVersion": API, "kind": "DeployItem"});
    let is_triggered = |item: &Value| item["status"]["jobID"].is_string();
    cluster.expect_that(&any_item, "is not triggered", is_triggered).await;
    install(&cluster, "mine", &component("mock"), json!({})).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

#[tokio::test]
async fn c_262_items_wait_for_a_plugin_whose_component_is_not_there_yet() {
    let cluster = crate::cluster().await;
    let mine = plugin("mine", json!({}));
    cluster.apply(&mine).await;
    let is_told = |plugin: &Value| is(plugin, "Reconciling", "True") && is(plugin, "Ready", "False");
    let told = cluster.expect_that(&mine, "does not tell that its source is missing", is_told).await;
    assert!(message(&told).contains("the ConfigMap mine in namespace"), "{}", message(&told));
    cluster.apply(&item("a", "Succeeded")).await;
    let waits = |item: &Value| {
        let text = item["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned();
        text.contains("the Plugin mine is not loaded yet; kubectl describe plugin mine says why")
    };
    cluster.expect_that(&any("DeployItem", "a"), "does not tell what it waits for", waits).await;
    cluster.apply(&config_map("mine", &component("mock"))).await;
    cluster.expect(&in_phase("DeployItem", "a", "Succeeded")).await;
}

#[tokio::test]
async fn c_260_a_suspended_plugin_keeps_what_it_has() {
    let cluster = crate::cluster().await;
    let mock = component("mock");
    install(&cluster, "mine", &mock, json!({})).await;
    let suspend = |suspended: bool| {
        let spec = json!({"suspend": suspended});
        json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "mine"}, "spec": spec})
    };
    cluster.merge(&suspend(true)).await;
    let is_suspended = |plugin: &Value| condition(plugin, "Ready").is_some_and(|ready| ready["reason"] == "Suspended");
    let mine = plugin("mine", json!({}));
    cluster.expect_that(&mine, "is not suspended", is_suspended).await;
    cluster.apply(&config_map("mine", &renewed(mock.clone()))).await;
    cluster.apply(&item("a", "Succeeded")).await;
    let counted = |plugin: &Value| plugin["status"]["items"] == 1;
    let kept = cluster.expect_that(&mine, "does not count its item", counted).await;
    assert_eq!(kept["status"]["digest"], sha256(&mock));
    cluster.merge(&suspend(false)).await;
    in_use(&cluster, "mine", &renewed(mock)).await;
}
