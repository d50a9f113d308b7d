//! Policies that change while no operator runs: on a server that outlives its operator.

use orangery_tests::{
    cluster::own_target,
    kube::{Kube, OPERATOR},
    objects::Objects,
    tree::{any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

fn root(name: &str, item: Value) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])}));
    on_cluster(installation(name, &blueprint))
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

/// A policy that denies a kind.
fn without(of_kind: &str) -> Value {
    let deny = json!([{"group": "core", "kind": of_kind}]);
    json!({
        "apiVersion": "orangery.dev/v1alpha1", "kind": "NamespacePolicy", "metadata": {"name": "team"},
        "spec": {
            "namespaces": {"names": ["default"]}, "targets": {"kinds": {"deny": deny}},
            "egress": {"networks": ["127.0.0.0/8"]},
        },
    })
}

async fn refused(objects: &Objects, name: &str) {
    let is_refused = |object: &Value| {
        object["metadata"]["name"] == name
            && object["status"]["jobID"] == object["status"]["jobIDFinished"]
            && object["status"]["lastError"]["message"].to_string().contains("line spec.targets.kinds.deny")
    };
    objects.expect_that(&any("Installation", name), "was not refused", is_refused).await;
}

/// One root is under way and may write no more, one has been refused and may: the next operator knows of both.
#[tokio::test]
async fn c_80_a_policy_that_changes_while_no_operator_runs_counts_at_the_next_start() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    objects.apply(&without("Secret")).await;
    objects.apply(&own_target(&server.kubeconfig())).await;
    let operator = server.operator(&binary, OPERATOR[0], &["--target-accounts=any"]);
    objects.apply(&root("waits", becomes_ready("waits", &[]))).await;
    objects.expect(&config_map("waits")).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "refused", "namespace": "default"}});
    let mut writes_secret = deploys("refused", &[], "1");
    writes_secret["config"]["manifests"] = json!([{"policy": "manage", "manifest": secret}]);
    objects.apply(&root("refused", writes_secret)).await;
    refused(&objects, "refused").await;
    operator.kill().await;
    objects.apply(&without("ConfigMap")).await;
    let _operator = server.operator(&binary, OPERATOR[0], &["--target-accounts=any"]);
    refused(&objects, "waits").await;
    objects.expect(&in_phase("Installation", "refused", "Succeeded")).await;
    objects.expect(&secret).await;
}

/// Whoever may not read policies is told that what they refuse is not known.
#[tokio::test]
async fn c_87_a_plan_by_a_user_without_the_right_to_read_policies_says_so() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    objects.apply(&own_target(&server.kubeconfig())).await;
    let (group, metadata) = ("rbac.authorization.k8s.io", json!({"name": "plans", "namespace": "default"}));
    let rules = json!([
        {"apiGroups": ["landscaper.gardener.cloud"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list"]},
    ]);
    objects
        .apply(&json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules}))
        .await;
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "plans"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    });
    objects.apply(&binding).await;
    let item = deploys("planned", &[], "1");
    let spec =
        json!({"type": item["type"], "config": item["config"], "target": {"name": "cluster", "namespace": "default"}});
    let item = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem", "metadata": {"name": "planned"}, "spec": spec,
    });
    let kubeconfig = server.kubeconfig_of("alice", "default");
    for (name, text) in [("kubeconfig", kubeconfig), ("item.yaml", item.to_string())] {
        std::fs::write(binary.folder().join(name), text).expect("the file can be written");
    }
    let plan = binary.run(&["plan", "--kubeconfig", "kubeconfig", "-f", "item.yaml", "--brief"]).await;
    let note = "\n! NamespacePolicies cannot be read, so what they refuse is not known here: ";
    assert!(plan.code == Some(0) && plan.stdout.contains(note), "{plan:?}");
    assert!(plan.stdout.ends_with(": 1 to create\n"), "{plan:?}");
}
