//! The order in which items run.

use orangery_tests::{
    external_deployer::item,
    history::{History, Seen},
    recording::{
        difference::{Phases, of_phases},
        exceptions::expected,
        folder,
    },
    tree::{any, in_phase},
};

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
    cluster.expect(&in_phase("Installation", "diamond", "Succeeded")).await;
    check_order(&history.until_now().await, "Succeeded", &EDGES);

    cluster.delete(&any("Installation", "diamond")).await;
    cluster.expect_absent(&any("Installation", "diamond")).await;
    cluster.expect_absent(&item()).await;
    check_order(&history.until_now().await, "gone", &EDGES.map(|(first, second)| (second, first)));
}

/// Those of one Installation with one item, as Landscaper was recorded, and where Orangery has another one on purpose.
#[tokio::test]
async fn phases_are_seen_in_the_recorded_order() {
    let cluster = crate::cluster().await;
    let history = History::begin(cluster.client()).await;
    cluster.apply_yaml(INSTALLATION).await;
    cluster.expect(&in_phase("Installation", "diamond", "Succeeded")).await;
    cluster.delete(&any("Installation", "diamond")).await;
    cluster.expect_absent(&any("Installation", "diamond")).await;
    let history = history.until_now().await;
    let recorded = expected(&folder("hello-manifest")).phases;
    assert_eq!(recorded.len(), 3, "{recorded:?}");
    for (of, recorded) in &recorded {
        let kind = of.split(' ').next().unwrap();
        let name = if kind == "DeployItem" { "top" } else { "diamond" };
        let seen = history.phases(kind, name);
        let alone = |phases: &Vec<String>| Phases::from([(format!("{kind} {name}"), phases.clone())]);
        assert_eq!(of_phases(&alone(recorded), &alone(&seen)), [""; 0]);
    }
}
