//! Items in a namespace that is being terminated: what is in their way there does not pass by itself (INS-57, CON-29).

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use orangery_api::marks::Marks as _;
use orangery_cluster::TERMINATING;
use orangery_core::{
    error::{Code, Failure},
    step::Halt,
};

use crate::deploy_item::gather::{GatheredItem, ItemReconciliation};

/// What an item says that cannot be uninstalled any more.
const TOO_LATE: &str = "; the namespace of the item is being deleted, which takes the rights to uninstall it along, and lets nothing \
                        begin in it: to let go of the item, with what it has elsewhere left there, annotate DeployItem \
                        landscaper.gardener.cloud/delete-without-uninstall=true; then reconcile again";

impl ItemReconciliation {
    /// A job of an item that is being deleted ends where a namespace is to blame that is being terminated: what may come to pass
    /// is the end of both, and the item is not uninstalled before its job has ended.
    pub(super) async fn ended_by_termination(&self, halt: Halt) -> Halt {
        let mut failure = match halt {
            Halt::Retry(failure) if self.gathered.item.is_deleting() => failure,
            halt => return halt,
        };
        if failure.reason != TERMINATING && !(self.is_of_rights(&failure) && self.goes_with_its_namespace().await) {
            return Halt::Retry(failure);
        }
        failure.reason = TERMINATING.to_owned();
        failure.message.push_str("; the item is being deleted, too, so its job ends, and it is uninstalled");
        Halt::Stall(failure)
    }

    /// A deletion ends where what is in its way is the end of the item's own namespace: nothing can be made in it any more, and
    /// rights that were given in it do not come back.
    pub(super) async fn without_its_namespace(&self, halt: Halt) -> Halt {
        let mut failure = match halt {
            Halt::Retry(failure) => failure,
            halt => return halt,
        };
        let is_so = failure.reason == TERMINATING || self.is_of_rights(&failure);
        if !(is_so && self.goes_with_its_namespace().await) {
            return Halt::Retry(failure);
        }
        // It is not tried again (C-123).
        failure.reason = TERMINATING.to_owned();
        failure.message.push_str(TOO_LATE);
        Halt::Stall(failure)
    }

    /// Whether somebody may not do what the item needs, as a cluster has told the host or the component.
    fn is_of_rights(&self, failure: &Failure) -> bool {
        failure.codes.contains(&Code::Unauthorized) || self.gathered.is_refused()
    }

    /// Whether the namespace of the item is being terminated. What cannot be asked is taken for one that stays.
    async fn goes_with_its_namespace(&self) -> bool {
        let GatheredItem { host, key, .. } = &self.gathered;
        let namespaces: Api<Namespace> = Api::all(host.client.clone());
        let namespace = namespaces.get_metadata(&key.namespace).await;
        namespace.is_ok_and(|namespace| namespace.is_deleting())
    }
}
