//! What wakes an Installation, and what it guards: the rows of the table of dependencies that no other test speaks of.

use serde_json::{Value, json};

use crate::{
    objects::{
        both, data, data_import, data_object, deploying, exporting, installation, item, object, of_items, sub, with,
    },
    world::{World, is_deleting, job_ended},
};

const CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";
const GUARD: &str = "orangery.dev/in-use";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_orc_25_orc_29_each_kind_of_import_lets_the_job_go_on_that_waits_for_it() {
    let world = World::new().await;
    let plain = |kind: &str, field: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "late"}, (field): {"k": "1"}});
    let by_data = |reference: Value| {
        let mut import = reference;
        import["name"] = json!("v");
        (data_import("v"), json!({"data": [import]}))
    };
    let target = json!({"name": "v", "type": "target", "targetType": CLUSTER});
    let targets = json!({"targets": [{"name": "v", "target": "late"}]});
    let cases = [
        ("DataObject", by_data(json!({"dataRef": "late"})), data_object("late", &json!(1))),
        ("Target", (target, targets), object("Target", "late", &json!({"type": CLUSTER, "config": {}}))),
        ("Secret", by_data(json!({"secretRef": {"name": "late", "key": "k"}})), plain("Secret", "stringData")),
        ("ConfigMap", by_data(json!({"configMapRef": {"name": "late", "key": "k"}})), plain("ConfigMap", "data")),
    ];
    for (kind, (import, imports), late) in cases {
        let name = format!("waits-for-{}", kind.to_lowercase());
        let blueprint = json!({"imports": [import]});
        let spec = json!({"imports": imports, "importPolicy": "Wait"});
        world.apply(&with(installation(&name, &blueprint), &spec)).await;
        let waiting = world.says("Installation", &name, &format!("waiting for {kind} late to exist")).await;
        world.apply(&late).await;
        let done = world.ended("Installation", &name, "Succeeded").await;
        assert_eq!(done["status"]["jobID"], waiting["status"]["jobID"], "{kind}");
    }
}

/// A gate expression over the ConfigMap `metric`, which exists in the cluster of the Target `cluster`.
fn over_metric(expression: &str) -> Value {
    let metric = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "metric"});
    json!({"expression": expression, "objects": {"metric": metric}})
}

async fn set_metric(world: &World, level: &str) {
    let metadata = json!({"name": "metric", "namespace": "default"});
    world
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"level": level}}))
        .await;
}

/// A root that imports the Target `cluster`, as its blueprint is; `spec` is laid over it.
async fn apply_on_cluster(world: &World, blueprint: &Value, spec: &Value) {
    let cluster = json!({"type": CLUSTER, "config": {"kubeconfig": world.kubeconfig()}});
    world.apply(&object("Target", "cluster", &cluster)).await;
    let import = json!({"imports": [{"name": "cluster", "type": "target", "targetType": CLUSTER}]});
    let imports = json!({"imports": {"targets": [{"name": "cluster", "target": "cluster"}]}});
    world.apply(&with(with(installation("tree", &both(blueprint, &import)), &imports), spec)).await;
}

