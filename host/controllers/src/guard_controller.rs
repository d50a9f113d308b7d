//! Takes guards away: from what is being deleted, and only when nothing refers to it any more (ORC-37).

use std::{marker::PhantomData, sync::Arc};

use orangery_api::annotation::GUARD;
use orangery_core::{
    plan::guard::{Guard, lets_go},
    step::Halt,
};
use orangery_reconcile::{Controller, Key, NextCall};

use crate::{controller_context::ControllerContext, dependencies::is_in_use, guard::Guarded};

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
        let guard =
            Guard { held: object.has_finalizer(GUARD), deleting: object.is_deleting(), enabled: self.host.guards };
        // Its referrers are looked for last: most objects are not being deleted.
        if lets_go(guard, || is_in_use(&self.host.stores, K::KIND, &Key::of(object.as_ref()))) {
            let mut free = K::clone(&object);
            free.meta_mut().finalizers.get_or_insert_default().retain(|name| name != GUARD);
            let writer = self.host.writer(K::store(&self.host.stores));
            writer.update(&object, &free).await.map_err(|error| error.halt("RemoveGuard"))?;
        }
        Ok(NextCall::Settled)
    }

    /// It waits for nothing that a watch does not report.
    async fn refresh(&self, _: Arc<K>) -> Result<(), Halt> {
        Ok(())
    }
}
