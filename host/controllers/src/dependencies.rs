//! All edges between the kinds. The table in `host/controllers/README.md` and the rights of the chart are held against
//! them.

use std::sync::Arc;

use orangery_cluster::ClusterPool;
use orangery_reconcile::Key;

use crate::{
    dependency::{DependencyRow, Edge},
    deploy_item, execution,
    guard::SECRET_OF_TARGET,
    installation, kept_credentials,
    stores::{Queues, StoredKind, Stores},
    target_sync,
};

static TARGET_EDGES: [&dyn Edge; 1] = [&SECRET_OF_TARGET];

fn edges() -> impl Iterator<Item = &'static dyn Edge> {
    let edges = execution::dependencies::EDGES.iter().chain(&installation::dependencies::EDGES);
    edges.chain(&deploy_item::dependencies::EDGES).chain(&TARGET_EDGES).copied()
}

/// All edges in words.
pub fn dependencies() -> Vec<DependencyRow> {
    edges().map(Edge::row).collect()
}

/// Empty stores with the indexes of all kinds.
pub fn stores() -> Stores {
    let stores = Stores::new();
    for edge in edges() {
        edge.index(&stores);
    }
    installation::dependencies::index_written(&stores);
    kept_credentials::index(&stores);
    stores
}

/// Subscribes the queues to the stores: a change wakes what depends on it. The object itself is woken by its own loop.
pub fn wire(stores: &Stores, queues: &Queues) {
    for edge in edges() {
        edge.watch(stores, queues);
    }
    target_sync::wire(stores, &queues.target_syncs);
}

/// The clusters behind targets: what changes there wakes the deploy items that deployed it, and the Executions and Installations
/// whose gate expressions look at it. All of them share connections and watches (WF-07).
pub fn clusters(queues: &Queues, objects: u64) -> Arc<ClusterPool> {
    let queues = queues.clone();
    Arc::new(ClusterPool::with_memory(objects, move |waiter| {
        if let Some(kind) = StoredKind::named(&waiter.kind) {
            queues.wake(kind, Key::new(&waiter.namespace, waiter.name.clone()));
        }
    }))
}

/// Whether a guarded object is referred to.
pub(crate) fn is_in_use(stores: &Stores, kind: StoredKind, key: &Key) -> bool {
    users(stores, kind, key).next().is_some()
}

/// What refers to a guarded object. What is itself guarded counts as long as it is in use.
pub(crate) fn users<'a>(
    stores: &'a Stores,
    kind: StoredKind,
    key: &'a Key,
) -> impl Iterator<Item = (StoredKind, Key)> + use<'a> {
    let by_edge = guards(kind)
        .flat_map(move |(edge, by)| edge.dependents(stores, key).into_iter().map(move |dependent| (by, dependent)));
    by_edge.filter(|(by, dependent)| guards(*by).next().is_none() || is_in_use(stores, *by, dependent))
}

