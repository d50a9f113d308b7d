//! What counts for a namespace, line by line, and where each comes from.

use orangery_core::digest::sha256;
use serde_json::{Map, Value};

use crate::{effective::EffectivePolicy, read::Policy};

/// One line of a policy that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedLine {
    /// The policy, such as `NamespacePolicy team-a`.
    pub policy: String,
    /// The line, such as `spec.targets.clusterScoped`; `spec` for a policy that cannot be used.
    pub path: String,
    /// What it says, as JSON in one line; why the policy cannot be used.
    pub value: String,
    /// Where it comes from: `policy`, or the profile, such as `profile restricted`.
    pub from: String,
}

/// What says where a policy counts, and not what it allows.
const OF_SELECTION: [&str; 3] = ["namespaces", "priority", "profile"];

impl EffectivePolicy {
    /// All lines of the policies that count, policy by policy.
    pub fn explain(&self) -> Vec<ExplainedLine> {
        self.policies().flat_map(explained).collect()
    }

    /// What counts, as a hash: another one where another line says something else, or another policy says it.
    pub fn hash(&self) -> String {
        let lines: Vec<String> = self.explain().iter().map(|line| format!("{line:?}")).collect();
        sha256(lines.join("\n").as_bytes())
    }
}

fn explained(policy: &Policy) -> Vec<ExplainedLine> {
    let origin = policy.origin().to_string();
    let lines = match policy.lines() {
        Ok(lines) => lines,
        Err(why) => {
            let (path, from) = ("spec".to_owned(), "policy".to_owned());
            return vec![ExplainedLine { policy: origin, path, value: format!("cannot be used: {why}"), from }];
        }
    };
    let object = |value: serde_json::Result<Value>| match value {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    };
    let own = object(serde_json::to_value(lines));
    let profile = object(serde_json::to_value(lines.profile.spec()));
    let mut found = Vec::new();
    let fields = profile.iter().filter(|(field, _)| !OF_SELECTION.contains(&field.as_str()));
    for (field, value) in fields {
        walk(&format!("spec.{field}"), own.get(field), value, &mut |path, value, is_own| {
            let from = if is_own { "policy".to_owned() } else { format!("profile {}", lines.profile) };
            found.push(ExplainedLine { policy: origin.clone(), path, value: in_one_line(value), from });
        });
    }
    found
}

/// A value in one line: trusted roots, which are long, by their digest.
fn in_one_line(value: &Value) -> String {
    let mut value = value.clone();
    for key in value.as_array_mut().into_iter().flatten() {
        if let Some(root) = key.pointer_mut("/keyless/trustedRoot") {
            *root = Value::String(sha256(root.as_str().unwrap_or_default().as_bytes()));
        }
    }
    value.to_string()
}

