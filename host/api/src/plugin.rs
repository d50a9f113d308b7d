//! Plugin: a component that is installed while the host runs. Ours, and not of Landscaper: its group is another one.

use std::{collections::BTreeMap, time::Duration as Length};

use kube::CustomResource;
use orangery_policy::Pattern;
use orangery_proposal::grant::Grants;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    condition::Condition,
    duration::{Duration, TimeLimit},
    schema,
};

/// A component that is installed while the host runs.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "orangery.dev",
    version = "v1alpha1",
    kind = "Plugin",
    doc = "A component that is installed while the operator runs: a deployer, a template engine or a gate.",
    plural = "plugins",
    category = "orangery",
    status = "PluginStatus",
    derive = "PartialEq",
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Items", type_ = "integer", json_path = ".status.items"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct PluginContent {
    /// The component's version, for messages; where it is not said, the tag or the begin of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub version: Option<String>,
    /// Where the component is: exactly one of the two.
    pub source: PluginSource,
    /// What it deploys. Exactly one of `deployer`, `template` and `gate` says what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployer: Option<ClaimedItems>,
    /// What it renders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<ClaimedTypes>,
    /// What gate expressions it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<ClaimedTypes>,
    /// What it may reach; nothing unless it stands here.
    #[serde(default)]
    #[schemars(schema_with = "schema::grants")]
    pub grants: Grants,
    /// What one call may spend; what is left out has its default.
    #[serde(default)]
    #[schemars(schema_with = "schema::limits")]
    pub limits: BTreeMap<String, u64>,
    /// The keys that may have signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<PluginVerification>,
    /// The namespaces that it is for, by patterns in which `*` stands for any letters; none stands for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub namespaces: Vec<Pattern>,
    /// Of several components that claim a type, the one with the highest priority serves it. Those that are registered at the start
    /// have 0, and come before Plugins with 0.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    pub priority: i32,
    /// A component that is tried beside the one in use: it is called as well, and what it answers is compared and never carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<PluginCandidate>,
    /// Has calls of its component recorded, without values of Secrets, where the operator keeps recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordedCalls>,
    /// Whether nothing changes for the time being: the version in use stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// Where a component is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSource {
    /// In a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<PluginOciSource>,
    /// In `binaryData` of a ConfigMap in the namespace of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
}

/// A component that is tried. What it deploys, its grants, limits and keys are those of the Plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCandidate {
    /// Where it is: exactly one of the two.
    pub source: PluginSource,
    /// Of so many calls of the component in use one is made with it as well.
    #[serde(default = "usual_share")]
    #[schemars(schema_with = "schema::positive")]
    pub one_in: u32,
    /// Whether it takes the place of the component of `spec.source`. Set to false again, that one comes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub promoted: bool,
}

/// Which calls are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedCalls {
    /// Of so many calls one is recorded.
    #[serde(default = "usual_share")]
    #[schemars(schema_with = "schema::positive")]
    pub one_in: u32,
}

fn usual_share() -> u32 {
    1
}

/// A component in a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginOciSource {
    /// Which one, such as `registry.example/team/mine@sha256:…`, or with a tag.
    #[schemars(length(min = 1, max = 1024))]
    pub reference: String,
    /// Names of Secrets in the namespace of the operator, as `kubectl create secret docker-registry` makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub pull_secrets: Vec<String>,
    /// Whether a tag is followed when it moves.
    #[serde(default)]
    pub updates: UpdatePolicy,
    /// How often a tag that is followed is asked for; at least `1m`, and `1h` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
}

/// What becomes of a tag that moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdatePolicy {
    /// Nothing: what the tag stood for first stays, until `reference` is another one.
    #[default]
    Never,
    /// What it stands for is used.
    Follow,
}

/// A component in a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key of `binaryData`.
    #[serde(default = "usual_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// `sha256:…` of the component; one with another digest is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub digest: Option<String>,
}

fn usual_key() -> String {
    "component.wasm".to_owned()
}

/// The deploy items of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedItems {
    /// Deploy item types.
    #[schemars(length(min = 1, max = 64))]
    pub item_types: Vec<String>,
    /// Labels that mark an object on a target cluster as belonging to a deploy item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub ownership_labels: Vec<String>,
}

/// The templates or gate expressions of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedTypes {
    /// Their types.
    #[schemars(length(min = 1, max = 64))]
    pub types: Vec<String>,
}

/// The keys that may have signed a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginVerification {
    /// Public keys in PEM (ECDSA on P-256 or P-384), one of which has to have signed it, as `cosign sign --key` and `orangery
    /// plugin sign` do.
    #[schemars(length(min = 1, max = 16))]
    pub keys: Vec<String>,
}