/// A blueprint with an item `i` that looks at the cluster.
fn looking(gate: &Value) -> Value {
    let mut looking = item("i", &[], &json!({"target": {"import": "cluster"}}));
    orangery_proposal::overlay::overlay(&mut looking, gate);
    of_items(&[looking])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_26_orc_33_c_05_an_answer_that_turns_starts_a_job_as_long_as_the_root_follows_changes() {
    let world = World::new().await;
    set_metric(&world, "low").await;
    let when = json!({"when": over_metric("objects.metric.data.level == 'high'")});
    apply_on_cluster(&world, &looking(&when), &json!({})).await;
    let manual = world.ended("Installation", "tree", "Succeeded").await;
    assert_eq!(world.find_item("i").await, None);

    // Taken up: the tree is asked anew, and what has turned since starts a job.
    world.patch("Installation", "tree", &json!({"spec": {"reconcilePolicy": "OnChange"}})).await;
    let followed = world.ended_after("Installation", "tree", "Succeeded", &manual).await;
    set_metric(&world, "high").await;
    world.succeed("i").await;
    let turned = world.ended_after("Installation", "tree", "Succeeded", &followed).await;

    // Given up: nothing is watched any more. A job of another root shows that nothing more is to come.
    world.patch("Installation", "tree", &json!({"spec": {"reconcilePolicy": "Manual"}})).await;
    world.says("Installation", "tree", "AwaitingTrigger").await;
    set_metric(&world, "low").await;
    world.apply(&installation("other", &deploying(&[("o", &[])]))).await;
    world.succeed("o").await;
    world.ended("Installation", "other", "Succeeded").await;
    let after = world.find("Installation", "tree").await.unwrap();
    assert_eq!(after["status"]["jobID"], turned["status"]["jobID"]);
    assert!(!is_deleting(&world.find_item("i").await.unwrap()));
}

/// Of an object, whether it is guarded.
async fn is_guarded(world: &World, kind: &str, name: &str) -> bool {
    let object = world.find(kind, name).await.unwrap();
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.contains(&json!(GUARD)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_36_orc_39_orc_41_a_target_that_gates_look_at_is_guarded_and_its_copies_are_not() {
    let ready = json!({"readyWhen": over_metric("objects.metric != null")});
    let of_sub = {
        let leaf = both(&deploying(&[("i", &[])]), &exporting("out", &json!("v")));
        let mut gated = over_metric("objects.metric != null");
        gated["objects"]["metric"]["target"] = json!({"import": "cluster"});
        sub("sub", &leaf, &json!({"readyWhen": gated}))
    };
    let blueprints = [looking(&ready), json!({"subinstallations": [of_sub]})];
    for (number, blueprint) in blueprints.iter().enumerate() {
        let world = World::guarded().await;
        set_metric(&world, "any").await;
        apply_on_cluster(&world, blueprint, &json!({})).await;
        world.succeed("i").await;
        world.ended("Installation", "tree", "Succeeded").await;
        assert!(is_guarded(&world, "Target", "cluster").await, "{number}");
        let copies = world.list("Target").await;
        let copies = copies
            .iter()
            .filter(|copy| copy["metadata"]["labels"]["data.landscaper.gardener.cloud/sourceType"] == "import");
        assert!(
            copies.clone().count() > 0 && copies.into_iter().all(|copy| copy["metadata"].get("finalizers").is_none())
        );
        world.delete("Target", "cluster").await;
        assert!(is_deleting(&world.find("Target", "cluster").await.unwrap()), "{number}: it is held");
        world.delete("Installation", "tree").await;
        world.item("i", |item| is_deleting(item) && !job_ended(item)).await;
        world.succeed("i").await;
        world.gone("Installation", "tree").await;
        world.gone("Target", "cluster").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_ins_38_wire_5_1_objects_of_earlier_jobs_go_and_copies_that_others_deleted_come_back() {
    let world = World::new().await;
    for name in ["size", "color"] {
        world.apply(&data_object(name, &json!(name))).await;
    }
    let root = |keys: &[&str], exports: &Value| {
        let definitions: Vec<Value> = keys.iter().map(|key| data_import(key)).collect();
        let blueprint = both(&exporting("out", &json!("v")), &json!({"imports": definitions}));
        with(installation("a", &blueprint), &json!({"imports": data(keys), "exports": exports}))
    };
    let contents = async || {
        let objects = world.list("DataObject").await;
        let label = |object: &Value, key: &str| {
            let label = &object["metadata"]["labels"][format!("data.landscaper.gardener.cloud/{key}")];
            label.as_str().unwrap_or("by hand").to_owned()
        };
        let mut contents: Vec<String> = objects
            .iter()
            .map(|object| format!("{} {}: {}", label(object, "sourceType"), label(object, "key"), object["data"]))
            .collect();
        contents.sort();
        contents
    };
    let by_hand = ["by hand by hand: \"color\"", "by hand by hand: \"size\""];
    world.apply(&root(&["size", "color"], &json!({"data": [{"name": "out", "dataRef": "first"}]}))).await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    let expected = ["export first: \"v\"", "import color: \"color\"", "import size: \"size\""];
    assert_eq!(contents().await, [&by_hand[..], &expected[..]].concat());

    for object in world.list("DataObject").await {
        if object["metadata"]["labels"]["data.landscaper.gardener.cloud/key"] == "size" {
            world.delete("DataObject", object["metadata"]["name"].as_str().unwrap()).await;
        }
    }
    world.apply(&root(&["size"], &json!({"data": [{"name": "out", "dataRef": "second"}]}))).await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    let expected = ["export second: \"v\"", "import size: \"size\""];
    assert_eq!(contents().await, [&by_hand[..], &expected[..]].concat());
    world.delete("Installation", "a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_06_ins_28_a_blueprint_that_deploys_nothing_any_more_loses_its_execution_before_the_rest_goes_on() {
    let world = World::new().await;
    world.apply(&installation("a", &deploying(&[("i", &[])]))).await;
    world.succeed("i").await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.apply(&installation("a", &json!({}))).await;
    let waiting = world.says("Installation", "a", "waiting for Execution a to be gone").await;
    assert_eq!((&waiting["status"]["phase"], waiting["status"].get("executionRef")), (&json!("CleanupOrphaned"), None));
    world.succeed("i").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    assert_eq!((world.list("Execution").await, world.list("DeployItem").await), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_23_a_deletion_with_cascade_orphan_makes_roots_of_the_sub_installations() {
    let world = World::new().await;
    let blueprint = both(
        &deploying(&[("r", &[])]),
        &json!({"subinstallations": [sub("sub", &deploying(&[("s", &[])]), &json!({}))]}),
    );
    world.apply(&installation("root", &blueprint)).await;
    world.succeed("r").await;
    world.succeed("s").await;
    world.ended("Installation", "root", "Succeeded").await;
    let name = world.sub("sub", |_| true).await;
    world.delete_and_free("Installation", "root").await;
    world.succeed("r").await;
    world.gone("Installation", "root").await;
    let freed = world.find("Installation", &name).await.unwrap();
    assert!(!is_deleting(&freed));
    world.request(&name).await;
    world.succeed("s").await;
    world.ended_after("Installation", &name, "Succeeded", &freed).await;
}
