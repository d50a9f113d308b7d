//! What Installations depend on.

use std::collections::BTreeSet;

use orangery_api::{
    annotation,
    context::Context,
    data_object::DataObject,
    execution::Execution,
    installation::{ImportPolicy, Installation},
    job::Job,
    label,
    marks::Marks,
    target::Target,
};
use orangery_blueprint::{
    binding::{ImportBindings, TargetImport, TargetSource},
    sibling::{SiblingReference, exported, imported},
};
use orangery_core::name::{ObjectName, installation_context, object_name};
use orangery_reconcile::{Key, ObjectChange, Watched};

use super::gather::data_sources::DataSourceKind;
use crate::{
    dependency::{Dependency, Dependents, Edge, Watch, gone_records},
    guard::free_target,
    index::Index,
    policy::policy_of_root,
    stores::{ConfigMapMeta, SecretMeta, StoredKind, Stores},
    tree::{self, CHILDREN, observes},
};

/// Installations by what they export.
pub(super) static EXPORTS: Index<Installation> = Index { name: "exports", values: exports };
/// Installations by what they import.
pub(super) static IMPORTS: Index<Installation> = Index { name: "imports", values: imports };
/// Installations by the DataObjects whose changes may start a job of them or let one go on.
static OBSERVED_DATA: Index<Installation> = Index {
    name: "observed-data",
    values: |installation| {
        observed(installation, |reference| match reference {
            SiblingReference::Data(key) => Some(object_name("", key).into()),
            SiblingReference::Target(_) | SiblingReference::TargetList(_) | SiblingReference::TargetMap(_) => None,
        })
    },
};
/// Installations by the Targets whose changes do.
static OBSERVED_TARGETS: Index<Installation> = Index {
    name: "observed-targets",
    values: |installation| {
        observed(installation, |reference| match reference {
            SiblingReference::Target(key) => Some(object_name("", key).into()),
            SiblingReference::Data(_) | SiblingReference::TargetList(_) | SiblingReference::TargetMap(_) => None,
        })
    },
};
/// Installations by the ConfigMaps that they import.
static CONFIG_MAP_NAMES: Index<Installation> = Index {
    name: "config-map",
    values: |installation| {
        let imports = installation.spec.imports.data.iter();
        let names: BTreeSet<String> =
            imports.filter_map(|import| Some(import.config_map_ref.as_ref()?.name.clone())).collect();
        names.into_iter().collect()
    },
};
/// Installations by the Targets that the gate expressions of their sub-installations look at.
static GATE_TARGETS: Index<Installation> = Index {
    name: "target",
    values: |installation| {
        let workflow = installation.status.as_ref().and_then(|status| status.workflow.as_ref());
        workflow.map_or_else(Vec::new, |workflow| workflow.gate_targets.clone())
    },
};
/// Data objects by the context they live in.
pub(super) static DATA_OF_CONTEXT: Index<DataObject> =
    Index { name: "context", values: |object| labelled(object, label::CONTEXT) };
/// Targets by the context they live in.
pub(super) static TARGETS_OF_CONTEXT: Index<Target> =
    Index { name: "context", values: |target| labelled(target, label::CONTEXT) };
/// Copies of Targets that Installations keep of what they import, by context and key, and all of a context.
pub(super) static KEPT_TARGETS: Index<Target> = Index {
    name: "kept",
    values: |target| match target.label(label::CONTEXT) {
        Some(context) if target.label(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_IMPORT) => {
            std::iter::once("").chain(target.data_key()).map(|key| kept_under(context, key)).collect()
        }
        Some(_) | None => Vec::new(),
    },
};
/// Data objects by what wrote them.
pub(super) static DATA_OF_SOURCE: Index<DataObject> =
    Index { name: "source", values: |object| labelled(object, label::SOURCE) };
/// Targets by what wrote them.
pub(super) static TARGETS_OF_SOURCE: Index<Target> =
    Index { name: "source", values: |target| labelled(target, label::SOURCE) };

