//! The rules of the installation controller (INS) on a server, with an external deployer that does one step at a time.

use orangery_tests::{
    external_deployer::ExternalDeployer,
    history::{History, Version},
    objects::Objects,
    tree::{API, any, asks, blueprint, in_phase, installation, items, subinstallation, wait_until_idle},
};
use serde_json::{Value, json};

/// A root `root` with an item `r` and a sub-installation `sub` with an item `s`.
fn family() -> Value {
    let sub = blueprint(json!({"deployExecutions": items(&[("s", &[])], "1")}));
    installation(
        "root",
        &blueprint(json!({
            "deployExecutions": items(&[("r", &[])], "1"),
            "subinstallations": [subinstallation("sub", &sub)],
        })),
    )
}

/// Runs a job of [`family`] to its good end.
async fn succeed_family(cluster: &Objects) {
    cluster.apply(&family()).await;
    ExternalDeployer(cluster).succeed("r").await;
    ExternalDeployer(cluster).succeed("s").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

/// An Installation with one item named as itself, which exports `value` under its name and imports these names.
fn link(name: &str, imports: &[&str], value: &str) -> Value {
    let definitions: Vec<Value> =
        imports.iter().map(|import| json!({"name": import, "type": "data", "schema": {"type": "string"}})).collect();
    let answer = json!({"exports": {"out": value}}).to_string();
    let mut link = installation(
        name,
        &blueprint(json!({
            "imports": definitions,
            "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": items(&[(name, &[])], value),
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": answer}],
        })),
    );
    let imports: Vec<Value> = imports.iter().map(|import| json!({"name": import, "dataRef": import})).collect();
    link["spec"]["imports"] = json!({"data": imports});
    link["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": name}]});
    link
}

fn without_request(mut installation: Value) -> Value {
    installation["metadata"]["annotations"] = json!({});
    installation
}

fn job(version: &Version) -> String {
    version.jobs().0.to_owned()
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a Value {
    &object["metadata"]["annotations"][format!("landscaper.gardener.cloud/{key}")]
}

/// The object's version at a time.
fn at<'a>(versions: &'a [Version], of: &Version, revision: u64) -> Option<&'a Version> {
    versions.iter().rev().find(|seen| seen.kind == of.kind && seen.name == of.name && seen.revision <= revision)
}

#[tokio::test]
async fn ins_01_ins_02_ins_03_ins_04_ins_05_ins_06_ins_08_ins_32_one_id_goes_from_the_root_to_every_leaf_and_back_up_as_finished()
 {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&family()).await;
    ExternalDeployer(&cluster).succeed("r").await;
    ExternalDeployer(&cluster).succeed("s").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    let history = history.until_now().await;
    let versions = history.versions();
    let began = versions.iter().find(|version| version.is_running());
    let (root, id) = (began.map(|version| version.name.as_str()), began.map(job).unwrap_or_default());
    assert_eq!((root, id.len(), id.matches('-').count()), (Some("root"), 36, 4), "{:#?}", history.message_of());
    let sub = versions.iter().find(|version| version.kind == "Installation" && version.name == "sub");
    let below = sub.map(|sub| sub.object["metadata"]["name"].as_str().unwrap_or_default()).unwrap_or_default();
    let chains: [&[(&str, &str)]; 2] = [
        &[("Installation", "root"), ("Execution", "root"), ("DeployItem", "r")],
        &[("Installation", "root"), ("Installation", "sub"), ("Execution", below), ("DeployItem", "s")],
    ];
    for chain in chains {
        let first = |has: fn(&Version) -> &str| -> Vec<Option<u64>> {
            let of = |(kind, name): &(&str, &str)| history.first(kind, name, |version| has(version) == id);
            chain.iter().map(of).collect()
        };
        let (triggered, finished) = (first(|version| version.jobs().0), first(|version| version.jobs().1));
        assert!(triggered.is_sorted() && triggered.iter().all(Option::is_some), "{triggered:?} of {chain:?}");
        let is_from_below = finished.iter().rev().is_sorted() && finished.iter().all(Option::is_some);
        assert!(is_from_below, "{finished:?} of {chain:?}");
    }
    for version in versions.iter().filter(|version| !job(version).is_empty()) {
        assert_eq!(job(version), id, "{} {}", version.kind, version.name);
        if version.jobs().1 == id {
            check_below(versions, version, &id);
        }
    }
}

