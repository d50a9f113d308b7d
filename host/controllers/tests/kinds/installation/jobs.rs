//! Jobs of Installations: triggers, imports and exports, sub-installations, and what fails them.

use serde_json::{Value, json};

use crate::{
    objects::{
        ENGINE, both, data, data_export, data_import, data_object, deploying, exporting, input, installation, object,
        of_items, sub, with,
    },
    world::{World, is_deleting, job_ended, message, name_of},
};

/// A root `root` with an item `r` and a sub-installation `sub` with an item `s`.
fn family() -> Value {
    let subs = json!({"subinstallations": [sub("sub", &deploying(&[("s", &[])]), &json!({}))]});
    installation("root", &both(&deploying(&[("r", &[])]), &subs))
}

/// A root with an item of its name, which imports these keys and exports its own name.
fn link(name: &str, imports: &[&str]) -> Value {
    let definitions: Vec<Value> = imports.iter().map(|import| data_import(import)).collect();
    let exports = exporting("out", &json!({"of": name, "imports": input("/imports")}));
    let blueprint = both(&both(&deploying(&[(name, &[])]), &exports), &json!({"imports": definitions}));
    let exports = json!({"data": [{"name": "out", "dataRef": name}]});
    with(installation(name, &blueprint), &json!({"imports": data(imports), "exports": exports}))
}

