//! Who depends on whom: each edge between two kinds is one value, which says what is waited for, how those who wait are found,
//! and wakes them (ORC-24, ORC-29, ORC-32). The table in `host/README.md` and the rights of the chart are held against it.

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::{annotation, installation::Installation, job::Job, label, marks::Marks};
use orangery_apply::ClusterPool;
use orangery_reconcile::{Key, Queue, Store, Watched};

use crate::{
    deploy_item,
    guard::{self, GuardQueues},
    host::{Stores, index},
    installation::{self, on_change, sibling},
    outdated,
};

/// The queues of the controllers.
#[derive(Clone, Default)]
pub struct Queues {
    /// Of Installations.
    pub installations: Queue,
    /// Of Executions.
    pub executions: Queue,
    /// Of deploy items.
    pub deploy_items: Queue,
    /// Of what is guarded against deletion.
    pub guards: GuardQueues,
}

/// One edge between two kinds.
#[derive(Clone, Copy)]
pub struct Dependency {
    /// The kind that depends.
    pub of: &'static str,
    /// The kind that it depends on.
    pub on: &'static str,
    /// The API group of `on`; empty for that of Kubernetes itself.
    pub group: &'static str,
    /// What it depends on it for.
    pub what: &'static str,
    /// How those who depend on an object are found.
    pub through: &'static str,
    /// Has changes of `on` wake those who depend on it. What no store knows is wired where its watches begin.
    wire: fn(&Stores, &Queues),
}

const OURS: &str = "landscaper.gardener.cloud";

/// All edges.
pub const DEPENDENCIES: &[Dependency] = &[
    Dependency {
        of: "Execution",
        on: "DeployItem",
        group: OURS,
        what: "to finish, to be gone",
        through: "its label managed-by",
        wire: |stores, queues| {
            let executions = queues.executions.clone();
            stores.deploy_items.subscribe(move |change| {
                if let Some(item) = change.after.or(change.before)
                    && let Some(execution) = item.label(label::MANAGED_BY)
                {
                    executions.wake(key(item.as_ref(), execution));
                }
            });
        },
    },
    Dependency {
        of: "Installation",
        on: "Execution",
        group: OURS,
        what: "to finish, to be gone",
        // `kubectl delete --cascade=orphan` takes the owner away.
        through: "its name, which is that of its Installation",
        wire: |stores, queues| {
            let installations = queues.installations.clone();
            stores.executions.subscribe(move |change| {
                if let Some(execution) = change.after.or(change.before) {
                    installations.wake(key(execution.as_ref(), &execution.name_any()));
                }
            });
        },
    },
    Dependency {
        of: "Installation",
        on: "Installation",
        group: OURS,
        what: "to finish, to be gone",
        through: "its label encompassed-by; the indexes of what siblings export and import",
        wire: wire_installations,
    },
    Dependency {
        of: "Installation",
        on: "DataObject",
        group: OURS,
        what: "to exist, to change",
        through: "the index of what roots observe",
        wire: |stores, queues| wire_imports(&stores.data_objects, stores, queues),
    },
    Dependency {
        of: "Installation",
        on: "Target",
        group: OURS,
        what: "to exist, to change",
        through: "the index of what roots observe",
        wire: |stores, queues| wire_imports(&stores.targets, stores, queues),
    },
    Dependency {
        of: "Installation",
        on: "Secret",
        group: "",
        what: "to exist, to change",
        through: "a watch of its name, held by the root that imports it",
        wire: |_, _| {},
    },
    Dependency {
        of: "Installation",
        on: "ConfigMap",
        group: "",
        what: "to exist, to change",
        through: "a watch of its name, held by the root that imports it",
        wire: |_, _| {},
    },
    Dependency {
        of: "Installation",
        on: "Context",
        group: OURS,
        what: "to exist",
        through: "its namespace",
        wire: |stores, queues| {
            let (queue, installations) = (queues.installations.clone(), stores.installations.clone());
            stores.contexts.subscribe(move |change| {
                if let (None, Some(context)) = (change.before, change.after) {
                    for installation in installations.keys(context.namespace().as_deref()) {
                        queue.wake(installation);
                    }
                }
            });
        },
    },
    Dependency {
        of: "Target",
        on: "DeployItem",
        group: OURS,
        what: "to be gone, before its guard goes",
        through: "the Target that it deploys to",
        wire: |stores, queues| {
            guard::leaves(&stores.deploy_items, guard::target_of, guard::leave_target(stores, &queues.guards));
        },
    },
    Dependency {
        of: "Target",
        on: "Execution",
        group: OURS,
        what: "to be gone, before its guard goes",
        through: "the Targets that its conditions look at",
        wire: |stores, queues| {
            guard::leaves(&stores.executions, guard::looked_at, guard::leave_target(stores, &queues.guards));
        },
    },
    Dependency {
        of: "Target",
        on: "Installation",
        group: OURS,
        what: "to be gone, before its guard goes",
        through: "the Targets that conditions of its sub-installations look at",
        wire: |stores, queues| {
            let leave = guard::leave_target(stores, &queues.guards);
            guard::leaves(&stores.installations, guard::looked_at_by_installation, leave);
        },
    },
    Dependency {
        of: "Secret",
        on: "Target",
        group: OURS,
        what: "to be out of use, before its guard goes",
        through: "the Secret that it refers to",
        wire: |stores, queues| guard::wakes(&stores.targets, guard::secret_of, &queues.guards.secrets),
    },
    Dependency {
        of: "Context",
        on: "DeployItem",
        group: OURS,
        what: "to be gone, before its guard goes",
        through: "its Context",
        wire: |stores, queues| guard::wakes(&stores.deploy_items, guard::context_of, &queues.guards.contexts),
    },
    Dependency {
        of: "ConfigMap",
        on: "Installation",
        group: OURS,
        what: "to be gone, before its guard goes",
        through: "the ConfigMaps that it imports",
        wire: |stores, queues| {
            guard::wakes(&stores.installations, guard::config_maps_of, &queues.guards.config_maps);
        },
    },
];