/// What the operator says of a Plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The generation that the conditions are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The generation that the version in use was loaded for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_generation: Option<i64>,
    /// The version in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `sha256:…` of the component in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The reference that it was resolved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The artifact in use by its digest: what `reference` stood for, and what was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// What the component exports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
    /// What it asks for, against what it is granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<PluginImport>,
    /// The types that it claims, and what serves one instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<PluginType>,
    /// How many deploy items it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count")]
    pub items: Option<u32>,
    /// What has come of the candidate since this operator has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateStatus>,
    /// `Ready`, and `Reconciling` or `Stalled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What has come of a candidate: numbers alone, as a Plugin is of no namespace. What differs is told by events of the items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateStatus {
    /// `sha256:…` of the component; empty where it is not called.
    pub digest: String,
    /// Why it is not called; else empty.
    pub message: String,
    /// Calls with the answer of the component in use.
    #[schemars(schema_with = "schema::count")]
    pub same: u32,
    /// Calls with another answer.
    #[schemars(schema_with = "schema::count")]
    pub different: u32,
    /// Calls whose answers could not be compared.
    #[schemars(schema_with = "schema::count")]
    pub not_compared: u32,
}

/// One import of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginImport {
    /// The interface.
    pub interface: String,
    /// `harmless`, `granted`, `notGranted`, `unserved` or `unknown`.
    pub offer: String,
    /// The field of `grants` that is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// One type that is claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginType {
    /// The type.
    #[serde(rename = "type")]
    pub type_: String,
    /// What serves it everywhere instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<String>,
}

/// The usual interval at which a tag is asked for that is followed.
const USUAL_INTERVAL: Length = Length::from_secs(60 * 60);
/// The shortest.
const SHORTEST_INTERVAL: Length = Length::from_secs(60);
/// The longest.
const LONGEST_INTERVAL: Length = Length::from_secs(30 * 24 * 60 * 60);

impl PluginContent {
    /// Whether the spec can be worked with, as far as it tells by itself. The error is one sentence.
    ///
    /// # Errors
    /// Which field says what it cannot say.
    pub fn check(&self) -> Result<(), String> {
        match (&self.source.oci, &self.source.config_map) {
            (Some(oci), None) => drop(oci.interval()?),
            (None, Some(_)) if self.verification.is_some() => {
                return Err("spec.verification is for components in registries, and nothing in a ConfigMap is signed; name the \
                            digest in spec.source.configMap.digest instead"
                    .to_owned());
            }
            (None, Some(_)) => {}
            _ => return Err("spec.source has to name exactly one of oci and configMap; give it one".to_owned()),
        }
        if self.verification.as_ref().is_some_and(|verification| verification.keys.is_empty()) {
            return Err(
                "spec.verification.keys is empty, so nobody could have signed it; give it a public key".to_owned()
            );
        }
        Ok(())
    }

    /// The same where a candidate that is promoted has the place of the component.
    #[must_use]
    pub fn with_promoted(mut self) -> Self {
        if let Some(candidate) = self.candidate.as_ref().filter(|candidate| candidate.promoted) {
            self.source = candidate.source.clone();
        }
        self
    }

    /// The same with the candidate in the place of the component, where it is to be tried.
    pub fn of_candidate(&self) -> Option<Self> {
        let candidate = self.candidate.as_ref().filter(|candidate| !candidate.promoted)?;
        Some(Self { source: candidate.source.clone(), ..self.clone() })
    }

    /// What a registration says of it.
    pub fn registration(&self, version: &str) -> Value {
        let mut spec = Map::from_iter([("version".to_owned(), json!(version))]);
        let claims = [
            ("deployer", self.deployer.as_ref().map(|claim| json!(claim))),
            ("template", self.template.as_ref().map(|claim| json!(claim))),
            ("gate", self.gate.as_ref().map(|claim| json!(claim))),
        ];
        spec.extend(claims.into_iter().filter_map(|(name, claim)| Some((name.to_owned(), claim?))));
        spec.insert("grants".to_owned(), json!(self.grants));
        spec.insert("limits".to_owned(), json!(self.limits));
        Value::Object(spec)
    }

    /// Whether its owner has named the very bytes, by a digest or by keys (C-77).
    pub fn is_pinned(&self) -> bool {
        let by_registry = self.source.oci.as_ref().is_some_and(|oci| oci.reference.contains('@'));
        let by_digest = self.source.config_map.as_ref().is_some_and(|map| map.digest.is_some());
        by_registry || by_digest || self.verification.is_some()
    }
}

