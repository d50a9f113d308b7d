//! The rules of the execution controller (EXE) on a server, with an external deployer that does one step at a time.

use orangery_tests::{
    cluster::Cluster,
    external_deployer::{ExternalDeployer, TYPE},
    history::{History, Seen, Version},
    tree::{
        API, any, ask, asks, blueprint, config, deploys, imports_cluster, in_phase, installation, items, on_cluster,
        wait_until_idle,
    },
};
use serde_json::{Value, json};

/// An Installation `tree` of items.
fn tree(of: &[(&str, &[&str])], content: &str) -> Value {
    installation("tree", &blueprint(json!({"deployExecutions": items(of, content)})))
}

/// Runs a job of `tree` to its good end.
async fn finish(cluster: &Cluster, items: &[&str]) {
    for name in items {
        ExternalDeployer(cluster).succeed(name).await;
    }
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

fn job(version: &Version) -> String {
    version.jobs().0.to_owned()
}

#[track_caller]
fn in_order(history: &Seen, what: &str, steps: &[Option<u64>]) {
    let seen: Option<Vec<u64>> = steps.iter().copied().collect();
    let ordered = seen.is_some_and(|seen| seen.windows(2).all(|pair| matches!(pair, [a, b] if a < b)));
    assert!(ordered, "{what}: {steps:?} in\n{:#?}", history.message_of());
}

#[tokio::test]
async fn exe_01_an_execution_without_a_parent_starts_nothing() {
    let cluster = crate::cluster().await;
    let items = json!([{"name": "a", "type": TYPE, "config": config("x")}]);
    let lone =
        json!({"apiVersion": API, "kind": "Execution", "metadata": {"name": "lone"}, "spec": {"deployItems": items}});
    cluster.apply(&lone).await;
    wait_until_idle(&cluster).await;
    let lone = cluster.expect(&any("Execution", "lone")).await;
    assert_eq!(lone["status"], json!({"observedGeneration": -1}), "nobody wrote it: {lone}");
    assert_eq!(ExternalDeployer(&cluster).find("a").await, None);

    cluster.apply(&tree(&[("b", &[])], "1")).await;
    finish(&cluster, &["b"]).await;
    let owned = cluster.expect(&any("Execution", "tree")).await;
    let owners = owned["metadata"]["ownerReferences"].clone();
    assert_eq!(
        (&owners[0]["kind"], &owners[0]["name"], &owners[0]["controller"]),
        (&json!("Installation"), &json!("tree"), &json!(true))
    );
}

#[tokio::test]
async fn exe_03_exe_07_exe_08_exe_10_an_execution_is_made_in_init_and_begins_with_the_job_of_its_parent() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply(&tree(&[("a", &[])], "1")).await;
    ExternalDeployer(&cluster).triggered("a").await;

    let history = history.until_now().await;
    let first = history.of("Execution", "tree").next().expect("there is an Execution");
    assert_eq!((first.phase(), first.jobs()), ("", ("", "")), "fresh, it has neither phase nor job");
    let parent_left_init = history.first("Installation", "tree", |seen| !matches!(seen.phase(), "" | "Init"));
    assert!(parent_left_init.is_none_or(|left| left > first.revision), "{:#?}", history.message_of());

    // The write by which the parent waits for it gives it the job (C-216).
    let begun = history.first("Installation", "tree", |seen| seen.phase() == "Progressing");
    let made = history.first("DeployItem", "a", |_| true);
    in_order(&history, "no item before the job", &[Some(first.revision), begun, made]);
    let roots: Vec<String> = history.of("Installation", "tree").map(job).filter(|job| !job.is_empty()).collect();
    let last = history.of("Execution", "tree").last().map(job);
    assert_eq!(last, roots.last().cloned());

    finish(&cluster, &["a"]).await;
    let exports = json!({"apiVersion": API, "kind": "DataObject", "data": {"a": null}});
    cluster.expect(&exports).await;
}

#[tokio::test]
async fn exe_04_exe_16_exe_18_the_one_job_of_the_root_triggers_execution_and_items() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    let of: [(&str, &[&str]); 2] = [("a", &[]), ("b", &["a"])];
    cluster.apply(&tree(&of, "1")).await;
    finish(&cluster, &["a", "b"]).await;
    cluster.apply(&tree(&of, "2")).await;
    finish(&cluster, &["a", "b"]).await;
    let history = history.until_now().await;
    let jobs_of = |kind, name| {
        let mut jobs: Vec<String> = history.of(kind, name).map(job).filter(|job| !job.is_empty()).collect();
        jobs.dedup();
        jobs
    };
    let root = jobs_of("Installation", "tree");
    assert_eq!(root.len(), 2, "{:#?}", history.message_of());
    for (kind, name) in [("Execution", "tree"), ("DeployItem", "a"), ("DeployItem", "b")] {
        assert_eq!(jobs_of(kind, name), root, "{kind} {name}");
    }
}

