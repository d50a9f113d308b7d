//! What a job is to this crate, and what it asks of whoever runs it.

use std::collections::{BTreeMap, BTreeSet};

use orangery_core::{
    error::Problem,
    name::{JobId, ObjectName},
    port::{BoxFuture, Clock},
    step::Step,
};
use orangery_proposal::{
    ClusterRef, DeletionGroup, Proposal,
    grant::Grants,
    inventory::{Inventory, LocatedObject},
    item::{Progress, StoredProposal},
};
use serde_json::Value;

use crate::{
    apply_error::ApplyError,
    cluster_identity::ClusterIdentity,
    owner::{Owner, is_of_item},
    recorder::Recorded,
};
use orangery_cluster::ClusterSet;

/// What a proposal is carried out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To bring the item about: what left the plan is pruned.
    Install,
    /// To prepare its deletion: the inventory is deleted afterwards.
    Uninstall,
}

/// The deploy items of the host's cluster.
pub trait DeployItems: Send + Sync {
    /// Whether an item does not exist any more, as the API server says that has it: not as a cache remembers it. One of
    /// the same name with another uid is another one. Where that cannot be known, it counts as there.
    ///
    /// # Errors
    /// The server does not answer.
    fn is_gone<'a>(&'a self, item: &'a Owner) -> BoxFuture<'a, Step<bool>>;

    /// Those of these objects that the configuration of another item of the same Execution names, each with the name of that
    /// item (C-163).
    ///
    /// # Errors
    /// It is not known now whether that item has the same cluster.
    fn named<'a>(&'a self, _: &'a BTreeSet<LocatedObject>) -> BoxFuture<'a, Step<BTreeMap<LocatedObject, ObjectName>>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    /// The item of the same Execution that goes on with an object when this item is taken away (C-174).
    fn successor(&self, _: &LocatedObject) -> Option<Owner> {
        None
    }

    /// Those of these objects that the configuration of this item says to ignore (C-162).
    fn ignored(&self, _: &BTreeSet<LocatedObject>) -> BTreeSet<LocatedObject> {
        BTreeSet::new()
    }
}

/// One job of one item.
pub struct Job<'a> {
    /// Its id.
    pub id: &'a JobId,
    /// What it is for.
    pub purpose: Purpose,
    /// The item.
    pub owner: &'a Owner,
    /// The labels that mark the objects of the item, with its name, as the deployers of Landscaper do.
    pub labels: &'a [String],
    /// What the component of the item may reach: held against the inventory whenever something of it is deleted (C-37).
    pub grants: &'a Grants,
    /// The item's clusters.
    pub clusters: &'a ClusterSet,
    /// The deploy items of the host's cluster.
    pub items: &'a dyn DeployItems,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Whether what a stage removes has to have the mark of the item (C-192); else it may be nobody's as well.
    pub removes_its_own_alone: bool,
    /// Whether this job is still the item's current one, as far as the host knows without asking (C-24).
    pub is_current: &'a (dyn Fn() -> bool + Send + Sync),
    /// Where its writes are noted; `None` where they are not on record (C-331).
    pub recorded: Option<Recorded<'a>>,
}

impl Job<'_> {
    /// Whether an object carries the mark of the item, or its label where it has no mark.
    pub(crate) fn owns(&self, object: &Value) -> bool {
        is_of_item(object, self.owner, self.labels)
    }

    /// Stands before every write.
    pub(crate) fn fence(&self) -> Result<(), ApplyError> {
        if (self.is_current)() { Ok(()) } else { Err(ApplyError::superseded()) }
    }
}

/// What has to survive a crash. Written by the caller into the item's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemState {
    /// The objects of the item.
    pub inventory: Inventory,
    /// Where the job stands; `None` while its proposal is simply asked for again.
    pub progress: Option<Progress>,
    /// The last proposal that was stored.
    pub stored: Option<StoredProposal>,
    /// The manifest of the last job that succeeded, for an item that wants to know of drift.
    pub manifest: Option<StoredProposal>,
    /// What the component keeps in the provider status.
    pub status: Option<Value>,
    /// How the inventory is deleted with the item; empty means the default.
    pub deletion_order: Vec<DeletionGroup>,
    /// The clusters that the inventory is about, as far as they are known (C-35, C-321).
    pub clusters: BTreeMap<ClusterRef, ClusterIdentity>,
    /// What the item has left in clusters that its targets do not name any more, by the uid of the cluster.
    pub former: BTreeMap<String, Inventory>,
    /// Where the caller keeps the credentials of clusters, by the uid of the cluster; of no meaning here.
    pub credentials: BTreeMap<String, String>,
    /// What was not deleted, and why, one sentence each: for the caller to tell, and not to keep.
    pub notes: Vec<String>,
}

impl ItemState {
    /// The uids of the clusters that the inventory is about, as far as they are known.
    pub fn cluster_uids(&self) -> impl Iterator<Item = (&ClusterRef, &str)> {
        self.clusters.iter().filter_map(|(on, identity)| Some((on, identity.uid()?)))
    }
}

/// Where is stored what has to survive a crash.
pub trait ProgressStore: Send + Sync {
    /// Writes the state, in one write. Nothing that depends on it happens before it has returned.
    ///
    /// # Errors
    /// Why it is not written, already classified.
    fn record<'a>(&'a mut self, state: &'a ItemState) -> BoxFuture<'a, Step<()>>;
    /// Stores a proposal. What is stored counts once a state that names it is written.
    ///
    /// # Errors
    /// Why it is not stored, already classified.
    fn persist<'a>(&'a mut self, proposal: &'a Proposal) -> BoxFuture<'a, Step<StoredProposal>>;
    /// Writes the exports of the item: an object.
    ///
    /// # Errors
    /// Why they are not written, already classified.
    fn export<'a>(&'a mut self, exports: &'a Value) -> BoxFuture<'a, Step<()>>;
}

/// Where a proposal led that did not have to wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The item succeeds.
    Finished,
    /// The item fails as the component asked; status and inventory are kept.
    Failed(Problem),
    /// The component is called again; the progress of the state says with what.
    Call,
}