impl PluginOciSource {
    /// How often its tag is asked for; `None` where it is not followed. The error is one sentence.
    ///
    /// # Errors
    /// The interval is none, or one that is too short or too long.
    pub fn interval(&self) -> Result<Option<Length>, String> {
        if self.updates == UpdatePolicy::Never {
            return Ok(None);
        }
        let Some(text) = &self.interval else { return Ok(Some(USUAL_INTERVAL)) };
        match text.limit() {
            Ok(TimeLimit::After(length)) if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&length) => {
                Ok(Some(length))
            }
            _ => Err(format!(
                "spec.source.oci.interval is {text}; write a length of time from 1m to 720h, or set updates to Never"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(spec: Value) -> PluginContent {
        serde_json::from_value(spec).unwrap()
    }

    fn oci(fields: Value) -> Value {
        let mut oci = json!({"reference": "r.example/a:1"});
        if let (Some(oci), Value::Object(fields)) = (oci.as_object_mut(), fields) {
            oci.extend(fields);
        }
        json!({"source": {"oci": oci}})
    }

    #[test]
    fn c_260_a_plugin_names_one_source_and_one_that_can_be_checked() {
        let check = |spec: Value| content(spec).check();
        let map = json!({"name": "m"});
        assert_eq!(check(oci(json!({}))), Ok(()));
        assert_eq!(check(json!({"source": {"configMap": map}})), Ok(()));
        let one = Err("spec.source has to name exactly one of oci and configMap; give it one".to_owned());
        assert_eq!(check(json!({"source": {}})), one);
        assert_eq!(check(json!({"source": {"configMap": map, "oci": {"reference": "r"}}})), one);
        let signed = check(json!({"source": {"configMap": map}, "verification": {"keys": ["k"]}}));
        assert!(signed.unwrap_err().starts_with("spec.verification is for components in registries"));
        let mut nobody = oci(json!({}));
        nobody["verification"] = json!({"keys": []});
        assert!(check(nobody).unwrap_err().starts_with("spec.verification.keys is empty"));
    }

    #[test]
    fn c_260_limits_api_a_tag_is_asked_for_so_often_and_so_rarely() {
        let interval = |fields: Value| content(oci(fields)).source.oci.unwrap().interval();
        let follow = |text: &str| interval(json!({"updates": "Follow", "interval": text}));
        assert_eq!(interval(json!({"interval": "nonsense"})), Ok(None));
        assert_eq!(interval(json!({"updates": "Follow"})), Ok(Some(USUAL_INTERVAL)));
        assert_eq!(follow("1m"), Ok(Some(SHORTEST_INTERVAL)));
        assert_eq!(follow("720h"), Ok(Some(LONGEST_INTERVAL)));
        for text in ["59s", "721h", "none", "soon"] {
            let message = format!(
                "spec.source.oci.interval is {text}; write a length of time from 1m to 720h, or set updates to Never"
            );
            assert_eq!(follow(text), Err(message));
        }
    }

    #[test]
    fn c_344_a_candidate_that_is_promoted_is_the_component_and_is_not_tried() {
        let (map, other) = (json!({"configMap": {"name": "m"}}), json!({"configMap": {"name": "other"}}));
        let with = |promoted: bool| {
            content(json!({"source": map, "priority": 7, "candidate": {"source": other, "promoted": promoted}}))
        };
        let names = |content: &PluginContent| content.source.config_map.as_ref().unwrap().name.clone();
        let (tried, promoted) = (with(false), with(true));
        assert_eq!((tried.candidate.as_ref().unwrap().one_in, promoted.of_candidate()), (1, None));
        let candidate = tried.of_candidate().unwrap();
        assert_eq!((names(&candidate).as_str(), candidate.priority), ("other", 7));
        assert_eq!([names(&tried.with_promoted()), names(&promoted.with_promoted())], ["m", "other"]);
    }

    #[test]
    fn c_77_a_plugin_is_pinned_by_a_digest_or_by_keys() {
        let digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
        let pinned = |spec: Value| content(spec).is_pinned();
        assert!(!pinned(oci(json!({}))));
        assert!(pinned(oci(json!({"reference": format!("r.example/a@{digest}")}))));
        let mut signed = oci(json!({}));
        signed["verification"] = json!({"keys": ["k"]});
        assert!(pinned(signed));
        assert!(!pinned(json!({"source": {"configMap": {"name": "m"}}})));
        assert!(pinned(json!({"source": {"configMap": {"name": "m", "digest": digest}}})));
    }

    #[test]
    fn c_260_a_plugin_says_what_a_registration_says() {
        let spec = json!({
            "source": {"configMap": {"name": "m"}},
            "deployer": {"itemTypes": ["example.org/a"], "ownershipLabels": ["l"]},
            "grants": {"clusters": {"target": true}},
            "limits": {"memoryMiB": 8},
            "namespaces": ["team-*"], "priority": 7,
        });
        let read = content(spec);
        assert_eq!(read.source.config_map.as_ref().unwrap().key, "component.wasm");
        let mut registration = read.registration("1.0.0");
        assert_eq!(registration["grants"]["clusters"]["target"], true);
        registration["grants"] = Value::Null;
        let expected = json!({
            "version": "1.0.0",
            "deployer": {"itemTypes": ["example.org/a"], "ownershipLabels": ["l"]},
            "grants": null,
            "limits": {"memoryMiB": 8},
        });
        assert_eq!(registration, expected);
    }
}
