//! What a proposal says of the kinds that it defines itself.

use std::collections::BTreeMap;

use orangery_core::name::{ApiVersion, Kind};
use orangery_proposal::{ClusterRef, Proposal, executor::writes, inventory::is_definition};
use serde_json::Value;

/// Group and version, and kind, on a cluster.
pub(crate) type KindOn = (ClusterRef, ApiVersion, Kind);

/// Whether the kinds have namespaces that a proposal itself defines. That is all a definition says which no server has taken yet:
/// by what path a kind is reached is for discovery to say (C-167).
pub(crate) fn defined_scopes(proposal: &Proposal) -> BTreeMap<KindOn, bool> {
    let definitions = writes(proposal).filter(|(located, _)| is_definition(&located.key));
    definitions.flat_map(|(located, write)| scopes_of(&located.on, &write.object)).collect()
}

fn scopes_of(on: &ClusterRef, definition: &Value) -> Vec<(KindOn, bool)> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), Kind::from(text("/spec/names/kind")));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version.get("served") != Some(&Value::Bool(false)));
    served
        .filter_map(|version| version.get("name").and_then(Value::as_str))
        .map(|version| {
            let api_version = ApiVersion::from(format!("{group}/{version}"));
            ((on.clone(), api_version, kind.clone()), text("/spec/scope") == "Namespaced")
        })
        .collect()
}
