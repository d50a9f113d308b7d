//! What is known of each kind, the queues of the controllers, and the kinds themselves.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use orangery_api::{
    GROUP, context::Context, data_object::DataObject, deploy_item::DeployItem, execution::Execution,
    installation::Installation, job::Job, sync::TargetSync, target::Target,
};
use orangery_reconcile::{Key, Queue, Restorations, Store, Watched};

/// A Secret without its content.
pub type SecretMeta = PartialObjectMeta<Secret>;
/// A ConfigMap without its content.
pub type ConfigMapMeta = PartialObjectMeta<ConfigMap>;

/// The kinds that controllers work on or depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredKind {
    /// An Installation.
    Installation,
    /// An Execution.
    Execution,
    /// A DeployItem.
    DeployItem,
    /// A Target.
    Target,
    /// A DataObject.
    DataObject,
    /// A Context.
    Context,
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
    /// A TargetSync.
    TargetSync,
}

impl StoredKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Installation,
        Self::Execution,
        Self::DeployItem,
        Self::Target,
        Self::DataObject,
        Self::Context,
        Self::Secret,
        Self::ConfigMap,
        Self::TargetSync,
    ];

    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Installation => "Installation",
            Self::Execution => "Execution",
            Self::DeployItem => "DeployItem",
            Self::Target => "Target",
            Self::DataObject => "DataObject",
            Self::Context => "Context",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::TargetSync => "TargetSync",
        }
    }

    /// Its API group; empty for that of Kubernetes itself.
    pub fn group(self) -> &'static str {
        match self {
            Self::Installation
            | Self::Execution
            | Self::DeployItem
            | Self::Target
            | Self::DataObject
            | Self::Context
            | Self::TargetSync => GROUP,
            Self::Secret | Self::ConfigMap => "",
        }
    }

    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What is known of each kind. New stores have no indexes: they are those of the kinds.
#[derive(Clone)]
pub struct Stores {
    /// Installations.
    pub installations: Store<Installation>,
    /// Executions.
    pub executions: Store<Execution>,
    /// Deploy items.
    pub deploy_items: Store<DeployItem>,
    /// Targets.
    pub targets: Store<Target>,
    /// Data objects.
    pub data_objects: Store<DataObject>,
    /// Contexts.
    pub contexts: Store<Context>,
    /// Secrets that are guarded against deletion, without their content.
    pub secrets: Store<SecretMeta>,
    /// ConfigMaps that are guarded against deletion, without their content.
    pub config_maps: Store<ConfigMapMeta>,
    /// TargetSyncs.
    pub target_syncs: Store<TargetSync>,
}

/// Whether no job of an object runs, and none will by itself.
fn is_settled<K: Job + Watched>(object: &K) -> bool {
    object.job_finished() && object.meta().deletion_timestamp.is_none()
}

impl Stores {
    /// Empty stores.
    pub fn new() -> Self {
        let restorations = Restorations::default();
        Self {
            installations: Store::of(&restorations).compacting(is_settled),
            executions: Store::of(&restorations).compacting(is_settled),
            deploy_items: Store::of(&restorations).compacting(is_settled),
            targets: Store::of(&restorations).compacting(|_| true),
            data_objects: Store::of(&restorations).compacting(|_| true),
            contexts: Store::of(&restorations).compacting(|_| true),
            secrets: Store::of(&restorations),
            config_maps: Store::of(&restorations),
            target_syncs: Store::of(&restorations),
        }
    }
}

impl Default for Stores {
    fn default() -> Self {
        Self::new()
    }
}

/// A kind that has a store.
pub trait Stored: Watched {
    /// Which one it is.
    const KIND: StoredKind;
    /// What is known of it.
    fn store(stores: &Stores) -> &Store<Self>;
}

macro_rules! stored {
    ($($type:ty, $kind:ident, $store:ident;)*) => {
        $(impl Stored for $type {
            const KIND: StoredKind = StoredKind::$kind;

            fn store(stores: &Stores) -> &Store<Self> {
                &stores.$store
            }
        })*
    };
}

stored! {
    Installation, Installation, installations;
    Execution, Execution, executions;
    DeployItem, DeployItem, deploy_items;
    Target, Target, targets;
    DataObject, DataObject, data_objects;
    Context, Context, contexts;
    SecretMeta, Secret, secrets;
    ConfigMapMeta, ConfigMap, config_maps;
    TargetSync, TargetSync, target_syncs;
}

/// The queues of the controllers.
#[derive(Clone, Default)]
pub struct Queues {
    /// Of Installations.
    pub installations: Queue,
    /// Of Executions.
    pub executions: Queue,
    /// Of deploy items.
    pub deploy_items: Queue,
    /// Of the guards of Targets.
    pub target_guards: Queue,
    /// Of the guards of Secrets.
    pub secret_guards: Queue,
    /// Of the guards of Contexts.
    pub context_guards: Queue,
    /// Of the guards of ConfigMaps.
    pub config_map_guards: Queue,
    /// Of TargetSyncs.
    pub target_syncs: Queue,
}

impl Queues {
    /// The queue of the controller of a kind; no controller works on DataObjects.
    pub fn of(&self, kind: StoredKind) -> Option<&Queue> {
        match kind {
            StoredKind::Installation => Some(&self.installations),
            StoredKind::Execution => Some(&self.executions),
            StoredKind::DeployItem => Some(&self.deploy_items),
            StoredKind::Target => Some(&self.target_guards),
            StoredKind::DataObject => None,
            StoredKind::Context => Some(&self.context_guards),
            StoredKind::Secret => Some(&self.secret_guards),
            StoredKind::ConfigMap => Some(&self.config_map_guards),
            StoredKind::TargetSync => Some(&self.target_syncs),
        }
    }