/// Subscribes the queues to the stores: a change wakes who depends on it. The object itself is woken by its own loop.
pub fn wire(stores: &Stores, queues: &Queues) {
    for dependency in DEPENDENCIES {
        (dependency.wire)(stores, queues);
    }
    outdated::wire_policy(stores, queues);
}

/// The clusters behind targets: what changes there wakes the deploy items that deployed it, and the Executions and Installations
/// whose conditions look at it. All of them share connections and watches (WF-07).
pub fn clusters(queues: &Queues) -> Arc<ClusterPool> {
    let queues = queues.clone();
    Arc::new(ClusterPool::new(move |waiter| {
        let queue = match waiter.kind {
            deploy_item::KIND => &queues.deploy_items,
            installation::KIND => &queues.installations,
            _ => &queues.executions,
        };
        queue.wake(Key::new(waiter.namespace.clone(), waiter.name.clone()));
    }))
}

/// What is imported wakes the roots whose jobs start by its changes (ORC-33). Secrets and ConfigMaps, which have no store, do
/// so in [`on_change`].
fn wire_imports<K: Watched>(imported: &Store<K>, stores: &Stores, queues: &Queues) {
    let (queue, installations) = (queues.installations.clone(), stores.installations.clone());
    imported.subscribe(move |change| {
        let Some(object) = change.after.or(change.before) else { return };
        let namespace = object.namespace().unwrap_or_default();
        let name = on_change::observed_as::<K>(&object.name_any());
        for importer in installations.indexed_keys(index::OBSERVED, &namespace, &name) {
            queue.wake(importer);
        }
    });
}

