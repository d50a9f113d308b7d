//! What the program answers shells and kubectl that ask it for completions (C-402, C-403).

use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio, sync::Arc};

use orangery_tests::{
    objects::NAMESPACE,
    proxy::Sound,
    tree::{blueprint, installation},
    world::World,
};
use serde_json::json;
use tokio::process::Command;

/// How often it is asked: a machine under load may take longer than a prompt waits.
const TRIES: usize = 20;

/// What a program answers, on both outputs.
async fn answer(program: &Path, shell: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(words).env("ORANGERY_COMPLETE", shell).stdin(Stdio::null());
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn c_402_c_403_kubectl_is_answered_with_names_of_the_cluster_that_the_line_names() {
    let world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    for name in ["web", "worker", "database"] {
        world.objects.apply(&installation(name, &blueprint(json!({})))).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("kubeconfig"), world.objects.kubeconfig()).unwrap();
    let program = path("kubectl-orangery");
    symlink(env!("CARGO_BIN_EXE_orangery-under-test"), &program).unwrap();
    let kubeconfig = path("kubeconfig").to_string_lossy().into_owned();
    let line = ["--", "kubectl-orangery", "reconcile", "--kubeconfig", &kubeconfig, "-n", NAMESPACE, "w"];
    let mut names = String::new();
    for _ in 0..TRIES {
        names = answer(&program, "kubectl", &line).await;
        if names != ":4\n" {
            break;
        }
    }
    assert_eq!(names, "web\nworker\n:4\n");
    // What cannot be reached has no names, and says nothing in the middle of a prompt.
    let nowhere = ["--", "kubectl-orangery", "reconcile", "--kubeconfig", "/no/such/file", "w"];
    assert_eq!(answer(&program, "kubectl", &nowhere).await, ":4\n");
    assert_eq!(answer(&program, "no-such-shell", &nowhere).await, "");
    // Nor does a program that a kubeconfig names for credentials.
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "IfAvailable",
        "args": ["-c", "echo noise >&2"]});
    let noisy = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"exec": exec}}]});
    fs::write(path("noisy"), noisy.to_string()).unwrap();
    let noisy = path("noisy").to_string_lossy().into_owned();
    let line = ["--", "kubectl-orangery", "reconcile", "--kubeconfig", &noisy, "w"];
    assert_eq!(answer(&program, "kubectl", &line).await, ":4\n");
    // Not asked for completions, it is the program.
    let help = answer(&program, "kubectl", &["reconcile", "--help"]).await;
    assert!(help.contains("Usage: kubectl orangery reconcile [OPTIONS] <NAME>"), "{help}");
    world.end().await;
}
