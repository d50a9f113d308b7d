//! Merges of three: what was wanted before, what is there, and what is wanted now, as kubectl and Helm make them.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

/// The groups whose kinds the API server itself brings along. Others define their lists in schemas, and merge them as one
/// value here, as Helm does.
const BUILT_IN: [&str; 19] = [
    "",
    "admissionregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Three-way merge: what `earlier` had and `desired` has no more goes from `live`, what `desired` has is put there, and
/// what others put into `live` stays. In built-in kinds, lists whose entries have a key are merged entry by entry.
pub fn three_way(earlier: &Value, live: &Value, desired: &Value) -> Value {
    merge(earlier, live, desired, place_of(desired))
}

/// The root of an object.
pub(super) fn place_of(object: &Value) -> MergePosition<'static> {
    let group = object.get("apiVersion").and_then(Value::as_str).map(|version| version.split_once('/'));
    let built_in = group.is_some_and(|group| BUILT_IN.contains(&group.map_or("", |(group, _)| group)));
    if built_in { MergePosition::Known { around: "", field: "" } } else { MergePosition::Unknown }
}

/// Where in an object a merge is.
#[derive(Clone, Copy)]
pub(super) enum MergePosition<'a> {
    /// In a built-in kind: the field, and the field around it.
    Known { around: &'a str, field: &'a str },
    /// In any other.
    Unknown,
}

/// How a list is merged.
pub(super) enum List {
    /// As one value.
    Whole,
    /// Each value on its own.
    Set,
    /// Each entry by these fields.
    Keyed(&'static [&'static str]),
}

impl<'a> MergePosition<'a> {
    pub(super) fn field(self, name: &'a str) -> Self {
        match self {
            MergePosition::Known { field, .. } => MergePosition::Known { around: field, field: name },
            MergePosition::Unknown => MergePosition::Unknown,
        }
    }

    /// The lists that strategic merge patches merge entry by entry, with the keys of server-side apply, which tell apart
    /// what those of patches do not, such as a port of TCP and of UDP.
    pub(super) fn list(self) -> List {
        let MergePosition::Known { around, field } = self else { return List::Whole };
        match (around, field) {
            ("metadata", "finalizers") => List::Set,
            ("metadata", "ownerReferences") => List::Keyed(&["uid"]),
            ("containers" | "initContainers" | "ephemeralContainers", "ports") => {
                List::Keyed(&["containerPort", "protocol"])
            }
            ("spec", "ports") => List::Keyed(&["port", "protocol"]),
            (_, "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets")
            | (_, "webhooks" | "resourceClaims" | "claims")
            | ("", "secrets") => List::Keyed(&["name"]),
            (_, "volumeMounts") => List::Keyed(&["mountPath"]),
            (_, "volumeDevices") => List::Keyed(&["devicePath"]),
            (_, "hostAliases") => List::Keyed(&["ip"]),
            (_, "topologySpreadConstraints") => List::Keyed(&["topologyKey", "whenUnsatisfiable"]),
            _ => List::Whole,
        }
    }

    /// Whether a map is one of several kinds, told by which field it has: of the others nothing may stay.
    fn is_union(self) -> bool {
        matches!(
            self,
            MergePosition::Known { around: "spec", field: "strategy" } | MergePosition::Known { field: "volumes", .. }
        )
    }
}

fn merge(earlier: &Value, live: &Value, desired: &Value, place: MergePosition<'_>) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => merge_maps(earlier, live, desired, place),
        (Value::Array(live), Value::Array(wanted)) => {
            let before = earlier.as_array().map(Vec::as_slice).unwrap_or_default();
            let merged = match place.list() {
                List::Whole => None,
                List::Set => Some(merge_sets(before, live, wanted)),
                List::Keyed(keys) => merge_entries(before, live, wanted, keys, place),
            };
            merged.map_or_else(|| desired.clone(), Value::Array)
        }
        _ => desired.clone(),
    }
}