/// INS-08: at the moment when an object finishes, everything that it owns has finished.
#[track_caller]
fn check_below(versions: &[Version], parent: &Version, id: &str) {
    let uid = &parent.object["metadata"]["uid"];
    let owned = |version: &&Version| {
        let owners = version.object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *uid))
    };
    for child in versions.iter().filter(owned) {
        let then = at(versions, child, parent.revision).map(|child| child.jobs().1.to_owned());
        assert_eq!(
            then.as_deref(),
            Some(id),
            "{} {} finished before {} {}",
            parent.kind,
            parent.name,
            child.kind,
            child.name
        );
    }
}

#[tokio::test]
async fn ins_09_ins_15_ins_54_a_request_during_a_job_waits_for_its_end() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&link("a", &[], "1")).await;
    let first = ExternalDeployer(&cluster).triggered("a").await["status"]["jobID"].clone();
    cluster.annotate(&any("Installation", "a"), asks()).await;
    wait_until_idle(&cluster).await;
    let kept = cluster.expect(&any("Installation", "a")).await;
    assert_eq!((&kept["status"]["jobID"], annotation(&kept, "operation")), (&first, &json!("reconcile")));
    ExternalDeployer(&cluster).succeed("a").await;
    let is_next = |item: &Value| item["status"]["jobID"] != first && item["status"]["jobID"].is_string();
    cluster.expect_that(&orangery_tests::external_deployer::item(), "got no second job", is_next).await;
    let history = history.until_now().await;
    let finished = history.first("Installation", "a", |version| version.jobs().1 == first);
    let second = history.first("Installation", "a", |version| version.is_running() && version.jobs().0 != first);
    assert!(finished < second && finished.is_some(), "{:#?}", history.message_of());
}

#[tokio::test]
async fn ins_11_ins_13_ins_14_ins_16_a_manifest_may_ask_for_its_first_job() {
    let cluster = crate::cluster().await;
    cluster.apply(&without_request(link("silent", &[], "1"))).await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&link("before", &[], "1")).await;
    cluster.apply(&link("asked", &["before"], "1")).await;
    // It waits for the one before in Init.
    let waiting = cluster.expect(&in_phase("Installation", "asked", "Init")).await;
    assert_eq!(*annotation(&waiting, "operation"), Value::Null, "it can be asked again: {waiting}");
    let history = history.until_now().await;
    let stored = history.first("Installation", "asked", Version::is_running);
    let removed =
        history.first("Installation", "asked", |version| *annotation(&version.object, "operation") == Value::Null);
    assert!(
        stored < removed && stored.is_some(),
        "the id is stored before the request goes: {:#?}",
        history.message_of()
    );
    let tells = |object: &Value| {
        object["metadata"]["name"] == "silent"
            && object["status"]["conditions"].to_string().contains("\"AwaitingTrigger\"")
    };
    let silent = cluster.expect_that(&any("Installation", "silent"), "does not tell that it waits", tells).await;
    let nothing = [&silent["status"]["phase"], &silent["status"]["jobID"], &silent["metadata"]["finalizers"]];
    assert_eq!(nothing, [&Value::Null; 3], "{silent}");
}

#[tokio::test]
async fn ins_17_ins_18_ins_53_a_child_begins_with_its_parents_job_and_cannot_be_asked() {
    let cluster = crate::cluster().await;
    succeed_family(&cluster).await;
    let is_sub = |object: &Value| *annotation(object, "subinstallation-name") == "sub";
    let kind = json!({"apiVersion": API, "kind": "Installation"});
    let sub = cluster.expect_that(&kind, "there is no sub-installation", is_sub).await;
    cluster.annotate(&sub, asks()).await;
    let removed = |object: &Value| is_sub(object) && *annotation(object, "operation") == Value::Null;
    let after = cluster.expect_that(&kind, "keeps the request", removed).await;
    wait_until_idle(&cluster).await;
    assert_eq!(after["status"]["jobID"], sub["status"]["jobID"]);
}

