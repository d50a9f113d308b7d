//! What a user reads when something is wrong below: the leaf, its cause, its code and its line, wherever it is asked for.

use std::fs;

use orangery_tests::{
    binary::Binary,
    cluster::Cluster,
    external_deployer::{ExternalDeployer, item},
    tree::{
        any, becomes_ready, blueprint, executions, imports_cluster, in_phase, installation, items, on_cluster,
        subinstallation, wait_until_idle,
    },
};
use serde_json::{Value, json};

/// A root with a sub-installation `mid`, which has a sub-installation `leaf` of these fields.
fn nested(leaf: Value) -> Value {
    let mid = blueprint(json!({"subinstallations": [subinstallation("leaf", &blueprint(leaf))]}));
    installation("root", &blueprint(json!({"subinstallations": [subinstallation("mid", &mid)]})))
}

async fn server(arguments: &[&str]) -> (Binary, Cluster) {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, arguments).await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("the file can be written");
    (binary, cluster)
}

/// What `orangery why` prints.
async fn why(binary: &Binary, of: &str) -> String {
    let ended = binary.run(&["why", of, "--kubeconfig", "kubeconfig"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout
}

#[tokio::test]
async fn the_root_names_the_leaf_that_failed_with_its_cause_code_and_template_line() {
    let (binary, cluster) = server(&[]).await;
    let template = "deployItems:\n- name: a\n  type: {{ nowhere.to.be.found }}\n";
    let broken = json!({"deployExecutions": [{"name": "broken", "type": "Jinja", "template": template}]});
    cluster.apply(&nested(broken)).await;
    let root = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let error = &root["status"]["lastError"];
    let message = error["message"].as_str().unwrap_or_default();
    for part in ["installation mid-", "installation leaf-", "broken", "at 3:12", "nowhere"] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
    // The code of what is of interest alone stays where it is: the parents do not have it.
    let installations = cluster.list(&any("Installation", "root")).await;
    let leaf =
        installations.iter().find(|one| one["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("leaf-")));
    let codes = leaf.map(|leaf| leaf["status"]["lastError"]["codes"].clone());
    assert_eq!((codes, &error["codes"]), (Some(json!(["ERR_FOR_INFO_ONLY"])), &Value::Null), "{error}");
    let chain = why(&binary, "root").await;
    let lines: Vec<&str> = chain.lines().collect();
    assert!(
        matches!(lines.as_slice(), [root, mid, leaf, error, ..]
        if root.starts_with("installation root failed") && mid.contains("installation mid-") && leaf.contains("installation leaf-")
            && error.contains("at 3:12")),
        "{chain}"
    );
}

#[tokio::test]
async fn why_leads_to_the_item_that_is_waited_for_or_failed() {
    let (binary, cluster) = server(&[]).await;
    cluster.apply(&nested(json!({"deployExecutions": items(&[("s", &[])], "1")}))).await;
    ExternalDeployer(&cluster).triggered("s").await;
    wait_until_idle(&cluster).await;
    let chain = why(&binary, "inst/root").await;
    let end = "nobody has taken it, neither a component for example.com/external nor another deployer";
    assert!(chain.contains("because deploy item s (") && chain.contains(end) && chain.contains("fix:"), "{chain}");
    ExternalDeployer(&cluster).fail("s", "the disk is full").await;
    let root = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = root["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("deploy item s failed: the disk is full"), "{message}");
    let chain = why(&binary, "inst/root").await;
    assert!(chain.contains("error:  the disk is full") && chain.contains("reason: Broken (in Deploy)"), "{chain}");
    let absent = binary.run(&["why", "di/absent", "--kubeconfig", "kubeconfig"]).await;
    assert_eq!(absent.code, Some(1), "{}", absent.stderr);
}

#[tokio::test]
async fn c_05_a_spec_that_changed_starts_a_job_under_the_policy() {
    let (_binary, cluster) = server(&[]).await;
    let root = |content: &str| {
        let mut root = installation("root", &blueprint(json!({"deployExecutions": items(&[("r", &[])], content)})));
        root["metadata"]["annotations"] = json!({});
        root["spec"]["reconcilePolicy"] = json!("OnSpecChange");
        root
    };
    for content in ["1", "2"] {
        cluster.apply(&root(content)).await;
        assert_eq!(ExternalDeployer(&cluster).triggered("r").await["spec"]["config"]["content"], content);
        ExternalDeployer(&cluster).succeed("r").await;
        let generation = if content == "1" { 2 } else { 3 };
        let done = json!({"observedGeneration": generation, "phase": "Succeeded"});
        let mut expected = any("Installation", "root");
        expected["status"] = done;
        cluster.expect(&expected).await;
    }
    let mut bad = root("3");
    bad["spec"]["reconcilePolicy"] = json!("Sometimes");
    assert!(matches!(cluster.try_apply(&bad).await, Err(kube::Error::Api(status)) if status.code == 422));
}

#[tokio::test]
async fn wf_15_c_08_items_above_the_limit_of_the_host_wait_for_a_place_and_say_so() {
    let (binary, cluster) = server(&["--max-parallel=1"]).await;
    let tree = |name: &str| {
        let items = executions(&[becomes_ready(name, &[])]);
        on_cluster(installation(name, &blueprint(json!({"imports": imports_cluster(), "deployExecutions": items}))))
    };
    let says = |message: &'static str| {
        move |item: &Value| {
            let conditions = item["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|one| one["type"] == "Progressing" && one["message"] == message)
        }
    };
    let ready = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"ready": "yes"}});
    cluster.apply(&tree("one")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})).await;
    cluster.apply(&tree("two")).await;
    let waits = says("waiting for Host maxParallel=1 to have room");
    let two = cluster.expect_that(&item(), "nobody waits for a place", &waits).await;
    assert_eq!(
        (&two["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"], &two["status"]["lastReconcileTime"]),
        (&json!("two"), &Value::Null),
        "the clock of its timeout has not begun"
    );
    let chain = why(&binary, "inst/two").await;
    assert!(chain.contains(") has not begun: waiting for Host maxParallel=1 to have room (since "), "{chain}");
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}})).await;
    cluster.merge(&ready("one")).await;
    cluster.expect(&in_phase("Installation", "one", "Succeeded")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}})).await;
    // Deletions need a place too, and an item that is gone gives its own back.
    cluster.delete(&any("Installation", "one")).await;
    cluster.expect_that(&item(), "the deletion does not wait for a place", &waits).await;
    cluster.merge(&ready("two")).await;
    cluster.expect_absent(&any("Installation", "one")).await;
    cluster.delete(&any("Installation", "two")).await;
    cluster.expect_absent(&any("Installation", "two")).await;
}

#[tokio::test]
async fn c_67_a_target_in_use_names_what_uses_it_while_it_is_being_deleted() {
    let (binary, cluster) = server(&[]).await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[becomes_ready("cm", &[])])});
    cluster.apply(&on_cluster(installation("root", &blueprint(fields)))).await;
    let held = |object: &Value| object["metadata"]["finalizers"].to_string().contains("orangery.dev/in-use");
    let target = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target"});
    cluster.expect_that(&target, "nobody guards it", held).await;
    let name = cluster.expect_that(&item(), "is not there", |_| true).await["metadata"]["name"].clone();
    let name = name.as_str().unwrap_or_default();
    cluster.delete(&any("Target", "cluster")).await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let is_told = |event: &Value| {
        event["reason"] == "InUse"
            && event["regarding"]["kind"] == "Target"
            && event["note"].as_str().is_some_and(|note| note.contains(&format!("DeployItem {name}")))
    };
    cluster.expect_that(&event, "no event says who uses it", is_told).await;
    let chain = why(&binary, "target/cluster").await;
    assert_eq!(
        chain,
        format!(
            "target cluster is being deleted, and stays until nothing uses it\n  because deploy item {name} uses it\n"
        )
    );
}
