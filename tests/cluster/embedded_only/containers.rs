//! Container items where no container runs: `orangery up`, with workloads that are simulated and without.

use std::{fs, path::Path, sync::Arc};

use orangery_tests::{
    containers::{Pods, STATE_BYTES, configured_in, left_of_items, runs_a_program},
    crash_points::{Cut, Deed, NEVER, ended, few_points},
    objects::{NAMESPACE, Objects},
    proxy::{Fates, Sound},
    tree::{API, any, ask},
    world::World,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A tree with one item that runs a program.
fn tree() -> Value {
    runs_a_program("tree", "10m", &json!({}))
}

/// The label with what a Secret of an item is for.
const TYPE: &str = "container.deployer.landscaper.gardener.cloud/type";

/// An operator with these arguments before a server that runs no pods.
async fn operator(fates: Arc<dyn Fates>, arguments: &[&str]) -> World {
    let mut world = World::on(&crate::ground(), crate::binary().await, fates).await;
    world.start_with(arguments);
    world.ready().await;
    world
}

#[tokio::test]
async fn c_33_a_simulated_pod_ends_its_item_and_leaves_nothing_and_so_does_that_of_its_deletion() {
    let cluster = crate::cluster_with(&["--simulate-workloads"]).await;
    cluster.apply(&tree()).await;
    let item = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
        "status": {"phase": "Succeeded"}});
    let item = cluster.expect(&item).await;
    let status = &item["status"]["providerStatus"];
    assert_eq!((&status["kind"], &status["lastOperation"]), (&json!("ProviderStatus"), &json!("RECONCILE")));
    assert_eq!(status["podStatus"]["lastSuccessfulJobID"], item["status"]["jobID"], "{status:#}");
    assert_eq!(status["podStatus"]["containerStatus"]["exitCode"], json!(0), "{status:#}");
    assert_eq!(item["status"].get("exportRef"), None);
    assert_eq!(left_of_items(&cluster, NAMESPACE).await, Vec::<String>::new());
    let pod_of = |operation: &Value| operation["providerStatus"]["podStatus"]["podName"].clone();
    let first = pod_of(&item["status"]);
    cluster.delete(&any("Installation", "tree")).await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    assert_eq!(left_of_items(&cluster, NAMESPACE).await, Vec::<String>::new());
    // Another run, in a pod of another name, was the last thing that was heard of the item.
    assert!(first.as_str().is_some_and(|name| name.starts_with("tree-task-")), "{first}");
}

#[tokio::test]
async fn c_33_without_simulated_workloads_a_container_item_says_what_it_needs() {
    let cluster = crate::cluster().await;
    cluster.apply(&tree()).await;
    let item = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
        "status": {"phase": "Failed"}});
    let item = cluster.expect(&item).await;
    let message = item["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("containers need a cluster that runs pods"), "{message}");
    assert!(
        message.contains("`orangery up` runs no containers, and plays them with --simulate-workloads"),
        "{message}"
    );
}

