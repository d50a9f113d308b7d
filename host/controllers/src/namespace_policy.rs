//! The policies of namespaces: kept current by watches, and asked before anything is read or written. A check reads what is in
//! memory, and sends nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

use orangery_core::{
    error::Failure,
    name::Namespace,
    step::{Halt, Step},
};
use orangery_policy::{
    EffectivePolicy, Policy, PolicyOrigin, PolicyRequest, PolicySet, PolicySubject, Profile, Violation,
};
use tokio::sync::watch;

mod follow;
mod server;
mod wake;

pub use self::follow::{read_namespace_policies, watch_namespace_policies};
pub(crate) use self::wake::{is_allowed_anew, refused_under, wake_items, wake_refused, wake_watching};

/// The labels of a namespace.
pub(crate) type Labels = BTreeMap<String, String>;

type PolicySubscriber = Box<dyn Fn(&BTreeSet<Namespace>) + Send + Sync>;

/// What is known of policies and of the namespaces that they select. Cheap to clone: clones share what they know.
#[derive(Clone)]
pub struct NamespacePolicies {
    shared: Arc<SharedPolicies>,
}

struct SharedPolicies {
    default: Arc<Policy>,
    /// A server that may be anywhere, whatever the default says: whoever runs a command has named it himself.
    own_server: Option<String>,
    /// Protects what is known. Held for one look-up or one change, never across an await or a subscriber.
    known: RwLock<KnownPolicies>,
    /// Called with the namespaces for which something else counts than before.
    subscribers: RwLock<Vec<PolicySubscriber>>,
    /// Whether the first lists are in: of policies, of namespaces.
    synced: watch::Sender<(bool, bool)>,
}

struct KnownPolicies {
    policies: BTreeMap<String, Policy>,
    set: PolicySet,
    labels: BTreeMap<Namespace, Labels>,
    /// What counts for the namespaces that were asked about.
    effective: BTreeMap<Namespace, Arc<EffectivePolicy>>,
}

impl NamespacePolicies {
    /// No policies, and a profile for all namespaces.
    pub fn new(default: Profile) -> Self {
        Self::with_default(Policy::of_profile(default), None)
    }

    /// No policies yet, for a command that was told no profile and whose own connection leads to this server: scheme, host and
    /// port (C-128).
    pub fn of_command(own_server: Option<String>) -> Self {
        Self::with_default(Policy::of_command(), own_server)
    }