/// The edges that guard objects of a kind, with the kinds that they lead from.
fn guards(kind: StoredKind) -> impl Iterator<Item = (&'static dyn Edge, StoredKind)> {
    edges().filter_map(move |edge| edge.guards().filter(|(on, _)| *on == kind).map(|(_, by)| (edge, by)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use orangery_api::label;
    use orangery_reconcile::Queue;
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

    /// The keys that are woken by what a test does with wired stores, by queue.
    fn woken(act: impl FnOnce(&Stores)) -> BTreeSet<String> {
        let (stores, queues) = (stores(), Queues::default());
        wire(&stores, &queues);
        act(&stores);
        let all = [
            ("Installation", &queues.installations),
            ("Execution", &queues.executions),
            ("Target", &queues.target_guards),
            ("Secret", &queues.secret_guards),
            ("Context", &queues.context_guards),
            ("ConfigMap", &queues.config_map_guards),
            ("TargetSync", &queues.target_syncs),
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
        assert_eq!(woken(|stores| drop(stores.deploy_items.upsert(item("i")))), text(&["Execution tree"]));
        let gone = |stores: &Stores| {
            let target = json!({"type": "t", "secretRef": {"name": "kubeconfig"}});
            stores.targets.upsert(read("garden", json!({}), target));
            let known = stores.deploy_items.upsert(item("i"));
            stores.deploy_items.forget(&known);
        };
        let expected = text(&["Execution tree", "Target garden", "Secret kubeconfig", "Context private"]);
        assert_eq!(woken(gone), expected);
    }

    #[test]
    fn orc_29_orc_32_an_execution_wakes_its_installation_and_frees_what_its_conditions_looked_at() {
        let gone = |stores: &Stores| {
            let known = stores.executions.upsert(read("tree", json!({}), json!({"gateTargets": ["garden"]})));
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
            stores.installations.upsert(root());
            let object =
                json!({"metadata": {"namespace": "n", "name": "data", "uid": "d", "resourceVersion": "1"}, "data": 1});
            stores.data_objects.upsert(serde_json::from_value(object).unwrap());
        };
        assert_eq!(woken(data), text(&["Installation root"]));
        let target = |stores: &Stores| {
            stores.installations.upsert(root());
            stores.targets.upsert(read("garden", json!({}), json!({"type": "t"})));
        };
        assert_eq!(woken(target), text(&["Installation root"]));
    }

    #[test]
    fn orc_31_a_context_that_changes_or_goes_wakes_nobody() {
        let changes = |stores: &Stores| {
            let context = |version: &str| json!({"metadata": {"namespace": "n", "name": "c", "uid": "c", "resourceVersion": version}});
            stores.contexts.upsert(serde_json::from_value(context("1")).unwrap());
            stores.installations.upsert(read("i", json!({}), json!({"blueprint": {}})));
            let known = stores.contexts.upsert(serde_json::from_value(context("2")).unwrap());
            stores.contexts.forget(&known);
        };
        assert_eq!(woken(changes), BTreeSet::new());
        let appears = |stores: &Stores| {
            stores.installations.upsert(read("i", json!({}), json!({"blueprint": {}})));
            let context = json!({"metadata": {"namespace": "n", "name": "c", "uid": "c", "resourceVersion": "1"}});
            stores.contexts.upsert(serde_json::from_value(context).unwrap());
        };
        assert_eq!(woken(appears), text(&["Installation i"]));
    }

    #[test]
    fn orc_37_an_installation_that_is_gone_frees_the_config_maps_that_it_imported() {
        let gone = |stores: &Stores| {
            let imports = json!({"data": [{"name": "a", "configMapRef": {"name": "data"}}]});
            let known = stores.installations.upsert(read("i", json!({}), json!({"blueprint": {}, "imports": imports})));
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
        let readme = file("host/controllers/README.md");
        let documented: BTreeSet<&str> = readme
            .lines()
            .skip_while(|line| *line != "## Dependencies")
            .skip(1)
            .take_while(|line| !line.starts_with("## "))
            .filter(|line| line.starts_with("| "))
            .skip(1)
            .collect();
        let row =
            |DependencyRow { of, on, what, through }| format!("| {} | {} | {what} | {through} |", of.name(), on.name());
        let declared: Vec<String> = dependencies().into_iter().map(row).collect();
        assert_eq!(documented, declared.iter().map(String::as_str).collect::<BTreeSet<_>>(), "{}", declared.join("\n"));
        assert_eq!(declared.len(), documented.len(), "an edge stands twice");
    }

    #[test]
    fn orc_29_orc_32_the_chart_lets_the_operator_watch_what_is_depended_on() {
        let rules = orangery_core::yaml::locate(&file("charts/orangery/files/rules.yaml")).unwrap().value;
        let list = |rule: &Value, field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
        for row in dependencies() {
            let (on, group) = (row.on.name(), row.on.group());
            let plural = format!("{}s", on.to_lowercase());
            let allowed = rules.as_array().unwrap().iter().any(|rule| {
                let has = |field: &str, name: &str| list(rule, field).iter().any(|one| one == name);
                let watches = ["get", "list", "watch"].iter().all(|verb| has("verbs", verb));
                has("apiGroups", group) && has("resources", &plural) && watches
            });
            assert!(allowed, "nothing in rules.yaml lets the operator watch {plural} of {group:?}");
        }
    }

    #[test]
    fn orc_33_a_root_that_takes_the_policy_up_has_its_tree_called() {
        let (stores, queues) = (stores(), Queues::default());
        let installation = |name: &str, parent: Option<&str>, policy: &str, version: &str| {
            let owner = |name: &&str| json!({"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": name, "uid": "u"});
            let owners: Vec<Value> = parent.iter().map(owner).collect();
            let metadata = json!({"ownerReferences": owners, "resourceVersion": version});
            stores.installations.upsert(read(name, metadata, json!({"blueprint": {}, "reconcilePolicy": policy})));
        };
        installation("root", None, "Manual", "1");
        installation("mid", Some("root"), "Manual", "1");
        wire(&stores, &queues);
        installation("root", None, "OnChange", "2");
        let names = |queue: &Queue| queue.queued().into_iter().map(|key| key.name).collect::<Vec<_>>();
        assert_eq!(
            (names(&queues.executions), names(&queues.installations)),
            (vec!["mid".into(), "root".into()], vec!["mid".into(), "root".into()])
        );
    }

    #[test]
    fn orc_37_a_secret_is_in_use_as_long_as_its_target_is() {
        let stores = stores();
        let in_use = |kind, name: &str| is_in_use(&stores, kind, &Key::new("n", name));
        stores.targets.upsert(read("garden", json!({}), json!({"type": "t", "secretRef": {"name": "kubeconfig"}})));
        assert!(!in_use(StoredKind::Secret, "kubeconfig"), "nothing deploys to the Target");
        let known = stores.deploy_items.upsert(item("i"));
        let kinds =
            [(StoredKind::Secret, "kubeconfig"), (StoredKind::Target, "garden"), (StoredKind::Context, "private")];
        assert_eq!(kinds.map(|(kind, name)| in_use(kind, name)), [true; 3]);
        stores.deploy_items.forget(&known);
        assert_eq!(kinds.map(|(kind, name)| in_use(kind, name)), [false; 3]);
    }

    #[test]
    fn c_371_c_373_a_target_sync_is_woken_by_targets_of_its_namespace_what_uses_them_and_others_of_its_kind() {
        let sync = |name: &str| -> orangery_api::sync::TargetSync {
            read(name, json!({}), json!({"sourceNamespace": "garden", "secretRef": {"name": "access"}}))
        };
        let target = |name: &str| -> orangery_api::target::Target { read(name, json!({}), json!({"type": "t"})) };
        // One is there, and what has happened before woke it as well.
        let after = |act: fn(&Stores)| {
            let (stores, queues) = (stores(), Queues::default());
            stores.target_syncs.upsert(sync("sync"));
            stores.targets.upsert(target("known"));
            stores.deploy_items.upsert(item("i"));
            wire(&stores, &queues);
            act(&stores);
            queues.target_syncs.queued().into_iter().map(|key| key.name.to_string()).collect::<BTreeSet<_>>()
        };
        let sync = text(&["sync"]);
        assert_eq!(after(|stores| drop(stores.targets.upsert(read("new", json!({}), json!({"type": "t"}))))), sync);
        let gone = after(|stores| {
            let known = stores.deploy_items.get(&Key::new("n", "i")).unwrap();
            stores.deploy_items.forget(&known);
        });
        assert_eq!(gone, sync);
        let moved = after(|stores| {
            let mut moved = item("i");
            moved.spec.target = None;
            moved.metadata.resource_version = Some("2".to_owned());
            stores.deploy_items.upsert(moved);
        });
        assert_eq!(moved, sync);
        let worked_on = after(|stores| {
            let mut same = item("i");
            same.spec.context = "other".into();
            same.metadata.resource_version = Some("2".to_owned());
            stores.deploy_items.upsert(same);
        });
        assert_eq!(worked_on, BTreeSet::new(), "its Target is the same");
        let elsewhere = after(|stores| {
            let elsewhere = json!({"metadata": {"namespace": "m", "name": "t", "uid": "t", "resourceVersion": "1"},
                                   "spec": {"type": "t"}});
            stores.targets.upsert(serde_json::from_value(elsewhere).unwrap());
        });
        assert_eq!(elsewhere, BTreeSet::new());
        let twin = after(|stores| {
            let spec = json!({"sourceNamespace": "garden", "secretRef": {"name": "access"}});
            stores.target_syncs.upsert(read("twin", json!({}), spec));
        });
        assert_eq!(twin, text(&["sync", "twin"]));
    }
}
