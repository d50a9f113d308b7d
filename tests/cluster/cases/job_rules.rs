//! Rules over what a whole job writes hold before the first item of an Execution writes anything (C-362), and components say whether rules
//! hold (C-363).

use std::fs;

use orangery_tests::{
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster, subinstallation},
};
use serde_json::{Value, json};

use super::{
    gate_expressions::components::judges,
    policies::{policy, put},
};

/// A policy with these rules.
fn rules(plans: Value) -> Value {
    let mut team = policy("team", json!({}));
    team["spec"]["profile"] = json!("compatible");
    team["spec"]["plans"] = plans;
    team
}

/// A rule over what is created and deleted by a whole job.
fn at_most(number: usize) -> Value {
    let expression = format!("counts.create + counts.delete <= {number}");
    json!({"jobRules": [{"name": "few", "expression": expression, "message": "so much is for people"}]})
}

fn web(items: &[Value]) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(items)}));
    on_cluster(installation("web", &blueprint))
}

/// Two items that wait for nothing, and one that comes after one of them.
fn three() -> Value {
    web(&[deploys("a", &[], "1"), deploys("b", &["a"], "1"), deploys("c", &[], "1")])
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}})
}

async fn failure(cluster: &Cluster, phase: &str) -> String {
    let failed = cluster.expect(&in_phase("Installation", "web", phase)).await;
    failed["status"]["lastError"]["message"].to_string()
}

