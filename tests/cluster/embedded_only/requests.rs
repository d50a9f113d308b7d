//! What a tree costs the API server.

use orangery_tests::{
    cluster::Cluster,
    repository,
    requests::Requests,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

fn hello() -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "hello"},
        "status": {"phase": "Succeeded", "observedGeneration": 2},
    })
}

/// A server whose operator has done what it does once: every namespace has its Context.
async fn settled() -> Cluster {
    let cluster = crate::cluster().await;
    for namespace in cluster.list(&json!({"apiVersion": "v1", "kind": "Namespace"})).await {
        let metadata = json!({"name": "default", "namespace": namespace["metadata"]["name"]});
        let kind = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Context", "metadata": metadata});
        cluster.expect(&kind).await;
    }
    cluster
}

async fn deploy_hello(cluster: &Cluster) {
    let file = repository().join("examples/hello-world/installation.yaml");
    for object in orangery_tests::yaml::read(&file) {
        cluster.apply(&object).await;
    }
    cluster.expect(&hello()).await;
}

#[tokio::test]
async fn c_216_a_triple_costs_at_most_fourteen_writes_and_two_reads() {
    let cluster = settled().await;
    // The first one also guards the Target and the Context, which all others use as well.
    deploy_hello(&cluster).await;
    // As long as something is deployed to it, the credentials of the cluster are kept.
    let stays = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("stays", &[], "1")])});
    cluster.apply(&on_cluster(installation("stays", &blueprint(stays)))).await;
    cluster.expect(&in_phase("Installation", "stays", "Succeeded")).await;
    cluster.delete(&any("Installation", "hello")).await;
    cluster.expect_absent(&any("Installation", "hello")).await;
    let before = Requests::counted(cluster.client()).await;
    deploy_hello(&cluster).await;
    let during = Requests::counted(cluster.client()).await - before;
    // The suite itself: one list to begin its watch.
    let (writes, reads) = (during.writes(), during.reads().saturating_sub(1));
    assert!(writes <= 14 && reads <= 2, "{writes} writes and {reads} reads: {during:#?}");
    let (installation, text) = (any("Installation", "hello"), |of: &Value, path: &str| of.pointer(path).cloned());
    let ended = cluster.expect(&hello()).await;
    let before = Requests::counted(cluster.client()).await;
    cluster.annotate(&installation, json!({"landscaper.gardener.cloud/operation": "reconcile"})).await;
    let has_ended = |now: &Value| {
        let job = text(now, "/status/jobID");
        job != text(&ended, "/status/jobID") && job == text(now, "/status/jobIDFinished")
    };
    cluster.expect_that(&installation, "did not end another job", has_ended).await;
    let during = Requests::counted(cluster.client()).await - before;
    // And its annotation.
    let (writes, reads) = (during.writes().saturating_sub(1), during.reads().saturating_sub(1));
    assert!(writes <= 7 && reads <= 1, "{writes} writes and {reads} reads: {during:#?}");
}

#[tokio::test]
async fn the_deletion_of_a_triple_costs_at_most_eleven_writes_and_one_read() {
    let cluster = settled().await;
    let stays = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("stays", &[], "1")])});
    cluster.apply(&on_cluster(installation("stays", &blueprint(stays)))).await;
    cluster.expect(&in_phase("Installation", "stays", "Succeeded")).await;
    deploy_hello(&cluster).await;
    let before = Requests::counted(cluster.client()).await;
    cluster.delete(&any("Installation", "hello")).await;
    cluster.expect_absent(&any("Installation", "hello")).await;
    let during = Requests::counted(cluster.client()).await - before;
    // The suite itself: the deletion, and one list to begin its watch.
    let (writes, reads) = (during.writes().saturating_sub(1), during.reads().saturating_sub(1));
    assert!(writes <= 11 && reads <= 1, "{writes} writes and {reads} reads: {during:#?}");
}

#[tokio::test]
async fn orc_04_orc_34_no_request_is_sent_while_nothing_relevant_changes() {
    let cluster = settled().await;
    deploy_hello(&cluster).await;
    let before = Requests::counted(cluster.client()).await;
    // Time passes in which another client writes two hundred times, and only its requests are counted.
    for number in 0..200 {
        let metadata = json!({"name": "unrelated"});
        let content = json!({"number": number.to_string()});
        cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content})).await;
    }
    let during = Requests::counted(cluster.client()).await - before;
    assert_eq!((during.writes(), during.reads()), (200, 0), "{during:#?}");
}

#[tokio::test]
async fn orc_33_only_what_roots_under_the_policy_import_is_watched_and_by_one_watch() {
    let cluster = settled().await;
    let secret = |name: &str, content: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"v": content}});
    let root = |name: &str, policy: &str| {
        let mut root =
            installation(name, &blueprint(json!({"imports": [{"name": "v", "type": "data", "schema": {}}]})));
        root["spec"]["imports"] = json!({"data": [{"name": "v", "secretRef": {"name": "imported"}}]});
        root["spec"]["reconcilePolicy"] = json!(policy);
        root
    };
    let another_job = async |name: &str, job: &Value| {
        let is = |object: &Value| {
            let status = &object["status"];
            object["metadata"]["name"] == name && status["phase"] == "Succeeded" && status["jobIDFinished"] != *job
        };
        let done = cluster.expect_that(&any("Installation", name), "has not ended another job", is).await;
        done["status"]["jobIDFinished"].clone()
    };
    let before = Requests::counted(cluster.client()).await;
    cluster.apply(&secret("imported", "1")).await;
    for policy in ["Manual", "OnSpecChange"] {
        let name = policy.to_lowercase();
        cluster.apply(&root(&name, policy)).await;
        another_job(&name, &Value::Null).await;
    }
    let during = Requests::counted(cluster.client()).await - before.clone();
    assert_eq!(during.watches("secrets"), 0, "{during:#?}");

    let mut last = Vec::new();
    for name in ["one", "two"] {
        cluster.apply(&root(name, "OnChange")).await;
        last.push((name, another_job(name, &Value::Null).await));
    }
    cluster.apply(&secret("imported", "2")).await;
    for (name, job) in last {
        another_job(name, &job).await;
    }
    let during = Requests::counted(cluster.client()).await - before;
    assert_eq!(during.watches("secrets"), 1, "they share it: {during:#?}");

    let before = Requests::counted(cluster.client()).await;
    for number in 0..50 {
        cluster.apply(&secret("unrelated", &number.to_string())).await;
        cluster.annotate(&secret("imported", "2"), json!({"number": number.to_string()})).await;
    }
    let during = Requests::counted(cluster.client()).await - before.clone();
    assert_eq!((during.writes(), during.reads()), (100, 0), "a change that is none for them: {during:#?}");

    for name in ["one", "two"] {
        let mut manual = root(name, "Manual");
        manual["metadata"]["annotations"] = json!({});
        cluster.apply(&manual).await;
        let waits = |object: &Value| {
            object["metadata"]["name"] == name && object["status"]["conditions"].to_string().contains("AwaitingTrigger")
        };
        cluster.expect_that(&any("Installation", name), "does not wait for a trigger", waits).await;
    }
    let last = another_job("one", &Value::Null).await;
    cluster.apply(&root("one", "OnChange")).await;
    another_job("one", &last).await;
    let during = Requests::counted(cluster.client()).await - before;
    assert_eq!(during.watches("secrets"), 1, "the first watch has ended with the policy: {during:#?}");
}