/// An Installation waits for its Execution.
pub(super) static EXECUTION: Dependency<Installation, Execution> = Dependency {
    what: "to finish, to be gone",
    // `kubectl delete --cascade=orphan` takes the owner away.
    through: "its name, which is that of its Installation",
    dependents: Dependents::SameName,
    watch: Watch::Wakes(|_| true),
};

/// An Installation waits for its sub-installations.
pub(super) static SUBINSTALLATIONS: Dependency<Installation, Installation> = Dependency {
    what: "to finish, to be gone",
    through: "its parent",
    dependents: Dependents::Named(&CHILDREN),
    watch: Watch::Wakes(|_| true),
};

/// A sub-installation without its parent deletes itself.
static PARENT: Dependency<Installation, Installation> = Dependency {
    what: "to be gone, which it follows",
    through: "the index of parents",
    dependents: Dependents::Reached(|stores, parent| {
        let Key { namespace, name } = Key::of(parent);
        CHILDREN.keys(&stores.installations, &namespace, &name)
    }),
    watch: Watch::Wakes(|change| change.after.is_none()),
};

/// An Installation waits for the siblings that it imports from.
static PREDECESSORS: Dependency<Installation, Installation> = Dependency {
    what: "to finish",
    through: "the index of what siblings import",
    dependents: Dependents::Indexed(&IMPORTS, exports),
    watch: Watch::Wakes(may_release_siblings),
};

/// An Installation that is being deleted waits for the siblings that import from it.
static SUCCESSORS: Dependency<Installation, Installation> = Dependency {
    what: "to be gone",
    through: "the index of what siblings export",
    dependents: Dependents::Indexed(&EXPORTS, imports),
    watch: Watch::Wakes(may_release_siblings),
};

static POLICY: Dependency<Installation, Installation> = policy_of_root();

/// A root waits for the DataObjects that it imports, or starts jobs by their changes (ORC-33).
pub(super) static DATA_OBJECTS: Dependency<Installation, DataObject> = Dependency {
    what: "to exist, to change",
    through: "the index of what roots observe",
    dependents: Dependents::Indexed(&OBSERVED_DATA, |object| vec![Key::of(object).name.into()]),
    watch: Watch::Wakes(|_| true),
};

/// The same of Targets.
pub(super) static TARGETS: Dependency<Installation, Target> = Dependency {
    what: "to exist, to change",
    through: "the index of what roots observe",
    dependents: Dependents::Indexed(&OBSERVED_TARGETS, |target| vec![Key::of(target).name.into()]),
    watch: Watch::Wakes(|_| true),
};

/// The same of Secrets, which are watched by their names.
pub(super) static SECRETS: Dependency<Installation, SecretMeta> = Dependency {
    what: "to exist, to change",
    through: "a watch of its name, held by the root that imports it",
    dependents: Dependents::Watching(|installation| DataSourceKind::Secret.names(installation)),
    watch: Watch::ByName,
};

/// The same of ConfigMaps.
pub(super) static CONFIG_MAPS: Dependency<Installation, ConfigMapMeta> = Dependency {
    what: "to exist, to change",
    through: "a watch of its name, held by the root that imports it",
    dependents: Dependents::Watching(|installation| DataSourceKind::ConfigMap.names(installation)),
    watch: Watch::ByName,
};

/// An Installation writes DataObjects.
static WRITTEN_DATA: Dependency<Installation, DataObject> = gone_records();

/// An Installation writes Targets.
static WRITTEN_TARGETS: Dependency<Installation, Target> = gone_records();

/// An Installation waits for its Context.
pub(super) static CONTEXT: Dependency<Installation, Context> = Dependency {
    what: "to exist",
    through: "its namespace",
    dependents: Dependents::Namespace,
    watch: Watch::Wakes(|change| change.before.is_none() && change.after.is_some()),
};

/// Gate expressions of sub-installations look at the clusters behind Targets.
pub(super) static GUARDED_TARGETS: Dependency<Installation, Target> = Dependency {
    what: "to be gone, before its guard goes",
    through: "the Targets that gate expressions of its sub-installations look at",
    dependents: Dependents::Indexed(&GATE_TARGETS, |target| vec![Key::of(target).name.into()]),
    watch: Watch::Frees(free_target),
};

