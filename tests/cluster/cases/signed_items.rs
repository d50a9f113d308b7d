//! Deploy items where signatures are required: a tenant may write every object of its namespace, and every mark on it.

use std::{fs, io::Write};

use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use orangery_tests::{
    cluster::Cluster,
    objects::NAMESPACE,
    repository,
    tree::{API, deploys},
};
use serde_json::{Value, json};

const MARK: &str = "orangery.dev/signed-origin";

/// An installation of a component's blueprint.
pub(crate) fn installation(name: &str, context: &str, component: &str, signature: Option<&str>) -> Value {
    let mut installation = json!({
        "apiVersion": API, "kind": "Installation",
        "metadata": {"name": name, "annotations": {"landscaper.gardener.cloud/operation": "reconcile"}},
        "spec": {
            "context": context,
            "componentDescriptor": {"ref": {"componentName": component, "version": "1.0.0"}},
            "blueprint": {"ref": {"resourceName": "blueprint"}},
        },
    });
    if let Some(signature) = signature {
        installation["spec"]["verification"] = json!({"signatureName": signature});
    }
    installation
}

pub(crate) fn in_phase(name: &str, phase: &str) -> Value {
    json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": name}, "status": {"phase": phase}})
}

/// The policy with a key for what is called `example.org/*`, and signatures that are required.
pub(crate) fn required(key: &str) -> Value {
    let keys = json!([{"components": ["example.org/*"], "publicKey": key}]);
    json!({
        "apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "signed"},
        "spec": {
            "profile": "compatible", "namespaces": {"names": ["*"]},
            "signatures": {"required": true, "trustedKeys": keys},
        },
    })
}

/// A host over the repository in `tests/signed`, which checks no signature but for a policy, and a Context without keys.
async fn start() -> Cluster {
    let components = repository().join("tests/signed").to_string_lossy().into_owned();
    let cluster = crate::cluster_with(&["--components", &components]).await;
    let context = json!({
        "apiVersion": API, "kind": "Context", "metadata": {"name": "keyless"},
        "repositoryContext": {"type": "local", "filePath": "."},
    });
    cluster.apply(&context).await;
    cluster
}

fn key(name: &str) -> String {
    fs::read_to_string(repository().join("tests/signed/blobs").join(name)).expect("a key")
}

/// Applies a policy that requires signatures by this key, and waits until it counts.
async fn require(cluster: &Cluster, key: &str) {
    let policy = required(key);
    let generation = cluster.apply(&policy).await.metadata.generation;
    let is_known = |found: &Value| found["status"]["observedGeneration"].as_i64() == generation;
    cluster.expect_that(&policy, "the policy was not read in time", is_known).await;
}

fn root() -> Value {
    let mut root = installation("items", "keyless", "example.org/items", Some("release"));
    root["spec"]["imports"] = json!({"targets": [{"name": "cluster", "target": "cluster"}]});
    root
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}})
}

/// An item that writes a ConfigMap of its name and asks for a job, with these annotations.
fn bare(name: &str, annotations: &Value) -> Value {
    let mut item = deploys(name, &[], "stolen");
    let config = item["config"].take();
    let mut metadata = json!({"name": name, "namespace": NAMESPACE, "annotations": annotations});
    metadata["annotations"]["landscaper.gardener.cloud/operation"] = json!("test-reconcile");
    let target = json!({"name": "cluster", "namespace": NAMESPACE});
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-manifest", "target": target, "config": config});
    json!({"apiVersion": API, "kind": "DeployItem", "metadata": metadata, "spec": spec})
}

/// A list of items as an Execution has it in `spec.deployItemsCompressed`.
fn gzip(items: &Value) -> String {
    let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
    writer.write_all(items.to_string().as_bytes()).expect("a vector");
    BASE64.encode(&writer.finish().expect("a vector"))
}