/// Plays a run and the run of its deletion; `point` is the write after which the operator is killed. Answers how many writes there
/// were.
async fn play(point: Option<usize>) -> usize {
    let folder = TempDir::new().expect("a temporary folder");
    let argument = configured_in(folder.path());
    let cut = Cut::new();
    let mut world = operator(Arc::clone(&cut) as Arc<dyn Fates>, &[&argument]).await;
    let pods = Pods::begin(world.objects.client()).await;
    let objects = Objects::of(world.objects.kubeconfig().to_owned()).await;
    cut.arm(point.unwrap_or(NEVER));
    let deed = async {
        let apply = Deed::Apply(tree());
        objects.apply(&tree()).await;
        ended(&objects, &apply).await;
        let item = objects.list(&any("DeployItem", "")).await.remove(0);
        let name = &item["status"]["exportRef"]["name"];
        let exports = objects.expect(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})).await;
        let left = left_of_items(&objects, NAMESPACE).await;
        let secrets =
            objects.list(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": NAMESPACE}})).await;
        let stored = secrets.iter().filter(|secret| secret["metadata"]["labels"][TYPE] == "state");
        let stored: Vec<Option<usize>> = stored.map(|secret| Some(secret["data"]["config"].as_str()?.len())).collect();
        objects.delete(&any("Installation", "tree")).await;
        ended(&objects, &Deed::Delete).await;
        (item, exports, left, stored)
    };
    let mut deed = Box::pin(deed);
    let (item, exports, left_then, stored) = if point.is_some() {
        tokio::select! {
            done = &mut deed => done,
            () = cut.is_reached() => {
                world.kill().await;
                cut.arm(NEVER);
                world.start_with(&[&argument]);
                deed.await
            }
        }
    } else {
        deed.await
    };
    let when = format!("killed after write {point:?}: {}", world.log());
    assert_eq!(item["status"]["phase"], "Succeeded", "{when}");
    let expected = data_encoding::BASE64.encode(br#"{"operation":"RECONCILE"}"#);
    assert_eq!(exports["data"]["config"], expected, "{when}");
    let is_state = |name: &String| name.starts_with("Secret state-default-tree-task-");
    assert!(left_then.len() == 1 && left_then.iter().all(is_state), "{left_then:?}; {when}");
    assert_eq!(stored, [Some(STATE_BYTES.div_ceil(3) * 4)], "the state is not as it was stored; {when}");
    assert_eq!(left_of_items(&world.objects, NAMESPACE).await, Vec::<String>::new(), "{when}");
    // Each job has had one pod, and none while there was another one.
    let seen = pods.seen();
    let operations: Vec<&str> = seen.made.iter().map(|(operation, _)| operation.as_str()).collect();
    assert_eq!(operations, ["RECONCILE", "DELETE"], "{when}");
    assert_eq!(seen.made[0].1, item["status"]["jobID"], "{when}");
    assert_eq!(seen.at_once, Vec::<[String; 2]>::new(), "{when}");
    let writes = cut.counted();
    world.end().await;
    writes
}

#[tokio::test]
async fn con_24_a_program_has_one_pod_wherever_the_operator_is_killed() {
    let writes = play(None).await;
    for point in few_points(writes) {
        play(Some(point)).await;
    }
}

/// The item of a tree, once its job has ended in this phase.
async fn item_in(objects: &Objects, tree: &str, phase: &str) -> Value {
    let is_it = |item: &Value| {
        let status = &item["status"];
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with(&format!("{tree}-")) && status["phase"] == phase && status["jobID"] == status["jobIDFinished"]
    };
    objects.expect_that(&any("DeployItem", ""), &format!("has ended {phase}"), is_it).await
}

#[tokio::test]
async fn con_25_what_cannot_be_run_and_what_runs_out_of_time_is_told_and_leaves_no_pod() {
    let folder = TempDir::new().expect("a temporary folder");
    let world = operator(Arc::new(Sound), &[&configured_in(folder.path())]).await;
    let objects = &world.objects;
    let told = |item: &Value| {
        let error = &item["status"]["lastError"];
        (error["codes"].clone(), error["message"].as_str().unwrap_or_default().to_owned())
    };
    objects.apply(&runs_a_program("nameless", "1m", &json!({"registryPullSecrets": [{"namespace": "default"}]}))).await;
    let (codes, message) = told(&item_in(objects, "nameless", "Failed").await);
    assert_eq!(codes, json!(["ERR_CONFIGURATION_PROBLEM"]));
    assert!(message.contains("registryPullSecrets") && message.contains("name"), "{message}");

    // Nobody runs the pod of this one, and then nobody that of its deletion.
    objects.apply(&runs_a_program("late", "2s", &json!({}))).await;
    let (codes, message) = told(&item_in(objects, "late", "Failed").await);
    assert!(codes.to_string().contains("ERR_TIMEOUT"), "{codes}");
    let sentence = "the item did not finish within its timeout of 2s; ";
    assert!(message.contains(sentence) && message.contains("waiting for Pod default/late-task-"), "{message}");
    assert_eq!(left_of_items(objects, NAMESPACE).await, Vec::<String>::new());
    let pods = Pods::begin(objects.client()).await;
    ask(objects, "late").await;
    item_in(objects, "late", "Succeeded").await;
    drop(pods);
    objects.delete(&any("Installation", "late")).await;
    let (codes, message) = told(&item_in(objects, "late", "DeleteFailed").await);
    assert!(codes.to_string().contains("ERR_TIMEOUT"), "{codes}");
    assert!(message.contains(sentence) && message.contains("waiting for Pod default/late-task-"), "{message}");
    // The next job runs it with the state that has stayed.
    let _pods = Pods::begin(objects.client()).await;
    ask(objects, "late").await;
    for tree in ["late", "nameless"] {
        objects.delete(&any("Installation", tree)).await;
        objects.expect_absent(&any("Installation", tree)).await;
    }
    assert_eq!(left_of_items(objects, NAMESPACE).await, Vec::<String>::new());
    world.end().await;
}

