//! What a change of policies calls: roots whose last job was refused, items that wait for a place, and whoever looks at clusters.

use std::{collections::BTreeSet, sync::Arc};

use orangery_api::{installation::Installation, job::Job};
use orangery_cluster::ClusterPool;
use orangery_core::name::Namespace;
use orangery_policy::Violation;
use orangery_reconcile::{Key, Queue};

use super::NamespacePolicies;
use crate::controller_context::ControllerContext;

/// A root whose last job a policy refused has its controller called when something else counts for its namespace; it starts
/// a job then.
pub(crate) fn wake_refused(host: &Arc<ControllerContext>, queue: Queue) {
    let known = Arc::downgrade(host);
    host.policies.subscribe(move |changed: &BTreeSet<Namespace>| {
        let Some(host) = known.upgrade() else { return };
        for namespace in changed {
            for root in host.stores.installations.list(Some(namespace)).into_iter().filter(|root| is_refused(root)) {
                queue.wake(Key::of(root.as_ref()));
            }
        }
    });
}

/// Whether the last job of a root has ended because a policy refused something in its tree.
fn is_refused(root: &Installation) -> bool {
    let code = Violation::CODE.to_string();
    root.is_root() && root.job_finished() && root.last_error().is_some_and(|error| error.codes.contains(&code))
}

/// What is kept of a root whose last job has ended: the hash of what counts where a policy refused it, so that an operator
/// that starts later knows what has changed (C-80).
pub(crate) fn refused_under(policies: &NamespacePolicies, root: &Installation) -> String {
    if !is_refused(root) {
        return String::new();
    }
    policies.of(&Key::of(root).namespace).map(|policy| policy.hash()).unwrap_or_default()
}

/// Whether something else counts than when a policy refused what the last job of a root wanted.
pub(crate) fn is_allowed_anew(policies: &NamespacePolicies, root: &Installation) -> bool {
    let before = root.status.as_ref().map_or("", |status| &status.refused_under);
    is_refused(root) && policies.of(&Key::of(root).namespace).is_ok_and(|policy| policy.hash() != before)
}

/// Items under way have their controller called when something else counts for their namespace.
pub(crate) fn wake_items(host: &Arc<ControllerContext>, queue: Queue) {
    let known = Arc::downgrade(host);
    host.policies.subscribe(move |changed: &BTreeSet<Namespace>| {
        let Some(host) = known.upgrade() else { return };
        for namespace in changed {
            for item in host.stores.deploy_items.list(Some(namespace)).into_iter().filter(|item| !item.job_finished()) {
                queue.wake(Key::of(item.as_ref()));
            }
        }
    });
}

/// Whoever looks at clusters has its controller called when something else counts for its namespace: watches are taken up again
/// over connections that were allowed before (C-102).
pub(crate) fn wake_watching(host: &ControllerContext, pool: &Arc<ClusterPool>) {
    let known = Arc::downgrade(pool);
    host.policies.subscribe(move |changed: &BTreeSet<Namespace>| {
        let Some(pool) = known.upgrade() else { return };
        changed.iter().for_each(|namespace| pool.wake_all(namespace));
    });
}

#[cfg(test)]
mod tests;
