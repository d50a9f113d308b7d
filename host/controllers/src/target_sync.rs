//! The TargetSync controller: what another cluster has becomes Targets of a namespace, and follows it (C-371 … C-375).
//!
//! A TargetSync names a kubeconfig of another cluster, which is written by whoever may write in the namespace, and that cluster
//! answers what it likes. So it is connected to as the cluster of a Target is, what it tells has a budget, and nothing is changed or
//! taken away here that does not have the mark and the uid of the TargetSync.
//!
//! One call is one pipeline: `source` gathers what both clusters have, by watches alone; `orangery_core::plan::target_sync` decides;
//! `apply` writes what differs; `status` says in one write what was not well.

use std::sync::Arc;

use kube::ResourceExt as _;
use orangery_api::{
    FINALIZER, annotation, deploy_item::DeployItem, label, marks::Marks as _, sync::TargetSync, target::Target,
};
use orangery_cluster::{Call, Cluster, ClusterPool, ClusterSet};
use orangery_core::{
    error::{Code, Failure},
    name::{Namespace, ObjectName, is_label},
    plan::target_sync::{ObjectMaker, SyncOutcome},
    step::{Halt, Step},
};
use orangery_proposal::{Selection, deployer::ApiResource};
use orangery_reconcile::{Controller, Key, NextCall, Queue, Store, in_this_slot};
use orangery_turns::slot;
use serde_json::Value;
use tokio::time::Instant;

use self::memory::SyncMemory;
use crate::{
    controller_context::{ControllerContext, waiter},
    gates::release_when_gone,
    object::uid_of,
    refresh,
    stores::{StoredKind, Stores},
    target_access::TargetConnections,
};

mod apply;
mod deletion;
mod memory;
mod name_filter;
mod rotation;
mod shoots;
mod source;
mod status;

/// The cluster of the resources, in messages.
const HERE: &str = "the cluster of the TargetSync";

/// Keeps Targets as another cluster has what they are made from.
pub struct TargetSyncController {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    memory: Arc<SyncMemory>,
}

impl TargetSyncController {
    /// Over a host and its clusters, which wake TargetSyncs by what changes there.
    pub fn new(host: Arc<ControllerContext>, pool: Arc<ClusterPool>) -> Self {
        release_when_gone::<TargetSync>(&host, &pool);
        let memory = Arc::<SyncMemory>::default();
        let known = Arc::clone(&memory);
        host.stores.target_syncs.subscribe(move |change| {
            let gone = change.key().filter(|_| change.after.is_none());
            gone.iter().for_each(|key| known.forget(key));
        });
        Self { host, pool, memory }
    }
}

impl Controller for TargetSyncController {
    type Object = TargetSync;
    const NAME: &'static str = "target-sync";

    async fn reconcile(&self, sync: Arc<TargetSync>) -> Result<NextCall, Halt> {
        let tenant = Some(Key::of(sync.as_ref()).namespace);
        let work = async {
            if let Some(pause) = self.memory.pause(&Key::of(sync.as_ref()), Instant::now()) {
                return Ok(NextCall::After(pause));
            }
            let mut call = SyncCall::new((&self.host, &self.pool, &self.memory), sync);
            if call.sync.is_deleting() {
                return call.delete().await;
            }
            call.put_finalizer().await?;
            call.sync().await;
            call.finish().await
        };
        self.host.computations.run(&tenant, in_this_slot(work)).await
    }

    async fn refresh(&self, sync: Arc<TargetSync>) -> Result<(), Halt> {
        let key = Key::of(sync.as_ref());
        self.memory.heard_nothing(&key);
        self.pool.renew(&waiter(StoredKind::TargetSync, &key));
        refresh::read(&self.host, &self.host.stores.target_syncs, &key).await
    }
}

/// What wakes TargetSyncs beside the clusters that they look at: others of the namespace that come and go, its Targets, and what uses
/// these.
pub(crate) fn wire(stores: &Stores, queue: &Queue) {
    let woken = |queue: Queue, syncs: Store<TargetSync>| {
        move |of: Key| syncs.keys(Some(&of.namespace)).into_iter().for_each(|sync| queue.wake(sync))
    };
    let wake = woken(queue.clone(), stores.target_syncs.clone());
    stores.target_syncs.subscribe(move |change| {
        if change.before.is_none() || change.after.is_none() {
            change.key().into_iter().for_each(&wake);
        }
    });
    let wake = woken(queue.clone(), stores.target_syncs.clone());
    stores.targets.subscribe(move |change| change.key().into_iter().for_each(&wake));
    let wake = woken(queue.clone(), stores.target_syncs.clone());
    stores.deploy_items.subscribe(move |change| {
        let target = |item: &Arc<DeployItem>| item.spec.target.clone();
        if change.before.is_some() && change.before.map(target) != change.after.map(target) {
            change.key().into_iter().for_each(&wake);
        }
    });
    let wake = woken(queue.clone(), stores.target_syncs.clone());
    stores.executions.subscribe(move |change| {
        let gone = change.key().filter(|_| change.after.is_none());
        gone.into_iter().for_each(&wake);
    });
    let wake = woken(queue.clone(), stores.target_syncs.clone());
    stores.installations.subscribe(move |change| {
        let gone = change.key().filter(|_| change.after.is_none());
        gone.into_iter().for_each(&wake);
    });
}

