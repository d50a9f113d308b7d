//! The chart of the operator as the stock Helm renders it: all of it, and what has to hold whatever its values are.

use orangery_tests::rendered::{expected, names, objects, of_kind, render};
use serde_json::{Value, json};

/// What is wrong where it is not as it was: to be looked at, and then to be kept.
const MEND: &str = "the chart renders otherwise; look at the difference, and write what is right to tests/rendered";

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn the_chart_renders_what_is_kept_for_each_set_of_values() {
    assert_eq!(names(), ["all", "metrics", "namespaces", "open-metrics", "usual"]);
    for name in names() {
        let (rendered, kept) = (render(&name).await, expected(&name));
        let differs = rendered.lines().zip(kept.lines()).enumerate().find(|(_, (one, other))| one != other);
        assert_eq!(differs, None, "{name}: {MEND}");
        assert_eq!(rendered.lines().count(), kept.lines().count(), "{name}: {MEND}");
    }
}

/// The only container of the operator.
fn container(deployment: &Value) -> &Value {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    assert_eq!(containers.len(), 1);
    &containers[0]
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn the_pod_is_restricted_whatever_the_values_are() {
    for name in names() {
        let objects = objects(&render(&name).await);
        let deployment = of_kind(&objects, "Deployment");
        let pod = &deployment["spec"]["template"]["spec"];
        let user = json!({
            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        assert_eq!(pod["securityContext"], user, "{name}");
        let security = json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(container(deployment)["securityContext"], security, "{name}");
        for of_the_host in ["hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod[of_the_host], Value::Null, "{name}");
        }
        let volumes = pod["volumes"].as_array().expect("volumes");
        assert!(volumes.iter().all(|volume| volume.get("hostPath").is_none()), "{name}: {volumes:?}");
        let arguments = container(deployment)["args"].as_array().expect("arguments");
        assert_eq!(arguments.contains(&json!("--mock-deployer")), name == "all", "{name}: {arguments:?}");
    }
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn the_network_policy_lets_in_probes_and_readers_of_metrics() {
    let ingress = async |name: &str| {
        let objects = objects(&render(name).await);
        of_kind(&objects, "NetworkPolicy")["spec"]["ingress"].clone()
    };
    let probes = json!({"ports": [{"port": "health", "protocol": "TCP"}]});
    for name in ["usual", "namespaces", "all"] {
        assert_eq!(ingress(name).await, json!([probes]), "{name}");
    }
    let from = json!([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]);
    let metrics = json!({"from": from, "ports": [{"port": "metrics", "protocol": "TCP"}]});
    assert_eq!(ingress("metrics").await, json!([probes, metrics]));
}