#[tokio::test]
async fn ins_19_a_blueprint_that_cannot_be_read_fails_in_init() {
    let cluster = crate::cluster().await;
    let mut broken = link("a", &[], "1");
    broken["spec"]["blueprint"] = json!({"inline": {"filesystem": {"blueprint.yaml": "imports: {"}}});
    cluster.apply(&broken).await;
    let failed = cluster.expect(&in_phase("Installation", "a", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("blueprint.yaml"), "{message}");
    assert_eq!(cluster.list(&json!({"apiVersion": API, "kind": "Execution"})).await, Vec::<Value>::new());
}

#[tokio::test]
async fn ins_20_to_22_ins_43_ins_44_ins_46_a_root_waits_for_all_it_imports_from_and_is_asked_when_they_export_anew() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    for (name, imports) in [("a", &[][..]), ("b", &[]), ("c", &["a", "b"])] {
        cluster.apply(&link(name, imports, "1")).await;
    }
    deployer.succeed("a").await;
    cluster.expect(&in_phase("Installation", "a", "Succeeded")).await;
    wait_until_idle(&cluster).await;
    let waiting = cluster.expect(&in_phase("Installation", "c", "Init")).await;
    let message = waiting["status"]["conditions"].to_string();
    assert!(message.contains("Installation b"), "it says whom it waits for: {message}");
    deployer.succeed("b").await;
    deployer.succeed("c").await;
    let first = cluster.expect(&in_phase("Installation", "c", "Succeeded")).await["status"]["jobID"].clone();
    // Its copies of what it imports lie in its own context.
    let copy = json!({
        "apiVersion": API, "kind": "DataObject", "data": "1",
        "metadata": {"labels": {
            "data.landscaper.gardener.cloud/context": "Inst.c", "data.landscaper.gardener.cloud/key": "a",
        }},
    });
    cluster.expect(&copy).await;

    cluster.apply(&link("a", &[], "2")).await;
    deployer.succeed("a").await;
    deployer.succeed("c").await;
    let again = |object: &Value| object["metadata"]["name"] == "c" && object["status"]["jobIDFinished"] != first;
    cluster.expect_that(&any("Installation", "c"), "was not asked again", again).await;
    cluster.expect(&json!({"data": "2", "apiVersion": API, "kind": "DataObject", "metadata": copy["metadata"]})).await;
}

#[tokio::test]
async fn ins_25_ins_26_ins_27_ins_28_ins_31_orphans_are_marked_deleted_and_gone_before_the_rest_begins() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let leaf = |item: &str| blueprint(json!({"deployExecutions": items(&[(item, &[])], "1")}));
    let root = |subs: &[&str]| {
        let subs: Vec<Value> = subs.iter().map(|name| subinstallation(name, &leaf(&format!("{name}-item")))).collect();
        installation("root", &blueprint(json!({"subinstallations": subs})))
    };
    cluster.apply(&root(&["x", "y"])).await;
    deployer.succeed("x-item").await;
    deployer.succeed("y-item").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&root(&["z"])).await;
    // Both orphans work at the same time, in no order.
    deployer.triggered("x-item").await;
    deployer.triggered("y-item").await;
    cluster.expect(&in_phase("Installation", "root", "CleanupOrphaned")).await;
    let seen = history.until_now().await;
    let began = seen.first("Installation", "z", |version| !job(version).is_empty());
    assert_eq!(began, None, "{:#?}", seen.message_of());
    deployer.succeed("x-item").await;
    deployer.succeed("y-item").await;
    deployer.succeed("z-item").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let history = history.until_now().await;
    for orphan in ["x", "y"] {
        let marked = history.first("Installation", orphan, |version| {
            *annotation(&version.object, "delete-ignore-successors") == "true"
        });
        let deleted = history.first("Installation", orphan, Version::is_deleting);
        assert!(marked < deleted && marked.is_some(), "{orphan}: {:#?}", history.message_of());
    }
    let works = |version: &Version| version.is_deleting() && version.is_running();
    let [deleted, triggered] = [Version::is_deleting as fn(&Version) -> bool, works]
        .map(|is| ["x", "y"].map(|orphan| history.first("Installation", orphan, is)));
    assert!(
        deleted.iter().max() < triggered.iter().min() && triggered.iter().all(Option::is_some),
        "no deletion begins before all are deleted: {deleted:?} {triggered:?}"
    );
}

#[tokio::test]
async fn ins_29_ins_30_orphans_that_all_failed_to_go_fail_the_job() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let leaf = |item: &str| blueprint(json!({"deployExecutions": items(&[(item, &[])], "1")}));
    let subs = json!([subinstallation("x", &leaf("x-item")), subinstallation("y", &leaf("y-item"))]);
    cluster.apply(&installation("root", &blueprint(json!({"subinstallations": subs})))).await;
    deployer.succeed("x-item").await;
    deployer.succeed("y-item").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.apply(&installation("root", &blueprint(json!({})))).await;
    deployer.fail("x-item", "in use").await;
    wait_until_idle(&cluster).await;
    cluster.expect(&in_phase("Installation", "root", "CleanupOrphaned")).await;
    deployer.fail("y-item", "in use as well").await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("in use"), "the root names the leaf's cause: {message}");
}

