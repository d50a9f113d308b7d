//! `kill -9` at any moment: the tree goes on, and ends as if nothing had happened.

use std::{env, net::TcpListener};

use orangery_tests::{
    binary::Binary,
    cluster::Cluster,
    crash_points::{Deed, Scenario, at_crash_points, at_points_of_freezing},
    tree::{
        API, any, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks, on_cluster,
        subinstallation,
    },
};
use serde_json::{Value, json};

/// An Installation `tree` of these items, which exports what the item `left` exports, with a sub-installation of one item.
fn tree(items: &[Value], content: &str) -> Value {
    let leaf = blueprint(json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(&[deploys("leaf", &[], content)]),
    }));
    let mut tree = on_cluster(installation(
        "tree",
        &blueprint(json!({
            "imports": imports_cluster(),
            "exports": [{"name": "out", "type": "data", "schema": {"type": "string"}}],
            "deployExecutions": executions(items),
            "subinstallations": [on_cluster(subinstallation("sub", &leaf))],
            "exportExecutions": [{
                "name": "e",
                "type": "Jinja",
                "template": r#"{"exports": {"out": {{ values.deployitems.left.content | tojson }}}}"#,
            }],
        })),
    ));
    if let Some(spec) = tree.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("exports".to_owned(), json!({"data": [{"name": "out", "dataRef": "out"}]}));
    }
    tree
}

/// Three items, the last of which ends as told.
fn chain(content: &str, end: &str) -> Value {
    let left = mocks("left", &["base"], "Succeeded", content);
    tree(&[deploys("base", &[], content), left, mocks("top", &["left"], end, content)], content)
}

async fn check(scenario: Scenario) {
    let points = at_crash_points(&scenario, &crate::ground(), crate::binary).await;
    println!("{points} crash points");
}

#[tokio::test]
async fn orc_06_a_first_job_has_one_outcome_at_every_crash_point() {
    check(Scenario { given: vec![], before: None, deed: Deed::Apply(chain("1", "Succeeded")) }).await;
}

#[tokio::test]
async fn orc_06_an_update_that_removes_an_item_has_one_outcome_at_every_crash_point() {
    let left = mocks("left", &[], "Succeeded", "2");
    let less = tree(&[left, deploys("new", &["left"], "2")], "2");
    check(Scenario { given: vec![], before: Some(chain("1", "Succeeded")), deed: Deed::Apply(less) }).await;
}

#[tokio::test]
async fn orc_06_a_failing_job_has_one_outcome_at_every_crash_point() {
    check(Scenario { given: vec![], before: None, deed: Deed::Apply(chain("1", "Failed")) }).await;
}

#[tokio::test]
async fn orc_06_a_deletion_has_one_outcome_at_every_crash_point() {
    check(Scenario { given: vec![], before: Some(chain("1", "Succeeded")), deed: Deed::Delete }).await;
}

/// The same where everything has to be approved.
fn approved(mut tree: Value) -> Value {
    tree["spec"]["approval"] = json!("Required");
    tree
}

#[tokio::test]
async fn orc_06_c_311_c_366_at_every_crash_point_of_an_update_only_what_was_approved_is_written() {
    let less = tree(&[mocks("left", &[], "Succeeded", "2"), deploys("new", &["left"], "2")], "2");
    let before = Some(approved(chain("1", "Succeeded")));
    check(Scenario { given: vec![], before, deed: Deed::Apply(approved(less)) }).await;
}

#[tokio::test]
async fn orc_06_c_311_c_366_at_every_crash_point_of_a_deletion_only_what_was_approved_is_deleted() {
    check(Scenario { given: vec![], before: Some(approved(chain("1", "Succeeded"))), deed: Deed::Delete }).await;
}

/// The scenarios of two operators: an update, and where all points are played the other ones as well.
fn with_two_operators() -> Vec<(&'static str, Scenario)> {
    let less = tree(&[mocks("left", &[], "Succeeded", "2"), deploys("new", &["left"], "2")], "2");
    let update = Scenario { given: vec![], before: Some(chain("1", "Succeeded")), deed: Deed::Apply(less) };
    let mut scenarios = vec![("an update", update)];
    if env::var_os("POINTS").is_some_and(|points| points == "all") {
        scenarios.push((
            "a first job",
            Scenario { given: vec![], before: None, deed: Deed::Apply(chain("1", "Succeeded")) },
        ));
        scenarios
            .push(("a failing job", Scenario { given: vec![], before: None, deed: Deed::Apply(chain("1", "Failed")) }));
        scenarios.push((
            "a deletion",
            Scenario { given: vec![], before: Some(chain("1", "Succeeded")), deed: Deed::Delete },
        ));
    }
    scenarios
}

/// Two operators: the one that wakes up late writes nothing more, and what it had under way does no harm.
#[tokio::test]
async fn c_34_a_job_has_one_outcome_wherever_an_operator_freezes_and_another_one_goes_on() {
    for (what, scenario) in with_two_operators() {
        let points = at_points_of_freezing(&scenario, &crate::ground(), crate::binary).await;
        println!("{what}: {points} points of freezing");
    }
}

/// A port that is free now, for every start of a test: Targets keep the address of their server.
fn port() -> String {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port().to_string()
}

async fn start(binary: &Binary, port: &str) -> Cluster {
    Cluster::start(binary, &["--data", "state", "--port", port]).await
}

/// The embedded server is killed with its operator: its data opens again.
#[tokio::test]
async fn a_server_with_its_operator_goes_on_where_its_data_ends() {
    let (binary, port) = (crate::binary().await, port());
    let mut cluster = start(&binary, &port).await;
    // With three in a row all of the namespace would be set aside (C-283).
    for round in ["1", "2"] {
        cluster.apply(&chain(round, "Succeeded")).await;
        cluster.expect(&in_phase("Installation", "tree", "Progressing")).await;
        cluster.kill().await;
        cluster = start(&binary, &port).await;
        let base =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leaf"}, "data": {"content": round}});
        cluster.expect(&base).await;
        cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    }
}

#[tokio::test]
async fn a_server_with_its_operator_goes_on_with_a_deletion_where_its_data_ends() {
    let (binary, port) = (crate::binary().await, port());
    let mut cluster = start(&binary, &port).await;
    cluster.apply(&chain("1", "Succeeded")).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&any("Installation", "tree")).await;
    cluster.kill().await;
    cluster = start(&binary, &port).await;
    for kind in ["Installation", "Execution", "DeployItem", "DataObject"] {
        cluster.expect_absent(&json!({"apiVersion": API, "kind": kind})).await;
    }
}
