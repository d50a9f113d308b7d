//! `orangery test` as users call it: the tests of a release that an item has made.

use orangery_tests::{
    chart::{deploy, item, packed},
    cluster::Cluster,
    tree::in_phase,
};
use serde_json::{Value, json};

use super::offline::write;

fn test(kind: &str, name: &str, weight: i32, annotations: &str) -> String {
    let (api_version, spec) = match kind {
        "Pod" => ("v1", "{restartPolicy: Never, containers: [{name: a, image: a}]}"),
        _ => ("batch/v1", "{template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}"),
    };
    format!(
        "apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: test, \
         helm.sh/hook-weight: \"{weight}\"{annotations}}}\nspec: {spec}\n"
    )
}

fn named(kind: &str, name: &str) -> Value {
    let api_version = if kind == "Pod" { "v1" } else { "batch/v1" };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}})
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn the_tests_of_a_release_run_by_weight_until_one_fails() {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral", "--simulate-workloads"]).await;
    write(&binary, "kubeconfig", cluster.kubeconfig());
    let run = async |arguments: &[&str]| {
        binary.run(&[&["test", "--kubeconfig", "kubeconfig", "rel"], arguments].concat()).await
    };
    let ended = run(&[]).await;
    let none =
        "error: no revision of a release rel is deployed in namespace default; helm list -A shows all there are\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), none));

    let tests = |last: &str| {
        let second = test("Pod", "second", 5, ", helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"");
        let third = test("Job", "third", 9, last);
        packed(
            "1.0.0",
            &[("first.yaml", &test("Job", "first", -1, "")), ("second.yaml", &second), ("third.yaml", &third)],
        )
    };
    deploy(&cluster, &item(&tests(""), &json!({}))).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.expect_absent(&named("Job", "first")).await;
    let passed = "Job default/first: succeeded\nPod default/second: succeeded\nJob default/third: succeeded\n";
    for _ in 0..2 {
        let ended = run(&[]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), passed), "{}", ended.stderr);
    }
    cluster.expect(&named("Job", "first")).await;
    cluster.expect_absent(&named("Pod", "second")).await;

    deploy(&cluster, &item(&tests(", simulate.orangery.dev/fail: \"not today\""), &json!({}))).await;
    let revision = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sh.helm.release.v1.rel.v2",
        "labels": {"status": "deployed"}}});
    cluster.expect(&revision).await;
    let ended = run(&[]).await;
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(1), 2), "{}", ended.stderr);
    let failed = "error: Job default/third (app/templates/third.yaml) has failed: ";
    assert!(ended.stderr.starts_with(failed) && ended.stderr.contains("not today"), "{}", ended.stderr);

    deploy(&cluster, &item(&tests(", simulate.orangery.dev/delay: forever"), &json!({}))).await;
    let revision = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sh.helm.release.v1.rel.v3",
        "labels": {"status": "deployed"}}});
    cluster.expect(&revision).await;
    let ended = run(&["--timeout", "2s"]).await;
    let late = "error: the tests of release default/rel did not end within 2s; they go on by themselves\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), late));
}
