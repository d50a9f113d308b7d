//! What a namespace writes, and what commands of others do with it (C-74).

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use orangery_core::error::moves_text;
use orangery_tests::{
    chart::{deploy, hook, item, job, packed},
    cluster::Cluster,
    repository,
    tree::{API, any, in_phase},
};
use serde_json::json;

use super::offline::write;

const OWNED: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: owned-by-evil, \
                     annotations: {helm.sh/hook: test}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, \
                     name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: default, namespace: default}]\n";

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_74_no_test_of_a_release_runs_where_one_has_no_namespace() {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral", "--simulate-workloads"]).await;
    write(&binary, "kubeconfig", cluster.kubeconfig());
    let chart = packed("1.0.0", &[("a.yaml", &hook("first", "test")), ("b.yaml", OWNED)]);
    deploy(&cluster, &item(&chart, &json!({}))).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    let ended = binary.run(&["test", "--kubeconfig", "kubeconfig", "rel"]).await;
    let refused = "error: the test ClusterRoleBinding owned-by-evil of app/templates/b.yaml belongs to no namespace, so no \
                   test is run: what a release says would be done with your rights; pass --allow-any-object if you have \
                   looked at it and want that\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(1), "", refused));
    cluster.expect_absent(&job("first")).await;
    let owned = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "owned-by-evil"}});
    cluster.expect_absent(&owned).await;
    let ended = binary.run(&["test", "--kubeconfig", "kubeconfig", "rel", "--allow-any-object"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    cluster.expect(&owned).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_38_a_plan_asks_for_no_token_of_an_account_that_has_not_opted_in() {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
    write(&binary, "kubeconfig", cluster.kubeconfig());
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "privileged"}})).await;
    let listener = json!({"server": "https://127.0.0.1:1/listener", "serviceAccount": {"name": "privileged"},
        "audience": ["sts.amazonaws.com"]});
    cluster
        .apply(&json!({
            "apiVersion": API,
            "kind": "Target",
            "metadata": {"name": "out"},
            "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"oidcConfig": listener}},
        }))
        .await;
    let mut item = item(&packed("1.0.0", &[]), &json!({}));
    item["spec"]["target"] = json!({"name": "out", "namespace": "default"});
    write(&binary, "item.yaml", item.to_string());
    let ended = binary.run(&["plan", "--kubeconfig", "kubeconfig", "-f", "item.yaml"]).await;
    let refused = "Target default/out names ServiceAccount default/privileged, which Targets may not use; annotate it with \
                   orangery.dev/allow-targets: \"true\"";
    assert!(ended.code == Some(1) && ended.stderr.contains(refused), "{ended:?}");
}

#[tokio::test]
async fn c_74_names_with_escapes_are_not_asked_for_and_move_nothing_where_they_are_shown() {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
    write(&binary, "kubeconfig", cluster.kubeconfig());
    let name = "c\u{1b}]0;pwned\u{7}\u{1b}[31mRED\u{1b}[0m\u{202e}\n2026-11-25T00:00:00Z  INFO forged line";
    let asks = json!({"landscaper.gardener.cloud/operation": "reconcile"});
    cluster
        .apply(&json!({
            "apiVersion": API,
            "kind": "Installation",
            "metadata": {"name": "tree", "annotations": asks},
            "spec": {"context": name, "blueprint": {"inline": {"filesystem": {"blueprint.yaml": "{}"}}}},
        }))
        .await;
    let failed = |tree: &serde_json::Value| {
        let message = tree.pointer("/status/lastError/message").map(ToString::to_string).unwrap_or_default();
        message.contains("no object can have that name")
    };
    cluster.expect_that(&any("Installation", "tree"), "is not refused for its context", failed).await;
    let commands = [
        &["inspect"][..],
        &["inspect", "-A"],
        &["inspect", "-o", "json"],
        &["inspect", "-o", "yaml"],
        &["why", "inst/tree"],
    ];
    for command in commands {
        let ended = binary.run(&[command, &["--kubeconfig", "kubeconfig"]].concat()).await;
        let text = ended.stdout + &ended.stderr;
        assert!(text.contains("tree"), "{text}");
        assert!(!text.chars().any(|c| c != '\n' && moves_text(c)), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("2026-11-25T00:00:00Z")), "{text:?}");
    }
}

fn with_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode can be set");
}

#[tokio::test]
async fn c_74_a_data_folder_that_others_could_write_is_refused_until_its_owner_closes_it() {
    let binary = crate::binary().await;
    let hello_world = repository().join("examples/hello-world").to_string_lossy().into_owned();
    let up = ["up", "--data", "state", "--port", "0", "--once", &hello_world];
    assert_eq!(binary.run(&up).await.code, Some(0));
    let state: PathBuf = binary.folder().join("state");
    with_mode(&state, 0o755);
    with_mode(&state.join("identity.json"), 0o644);
    let ended = binary.run(&up).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("state was open to others, so its objects"), "{ended:?}");
    with_mode(&state, 0o700);
    with_mode(&state.join("identity.json"), 0o600);
    assert_eq!(binary.run(&up).await.code, Some(0), "nothing was lost");
}