/// An Installation imports ConfigMaps.
pub(super) static GUARDED_CONFIG_MAPS: Dependency<Installation, ConfigMapMeta> = Dependency {
    what: "to be gone, before its guard goes",
    through: "the ConfigMaps that it imports",
    dependents: Dependents::Indexed(&CONFIG_MAP_NAMES, |map| vec![Key::of(map).name.into()]),
    watch: Watch::Frees(|_, queues, map| queues.wake(StoredKind::ConfigMap, map)),
};

/// All of them.
pub(crate) static EDGES: [&dyn Edge; 15] = [
    &EXECUTION,
    &SUBINSTALLATIONS,
    &PARENT,
    &PREDECESSORS,
    &SUCCESSORS,
    &POLICY,
    &DATA_OBJECTS,
    &TARGETS,
    &SECRETS,
    &CONFIG_MAPS,
    &WRITTEN_DATA,
    &WRITTEN_TARGETS,
    &CONTEXT,
    &GUARDED_TARGETS,
    &GUARDED_CONFIG_MAPS,
];

/// Gives the stores the indexes of what Installations write.
pub(crate) fn index_written(stores: &Stores) {
    DATA_OF_CONTEXT.register(&stores.data_objects);
    DATA_OF_SOURCE.register(&stores.data_objects);
    TARGETS_OF_CONTEXT.register(&stores.targets);
    TARGETS_OF_SOURCE.register(&stores.targets);
    KEPT_TARGETS.register(&stores.targets);
}

/// Under what [`KEPT_TARGETS`] has the copies of a context of a key; with no key, all of them. No context has a slash in it.
pub(super) fn kept_under(context: &str, key: &str) -> String {
    format!("{context}/{key}")
}

/// The names of the Targets that an Installation imports, and of the copies that it keeps of them.
pub(super) fn imported_targets(stores: &Stores, installation: &Installation) -> BTreeSet<ObjectName> {
    let Key { namespace, name } = Key::of(installation);
    let context = installation.parent_installation().map(installation_context).unwrap_or_default();
    let kept = |context: &str, key: &str| -> Vec<ObjectName> {
        let keys = KEPT_TARGETS.keys(&stores.targets, &namespace, &kept_under(context, key));
        keys.into_iter().map(|key| key.name).collect()
    };
    let imports = ImportBindings::from(&installation.spec.imports);
    let named = imports.targets.iter().filter_map(TargetImport::source).flat_map(|source| match source {
        TargetSource::Target(key) => vec![object_name(&context, key)],
        TargetSource::List(keys) => keys.iter().map(|key| object_name(&context, key)).collect(),
        TargetSource::Map(keys) => keys.values().map(|key| object_name(&context, key)).collect(),
        TargetSource::ListOf(import) | TargetSource::MapOf(import) => kept(&context, import),
    });
    named.chain(kept(&installation_context(&name), "")).collect()
}

fn labelled<K: Watched>(object: &K, key: &str) -> Vec<String> {
    object.label(key).map(str::to_owned).into_iter().collect()
}

/// The edges between siblings, so that nobody scans.
pub(super) fn edges(
    installation: &Installation,
    references: impl IntoIterator<Item = SiblingReference>,
) -> Vec<String> {
    let parent = tree::parent(installation);
    references.into_iter().map(|reference| format!("{parent}/{reference}")).collect()
}

/// The edges under which an Installation exports.
pub(super) fn exports(installation: &Installation) -> Vec<String> {
    edges(installation, exported(&(&installation.spec.exports).into()))
}

/// The edges under which an Installation imports.
pub(super) fn imports(installation: &Installation) -> Vec<String> {
    edges(installation, imported(&(&installation.spec.imports).into()))
}

/// Whether jobs of an Installation wait for imports that do not exist.
pub(super) fn awaits_imports(installation: &Installation) -> bool {
    installation.spec.import_policy == ImportPolicy::Wait && installation.is_root() && !installation.is_deleting()
}

/// The names of those objects whose changes may start a job of an Installation or let one go on.
fn observed(installation: &Installation, name: fn(&SiblingReference) -> Option<String>) -> Vec<String> {
    if !observes(installation) && !awaits_imports(installation) {
        return Vec::new();
    }
    imported(&(&installation.spec.imports).into()).iter().filter_map(name).collect()
}

