//! What every controller is given: the client, the stores, the components, the clock and the randomness.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Client,
    runtime::events::{Recorder, Reporter},
};
use orangery_api::{
    context::Context, data_object::DataObject, deploy_item::DeployItem, execution::Execution,
    installation::Installation, job::Job, label, marks::Marks, target::Target,
};
use orangery_apply::Waiter;
use orangery_blueprint::plugins::Plugins;
use orangery_core::port::{Chance, Clock};
use orangery_ocm::ComponentVersions;
use orangery_reconcile::{Key, Store, Term, Watched, Writer};

use crate::{
    guard::{self, ConfigMapMeta, SecretMeta},
    installation::{on_change, sibling},
    outdated::Outdated,
    seed::HostKey,
    target::{OwnAddress, Tokens},
};

/// What is known of each kind.
#[derive(Clone)]
pub struct Stores {
    /// Installations, by parent, by what they export and import, and by what starts jobs of them.
    pub installations: Store<Installation>,
    /// Executions.
    pub executions: Store<Execution>,
    /// Deploy items, by the Execution that manages them.
    pub deploy_items: Store<DeployItem>,
    /// Targets, by context and by source.
    pub targets: Store<Target>,
    /// Data objects, by context and by source.
    pub data_objects: Store<DataObject>,
    /// Contexts.
    pub contexts: Store<Context>,
    /// Secrets that are guarded against deletion, without their content.
    pub secrets: Store<SecretMeta>,
    /// ConfigMaps that are guarded against deletion, without their content.
    pub config_maps: Store<ConfigMapMeta>,
}

/// Names of the indexes of the stores.
pub(crate) mod index {
    /// Installations by the name of their parent; roots stand under the empty name.
    pub(crate) const PARENT: &str = "parent";
    /// Installations by what they export: see [`crate::installation::sibling`].
    pub(crate) const EXPORTS: &str = "exports";
    /// Installations by what they import.
    pub(crate) const IMPORTS: &str = "imports";
    /// Installations by the objects whose changes start jobs of them: see [`crate::installation::on_change`].
    pub(crate) const OBSERVED: &str = "observed";
    /// Deploy items by the name of their Execution.
    pub(crate) const MANAGED_BY: &str = "managed-by";
    /// Data objects and targets by the context they live in.
    pub(crate) const CONTEXT: &str = "context";
    /// Data objects and targets by who wrote them.
    pub(crate) const SOURCE: &str = "source";
    /// Deploy items and Executions by the Targets that they use: see [`crate::guard`].
    pub(crate) const TARGET: &str = "target";
    /// Deploy items by their Context.
    pub(crate) const ITEM_CONTEXT: &str = "item-context";
    /// Targets by the Secret that they refer to.
    pub(crate) const SECRET: &str = "secret";
    /// Installations by the ConfigMaps that they import.
    pub(crate) const CONFIG_MAP: &str = "config-map";
}

fn labelled<K: Marks>(object: &K, key: &str) -> Vec<String> {
    object.label(key).map(str::to_owned).into_iter().collect()
}

/// Whether no job of an object runs, and none will by itself.
fn rests<K: Job + Watched>(object: &K) -> bool {
    object.job_finished() && object.meta().deletion_timestamp.is_none()
}

impl Stores {
    /// Empty stores with their indexes.
    pub fn new() -> Self {
        Self {
            installations: Store::new()
                .folding(rests)
                .with_index(index::PARENT, |installation| vec![sibling::parent(installation).to_owned()])
                .with_index(index::EXPORTS, sibling::exports)
                .with_index(index::IMPORTS, sibling::imports)
                .with_index(index::OBSERVED, on_change::observed)
                .with_index(index::CONFIG_MAP, guard::config_maps_of)
                .with_index(index::TARGET, guard::looked_at_by_installation),
            executions: Store::new().folding(rests).with_index(index::TARGET, guard::looked_at),
            deploy_items: Store::new()
                .folding(rests)
                .with_index(index::MANAGED_BY, |item| labelled(item, label::MANAGED_BY))
                .with_index(index::TARGET, guard::target_of)
                .with_index(index::ITEM_CONTEXT, guard::context_of),
            targets: Store::new()
                .folding(|_| true)
                .with_index(index::CONTEXT, |target| labelled(target, label::CONTEXT))
                .with_index(index::SOURCE, |target| labelled(target, label::SOURCE))
                .with_index(index::SECRET, guard::secret_of),
            data_objects: Store::new()
                .folding(|_| true)
                .with_index(index::CONTEXT, |object| labelled(object, label::CONTEXT))
                .with_index(index::SOURCE, |object| labelled(object, label::SOURCE)),
            contexts: Store::new(),
            secrets: Store::new(),
            config_maps: Store::new(),
        }
    }
}