fn without_request(mut installation: Value) -> Value {
    installation["metadata"]["annotations"] = json!({});
    installation
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a Value {
    &object["metadata"]["annotations"][format!("landscaper.gardener.cloud/{key}")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_01_ins_06_ins_08_one_job_goes_down_the_tree_and_ends_at_the_root() {
    let world = World::new().await;
    world.apply(&family()).await;
    world.succeed("r").await;
    let job = world.triggered("s").await["status"]["jobID"].clone();
    let root = world.find("Installation", "root").await.unwrap();
    assert_eq!((&root["status"]["jobID"], job_ended(&root)), (&job, false), "ins_08: the root ends last");
    world.succeed("s").await;
    let root = world.ended("Installation", "root", "Succeeded").await;
    assert_eq!(annotation(&root, "operation"), &Value::Null, "ins_14");
    let sub = world.find_sub("sub").await.unwrap();
    let execution = world.find("Execution", &name_of(&sub)).await.unwrap();
    for object in [&root, &sub, &execution] {
        assert_eq!((&object["status"]["jobID"], &object["status"]["jobIDFinished"]), (&job, &job), "{object:#}");
    }
    let cached = &root["status"]["subInstCache"]["activeSubs"];
    assert_eq!(cached, &json!([{"specName": "sub", "objectName": name_of(&sub)}]));
    assert_eq!(root["status"]["executionRef"]["name"], "root");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_216_a_job_that_was_lost_on_its_way_down_is_handed_down_once_more() {
    let mut world = World::new().await;
    world.apply(&family()).await;
    world.succeed("r").await;
    world.succeed("s").await;
    let before = world.ended("Installation", "root", "Succeeded").await;
    // Nothing more passes after the write by which the root begins to wait.
    world.delay_write("/installations/root/status");
    world.apply(&family()).await;
    world.held().await;
    world.delay_next_write("/installations/root/status");
    world.held().await;
    world.cut_after(0);
    world.let_pass();
    let root = world.expect("Installation", "root", |root| root["status"]["phase"] == "Progressing").await;
    let (job, execution) = (&root["status"]["jobID"], world.find("Execution", "root").await.unwrap());
    assert!(*job != before["status"]["jobID"] && *job != execution["status"]["jobID"], "{execution:#}");
    world.restart();
    world.succeed("r").await;
    world.succeed("s").await;
    let root = world.ended_after("Installation", "root", "Succeeded", &before).await;
    let (sub, execution) = (world.find_sub("sub").await.unwrap(), world.find("Execution", "root").await.unwrap());
    assert!([&root, &sub, &execution].iter().all(|of| of["status"]["jobIDFinished"] == *job), "{sub:#}{execution:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_11_c_05_without_a_request_nothing_starts_and_the_conditions_say_so() {
    let world = World::new().await;
    world.apply(&without_request(link("a", &[]))).await;
    let silent = world.says("Installation", "a", "AwaitingTrigger").await;
    assert_eq!((&silent["status"]["jobID"], &silent["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_09_ins_15_ins_54_a_request_during_a_job_waits_for_its_end() {
    let world = World::new().await;
    world.apply(&link("a", &[])).await;
    let first = world.triggered("a").await;
    // A request before the job rests for the first time has it begin again.
    world.expect("Installation", "a", |a| a["status"]["phase"] == "Progressing").await;
    world.request("a").await;
    let noted = world.expect("Installation", "a", |a| a["status"]["pendingOperation"] == "reconcile").await;
    assert_eq!(noted["status"]["jobID"], first["status"]["jobID"]);
    world.succeed("a").await;
    let second = world.item("a", |item| !job_ended(item) && item["status"]["jobID"] != first["status"]["jobID"]).await;
    assert!(second["status"]["jobID"].is_string());
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(done["status"]["jobID"], second["status"]["jobID"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_17_ins_18_a_request_of_a_child_has_no_effect_and_is_removed() {
    let world = World::new().await;
    world.apply(&family()).await;
    world.succeed("r").await;
    world.succeed("s").await;
    let root = world.ended("Installation", "root", "Succeeded").await;
    let sub = name_of(&world.find_sub("sub").await.unwrap());
    world.request(&sub).await;
    let after = world.expect("Installation", &sub, |sub| *annotation(sub, "operation") == Value::Null).await;
    assert_eq!(after["status"]["jobID"], root["status"]["jobID"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_19_ins_51_a_blueprint_that_cannot_be_read_fails_the_job_and_names_the_file() {
    let world = World::new().await;
    let mut broken = link("a", &[]);
    broken["spec"]["blueprint"] = json!({"inline": {"filesystem": {"blueprint.yaml": "imports: {"}}});
    world.apply(&broken).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).contains("blueprint.yaml"), "{failed:#}");
    assert_eq!(world.list("Execution").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_24_a_template_that_fails_names_its_execution_and_makes_nothing() {
    let world = World::new().await;
    let template = json!({"$fail": "the port is taken"}).to_string();
    let blueprint = json!({"deployExecutions": [{"name": "web", "type": ENGINE, "template": template}]});
    world.apply(&installation("a", &blueprint)).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).contains("web") && message(&failed).contains("the port is taken"), "{failed:#}");
    assert_eq!(world.list("Execution").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_20_to_23_imports_are_read_and_kept_in_the_context_of_the_installation() {
    let world = World::new().await;
    world.apply(&data_object("size", &json!({"gb": 7}))).await;
    world.apply(&link("a", &["size"])).await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    assert!(done["status"]["importsHash"].as_str().is_some_and(|hash| !hash.is_empty()), "{done:#}");
    let copies: Vec<Value> = world.list("DataObject").await;
    let copy = copies.iter().find(|copy| {
        copy["metadata"]["labels"]["data.landscaper.gardener.cloud/context"] == "Inst.a"
            && copy["metadata"]["labels"]["data.landscaper.gardener.cloud/key"] == "size"
    });
    assert_eq!(copy.unwrap()["data"], json!({"gb": 7}));
    let exported = world.find("DataObject", "a").await.unwrap();
    assert_eq!(exported["data"], json!({"of": "a", "imports": {"size": {"gb": 7}}}));
    assert_eq!(exported["metadata"]["labels"]["data.landscaper.gardener.cloud/sourceType"], "export");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_secrets_and_config_maps_are_imported_by_key() {
    let world = World::new().await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "{count: 1}"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "x", "b": "2"}});
    world.apply(&secret).await;
    world.apply(&map).await;
    let blueprint =
        both(&exporting("out", &input("/imports")), &json!({"imports": [data_import("one"), data_import("all")]}));
    let imports = json!({"data": [
        {"name": "one", "secretRef": {"name": "s", "key": "k"}},
        {"name": "all", "configMapRef": {"name": "m"}},
    ]});
    let exports = json!({"data": [{"name": "out", "dataRef": "out"}]});
    world.apply(&with(installation("a", &blueprint), &json!({"imports": imports, "exports": exports}))).await;
    world.ended("Installation", "a", "Succeeded").await;
    let exported = world.find("DataObject", "out").await.unwrap();
    assert_eq!(exported["data"], json!({"one": {"count": 1}, "all": {"a": "x", "b": 2}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_22_ins_51_a_missing_import_fails_the_job_and_is_named() {
    let world = World::new().await;
    world.apply(&link("a", &["size"])).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).contains("size"), "{failed:#}");
    assert_eq!(failed["status"]["lastError"]["reason"], "ImportNotFound");
    world.apply(&data_object("size", &json!(1))).await;
    world.request("a").await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_10_under_the_import_policy_wait_one_job_waits_for_each_import() {
    let world = World::new().await;
    world.apply(&with(link("a", &["size", "color"]), &json!({"importPolicy": "Wait"}))).await;
    let waiting = world.says("Installation", "a", "waiting for DataObject size to exist").await;
    assert_eq!(waiting["status"]["phase"], "Init");
    world.apply(&data_object("size", &json!(1))).await;
    world.says("Installation", "a", "waiting for DataObject color to exist").await;
    world.apply(&data_object("color", &json!("red"))).await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(done["status"]["jobID"], waiting["status"]["jobID"], "one job");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_21_ins_43_ins_44_a_root_waits_for_its_predecessors_and_is_asked_when_they_succeed_again() {
    let world = World::new().await;
    world.apply(&link("a", &[])).await;
    world.triggered("a").await;
    world.apply(&link("b", &["a"])).await;
    world.says("Installation", "b", "waiting for Installation a to finish").await;
    world.succeed("a").await;
    world.succeed("b").await;
    let first = world.ended("Installation", "b", "Succeeded").await;
    world.request("a").await;
    world.succeed("a").await;
    world.succeed("b").await;
    world.ended_after("Installation", "b", "Succeeded", &first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_21_a_predecessor_that_has_not_succeeded_fails_the_job() {
    let world = World::new().await;
    world.apply(&without_request(link("a", &[]))).await;
    world.apply(&link("b", &["a"])).await;
    let failed = world.ended("Installation", "b", "Failed").await;
    let expected = "an installation whose exports are imported here has not succeeded: \
                    installation a was never reconciled; reconcile it first";
    assert_eq!(message(&failed), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_33_to_35_ins_45_siblings_run_one_after_the_other_and_exports_go_up() {
    let world = World::new().await;
    let producer = both(&deploying(&[("p", &[])]), &exporting("out", &json!("v")));
    let consumer = both(
        &both(&deploying(&[("c", &[])]), &exporting("seen", &input("/imports/in"))),
        &json!({"imports": [data_import("in")]}),
    );
    let subs = json!([
        sub(
            "consumer",
            &consumer,
            &json!({
                "imports": {"data": [{"name": "in", "dataRef": "v"}]}, "exports": data(&["seen"]),
            })
        ),
        sub("producer", &producer, &json!({"exports": {"data": [{"name": "out", "dataRef": "v"}]}})),
    ]);
    let template = json!({"exports": {"seen": input("/values/dataobjects/seen")}}).to_string();
    let blueprint = json!({
        "subinstallations": subs,
        "exports": [data_export("seen")],
        "exportExecutions": [{"name": "exports", "type": ENGINE, "template": template}],
    });
    world.apply(&with(installation("root", &blueprint), &json!({"exports": data(&["seen"])}))).await;
    world.triggered("p").await;
    let producer = world.sub("producer", |_| true).await;
    let consumer = world.sub("consumer", |_| true).await;
    world.says("Installation", &consumer, &format!("waiting for Installation {producer} to finish")).await;
    assert_eq!(world.find_item("c").await, None, "it has not rendered yet");
    world.succeed("p").await;
    world.succeed("c").await;
    world.ended("Installation", "root", "Succeeded").await;
    assert_eq!(world.find("DataObject", "seen").await.unwrap()["data"], "v");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_26_ins_28_ins_31_exe_09_orphans_are_deleted_before_the_rest_begins() {
    let world = World::new().await;
    let root = |subs: &[&str]| {
        let subs: Vec<Value> = subs
            .iter()
            .map(|name| sub(name, &deploying(&[(format!("{name}-item").as_str(), &[])]), &json!({})))
            .collect();
        installation("root", &both(&deploying(&[("r-item", &[])]), &json!({"subinstallations": subs})))
    };
    world.apply(&root(&["x", "y"])).await;
    world.succeed("r-item").await;
    world.succeed("x-item").await;
    world.succeed("y-item").await;
    let first = world.ended("Installation", "root", "Succeeded").await;
    world.apply(&root(&["y", "z"])).await;
    let orphan = world.item("x-item", is_deleting).await;
    let cleaning = world.expect("Installation", "root", |root| root["status"]["phase"] == "CleanupOrphaned").await;
    let marked = world.find_sub("x").await.unwrap();
    assert_eq!(*annotation(&marked, "delete-ignore-successors"), "true");
    assert_eq!(world.find_item("z-item").await, None, "{orphan:#}");
    let execution = world.find("Execution", "root").await.unwrap();
    assert_ne!(execution["status"]["jobID"], cleaning["status"]["jobID"], "it has no job yet: {execution:#}");
    for item in ["x-item", "y-item", "z-item", "r-item"] {
        world.succeed(item).await;
    }
    world.ended_after("Installation", "root", "Succeeded", &first).await;
    assert_eq!(world.find_sub("x").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_29_an_orphan_that_cannot_be_deleted_fails_the_job() {
    let world = World::new().await;
    let subs = json!({"subinstallations": [sub("x", &deploying(&[("x-item", &[])]), &json!({}))]});
    world.apply(&installation("root", &subs)).await;
    world.succeed("x-item").await;
    world.ended("Installation", "root", "Succeeded").await;
    world.apply(&installation("root", &json!({}))).await;
    world.item("x-item", is_deleting).await;
    world.fail("x-item", "in use").await;
    let failed = world.ended("Installation", "root", "Failed").await;
    assert!(message(&failed).ends_with("deploy item x-item failed: in use"), "{failed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_36_ins_39_ins_55_a_spec_that_changes_during_a_job_fails_it() {
    let world = World::new().await;
    world.apply(&link("a", &[])).await;
    world.triggered("a").await;
    world.says("Installation", "a", "to finish").await;
    world.patch("Installation", "a", &json!({"spec": {"maxParallel": 7}})).await;
    world.succeed("a").await;
    let failed = world.ended("Installation", "a", "Failed").await;
    let expected =
        "its spec changed while the job was running; reconcile the root installation to take the change into account";
    assert_eq!(message(&failed), expected);
    world.request("a").await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(done["status"]["observedGeneration"], done["metadata"]["generation"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_306_a_suspended_root_ends_its_job_keeps_requests_and_begins_the_next_one_when_it_is_resumed() {
    let world = World::new().await;
    let suspend = async |value: Value| {
        world.patch("Installation", "a", &json!({"metadata": {"annotations": {"orangery.dev/suspend": value}}})).await;
    };
    world.apply(&link("a", &[])).await;
    let first = world.triggered("a").await;
    suspend(json!("true")).await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    assert_eq!(done["status"]["jobID"], first["status"]["jobID"], "the running job ends as it would");
    world.request("a").await;
    let held = world.says("Installation", "a", "no job begins until it is resumed: orangery resume a -n ").await;
    assert_eq!(held["status"]["jobID"], done["status"]["jobID"]);
    suspend(Value::Null).await;
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &done).await;
    let gone = |a: &Value| !a["status"]["conditions"].to_string().contains("Suspended");
    world.expect("Installation", "a", gone).await;
    suspend(json!("true")).await;
    world.says("Installation", "a", "no job begins until it is resumed").await;
    // A deletion is not held up.
    world.delete("Installation", "a").await;
    world.succeed("a").await;
    world.gone("Installation", "a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_36_ins_38_an_import_that_changes_during_a_job_fails_it() {
    let world = World::new().await;
    world.apply(&data_object("size", &json!(1))).await;
    world.apply(&link("a", &["size"])).await;
    world.triggered("a").await;
    world.apply(&data_object("size", &json!(2))).await;
    world.succeed("a").await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).starts_with("an import changed while the job was running"), "{failed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_52_ins_53_c_05_a_changed_spec_waits_for_a_request_unless_the_policy_asks_for_a_job() {
    let world = World::new().await;
    world.apply(&link("a", &[])).await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    world.patch("Installation", "a", &json!({"spec": {"maxParallel": 7}})).await;
    let waiting = world.says("Installation", "a", "AwaitingTrigger").await;
    assert_eq!(waiting["status"]["jobID"], done["status"]["jobID"]);
    world.patch("Installation", "a", &json!({"spec": {"reconcilePolicy": "OnSpecChange"}})).await;
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &done).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_05_orc_33_under_on_change_another_content_of_an_import_starts_a_job() {
    let world = World::new().await;
    world.apply(&data_object("size", &json!(1))).await;
    let root = with(without_request(link("a", &["size"])), &json!({"reconcilePolicy": "OnChange"}));
    world.apply(&root).await;
    world.succeed("a").await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    world.apply(&data_object("size", &json!(2))).await;
    world.succeed("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    let exported = world.find("DataObject", "a").await.unwrap();
    assert_eq!(exported["data"], json!({"of": "a", "imports": {"size": 2}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_13_c_30_the_root_fails_with_the_cause_of_the_leaf_or_the_name_of_the_lost_child() {
    let world = World::new().await;
    world.apply(&family()).await;
    world.fail("s", "the disk is full").await;
    let sub = world.sub("sub", |sub| sub["status"]["phase"] == "Failed").await;
    let root = world.find("Installation", "root").await.unwrap();
    assert_eq!(root["status"]["phase"], "Progressing", "it waits for its Execution");
    world.succeed("r").await;
    let failed = world.ended("Installation", "root", "Failed").await;
    let leaf = "deploy item s failed: the disk is full";
    assert_eq!(message(&failed), format!("installation {sub} failed: execution {sub} failed: {leaf}"));

    world.request("root").await;
    world.triggered("s").await;
    world.delete_by_force("Installation", &sub).await;
    world.succeed("r").await;
    let lost = world.ended_after("Installation", "root", "Failed", &failed).await;
    assert!(message(&lost).contains(&format!("installation {sub} is missing: ")), "{lost:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_17_roots_that_import_each_other_fail_with_their_names() {
    // Also where one imports what it exports itself.
    for imports in [&["b"][..], &["a", "b"]] {
        let world = World::new().await;
        world.apply(&without_request(link("b", &["a"]))).await;
        world.apply(&link("a", imports)).await;
        let failed = world.ended("Installation", "a", "Failed").await;
        let expected = "installations a -> b -> a depend on each other in a circle; remove one of these dependencies";
        assert_eq!(message(&failed), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_27_a_failure_is_tried_again_at_once_and_after_the_interval_as_often_as_the_spec_says() {
    let mut world = World::new().await;
    let again = json!({"automaticReconcile": {"failedReconcile": {"numberOfReconciles": 2, "interval": "5m"}}});
    world.apply(&with(link("a", &[]), &again)).await;
    world.fail("a", "the disk is full").await;
    let first = world.find_item("a").await.unwrap();
    world.item("a", |item| !job_ended(item) && item["status"]["jobID"] != first["status"]["jobID"]).await;
    world.fail("a", "the disk is full").await;
    let waiting = world.says("Installation", "a", "RetryScheduled").await;
    assert_eq!(waiting["status"]["automaticReconcileStatus"]["numberOfReconciles"], 1, "{waiting:#}");
    // Timers do not hear of the jump; controllers that begin look at the clock.
    world.jump(300);
    world.restart();
    world.item("a", |item| !job_ended(item)).await;
    world.fail("a", "the disk is full").await;
    let failed = world.ended_after("Installation", "a", "Failed", &waiting).await;
    let record = &failed["status"]["automaticReconcileStatus"];
    assert_eq!((&record["numberOfReconciles"], &record["onFailed"]), (&json!(2), &json!(true)), "{failed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_32_ins_70_to_76_an_interrupt_ends_the_job_of_the_tree() {
    let world = World::new().await;
    world.apply(&family()).await;
    world.succeed("r").await;
    world.triggered("s").await;
    world.annotate("Installation", "root", "operation", "interrupt").await;
    let failed = world.ended("Installation", "root", "Failed").await;
    assert!(message(&failed).contains("interrupt"), "{failed:#}");
    assert_eq!(*annotation(&failed, "operation"), Value::Null);
    let item = world.find_item("s").await.unwrap();
    assert_eq!((&item["status"]["phase"], job_ended(&item)), (&json!("Failed"), true));
    world.request("root").await;
    world.succeed("r").await;
    world.succeed("s").await;
    world.ended_after("Installation", "root", "Succeeded", &failed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_32_an_interrupt_ends_a_job_that_has_made_nothing() {
    let world = World::new().await;
    world.apply(&with(link("a", &["size"]), &json!({"importPolicy": "Wait"}))).await;
    world.says("Installation", "a", "waiting for DataObject size to exist").await;
    world.annotate("Installation", "a", "operation", "interrupt").await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert_eq!(failed["status"]["lastError"]["reason"], "InterruptOperation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_a_template_is_kept_from_job_to_job() {
    let world = World::new().await;
    let template = json!({"deployItems": [], "$state": {"seen": input("/state/next"), "next": "again"}}).to_string();
    let blueprint = json!({"deployExecutions": [{"name": "counts", "type": ENGINE, "template": template}]});
    world.apply(&installation("a", &blueprint)).await;
    let first = world.ended("Installation", "a", "Succeeded").await;
    let states = async || {
        let secrets = world.list("Secret").await;
        let owned = |secret: &&Value| secret["metadata"]["ownerReferences"][0]["name"] == "a";
        secrets.iter().filter(owned).map(|secret| secret["data"].to_string()).collect::<Vec<_>>()
    };
    let before = states().await;
    assert_eq!(before.len(), 1, "{before:?}");
    world.request("a").await;
    world.ended_after("Installation", "a", "Succeeded", &first).await;
    let after = states().await;
    assert_eq!(after.len(), 1, "{after:?}");
    assert_ne!(before, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_that_does_not_exist_fails_the_job_and_is_named() {
    let world = World::new().await;
    world.apply(&with(link("a", &[]), &json!({"context": "none"}))).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    let expected = "Context default/none does not exist; create it or correct spec.context, then reconcile again";
    assert_eq!(message(&failed), expected);
    world.apply(&object("Context", "none", &json!({}))).await;
    world.request("a").await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_06_a_tree_goes_on_after_a_restart() {
    let mut world = World::new().await;
    world.apply(&family()).await;
    world.succeed("r").await;
    let job = world.triggered("s").await["status"]["jobID"].clone();
    world.restart();
    world.succeed("s").await;
    let root = world.ended("Installation", "root", "Succeeded").await;
    assert_eq!(root["status"]["jobID"], job);
    assert_eq!(world.list("Installation").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_without_a_type_fails_before_anything_is_made() {
    let world = World::new().await;
    world.apply(&installation("a", &of_items(&[json!({"name": "x"})]))).await;
    let failed = world.ended("Installation", "a", "Failed").await;
    assert!(message(&failed).contains("type"), "{failed:#}");
    assert_eq!(world.list("DeployItem").await, Vec::<Value>::new());
}