/// Whether siblings that wait for this Installation may go on: it ended a job, has asked those that it was to ask, lost a
/// request, imports or exports otherwise, or is gone.
fn may_release_siblings(change: &ObjectChange<'_, Installation>) -> bool {
    fn stand(of: &Installation) -> (Option<i64>, &str, &str, bool, Option<&str>) {
        let asks = of.status.as_ref().is_some_and(|status| !status.dependents_to_trigger.is_empty());
        (of.metadata.generation, of.job_id(), of.job_id_finished(), asks, of.annotation(annotation::OPERATION))
    }
    change.before.map(|before| stand(before)) != change.after.map(|after| stand(after))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn installation(parent: Option<&str>, imports: Value, exports: Value) -> Installation {
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
    fn ins_61_c_11_one_that_imports_no_more_wakes_the_sibling_that_waits_for_it() {
        let stores = crate::stores();
        let of = |name: &str, generation: i64, imports: Value, exports: Value| -> Installation {
            let metadata =
                json!({"namespace": "n", "name": name, "uid": name, "resourceVersion": "1", "generation": generation});
            let spec = json!({"blueprint": {}, "imports": imports, "exports": exports});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        stores.installations.upsert(of("exporter", 1, json!({}), json!({"data": [{"name": "a", "dataRef": "d"}]})));
        let before = Arc::new(of("importer", 1, json!({"data": [{"name": "b", "dataRef": "d"}]}), json!({})));
        let after = Arc::new(of("importer", 2, json!({}), json!({})));
        let change = ObjectChange { before: Some(&before), after: Some(&after) };
        let dependents = Dependents::Indexed(&EXPORTS, imports);
        assert!(may_release_siblings(&change));
        assert_eq!(dependents.of_change(&stores, &change), [Key::new("n", "exporter")].into());
        let same = ObjectChange { before: Some(&after), after: Some(&after) };
        assert!(!may_release_siblings(&same) && dependents.of_change(&stores, &same).is_empty());
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

    fn importer(policy: &str, metadata: Value) -> Installation {
        let imports = json!({
            "data": [
                {"name": "a", "dataRef": "plain"},
                {"name": "b", "dataRef": "#global"},
                {"name": "c", "dataRef": "No Name"},
                {"name": "d", "secretRef": {"name": "s"}},
            ],
            "targets": [{"name": "e", "target": "one"}, {"name": "f", "targets": ["two", "one"]}],
        });
        let spec = json!({"blueprint": {}, "imports": imports, "reconcilePolicy": policy});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn sorted(mut names: Vec<String>) -> Vec<String> {
        names.sort_unstable();
        names
    }

    #[test]
    fn orc_30_orc_33_a_root_under_the_policy_is_found_by_the_objects_it_imports() {
        let hashed = object_name("", "No Name");
        let root = importer("OnChange", json!({"name": "x"}));
        assert_eq!(
            sorted(DATA_OBJECTS.names(&root)),
            sorted(vec!["global".to_owned(), hashed.into(), "plain".to_owned()])
        );
        assert_eq!(sorted(TARGETS.names(&root)), ["one", "two"]);
        assert_eq!((SECRETS.names(&root), CONFIG_MAPS.names(&root)), (vec!["s".to_owned()], Vec::new()));
        for policy in ["Manual", "OnSpecChange"] {
            let root = importer(policy, json!({"name": "x"}));
            assert_eq!((DATA_OBJECTS.names(&root), TARGETS.names(&root)), (Vec::new(), Vec::new()), "{policy}");
        }
    }

    #[test]
    fn orc_33_children_and_what_is_to_go_start_no_jobs_by_their_imports() {
        let owner =
            json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": "up", "uid": "u"}]);
        for metadata in [
            json!({"name": "x", "ownerReferences": owner}),
            json!({"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ] {
            let root = importer("OnChange", metadata.clone());
            assert_eq!((DATA_OBJECTS.names(&root), TARGETS.names(&root)), (Vec::new(), Vec::new()), "{metadata}");
        }
    }
}