#[tokio::test]
async fn exe_11_exe_12_exe_13_exe_14_exe_15_c_19_init_brings_the_items_to_the_spec_and_triggers_none() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("kept", &[]), ("orphan", &[])], "1")).await;
    finish(&cluster, &["kept", "orphan"]).await;
    let before = deployer.find("kept").await.unwrap_or_default();

    // The orphan goes first (C-19): as long as its deployer works on it the others are not triggered.
    cluster.apply(&tree(&[("kept", &[]), ("new", &[])], "2")).await;
    let orphan = deployer.triggered("orphan").await;
    assert!(orphan["metadata"]["deletionTimestamp"].is_string(), "{orphan}");
    let kept = deployer.find("kept").await.unwrap_or_default();
    assert_eq!(kept["spec"]["config"]["content"], "2");
    assert_eq!(kept["status"], before["status"], "an update alone makes nobody work");
    let new = deployer.find("new").await.unwrap_or_default();
    assert_eq!((&new["spec"]["config"]["content"], &new["status"]["jobID"]), (&json!("2"), &Value::Null));

    deployer.succeed("orphan").await;
    finish(&cluster, &["kept", "new"]).await;
    assert_eq!(deployer.find("orphan").await, None);
}

#[tokio::test]
async fn exe_19_to_22_exe_24_exe_28_items_run_as_soon_as_their_predecessors_have_succeeded() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("a", &[]), ("b", &[]), ("c", &["a", "b"])], "1")).await;
    deployer.begin("a").await;
    deployer.begin("b").await;
    deployer.succeed("a").await;
    wait_until_idle(&cluster).await;
    let waiting = deployer.find("c").await.unwrap_or_default();
    assert_eq!(waiting["status"]["jobID"], Value::Null, "b is not finished: {waiting}");
    deployer.succeed("b").await;
    finish(&cluster, &["c"]).await;
    cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn exe_25_to_27_a_failure_lets_the_running_ones_end_and_fails() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("bad", &[]), ("slow", &[]), ("next", &["slow"])], "1")).await;
    deployer.begin("slow").await;
    deployer.fail("bad", "boom").await;
    wait_until_idle(&cluster).await;
    cluster.expect(&in_phase("Execution", "tree", "Progressing")).await;
    deployer.succeed("slow").await;
    let failed = cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    assert!(
        failed["status"]["lastError"]["message"].as_str().is_some_and(|message| message.contains("boom")),
        "{failed}"
    );
    let next = deployer.find("next").await.unwrap_or_default();
    assert_eq!(next["status"]["jobID"], Value::Null, "{next}");
}

#[tokio::test]
async fn exe_31_wf_10_completing_collects_the_exports_before_success() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("a", &[]), ("b", &[])], "1")).await;
    deployer.export("a", json!({"address": "x"})).await;
    finish(&cluster, &["a", "b"]).await;
    let execution = cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
    let name = &execution["status"]["exportRef"]["name"];
    cluster
        .expect(&json!({
            "apiVersion": API, "kind": "DataObject", "metadata": {"name": name},
            "data": {"a": {"address": "x"}, "b": null},
        }))
        .await;
}

#[tokio::test]
async fn exe_35_exe_37_exe_38_c_20_only_a_new_job_of_the_root_begins_again_and_not_before_the_tree_is_finished() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("a", &[])], "1")).await;
    deployer.begin("a").await;
    let first = deployer.triggered("a").await["status"]["jobID"].clone();
    cluster.annotate(&any("Installation", "tree"), asks()).await;
    wait_until_idle(&cluster).await;
    assert_eq!(cluster.expect(&any("Installation", "tree")).await["status"]["jobID"], first);

    // The request was kept; the new job changes nothing in the spec and runs all the same.
    let generation = deployer.find("a").await.unwrap_or_default()["metadata"]["generation"].clone();
    deployer.succeed("a").await;
    let again = deployer.triggered("a").await;
    assert_ne!(again["status"]["jobID"], first);
    assert_eq!(again["metadata"]["generation"], generation);
    finish(&cluster, &["a"]).await;
}

#[tokio::test]
async fn exe_36_wf_49_wf_50_a_changed_spec_alone_starts_nothing() {
    let cluster = crate::cluster().await;
    cluster.apply(&tree(&[("a", &[])], "1")).await;
    finish(&cluster, &["a"]).await;
    let before = cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
    let items = json!([{"name": "a", "type": TYPE, "config": config("x")}]);
    let mut changed = any("Execution", "tree");
    changed["spec"] = json!({"deployItems": items, "deployItemsCompressed": null});
    cluster.merge(&changed).await;
    wait_until_idle(&cluster).await;
    let after = cluster.expect(&any("Execution", "tree")).await;
    assert_ne!(after["metadata"]["generation"], before["metadata"]["generation"]);
    assert_eq!(after["status"]["jobID"], before["status"]["jobID"]);
    assert_eq!(after["status"]["phase"], "Succeeded");
}