/// Calls `told` for each line below a field: its path, its value and whether the policy says it itself.
fn walk(path: &str, own: Option<&Value>, profile: &Value, told: &mut dyn FnMut(String, &Value, bool)) {
    let Value::Object(fields) = profile else {
        return told(path.to_owned(), own.unwrap_or(profile), own.is_some());
    };
    for (field, value) in fields {
        walk(&format!("{path}.{field}"), own.and_then(|own| own.get(field)), value, told);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{Policy, PolicySet, Profile};

    fn explained(spec: serde_json::Value) -> Vec<String> {
        let set = PolicySet::new(Profile::Compatible, [Policy::read("team", &spec)]);
        let lines = set.of(&"a".into(), &BTreeMap::new()).explain();
        lines.iter().map(|line| format!("{}: {} {} ({})", line.policy, line.path, line.value, line.from)).collect()
    }

    #[test]
    fn every_line_is_told_with_where_it_comes_from() {
        let spec = json!({"namespaces": {"names": ["a"]}, "targets": {"clusterScoped": true, "kinds": {"deny": []}}});
        assert_eq!(
            explained(spec),
            [
                "spec.approval \"None\" (profile restricted)",
                "spec.blueprints.components false (profile restricted)",
                "spec.blueprints.inline true (profile restricted)",
                "spec.blueprints.templates [\"*\"] (profile restricted)",
                "spec.blueprints.unsealedStates false (profile restricted)",
                "spec.dataObjects.secretData \"Encrypted\" (profile restricted)",
                "spec.egress.networks [] (profile restricted)",
                "spec.items.types [{\"type\":\"*\"}] (profile restricted)",
                "spec.plans.jobRules [] (profile restricted)",
                "spec.plans.requireOtherApprover false (profile restricted)",
                "spec.plans.rules [] (profile restricted)",
                "spec.plans.withoutApproval [] (profile restricted)",
                "spec.quotas.calls 32 (profile restricted)",
                "spec.quotas.fetchedMiBPerHour 4096 (profile restricted)",
                "spec.quotas.items 100 (profile restricted)",
                "spec.quotas.memoryMiB 2048 (profile restricted)",
                "spec.quotas.minReconcileIntervalSeconds 60 (profile restricted)",
                "spec.recordings.oneIn 0 (profile restricted)",
                "spec.signatures.required false (profile restricted)",
                "spec.signatures.trustedKeys [] (profile restricted)",
                "spec.sources.hosts [\"*\"] (profile restricted)",
                "spec.sources.redirects [] (profile restricted)",
                "spec.sources.registries [\"*\"] (profile restricted)",
                "spec.targets.clusterScoped true (policy)",
                "spec.targets.credentials [\"serviceAccount\"] (profile restricted)",
                "spec.targets.hostCluster.allow false (profile restricted)",
                "spec.targets.hostCluster.serviceAccount \"\" (profile restricted)",
                "spec.targets.kinds.allow [{\"group\":\"*\",\"kind\":\"*\"}] (profile restricted)",
                "spec.targets.kinds.deny [] (policy)",
                "spec.targets.namespaces [\"*\"] (profile restricted)",
                "spec.targets.servers [\"*\"] (profile restricted)",
            ]
            .map(|line| format!("NamespacePolicy team: {line}"))
        );
    }

    #[test]
    fn c_48_trusted_roots_are_told_by_their_digest() {
        let root = r#"{"certificateAuthorities": [{}], "ctlogs": [{}], "tlogs": [{}]}"#;
        let with = |root: &str| {
            let keyless = json!({"issuer": "https://i", "identity": "https://a/*", "trustedRoot": root});
            let keys = json!([{"components": ["a/*"], "keyless": keyless}]);
            explained(json!({"namespaces": {"names": ["a"]}, "signatures": {"trustedKeys": keys}}))
        };
        let line = |lines: Vec<String>| lines.into_iter().find(|line| line.contains("trustedKeys")).unwrap();
        let digest = sha256(root.as_bytes());
        let expected = format!(
            "NamespacePolicy team: spec.signatures.trustedKeys [{{\"components\":[\"a/*\"],\"keyless\":{{\"identity\":\
             \"https://a/*\",\"issuer\":\"https://i\",\"trustedRoot\":\"{digest}\"}},\"signature\":\"*\"}}] (policy)"
        );
        assert_eq!(line(with(root)), expected);
        assert_ne!(line(with(&format!("{root} "))), expected, "another root is another line");
    }

    #[test]
    fn c_80_the_hash_is_of_what_counts_and_of_nothing_else() {
        let hash = |spec: serde_json::Value, name: &str| {
            let set = PolicySet::new(Profile::Compatible, [Policy::read(name, &spec)]);
            set.of(&"a".into(), &BTreeMap::new()).hash()
        };
        let named = |fields: serde_json::Value| {
            let mut spec = fields;
            spec["namespaces"] = json!({"names": ["a"]});
            spec
        };
        let usual = hash(named(json!({})), "team");
        assert_eq!(
            hash(named(json!({"targets": {"clusterScoped": false}})), "team"),
            hash(named(json!({"targets": {"clusterScoped": false}})), "team")
        );
        for other in [
            hash(named(json!({"targets": {"clusterScoped": true}})), "team"),
            hash(named(json!({"profile": "compatible"})), "team"),
            hash(named(json!({"egress": {"networks": ["10.0.0.0/8"]}})), "team"),
            hash(named(json!({"quotas": 5})), "team"),
            hash(named(json!({})), "other"),
            hash(json!({}), "team"),
        ] {
            assert_ne!(other, usual);
        }
    }

    #[test]
    fn the_default_counts_where_no_policy_does_and_one_that_cannot_be_used_says_why() {
        let default = explained(json!({}));
        assert_eq!(default.first().unwrap(), "the default policy: spec.approval \"None\" (policy)");
        assert_eq!(default.len(), 31);
        let networks = "the default policy: spec.egress.networks [\"0.0.0.0/0\",\"::/0\"] (policy)".to_owned();
        assert!(default.contains(&networks), "{default:?}");
        let broken = explained(json!({"namespaces": {"names": ["a"]}, "quotas": 5}));
        assert_eq!(broken.len(), 1);
        assert!(broken[0].starts_with("NamespacePolicy team: spec cannot be used: spec cannot be read"), "{broken:?}");
    }
}
