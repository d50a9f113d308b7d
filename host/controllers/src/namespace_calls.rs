//! Calls of components under the quotas of their namespaces (`quotas.calls` and `quotas.memoryMiB` of policies, C-53). What has
//! no place waits in the queue of its namespace, before it asks for one of the places that all namespaces share (C-43).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orangery_blueprint::plugins::CallQuotas;
use orangery_core::{
    error::{Code, Fault},
    name::Namespace,
    port::{BoxFuture, LendableSlot},
};
use orangery_policy::{EffectivePolicy, Quota, QuotaKind};
use orangery_proposal::deployer::PluginIdentity;
use orangery_turns::{LentSlot, slot};
use tokio::{sync::oneshot, time::timeout};

use crate::namespace_policy::NamespacePolicies;

/// How long a call waits for a place of its namespace. Then it is told, and made again with backoff.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// The calls of all namespaces.
pub struct NamespaceCalls {
    policies: NamespacePolicies,
    /// Protects what is under way and what waits; held for one decision.
    queues: Mutex<BTreeMap<Namespace, CallQueue<oneshot::Sender<QuotaPlace>>>>,
    /// What places refer to.
    this: Weak<NamespaceCalls>,
}

/// A place; it is free again when this is dropped.
struct QuotaPlace {
    calls: Weak<NamespaceCalls>,
    namespace: Namespace,
    memory_mib: u64,
}

/// What a namespace may have; `None` for any number.
struct CallLimits {
    calls: Option<Quota>,
    memory: Option<Quota>,
}

/// The calls of one namespace that are under way, and what waits, the longest first.
struct CallQueue<W> {
    calls: u64,
    memory_mib: u64,
    waiting: VecDeque<(u64, W)>,
}

impl NamespaceCalls {
    /// Under these policies. A quota that is raised, or goes, lets those begin that wait for it.
    pub fn new(policies: &NamespacePolicies) -> Arc<Self> {
        let calls = Arc::new_cyclic(|this| Self {
            policies: policies.clone(),
            queues: Mutex::default(),
            this: Weak::clone(this),
        });
        let known = Arc::downgrade(&calls);
        policies.subscribe(move |changed| {
            if let Some(calls) = known.upgrade() {
                changed.iter().for_each(|namespace| calls.pass_on(namespace));
            }
        });
        calls
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<Namespace, CallQueue<oneshot::Sender<QuotaPlace>>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is not known what counts, the checks before a call say so.
    fn limits(&self, namespace: &Namespace) -> CallLimits {
        self.policies.of(namespace).map_or(CallLimits { calls: None, memory: None }, |policy| CallLimits::of(&policy))
    }

    /// Gives free places of a namespace away. One that nobody receives any more comes back as it is dropped, without the lock.
    fn pass_on(&self, namespace: &Namespace) {
        let limits = self.limits(namespace);
        loop {
            let next = {
                let mut queues = self.queues();
                let Some(queue) = queues.get_mut(namespace) else { return };
                let next = queue.next(&limits, oneshot::Sender::is_closed);
                if queue.is_empty() {
                    queues.remove(namespace);
                }
                next
            };
            let Some((memory_mib, sender)) = next else { return };
            let place = QuotaPlace { calls: Weak::clone(&self.this), namespace: namespace.clone(), memory_mib };
            drop(sender.send(place));
        }
    }

    /// Waits for a place in the queue of a namespace. Whoever calls has the slot meanwhile.
    async fn wait(
        &self,
        namespace: &Namespace,
        by: &PluginIdentity,
        memory_mib: u64,
        slot: Option<Arc<dyn LendableSlot>>,
    ) -> Result<QuotaPlace, Fault> {
        let (sender, mut receiver) = oneshot::channel();
        self.queues().entry(namespace.clone()).or_default().waiting.push_back((memory_mib, sender));
        self.pass_on(namespace);
        if let Ok(place) = receiver.try_recv() {
            return Ok(place);
        }
        let _lent = LentSlot::of(slot);
        match timeout(LONGEST_TURN, receiver).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(self.limits(namespace).fault(namespace, by)),
        }
    }
}

impl CallQuotas for NamespaceCalls {
    fn enter<'a>(
        &'a self,
        namespace: &'a Namespace,
        by: &'a PluginIdentity,
        memory_mib: u64,
    ) -> BoxFuture<'a, Result<Box<dyn Send + Sync>, Fault>> {
        Box::pin(async move {
            let place = self.wait(namespace, by, memory_mib, slot()).await?;
            Ok(Box::new(place) as Box<dyn Send + Sync>)
        })
    }
}

impl Drop for QuotaPlace {
    fn drop(&mut self) {
        let Some(calls) = self.calls.upgrade() else { return };
        if let Some(queue) = calls.queues().get_mut(&self.namespace) {
            queue.release(self.memory_mib);
        }
        calls.pass_on(&self.namespace);
    }
}

impl CallLimits {
    fn of(policy: &EffectivePolicy) -> Self {
        Self { calls: policy.quota(QuotaKind::Calls), memory: policy.quota(QuotaKind::MemoryMib) }
    }

    /// Why there was no place: by the quotas that there are now.
    fn fault(&self, namespace: &Namespace, by: &PluginIdentity) -> Fault {
        let of =
            |quota: &Option<Quota>, unit: &str| quota.as_ref().map(|quota| format!("{} ({}{unit})", quota, quota.most));
        let lines: Vec<String> = [of(&self.calls, ""), of(&self.memory, " MiB")].into_iter().flatten().collect();
        let message = format!(
            "no call of {by} could begin within {} s: namespace {namespace} has as many under way as it may by {}; it is made \
             again, or have an administrator allow more there",
            LONGEST_TURN.as_secs(),
            lines.join(" and ")
        );
        Fault::later(Code::PolicyViolation, message)
    }
}

impl<W> Default for CallQueue<W> {
    fn default() -> Self {
        Self { calls: 0, memory_mib: 0, waiting: VecDeque::new() }
    }
}

impl<W> CallQueue<W> {
    fn is_empty(&self) -> bool {
        self.calls == 0 && self.waiting.is_empty()
    }

    /// The first that waits, where there is a place for it. Nobody comes before it, or one that takes much would wait for ever.
    /// Where nothing is under way there is a place for any: what is larger than the quota is refused before.
    fn next(&mut self, limits: &CallLimits, has_gone: impl Fn(&W) -> bool) -> Option<(u64, W)> {
        while self.waiting.front().is_some_and(|(_, waiter)| has_gone(waiter)) {
            self.waiting.pop_front();
        }
        let (memory_mib, _) = self.waiting.front()?;
        let within = |quota: &Option<Quota>, sum: u64| quota.as_ref().is_none_or(|quota| sum <= u64::from(quota.most));
        let has_place = within(&limits.calls, self.calls + 1)
            && within(&limits.memory, self.memory_mib.saturating_add(*memory_mib));
        if !has_place && self.calls > 0 {
            return None;
        }
        let (memory_mib, waiter) = self.waiting.pop_front()?;
        self.calls += 1;
        self.memory_mib = self.memory_mib.saturating_add(memory_mib);
        Some((memory_mib, waiter))
    }

    fn release(&mut self, memory_mib: u64) {
        self.calls = self.calls.saturating_sub(1);
        self.memory_mib = self.memory_mib.saturating_sub(memory_mib);
    }
}

#[cfg(test)]
mod tests;