impl Default for Stores {
    fn default() -> Self {
        Self::new()
    }
}

/// What every controller is given.
pub struct Host {
    /// The cluster that holds our objects.
    pub client: Client,
    /// What is known of it.
    pub stores: Stores,
    /// The components.
    pub plugins: Arc<dyn Plugins>,
    /// Component versions.
    pub components: Arc<dyn ComponentVersions>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The randomness.
    pub chance: Arc<dyn Chance>,
    /// What the randomness of templates is derived from.
    pub key: HostKey,
    /// Publishes events.
    pub recorder: Recorder,
    /// How long an item waits for a deployer elsewhere to begin; `None` for ever.
    pub pick_up_timeout: Option<Duration>,
    /// How many deploy items of components may be under way at once; `None` for any number (WF-15).
    pub max_parallel: Option<NonZeroU32>,
    /// Whether what is in use is guarded against deletion.
    pub guards: bool,
    /// How the cluster of the client is reached; `None` where only this process can.
    pub own_address: Option<OwnAddress>,
    /// Until when anything may be written, on any cluster; `None` for ever (C-34).
    pub term: Option<Term>,
    /// Tokens for targets that name a service account.
    pub(crate) tokens: Tokens,
    /// What conditions answer otherwise than in the last job.
    pub(crate) outdated: Outdated,
}

/// How long an item waits for a deployer elsewhere unless told otherwise, as in the code of the original
/// (`landscaper.md` §3.5).
pub const PICK_UP_TIMEOUT: Duration = Duration::from_secs(5 * 60);

impl Host {
    /// A host that knows nothing yet.
    pub fn new(
        client: Client,
        plugins: Arc<dyn Plugins>,
        components: Arc<dyn ComponentVersions>,
        clock: Arc<dyn Clock>,
        chance: Arc<dyn Chance>,
        key: HostKey,
    ) -> Self {
        let recorder = Recorder::new(client.clone(), Reporter { controller: "orangery".to_owned(), instance: None });
        Self {
            client,
            stores: Stores::new(),
            plugins,
            components,
            clock,
            chance,
            key,
            recorder,
            pick_up_timeout: Some(PICK_UP_TIMEOUT),
            max_parallel: None,
            guards: true,
            own_address: None,
            term: None,
            tokens: Tokens::default(),
            outdated: Outdated::default(),
        }
    }

    /// Writes objects of one kind and keeps its store in step.
    pub(crate) fn writer<K: Watched>(&self, store: &Store<K>) -> Writer<K> {
        Writer::new(self.client.clone(), store.clone())
    }

    /// Whether this process may still write; its client refuses writes by itself, those of targets ask here (C-24).
    pub(crate) fn may_write(&self) -> bool {
        self.term.as_ref().is_none_or(Term::lasts)
    }

    /// Now, with the precision that objects keep.
    pub(crate) fn now(&self) -> Time {
        let now = self.clock.now();
        Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now))
    }
}

/// Who waits for what is watched.
pub(crate) fn waiter(kind: &'static str, key: &Key) -> Waiter {
    Waiter { kind, namespace: key.namespace.clone(), name: key.name.clone() }
}

/// The key of an object.
pub(crate) fn key_of<K: Watched>(object: &K) -> Key {
    let meta = object.meta();
    Key { namespace: meta.namespace.clone().unwrap_or_default(), name: meta.name.clone().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
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
        store.absorb(object.clone());
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
    fn what_works_is_kept_whole() {
        let item = |fields: Value| -> DeployItem { serde_json::from_value(fields).unwrap() };
        let with = |job: &str, meta: Value| {
            item(json!({"metadata": meta, "spec": {"type": "t"}, "status": {"jobID": job, "jobIDFinished": "1"}}))
        };
        assert!(rests(&with("1", json!({}))));
        assert!(!rests(&with("2", json!({}))));
        assert!(!rests(&with("1", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}))));
    }
}
