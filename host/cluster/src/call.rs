//! The call of a controller for which clusters are asked: how long it may take, and what it lends to others while it waits.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orangery_core::{name::Namespace, port::LendableSlot};
use orangery_turns::{Tenant, lending_of};
use tokio::time::{Instant, error::Elapsed, timeout};

/// One call of a controller. Clones are the same call.
#[derive(Clone, Default)]
pub struct Call {
    /// For which namespace clusters are asked: it has its turn, and its own view of whether they answer (C-44).
    tenant: Tenant,
    slot: Option<Arc<dyn LendableSlot>>,
    /// When its requests end that are still under way. Held to look or to change.
    end: Arc<Mutex<Option<Instant>>>,
}

impl Call {
    /// A call that may take for ever; it lends its slot, where it has one, while a cluster lets it wait.
    pub fn new(slot: Option<Arc<dyn LendableSlot>>) -> Self {
        Self { tenant: None, slot, end: Arc::default() }
    }

    /// The same call, for a namespace.
    #[must_use]
    pub fn of(self, namespace: &Namespace) -> Self {
        Self { tenant: Some(namespace.clone()), ..self }
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// From now on no request of the call takes longer than this: those that are under way then end, and none is begun
    /// after. `None` for as long as requests may take anyway.
    pub fn end_in(&self, left: Option<Duration>) {
        let end = left.and_then(|left| Instant::now().checked_add(left));
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    /// How long a request may take that may take no longer than `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.map_or(most, |end| end.saturating_duration_since(Instant::now()).min(most))
    }

    /// An answer, which is waited for no longer than `most`.
    pub(crate) async fn wait<T>(&self, most: Duration, answer: impl Future<Output = T>) -> Result<T, Elapsed> {
        timeout(most, lending_of(self.slot.as_ref(), answer)).await
    }
}
