//! Gate expressions of deploy items and of sub-installations, over imports, exports and live objects.

use orangery_reconcile::Key;
use serde_json::{Value, json};

use crate::{
    objects::{
        SCRIPTED, data, data_export, data_import, data_object, deploying, exporting, installation, item, object,
        of_items, sub, with,
    },
    world::{World, is_deleting, job_ended, message},
};

/// A root `tree` of these items, which imports the data `wanted` and the Target `cluster`.
async fn apply_items(world: &World, items: &[Value]) {
    apply(world, of_items(items)).await;
}

async fn apply(world: &World, mut blueprint: Value) {
    let target =
        json!({"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"});
    blueprint["imports"] = json!([data_import("wanted"), target]);
    let mut imports = data(&["wanted"]);
    imports["targets"] = json!([{"name": "cluster", "target": "cluster"}]);
    let spec =
        json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": world.kubeconfig()}});
    world.apply(&object("Target", "cluster", &spec)).await;
    world.apply(&with(installation("tree", &blueprint), &json!({"imports": imports}))).await;
}

async fn want(world: &World, wanted: bool) {
    world.apply(&data_object("wanted", &json!(wanted))).await;
}

/// An item on the imported Target, with these gate expressions.
fn gated(name: &str, after: &[&str], gates: &Value) -> Value {
    let mut item = item(name, after, &json!({"target": {"import": "cluster"}}));
    orangery_proposal::overlay::overlay(&mut item, gates);
    item
}

/// A gate expression over the ConfigMap `metric`.
fn over_metric(expression: &str) -> Value {
    let metric = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "metric"});
    json!({"expression": expression, "objects": {"metric": metric}})
}

async fn set_metric(world: &World, level: &str) {
    let metadata = json!({"name": "metric", "namespace": "default"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"level": level}});
    world.apply(&map).await;
}