/// Waits until the job of an object has ended as refused by a line.
async fn refused(cluster: &Cluster, kind: &str, name: &str, line: &str) {
    let is_refused = |found: &Value| {
        let error = &found["status"]["lastError"];
        found["metadata"]["name"] == name
            && found["status"]["phase"] == "Failed"
            && error["message"].as_str().is_some_and(|message| message.contains(&format!("line {line}")))
    };
    let what = format!("{kind} {name} was not refused by {line}");
    cluster.expect_that(&json!({"apiVersion": API, "kind": kind}), &what, is_refused).await;
}

async fn made_item(cluster: &Cluster) -> Value {
    cluster.list(&json!({"apiVersion": API, "kind": "DeployItem"})).await.pop().expect("an item")
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_75_an_item_counts_as_signed_as_it_was_made_and_nowhere_else() {
    let cluster = start().await;
    require(&cluster, &key("items.pem")).await;
    cluster.apply(&root()).await;
    cluster.expect(&in_phase("items", "Succeeded")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "signed"}})).await;
    let made = made_item(&cluster).await;
    let mark = made["metadata"]["annotations"][MARK].clone();
    let executions = cluster.list(&json!({"apiVersion": API, "kind": "Execution"})).await;
    let execution = executions.first().expect("an Execution");

    // Of their own, with the mark of another one, and with the owner of a signed one: what anybody may write proves nothing.
    cluster.apply(&bare("plain", &json!({}))).await;
    cluster.apply(&bare("marked", &json!({(MARK): mark}))).await;
    let mut owned = bare("owned", &json!({(MARK): execution["metadata"]["annotations"][MARK]}));
    owned["metadata"]["ownerReferences"] = made["metadata"]["ownerReferences"].clone();
    owned["metadata"]["labels"] = made["metadata"]["labels"].clone();
    cluster.apply(&owned).await;
    for name in ["plain", "marked", "owned"] {
        refused(&cluster, "DeployItem", name, "spec.signatures.required").await;
        cluster.expect_absent(&config_map(name)).await;
    }

    // An Execution that nobody rendered, with the mark of the one that was.
    let template = deploys("forged", &[], "stolen");
    let items = json!([{
        "name": "forged", "type": template["type"], "config": template["config"],
        "target": {"name": "cluster", "namespace": NAMESPACE},
    }]);
    let annotations = json!({(MARK): execution["metadata"]["annotations"][MARK]});
    let metadata = json!({"name": "forged", "namespace": NAMESPACE, "annotations": annotations});
    let spec = json!({"context": "keyless", "deployItemsCompressed": gzip(&items)});
    let forged = json!({"apiVersion": API, "kind": "Execution", "metadata": metadata, "spec": spec});
    cluster.apply(&forged).await;
    // An id in the status is all that its Installation would write to ask for a job.
    cluster.patch_status(&forged, json!({"jobID": "forged"})).await;
    refused(&cluster, "Execution", "forged", "spec.signatures.required").await;

    // The item itself, when it is changed.
    let mut changed = json!({
        "apiVersion": API, "kind": "DeployItem",
        "metadata": {"name": made["metadata"]["name"], "annotations": {"landscaper.gardener.cloud/operation": "test-reconcile"}},
    });
    changed["spec"]["config"]["manifests"] = json!([{"policy": "manage", "manifest": config_map("changed")}]);
    cluster.merge(&changed).await;
    refused(&cluster, "DeployItem", made["metadata"]["name"].as_str().expect("a name"), "spec.signatures.required")
        .await;
    for name in ["changed", "forged"] {
        cluster.expect_absent(&config_map(name)).await;
    }

    // A job of the tree makes it anew.
    let asks = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    cluster.annotate(&in_phase("items", ""), asks).await;
    let again = |found: &Value| {
        found["metadata"]["name"] == made["metadata"]["name"] && found["status"]["phase"] == "Succeeded"
    };
    cluster
        .expect_that(&json!({"apiVersion": API, "kind": "DeployItem"}), "the item did not succeed again", again)
        .await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_75_an_item_by_a_key_that_counts_no_more_is_refused() {
    let cluster = start().await;
    require(&cluster, &key("items.pem")).await;
    cluster.apply(&root()).await;
    cluster.expect(&in_phase("items", "Succeeded")).await;
    let made = made_item(&cluster).await;
    let name = made["metadata"]["name"].as_str().expect("a name");
    require(&cluster, &key("public.pem")).await;
    cluster.annotate(&made, json!({"landscaper.gardener.cloud/operation": "test-reconcile"})).await;
    refused(&cluster, "DeployItem", name, "spec.signatures.required").await;
    // What it has deployed goes with it all the same.
    cluster.delete(&made).await;
    cluster.annotate(&made, json!({"landscaper.gardener.cloud/operation": "test-reconcile"})).await;
    cluster.expect_absent(&config_map("signed")).await;
}