fn merge_maps(
    earlier: &Value,
    live: &Map<String, Value>,
    desired: &Map<String, Value>,
    place: MergePosition<'_>,
) -> Value {
    let mut merged = live.clone();
    let nothing = Map::new();
    let earlier = earlier.as_object().unwrap_or(&nothing);
    let union = place.is_union();
    merged.retain(|key, _| desired.contains_key(key) || !union && !earlier.contains_key(key));
    for (key, value) in desired {
        let before = earlier.get(key).unwrap_or(&Value::Null);
        let value = match live.get(key) {
            Some(live) => merge(before, live, value, place.field(key)),
            None => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    Value::Object(merged)
}

fn merge_sets(earlier: &[Value], live: &[Value], desired: &[Value]) -> Vec<Value> {
    let [before, there, wanted] = [earlier, live, desired].map(|values| values.iter().collect::<HashSet<_>>());
    let stay = live.iter().filter(|value| wanted.contains(value) || !before.contains(value));
    stay.chain(desired.iter().filter(|value| !there.contains(value))).cloned().collect()
}

/// The entries that are wanted, in their order; what others have put between them stays behind what it stood behind.
/// `None` where entries cannot be told apart.
fn merge_entries(
    earlier: &[Value],
    live: &[Value],
    desired: &[Value],
    keys: &[&str],
    place: MergePosition<'_>,
) -> Option<Vec<Value>> {
    let (before, there, wanted) = (ids(earlier, keys)?, ids(live, keys)?, ids(desired, keys)?);
    // Looked up: others choose how many there are (C-295).
    let [before_at, there_at, wanted_at] = [&before, &there, &wanted].map(|ids| indices(ids));
    let find = |at: &HashMap<&Vec<Value>, usize>, id: &Vec<Value>, entries: &'_ [Value]| {
        at.get(id).and_then(|at| entries.get(*at)).cloned()
    };
    let mut ranked = Vec::with_capacity(live.len() + desired.len());
    for (rank, (id, entry)) in wanted.iter().zip(desired).enumerate() {
        let merged = match find(&there_at, id, live) {
            Some(existing) => merge(&find(&before_at, id, earlier).unwrap_or_default(), &existing, entry, place),
            None => entry.clone(),
        };
        ranked.push((rank + 1, merged));
    }
    let mut behind = 0;
    for (id, entry) in there.iter().zip(live) {
        match wanted_at.get(id) {
            Some(rank) => behind = rank + 1,
            None if before_at.contains_key(id) => {}
            None => ranked.push((behind, entry.clone())),
        }
    }
    // Stable: what is wanted comes before what others have put behind it.
    ranked.sort_by_key(|(rank, _)| *rank);
    Some(ranked.into_iter().map(|(_, entry)| entry).collect())
}

/// The place of each of what tells entries apart.
pub(super) fn indices(ids: &[Vec<Value>]) -> HashMap<&Vec<Value>, usize> {
    ids.iter().enumerate().map(|(at, id)| (id, at)).collect()
}

/// What tells the entries of a list apart; `None` where one lacks its key, or two have the same.
pub(super) fn ids(entries: &[Value], keys: &[&str]) -> Option<Vec<Vec<Value>>> {
    let mut all = Vec::with_capacity(entries.len());
    let mut seen = BTreeSet::new();
    for entry in entries {
        let mut id = Vec::with_capacity(keys.len());
        for (at, key) in keys.iter().enumerate() {
            match entry.get(*key) {
                Some(value) => id.push(value.clone()),
                None if at > 0 && *key == "protocol" => id.push(Value::from("TCP")),
                None => return None,
            }
        }
        if !seen.insert(Value::Array(id.clone()).to_string()) {
            return None;
        }
        all.push(id);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(version: &str, spec: &Value) -> Value {
        json!({"apiVersion": version, "kind": "Deployment", "spec": {"template": {"spec": spec}}})
    }

    /// Of one field of a pod template, in a built-in kind.
    #[track_caller]
    fn check(earlier: Value, live: Value, desired: Value, expected: Value) {
        assert_eq!(
            three_way(&pod("apps/v1", &earlier), &pod("apps/v1", &live), &pod("apps/v1", &desired)),
            pod("apps/v1", &expected)
        );
    }

    #[test]
    fn containers_are_merged_by_name_and_those_of_others_stay_where_they_were() {
        check(
            json!({"containers": [{"name": "a", "image": "1", "command": ["x"]}, {"name": "gone"}]}),
            json!({"containers": [
                {"name": "injected"}, {"name": "a", "image": "1", "command": ["x"], "imagePullPolicy": "Always"},
                {"name": "sidecar"}, {"name": "gone"}]}),
            json!({"containers": [{"name": "new"}, {"name": "a", "image": "2"}]}),
            json!({"containers": [
                {"name": "injected"}, {"name": "new"}, {"name": "a", "image": "2", "imagePullPolicy": "Always"},
                {"name": "sidecar"}]}),
        );
    }

    #[test]
    fn ports_are_told_apart_by_number_and_protocol() {
        check(
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 53}]}]}),
            json!({"containers": [{"name": "a", "ports": [
                {"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 53, "name": "dns"}]}]}),
            json!({"containers": [{"name": "a", "ports": [
                {"containerPort": 53, "protocol": "TCP", "name": "dns"}, {"containerPort": 53, "protocol": "UDP"}]}]}),
        );
    }

    #[test]
    fn a_volume_of_another_kind_has_nothing_of_the_old_one() {
        check(
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "emptyDir": {"medium": ""}, "defaulted": 1}]}),
            json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
            json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
        );
    }

    #[test]
    fn a_strategy_of_another_kind_has_nothing_of_the_defaults_of_the_old_one() {
        let deployment =
            |strategy: Value| json!({"apiVersion": "apps/v1", "spec": {"strategy": strategy, "replicas": 1}});
        let live = deployment(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}));
        let earlier = json!({"apiVersion": "apps/v1", "spec": {"replicas": 1}});
        let desired = deployment(json!({"type": "Recreate"}));
        assert_eq!(three_way(&earlier, &live, &desired), desired);
    }

    #[test]
    fn finalizers_of_others_stay() {
        let object = |finalizers: Value| json!({"apiVersion": "v1", "metadata": {"finalizers": finalizers}});
        assert_eq!(
            three_way(&object(json!(["old"])), &object(json!(["old", "theirs"])), &object(json!(["new"]))),
            object(json!(["theirs", "new"]))
        );
    }

    #[test]
    fn c_295_lists_of_many_entries_are_merged_in_time() {
        let entries = |from: u32, image: &str| -> Value {
            (from..from + 20_000).map(|at| json!({"name": format!("a-long-name-{at:06}"), "value": image})).collect()
        };
        let begun = std::time::Instant::now();
        let pod = |env: Value| pod("apps/v1", &json!({"containers": [{"name": "a", "env": env}]}));
        let merged = three_way(&pod(entries(0, "0")), &pod(entries(5_000, "1")), &pod(entries(10_000, "2")));
        let env = &merged["spec"]["template"]["spec"]["containers"][0]["env"];
        assert_eq!(env.as_array().map(Vec::len), Some(25_000 - 5_000));
        assert_eq!(merged, pod(entries(10_000, "2")), "what was there is wanted, or was there before");
        let names =
            |from: u32| -> Vec<Value> { (from..from + 20_000).map(|at| json!(format!("example.org/{at}"))).collect() };
        assert_eq!(merge_sets(&names(0), &names(5_000), &names(10_000)).len(), 25_000 - 5_000);
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn lists_of_other_kinds_and_lists_without_keys_are_one_value() {
        let (earlier, live, desired) = (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "c"}]}),
        );
        let custom = |spec: &Value| pod("example.org/v1", spec);
        assert_eq!(three_way(&custom(&earlier), &custom(&live), &custom(&desired)), custom(&desired));
        check(
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a"}, {"image": "nameless"}]}),
            json!({"containers": [{"name": "c"}]}),
            json!({"containers": [{"name": "c"}]}),
        );
        check(
            json!({"tolerations": [{"key": "a"}]}),
            json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
            json!({"tolerations": [{"key": "c"}]}),
            json!({"tolerations": [{"key": "c"}]}),
        );
    }
}
