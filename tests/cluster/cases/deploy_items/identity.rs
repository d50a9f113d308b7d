//! What an object is to its item from job to job: its cluster, its version, its place, what the server filled in, and that it is to
//! be kept (C-35, C-36).

use orangery_tests::{
    cluster::{Cluster, own_target},
    objects::{NAMESPACE, Objects},
    tree::{
        API, any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
    },
};
use serde_json::{Value, json};

/// An Installation `root` of this item on the Target `cluster`.
fn deploying(item: Value) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
    on_cluster(installation("root", &blueprint(fields)))
}

/// An item that deploys these objects.
fn writes(objects: &[Value]) -> Value {
    let mut item = deploys("item", &[], "1");
    let manifests = objects.iter().map(|object| json!({"policy": "manage", "manifest": object}));
    item["config"]["manifests"] = manifests.collect();
    item
}

fn config_map(name: &str, content: &str) -> Value {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": content}})
}

/// Waits for the end of a job that is not this one, which has to be well.
async fn ends_another_job(cluster: &Objects, job: &Value) {
    let is_done = |object: &Value| {
        let status = &object["status"];
        object["metadata"]["name"] == "root" && status["jobID"] != *job && status["jobIDFinished"] == status["jobID"]
    };
    let done = cluster.expect_that(&any("Installation", "root"), "did not end another job", is_done).await;
    assert_eq!(done["status"]["phase"], "Succeeded", "{done:#}");
}

/// Applies the Installation, which asks for a job by that, and waits for the good end of the job.
async fn run(cluster: &Objects, root: &Value) {
    let before = cluster.list(&any("Installation", "root")).await;
    let job = before.first().map(|root| root["status"]["jobID"].clone()).unwrap_or_default();
    cluster.apply(root).await;
    ends_another_job(cluster, &job).await;
}

async fn delete(cluster: &Objects) {
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// The names of the ConfigMaps that begin so.
async fn names(cluster: &Objects, begin: &str) -> Vec<String> {
    let all = cluster.list(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    let names = all.iter().filter_map(|object| object["metadata"]["name"].as_str());
    names.filter(|name| name.starts_with(begin)).map(str::to_owned).collect()
}

/// A cluster beside the one under test.
async fn beside() -> Cluster {
    Cluster::start(&crate::binary().await, &["--ephemeral"]).await
}

#[tokio::test]
async fn c_35_where_a_target_names_another_cluster_what_bears_the_same_names_there_stays() {
    let (here, there) = (crate::cluster().await, beside().await);
    there.apply(&config_map("map-y", "of somebody else")).await;
    run(&here, &deploying(writes(&[config_map("map-x", "1"), config_map("map-y", "1")]))).await;
    here.apply(&own_target(there.kubeconfig())).await;
    run(&here, &deploying(writes(&[config_map("map-x", "2")]))).await;
    there.expect(&config_map("map-x", "2")).await;
    there.expect(&config_map("map-y", "of somebody else")).await;
    // The former cluster answers, and is tidied with what it was reached by.
    for name in ["map-x", "map-y"] {
        here.expect_absent(&config_map(name, "1")).await;
    }
    delete(&here).await;
    assert_eq!((names(&here, "map-").await, names(&there, "map-").await), (Vec::new(), vec!["map-y".to_owned()]));
}

#[tokio::test]
async fn c_35_a_target_that_is_led_elsewhere_in_mid_job_has_the_job_end_there() {
    let (here, there) = (crate::cluster().await, beside().await);
    here.apply(&deploying(becomes_ready("slow", &[]))).await;
    here.expect(&config_map("slow", "1")).await;
    there.apply(&config_map("theirs", "of somebody else")).await;
    here.apply(&own_target(there.kubeconfig())).await;
    there.expect(&config_map("slow", "1")).await;
    there
        .merge(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": {"ready": "yes"}}),
        )
        .await;
    // The item has succeeded; that an import changed meanwhile is told at the root.
    here.expect(&in_phase("Installation", "root", "Failed")).await;
    let items = here.list(&any("DeployItem", "")).await;
    assert_eq!(items.iter().map(|item| &item["status"]["phase"]).collect::<Vec<_>>(), ["Succeeded"]);
    here.expect_absent(&config_map("slow", "1")).await;
    delete(&here).await;
    there.expect(&config_map("theirs", "of somebody else")).await;
    there.expect_absent(&config_map("slow", "1")).await;
}

/// A definition of a kind with two versions, the first of which is served or not.
fn definition(serves_first: bool) -> Value {
    let version = |name: &str, served: bool, storage: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        json!({"name": name, "served": served, "storage": storage, "schema": schema})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.identity.example.org"},
        "spec": {"group": "identity.example.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [version("v1", serves_first, false), version("v2", true, true)]}})
}

#[tokio::test]
async fn c_35_an_object_whose_version_is_not_served_any_more_is_deleted_in_one_that_is() {
    let cluster = crate::cluster().await;
    let thing = |version: &str| {
        let metadata = json!({"name": "thing", "namespace": NAMESPACE});
        json!({"apiVersion": format!("identity.example.org/{version}"), "kind": "Thing", "metadata": metadata})
    };
    cluster.apply(&definition(true)).await;
    let is_established = |definition: &Value| {
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    cluster.expect_that(&definition(true), "is not established", is_established).await;
    run(&cluster, &deploying(writes(&[thing("v1")]))).await;
    cluster.expect(&thing("v2")).await;
    cluster.apply(&definition(false)).await;
    delete(&cluster).await;
    cluster.expect_absent(&thing("v2")).await;
}

#[tokio::test]
async fn c_36_what_somebody_has_told_to_keep_stays_in_every_spelling() {
    let cluster = crate::cluster().await;
    let all = ["map-a", "map-b", "map-c", "map-d"].map(|name| config_map(name, "1"));
    run(&cluster, &deploying(writes(&all))).await;
    let keeps = async |name: &str, policy: &str| {
        cluster.annotate(&config_map(name, "1"), json!({"helm.sh/resource-policy": policy})).await;
    };
    for (name, policy) in [("map-a", "keep"), ("map-b", " Keep "), ("map-c", "KEEP"), ("map-d", "keeper")] {
        keeps(name, policy).await;
    }
    run(&cluster, &deploying(writes(&[config_map("map-e", "1")]))).await;
    assert_eq!(names(&cluster, "map-").await, ["map-a", "map-b", "map-c", "map-e"], "pruned");
    keeps("map-e", "keep").await;
    delete(&cluster).await;
    assert_eq!(names(&cluster, "map-").await, ["map-a", "map-b", "map-c", "map-e"], "deleted");
}

#[tokio::test]
async fn c_35_an_object_of_no_namespace_may_name_one() {
    let cluster = crate::cluster().await;
    let role = |namespace: Option<&str>| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "of-no-namespace", "namespace": namespace},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
    };
    run(&cluster, &deploying(writes(&[role(Some(NAMESPACE))]))).await;
    let first = cluster.expect(&role(None)).await;
    assert_eq!(first["metadata"].get("namespace"), None);
    run(&cluster, &deploying(writes(&[role(None)]))).await;
    let second = cluster.expect(&role(None)).await;
    assert_eq!(second["metadata"]["uid"], first["metadata"]["uid"], "it is the same object");
    delete(&cluster).await;
    cluster.expect_absent(&role(None)).await;
}

/// A class that claims get which name none, as most clusters have one.
fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.org/none",
        "metadata": {"name": "usual", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    })
}

