//! The kinds that a cluster says it serves: those of Kubernetes that items are made of, those that custom resource definitions
//! among its objects define, and those of its objects.

use std::collections::BTreeMap;

use orangery_core::name::{ApiVersion, Kind};
use orangery_proposal::{check::key_of, deployer::ApiResource};
use serde_json::Value;

/// Version, kind, and whether its objects live in namespaces.
const BUILTIN: &[(&str, &str, bool)] = &[
    ("v1", "ConfigMap", true),
    ("v1", "Event", true),
    ("v1", "Namespace", false),
    ("v1", "Node", false),
    ("v1", "PersistentVolume", false),
    ("v1", "PersistentVolumeClaim", true),
    ("v1", "Pod", true),
    ("v1", "Secret", true),
    ("v1", "Service", true),
    ("v1", "ServiceAccount", true),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ("apps/v1", "DaemonSet", true),
    ("apps/v1", "Deployment", true),
    ("apps/v1", "ReplicaSet", true),
    ("apps/v1", "StatefulSet", true),
    ("autoscaling/v2", "HorizontalPodAutoscaler", true),
    ("batch/v1", "CronJob", true),
    ("batch/v1", "Job", true),
    ("networking.k8s.io/v1", "Ingress", true),
    ("networking.k8s.io/v1", "NetworkPolicy", true),
    ("policy/v1", "PodDisruptionBudget", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", false),
    ("rbac.authorization.k8s.io/v1", "Role", true),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", true),
];

/// The kinds of a cluster with these objects, sorted by version and kind.
pub(super) fn served(objects: &[Value]) -> Vec<ApiResource> {
    let builtin = BUILTIN.iter().map(|(version, kind, namespaced)| resource(version, kind, *namespaced));
    let present = objects.iter().filter_map(|object| key_of(object).ok());
    let present = present.map(|key| resource(&key.api_version, &key.kind, key.namespace.is_some()));
    let mut all: BTreeMap<(ApiVersion, Kind), ApiResource> = BTreeMap::new();
    for one in builtin.chain(objects.iter().flat_map(defined)).chain(present) {
        all.entry((one.api_version.clone(), one.kind.clone())).or_insert(one);
    }
    all.into_values().collect()
}

fn resource(version: &str, name: &str, namespaced: bool) -> ApiResource {
    let lower = name.to_lowercase();
    let plural = match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if lower.ends_with('s') => format!("{lower}es"),
        None => format!("{lower}s"),
    };
    ApiResource { api_version: version.into(), kind: name.into(), plural, namespaced }
}

/// The kinds that a custom resource definition defines; none of another object.
fn defined(object: &Value) -> Vec<ApiResource> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let is_definition = text("/kind") == Some("CustomResourceDefinition");
    let (Some(group), Some(kind)) = (text("/spec/group"), text("/spec/names/kind")) else { return Vec::new() };
    let versions = object.pointer("/spec/versions").and_then(Value::as_array).filter(|_| is_definition);
    let names = versions.into_iter().flatten().filter_map(|version| version.get("name")?.as_str());
    let of_version = |version: &str| {
        let usual = resource(&format!("{group}/{version}"), kind, text("/spec/scope") != Some("Cluster"));
        ApiResource { plural: text("/spec/names/plural").map_or(usual.plural.clone(), str::to_owned), ..usual }
    };
    names.map(of_version).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_252_kinds_are_those_of_kubernetes_of_definitions_and_of_objects() {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"},
            "spec": {
                "group": "example.org", "scope": "Cluster", "names": {"kind": "Lemon", "plural": "lemontrees"},
                "versions": [{"name": "v1"}, {"name": "v2"}],
            },
        });
        let lime = json!({"apiVersion": "fruit/v1", "kind": "Lime", "metadata": {"name": "l", "namespace": "a"}});
        let all = served(&[definition, lime]);
        let shown = |group: &str| -> Vec<String> {
            let of_group = all.iter().filter(|one| one.api_version.group() == group);
            of_group.map(|one| format!("{} {} {} {}", one.api_version, one.kind, one.plural, one.namespaced)).collect()
        };
        let lemons = ["example.org/v1 Lemon lemontrees false", "example.org/v2 Lemon lemontrees false"];
        assert_eq!(shown("example.org"), lemons);
        assert_eq!(shown("fruit"), ["fruit/v1 Lime limes true"]);
        let networking = ["Ingress ingresses true", "NetworkPolicy networkpolicies true"];
        assert_eq!(shown("networking.k8s.io"), networking.map(|kind| format!("networking.k8s.io/v1 {kind}")));
        assert_eq!(all.len(), BUILTIN.len() + 3);
    }
}
