//! The stock Helm CLI against the server: what it needs of one is there, and behaves as on a real one.

use orangery_tests::{helm::Helm, objects::Objects};
use serde_json::{Value, json};

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn job(name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}})
}

/// An object of the release `w` in the namespace that the release has made.
fn in_shop(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", "namespace": "shop"}})
}

async fn names(cluster: &Objects, of_kind: &Value) -> Vec<String> {
    let names = cluster.list(of_kind).await.into_iter();
    let names = names.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned));
    names.filter(|name| name.starts_with("h-")).collect()
}

fn revisions(states: &[&str]) -> Vec<(u64, String)> {
    (1..).zip(states.iter().map(|state| (*state).to_owned())).collect()
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn hooks_are_awaited_and_deleted_by_their_policies() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    helm.does(&["install", "h", "hooks", "--wait"]).await;
    assert_eq!(names(&cluster, &job("")).await, ["h-prepare"], "only this one may stay");
    let prepared = cluster.expect(&job("h-prepare")).await;
    helm.does(&["upgrade", "h", "hooks", "--set", "greeting=again", "--wait"]).await;
    let again = cluster.expect(&job("h-prepare")).await;
    assert_ne!(prepared["metadata"]["uid"], again["metadata"]["uid"], "it is made anew");
    helm.does(&["rollback", "h", "1", "--wait"]).await;
    assert_eq!(names(&cluster, &job("")).await, ["h-prepare", "h-stepped-back"]);
    let greeting = cluster.expect(&config_map("h-greeting")).await;
    assert_eq!(greeting["data"]["greeting"], json!("hello"));
    assert_eq!(helm.history("h", "default").await, revisions(&["superseded", "superseded", "deployed"]));
    helm.does(&["uninstall", "h", "--wait"]).await;
    assert_eq!(names(&cluster, &config_map("")).await, ["h-before", "h-gone"], "hooks are not part of the release");
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn a_hook_that_fails_fails_the_release() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    let complaint = helm.refuses(&["install", "h", "hooks", "--set", "failing=migrate", "--wait"]).await;
    assert!(complaint.contains("resource Job/default/h-migrate not ready. status: Failed"), "{complaint}");
    assert_eq!(helm.history("h", "default").await, revisions(&["failed"]));
    cluster.expect_absent(&config_map("h-greeting")).await;
    // Another try takes up what is there.
    helm.does(&["upgrade", "h", "hooks", "--reset-values", "--wait"]).await;
    assert_eq!(helm.history("h", "default").await, revisions(&["superseded", "deployed"]));
    cluster.expect(&config_map("h-greeting")).await;
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn a_release_is_upgraded_by_either_way_and_rolled_back() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    let (deployment, service) = (in_shop("apps/v1", "Deployment"), in_shop("v1", "Service"));
    helm.does(&["install", "w", "web", "-n", "shop", "--create-namespace", "--wait"]).await;
    let address = cluster.expect(&service).await["spec"]["clusterIP"].clone();
    let env = async || cluster.expect(&deployment).await["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let upgrade = async |set: &str, way: &str| {
        helm.does(&["upgrade", "w", "web", "-n", "shop", "--set", set, way, "--wait"]).await;
    };
    upgrade("replicas=3,env[0].name=A,env[0].value=b", "--server-side=true").await;
    assert_eq!(env().await, json!([variable("RELEASE", "w"), variable("A", "b")]));
    upgrade("replicas=1,env[0].name=B,env[0].value=c", "--server-side=false").await;
    assert_eq!(env().await, json!([variable("RELEASE", "w"), variable("B", "c")]));
    upgrade("replicas=2,env[0].name=A,env[0].value=d", "--server-side=true").await;
    assert_eq!(env().await, json!([variable("RELEASE", "w"), variable("A", "d")]));
    let status = cluster.expect(&deployment).await;
    assert_eq!(status["status"]["readyReplicas"], json!(2));
    helm.does(&["rollback", "w", "1", "-n", "shop", "--wait"]).await;
    assert_eq!(env().await, json!([variable("RELEASE", "w")]));
    let states = ["superseded", "superseded", "superseded", "superseded", "deployed"];
    assert_eq!(helm.history("w", "shop").await, revisions(&states));
    assert_eq!(cluster.expect(&service).await["spec"]["clusterIP"], address, "what the server chose stays");
    let listed = helm.tells(&["list", "-A"]).await;
    let message = ["name", "namespace", "revision", "status", "chart"].map(|field| listed[0][field].clone());
    assert_eq!(message, ["w", "shop", "5", "deployed", "web-1.0.0"].map(|text| json!(text)));
    helm.does(&["uninstall", "w", "-n", "shop", "--wait"]).await;
    cluster.expect_absent(&deployment).await;
    assert_eq!(helm.tells(&["list", "-A"]).await, json!([]));
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn queries_about_a_release_are_answered() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    helm.does(&["install", "w", "web", "-n", "shop", "--create-namespace", "--set", "replicas=3", "--wait"]).await;
    let message = helm.does(&["test", "w", "-n", "shop", "--logs"]).await;
    assert!(
        message.contains("TEST SUITE:     w-reachable") && message.contains("Phase:          Succeeded"),
        "{message}"
    );
    // The tables of the server, without ages.
    let status = helm.does(&["status", "w", "-n", "shop"]).await;
    for line in
        ["==> v1/Deployment", "NAME   READY   UP-TO-DATE   AVAILABLE   AGE", "w      3/3     3            3           "]
    {
        assert!(status.lines().any(|message| message.starts_with(line)), "{line:?} in {status}");
    }
    assert_eq!(helm.does(&["get", "notes", "w", "-n", "shop"]).await, "NOTES:\nw has 3 replicas in shop.\n\n");
    assert_eq!(helm.tells(&["get", "values", "w", "-n", "shop"]).await, json!({"replicas": 3}));
    let all = helm.does(&["get", "all", "w", "-n", "shop"]).await;
    assert!(all.contains("kind: Deployment") && all.contains("helm.sh/hook: test"), "{all}");
    // What a chart may ask of the server.
    let mut seen = config_map("w-seen");
    seen["metadata"]["namespace"] = json!("shop");
    let seen = cluster.expect(&seen).await;
    assert_eq!(seen["data"], json!({"phase": "unknown", "policies": "true"}), "the namespace came later");
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn a_dry_run_asks_the_server_and_leaves_nothing() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    let message = helm.does(&["install", "w", "web", "--dry-run=server"]).await;
    assert!(message.contains("phase: \"Active\""), "lookup reads the server: {message}");
    let message = helm.does(&["template", "w", "web", "--dry-run=server"]).await;
    assert!(message.contains("phase: \"Active\""), "lookup reads the server: {message}");
    assert_eq!(helm.tells(&["list"]).await, json!([]));
    helm.does(&["install", "w", "web", "--wait"]).await;
    helm.does(&["upgrade", "w", "web", "--dry-run=server", "--set", "replicas=7"]).await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}});
    assert_eq!(cluster.expect(&deployment).await["spec"]["replicas"], json!(2));
    assert_eq!(helm.history("w", "default").await, revisions(&["deployed"]));
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn definitions_come_before_their_objects_and_are_kept() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    let gadget = json!({"apiVersion": "charts.example.org/v1", "kind": "Gadget", "metadata": {"name": "c"}});
    helm.does(&["install", "c", "custom", "--wait"]).await;
    let spec = async || cluster.expect(&gadget).await["spec"].clone();
    assert_eq!(spec().await, json!({"size": 3, "colour": "green", "parts": ["wheel", "axle"]}));
    helm.does(&["upgrade", "c", "custom", "--set", "size=4", "--server-side=false"]).await;
    assert_eq!(spec().await["size"], json!(4));
    let complaint = helm.refuses(&["upgrade", "c", "custom", "--set", "size=0", "--server-side=false"]).await;
    assert!(complaint.contains("should be greater than or equal to 1"), "{complaint}");
    helm.does(&["upgrade", "c", "custom", "--set", "size=5", "--server-side=true"]).await;
    assert_eq!(spec().await["size"], json!(5));
    assert_eq!(helm.history("c", "default").await, revisions(&["superseded", "superseded", "failed", "deployed"]));
    helm.does(&["uninstall", "c", "--wait"]).await;
    cluster.expect_absent(&gadget).await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.charts.example.org"}});
    cluster.expect(&definition).await;
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn an_existing_object_belongs_to_no_release_until_it_is_adopted() {
    let (cluster, _workloads) = crate::cluster_with_workloads().await;
    let helm = Helm::of(cluster.kubeconfig());
    let mut mine = config_map("h-greeting");
    mine["data"] = json!({"greeting": "mine", "other": "kept"});
    cluster.apply(&mine).await;
    let complaint = helm.refuses(&["install", "h", "hooks", "--wait"]).await;
    assert!(complaint.contains("invalid ownership metadata"), "{complaint}");
    let complaint = helm.refuses(&["upgrade", "--install", "h", "hooks", "--take-ownership", "--wait"]).await;
    assert!(complaint.contains("conflict with \"suite\": .data.greeting"), "{complaint}");
    helm.does(&["upgrade", "--install", "h", "hooks", "--take-ownership", "--force-conflicts", "--wait"]).await;
    let taken = cluster.expect(&config_map("h-greeting")).await;
    assert_eq!(taken["data"]["greeting"], json!("hello"));
    assert_eq!(taken["metadata"]["labels"]["app.kubernetes.io/managed-by"], json!("Helm"));
}