/// One call for a TargetSync.
struct SyncCall<'a> {
    host: &'a Arc<ControllerContext>,
    pool: &'a Arc<ClusterPool>,
    memory: &'a SyncMemory,
    sync: Arc<TargetSync>,
    key: Key,
    clusters: ClusterSet,
    /// The cluster that has the TargetSync.
    here: Cluster,
    outcome: SyncOutcome,
}

impl<'a> SyncCall<'a> {
    fn new(
        (host, pool, memory): (&'a Arc<ControllerContext>, &'a Arc<ClusterPool>, &'a SyncMemory),
        sync: Arc<TargetSync>,
    ) -> Self {
        let key = Key::of(sync.as_ref());
        let whose = format!("TargetSync {}", key.name);
        let connections = Arc::new(TargetConnections::named(host, pool, &key.namespace, whose));
        let clusters = pool.set(connections, waiter(StoredKind::TargetSync, &key)).during(Call::new(slot()));
        let here = pool.adopt(HERE, &host.client).during(clusters.call());
        Self { host, pool, memory, sync, key, clusters, here, outcome: SyncOutcome::default() }
    }

    async fn put_finalizer(&mut self) -> Step<()> {
        if self.sync.has_finalizer(FINALIZER) {
            return Ok(());
        }
        let mut draft = TargetSync::clone(&self.sync);
        draft.finalizers_mut().push(FINALIZER.to_owned());
        let writer = self.host.writer(&self.host.stores.target_syncs);
        self.sync = writer.update(&self.sync, &draft).await.map_err(|error| error.halt("UpdateTargetSync"))?;
        Ok(())
    }

    /// Brings Targets and Secrets to where they should be. What does not go well is told, and holds up nothing else.
    async fn sync(&mut self) {
        if self.sync.annotation(annotation::OPERATION) == Some("reconcile") {
            self.pool.renew(&waiter(StoredKind::TargetSync, &self.key));
        }
        if let Err(halt) = self.synced().await {
            self.outcome.halts(halt);
        }
        self.clusters.keep_waiting();
    }

    async fn synced(&mut self) -> Step<()> {
        self.check()?;
        let reference = self.reference()?;
        let source = self.source(&reference).await?;
        if let Err(halt) = self.rotate(&reference).await {
            self.outcome.halts(halt);
        }
        let own = self.own_secrets()?;
        let wanted = self.wanted(&source, &own)?;
        self.apply(&reference, &wanted, &own).await;
        self.remove(&wanted, &own).await
    }

    /// Whether the TargetSync says what can be done.
    fn check(&self) -> Step<()> {
        let (spec, namespace) = (&self.sync.spec, &self.key.namespace);
        if self.host.stores.target_syncs.keys(Some(namespace)).len() > 1 {
            return Err(stall(
                "SeveralTargetSyncs",
                format!(
                    "more than one TargetSync object in the same namespace is not allowed; delete all but one in namespace {namespace}"
                ),
            ));
        }
        if !spec.secret_name_expression.is_empty() && !spec.shoot_name_expression.is_empty() {
            return Err(stall(
                "InvalidSpec",
                "a targetsync object with both, secretNameExpression and shootNameExpression, is not allowed; remove one of them"
                    .to_owned(),
            ));
        }
        if !is_label(&spec.source_namespace, 63) {
            let message =
                format!("spec.sourceNamespace {:?} is no name of a namespace; correct it", spec.source_namespace);
            return Err(stall("InvalidSpec", message));
        }
        Ok(())
    }

    /// The maker of an object.
    fn maker_of(&self, object: &Value) -> ObjectMaker {
        let metadata = &object["metadata"];
        let is_marked =
            metadata["labels"].get(label::TARGET_SYNC).and_then(Value::as_str) == Some(label::TARGET_SYNC_OK);
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        ObjectMaker::of(is_marked, owners.filter_map(|owner| owner["uid"].as_str()), uid_of(self.sync.as_ref()))
    }

    /// The names of the Targets that it has made.
    fn own_targets(&self) -> Vec<ObjectName> {
        let targets = self.host.stores.targets.list(Some(&self.key.namespace)).into_iter();
        targets.filter(|target| self.made(target)).map(|target| Key::of(target.as_ref()).name).collect()
    }

    fn made(&self, target: &Target) -> bool {
        let is_marked = target.label(label::TARGET_SYNC) == Some(label::TARGET_SYNC_OK);
        let owners = target.owner_references().iter().map(|owner| owner.uid.as_str());
        ObjectMaker::of(is_marked, owners, uid_of(self.sync.as_ref())) == ObjectMaker::Own
    }
}

/// The kind Secret of every cluster.
fn secrets() -> ApiResource {
    ApiResource { api_version: "v1".into(), kind: "Secret".into(), plural: "secrets".to_owned(), namespaced: true }
}

/// All objects of a kind in a namespace, or those with a label.
fn all_of(resource: &ApiResource, namespace: &Namespace, labels: Option<String>) -> Selection {
    Selection {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        namespace: Some(namespace.clone()),
        names: Vec::new(),
        labels,
        fields: None,
    }
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("SyncTargets", reason, message).with_code(Code::ConfigurationProblem))
}

fn retry(reason: &str, message: String) -> Halt {
    Halt::Retry(Failure::new("SyncTargets", reason, message))
}
