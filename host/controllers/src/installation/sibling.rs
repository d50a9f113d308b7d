//! Who exports what another imports: the edges between siblings, as index keys, so that nobody scans (`landscaper.md` §5.7).

use std::{collections::BTreeMap, sync::Arc};

use kube::ResourceExt;
use orangery_api::{installation::Installation, marks::Marks, reference::LocalReference};
use orangery_blueprint::sibling::{Reference, exported, imported};
use orangery_core::{phase::installation::Installation as Phase, walk::Rest};
use orangery_reconcile::Key;

use super::Run;
use crate::host::{Host, index};

/// The name of an Installation's parent; empty for roots, which are siblings of each other.
pub(crate) fn parent(installation: &Installation) -> &str {
    installation.parent_installation().unwrap_or_default()
}

fn edges(installation: &Installation, references: impl IntoIterator<Item = Reference>) -> Vec<String> {
    let parent = parent(installation);
    references.into_iter().map(|reference| format!("{parent}/{reference}")).collect()
}

/// The edges under which an Installation exports.
pub(crate) fn exports(installation: &Installation) -> Vec<String> {
    edges(installation, exported(&(&installation.spec.exports).into()))
}

/// The edges under which an Installation imports.
pub(crate) fn imports(installation: &Installation) -> Vec<String> {
    edges(installation, imported(&(&installation.spec.imports).into()))
}

fn related(host: &Host, of: &Installation, edges: Vec<String>, index: &'static str) -> Vec<Arc<Installation>> {
    let namespace = of.namespace().unwrap_or_default();
    let own = of.name_any();
    let found = edges.into_iter().flat_map(|edge| host.stores.installations.indexed(index, &namespace, &edge));
    let by_name: BTreeMap<String, Arc<Installation>> =
        found.filter(|other| other.name_any() != own).map(|other| (other.name_any(), other)).collect();
    by_name.into_values().collect()
}

/// The siblings whose exports this Installation imports, sorted by name.
pub(super) fn predecessors(host: &Host, of: &Installation) -> Vec<Arc<Installation>> {
    related(host, of, imports(of), index::EXPORTS)
}

/// The siblings that import what this Installation exports, sorted by name.
pub(super) fn successors(host: &Host, of: &Installation) -> Vec<Arc<Installation>> {
    related(host, of, exports(of), index::IMPORTS)
}

/// All that comes before this root, however far ([`orangery_blueprint::sibling::ancestors`]).
pub(super) fn ancestors(host: &Host, of: &Installation) -> BTreeMap<String, String> {
    let namespace = of.namespace().unwrap_or_default();
    orangery_blueprint::sibling::ancestors(&of.name_any(), |name| {
        let key = Key { namespace: namespace.clone(), name: name.to_owned() };
        let installation = host.stores.installations.get(&key);
        installation.iter().flat_map(|of| predecessors(host, of)).map(|before| before.name_any()).collect()
    })
}

impl Run<'_> {
    /// The roots to be triggered after this job: those that import what this root exports, after a success only
    /// (INS-43, INS-44, C-14). Children are woken by the end of the job itself.
    pub(super) fn dependents(&self, rest: &Rest<Phase>) -> Vec<LocalReference> {
        let promised = self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_exports);
        if !self.draft.is_root() || rest.phase != Phase::Succeeded || promised {
            return Vec::new();
        }
        let successors = successors(self.host, &self.draft);
        successors.iter().map(|sibling| LocalReference { name: sibling.name_any() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installation(parent: Option<&str>, imports: serde_json::Value, exports: serde_json::Value) -> Installation {
        let owners: Vec<_> = parent
            .iter()
            .map(|name| json!({"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": name, "uid": "u"}))
            .collect();
        let spec = json!({"blueprint": {}, "imports": imports, "exports": exports});
        serde_json::from_value(json!({"metadata": {"name": "x", "ownerReferences": owners}, "spec": spec})).unwrap()
    }

    #[test]
    fn edges_join_siblings_only() {
        let exporter = |parent| installation(parent, json!({}), json!({"data": [{"name": "a", "dataRef": "d"}]}));
        let importer = |parent| installation(parent, json!({"data": [{"name": "b", "dataRef": "d"}]}), json!({}));
        assert_eq!(exports(&exporter(None)), imports(&importer(None)));
        assert_eq!(exports(&exporter(Some("p"))), imports(&importer(Some("p"))));
        assert_ne!(exports(&exporter(None)), imports(&importer(Some("p"))));
    }

    #[test]
    fn a_target_map_makes_edges_as_a_target_and_a_list_do() {
        let one = installation(None, json!({}), json!({"targets": [{"name": "t", "target": "k"}]}));
        for form in [json!({"target": "k"}), json!({"targets": ["k"]}), json!({"targetMap": {"a": "k"}})] {
            let mut import = form.clone();
            import["name"] = json!("t");
            assert_eq!(imports(&installation(None, json!({"targets": [import]}), json!({}))), exports(&one), "{form}");
        }
        assert_eq!(
            imports(&installation(None, json!({"targets": [{"name": "t", "targetListRef": "k"}]}), json!({}))),
            [""; 0]
        );
    }
}
