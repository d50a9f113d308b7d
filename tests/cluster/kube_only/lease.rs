//! One active operator (C-34): two processes, one of which is stopped and continued by signals.

use orangery_tests::{
    binary::signal,
    cluster::{Cluster, own_target},
    external_deployer::ExternalDeployer,
    kube::{Kube, OPERATOR, SERVERS},
    objects::Objects,
    tree::{any, asks, blueprint, deploys, executions, imports_cluster, in_phase, installation, items, on_cluster},
};
use serde_json::{Value, json};

const QUICK: [&str; 2] = ["--lease-duration", "3"];

/// The Lease, taken over so often.
fn lease(transitions: u32) -> Value {
    let metadata = json!({"name": "orangery", "namespace": "orangery-system"});
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"leaseTransitions": transitions},
    })
}

fn tree(name: &str) -> Value {
    installation(name, &blueprint(json!({"deployExecutions": items(&[(&format!("{name}-item"), &[])], "1")})))
}

/// Waits until an object says what it waits for: the last that the operator writes before something else happens.
async fn is_settled(objects: &Objects, kind: &str, name: &str, reason: &str) {
    let says = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        object["metadata"]["name"] == name && conditions.into_iter().any(|condition| condition["reason"] == reason)
    };
    objects.expect_that(&any(kind, name), &format!("did not come to say {reason}"), says).await;
}

#[tokio::test]
async fn c_34_c_24_an_operator_that_was_frozen_writes_nothing_more_when_it_wakes_up() {
    let (binary, programs) = super::programs().await;
    let server = Kube::start_audited(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let deployer = ExternalDeployer(&objects);
    let [first_user, second_user] = OPERATOR;
    let first = server.operator(&binary, first_user, &QUICK);
    objects.expect(&lease(0)).await;
    objects.apply(&tree("before")).await;
    deployer.triggered("before-item").await;
    let second = server.operator(&binary, second_user, &QUICK);

    // A request that is half sent is sent when it wakes up, and the server refuses what is outdated: none is under way here.
    is_settled(&objects, "Execution", "before", "WaitingForDeployItem").await;
    is_settled(&objects, "Installation", "before", "WaitingForExecution").await;
    signal(first.id(), "-STOP");
    // Both will see these when they are awake: as they were made, and not yet as the other one has gone on with them.
    objects.annotate(&any("Installation", "before"), asks()).await;
    objects.apply(&tree("meanwhile")).await;
    objects.expect(&lease(1)).await;
    deployer.succeed("meanwhile-item").await;
    objects.expect(&in_phase("Installation", "meanwhile", "Succeeded")).await;
    deployer.succeed("before-item").await;

    let written = server.writes(first_user);
    assert!(written.iter().any(|write| write.starts_with("patch installations before 200")), "{written:#?}");
    signal(first.id(), "-CONT");
    objects.apply(&tree("after")).await;
    deployer.succeed("after-item").await;
    objects.expect(&in_phase("Installation", "after", "Succeeded")).await;
    let ended = first.finished().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("Lease orangery is held by "), "{ended:?}");
    let last: Vec<String> = server.writes(first_user).split_off(written.len());
    // Its own renewal is how it learns that the Lease is another's.
    let others: Vec<&String> = last.iter().filter(|write| !write.starts_with("update leases orangery 409")).collect();
    assert_eq!(others, Vec::<&String>::new(), "the first one wrote after it was frozen");
    drop(second);
}

#[tokio::test]
async fn c_34_an_operator_that_stops_gives_its_lease_to_the_next() {
    let (binary, programs) = super::programs().await;
    let server = Kube::start_audited(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    // So long that nobody waits for its end.
    let slow = ["--lease-duration", "3600"];
    let first = server.operator(&binary, OPERATOR[0], &slow);
    objects.expect(&lease(0)).await;
    let second = server.operator(&binary, OPERATOR[1], &slow);
    objects.apply(&tree("one")).await;
    ExternalDeployer(&objects).triggered("one-item").await;
    signal(first.id(), "-TERM");
    let ended = first.finished().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    objects.expect(&lease(1)).await;
    ExternalDeployer(&objects).succeed("one-item").await;
    objects.expect(&in_phase("Installation", "one", "Succeeded")).await;
    drop(second);
}

#[tokio::test]
async fn c_124_an_operator_whose_servers_are_away_ends_and_the_next_one_goes_on_when_they_are_back() {
    let (binary, programs) = super::programs().await;
    let mut server = Kube::start(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let deployer = ExternalDeployer(&objects);
    let first = server.operator(&binary, OPERATOR[0], &QUICK);
    objects.expect(&lease(0)).await;
    objects.apply(&tree("under-way")).await;
    deployer.triggered("under-way-item").await;
    server.kill(&SERVERS);
    let ended = first.finished().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("Lease orangery could not be renewed for 2s, so another operator may begin; this one stops: "),
        "{ended:?}"
    );
    // As its pod starts it again, which is too early.
    let second = server.operator(&binary, OPERATOR[0], &QUICK).finished().await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("the API server does not answer: "), "{second:?}");
    server.start_again(&programs).await;
    let third = server.operator(&binary, OPERATOR[0], &QUICK);
    objects.expect(&lease(1)).await;
    deployer.succeed("under-way-item").await;
    objects.expect(&in_phase("Installation", "under-way", "Succeeded")).await;
    drop(third);
}

