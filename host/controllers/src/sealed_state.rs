//! What the host keeps in the status of a deploy item beside the inventory, under `orangery`, and whether that is its own word:
//! others may write there as well.

use std::collections::BTreeMap;

use orangery_api::{deploy_item::DeployItem, stored_state::StoredState};
use orangery_apply::{ClusterIdentity, ItemState};
use orangery_core::{
    error::{Code, Failure},
    masking::Masker,
    name::JobId,
    step::{Halt, Step},
};
use orangery_proposal::{
    ClusterRef, DeletionGroup,
    check::{HOST, MANAGED_RESOURCES},
    inventory::Inventory,
    item::{Progress, StoredProposal},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::hidden::Hidden;
use crate::seal::{SealError, Sealer};

pub(crate) mod hidden;

/// What the host keeps beside the inventory. Others may write it as well: it counts where its seal is good (C-37).
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Additions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proposal: Option<StoredProposal>,
    /// What the last job that succeeded wrote, where drift is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifest: Option<StoredProposal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Progress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) deletion_order: Vec<DeletionGroup>,
    /// Which clusters the inventory is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) clusters: Vec<KnownCluster>,
    /// Where those are whose uid is not known (C-321).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<KnownServer>,
    /// What lies in other clusters than those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) former: Vec<FormerCluster>,
    /// The Secrets of the operator's namespace with the credentials of these clusters, by the uid of the cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) credentials: BTreeMap<String, String>,
    /// What of all this, of the inventory and of what the component keeps is not shown, encrypted (C-85).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hidden: Option<String>,
    /// Where all of it is that has no room here (C-94).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) large: Option<StoredState>,
    /// The digest of the mark of a signed origin that the item had then (C-270).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
    /// The job that has written this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<JobId>,
    /// Grows with each write.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seal: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A cluster that a state is about.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownCluster {
    pub(crate) on: ClusterRef,
    pub(crate) uid: String,
}

/// A cluster of which only the address is known.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownServer {
    pub(crate) on: ClusterRef,
    pub(crate) address: String,
}

/// What lies in a cluster that the targets do not name any more.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FormerCluster {
    uid: String,
    managed_resources: Value,
}

/// An inventory as it stands in a status.
///
/// # Errors
/// A stall where it cannot be read: guessing would leak or delete objects.
pub(crate) fn inventory(list: Option<&Value>) -> Step<Inventory> {
    Inventory::read(list).map_err(|error| unreadable(&error.to_string()))
}

/// Why a status is not gone on with.
pub(crate) fn unreadable(message: &str) -> Halt {
    Halt::Stall(Failure::new("ReadStatus", "UnreadableStatus", message).with_code(Code::InternalProblem))
}

/// The uid of the cluster in which an item has the objects of its own target, where the seal of its status is good: what others
/// wrote there leads nowhere (C-120).
pub(crate) fn cluster_of_target(item: &DeployItem, sealer: Sealer<'_>) -> Option<String> {
    let status = item.status.as_ref()?.provider_status.as_ref()?;
    let additions = Additions::sealed_in(status, sealer)?;
    additions.clusters.into_iter().find(|cluster| cluster.on == ClusterRef::Target).map(|cluster| cluster.uid)
}

impl Additions {
    /// What the host keeps in a provider status; `None` where its seal is not good.
    pub(crate) fn sealed_in(status: &Value, sealer: Sealer<'_>) -> Option<Self> {
        let additions = Self::deserialize(status.get(HOST)?).ok()?;
        let shown = inventory(status.get(MANAGED_RESOURCES)).ok()?;
        additions.verify(&shown, sealer).is_ok().then_some(additions)
    }