#[tokio::test]
async fn ins_33_ins_34_ins_35_ins_45_siblings_of_a_tree_run_one_after_the_other_and_the_root_waits_for_all() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let mut first = subinstallation(
        "first",
        &blueprint(json!({
            "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": items(&[("one", &[])], "1"),
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": "exports: {out: v}"}],
        })),
    );
    first["exports"] = json!({"data": [{"name": "out", "dataRef": "v"}]});
    let mut second = subinstallation(
        "second",
        &blueprint(json!({
            "imports": [{"name": "in", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": items(&[("two", &[])], "1"),
        })),
    );
    second["imports"] = json!({"data": [{"name": "in", "dataRef": "v"}]});
    cluster.apply(&installation("root", &blueprint(json!({"subinstallations": [second, first]})))).await;
    deployer.triggered("one").await;
    wait_until_idle(&cluster).await;
    assert_eq!(deployer.find("two").await, None, "it has not rendered yet");
    deployer.succeed("one").await;
    deployer.begin("two").await;
    cluster.expect(&in_phase("Installation", "root", "Progressing")).await;
    deployer.succeed("two").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

#[tokio::test]
async fn ins_36_ins_39_ins_52_ins_55_a_spec_changed_during_a_job_fails_it_and_the_next_one_takes_it_into_account() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&link("a", &[], "1")).await;
    deployer.begin("a").await;
    cluster.apply(&without_request(link("a", &[], "2"))).await;
    deployer.succeed("a").await;
    let failed = cluster.expect(&in_phase("Installation", "a", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("changed"), "{message}");
    // The change alone starts nothing.
    wait_until_idle(&cluster).await;
    let is_settled = cluster.expect(&any("Installation", "a")).await;
    assert_eq!(is_settled["status"]["jobID"], failed["status"]["jobID"]);
    cluster.annotate(&any("Installation", "a"), asks()).await;
    assert_eq!(deployer.triggered("a").await["spec"]["config"]["content"], "2");
    deployer.succeed("a").await;
    cluster.expect(&in_phase("Installation", "a", "Succeeded")).await;
}

/// The three ways in which a spec is followed: what is pushed during a job counts in the next one, which begins by itself.
#[tokio::test]
async fn c_05_c_06_a_spec_that_changes_during_a_job_is_followed_when_that_has_ended() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let follows = |name: &str, content: &str| {
        let mut root = link(name, &[], content);
        match name {
            "on-change" => root["spec"]["reconcilePolicy"] = json!("OnChange"),
            "on-spec-change" => root["spec"]["reconcilePolicy"] = json!("OnSpecChange"),
            _ => {
                let annotation = "landscaper.gardener.cloud/reconcile-if-changed";
                root["metadata"]["annotations"][annotation] = json!("true");
            }
        }
        root
    };
    for name in ["on-change", "on-spec-change", "if-changed"] {
        let mut first = follows(name, "1");
        first["metadata"]["annotations"]["landscaper.gardener.cloud/operation"] = json!("reconcile");
        cluster.apply(&first).await;
        deployer.begin(name).await;
        let mut second = follows(name, "2");
        if let Some(annotations) = second["metadata"]["annotations"].as_object_mut() {
            annotations.remove("landscaper.gardener.cloud/operation");
        }
        cluster.apply(&second).await;
        deployer.succeed(name).await;
        let is_next = |item: &Value| {
            item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == name
                && item["spec"]["config"]["content"] == "2"
                && item["status"]["jobID"] != item["status"]["jobIDFinished"]
        };
        cluster.expect_that(&any("DeployItem", ""), "is not followed", is_next).await;
        deployer.succeed(name).await;
        let done = cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
        assert_eq!(done["status"]["observedGeneration"], done["metadata"]["generation"], "{name}");
        // And that is all.
        wait_until_idle(&cluster).await;
        assert_eq!(
            cluster.expect(&any("Installation", name)).await["status"]["jobID"],
            done["status"]["jobID"],
            "{name}"
        );
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn ins_41_export_mappings_see_what_export_executions_answered() {
    let cluster = crate::cluster().await;
    let mut mapped = link("a", &[], "plain");
    mapped["spec"]["exportDataMappings"] = json!({"out": "(( \"mapped \" out ))"});
    cluster.apply(&mapped).await;
    ExternalDeployer(&cluster).succeed("a").await;
    cluster.expect(&in_phase("Installation", "a", "Succeeded")).await;
    cluster
        .expect(&json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": "a"}, "data": "mapped plain"}))
        .await;
}

#[tokio::test]
async fn ins_52_ins_53_a_changed_spec_waits_for_a_request_and_says_so() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&link("a", &[], "1")).await;
    deployer.succeed("a").await;
    let done = cluster.expect(&in_phase("Installation", "a", "Succeeded")).await;
    cluster.apply(&without_request(link("a", &[], "2"))).await;
    let waits = |object: &Value| object["status"]["conditions"].to_string().contains("AwaitingTrigger");
    let waiting =
        cluster.expect_that(&any("Installation", "a"), "does not say that it waits for a trigger", waits).await;
    wait_until_idle(&cluster).await;
    assert_eq!(
        (&waiting["status"]["jobID"], &waiting["status"]["phase"]),
        (&done["status"]["jobID"], &json!("Succeeded"))
    );
    cluster.annotate(&any("Installation", "a"), asks()).await;
    deployer.succeed("a").await;
    let ready = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    cluster.expect_that(&any("Installation", "a"), "does not get ready", ready).await;
}

#[tokio::test]
async fn ins_56_to_58_ins_60_wf_51_a_deletion_begins_by_itself_after_the_running_job() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&link("a", &[], "1")).await;
    deployer.begin("a").await;
    let first = deployer.triggered("a").await["status"]["jobID"].clone();
    cluster.delete(&any("Installation", "a")).await;
    wait_until_idle(&cluster).await;
    let running = cluster.expect(&in_phase("Installation", "a", "Progressing")).await;
    assert_eq!(running["status"]["jobID"], first, "the job is finished first");
    deployer.succeed("a").await;
    let goes = |item: &Value| item["metadata"]["deletionTimestamp"].is_string() && item["status"]["jobID"] != first;
    cluster.expect_that(&orangery_tests::external_deployer::item(), "is not deleted with a job of its own", goes).await;
    deployer.succeed("a").await;
    cluster.expect_absent(&any("Installation", "a")).await;
}

