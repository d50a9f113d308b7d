//! Deletion guards: what is in use stays until nobody uses it any more (ORC-36 … ORC-42).
//!
//! A guard is a finalizer. A controller puts it on an object right before it uses the object for the first time; taking it
//! away is left to [`GuardController`](crate::GuardController), and only when the object is being deleted and nothing refers
//! to it. So a chain that failed half-way is deleted by `kubectl delete` alone, in whatever order.
//!
//! | guarded | as long as | guarded by |
//! |---|---|---|
//! | Target that no job of ours writes | a DeployItem deploys to it without `skipUninstallIfClusterRemoved`, or gate
//! expressions of an Execution or an Installation look at it | DeployItem, Execution, Installation |
//! | Secret behind a Target | such a Target refers to it | DeployItem, Execution, Installation |
//! | Secret that holds an inventory | its DeployItem is not uninstalled | DeployItem, as it makes it |
//! | Context | a DeployItem is of it | DeployItem |
//! | ConfigMap | an Installation imports it | Installation |
//!
//! What is being deleted gets no guard any more. Where it still has one, whoever begins to use it writes down that he does: either
//! the guard controller takes the guard away first, and he is refused, or it finds that it has looked at an older version (C-109).
//!
//! Copies and exports are written by jobs and deleted by them in order, so they have none (ORC-39).

use std::{future::Future, sync::Arc};

use orangery_api::{
    annotation::{GUARD, LAST_USER},
    context::Context,
    label,
    marks::Marks,
    target::Target,
};
use orangery_core::{
    error::{Code, Failure},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, WriteError};

use crate::{
    controller_context::ControllerContext,
    dependency::{Dependency, Dependents, Watch},
    index::Index,
    kept_credentials,
    object_access::get,
    stores::{ConfigMapMeta, Queues, SecretMeta, Stored, StoredKind, Stores},
};

/// The value of the label of a guarded Secret that holds the inventory of an item: it is guarded whether or not guards are on, as
/// nobody else has what it says.
pub(crate) const OF_INVENTORY: &str = "inventory";

/// A kind whose objects are guarded.
pub trait Guarded: Stored + Marks {
    /// Names its controller.
    const NAME: &'static str;

    /// Guards the object of this name, and what it stands for, before it is used by this user.
    fn guard(host: &ControllerContext, key: &Key, user: &str) -> impl Future<Output = Step<()>> + Send;

    /// Keeps what is needed of an object that nobody uses any more, before its guard goes.
    fn before_release(_: &ControllerContext, _: &Key) -> impl Future<Output = Step<()>> + Send {
        async { Ok(()) }
    }
}

impl Guarded for Target {
    const NAME: &'static str = "target-guard";

    /// The Secret behind a Target comes first. A Target that a job writes has no guard.
    async fn guard(host: &ControllerContext, key: &Key, user: &str) -> Step<()> {
        let Some(target) = host.stores.targets.get(key) else { return Ok(()) };
        for secret in SECRET_OF_TARGET.names(&target) {
            SecretMeta::guard(host, &Key::new(&key.namespace, secret), user).await?;
        }
        if target.label(label::SOURCE_TYPE).is_none() { put(host, target, user).await } else { Ok(()) }
    }
}

impl Guarded for SecretMeta {
    const NAME: &'static str = "secret-guard";

    async fn guard(host: &ControllerContext, key: &Key, user: &str) -> Step<()> {
        put_on_labelled::<Self>(host, key, user).await
    }

    /// Its Target may be gone without the items that were deployed by it.
    async fn before_release(host: &ControllerContext, key: &Key) -> Step<()> {
        kept_credentials::renew_from_secret(host, key).await
    }
}

impl Guarded for Context {
    const NAME: &'static str = "context-guard";

    async fn guard(host: &ControllerContext, key: &Key, user: &str) -> Step<()> {
        match host.stores.contexts.get(key) {
            Some(context) => put(host, context, user).await,
            None => Ok(()),
        }
    }
}

impl Guarded for ConfigMapMeta {
    const NAME: &'static str = "config-map-guard";

    async fn guard(host: &ControllerContext, key: &Key, user: &str) -> Step<()> {
        put_on_labelled::<Self>(host, key, user).await
    }
}

static SECRET: Index<Target> = Index {
    name: "secret",
    values: |target| target.spec.secret_ref.iter().map(|secret| secret.name.clone()).collect(),
};

/// A Target refers to the Secret that holds its content.
pub(crate) static SECRET_OF_TARGET: Dependency<Target, SecretMeta> = Dependency {
    what: "to be out of use, before its guard goes",
    through: "the Secret that it refers to",
    dependents: Dependents::Indexed(&SECRET, |secret| vec![Key::of(secret).name.into()]),
    watch: Watch::Frees(|_, queues, secret| queues.wake(StoredKind::Secret, secret)),
};