/// Takes an object away with whatever holds it, and makes it as it was.
async fn made_anew(cluster: &Cluster, object: &Value) {
    cluster
        .merge(&json!({
            "apiVersion": API, "kind": object["kind"],
            "metadata": {"name": object["metadata"]["name"], "finalizers": null},
        }))
        .await;
    cluster.delete(object).await;
    let mut anew = object.clone();
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers"] {
        anew["metadata"].as_object_mut().expect("metadata").remove(field);
    }
    anew["metadata"]["annotations"]["landscaper.gardener.cloud/operation"] = json!("test-reconcile");
    cluster.apply(&anew).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_69_an_item_of_an_earlier_job_that_is_put_back_is_refused() {
    let cluster = start().await;
    require(&cluster, &key("items.pem")).await;
    cluster.apply(&root()).await;
    cluster.expect(&in_phase("items", "Succeeded")).await;
    let earlier = made_item(&cluster).await;
    let name = earlier["metadata"]["name"].as_str().expect("a name");
    let earlier_execution = cluster.list(&json!({"apiVersion": API, "kind": "Execution"})).await.pop().expect("one");

    // The next job makes it otherwise.
    let context = json!({
        "apiVersion": API, "kind": "Context", "metadata": {"name": "second"},
        "repositoryContext": {"type": "local", "filePath": "."},
    });
    cluster.apply(&context).await;
    let asks = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    cluster.merge(&json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": "items", "annotations": asks}, "spec": {"context": "second"}})).await;
    let is_second = |found: &Value| found["spec"]["context"] == "second" && found["status"]["phase"] == "Succeeded";
    let items = json!({"apiVersion": API, "kind": "DeployItem"});
    cluster.expect_that(&items, "the item did not succeed in its second job", is_second).await;
    cluster.expect(&in_phase("items", "Succeeded")).await;

    // The earlier spec with the mark that was right for it, and a request for a job.
    let put_back = |object: &Value| {
        let mut annotations = object["metadata"]["annotations"].clone();
        annotations["landscaper.gardener.cloud/operation"] = json!("test-reconcile");
        let metadata = json!({"name": object["metadata"]["name"], "annotations": annotations});
        json!({"apiVersion": API, "kind": object["kind"], "metadata": metadata, "spec": object["spec"]})
    };
    cluster.delete(&config_map("signed")).await;
    cluster.merge(&put_back(&earlier)).await;
    refused(&cluster, "DeployItem", name, "spec.signatures.required").await;
    cluster.merge(&put_back(&earlier_execution)).await;
    cluster.patch_status(&earlier_execution, json!({"jobID": "forged"})).await;
    refused(&cluster, "Execution", "items", "spec.signatures.required").await;
    // And of its name, made anew with all that the first one had.
    made_anew(&cluster, &earlier).await;
    refused(&cluster, "DeployItem", name, "spec.signatures.required").await;
    cluster.expect_absent(&config_map("signed")).await;

    // A job of the tree makes it as it should be.
    cluster.annotate(&in_phase("items", ""), asks).await;
    cluster.expect_that(&items, "the item did not succeed again", is_second).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "signed"}})).await;
}