/// A repository in a folder, with one component version that refers to these.
fn repository(folder: &Path, name: &str, refers_to: &[&str]) {
    let references =
        refers_to.iter().map(|of| json!({"name": "of-it", "componentName": component(of), "version": "1.0.0"}));
    let descriptor = json!({"meta": {"schemaVersion": "v2"}, "component": {
        "name": component(name), "version": "1.0.0", "provider": "us", "repositoryContexts": [of_folder(name)],
        "sources": [], "resources": [], "componentReferences": references.collect::<Vec<_>>(),
    }});
    fs::create_dir_all(folder.join(name).join("blobs")).expect("a folder");
    fs::write(folder.join(name).join("component-descriptor.yaml"), descriptor.to_string()).expect("a descriptor");
}

fn component(name: &str) -> String {
    format!("example.org/{name}")
}

fn of_folder(name: &str) -> Value {
    json!({"type": "local", "filePath": name})
}

#[tokio::test]
async fn con_28_a_program_gets_descriptors_from_two_repositories() {
    let folder = TempDir::new().expect("a temporary folder");
    repository(folder.path(), "one", &["two"]);
    repository(folder.path(), "two", &[]);
    let argument = configured_in(folder.path());
    let components = folder.path().to_string_lossy().into_owned();
    let world = operator(Arc::new(Sound), &[&argument, "--components", &components]).await;
    let objects = &world.objects;
    let resolvers = json!([{"repository": of_folder("two"), "prefix": component("two")}]);
    let config = json!({"type": "ocm.config.ocm.software", "resolvers": resolvers});
    let metadata = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let of_both = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("both"), "data": {".ocmconfig": config.to_string()},
    });
    objects.apply(&of_both).await;
    let context =
        json!({"apiVersion": API, "kind": "Context", "metadata": metadata("both"), "ocmConfig": {"name": "both"}});
    objects.apply(&context).await;
    let of = json!({"repositoryContext": of_folder("one"), "componentName": component("one"), "version": "1.0.0"});
    let mut tree = runs_a_program("tree", "1m", &json!({"componentDescriptor": {"ref": of}}));
    tree["spec"]["context"] = json!("both");
    objects.apply(&tree).await;
    let secrets = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": NAMESPACE, "labels": {TYPE: "configuration"}}});
    let part = objects.expect(&secrets).await["data"]["part"].as_str().expect("a part").to_owned();
    let part = data_encoding::BASE64.decode(part.as_bytes()).expect("base64");
    let inputs: Value = serde_json::from_slice(&part).expect("one document");
    let descriptors = inputs["componentDescriptors"].as_str().expect("a file");
    let descriptors: Value = serde_json::from_str(descriptors).expect("JSON");
    let names = descriptors["components"].as_array().expect("a list").iter();
    let names: Vec<&Value> = names.map(|descriptor| &descriptor["component"]["name"]).collect();
    assert_eq!(names, [&json!(component("one")), &json!(component("two"))]);
    let _pods = Pods::begin(objects.client()).await;
    item_in(objects, "tree", "Succeeded").await;
    objects.delete(&any("Installation", "tree")).await;
    objects.expect_absent(&any("Installation", "tree")).await;
    assert_eq!(left_of_items(objects, NAMESPACE).await, Vec::<String>::new());
    world.end().await;
}