/// An Installation wakes its parent, the siblings that import from it, and those it imports from, which may
/// wait for its deletion.
fn wire_installations(stores: &Stores, queues: &Queues) {
    let (queue, executions) = (queues.installations.clone(), queues.executions.clone());
    let store = stores.installations.clone();
    stores.installations.subscribe(move |change| {
        let Some(installation) = change.after.or(change.before) else { return };
        if change.after.is_none() {
            // What it leaves behind deletes itself.
            let own = key(installation.as_ref(), &installation.name_any());
            for child in store.indexed_keys(index::PARENT, &own.namespace, &own.name) {
                queue.wake(child);
            }
            executions.wake(own);
        }
        let parent = sibling::parent(installation);
        if !parent.is_empty() {
            queue.wake(key(installation.as_ref(), parent));
        }
        if !may_release_others(change.before.map(AsRef::as_ref), change.after.map(AsRef::as_ref)) {
            return;
        }
        let namespace = installation.namespace().unwrap_or_default();
        let importers = sibling::exports(installation).into_iter().map(|edge| (index::IMPORTS, edge));
        let exporters = sibling::imports(installation).into_iter().map(|edge| (index::EXPORTS, edge));
        for (index, edge) in importers.chain(exporters) {
            for other in store.indexed_keys(index, &namespace, &edge) {
                queue.wake(other);
            }
        }
    });
}

/// Whether siblings that wait for this Installation may go on: it ended a job, has asked those that it was to ask, lost a
/// request, or is gone.
fn may_release_others(before: Option<&Installation>, after: Option<&Installation>) -> bool {
    fn stand(of: &Installation) -> (&str, &str, bool, Option<&str>) {
        let asks = of.status.as_ref().is_some_and(|status| !status.dependents_to_trigger.is_empty());
        (of.job_id(), of.job_id_finished(), asks, of.annotation(annotation::OPERATION))
    }
    before.map(stand) != after.map(stand)
}