#[tokio::test]
async fn ins_59_ins_65_to_68_a_failed_deletion_ends_and_a_request_restarts_it() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    succeed_family(&cluster).await;
    cluster.delete(&any("Installation", "root")).await;
    deployer.fail("r", "in use").await;
    wait_until_idle(&cluster).await;
    // The sub-installation still works.
    cluster.expect(&in_phase("Installation", "root", "Deleting")).await;
    deployer.fail("s", "in use").await;
    let failed = cluster.expect(&in_phase("Installation", "root", "DeleteFailed")).await;
    assert_eq!(failed["status"]["jobID"], failed["status"]["jobIDFinished"]);
    cluster.annotate(&any("Installation", "root"), asks()).await;
    deployer.succeed("r").await;
    deployer.succeed("s").await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

#[tokio::test]
async fn ins_61_to_64_a_deletion_waits_for_importers_unless_the_annotation_says_otherwise() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    for (name, imports) in [("a", &[][..]), ("b", &["a"]), ("c", &["b"])] {
        cluster.apply(&link(name, imports, "1")).await;
        deployer.succeed(name).await;
        cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
    }
    cluster.delete(&any("Installation", "a")).await;
    cluster.expect(&in_phase("Installation", "a", "InitDelete")).await;
    wait_until_idle(&cluster).await;
    assert!(deployer.find("a").await.is_some_and(|item| item["metadata"]["deletionTimestamp"].is_null()));
    // The middle one does not wait for its own importer.
    cluster
        .annotate(&any("Installation", "b"), json!({"landscaper.gardener.cloud/delete-ignore-successors": "true"}))
        .await;
    cluster.delete(&any("Installation", "b")).await;
    deployer.succeed("b").await;
    cluster.expect_absent(&any("Installation", "b")).await;
    deployer.succeed("a").await;
    cluster.expect_absent(&any("Installation", "a")).await;
    cluster.expect(&in_phase("Installation", "c", "Succeeded")).await;
}

