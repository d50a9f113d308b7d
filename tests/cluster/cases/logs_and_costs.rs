//! What commands tell of jobs: what happened (C-399), what they cost (C-398), and their trees while somebody waits (C-405).

use std::{fs, sync::Arc};

use orangery_tests::{
    objects::NAMESPACE,
    proxy::Sound,
    tree::{another_job_ended, any, ask, blueprint, executions, in_phase, installation, mocks},
    world::{MOCK, World},
};
use serde_json::{Value, json};

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The entries of a timeline: where from, kind, path and reason.
fn outline(log: &Value) -> Vec<[String; 4]> {
    let entries = log["entries"].as_array().into_iter().flatten();
    entries
        .map(|entry| {
            ["source", "kind", "path", "reason"].map(|field| entry[field].as_str().unwrap_or_default().to_owned())
        })
        .collect()
}

#[tokio::test]
async fn c_399_what_happened_in_a_job_is_told_from_statuses_records_and_events() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK, "--job-records=5"]);
    let root = |phase: &str| {
        let items = executions(&[mocks("first", &[], "Succeeded", "x"), mocks("second", &["first"], phase, "x")]);
        installation("tree", &blueprint(json!({"deployExecutions": items})))
    };
    world.objects.apply(&root("Failed")).await;
    let failed = world.objects.expect(&in_phase("Installation", "tree", "Failed")).await;
    let before = failed["status"]["jobID"].as_str().unwrap().to_owned();
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "type": "Warning"});
    let about = |event: &Value| event["regarding"]["kind"] == "Installation" && event["regarding"]["name"] == "tree";
    world.objects.expect_that(&event, "does not tell of the failure", about).await;

    let log = document(&world.run(&["logs", "tree", "-n", NAMESPACE, "-o", "json"]).await);
    assert_eq!((&log["kind"], &log["job"]), (&json!("JobLog"), &json!(before)));
    let entries = outline(&log);
    for expected in [
        ["status", "Installation", "tree", "Triggered"],
        ["status", "DeployItem", "tree/first", "Succeeded"],
        ["status", "DeployItem", "tree/second", "Failed"],
        ["record", "DeployItem", "tree/first", "Written"],
        ["status", "Installation", "tree", "Failed"],
    ] {
        assert!(entries.iter().any(|entry| *entry == expected.map(str::to_owned)), "{expected:?}: {entries:#?}");
    }
    assert!(entries.iter().any(|[source, kind, ..]| source == "event" && kind == "Installation"), "{entries:#?}");
    let times: Vec<&str> =
        log["entries"].as_array().unwrap().iter().filter_map(|entry| entry["time"].as_str()).collect();
    let parsed: Vec<jiff::Timestamp> = times.iter().map(|time| time.parse().unwrap()).collect();
    assert!(parsed.is_sorted(), "{times:?}");
    let lines = world.run(&["logs", "tree", "-n", NAMESPACE, "--follow"]).await;
    let last = lines.lines().rfind(|line| line.contains("  Installation  "));
    assert!(last.is_some_and(|line| line.contains("  tree  ")), "{lines}");
    let one = document(
        &world.run(&["logs", "installation/tree", "-n", NAMESPACE, "--job", &before[..8], "-o", "json"]).await,
    );
    assert_eq!(outline(&one), entries);

    // A job that is not the last one has its records, and what was told meanwhile.
    world.objects.apply(&root("Succeeded")).await;
    ask(&world.objects, "tree").await;
    another_job_ended(&world.objects, &before).await;
    let earlier = document(&world.run(&["logs", "tree", "-n", NAMESPACE, "--job", &before, "-o", "json"]).await);
    assert_eq!(earlier["job"], json!(before));
    let sources = outline(&earlier);
    assert!(sources.iter().any(|[source, _, path, _]| source == "record" && path == "tree/second"), "{sources:#?}");
    assert!(sources.iter().all(|[source, ..]| source != "status"), "{sources:#?}");
    let missing = world.run(&["logs", "none", "-n", NAMESPACE]).await;
    assert!(missing.starts_with("error: there is no installation none in namespace "), "{missing}");
    world.end().await;
}