    fn with_default(default: Policy, own_server: Option<String>) -> Self {
        let default = Arc::new(default);
        let known = KnownPolicies {
            policies: BTreeMap::new(),
            set: PolicySet::with_default(Arc::clone(&default), []),
            labels: BTreeMap::new(),
            effective: BTreeMap::new(),
        };
        let shared = SharedPolicies {
            default,
            own_server,
            known: RwLock::new(known),
            subscribers: RwLock::default(),
            synced: watch::Sender::new((false, false)),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What counts for a namespace.
    ///
    /// # Errors
    /// Labels decide, and those of the namespace are not known yet.
    pub(crate) fn of(&self, namespace: &Namespace) -> Step<Arc<EffectivePolicy>> {
        let known = self.shared.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(effective) = known.effective.get(namespace) {
            return Ok(Arc::clone(effective));
        }
        drop(known);
        let mut known = self.shared.known.write().unwrap_or_else(PoisonError::into_inner);
        let effective = known.find(namespace).ok_or_else(|| {
            let message = format!(
                "policies select namespaces by labels, and those of namespace {namespace} are not known yet; it is tried again"
            );
            Halt::Retry(Failure::new("CheckPolicy", "NamespaceUnknown", message))
        })?;
        known.effective.insert(namespace.clone(), Arc::clone(&effective));
        Ok(effective)
    }

    /// Whether an object of a namespace may do something.
    ///
    /// # Errors
    /// A policy refuses it, which ends the job; or it is not known yet what counts.
    pub(crate) fn check(
        &self,
        namespace: &Namespace,
        subject: PolicySubject<'_>,
        request: PolicyRequest<'_>,
    ) -> Step<()> {
        self.of(namespace)?.check(subject, request).map_err(|violation| refused(&violation))
    }

    /// Whether no policy selects a namespace, as far as is known, so that the default counts.
    pub fn has_default(&self, namespace: &Namespace) -> bool {
        let is_default = |policy: &Policy| matches!(policy.origin(), PolicyOrigin::Default | PolicyOrigin::Command);
        self.of(namespace).is_ok_and(|effective| effective.policies().any(is_default))
    }

    /// Waits until the first lists are in. Needs [`watch_namespace_policies`].
    pub async fn synced(&self) {
        // The sender lives in here: waiting cannot fail.
        let _ = self.shared.synced.subscribe().wait_for(|(policies, namespaces)| *policies && *namespaces).await;
    }

    /// Calls `f` after each change with the namespaces for which something else counts than before, as far as they were asked
    /// about.
    pub(crate) fn subscribe(&self, f: impl Fn(&BTreeSet<Namespace>) + Send + Sync + 'static) {
        self.shared.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(f));
    }

    /// All policies there are now.
    fn replace_policies(&self, policies: BTreeMap<String, Policy>) {
        self.change(|known| known.policies = policies);
        self.shared.synced.send_modify(|synced| synced.0 = true);
    }

    /// A policy that is new or changed.
    pub(crate) fn put_policy(&self, name: String, policy: Policy) {
        self.change(|known| drop(known.policies.insert(name, policy)));
    }

    fn remove_policy(&self, name: &str) {
        self.change(|known| drop(known.policies.remove(name)));
    }

    /// All namespaces there are now, with their labels.
    fn replace_namespaces(&self, labels: BTreeMap<Namespace, Labels>) {
        self.change(|known| known.labels = labels);
        self.shared.synced.send_modify(|synced| synced.1 = true);
    }

    /// A namespace that is new, or whose labels may have changed.
    fn put_namespace(&self, namespace: Namespace, labels: Labels) {
        let is_known = {
            let known = self.shared.known.read().unwrap_or_else(PoisonError::into_inner);
            known.labels.get(&namespace) == Some(&labels)
        };
        if !is_known {
            self.change(|known| drop(known.labels.insert(namespace, labels)));
        }
    }

    fn remove_namespace(&self, namespace: &Namespace) {
        self.change(|known| drop(known.labels.remove(namespace)));
    }

    fn change(&self, change: impl FnOnce(&mut KnownPolicies)) {
        let changed = {
            let mut known = self.shared.known.write().unwrap_or_else(PoisonError::into_inner);
            change(&mut known);
            known.set = PolicySet::with_default(Arc::clone(&self.shared.default), known.policies.values().cloned());
            known.count_anew()
        };
        if changed.is_empty() {
            return;
        }
        for subscriber in self.shared.subscribers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            subscriber(&changed);
        }
    }
}

impl KnownPolicies {
    /// What counts for a namespace; `None` where its labels decide and are not known.
    fn find(&self, namespace: &Namespace) -> Option<Arc<EffectivePolicy>> {
        let none = Labels::new();
        let labels = match self.labels.get(namespace) {
            Some(labels) => labels,
            None if self.set.asks_labels(namespace) => return None,
            None => &none,
        };
        Some(Arc::new(self.set.of(namespace, labels)))
    }

    /// Finds anew what counts for the namespaces that were asked about. Those for which that is something else.
    fn count_anew(&mut self) -> BTreeSet<Namespace> {
        let mut changed = BTreeSet::new();
        for (namespace, before) in std::mem::take(&mut self.effective) {
            let Some(after) = self.find(&namespace) else {
                changed.insert(namespace);
                continue;
            };
            if after == before {
                self.effective.insert(namespace, before);
            } else {
                changed.insert(namespace.clone());
                self.effective.insert(namespace, after);
            }
        }
        changed
    }
}

/// How a violation ends a job.
pub(crate) fn refused(violation: &Violation) -> Halt {
    Halt::Stall(violation.failure("CheckPolicy"))
}

#[cfg(test)]
mod tests;
