//! What an API server answers a deletion with: `kubectl delete` shows it.

use kube::client::Body;
use orangery_tests::{
    objects::{NAMESPACE, Objects},
    tree::{API, any, blueprint, deploys, executions, imports_cluster, installation, on_cluster},
};
use serde_json::{Value, json};

const GUARD: &str = "orangery.dev/in-use";

/// Deletes what is under this path, and answers the warnings, as kubectl shows them.
async fn delete(cluster: &Objects, path: &str) -> Vec<String> {
    let request = http::Request::delete(path).body(Body::empty()).expect("a request");
    let answer = cluster.client().send(request).await.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let warnings = answer.headers().get_all("warning").into_iter();
    warnings.map(|warning| warning.to_str().unwrap_or_default().to_owned()).collect()
}

fn path(group: &str, plural: &str, name: &str) -> String {
    format!("/{group}/namespaces/{NAMESPACE}/{plural}/{name}")
}

#[tokio::test]
async fn c_151_a_deletion_of_what_is_in_use_is_answered_with_a_warning() {
    let cluster = crate::cluster().await;
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"kubeconfig": cluster.kubeconfig()}});
    cluster.apply(&secret("credentials")).await;
    cluster.apply(&secret("free")).await;
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "secretRef": {"name": "credentials", "key": "kubeconfig"}});
    cluster.apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "free"}, "spec": spec})).await;
    cluster.apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "used"}, "spec": spec})).await;
    cluster.apply(&json!({"apiVersion": API, "kind": "Context", "metadata": {"name": "used"}})).await;
    for name in ["settings", "free"] {
        cluster
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}}))
            .await;
    }
    let mut imports = imports_cluster();
    let settings = json!({"name": "settings", "type": "data", "schema": {"type": "string"}});
    imports.as_array_mut().expect("a list").push(settings);
    let fields = json!({"imports": imports, "deployExecutions": executions(&[deploys("cm", &[], "1")])});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["imports"]["targets"][0]["target"] = json!("used");
    root["spec"]["context"] = json!("used");
    root["spec"]["imports"]["data"] = json!([{"name": "settings", "configMapRef": {"name": "settings", "key": "k"}}]);
    cluster.apply(&root).await;
    let ours = API.split('/').next().map(|group| format!("apis/{group}/v1alpha1")).unwrap_or_default();
    let used = [
        ("Target", "used", path(&ours, "targets", "used")),
        ("Context", "used", path(&ours, "contexts", "used")),
        ("Secret", "credentials", path("api/v1", "secrets", "credentials")),
        ("ConfigMap", "settings", path("api/v1", "configmaps", "settings")),
    ];
    let api_of = |kind: &str| if ["Secret", "ConfigMap"].contains(&kind) { "v1" } else { API };
    for (kind, name, _) in &used {
        let api = api_of(kind);
        let is_guarded = |object: &Value| {
            object["metadata"]["name"] == *name && object["metadata"]["finalizers"].to_string().contains(GUARD)
        };
        cluster.expect_that(&json!({"apiVersion": api, "kind": kind}), "has no guard", is_guarded).await;
    }
    for (kind, name, path) in &used {
        let told = delete(&cluster, path).await;
        let expected = format!(
            "this {kind} is or was in use, and stays until nothing uses it; what does say its events: kubectl describe {} {name}",
            kind.to_lowercase()
        );
        assert!(told.len() == 1 && told[0].contains(&expected), "{told:?}");
        // C-67: so they do.
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
        let is_told = |event: &Value| {
            event["reason"] == "InUse"
                && event["regarding"]["kind"] == *kind
                && event["regarding"]["name"] == *name
                && event["note"]
                    .as_str()
                    .is_some_and(|note| note.starts_with("is deleted as soon as nothing uses it: "))
        };
        cluster.expect_that(&event, "no event says who uses it", is_told).await;
    }
    let free =
        [path(&ours, "targets", "free"), path("api/v1", "secrets", "free"), path("api/v1", "configmaps", "free")];
    for path in free {
        assert_eq!(delete(&cluster, &path).await, [""; 0], "{path}");
    }
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    for (kind, name, _) in &used {
        cluster.expect_absent(&json!({"apiVersion": api_of(kind), "kind": kind, "metadata": {"name": name}})).await;
    }
}
