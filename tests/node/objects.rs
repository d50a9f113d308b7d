//! What is deployed on the node.

use orangery_tests::{
    chart::{TYPE, packed},
    tree::API,
};
use serde_json::{Value, json};

/// The namespace of all of it.
pub(crate) const TEAM: &str = "team";

/// A namespace whose service account may do everything in the cluster, and a Target that names that account.
pub(crate) fn team() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let subject = |name: &str| json!([{"kind": "ServiceAccount", "name": name, "namespace": TEAM}]);
    let rule = json!({
        "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["deployer"], "verbs": ["create"],
    });
    let annotations = json!({"orangery.dev/allow-targets": "true"});
    vec![
        namespace(TEAM, json!({})),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "deployer", "namespace": TEAM, "annotations": annotations},
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "team-deployer"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": subject("deployer"),
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "Role",
            "metadata": {"name": "tokens", "namespace": TEAM}, "rules": [rule],
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "tokens", "namespace": TEAM},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "tokens"}, "subjects": subject("default"),
        }),
        json!({
            "apiVersion": API, "kind": "Target", "metadata": {"name": "cluster", "namespace": TEAM},
            "spec": {
                "type": "landscaper.gardener.cloud/kubernetes-cluster",
                "config": {"selfConfig": {"serviceAccount": {"name": "deployer"}, "expirationSeconds": 3600}},
            },
        }),
    ]
}

/// A namespace with these labels.
pub(crate) fn namespace(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// An Installation of these items, each by a template of its own of one of the engines.
pub(crate) fn installation(name: &str, items: &[(&str, Value)]) -> Value {
    let executions = items.iter().enumerate().map(|(number, (engine, item))| {
        let name = format!("of-{}-{number}", engine.to_lowercase());
        let items = json!({"deployItems": [item]});
        let template = if *engine == "Spiff" { items } else { json!(items.to_string()) };
        json!({"name": name, "type": engine, "template": template})
    });
    let target = "landscaper.gardener.cloud/kubernetes-cluster";
    let blueprint = json!({
        "apiVersion": API, "kind": "Blueprint",
        "imports": [{"name": "cluster", "type": "target", "targetType": target}],
        "deployExecutions": executions.collect::<Vec<Value>>(),
    });
    json!({
        "apiVersion": API, "kind": "Installation",
        "metadata": {
            "name": name, "namespace": TEAM, "annotations": {"landscaper.gardener.cloud/operation": "reconcile"},
        },
        "spec": {
            "imports": {"targets": [{"name": "cluster", "target": "cluster"}]},
            "blueprint": {"inline": {"filesystem": {"blueprint.yaml": blueprint.to_string()}}},
        },
    })
}

/// An item that writes this object, and waits until it is ready for so long.
pub(crate) fn manifest(name: &str, object: Value, timeout: &str) -> Value {
    json!({
        "name": name, "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"import": "cluster"},
        "timeout": timeout,
        "config": {
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
            "manifests": [{"policy": "manage", "manifest": object}],
        },
    })
}

/// An item that is a release of a chart of this template.
pub(crate) fn release(name: &str, template: &str) -> Value {
    json!({
        "name": name, "type": TYPE, "target": {"import": "cluster"},
        "config": {
            "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
            "name": name, "namespace": TEAM, "chart": {"archive": {"raw": packed("1.0.0", &[("t.yaml", template)])}},
        },
    })
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": TEAM}, "data": {"a": "b"}})
}

/// A Deployment of one pod of one container.
pub(crate) fn deployment(name: &str, container: Value) -> Value {
    let mut container = container;
    container["name"] = json!("main");
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    })
}