#[tokio::test]
async fn a_claim_that_names_no_class_is_written_by_a_second_job() {
    let cluster = crate::cluster().await;
    cluster.apply(&class()).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let root = deploying(writes(&[claim]));
    run(&cluster, &root).await;
    let written = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"}});
    let first = cluster.expect(&written).await;
    run(&cluster, &root).await;
    let second = cluster.expect(&written).await;
    assert_eq!(second["spec"], first["spec"]);
    cluster.delete(&any("Installation", "root")).await;
    // Nobody takes the finalizer that protects it but a controller that does not run here.
    let held = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim", "namespace": NAMESPACE, "finalizers": null}});
    let is_going = |claim: &Value| !claim["metadata"]["deletionTimestamp"].is_null();
    if second["metadata"]["finalizers"].is_array() {
        cluster.expect_that(&written, "is not deleted", is_going).await;
        cluster.merge_where_there(&held).await;
    }
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// `patchBeforeDelete` with a value that counts for nothing in Go: it is written all the same.
#[tokio::test]
async fn a_patch_before_a_deletion_may_set_what_is_empty() {
    let cluster = crate::cluster().await;
    let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "suspended", "namespace": NAMESPACE, "finalizers": ["example.org/held"]},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": template},
    });
    let mut item = writes(&[job]);
    item["config"]["manifests"][0]["patchBeforeDelete"] = json!({"spec": {"suspend": false}});
    run(&cluster, &deploying(item)).await;
    let known = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "suspended"}});
    assert_eq!(cluster.expect(&known).await["spec"]["suspend"], true);
    cluster.delete(&any("Installation", "root")).await;
    let is_going = |job: &Value| !job["metadata"]["deletionTimestamp"].is_null();
    let going = cluster.expect_that(&known, "is not deleted", is_going).await;
    assert_eq!(going["spec"]["suspend"], false, "{going:#}");
    let freed =
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "suspended", "finalizers": null}});
    cluster.merge_where_there(&freed).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    assert_eq!(cluster.list(&json!({"apiVersion": API, "kind": "DeployItem"})).await, Vec::<Value>::new());
}