#[tokio::test]
async fn c_398_what_items_components_and_clusters_cost_is_told_with_the_figures_of_the_operator() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK, "--metrics-authentication=token"]);
    world.ready().await;
    let items = executions(&[mocks("good", &[], "Succeeded", "x"), mocks("bad", &[], "Failed", "x")]);
    world.objects.apply(&installation("tree", &blueprint(json!({"deployExecutions": items})))).await;
    world.objects.expect(&in_phase("Installation", "tree", "Failed")).await;

    let items = document(&world.run(&["top", "-n", NAMESPACE, "-o", "json"]).await);
    assert_eq!((&items["kind"], &items["total"]), (&json!("ItemCosts"), &json!(2)));
    let mut standings: Vec<&str> =
        items["items"].as_array().unwrap().iter().filter_map(|item| item["standing"].as_str()).collect();
    standings.sort_unstable();
    assert_eq!(standings, ["failed", "succeeded"]);

    // No pod holds the Lease here.
    let without = world.run(&["top", "plugins", "-A"]).await;
    assert!(without.contains("no metrics: ") && without.contains("pass --metrics URL"), "{without}");
    let address = format!("http://{}/metrics", world.metrics_address());
    let refused = world.run(&["top", "plugins", "-A", "--metrics", &address]).await;
    assert!(refused.contains("asks for a token; pass --metrics-token FILE"), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let kubeconfig = orangery_tests::yaml::documents(world.objects.kubeconfig()).remove(0);
    fs::write(&token, kubeconfig["users"][0]["user"]["token"].as_str().expect("a token")).unwrap();
    let token = token.to_string_lossy().into_owned();
    let of = ["-A", "--metrics", &address, "--metrics-token", &token, "-o", "json"];
    let plugins = document(&world.run(&[&["top", "plugins"], &of[..]].concat()).await);
    let mock =
        plugins["items"].as_array().unwrap().iter().find(|of| of["name"] == "mock").expect("the component").clone();
    assert_eq!((&mock["items"], &mock["failed"], &plugins["notMeasured"]), (&json!(2), &json!(1), &Value::Null));
    assert!(mock["calls"]["ended"].as_f64().is_some_and(|ended| ended >= 2.0), "{plugins:#}");
    let clusters = document(&world.run(&[&["top", "clusters"], &of[..]].concat()).await);
    assert!(clusters["clusters"]["mostWatches"].as_f64().is_some_and(|most| most > 0.0), "{clusters:#}");
    world.end().await;
}

#[tokio::test]
async fn c_405_a_command_that_waits_has_the_exit_code_of_the_job() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK]);
    let of = |phase: &str| {
        let items = executions(&[mocks("item", &[], phase, "x")]);
        installation("tree", &blueprint(json!({"deployExecutions": items})))
    };
    world.objects.apply(&of("Succeeded")).await;
    world.objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let waited = world.run(&["reconcile", "tree", "-n", NAMESPACE, "--wait"]).await;
    assert_eq!(waited, format!("installation {NAMESPACE}/tree: Succeeded\n"));
    world.run(&["suspend", "tree", "-n", NAMESPACE]).await;
    world.objects.apply(&of("Failed")).await;
    ask(&world.objects, "tree").await;
    let resumed = world.run(&["resume", "tree", "-n", NAMESPACE, "--wait"]).await;
    let expected = format!(
        "installation {NAMESPACE}/tree: resumed; a job was asked for meanwhile, and begins\ninstallation {NAMESPACE}/tree: Failed\nerror: "
    );
    assert!(resumed.starts_with(&expected), "{resumed}");
    // One that does not end is interrupted.
    world.objects.apply(&of("Progressing")).await;
    ask(&world.objects, "tree").await;
    let running = |object: &Value| {
        object["metadata"]["name"] == "tree" && object["status"]["jobID"] != object["status"]["jobIDFinished"]
    };
    world.objects.expect_that(&any("Installation", "tree"), "has no job that runs", running).await;
    let interrupted = world.run(&["interrupt", "tree", "-n", NAMESPACE, "--wait"]).await;
    let expected = format!(
        "installation {NAMESPACE}/tree: interrupt requested\ninstallation {NAMESPACE}/tree: the job has ended\n"
    );
    assert_eq!(interrupted, expected);
    world.end().await;
}
