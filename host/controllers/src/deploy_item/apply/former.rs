//! What an item has left in clusters that its targets do not name any more: deleted there with the credentials of that time,
//! and told as long as it is there (C-35).

use std::{sync::Arc, time::Duration};

use orangery_apply::{ClusterIdentity, ItemState, Job, ProgressStore as _, Purpose, Recorded, delete};
use orangery_cluster::{Call, Cluster, Connections};
use orangery_core::{
    error::{Code, Failure},
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{
    ClusterRef, ObjectKey, SecretContent,
    check::is_revision,
    inventory::{Inventory, InventoryPolicy, LocatedObject},
};
use orangery_turns::slot;

use crate::{
    deploy_item::{
        gather::{GatheredItem, ItemReconciliation},
        status::StatusWriter,
    },
    kept_credentials,
};

/// How long an item that has succeeded goes on trying to clean up in one former cluster: the next job tries again.
const CLEANED_UP_WITHIN: Duration = Duration::from_secs(3);

/// Objects that are named in a message.
const NAMED: usize = 5;

/// One cluster, whatever is asked for.
struct Former(Arc<Cluster>);

impl Connections for Former {
    fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
        Box::pin(async { Ok(Arc::clone(&self.0)) })
    }

    fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
        Box::pin(async { Err(failure("NoTargetDefined", "nothing is written to a former cluster".to_owned())) })
    }
}

/// The reason where it is not known how a former cluster is reached, in messages that say all.
const UNKNOWN: &str = "FormerClusterUnknown";

/// What to do about a former cluster that is gone for good.
const WITHOUT_UNINSTALL: &str =
    "delete the item with the annotation landscaper.gardener.cloud/delete-without-uninstall";

/// Why a deletion does not go on, with what is left in a former cluster before it, and with the way out.
fn of_former(what: &str, halt: Halt) -> Halt {
    let told = |failure: Failure| match failure.reason == UNKNOWN {
        true => failure,
        false => {
            let message =
                format!("{what}: {}; where that cluster is gone for good, {WITHOUT_UNINSTALL}", failure.message);
            Failure { message, ..failure }
        }
    };
    match halt {
        Halt::Wait(wait) => Halt::Wait(wait),
        Halt::Retry(failure) => Halt::Retry(told(failure)),
        Halt::Stall(failure) => Halt::Stall(told(failure)),
    }
}

fn failure(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("CleanUp", reason, message).with_code(Code::ConfigurationProblem))
}

impl ItemReconciliation {
    /// Deletes what is left in former clusters, as far as they answer, and tells what stays.
    pub(super) async fn clean_up_if_possible(&mut self, state: &mut ItemState) {
        for uid in state.former.keys().cloned().collect::<Vec<_>>() {
            let what = left(&uid, state);
            let call = Call::new(slot());
            call.end_in(Some(CLEANED_UP_WITHIN));
            let inventory = state.former.get(&uid).cloned().unwrap_or_default();
            let cleaned_up = match self.is_approved_in_former(&uid, &inventory).await {
                Ok(true) => self.clean_up(&uid, state, call).await,
                Ok(false) => Err(failure("NotApproved", "nobody has approved that they go".to_owned())),
                Err(halt) => Err(halt),
            };
            if let Err(halt) = cleaned_up {
                let why = match halt {
                    Halt::Wait(wait) => wait.to_string(),
                    Halt::Retry(failure) | Halt::Stall(failure) => failure.message,
                };
                self.tell("LeftInFormerCluster", &format!("{what}: {why}"));
            }
        }
    }

    /// Deletes what is left in all former clusters.
    ///
    /// # Errors
    /// One of them does not answer, or is not known how to be reached.
    pub(super) async fn clean_up_all(&mut self, state: &mut ItemState) -> Step<()> {
        Box::pin(self.check_approval_in_former(state)).await?;
        for uid in state.former.keys().cloned().collect::<Vec<_>>() {
            let (what, call) = (left(&uid, state), self.gathered.clusters.call().clone());
            self.clean_up(&uid, state, call).await.map_err(|halt| of_former(&what, halt))?;
        }
        Ok(())
    }

    /// The callers have seen that it is approved.
    async fn clean_up(&mut self, uid: &str, state: &mut ItemState, call: Call) -> Step<()> {
        let Some(cluster) = self.former_cluster(uid, state).await? else {
            let message = format!(
                "{}, and it is not known how that cluster is reached; have the Target name it again, or {WITHOUT_UNINSTALL}",
                left(uid, state)
            );
            return Err(failure(UNKNOWN, message));
        };
        let inventory = state.former.get(uid).cloned().unwrap_or_default();
        let (address, on) = (cluster.address().to_owned(), inventory.0.keys().next().map(|located| located.on.clone()));
        let known = |located: &LocatedObject| (located.on.clone(), ClusterIdentity::Uid(uid.to_owned()));
        let clusters = inventory.0.keys().map(known).collect();
        let mut there = ItemState { inventory, clusters, ..ItemState::default() };
        let set = self.gathered.clusters.beside(Arc::new(Former(cluster))).during(call);
        let is_current = self.status.fence();
        let job = self.gathered.job(Purpose::Uninstall, &is_current);
        let recorded = job.recorded.map(|recorded| Recorded { former: Some(uid), ..recorded });
        let job = Job { clusters: &set, recorded, ..job };
        let mut result = delete(&job, &mut there).await;
        if result.is_ok() && there.former.is_empty() && takes_revisions(&mut there.inventory) {
            result = delete(&job, &mut there).await;
        }
        let elsewhere = !there.former.is_empty();
        if result.is_ok() && !elsewhere {
            // Nobody comes back for what is kept (C-272).
            let kept = std::mem::take(&mut there.inventory);
            let named = (!kept.0.is_empty()).then(|| named(kept.0.keys().map(|located| &located.key)));
            let stays = |named| {
                format!("{named} stay in the cluster whose kube-system has the uid {uid}: they are kept or ignored")
            };
            there.notes.extend(named.map(stays));
        }
        self.tell_what_stays(&mut there);
        if there.inventory.0.is_empty() && !elsewhere {
            state.former.remove(uid);
        } else if !elsewhere {
            state.former.insert(uid.to_owned(), there.inventory);
        }
        result?;
        if elsewhere {
            let message = if self.is_at(on, &address).await {
                replaced(uid, state, &address)
            } else {
                format!("{}, but its credentials lead to another cluster now", left(uid, state))
            };
            return Err(failure(UNKNOWN, message));
        }
        self.forget_credentials(uid, state).await;
        Ok(())
    }

