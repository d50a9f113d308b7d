//! The operator is killed after each of its writes: what is there in the end is the same, and nothing is made twice.

use serde_json::{Value, json};

use crate::{
    objects::{
        SCRIPTED, both, data, data_import, data_object, exporting, input, installation, item, of_items, sub, with,
    },
    world::{World, is_deleting, job_ended},
};

/// An item of the component that writes a config map of its name.
fn writing_item(name: &str, after: &[&str]) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"k": "v"}});
    let stage = json!({"name": "all", "gate": "accepted", "writes": [{"object": object, "how": "replace"}]});
    let proposal = json!({"stages": [stage], "next": {"finish": {}}});
    let config = json!({"apiVersion": "example.org/v1", "kind": "Script", "proposals": [proposal]});
    item(name, after, &json!({"type": SCRIPTED, "target": {"name": "cluster"}, "config": config}))
}

/// A root of this name with four items and a sub-installation with one, which imports `size` and exports it under its own name. Two
/// of the items are made when a gate expression lets them start, both at once.
fn tree(name: &str) -> Value {
    let of = |suffix: &str| format!("{name}-{suffix}");
    let late = |suffix: &str| {
        let mut item = writing_item(&of(suffix), &[&of("two")]);
        item["when"] = json!("imports.size > 5");
        item
    };
    // Their objects are called in another order than the spec has them in.
    let items = [
        writing_item(&of("one"), &[]),
        writing_item(&of("two"), &[&of("one")]),
        late("late-second"),
        late("late-first"),
    ];
    let leaf = sub("sub", &of_items(&[writing_item(&of("leaf"), &[])]), &json!({}));
    let blueprint = both(
        &both(&of_items(&items), &exporting("out", &input("/imports/size"))),
        &json!({"imports": [data_import("size")], "subinstallations": [leaf]}),
    );
    let exports = json!({"data": [{"name": "out", "dataRef": name}]});
    with(installation(name, &blueprint), &json!({"imports": data(&["size"]), "exports": exports}))
}

/// What a tree is in the end, without its name: statuses of all its objects, what they deployed, and what it exports.
async fn end_state(world: &World, name: &str) -> Value {
    let plain = |value: &Value| -> Value {
        serde_json::from_str(&value.to_string().replace(name, "NAME").replace("\"transitionTimes\":[", "\"times\":["))
            .unwrap()
    };
    let mut objects = Vec::new();
    for kind in ["Installation", "Execution", "DeployItem"] {
        for object in world.list(kind).await {
            let mut status = world.whole(&object).await;
            // Of a wait that the crash came into only the job's times tell.
            status["transitionTimes"] = Value::Null;
            for key in ["jobID", "jobIDFinished"] {
                status[key] = json!("JOB");
            }
            objects.push(plain(&json!([kind, status])));
        }
    }
    objects.sort_by_key(ToString::to_string);
    let maps = world.list("ConfigMap").await;
    let maps: Vec<Value> = maps
        .iter()
        .filter(|map| map["metadata"]["name"] != "kube-root-ca.crt")
        .map(|map| map["data"].clone())
        .collect();
    let exported = world.find("DataObject", name).await.map(|object| object["data"].clone());
    json!({"objects": objects, "maps": maps, "exported": exported})
}

async fn with_cluster() -> World {
    let world = World::new().await;
    let spec =
        json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": world.kubeconfig()}});
    world.apply(&crate::objects::object("Target", "cluster", &spec)).await;
    world.apply(&data_object("size", &json!(7))).await;
    world
}

/// Waits until the root is as wanted, or the controllers are cut off; `false` then.
async fn undisturbed(world: &World, name: &str, wanted: impl Fn(Option<&Value>) -> bool) -> bool {
    let seen = async || {
        let root = world.find("Installation", name).await;
        if wanted(root.as_ref()) { Some(true) } else { world.is_cut().then_some(false) }
    };
    world.wait("neither the end nor the cut", seen).await
}

fn has_succeeded(root: Option<&Value>) -> bool {
    root.is_some_and(|root| root["status"]["phase"] == "Succeeded" && job_ended(root))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_06_ins_08_c_31_wf_54_killed_after_any_write_of_a_job_a_tree_ends_as_if_it_had_not_been() {
    let mut world = with_cluster().await;
    let mut expected = None;
    for writes in 0.. {
        // The first run is not disturbed.
        let name = format!("tree-{writes}");
        world.cut_after(if writes == 0 { usize::MAX } else { writes - 1 });
        world.apply(&tree(&name)).await;
        let is_through = undisturbed(&world, &name, has_succeeded).await;
        if !is_through {
            world.restart();
            world.expect("Installation", &name, |root| has_succeeded(Some(root))).await;
        }
        let state = end_state(&world, &name).await;
        assert_eq!(
            state,
            *expected.get_or_insert_with(|| state.clone()),
            "killed after write {}",
            writes.saturating_sub(1)
        );
        world.cut_after(usize::MAX);
        world.delete("Installation", &name).await;
        world.gone("Installation", &name).await;
        if is_through && writes > 0 {
            assert!(writes > 20, "a job has only {writes} writes");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_06_ins_67_exe_48_killed_after_any_write_of_a_deletion_nothing_is_left() {
    let mut world = with_cluster().await;
    for writes in 0.. {
        let name = format!("tree-{writes}");
        world.apply(&tree(&name)).await;
        world.expect("Installation", &name, |root| has_succeeded(Some(root))).await;
        world.cut_after(writes);
        world.delete("Installation", &name).await;
        let is_through = undisturbed(&world, &name, |root| root.is_none()).await;
        if !is_through {
            world.restart();
            world.gone("Installation", &name).await;
        }
        // What it exported is left to the garbage collector of the cluster.
        world.gone("DataObject", &name).await;
        let state = end_state(&world, &name).await;
        assert_eq!(state, json!({"objects": [], "maps": [], "exported": null}), "killed after write {writes}");
        world.cut_after(usize::MAX);
        if is_through {
            assert!(writes > 10, "a deletion has only {writes} writes");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_49_orc_13_killed_in_the_deletion_of_a_tree_whose_order_was_under_way_keeps_it() {
    let mut world = with_cluster().await;
    world.apply(&tree("tree")).await;
    world.expect("Installation", "tree", |root| has_succeeded(Some(root))).await;
    let hold = json!({"metadata": {"finalizers": ["example.org/hold"]}});
    world.patch("ConfigMap", "tree-two", &hold).await;
    world.delete("Installation", "tree").await;
    world.says("Execution", "tree", "to be gone").await;
    world.restart();
    world.item("tree-two", |item| is_deleting(item) && !job_ended(item)).await;
    let first = world.find_item("tree-one").await.unwrap();
    assert!(job_ended(&first), "what it depends on is not triggered: {first:#}");
    world.patch("ConfigMap", "tree-two", &json!({"metadata": {"finalizers": null}})).await;
    world.gone("Installation", "tree").await;
}
