//! Deletion guards: what is in use stays until nobody uses it any more (ORC-36 … ORC-42).
//!
//! A guard is a finalizer. Whoever refers to an object puts it there right before he uses it for the first time; taking it
//! away is [`GuardController`]'s alone, and only when the object is to go and nobody refers to it. So a chain that failed
//! half-way is deleted by `kubectl delete` alone, in whatever order.
//!
//! | guarded | as long as | guarded by |
//! |---|---|---|
//! | Target that no job of ours writes | a DeployItem deploys to it without `skipUninstallIfClusterRemoved`, or conditions of an Execution or an Installation look at it | DeployItem, Execution, Installation |
//! | Secret behind a Target | such a Target refers to it | DeployItem, Execution, Installation |
//! | Context | a DeployItem is of it | DeployItem |
//! | ConfigMap | an Installation imports it | Installation |
//!
//! Copies and exports are written by jobs and deleted by them in order, so they have none (ORC-39).

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use orangery_api::{
    annotation::GUARD, context::Context, deploy_item::DeployItem, execution::Execution, installation::Installation,
    label, marks::Marks, target::Target,
};
use orangery_core::{
    plan::guard::{Guard, lets_go},
    step::{Halt, Step},
};
use orangery_reconcile::{Controller, Key, Next, Queue, Store, Watched, WriteError};

use crate::{
    host::{Host, Stores, index, key_of},
    installation::get,
    removed,
};

/// A Secret, of which nobody here needs the content.
pub type SecretMeta = PartialObjectMeta<Secret>;
/// A ConfigMap, of which nobody here needs the content.
pub type ConfigMapMeta = PartialObjectMeta<ConfigMap>;

/// A kind whose objects are guarded.
pub trait Guarded: Watched + Marks {
    /// Names its controller.
    const NAME: &'static str;
    /// What is known of the kind.
    fn store(stores: &Stores) -> &Store<Self>;
    /// Whether somebody refers to the object.
    fn is_in_use(stores: &Stores, key: &Key) -> bool;
}

impl Guarded for Target {
    const NAME: &'static str = "target-guard";

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.targets
    }

    fn is_in_use(stores: &Stores, key: &Key) -> bool {
        !stores.deploy_items.indexed_keys(index::TARGET, &key.namespace, &key.name).is_empty()
            || !stores.executions.indexed_keys(index::TARGET, &key.namespace, &key.name).is_empty()
            || !stores.installations.indexed_keys(index::TARGET, &key.namespace, &key.name).is_empty()
    }
}

impl Guarded for SecretMeta {
    const NAME: &'static str = "secret-guard";

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.secrets
    }

    fn is_in_use(stores: &Stores, key: &Key) -> bool {
        let targets = stores.targets.indexed_keys(index::SECRET, &key.namespace, &key.name);
        targets.iter().any(|target| Target::is_in_use(stores, target))
    }
}

impl Guarded for Context {
    const NAME: &'static str = "context-guard";

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.contexts
    }

    fn is_in_use(stores: &Stores, key: &Key) -> bool {
        !stores.deploy_items.indexed_keys(index::ITEM_CONTEXT, &key.namespace, &key.name).is_empty()
    }
}

impl Guarded for ConfigMapMeta {
    const NAME: &'static str = "config-map-guard";

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.config_maps
    }

    fn is_in_use(stores: &Stores, key: &Key) -> bool {
        !stores.installations.indexed_keys(index::CONFIG_MAP, &key.namespace, &key.name).is_empty()
    }
}

/// The Target that a deploy item has to reach as long as it is there. Of an item that goes without being uninstalled when its
/// Target is gone, deleting the Target is how a user says that the cluster is (ORC-39).
pub(crate) fn target_of(item: &DeployItem) -> Vec<String> {
    let needed = item.spec.target.iter().filter(|_| !removed::may_skip(item));
    needed.map(|target| target.name.clone()).collect()
}

/// The Context of a deploy item.
pub(crate) fn context_of(item: &DeployItem) -> Vec<String> {
    let context = &item.spec.context;
    vec![if context.is_empty() { orangery_api::context::DEFAULT_CONTEXT.to_owned() } else { context.clone() }]
}

