//! The order in which items run.

use orangery_tests::history::{History, Seen};
use serde_json::{Value, json};

const INSTALLATION: &str = r#"
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: diamond
  annotations:
    landscaper.gardener.cloud/operation: reconcile
spec:
  imports:
    targets:
    - {name: cluster, target: cluster}
  blueprint:
    inline:
      filesystem:
        blueprint.yaml: |
          apiVersion: landscaper.gardener.cloud/v1alpha1
          kind: Blueprint
          imports:
          - {name: cluster, type: target, targetType: landscaper.gardener.cloud/kubernetes-cluster}
          deployExecutions:
          - name: default
            type: Jinja
            template: |
              deployItems:
              {%- for name, after in [("top", ["left", "right"]), ("left", ["bottom"]), ("right", ["bottom"]), ("bottom", [])] %}
              - name: {{ name }}
                type: landscaper.gardener.cloud/kubernetes-manifest
                target: {import: cluster}
                dependsOn: {{ after | tojson }}
                config:
                  apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
                  kind: ProviderConfiguration
                  manifests:
                  - manifest:
                      apiVersion: v1
                      kind: ConfigMap
                      metadata: {name: {{ name }}, namespace: default}
              {%- endfor %}
"#;

fn installation(phase: Option<&str>) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": {"name": "diamond"},
        "status": {"phase": phase},
    })
}

#[track_caller]
fn check_order(history: &Seen, phase: &str, pairs: &[(&str, &str)]) {
    for (first, second) in pairs {
        let places = [first, second].map(|name| history.place("DeployItem", name, phase));
        let in_order = matches!(places, [Some(first), Some(second)] if first < second);
        assert!(in_order, "{first} is {phase} before {second}: {:#?}", history.message_of());
    }
}

const EDGES: [(&str, &str); 4] = [("bottom", "left"), ("bottom", "right"), ("left", "top"), ("right", "top")];

#[tokio::test]
async fn items_start_after_those_they_depend_on_and_are_deleted_before_them() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply_yaml(INSTALLATION).await;
    cluster.expect(&installation(Some("Succeeded"))).await;
    check_order(&history.until_now().await, "Succeeded", &EDGES);

    cluster.delete(&installation(None)).await;
    cluster.expect_absent(&installation(None)).await;
    let item = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem"});
    cluster.expect_absent(&item).await;
    check_order(&history.until_now().await, "gone", &EDGES.map(|(first, second)| (second, first)));
}

/// What the recordings of Landscaper show for one installation with one item, `tests/golden/hello-manifest`.
const RECORDED: [(&str, &[&str]); 3] = [
    (
        "Installation",
        &[
            "",
            "Init",
            "CleanupOrphaned",
            "ObjectsCreated",
            "Progressing",
            "Completing",
            "Succeeded",
            "InitDelete",
            "TriggerDelete",
            "Deleting",
            "gone",
        ],
    ),
    (
        "Execution",
        &["", "Init", "Progressing", "Completing", "Succeeded", "InitDelete", "TriggerDelete", "Deleting", "gone"],
    ),
    ("DeployItem", &["", "Init", "Progressing", "Succeeded", "InitDelete", "Deleting", "gone"]),
];

#[tokio::test]
async fn phases_are_seen_in_the_recorded_order() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply_yaml(INSTALLATION).await;
    cluster.expect(&installation(Some("Succeeded"))).await;
    cluster.delete(&installation(None)).await;
    cluster.expect_absent(&installation(None)).await;
    let history = history.until_now().await;
    for (kind, recorded) in RECORDED {
        let name = if kind == "DeployItem" { "top" } else { "diamond" };
        let seen = history.phases(kind, name);
        let mut rest = recorded.iter();
        let in_order = seen.iter().all(|phase| rest.any(|recorded| recorded == phase));
        assert!(in_order && seen.len() > 2, "{kind} {name}: {seen:?} is no part of {recorded:?}");
    }
}