fn key<K: Watched>(near: &K, name: &str) -> Key {
    Key { namespace: near.meta().namespace.clone().unwrap_or_default(), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    fn read<K: serde::de::DeserializeOwned>(name: &str, metadata: Value, spec: Value) -> K {
        let mut object =
            json!({"metadata": {"namespace": "n", "name": name, "uid": name, "resourceVersion": "1"}, "spec": spec});
        for (field, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][field] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    /// Who is woken by what a test does with wired stores, by queue.
    fn woken(act: impl FnOnce(&Stores)) -> BTreeSet<String> {
        let (stores, queues) = (Stores::new(), Queues::default());
        wire(&stores, &queues);
        act(&stores);
        let guards = &queues.guards;
        let all = [
            ("Installation", &queues.installations),
            ("Execution", &queues.executions),
            ("Target", &guards.targets),
            ("Secret", &guards.secrets),
            ("Context", &guards.contexts),
            ("ConfigMap", &guards.config_maps),
        ];
        let mut woken = BTreeSet::new();
        for (kind, queue) in all {
            woken.extend(queue.queued().into_iter().map(|key| format!("{kind} {}", key.name)));
        }
        woken
    }

    fn text(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn item(name: &str) -> orangery_api::deploy_item::DeployItem {
        let labels = json!({"labels": {(label::MANAGED_BY): "tree"}});
        read(name, labels, json!({"type": "t", "context": "private", "target": {"name": "garden", "namespace": "n"}}))
    }

    #[test]
    fn orc_29_orc_32_a_deploy_item_wakes_its_execution_and_frees_what_it_used() {
        assert_eq!(woken(|stores| drop(stores.deploy_items.absorb(item("i")))), text(&["Execution tree"]));
        let gone = |stores: &Stores| {
            let target = json!({"type": "t", "secretRef": {"name": "kubeconfig"}});
            stores.targets.absorb(read("garden", json!({}), target));
            let known = stores.deploy_items.absorb(item("i"));
            stores.deploy_items.forget(&known);
        };
        let expected = text(&["Execution tree", "Target garden", "Secret kubeconfig", "Context private"]);
        assert_eq!(woken(gone), expected);
    }

    #[test]
    fn orc_29_orc_32_an_execution_wakes_its_installation_and_frees_what_its_conditions_looked_at() {
        let gone = |stores: &Stores| {
            let known = stores.executions.absorb(read("tree", json!({}), json!({"conditionTargets": ["garden"]})));
            stores.executions.forget(&known);
        };
        assert_eq!(woken(gone), text(&["Installation tree", "Target garden"]));
    }

    #[test]
    fn orc_29_orc_30_orc_32_what_is_imported_wakes_the_roots_that_observe_it() {
        let root = || {
            let imports =
                json!({"data": [{"name": "a", "dataRef": "data"}], "targets": [{"name": "t", "target": "garden"}]});
            read("root", json!({}), json!({"blueprint": {}, "reconcilePolicy": "OnChange", "imports": imports}))
        };
        let data = |stores: &Stores| {
            stores.installations.absorb(root());
            let object =
                json!({"metadata": {"namespace": "n", "name": "data", "uid": "d", "resourceVersion": "1"}, "data": 1});
            stores.data_objects.absorb(serde_json::from_value(object).unwrap());
        };
        assert_eq!(woken(data), text(&["Installation root"]));
        let target = |stores: &Stores| {
            stores.installations.absorb(root());
            stores.targets.absorb(read("garden", json!({}), json!({"type": "t"})));
        };
        assert_eq!(woken(target), text(&["Installation root"]));
    }

    #[test]
    fn orc_31_a_context_that_changes_or_goes_wakes_nobody() {
        let changes = |stores: &Stores| {
            let context = |version: &str| json!({"metadata": {"namespace": "n", "name": "c", "uid": "c", "resourceVersion": version}});
            stores.contexts.absorb(serde_json::from_value(context("1")).unwrap());
            stores.installations.absorb(read("i", json!({}), json!({"blueprint": {}})));
            let known = stores.contexts.absorb(serde_json::from_value(context("2")).unwrap());
            stores.contexts.forget(&known);
        };
        assert_eq!(woken(changes), BTreeSet::new());
        let appears = |stores: &Stores| {
            stores.installations.absorb(read("i", json!({}), json!({"blueprint": {}})));
            let context = json!({"metadata": {"namespace": "n", "name": "c", "uid": "c", "resourceVersion": "1"}});
            stores.contexts.absorb(serde_json::from_value(context).unwrap());
        };
        assert_eq!(woken(appears), text(&["Installation i"]));
    }

    #[test]
    fn orc_37_an_installation_that_is_gone_frees_the_config_maps_that_it_imported() {
        let gone = |stores: &Stores| {
            let imports = json!({"data": [{"name": "a", "configMapRef": {"name": "data"}}]});
            let known = stores.installations.absorb(read("i", json!({}), json!({"blueprint": {}, "imports": imports})));
            stores.installations.forget(&known);
        };
        // Its Execution deletes itself then.
        assert_eq!(woken(gone), text(&["Execution i", "ConfigMap data"]));
    }

    fn file(path: &str) -> String {
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
    }

    #[test]
    fn orc_24_orc_32_the_documentation_has_every_edge_and_no_other() {
        let readme = file("host/README.md");
        let documented: BTreeSet<&str> = readme
            .lines()
            .skip_while(|line| *line != "## Who depends on whom")
            .skip(1)
            .take_while(|line| !line.starts_with("## "))
            .filter(|line| line.starts_with("| "))
            .skip(1)
            .collect();
        let row =
            |Dependency { of, on, what, through, .. }: &Dependency| format!("| {of} | {on} | {what} | {through} |");
        let declared: Vec<String> = DEPENDENCIES.iter().map(row).collect();
        assert_eq!(documented, declared.iter().map(String::as_str).collect::<BTreeSet<_>>(), "{}", declared.join("\n"));
        assert_eq!(declared.len(), documented.len(), "an edge stands twice");
    }

    #[test]
    fn orc_29_orc_32_the_chart_lets_the_operator_watch_what_is_depended_on() {
        let rules = orangery_core::yaml::locate(&file("charts/orangery/files/rules.yaml")).unwrap().value;
        let list = |rule: &Value, field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
        for Dependency { on, group, .. } in DEPENDENCIES {
            let plural = format!("{}s", on.to_lowercase());
            let allowed = rules.as_array().unwrap().iter().any(|rule| {
                let has = |field: &str, name: &str| list(rule, field).iter().any(|one| one == name);
                let watches = ["get", "list", "watch"].iter().all(|verb| has("verbs", verb));
                has("apiGroups", group) && has("resources", &plural) && watches
            });
            assert!(allowed, "nothing in rules.yaml lets the operator watch {plural} of {group:?}");
        }
    }
}
