//! The operators of a cluster, as their Leases tell of them (C-234).

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use orangery_api::annotation::OPERATOR_LEASE;
use orangery_core::name::{Kind, Namespace, ObjectName};

use crate::call::{CallError, CallSubject};

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
}

/// All Leases of operators, whatever namespaces these are in. Those that were not held since operators label them are not found.
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
    Ok(found.items.iter().map(OperatorLease::of).collect())
}

impl OperatorLease {
    fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.clone()).filter(|holder| !holder.is_empty());
        let renewed = spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0.to_string());
        let holder = holder.map(|name| OperatorHolder { name, renewed: renewed.unwrap_or_default() });
        Self { namespace: lease.namespace().unwrap_or_default().into(), name: lease.name_any().into(), holder }
    }

    /// The Lease, as a sentence names it.
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// What to say of an object with which nothing happens: that no operator is active, or which one is and was when last.
pub(crate) fn absence(leases: &[OperatorLease]) -> Option<(String, String)> {
    let places: Vec<String> = leases.iter().map(OperatorLease::place).collect();
    let held = leases.iter().find_map(|lease| lease.holder.as_ref().map(|holder| (lease, holder)));
    match held {
        None if leases.is_empty() => None,
        None => Some((
            format!("no operator works on it: nobody holds the Lease {}", places.join(" or ")),
            "start the operator again; where it is uninstalled for good, see what is left: orangery uninstall --check".to_owned(),
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

    fn lease(name: &str, spec: serde_json::Value) -> OperatorLease {
        let metadata = json!({"namespace": "orangery", "name": name});
        OperatorLease::of(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    #[test]
    fn c_234_where_nobody_holds_the_lease_no_operator_works() {
        let free = lease("a", json!({"holderIdentity": ""}));
        assert_eq!(free, OperatorLease { namespace: "orangery".into(), name: "a".into(), holder: None });
        let (says, fix) = absence(&[free.clone(), lease("b", json!({}))]).unwrap();
        assert_eq!(says, "no operator works on it: nobody holds the Lease orangery/a or orangery/b");
        assert!(fix.ends_with("orangery uninstall --check"), "{fix}");
        let held = lease("b", json!({"holderIdentity": "pod_x", "renewTime": "2026-11-21T08:00:00.000000Z"}));
        let (says, _) = absence(&[free, held]).unwrap();
        assert_eq!(
            says,
            "nothing says what it waits for; the operator pod_x holds the Lease orangery/b, renewed last at 2026-11-21T08:00:00Z"
        );
        // As beside `orangery up`, which has none.
        assert_eq!(absence(&[]), None);
    }
}