#[tokio::test]
async fn exe_40_exe_41_exe_42_exe_45_exe_47_exe_48_exe_50_a_deletion_goes_from_dependents_to_what_they_depend_on() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("base", &[]), ("left", &["base"]), ("right", &["base"])], "1")).await;
    finish(&cluster, &["base", "left", "right"]).await;
    let history = History::begin(cluster.client()).await;
    cluster.delete(&any("Installation", "tree")).await;

    // Both dependents in one pass; what they depend on only when both are gone.
    deployer.triggered("left").await;
    deployer.triggered("right").await;
    deployer.succeed("left").await;
    wait_until_idle(&cluster).await;
    let base = deployer.find("base").await.unwrap_or_default();
    assert!(base["metadata"]["deletionTimestamp"].is_string(), "all are deleted at once: {base}");
    assert_eq!(base["status"]["jobID"], base["status"]["jobIDFinished"], "nobody works on it before its turn: {base}");
    deployer.succeed("right").await;
    deployer.succeed("base").await;
    cluster.expect_absent(&any("Installation", "tree")).await;
    let history = history.until_now().await;

    let deleting = |version: &Version| version.is_deleting();
    let at_rest = |version: &Version| version.is_deleting() && !version.is_running();
    let working = |version: &Version| version.is_deleting() && version.is_running();
    let steps = [
        history.first("Execution", "tree", at_rest),
        history.first("Execution", "tree", working),
        history.first("DeployItem", "base", deleting),
        history.first("DeployItem", "base", working),
        history.place("DeployItem", "base", "gone"),
        history.place("Execution", "tree", "gone"),
        history.place("Installation", "tree", "gone"),
    ];
    for item in ["base", "left", "right"] {
        let deleted = history.first("DeployItem", item, deleting);
        assert!(deleted.is_some() && deleted < steps[3], "{item}: {:#?}", history.message_of());
    }
    in_order(
        &history,
        "a deletion timestamp alone starts nothing, and parents stay until their children are gone",
        &steps,
    );
}

#[tokio::test]
async fn exe_49_a_failed_deletion_stops_the_rest_and_is_tried_again_by_request() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    cluster.apply(&tree(&[("base", &[]), ("top", &["base"])], "1")).await;
    finish(&cluster, &["base", "top"]).await;
    cluster.delete(&any("Installation", "tree")).await;
    deployer.fail("top", "in use").await;
    let failed = cluster.expect(&in_phase("Installation", "tree", "DeleteFailed")).await;
    assert!(
        failed["status"]["lastError"]["message"].as_str().is_some_and(|message| message.contains("in use")),
        "{failed}"
    );
    cluster.expect(&in_phase("Execution", "tree", "DeleteFailed")).await;
    cluster.annotate(&any("Installation", "tree"), asks()).await;
    deployer.succeed("top").await;
    deployer.succeed("base").await;
    cluster.expect_absent(&any("Installation", "tree")).await;
}

/// No server takes an object of more than 3 MiB, and each export alone fits into its Secret.
#[tokio::test]
async fn c_42_exports_that_are_too_large_together_fail_the_job_which_is_done_again_or_deleted() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    let names = ["a", "b", "c", "d"];
    let fields = json!({"deployExecutions": items(&names.map(|name| (name, &[][..])), "1")});
    let finish = async |length: usize| {
        for name in names {
            deployer.export(name, json!({"v": "x".repeat(length)})).await;
            deployer.succeed(name).await;
        }
    };
    cluster.apply(&installation("root", &blueprint(fields))).await;
    finish(900_000).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("too large") && message.len() < 1000, "{message}");
    ask(&cluster, "root").await;
    finish(10).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    ask(&cluster, "root").await;
    finish(900_000).await;
    cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    cluster.delete(&any("Installation", "root")).await;
    for name in names {
        deployer.succeed(name).await;
    }
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// A template makes of a short text more than a server takes in one object.
#[tokio::test]
async fn c_42_an_item_that_is_too_large_for_the_server_fails_the_job_with_one_sentence() {
    let cluster = crate::cluster().await;
    let text = format!("{{% for _ in range(4000) %}}{}{{% endfor %}}", "x".repeat(1000));
    let item = deploys("large", &[], "TEXT").to_string().replace("TEXT", &text);
    let template = format!(r#"{{"deployItems": [{item}]}}"#);
    let fields = json!({"imports": imports_cluster(), "deployExecutions": [{"name": "d", "type": "Jinja", "template": template}]});
    cluster.apply(&on_cluster(installation("root", &blueprint(fields)))).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("large") && message.len() < 1000, "{message}");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}