/// A Target is no longer referred to: its guard is looked at, and that of the Secret behind it, which is in use as long as the
/// Target is.
pub(crate) fn free_target(stores: &Stores, queues: &Queues, target: Key) {
    for secret in stores.targets.get(&target).iter().flat_map(|target| SECRET_OF_TARGET.names(target)) {
        queues.wake(StoredKind::Secret, Key::new(&target.namespace, secret));
    }
    queues.wake(StoredKind::Target, target);
}

impl<O: Stored, D: Guarded> Dependency<O, D> {
    /// Guards what an object refers to, before it uses it for the first time in a job.
    ///
    /// # Errors
    /// The server could not be reached, or what is to be used is being deleted and nothing keeps it any more. A guard that the
    /// server refuses is left out.
    pub(crate) async fn guard(&self, host: &ControllerContext, of: &O) -> Step<()> {
        if !host.guards {
            return Ok(());
        }
        let key = Key::of(of);
        let user = format!("{} {key} {}", O::KIND.name(), of.meta().uid.as_deref().unwrap_or("without a uid"));
        for name in self.names(of) {
            D::guard(host, &Key::new(&key.namespace, name), &user).await?;
        }
        Ok(())
    }
}

/// Guards an object of a kind that is watched only where it is guarded.
async fn put_on_labelled<K: Guarded>(host: &ControllerContext, key: &Key, user: &str) -> Step<()> {
    let known = K::store(&host.stores).get(key);
    if known.is_some_and(|known| is_guarded(known.as_ref()) && !known.is_deleting()) {
        return Ok(());
    }
    match get::<K>(&host.client, &key.namespace, &key.name).await? {
        Some(object) => put(host, Arc::new(object), user).await,
        // Whoever needs it says so.
        None => Ok(()),
    }
}

/// Whether an object has the guard, and the label by which its kind is watched.
fn is_guarded<K: Guarded>(object: &K) -> bool {
    object.has_finalizer(GUARD) && object.label(GUARD).is_some()
}

/// What makes an object one that its user may use, unless it is that already.
fn guarded<K: Guarded>(object: &K, user: &str) -> Step<Option<K>> {
    let mut guarded = K::clone(object);
    let meta = guarded.meta_mut();
    if !object.is_deleting() {
        let finalizers = meta.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|name| name == GUARD) {
            finalizers.push(GUARD.to_owned());
        }
        meta.labels.get_or_insert_default().insert(GUARD.to_owned(), "true".to_owned());
        return Ok((!is_guarded(object)).then_some(guarded));
    }
    match (object.has_finalizer(GUARD), object.label(GUARD)) {
        // A finalizer cannot be added any more; another annotation makes another version.
        (true, _) => {
            meta.annotations.get_or_insert_default().insert(LAST_USER.to_owned(), user.to_owned());
            Ok((object.annotation(LAST_USER) != Some(user)).then_some(guarded))
        }
        (false, Some(_)) => Err(Halt::Stall(going(K::KIND, &Key::of(object)))),
        // It was never guarded: guards protect, and stand in nobody's way.
        (false, None) => Ok(None),
    }
}

/// Why an object cannot be used any more.
fn going(kind: StoredKind, key: &Key) -> Failure {
    let message = format!(
        "{} {key} is being deleted, and nothing keeps it any more; make it anew once it is gone, or name another one",
        kind.name()
    );
    Failure::new("PutGuard", "BeingDeleted", message).with_code(Code::ConfigurationProblem)
}

/// Puts the guard on an object, or writes down who uses it where it is being deleted. One that may not be written stays as it
/// is: guards protect, and stand in nobody's way.
async fn put<K: Guarded>(host: &ControllerContext, mut object: Arc<K>, user: &str) -> Step<()> {
    let store = K::store(&host.stores);
    while let Some(guarded) = guarded(object.as_ref(), user)? {
        match host.writer(store).update(&object, &guarded).await {
            Ok(_) | Err(WriteError::NotFound { .. }) => break,
            // Another one who uses it was faster, or its user changed it: the store knows the newest version by now.
            Err(WriteError::Conflict { .. }) => match store.get(&Key::of(object.as_ref())) {
                Some(newest) => object = newest,
                None => break,
            },
            Err(error @ WriteError::Refused { .. }) => {
                let object = Key::of(object.as_ref());
                tracing::warn!(%object, %error, "what is in use cannot be guarded against deletion");
                break;
            }
            Err(error) => return Err(error.halt("PutGuard")),
        }
    }
    Ok(())
}