    /// What the host keeps of a state that a job has come to, under the mark of a signed origin.
    pub(crate) fn of(
        state: &ItemState,
        credentials: &BTreeMap<String, String>,
        (job, origin): (&JobId, Option<String>),
    ) -> Self {
        let known = state.cluster_uids().map(|(on, uid)| KnownCluster { on: on.clone(), uid: uid.to_owned() });
        let servers = state
            .clusters
            .iter()
            .filter_map(|(on, identity)| Some(KnownServer { on: on.clone(), address: identity.address()?.to_owned() }));
        let former = state.former.iter().filter_map(|(uid, inventory)| {
            Some(FormerCluster { uid: uid.clone(), managed_resources: inventory.list()? })
        });
        Self {
            proposal: state.stored.clone(),
            manifest: state.manifest.clone(),
            progress: state.progress.clone(),
            deletion_order: state.deletion_order.clone(),
            clusters: known.filter(|_| !state.inventory.0.is_empty()).collect(),
            servers: servers.filter(|_| !state.inventory.0.is_empty()).collect(),
            former: former.collect(),
            credentials: credentials.clone(),
            hidden: None,
            large: None,
            origin,
            job: Some(job.clone()),
            number: 0,
            seal: None,
        }
    }

    /// The clusters that the inventory is about. An earlier build may have kept an address beside a uid, which counts.
    pub(crate) fn known_clusters(&self) -> BTreeMap<ClusterRef, ClusterIdentity> {
        let servers = self.servers.iter();
        let servers = servers.map(|known| (known.on.clone(), ClusterIdentity::Address(known.address.clone())));
        let uids = self.clusters.iter().map(|known| (known.on.clone(), ClusterIdentity::Uid(known.uid.clone())));
        servers.chain(uids).collect()
    }

    /// What lies in other clusters, by their uids.
    pub(crate) fn former(&self) -> Step<BTreeMap<String, Inventory>> {
        let read = |FormerCluster { uid, managed_resources }: &FormerCluster| {
            Ok((uid.clone(), inventory(Some(managed_resources))?))
        };
        self.former.iter().map(read).collect()
    }

    /// How many objects it names beside the inventory.
    pub(crate) fn objects(&self) -> usize {
        self.progress.as_ref().map_or(0, |progress| progress.planned.len())
            + self.former.len()
            + self.deletion_order.len()
    }

    /// What has words of components in it, and the rest.
    pub(crate) fn split(mut self) -> (Self, Self) {
        let words = Self {
            progress: self.progress.take(),
            deletion_order: std::mem::take(&mut self.deletion_order),
            former: std::mem::take(&mut self.former),
            ..Self::default()
        };
        (words, self)
    }

    /// The same with what was hidden of it.
    pub(crate) fn with(self, hidden: Option<Self>) -> Self {
        match hidden {
            Some(Self { progress, deletion_order, former, .. }) => Self { progress, deletion_order, former, ..self },
            None => self,
        }
    }

    /// The same without what a masker finds, which is hidden with the rest.
    pub(crate) fn hiding(self, mut hidden: Hidden, masker: &Masker, sealer: Sealer<'_>) -> Self {
        let shown = hidden.additions(self, masker);
        if hidden.is_empty() { shown } else { Self { hidden: sealer.encrypt(&hidden), ..shown } }
    }

    /// Whether there is nothing to say.
    pub(crate) fn is_empty(&self, inventory: &Inventory) -> bool {
        let (job, origin) = (self.job.clone(), self.origin.clone());
        inventory.0.is_empty() && *self == Self { job, origin, ..Self::default() }
    }

    /// The same under a number, sealed with the inventory beside it.
    pub(crate) fn sealed(self, number: u64, inventory: &Inventory, sealer: Sealer<'_>) -> Self {
        let unsealed = Self { number, seal: None, ..self };
        let seal = sealer.seal(number, &(inventory.list(), &unsealed));
        Self { seal, ..unsealed }
    }

    /// Holds the seal against all that counts, and answers what is hidden.
    pub(crate) fn verify(&self, inventory: &Inventory, sealer: Sealer<'_>) -> Result<Hidden, SealError> {
        let unsealed = Self { seal: None, ..self.clone() };
        sealer.verify(self.number, &(inventory.list(), &unsealed), self.seal.as_deref())?;
        match &self.hidden {
            Some(hidden) => sealer.decrypt(hidden).ok_or(SealError::Unsealed),
            None => Ok(Hidden::default()),
        }
    }
}