#[tokio::test]
async fn c_124_c_91_after_a_restore_an_operator_ends_and_the_next_one_takes_the_lease_of_a_dead_one() {
    let (binary, programs) = super::programs().await;
    let mut server = Kube::start(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let deployer = ExternalDeployer(&objects);
    let first = server.operator(&binary, OPERATOR[0], &QUICK);
    objects.expect(&lease(0)).await;
    objects.apply(&tree("before")).await;
    deployer.triggered("before-item").await;
    server.kill(&SERVERS);
    server.back_up();
    first.finished().await;
    server.start_again(&programs).await;
    let second = server.operator(&binary, OPERATOR[1], &QUICK);
    objects.expect(&lease(1)).await;
    deployer.succeed("before-item").await;
    objects.expect(&in_phase("Installation", "before", "Succeeded")).await;
    // The Lease is the first one's again, which does not exist any more.
    server.kill(&SERVERS);
    server.restore();
    server.start_again(&programs).await;
    let ended = second.finished().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("Lease orangery "), "{ended:?}");
    let third = server.operator(&binary, OPERATOR[1], &QUICK);
    objects.expect(&lease(1)).await;
    deployer.succeed("before-item").await;
    objects.expect(&in_phase("Installation", "before", "Succeeded")).await;
    drop(third);
}

/// The objects are those of yesterday, and a cluster that was deployed to is not: what came there since is nobody's.
#[tokio::test]
async fn c_91_what_was_deployed_between_a_backup_and_its_restore_stays_and_the_item_goes_on() {
    let (binary, programs) = super::programs().await;
    let mut server = Kube::start(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let elsewhere = Cluster::start(&crate::binary().await, &["--ephemeral"]).await;
    objects.apply(&own_target(elsewhere.kubeconfig())).await;
    let root = |maps: &[&str]| {
        let mut item = deploys("item", &[], "1");
        let one = item["config"]["manifests"][0].clone();
        let manifests = maps.iter().map(|name| {
            let mut manifest = one.clone();
            manifest["manifest"]["metadata"]["name"] = json!(name);
            manifest
        });
        item["config"]["manifests"] = manifests.collect();
        on_cluster(installation(
            "root",
            &blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])})),
        ))
    };
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let first = server.operator(&binary, OPERATOR[0], &QUICK);
    objects.apply(&root(&["kept"])).await;
    let before = objects.expect(&in_phase("Installation", "root", "Succeeded")).await;
    server.kill(&SERVERS);
    server.back_up();
    first.finished().await;
    server.start_again(&programs).await;
    let second = server.operator(&binary, OPERATOR[1], &QUICK);
    objects.apply(&root(&["kept", "between"])).await;
    elsewhere.expect(&map("between")).await;
    let is_done = |object: &Value| {
        let status = &object["status"];
        object["metadata"]["name"] == "root"
            && status["jobID"] != before["status"]["jobID"]
            && (&status["phase"], &status["jobIDFinished"]) == (&json!("Succeeded"), &status["jobID"])
    };
    objects.expect_that(&any("Installation", "root"), "did not end its second job", is_done).await;
    server.kill(&SERVERS);
    server.restore();
    server.start_again(&programs).await;
    second.finished().await;
    let _third = server.operator(&binary, OPERATOR[1], &QUICK);
    objects.apply(&root(&["kept", "after"])).await;
    objects.expect_that(&any("Installation", "root"), "did not end its job after the restore", is_done).await;
    for name in ["kept", "between", "after"] {
        elsewhere.expect(&map(name)).await;
    }
    objects.delete(&any("Installation", "root")).await;
    objects.expect_absent(&any("Installation", "root")).await;
    for name in ["kept", "after"] {
        elsewhere.expect_absent(&map(name)).await;
    }
    elsewhere.expect(&map("between")).await;
}