    /// Has the controller of a kind called for an object.
    pub(crate) fn wake(&self, kind: StoredKind, key: Key) {
        if let Some(queue) = self.of(kind) {
            queue.wake(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check<K: Watched + PartialEq>(store: &Store<K>, kind: &str, fields: Value) {
        let metadata = json!({
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"l": "1"}, "annotations": {"x": "y"},
            "finalizers": ["f"],
        });
        let mut object =
            json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "metadata": metadata});
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        let object: K = serde_json::from_value(object).unwrap();
        store.upsert(object.clone());
        assert_eq!(store.get(&Key::new("n", "a")).as_deref(), Some(&object));
    }

    /// Whatever a store folds is found again as it was.
    #[test]
    fn every_kind_is_found_in_a_store_as_it_was_put_in() {
        let stores = Stores::new();
        let ids = json!({"phase": "Succeeded", "jobID": "1", "jobIDFinished": "1", "observedGeneration": 3});
        let error = json!({
            "operation": "o", "reason": "r", "message": "m", "codes": ["ERR_TIMEOUT"],
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
        });
        let status = |fields: Value| {
            let mut status = ids.clone();
            status["lastError"] = error.clone();
            if let (Some(status), Value::Object(fields)) = (status.as_object_mut(), fields) {
                status.extend(fields);
            }
            status
        };
        let inline = json!({"inline": {"filesystem": {"blueprint.yaml": "kind: Blueprint"}}});
        let imports = json!({"data": [{"name": "d", "secretRef": {"name": "s", "key": "k"}}], "targets": [{"name": "t", "targets": ["x"]}]});
        check(
            &stores.installations,
            "Installation",
            json!({
                "spec": {"context": "c", "blueprint": inline, "imports": imports, "importDataMappings": {"x": [1, 1.5, null]},
                         "automaticReconcile": {"succeededReconcile": {"interval": "1h"}}, "reconcilePolicy": "OnChange"},
                "status": status(json!({"importsHash": "h", "subInstCache": {"activeSubs": [{"specName": "s", "objectName": "o"}]}})),
            }),
        );
        check(
            &stores.executions,
            "Execution",
            json!({
                "spec": {"context": "c", "deployItems": [{"name": "i", "type": "t", "config": {"n": 1e300}, "timeout": "none"}]},
                "status": status(json!({"deployItemCache": {"orphanedDIs": ["x"]}})),
            }),
        );
        check(
            &stores.deploy_items,
            "DeployItem",
            json!({
                "spec": {"type": "t", "config": {"kind": "C", "deep": [[{"a": {}}]]}, "timeout": "1m30s"},
                "status": status(json!({"providerStatus": {"kind": "S", "list": []}, "firstError": error})),
            }),
        );
        check(&stores.targets, "Target", json!({"spec": {"type": "t", "config": {"kubeconfig": "k: v"}}}));
        check(&stores.data_objects, "DataObject", json!({"data": {"a": [true, null]}}));
        check(&stores.contexts, "Context", json!({"repositoryContext": {"type": "OCIRegistry", "baseUrl": "u"}}));
    }

    #[test]
    fn c_99_what_no_job_works_on_and_what_is_large_is_kept_as_its_text() {
        fn is_text<K: Watched>(store: &Store<K>, fields: Value) -> bool {
            let mut object = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"}});
            if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
                object.extend(fields);
            }
            store.upsert(serde_json::from_value(object).unwrap());
            let [first, again] = [(); 2].map(|()| store.get(&Key::new("n", "a")).unwrap());
            !Arc::ptr_eq(&first, &again)
        }
        let large = json!(vec![json!({"": 0}); 1_000]);
        for (values, in_work) in [(json!([]), false), (large, true)] {
            let (stores, status) = (Stores::new(), json!({"jobID": "2", "jobIDFinished": "1"}));
            let of_jobs = [
                is_text(
                    &stores.installations,
                    json!({"spec": {"blueprint": {}, "importDataMappings": {"a": values}}, "status": status}),
                ),
                is_text(
                    &stores.executions,
                    json!({"spec": {"deployItems": [{"name": "a", "type": "t", "config": values}]}, "status": status}),
                ),
                is_text(&stores.deploy_items, json!({"spec": {"type": "t", "config": values}, "status": status})),
            ];
            let others = [
                is_text(&stores.targets, json!({"spec": {"type": "t", "config": values}})),
                is_text(&stores.data_objects, json!({"data": values})),
                is_text(&stores.contexts, json!({"configurations": {"a": values}})),
            ];
            assert_eq!((of_jobs, others), ([in_work; 3], [true; 3]));
        }
    }

    #[test]
    fn what_works_is_kept_whole() {
        let item = |fields: Value| -> DeployItem { serde_json::from_value(fields).unwrap() };
        let with = |job: &str, meta: Value| {
            item(json!({"metadata": meta, "spec": {"type": "t"}, "status": {"jobID": job, "jobIDFinished": "1"}}))
        };
        assert!(is_settled(&with("1", json!({}))));
        assert!(!is_settled(&with("2", json!({}))));
        assert!(!is_settled(&with("1", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}))));
    }
}
