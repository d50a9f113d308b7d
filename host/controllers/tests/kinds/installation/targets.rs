//! Targets as imports and exports: one, lists and maps, down to sub-installations.

use serde_json::{Value, json};

use crate::{
    objects::{ENGINE, both, data, data_export, exporting, input, installation, object, sub, with},
    world::{World, message},
};

const CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";

async fn apply_target(world: &World, name: &str) {
    let spec = json!({"type": CLUSTER, "config": {"kubeconfig": format!("of {name}")}});
    world.apply(&object("Target", name, &spec)).await;
}

/// An import of this type called `t`.
fn import(kind: &str) -> Value {
    json!({"name": "t", "type": kind, "targetType": CLUSTER})
}

/// A root that imports `t` from this source and exports what a template sees at `pointer`.
fn root(kind: &str, source: &Value, pointer: &str) -> Value {
    let mut from = source.clone();
    from["name"] = json!("t");
    let blueprint = both(&exporting("out", &input(pointer)), &json!({"imports": [import(kind)]}));
    with(installation("a", &blueprint), &json!({"imports": {"targets": [from]}, "exports": data(&["out"])}))
}

async fn exported(world: &World, name: &str) -> Value {
    world.find("DataObject", name).await.map(|object| object["data"].clone()).unwrap_or_default()
}

/// The kept copies of imports in the context of `a`: key, and place in a list or map.
async fn copies(world: &World) -> Vec<[String; 3]> {
    let label = |target: &Value, key: &str| {
        let label = &target["metadata"]["labels"][format!("data.landscaper.gardener.cloud/{key}")];
        label.as_str().unwrap_or_default().to_owned()
    };
    let all = world.list("Target").await;
    let kept = all.iter().filter(|target| label(target, "context") == "Inst.a");
    let mut copies: Vec<[String; 3]> =
        kept.map(|target| ["key", "index", "targetmapkey"].map(|key| label(target, key))).collect();
    copies.sort();
    copies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_a_target_is_imported_with_its_spec_and_kept() {
    let world = World::new().await;
    apply_target(&world, "one").await;
    world.apply(&root("target", &json!({"target": "one"}), "/imports/t/spec/config/kubeconfig")).await;
    world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(exported(&world, "out").await, "of one");
    assert_eq!(copies(&world).await, [["t", "", ""].map(str::to_owned)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_a_list_of_targets_keeps_its_order() {
    let world = World::new().await;
    for name in ["one", "two"] {
        apply_target(&world, name).await;
    }
    let pointer = "/imports/t/0/spec/config/kubeconfig";
    world.apply(&root("targetList", &json!({"targets": ["two", "one"]}), pointer)).await;
    world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(exported(&world, "out").await, "of two");
    assert_eq!(copies(&world).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_a_map_of_targets_is_imported_by_its_keys() {
    let world = World::new().await;
    for name in ["one", "two"] {
        apply_target(&world, name).await;
    }
    let pointer = "/imports/t/blue/spec/config/kubeconfig";
    world.apply(&root("targetMap", &json!({"targetMap": {"red": "one", "blue": "two"}}), pointer)).await;
    world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(exported(&world, "out").await, "of two");
    assert_eq!(copies(&world).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_a_target_of_another_type_fails_the_job() {
    let world = World::new().await;
    world.apply(&object("Target", "one", &json!({"type": "example.org/other", "config": {}}))).await;
    world.apply(&root("target", &json!({"target": "one"}), "/imports/t")).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).contains("example.org/other"), "{failed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_a_sub_installation_imports_the_target_list_of_its_parent() {
    let world = World::new().await;
    for name in ["one", "two"] {
        apply_target(&world, name).await;
    }
    let pointer = "/imports/t/1/spec/config/kubeconfig";
    let leaf = both(&exporting("out", &input(pointer)), &json!({"imports": [import("targetList")]}));
    let fields = json!({
        "imports": {"targets": [{"name": "t", "targetListRef": "t"}]},
        "exports": data(&["out"]),
    });
    let template = json!({"exports": {"out": input("/values/dataobjects/out")}}).to_string();
    let blueprint = json!({
        "imports": [import("targetList")],
        "subinstallations": [sub("leaf", &leaf, &fields)],
        "exports": [data_export("out")],
        "exportExecutions": [{"name": "exports", "type": ENGINE, "template": template}],
    });
    let imports = json!({"targets": [{"name": "t", "targets": ["one", "two"]}]});
    world.apply(&with(installation("a", &blueprint), &json!({"imports": imports, "exports": data(&["out"])}))).await;
    world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(exported(&world, "out").await, "of two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_42_a_target_that_is_exported_can_be_imported_by_another_root() {
    let world = World::new().await;
    let made = json!({"type": CLUSTER, "config": {"kubeconfig": "made"}});
    let template = json!({"exports": {"made": made}}).to_string();
    let blueprint = json!({
        "exports": [{"name": "made", "type": "target", "targetType": CLUSTER}],
        "exportExecutions": [{"name": "exports", "type": ENGINE, "template": template}],
    });
    let exports = json!({"exports": {"targets": [{"name": "made", "target": "made"}]}});
    world.apply(&with(installation("maker", &blueprint), &exports)).await;
    world.ended("Installation", "maker", "Succeeded").await;
    world.apply(&root("target", &json!({"target": "made"}), "/imports/t/spec/config/kubeconfig")).await;
    world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(exported(&world, "out").await, "made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_38_a_template_gets_credentials_of_imported_targets_only() {
    let world = World::new().await;
    apply_target(&world, "one").await;
    apply_target(&world, "two").await;
    let asks = |target: &str| {
        let arguments = json!({"name": "robot", "namespace": "apps", "target": {"metadata": {"name": target}}});
        let template = json!({"$credential": {"kind": "shootAdmin", "arguments": arguments}, "deployItems": []});
        let blueprint = json!({"imports": [import("target")],
            "deployExecutions": [{"name": "d", "type": ENGINE, "template": template.to_string()}]});
        with(installation("a", &blueprint), &json!({"imports": {"targets": [{"name": "t", "target": "one"}]}}))
    };
    world.apply(&asks("two")).await;
    let refused = world.ended("Installation", "a", "Failed").await;
    let refused = message(&refused);
    let expected = "a template of Installation a asks for a credential of Target default/two, which the installation does not \
                    import; import it";
    assert!(refused.contains(expected), "{refused}");
    // The kubeconfig of the one that is imported is no kubeconfig, which is as far as it has to come.
    world.apply(&asks("one")).await;
    let asked = |installation: &Value| {
        installation["status"]["lastError"]["message"].to_string().contains("kubeconfig of the target")
    };
    world.expect("Installation", "a", asked).await;
}