/// The results of the gate expressions of an item: field, status and reason.
fn results(execution: &Value, name: &str) -> Vec<[String; 3]> {
    let items = execution["status"]["items"].as_array().into_iter().flatten();
    let conditions = items.filter(|item| item["name"] == name).flat_map(|item| item["conditions"].as_array()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions.map(|one| [text(&one["type"]), text(&one["status"]), text(&one["reason"])]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_02_wf_20_to_22_an_unwanted_item_is_deleted_after_its_dependents_and_made_again() {
    let world = World::new().await;
    want(&world, true).await;
    let items = [
        item("base", &[], &json!({})),
        gated("db", &["base"], &json!({"when": "imports.wanted"})),
        item("app", &["db"], &json!({})),
    ];
    apply_items(&world, &items).await;
    for name in ["base", "db", "app"] {
        world.succeed(name).await;
    }
    let first = world.ended("Installation", "tree", "Succeeded").await;
    want(&world, false).await;
    world.request("tree").await;
    world.item("app", is_deleting).await;
    assert!(!is_deleting(&world.find_item("db").await.unwrap()), "its dependent goes first");
    for name in ["app", "db", "base"] {
        world.succeed(name).await;
    }
    let second = world.ended_after("Installation", "tree", "Succeeded", &first).await;
    let left = world.list("DeployItem").await;
    assert_eq!(left.len(), 1, "{left:#?}");
    let execution = world.find("Execution", "tree").await.unwrap();
    assert_eq!(results(&execution, "db"), [["when", "False", "ExpressionDoesNotHold"].map(str::to_owned)]);
    want(&world, true).await;
    world.request("tree").await;
    for name in ["base", "db", "app"] {
        world.succeed(name).await;
    }
    world.ended_after("Installation", "tree", "Succeeded", &second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_18_a_gate_expression_reads_what_its_predecessor_exports() {
    let world = World::new().await;
    want(&world, true).await;
    let items = [
        item("db", &[], &json!({})),
        item("large", &["db"], &json!({"when": "items.db.exports.size > 10"})),
        item("small", &["db"], &json!({"when": "items.db.exports.size <= 10"})),
    ];
    apply_items(&world, &items).await;
    world.export("db", &json!({"size": 12})).await;
    world.succeed("db").await;
    world.succeed("large").await;
    world.ended("Installation", "tree", "Succeeded").await;
    assert_eq!(world.find_item("small").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_03_wf_19_dependents_wait_until_an_item_is_ready() {
    let world = World::new().await;
    want(&world, true).await;
    set_metric(&world, "high").await;
    let ready = json!({"readyWhen": over_metric("objects.metric.data.level == 'low'")});
    apply_items(&world, &[gated("canary", &[], &ready), item("rest", &["canary"], &json!({}))]).await;
    world.succeed("canary").await;
    world.says("Execution", "tree", "waiting for GateExpression canary/readyWhen to be met").await;
    let rest = world.find_item("rest").await.unwrap();
    assert_eq!(rest["status"]["jobID"], Value::Null);
    set_metric(&world, "low").await;
    world.succeed("rest").await;
    world.ended("Installation", "tree", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_03_a_gate_that_is_not_met_in_time_fails_its_item() {
    let world = World::new().await;
    want(&world, true).await;
    let ready = json!({"readyWhen": over_metric("objects.metric != null"), "timeout": "1s"});
    apply_items(&world, &[gated("db", &[], &ready)]).await;
    world.succeed("db").await;
    let failed = world.ended("Installation", "tree", "Failed").await;
    assert!(
        message(&failed).contains("readyWhen of deploy item db was not met within its timeout of 1s"),
        "{failed:#}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_04_wf_28_what_an_item_depends_on_stays_until_its_gate_says_that_it_is_gone() {
    let world = World::new().await;
    want(&world, true).await;
    set_metric(&world, "used").await;
    let gone = json!({"deletedWhen": over_metric("objects.metric == null")});
    apply_items(&world, &[item("base", &[], &json!({})), gated("data", &["base"], &gone)]).await;
    world.succeed("base").await;
    world.succeed("data").await;
    world.ended("Installation", "tree", "Succeeded").await;
    world.delete("Installation", "tree").await;
    world.item("data", is_deleting).await;
    world.succeed("data").await;
    world.says("Execution", "tree", "waiting for GateExpression data/deletedWhen to be met").await;
    assert!(job_ended(&world.find_item("base").await.unwrap()), "nothing asks base to go");
    world.delete("ConfigMap", "metric").await;
    world.succeed("base").await;
    world.gone("Installation", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_gate_expressions_do_not_use_what_was_kept_of_a_target_that_its_user_deleted() {
    let world = World::new().await;
    want(&world, true).await;
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    let stage = json!({"name": "s", "gate": "accepted", "writes": [{"object": manifest, "how": "replace"}]});
    let config = json!({"apiVersion": "example.org/v1", "kind": "Script",
        "proposals": [{"stages": [stage], "next": {"finish": {}}}]});
    let deployed = gated("deployed", &[], &json!({"type": SCRIPTED, "config": config}));
    let asked = gated("asked", &[], &json!({"deletedWhen": over_metric("objects.metric == null")}));
    apply_items(&world, &[deployed, asked]).await;
    world.succeed("asked").await;
    world.ended("Installation", "tree", "Succeeded").await;
    world.delete("Target", "cluster").await;
    let (targets, key) = (world.host.as_ref().unwrap().stores.targets.clone(), Key::new("default", "cluster"));
    world.wait("the Target is known", async || targets.get(&key).is_none().then_some(())).await;
    world.delete("Installation", "tree").await;
    world.succeed("asked").await;
    world.ended("Installation", "tree", "DeleteFailed").await;
    let execution = world.find("Execution", "tree").await.unwrap();
    assert_eq!(results(&execution, "asked"), [["deletedWhen", "Unknown", "NoTargetFound"].map(str::to_owned)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_expression_that_names_an_unknown_item_is_refused_before_anything_is_made() {
    let world = World::new().await;
    want(&world, true).await;
    apply_items(&world, &[item("db", &[], &json!({})), item("app", &[], &json!({"when": "items.db.exports.x == 1"}))])
        .await;
    let failed = world.ended("Installation", "tree", "Failed").await;
    assert!(message(&failed).contains("there is no db in items"), "{failed:#}");
    assert_eq!(world.list("DeployItem").await, Vec::<Value>::new());
}

/// A tree whose item `db` has succeeded, and whose job waits for a gate without an end.
async fn waiting_for_a_gate() -> World {
    let world = World::new().await;
    want(&world, true).await;
    let ready = json!({"readyWhen": over_metric("objects.metric != null"), "timeout": "none"});
    apply_items(&world, &[gated("db", &[], &ready)]).await;
    world.succeed("db").await;
    world.says("Execution", "tree", "waiting for GateExpression db/readyWhen to be met").await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_a_job_that_waits_for_a_gate() {
    let world = waiting_for_a_gate().await;
    world.annotate("Installation", "tree", "operation", "interrupt").await;
    let failed = world.ended("Installation", "tree", "Failed").await;
    assert!(message(&failed).contains("interrupt"), "{failed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_57_a_deletion_ends_a_job_that_waits_for_a_gate_and_for_nothing_that_works() {
    let world = waiting_for_a_gate().await;
    world.delete("Installation", "tree").await;
    world.item("db", |item| is_deleting(item) && !job_ended(item)).await;
    world.succeed("db").await;
    world.gone("Installation", "tree").await;
}

/// A sub-installation with one item of its name, which exports its name and imports what these export.
fn gated_sub(name: &str, after: &[&str], gates: &Value) -> Value {
    let mut blueprint = deploying(&[(name, &[])]);
    orangery_proposal::overlay::overlay(&mut blueprint, &exporting(name, &json!(name)));
    let imports: Vec<Value> = after.iter().map(|import| data_import(import)).collect();
    orangery_proposal::overlay::overlay(&mut blueprint, &json!({"imports": imports, "exports": [data_export(name)]}));
    let mut template = sub(name, &blueprint, &json!({"imports": data(after), "exports": data(&[name])}));
    orangery_proposal::overlay::overlay(&mut template, gates);
    template
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_02_wf_20_to_22_an_unwanted_subinstallation_is_deleted_after_its_importers() {
    let world = World::new().await;
    want(&world, true).await;
    let subs = json!([
        gated_sub("base", &[], &json!({})),
        gated_sub("db", &["base"], &json!({"when": "imports.wanted"})),
        gated_sub("app", &["db"], &json!({})),
    ]);
    apply(&world, json!({"subinstallations": subs})).await;
    for name in ["base", "db", "app"] {
        world.succeed(name).await;
    }
    let first = world.ended("Installation", "tree", "Succeeded").await;
    want(&world, false).await;
    world.request("tree").await;
    world.item("app", is_deleting).await;
    assert!(!is_deleting(&world.find_sub("db").await.unwrap()), "its importer goes first");
    for name in ["app", "db", "base"] {
        world.succeed(name).await;
    }
    world.ended_after("Installation", "tree", "Succeeded", &first).await;
    assert_eq!((world.find_sub("db").await, world.find_sub("app").await), (None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_02_wf_18_c_21_a_gate_of_a_subinstallation_reads_what_its_siblings_exported() {
    let world = World::new().await;
    want(&world, true).await;
    let reads = |value: &str| json!({"when": format!("items.db.exports.db == '{value}'")});
    let subs = json!([
        gated_sub("db", &[], &json!({})),
        gated_sub("app", &["db"], &reads("db")),
        gated_sub("web", &["db"], &reads("other")),
    ]);
    apply(&world, json!({"subinstallations": subs})).await;
    world.triggered("db").await;
    assert_eq!(world.find_sub("app").await, None, "it is made when it starts");
    world.succeed("db").await;
    world.succeed("app").await;
    world.ended("Installation", "tree", "Succeeded").await;
    assert_eq!(world.find_sub("web").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_01_wf_44_failed_subinstallations_are_reported_with_those_that_were_not_started() {
    let world = World::new().await;
    want(&world, true).await;
    let when = json!({"when": "imports.wanted && items.db.exports.db == 'db'"});
    let subs = json!([
        gated_sub("db", &[], &json!({})),
        gated_sub("app", &["db"], &when),
        gated_sub("other", &[], &json!({}))
    ]);
    apply(&world, json!({"subinstallations": subs, "failurePolicy": "ContinueIndependent"})).await;
    world.succeed("other").await;
    world.fail("db", "no disk").await;
    let failed = world.ended("Installation", "tree", "Failed").await;
    assert!(message(&failed).starts_with("sub-installation db failed: "), "{failed:#}");
    assert!(message(&failed).ends_with("; not started for that reason: app"), "{failed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_122_a_target_that_gate_expressions_are_about_to_look_at_is_not_let_go() {
    let world = World::guarded().await;
    want(&world, true).await;
    set_metric(&world, "1").await;
    let mut when = over_metric("objects.metric != null");
    when["objects"]["metric"]["target"] = json!({"import": "cluster"});
    let subs = json!([gated_sub("plain", &[], &json!({})), gated_sub("db", &[], &json!({"when": when}))]);
    // The first look at the job has guarded the Target, and makes its sub-installations.
    world.delay_write("/installations");
    apply(&world, json!({"subinstallations": subs})).await;
    world.held().await;
    world.delete("Target", "cluster").await;
    let held = "Warning InUse: is deleted as soon as nothing uses it: Installation tree; orangery why target/cluster names what does";
    world.has_events("Target", "cluster", &[held]).await;
    world.let_pass();
    for name in ["plain", "db"] {
        world.succeed(name).await;
    }
    world.ended("Installation", "tree", "Succeeded").await;
    assert!(is_deleting(&world.find("Target", "cluster").await.unwrap()));
    world.delete("Installation", "tree").await;
    for name in ["plain", "db"] {
        world.succeed(name).await;
    }
    world.gone("Installation", "tree").await;
    world.gone("Target", "cluster").await;
}

/// What was looked at is known from the objects alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_54_controllers_that_know_nothing_end_a_workflow_as_those_would_that_began_it() {
    let mut ended = Vec::new();
    for restarts in [false, true] {
        let mut world = World::new().await;
        want(&world, true).await;
        let items = [
            item("base", &[], &json!({})),
            gated("db", &["base"], &json!({"when": "imports.wanted"})),
            gated("never", &["base"], &json!({"when": "!imports.wanted"})),
            item("app", &["db"], &json!({})),
        ];
        apply_items(&world, &items).await;
        for name in ["base", "db", "app"] {
            world.triggered(name).await;
            if restarts {
                world.restart();
            }
            world.succeed(name).await;
        }
        world.ended("Installation", "tree", "Succeeded").await;
        let mut names = Vec::new();
        for item in world.list("DeployItem").await {
            names.push(item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"].clone());
        }
        names.sort_by_key(Value::to_string);
        assert_eq!(names, ["app", "base", "db"]);
        ended.push([world.status("Installation", "tree").await, world.status("Execution", "tree").await]);
    }
    assert_eq!(ended[0], ended[1]);
}
