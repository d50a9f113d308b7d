//! Takes guards away: from what is being deleted, and only when nothing refers to it any more (ORC-37). Until then an event
//! says what does (C-67).

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc};

use orangery_api::annotation::GUARD;
use orangery_core::{
    plan::guard::{Guard, lets_go},
    step::{Halt, Step},
};
use orangery_reconcile::{Controller, Key, NextCall};

use crate::{
    controller_context::ControllerContext,
    dependencies::{is_in_use, users},
    event,
    guard::{Guarded, OF_INVENTORY},
    refusal,
    stores::StoredKind,
};

/// Takes guards of one kind away. Keeps no state of its own.
pub struct GuardController<K> {
    host: Arc<ControllerContext>,
    kind: PhantomData<fn() -> K>,
}

impl<K> GuardController<K> {
    /// Over a host.
    pub fn new(host: Arc<ControllerContext>) -> Self {
        Self { host, kind: PhantomData }
    }
}

impl<K: Guarded> Controller for GuardController<K> {
    type Object = K;
    const NAME: &'static str = K::NAME;

    async fn reconcile(&self, object: Arc<K>) -> Result<NextCall, Halt> {
        let enabled = self.host.guards || object.label(GUARD) == Some(OF_INVENTORY);
        let guard = Guard { held: object.has_finalizer(GUARD), deleting: object.is_deleting(), enabled };
        // Its referrers are looked for last: most objects are not being deleted.
        let (stores, key) = (&self.host.stores, Key::of(object.as_ref()));
        if lets_go(guard, || is_in_use(stores, K::KIND, &key)) {
            let let_go = self.let_go(&object).await;
            return refusal::publish_guard(&self.host, object.as_ref(), let_go).map(|()| NextCall::Settled);
        }
        if guard.held && guard.deleting {
            let users = users(stores, K::KIND, &key).map(|(kind, user)| format!("{} {}", kind.name(), user.name));
            event::warn_of_holding(&self.host, object.as_ref(), "InUse", &in_use(K::KIND, &key, users.collect()));
        }
        Ok(NextCall::Settled)
    }

    /// It waits for nothing that a watch does not report.
    async fn refresh(&self, _: Arc<K>) -> Result<(), Halt> {
        Ok(())
    }
}

impl<K: Guarded> GuardController<K> {
    async fn let_go(&self, object: &Arc<K>) -> Step<()> {
        K::before_release(&self.host, &Key::of(object.as_ref())).await?;
        let mut free = K::clone(object);
        free.meta_mut().finalizers.get_or_insert_default().retain(|name| name != GUARD);
        let writer = self.host.writer(K::store(&self.host.stores));
        writer.update(object, &free).await.map(drop).map_err(|error| error.halt("RemoveGuard"))
    }
}

/// The most users that an event names.
const NAMED: usize = 8;

/// Why an object is not gone yet, and what to do.
fn in_use(kind: StoredKind, key: &Key, users: BTreeSet<String>) -> String {
    let more = users.len().saturating_sub(NAMED);
    let mut names = users.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        names.push_str(&format!(" and {more} more"));
    }
    let word = kind.name().to_lowercase();
    format!("is deleted as soon as nothing uses it: {names}; orangery why {word}/{} names what does", key.name)
}
