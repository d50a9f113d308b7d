//! The chart of the operator as the stock Helm renders it: all of it, and what has to hold whatever its values are.

use orangery_tests::{
    helm::Helm,
    rendered::{expected, names, objects, of_kind, render},
    repository,
};
use serde_json::{Value, json};

/// What is wrong where it is not as it was: to be looked at, and then to be kept.
const MEND: &str = "the chart renders otherwise; look at the difference, and write what is right to tests/rendered";

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn the_chart_renders_what_is_kept_for_each_set_of_values() {
    let sets = [
        "all",
        "metrics",
        "monitoring",
        "namespaces",
        "open-metrics",
        "own-account",
        "private-registry",
        "released",
        "replicas",
        "service-monitor",
        "upgrade",
        "usual",
    ];
    assert_eq!(names(), sets);
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
async fn c_240_the_allocator_takes_nothing_beforehand_whatever_the_values_are() {
    for name in names() {
        let objects = objects(&render(&name).await);
        let variables = container(of_kind(&objects, "Deployment"))["env"].as_array().expect("variables");
        let of_allocator: Vec<&Value> =
            variables.iter().filter(|variable| variable["name"] == "MIMALLOC_ARENA_EAGER_COMMIT").collect();
        assert_eq!(of_allocator, [&json!({"name": "MIMALLOC_ARENA_EAGER_COMMIT", "value": "0"})], "{name}");
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
    for name in ["usual", "namespaces", "all", "released", "replicas"] {
        assert_eq!(ingress(name).await, json!([probes]), "{name}");
    }
    let from = json!([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]);
    let metrics = json!({"from": from, "ports": [{"port": "metrics", "protocol": "TCP"}]});
    assert_eq!(ingress("metrics").await, json!([probes, metrics]));
}

/// What Helm says of the chart with these values.
async fn refused(values: &str) -> String {
    let chart = repository().join("charts/orangery");
    Helm::of("{}").refuses(&["template", "orangery", &chart.to_string_lossy(), "--set-json", values]).await
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_232_values_of_the_wrong_sort_are_refused_with_a_sentence_that_names_them() {
    let cases = [
        (r#"replicas="two""#, "at '/replicas': got string, want integer"),
        (r#"namespaces="team-a""#, "at '/namespaces': got string, want array"),
        (r#"metrics.port="8080""#, "at '/metrics/port': got string, want integer"),
        ("guards=1", "at '/guards': got number, want boolean"),
        (r#"resources.limits.memory="2 GB""#, "at '/resources/limits/memory': '2 GB' does not match pattern"),
        (r#"containers.namespace="Tasks/../x""#, "at '/containers/namespace': 'Tasks/../x' does not match pattern"),
        (r#"containers.defaultImage="a: b""#, "at '/containers/defaultImage': 'a: b' does not match pattern"),
        (r#"{"containers":null}"#, "missing property 'containers'"),
        (r#"{"log":null,"rbac":null}"#, "missing properties 'rbac', 'log'"),
        ("replica=2", "additional properties 'replica' not allowed"),
        ("metrics.serviceMonitor.intervall=1", "additional properties 'intervall' not allowed"),
        (r#"extraEnv=[{"nam":"A"}]"#, "at '/extraEnv/0': missing property 'name'"),
        (r#"image.digest="latest""#, "at '/image/digest': 'latest' does not match pattern"),
        (
            "metrics.serviceMonitor.enabled=true",
            "metrics.serviceMonitor.enabled asks for figures that metrics.enabled turns off; say metrics.enabled=true, too",
        ),
        (
            "metrics.dashboard.enabled=true",
            "metrics.dashboard.enabled asks for figures that metrics.enabled turns off; say metrics.enabled=true, too",
        ),
        (
            "metrics.enabled=true,metrics.podMonitor.enabled=true",
            "metrics.podMonitor.enabled has Prometheus ask without a token; say which Secret has one by metrics.podMonitor.tokenSecret",
        ),
        (
            r#"{"metrics":{"enabled":true,"authentication":"none","serviceMonitor":{"enabled":true},"podMonitor":{"enabled":true}}}"#,
            "metrics.serviceMonitor and metrics.podMonitor are both enabled, and each figure would be fetched twice; turn one of them off",
        ),
        (
            r#"extraEnv=[{"name":"ORANGERY_LOG","value":"debug"}]"#,
            "extraEnv names ORANGERY_LOG, which the chart sets; take it away, and use log.level",
        ),
        (
            r#"extraEnv=[{"name":"MIMALLOC_ARENA_EAGER_COMMIT","value":"1"}]"#,
            "extraEnv names MIMALLOC_ARENA_EAGER_COMMIT, which the chart sets; take it away",
        ),
        (
            r#"podLabels={"app.kubernetes.io/name":"mine"}"#,
            "podLabels names app.kubernetes.io/name, by which the chart finds its pods; take it away",
        ),
    ];
    for (values, sentence) in cases {
        let message = refused(values).await;
        assert!(message.contains(sentence), "{values}: {message}");
    }
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn c_230_helm_finds_nothing_wrong_with_the_chart() {
    let chart = repository().join("charts/orangery");
    let said = Helm::of("{}").does(&["lint", "--strict", &chart.to_string_lossy()]).await;
    assert!(said.contains("1 chart(s) linted, 0 chart(s) failed"), "{said}");
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn several_replicas_are_kept_apart_and_one_of_them_may_go() {
    let budgets = async |name: &str| {
        let objects = objects(&render(name).await);
        objects.iter().filter(|object| object["kind"] == "PodDisruptionBudget").count()
    };
    // One replica that may not go would hold up whoever drains its node.
    assert_eq!([budgets("usual").await, budgets("own-account").await], [0, 0]);
    assert_eq!(budgets("replicas").await, 1);
    let objects = objects(&render("replicas").await);
    let of_release = json!({"app.kubernetes.io/name": "orangery", "app.kubernetes.io/instance": "orangery"});
    let budget = json!({"maxUnavailable": "50%", "selector": {"matchLabels": of_release}});
    assert_eq!(of_kind(&objects, "PodDisruptionBudget")["spec"], budget);
    let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
    let selectors: Vec<&Value> = pod["topologySpreadConstraints"]
        .as_array()
        .expect("constraints")
        .iter()
        .map(|constraint| &constraint["labelSelector"]["matchLabels"])
        .collect();
    assert_eq!(selectors, [&of_release, &json!({"app": "other"})]);
}