    /// Whether the cluster of a target has this address now.
    async fn is_at(&self, on: Option<ClusterRef>, address: &str) -> bool {
        match on {
            Some(on) => self.gathered.clusters.cluster(&on).await.is_ok_and(|cluster| cluster.address() == address),
            None => false,
        }
    }

    async fn former_cluster(&self, uid: &str, state: &ItemState) -> Step<Option<Arc<Cluster>>> {
        let Some(secret) = state.credentials.get(uid) else { return Ok(None) };
        let GatheredItem { host, key, .. } = &self.gathered;
        let Some(kubeconfig) = kept_credentials::usable(host, &key.namespace, secret).await? else { return Ok(None) };
        let networks = host.policies.networks(&key.namespace, &kubeconfig)?;
        let tenant = Some(key.namespace.clone());
        self.gathered.pool.connect(&kubeconfig.text, &networks, &tenant).await.map(Some).map_err(Halt::from)
    }

    /// What is left is recorded before its credentials go: whoever still found it in the status could not look for it any more.
    /// What cannot be recorded now is kept as long as the item.
    async fn forget_credentials(&mut self, uid: &str, state: &mut ItemState) {
        if state.cluster_uids().any(|(_, known)| known == uid) {
            return;
        }
        let Some(secret) = state.credentials.get(uid).cloned() else { return };
        if self.status.record(state).await.is_ok() {
            kept_credentials::release(&self.gathered.host, &self.gathered.item, [&secret]).await;
            state.credentials.remove(uid);
        }
    }
}

/// Whether there are revisions of a release, which is gone by now: they go, too, as what the item owns (C-207).
fn takes_revisions(Inventory(left): &mut Inventory) -> bool {
    let mut revisions = left.iter_mut().filter(|(located, _)| is_revision(&located.key)).peekable();
    let has_some = revisions.peek().is_some();
    revisions.for_each(|(_, entry)| entry.policy = InventoryPolicy::Manage);
    has_some
}

/// The item is uninstalled: it may go, and nothing of what was kept for it is needed. What cannot be proven to be that now is
/// kept for longer.
pub(in crate::deploy_item) async fn release(
    gathered: &GatheredItem,
    status: &mut StatusWriter,
    state: Option<ItemState>,
) -> Step<()> {
    let GatheredItem { host, item, .. } = gathered;
    let kept: Vec<String> = match &state {
        Some(state) => state.credentials.values().cloned().collect(),
        // It goes without being uninstalled.
        None => kept_of(gathered).await,
    };
    status.record_end(state).await?;
    let _leaving = host.kept_credentials.leave(item);
    kept_credentials::release(host, item, &kept).await;
    status.release().await
}

/// The Secrets with what was kept for an item, as far as its status is the host's word.
async fn kept_of(gathered: &GatheredItem) -> Vec<String> {
    let Ok(mut read) = gathered.state().await else { return Vec::new() };
    if read.seal_error.is_none()
        || kept_credentials::prove(&gathered.host, &gathered.item, &mut read.state).await.is_ok()
    {
        return read.state.credentials.into_values().collect();
    }
    Vec::new()
}

/// What is left in a former cluster, in words.
fn left(uid: &str, state: &ItemState) -> String {
    format!(
        "the target names another cluster than before: {} stay in the cluster whose kube-system has the uid {uid}",
        objects_of(uid, state)
    )
}

/// The same where the Target is as it was, and another cluster has come to its address (C-173).
fn replaced(uid: &str, state: &ItemState, address: &str) -> String {
    format!(
        "{address} is another one than before: {} stay in the one whose kube-system has the uid {uid}; have that one answer \
         there again or, where it is gone for good, {WITHOUT_UNINSTALL}",
        objects_of(uid, state)
    )
}

/// The objects that are left in a former cluster, as far as they are named.
fn objects_of(uid: &str, state: &ItemState) -> String {
    state.former.get(uid).map(|left| named(left.0.keys().map(|located| &located.key))).unwrap_or_default()
}

/// Some of these objects, and how many more there are.
pub(super) fn named<'k>(objects: impl ExactSizeIterator<Item = &'k ObjectKey>) -> String {
    let more = objects.len().saturating_sub(NAMED);
    let named: Vec<String> = objects.take(NAMED).map(ToString::to_string).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", named.join(", "))
}