#[tokio::test]
async fn ins_70_to_76_an_interrupt_ends_what_is_unfinished_and_a_new_job_can_begin() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&family()).await;
    deployer.succeed("r").await;
    deployer.begin("s").await;
    let interrupts = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    // On an item it does nothing.
    let item = deployer.triggered("s").await;
    cluster.annotate(&item, interrupts.clone()).await;
    wait_until_idle(&cluster).await;
    assert_eq!(deployer.triggered("s").await["status"]["phase"], "Progressing");

    cluster.annotate(&any("Installation", "root"), interrupts).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    assert_eq!(*annotation(&failed, "operation"), Value::Null);
    let item = deployer.find("s").await.unwrap_or_default();
    assert_eq!(
        (&item["status"]["phase"], &item["status"]["jobIDFinished"]),
        (&json!("Failed"), &item["status"]["jobID"])
    );
    let message = item["status"]["lastError"].to_string().to_lowercase();
    assert!(message.contains("interrupt"), "{message}");
    let well = deployer.find("r").await.unwrap_or_default();
    assert_eq!(well["status"]["phase"], "Succeeded", "what was finished stays");

    cluster.annotate(&any("Installation", "root"), asks()).await;
    deployer.succeed("r").await;
    deployer.succeed("s").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

#[tokio::test]
async fn ins_77_to_79_ins_81_without_uninstall_no_deployer_is_asked_and_the_tree_goes() {
    let cluster = crate::cluster().await;
    succeed_family(&cluster).await;
    let history = History::begin(cluster.client()).await;
    let leaves = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    cluster.annotate(&any("Installation", "root"), leaves).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
    let history = history.until_now().await;
    for (kind, name) in [("Installation", "sub"), ("DeployItem", "r"), ("DeployItem", "s")] {
        let marked =
            history.first(kind, name, |version| *annotation(&version.object, "delete-without-uninstall") == "true");
        let deleted = history.first(kind, name, Version::is_deleting);
        assert!(marked.is_some() && marked <= deleted, "{kind} {name}: {:#?}", history.message_of());
    }
}

#[tokio::test]
async fn ins_14_ins_59_one_request_starts_one_deletion_however_it_ends() {
    let cluster = crate::cluster().await;
    let (deployer, root) = (ExternalDeployer(&cluster), any("Installation", "a"));
    cluster.apply(&link("a", &[], "1")).await;
    deployer.succeed("a").await;
    cluster.expect(&in_phase("Installation", "a", "Succeeded")).await;
    cluster.delete(&root).await;
    deployer.fail("a", "in use").await;
    let first = cluster.expect(&in_phase("Installation", "a", "DeleteFailed")).await["status"]["jobID"].clone();
    cluster.annotate(&root, asks()).await;
    deployer.fail("a", "still in use").await;
    let ended = |a: &Value| {
        let status = &a["status"];
        status["phase"] == "DeleteFailed" && status["jobID"] == status["jobIDFinished"] && status["jobID"] != first
    };
    let second = cluster.expect_that(&root, "does not fail again", ended).await;
    let asked = |a: &Value| (annotation(a, "operation").clone(), a["status"]["pendingOperation"].clone());
    assert_eq!(asked(&second), (Value::Null, Value::Null));
    wait_until_idle(&cluster).await;
    let after = cluster.expect_that(&root, "does not rest", ended).await;
    assert_eq!((&after["status"]["jobID"], asked(&after)), (&second["status"]["jobID"], (Value::Null, Value::Null)));
}

#[tokio::test]
async fn c_158_a_sub_installation_that_a_user_has_deleted_does_not_wait_for_siblings_that_wait_for_the_job() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let mut producer = subinstallation(
        "producer",
        &blueprint(json!({
            "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": items(&[("p", &[])], "1"),
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": "exports: {out: v}"}],
        })),
    );
    producer["exports"] = json!({"data": [{"name": "out", "dataRef": "v"}]});
    let mut consumer = subinstallation(
        "consumer",
        &blueprint(json!({
            "imports": [{"name": "in", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": items(&[("c", &[])], "1"),
        })),
    );
    consumer["imports"] = json!({"data": [{"name": "in", "dataRef": "v"}]});
    cluster.apply(&installation("root", &blueprint(json!({"subinstallations": [consumer, producer]})))).await;
    deployer.succeed("p").await;
    deployer.succeed("c").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let is_producer = |sub: &Value| *annotation(sub, "subinstallation-name") == "producer";
    let former = cluster.expect_that(&any("Installation", ""), "there is no producer", is_producer).await;
    cluster.delete(&former).await;
    cluster.annotate(&any("Installation", "root"), asks()).await;
    // The former one is uninstalled, and another one is made in the same job.
    deployer.succeed("p").await;
    cluster.expect_absent(&any("Installation", former["metadata"]["name"].as_str().unwrap_or_default())).await;
    deployer.succeed("p").await;
    deployer.succeed("c").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}