/// The Secret that a Target refers to, if any.
pub(crate) fn secret_of(target: &Target) -> Vec<String> {
    target.spec.secret_ref.iter().map(|secret| secret.name.clone()).collect()
}

/// The ConfigMaps that an Installation imports.
pub(crate) fn config_maps_of(installation: &Installation) -> Vec<String> {
    let imports = installation.spec.imports.data.iter();
    let names: BTreeSet<String> =
        imports.filter_map(|import| Some(import.config_map_ref.as_ref()?.name.clone())).collect();
    names.into_iter().collect()
}

/// The Targets that the conditions of an Execution look at.
pub(crate) fn looked_at(execution: &Execution) -> Vec<String> {
    execution.spec.condition_targets.clone()
}

/// The Targets that the conditions of the sub-installations of an Installation look at.
pub(crate) fn looked_at_by_installation(installation: &Installation) -> Vec<String> {
    let workflow = installation.status.as_ref().and_then(|status| status.workflow.as_ref());
    workflow.map(|workflow| workflow.condition_targets.clone()).unwrap_or_default()
}

/// Takes guards away. Keeps no state of its own.
pub struct GuardController<K> {
    host: Arc<Host>,
    kind: PhantomData<fn() -> K>,
}

impl<K> GuardController<K> {
    /// Over a host.
    pub fn new(host: Arc<Host>) -> Self {
        Self { host, kind: PhantomData }
    }
}

impl<K: Guarded> Controller for GuardController<K> {
    type Object = K;
    const NAME: &'static str = K::NAME;

    async fn reconcile(&self, object: Arc<K>) -> Result<Next, Halt> {
        let key = key_of(object.as_ref());
        let guard =
            Guard { held: object.has_finalizer(GUARD), deleting: object.is_deleting(), enabled: self.host.guards };
        // Who refers to it is asked for last: most objects are not to go.
        if lets_go(guard, || K::is_in_use(&self.host.stores, &key)) {
            let mut free = K::clone(&object);
            free.meta_mut().finalizers.get_or_insert_default().retain(|name| name != GUARD);
            let writer = self.host.writer(K::store(&self.host.stores));
            writer.update(&object, &free).await.map_err(|error| error.halt("RemoveGuard"))?;
        }
        Ok(Next::Settled)
    }

    /// It waits for nothing that a watch does not tell.
    async fn look_again(&self, _: Arc<K>) -> Result<(), Halt> {
        Ok(())
    }
}

/// Guards what a deploy item uses, before it uses it for the first time in a job.
pub(crate) async fn before_deploying(host: &Host, item: &DeployItem) -> Step<()> {
    if !host.guards {
        return Ok(());
    }
    let namespace = item.metadata.namespace.as_deref().unwrap_or_default();
    for name in context_of(item) {
        if let Some(context) = host.stores.contexts.get(&Key::new(namespace, name)) {
            put(host, context).await?;
        }
    }
    guard_targets(host, namespace, &target_of(item)).await
}

/// Guards the Targets that conditions look at, before the first of them is asked.
pub(crate) async fn before_asking(host: &Host, namespace: &str, targets: &[String]) -> Step<()> {
    if host.guards { guard_targets(host, namespace, targets).await } else { Ok(()) }
}

/// Guards Targets, and the Secrets behind them.
async fn guard_targets(host: &Host, namespace: &str, names: &[String]) -> Step<()> {
    for name in names {
        let Some(target) = host.stores.targets.get(&Key::new(namespace, name)) else { continue };
        for secret in secret_of(&target) {
            put_on_plain::<SecretMeta>(host, namespace, &secret).await?;
        }
        if target.label(label::SOURCE_TYPE).is_none() {
            put(host, target).await?;
        }
    }
    Ok(())
}

/// Guards the ConfigMaps that an Installation imports, before anything is made of them.
pub(crate) async fn before_rendering(host: &Host, installation: &Installation) -> Step<()> {
    if host.guards {
        let namespace = installation.metadata.namespace.as_deref().unwrap_or_default();
        for name in config_maps_of(installation) {
            put_on_plain::<ConfigMapMeta>(host, namespace, &name).await?;
        }
    }
    Ok(())
}