#[tokio::test]
async fn c_362_a_rule_over_the_whole_job_denies_before_the_first_of_its_items_writes_anything() {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, &[]).await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("the file can be written");
    put(&cluster, &rules(at_most(2))).await;
    cluster.apply(&three()).await;
    let message = failure(&cluster, "Failed").await;
    let said = "nothing is written: rule few of NamespacePolicy team, line spec.plans.jobRules: so much is for people; correct the item";
    assert!(message.contains(said), "{message}");
    for name in ["a", "b", "c"] {
        cluster.expect_absent(&config_map(name)).await;
    }
    let shown = binary.run(&["plan", "web", "--brief", "--kubeconfig", "kubeconfig"]).await;
    let told = "! the job fails: rule few of NamespacePolicy team, line spec.plans.jobRules: so much is for people\n";
    assert!(shown.code == Some(1) && shown.stdout.contains(told), "{shown:?}");
    // As many as it may.
    put(&cluster, &rules(at_most(3))).await;
    cluster.apply(&three()).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    let shown = binary.run(&["plan", "web", "--brief", "--kubeconfig", "kubeconfig"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    // Nothing of them waits for anybody, and their Plans go with the items.
    let waits = binary.run(&["approve", "--kubeconfig", "kubeconfig"]).await;
    assert_eq!(waits.stdout, "no Plan in namespace default waits to be approved\n");
    put(&cluster, &rules(at_most(2))).await;
    cluster.delete(&any("Installation", "web")).await;
    let message = failure(&cluster, "DeleteFailed").await;
    assert!(message.contains("line spec.plans.jobRules: so much is for people"), "{message}");
    for name in ["a", "b", "c"] {
        cluster.expect(&config_map(name)).await;
    }
    cluster.delete(&rules(json!({}))).await;
    cluster.expect_absent(&any("Installation", "web")).await;
    for name in ["a", "b", "c"] {
        cluster.expect_absent(&config_map(name)).await;
    }
}

#[tokio::test]
async fn c_362_what_comes_later_in_the_job_counts_with_what_was_written_before() {
    let cluster = crate::cluster().await;
    put(&cluster, &rules(at_most(1))).await;
    // Which one comes second is not known; both may be denied.
    let below = |name: &str| {
        let items = executions(&[deploys(name, &[], "1")]);
        on_cluster(subinstallation(name, &blueprint(json!({"imports": imports_cluster(), "deployExecutions": items}))))
    };
    let below = json!([below("x"), below("y")]);
    let root = blueprint(json!({"imports": imports_cluster(), "subinstallationExecutions": [
        {"name": "s", "type": "Jinja", "template": json!({"subinstallations": below}).to_string()},
    ]}));
    cluster.apply(&on_cluster(installation("web", &root))).await;
    let message = failure(&cluster, "Failed").await;
    assert!(message.contains("line spec.plans.jobRules: so much is for people"), "{message}");
    let written = cluster.list(&config_map("")).await;
    let written = written.iter().filter(|map| map["data"]["content"] == "1").count();
    assert!(written <= 1, "{written}");
}

#[tokio::test]
async fn c_362_items_that_wait_for_a_place_count_as_well() {
    let cluster = crate::cluster_with(&["--max-parallel=1"]).await;
    put(&cluster, &rules(at_most(2))).await;
    cluster.apply(&web(&[deploys("a", &[], "1"), deploys("b", &[], "1"), deploys("c", &[], "1")])).await;
    let message = failure(&cluster, "Failed").await;
    assert!(message.contains("line spec.plans.jobRules: so much is for people"), "{message}");
    for name in ["a", "b", "c"] {
        cluster.expect_absent(&config_map(name)).await;
    }
    put(&cluster, &rules(at_most(3))).await;
    cluster.apply(&web(&[deploys("a", &[], "1"), deploys("b", &[], "1"), deploys("c", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
}

/// Nobody is asked to approve what a rule denies anyway.
#[tokio::test]
async fn c_362_a_rule_denies_before_anybody_is_asked_and_what_is_approved_is_held_against_it() {
    let cluster = crate::cluster().await;
    put(&cluster, &rules(at_most(2))).await;
    let mut three = three();
    three["spec"]["approval"] = json!("Required");
    cluster.apply(&three).await;
    let message = failure(&cluster, "Failed").await;
    assert!(message.contains("line spec.plans.jobRules: so much is for people"), "{message}");
    put(&cluster, &rules(at_most(3))).await;
    cluster.apply(&three).await;
    for _ in 0..3 {
        let plan = json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "Plan", "metadata": {"namespace": NAMESPACE}});
        let is_open = |plan: &Value| plan["status"]["phase"] == "Ready" && plan["status"]["approval"].is_null();
        let open = cluster.expect_that(&plan, "is not open", is_open).await;
        let approval = json!({"decision": "Approve", "planHash": open["spec"]["planHash"], "by": "anna"});
        cluster.patch_status(&open, json!({"approval": approval})).await;
    }
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
}

#[tokio::test]
async fn c_363_a_component_says_whether_a_rule_holds_and_what_does_not_answer_denies() {
    let plugins = judges();
    let cluster = crate::cluster_with(&["--plugins", &plugins.path().to_string_lossy()]).await;
    let rule = |config: &str| json!({"name": "judged", "component": {"type": "example.org/judges", "config": config}});
    let denied = async |plans: Value, item: &str| {
        put(&cluster, &rules(plans)).await;
        cluster.apply(&web(&[deploys(item, &[], "1")])).await;
        // A change of the policy begins a job as well, of what was there before.
        let says = |root: &Value| {
            let message = root["status"]["lastError"]["message"].to_string();
            root["status"]["phase"] == "Failed" && message.contains(item) && message.contains("rule ")
        };
        let failed = cluster.expect_that(&any("Installation", "web"), "was not denied", says).await;
        cluster.expect_absent(&config_map(item)).await;
        failed["status"]["lastError"]["message"].to_string()
    };
    let message = denied(json!({"rules": [rule("not-met")]}), "first").await;
    let told = "rule judged of NamespacePolicy team, line spec.plans.rules: GateKind::ItemPlan of web-";
    assert!(message.contains(told), "{message}");
    let message = denied(json!({"jobRules": [rule("not-met")]}), "second").await;
    assert!(message.contains("line spec.plans.jobRules: GateKind::JobPlan of  sees {"), "{message}");
    let message = denied(json!({"jobRules": [rule("unknown")]}), "third").await;
    assert!(message.contains("it cannot be evaluated: example.org/judges does not know: "), "{message}");
    let message = denied(json!({"rules": [rule("loop")]}), "fourth").await;
    assert!(message.contains("line spec.plans.rules: it cannot be evaluated: component judges 1.0.0: "), "{message}");
    let nobody = json!({"name": "nobody", "component": {"type": "example.org/nobody"}});
    let message = denied(json!({"rules": [nobody]}), "fifth").await;
    let told = "no component serves the gate type \\\"example.org/nobody\\\"; known are: example.org/judges";
    assert!(message.contains(told), "{message}");
    put(&cluster, &rules(json!({"rules": [rule("met")], "jobRules": [rule("met")]}))).await;
    cluster.apply(&web(&[deploys("sixth", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "web", "Succeeded")).await;
    cluster.expect(&config_map("sixth")).await;
}
