//! The operators of a cluster, as their Leases tell of them (C-234).

use std::time::Duration;

use futures::{StreamExt as _, future};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    runtime::{WatchStreamExt as _, watcher},
};
use orangery_api::annotation::OPERATOR_LEASE;
use orangery_core::name::{Kind, Namespace, ObjectName};
use tokio::time::timeout;

use crate::call::{CallError, CallSubject};

/// The longest time for which a Lease is looked at, whatever it says of itself: whoever may write Leases somewhere writes it.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// A Lease by which one operator at a time is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorLease {
    /// The namespace of the operator.
    pub(crate) namespace: Namespace,
    /// The name of the Lease.
    pub(crate) name: ObjectName,
    /// The process that holds it; `None` where none does.
    pub(crate) holder: Option<OperatorHolder>,
}

/// A process that holds a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorHolder {
    /// The name of the process.
    pub(crate) name: String,
    /// When it renewed the Lease last, as it says itself.
    pub(crate) renewed: String,
    /// Whether it renewed the Lease while it was looked at.
    pub(crate) is_alive: bool,
}

/// All Leases of operators, whatever namespaces these are in. Those that were not held since operators label them are not found. An
/// operator whose rights go before it does cannot give its Lease back, so one that is held is looked at until it is renewed, or
/// for as long as it lasts, and a minute at most: clocks of different machines are not compared.
///
/// # Errors
/// Leases cannot be listed.
pub(crate) async fn leases(client: &Client) -> Result<Vec<OperatorLease>, CallError> {
    let found = Api::<Lease>::all(client.clone()).list(&ListParams::default().labels(OPERATOR_LEASE)).await;
    let subject = CallSubject {
        kind: &Kind::from_static("Lease"),
        group: "coordination.k8s.io",
        namespace: &Namespace::default(),
        name: ObjectName::EMPTY,
    };
    let found = found.map_err(|error| CallError::of(subject, error))?;
    let looked_at = found.items.iter().map(|lease| async move {
        let is_alive = holder(lease).is_some() && is_renewed(client, lease).await;
        OperatorLease::of(lease, is_alive)
    });
    Ok(future::join_all(looked_at).await)
}

/// The process that holds a Lease.
pub(crate) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn renewed(lease: &Lease) -> Option<String> {
    Some(lease.spec.as_ref()?.renew_time.as_ref()?.0.to_string())
}

/// Whether a Lease is renewed, or taken by another process, before it ends.
pub(crate) async fn is_renewed(client: &Client, lease: &Lease) -> bool {
    let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    let lasts = Duration::from_secs(seconds.try_into().unwrap_or_default());
    let before = (holder(lease).map(str::to_owned), renewed(lease));
    let changes = watcher::watch_object(Api::<Lease>::namespaced(client.clone(), &namespace), &name).default_backoff();
    let changed = changes.any(|now| {
        let now = now.ok().flatten();
        future::ready(
            now.is_some_and(|now| holder(&now).is_some() && (holder(&now).map(str::to_owned), renewed(&now)) != before),
        )
    });
    timeout(lasts.min(LONGEST_LOOK), changed).await.unwrap_or(false)
}

impl OperatorLease {
    fn of(lease: &Lease, is_alive: bool) -> Self {
        let renewed = renewed(lease).unwrap_or_default();
        let holder = holder(lease).map(|name| OperatorHolder { name: name.to_owned(), renewed, is_alive });
        Self { namespace: lease.namespace().unwrap_or_default().into(), name: lease.name_any().into(), holder }
    }

    /// The Lease, as a sentence names it.
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// What to say of an object with which nothing happens: that no operator is active, or which one is.
pub(crate) fn absence(leases: &[OperatorLease]) -> Option<(String, String)> {
    let places: Vec<String> = leases.iter().map(OperatorLease::place).collect();
    let alive = |lease: &OperatorLease| lease.holder.clone().filter(|holder| holder.is_alive);
    let held = leases.iter().find_map(|lease| alive(lease).map(|holder| (lease, holder)));
    match held {
        None if leases.is_empty() => None,
        None => Some((
            format!("no operator works on it: none holds the Lease {}, or renews it", places.join(" or ")),
            "start the operator again; where it is uninstalled for good, see what is left: orangery uninstall --check"
                .to_owned(),
        )),
        Some((lease, holder)) => Some((
            format!(
                "nothing says what it waits for; the operator {} holds the Lease {}, renewed last at {}",
                holder.name,
                lease.place(),
                holder.renewed
            ),
            format!("see that the operator still runs, and what it logs: kubectl -n {} get pods", lease.namespace),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(name: &str, spec: serde_json::Value, is_alive: bool) -> OperatorLease {
        let metadata = json!({"namespace": "orangery", "name": name});
        OperatorLease::of(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap(), is_alive)
    }

    #[test]
    fn c_234_where_none_holds_or_renews_the_lease_no_operator_works() {
        let free = lease("a", json!({"holderIdentity": ""}), false);
        assert_eq!(free, OperatorLease { namespace: "orangery".into(), name: "a".into(), holder: None });
        let spec = json!({"holderIdentity": "pod_x", "renewTime": "2026-11-21T08:00:00.000000Z"});
        let (says, fix) = absence(&[free.clone(), lease("b", spec.clone(), false)]).unwrap();
        assert_eq!(says, "no operator works on it: none holds the Lease orangery/a or orangery/b, or renews it");
        assert!(fix.ends_with("orangery uninstall --check"), "{fix}");
        let (says, _) = absence(&[free, lease("b", spec, true)]).unwrap();
        assert_eq!(
            says,
            "nothing says what it waits for; the operator pod_x holds the Lease orangery/b, renewed last at 2026-11-21T08:00:00Z"
        );
        // As beside `orangery up`, which has none.
        assert_eq!(absence(&[]), None);
    }
}