/// The same for an object that is watched only where it is guarded.
async fn put_on_plain<K: Guarded>(host: &Host, namespace: &str, name: &str) -> Step<()> {
    let known = K::store(&host.stores).get(&Key::new(namespace, name));
    if known.is_some_and(|known| is_guarded(known.as_ref())) {
        return Ok(());
    }
    match get::<K>(&host.client, namespace, name).await? {
        Some(object) => put(host, Arc::new(object)).await,
        // Whoever needs it says so.
        None => Ok(()),
    }
}

/// Whether an object has the guard, and the label by which its kind is watched.
fn is_guarded<K: Guarded>(object: &K) -> bool {
    object.has_finalizer(GUARD) && object.label(GUARD).is_some()
}

/// Puts the guard on an object, unless it is there or the object is to go. One that may not be written stays as it is:
/// guards protect, and stand in nobody's way.
async fn put<K: Guarded>(host: &Host, mut object: Arc<K>) -> Step<()> {
    let store = K::store(&host.stores);
    while !is_guarded(object.as_ref()) && !object.is_deleting() {
        let mut guarded = K::clone(&object);
        let meta = guarded.meta_mut();
        let finalizers = meta.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|name| name == GUARD) {
            finalizers.push(GUARD.to_owned());
        }
        meta.labels.get_or_insert_default().insert(GUARD.to_owned(), "true".to_owned());
        match host.writer(store).update(&object, &guarded).await {
            Ok(_) | Err(WriteError::NotFound { .. }) => break,
            // Another one who uses it was faster, or its user changed it: the store knows the newest version by now.
            Err(WriteError::Conflict { .. }) => match store.get(&key_of(object.as_ref())) {
                Some(newest) => object = newest,
                None => break,
            },
            Err(error @ WriteError::Refused { .. }) => {
                let object = key_of(object.as_ref());
                tracing::warn!(%object, %error, "what is in use cannot be guarded against deletion");
                break;
            }
            Err(error) => return Err(error.halt("PutGuard")),
        }
    }
    Ok(())
}

/// The queues of the guards.
#[derive(Clone, Default)]
pub struct GuardQueues {
    /// Of Targets.
    pub targets: Queue,
    /// Of Secrets.
    pub secrets: Queue,
    /// Of Contexts.
    pub contexts: Queue,
    /// Of ConfigMaps.
    pub config_maps: Queue,
}

/// What happens when a Target is no longer referred to: its guard is looked at, and that of the Secret behind it, which is in
/// use as long as the Target is.
pub(crate) fn leave_target(stores: &Stores, queues: &GuardQueues) -> impl Fn(Key) + Send + Sync + 'static {
    let (known, secrets, targets) = (stores.targets.clone(), queues.secrets.clone(), queues.targets.clone());
    move |key| {
        for secret in known.get(&key).iter().flat_map(|target| secret_of(target)) {
            secrets.wake(Key::new(key.namespace.clone(), secret));
        }
        targets.wake(key);
    }
}

/// Wakes in `queue` what an object no longer refers to.
pub(crate) fn wakes<K: Watched>(referrers: &Store<K>, refers: fn(&K) -> Vec<String>, queue: &Queue) {
    let queue = queue.clone();
    leaves(referrers, refers, move |key| queue.wake(key));
}

/// Calls `left` with what an object no longer refers to.
pub(crate) fn leaves<K: Watched>(
    referrers: &Store<K>,
    refers: fn(&K) -> Vec<String>,
    left: impl Fn(Key) + Send + Sync + 'static,
) {
    referrers.subscribe(move |change| {
        let Some(before) = change.before else { return };
        let now = change.after.map(|after| refers(after)).unwrap_or_default();
        let namespace = before.meta().namespace.clone().unwrap_or_default();
        for name in refers(before).into_iter().filter(|name| !now.contains(name)) {
            left(Key::new(namespace.clone(), name));
        }
    });
}
