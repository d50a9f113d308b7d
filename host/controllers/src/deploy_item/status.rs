//! What a call of the controller writes about its item: the status, the export Secret, stored proposals. Every status write
//! carries the version that was read, so that an item that has changed meanwhile, as by an interrupt, refuses it (C-24, C-25).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    condition,
    deploy_item::{DeployItem, DeployItemStatus, DeployerInformation},
    job::Job,
};
use orangery_apply::{ItemState, ProgressStore};
use orangery_core::{
    condition::DriftReport,
    name::JobId,
    phase::item::Item as Phase,
    port::BoxFuture,
    step::{Step, Wait},
    walk::StatusUpdate,
};
use orangery_proposal::{Proposal, check::told_conditions, deployer::PluginIdentity, item::StoredProposal};
use serde_json::Value;

use orangery_reconcile::Key;

use crate::{
    controller_context::ControllerContext,
    job::{self, JobStatus},
    job_reports::digest,
    kept_credentials::{self, KeptSecret, secret_of},
    object::{generation_of, uid_of},
    plans::awaits_approval,
    seal::Sealer,
    target_access::TargetConnections,
    target_kubeconfig::TargetKubeconfig,
};

pub(super) use self::item_secrets::ContentSeal;
use self::{large_state::LargeState, proposal_cache::PackedProposal, provider_status::WrittenStatus};

mod exports;
mod item_secrets;
pub(super) mod large_state;
pub(super) mod proposal_cache;
pub(super) mod provider_status;

/// Writes the status of one item in one job.
pub(super) struct StatusWriter {
    host: Arc<ControllerContext>,
    /// As the server has it.
    before: Arc<DeployItem>,
    /// As the next write will have it.
    draft: DeployItem,
    job: JobId,
    phase: Phase,
    /// Whether the job was or is being picked up. Until then the item keeps the phase of its last job.
    has_begun: bool,
    deployer: DeployerInformation,
    /// The time of all writes but the last, and then of that.
    now: Time,
    /// How the clusters of the item are reached.
    targets: Option<Arc<TargetConnections>>,
    /// The Secrets that were stored since the last write.
    persisted: BTreeSet<String>,
    /// The digest of what was exported, where jobs are on record.
    exported: Option<String>,
}

impl StatusWriter {
    /// For a job that stands in a phase and may be new.
    pub(super) fn new(
        host: &Arc<ControllerContext>,
        item: &Arc<DeployItem>,
        (job, phase, is_new): (&JobId, Phase, bool),
        deployer: &PluginIdentity,
        now: &Time,
    ) -> Self {
        Self {
            host: Arc::clone(host),
            before: Arc::clone(item),
            draft: DeployItem::clone(item),
            job: job.clone(),
            phase,
            has_begun: !is_new,
            deployer: DeployerInformation {
                identity: deployer.digest.clone(),
                name: deployer.name.clone(),
                version: deployer.version.clone(),
            },
            now: now.clone(),
            targets: None,
            persisted: BTreeSet::new(),
            exported: None,
        }
    }

    /// From now on the credentials of the clusters that a state is about are kept before it is written.
    pub(super) fn keep_credentials_of(&mut self, targets: &Arc<TargetConnections>) {
        self.targets = Some(Arc::clone(targets));
    }

    /// The begin of a job: the clock of its timeout starts, errors of the last one are forgotten (C-08).
    pub(super) fn pick_up(&mut self) {
        let generation = generation_of(self.before.as_ref());
        let status = self.draft.status.get_or_insert_default();
        status.begin(generation, &self.now);
        status.last_reconcile_time = Some(self.now.clone());
        status.deployer = self.deployer.clone();
        status.last_error = None;
        status.first_error = None;
        status.last_errors.clear();
        forget_drift(status, generation, &self.now);
        self.has_begun = true;
    }

    /// The digest of what this call has exported.
    pub(super) fn exported(&self) -> Option<String> {
        self.exported.clone()
    }

    /// Whether the job was picked up.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// When the job was picked up; now, where it has still to be.
    pub(super) fn begun(&self) -> Timestamp {
        let times = self.before.status.as_ref().and_then(|status| status.transition_times.as_ref());
        let picked_up = times.and_then(|times| times.init_time.as_ref()).filter(|_| self.has_begun);
        picked_up.map_or(self.now.0, |time| time.0)
    }

    /// Whether the job waited for an approval when it was called last.
    pub(super) fn awaited_approval(&self) -> bool {
        self.has_begun && awaits_approval(&self.before)
    }

    /// The clock of the timeout starts anew. Answers when.
    pub(super) fn begin_anew(&mut self) -> Timestamp {
        let times = self.draft.status.get_or_insert_default().transition_times.get_or_insert_default();
        times.init_time = Some(self.now.clone());
        self.now.0
    }

    /// Whether the job is still the item's current one, as far as the store knows.
    pub(super) fn is_current(&self) -> bool {
        is_current(&self.host, &self.before, &self.job)
    }

    /// Whether anything may be written for the job, asked before each write. A version of the item is looked at once: a long one
    /// would be decoded for each object.
    pub(super) fn fence(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let (host, item, job) = (Arc::clone(&self.host), Arc::clone(&self.before), self.job.clone());
        let key = Key::of(item.as_ref());
        // The version of the item in which the job was its current one; no version is zero.
        let current = AtomicU64::new(0);
        move || {
            let version = || host.stores.deploy_items.version(&key).unwrap_or_default();
            let now = version();
            let is_known = now != 0 && current.load(Ordering::Relaxed) == now;
            let is_current = is_known || is_current(&host, &item, &job);
            // Another one may have come meanwhile.
            if is_current && version() == now {
                current.store(now, Ordering::Relaxed);
            }
            host.may_write() && is_current
        }
    }

    /// Where the job rests: phase, job ids, errors, conditions and the state in one write. A job that waits before it begins
    /// leaves the phase and the error of the last one; where the status says the same already, nothing is written. A job that
    /// has ended goes on nowhere, and keeps no proposal (C-63).
    pub(super) async fn finish(
        &mut self,
        rest: &StatusUpdate<Phase>,
        state: Option<ItemState>,
        now: Timestamp,
    ) -> Step<()> {
        let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
        self.now = now.clone();
        let generation = generation_of(self.before.as_ref());
        let status = self.draft.status.get_or_insert_default();
        let (phase, last_error) = (status.phase.clone(), status.last_error.clone());
        status.rest(rest, generation, &now);
        if rest.failure.is_some() {
            status.remember();
        }
        if rest.wait.as_ref().is_some_and(Wait::awaits_approval) && self.has_begun {
            // It is not written each time that it is looked at.
            let before = self.before.status.as_ref().and_then(|status| status.transition_times.as_ref());
            let init_time = before.and_then(|times| times.init_time.clone()).or_else(|| Some(self.now.clone()));
            status.transition_times.get_or_insert_default().init_time = init_time;
        }
        if !self.has_begun {
            (status.phase, status.last_error) = (phase, last_error);
            if self.draft == *self.before {
                return Ok(());
            }
        }
        let state = state.map(|state| {
            let ItemState { progress, stored, .. } = state;
            ItemState { progress: progress.filter(|_| !rest.ended), stored: stored.filter(|_| !rest.ended), ..state }
        });
        let state = state.as_ref().map(|state| (self.sealed(state), state));
        self.write(state).await
    }

    /// What an item that goes has left, before the credentials go that were kept for it: whatever becomes of the writes that
    /// follow, the next call needs none (C-35).
    pub(super) async fn record_end(&mut self, state: Option<ItemState>) -> Step<()> {
        let Some(state) = state.filter(|state| !state.credentials.is_empty()) else { return Ok(()) };
        if !state.inventory.0.is_empty() {
            return self.record(&state).await;
        }
        let ItemState { clusters, former, credentials, .. } = state;
        self.record(&ItemState { clusters, former, credentials, ..ItemState::default() }).await
    }

    /// Keeps a state for an item whose job is not this one's: nothing else of its status changes.
    pub(super) async fn keep(&mut self, state: &ItemState) -> Step<()> {
        let sealed = self.sealed(state);
        let before = self.before.status.as_ref().and_then(|status| status.provider_status.as_ref());
        if before == sealed.status.as_ref() {
            return Ok(());
        }
        self.write(Some((sealed, state))).await
    }

    /// The state that the server has is the one of the next write, too: what was to take its place was refused.
    pub(super) fn keep_state(&mut self) {
        let before = self.before.status.as_ref().and_then(|status| status.provider_status.clone());
        self.draft.status.get_or_insert_default().provider_status = before;
    }

    async fn write(&mut self, state: Option<(WrittenStatus, &ItemState)>) -> Step<()> {
        let (named, mut now, mut number) = (self.stored(), BTreeSet::new(), None);
        let kept = match &state {
            Some((_, state)) => self.keep_credentials(state).await,
            None => Vec::new(),
        };
        if let Some((written, state)) = state {
            now.extend(state.stored.iter().chain(&state.manifest).flat_map(|stored| stored.secrets.iter().cloned()));
            if self.has_room(written.large.as_ref()).await? {
                let large: BTreeSet<String> = written.large.iter().flat_map(LargeState::secrets).collect();
                now.extend(large.iter().cloned());
                self.persisted.extend(large);
                self.tell_conditions(written.status.as_ref());
                self.draft.status.get_or_insert_default().provider_status = written.status;
                number = Some(written.number);
            } else {
                self.keep_state();
            }
        }
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let answer =
            writer.update_status(&self.before, &self.draft).await.map_err(|error| error.halt("UpdateStatus"))?;
        // The status refers to them now.
        drop(kept);
        self.draft = DeployItem::clone(&answer);
        self.before = answer;
        if let Some(number) = number {
            Sealer::of(&self.host, &self.before).written(number);
            let namespace = Key::of(self.before.as_ref()).namespace;
            let known: BTreeSet<String> = named.into_iter().chain(std::mem::take(&mut self.persisted)).collect();
            let unneeded = known.difference(&now).cloned().collect();
            item_secrets::discard(&self.host.client, &namespace, &unneeded).await;
        }
        Ok(())
    }

    /// The conditions that the component tells of the item in a provider status as it is shown, and without those that it told before
    /// and does not tell any more (C-209).
    fn tell_conditions(&mut self, shown: Option<&Value>) {
        let before = self.before.status.as_ref().and_then(|status| status.provider_status.as_ref());
        let before: Vec<String> = told_conditions(before).into_iter().map(|condition| condition.type_).collect();
        let generation = generation_of(self.before.as_ref());
        let status = self.draft.status.get_or_insert_default();
        status.conditions =
            condition::with_told(told_conditions(shown), &before, generation, &status.conditions, &self.now);
    }

    /// Stores what has no room in the status. Whether it is there: where an item is uninstalled and the API server takes no
    /// Secrets, as in a namespace that terminates, what was stored before stays, which has all that is left.
    async fn has_room(&self, large: Option<&LargeState>) -> Step<bool> {
        let Some(large) = large else { return Ok(true) };
        match large.persist(&self.host.client, &self.before).await {
            Ok(()) => Ok(true),
            Err(error) if self.goes_without(&error) && !large_state::inventory_secrets(&self.before).is_empty() => {
                Ok(false)
            }
            Err(error) => Err(large_state::not_stored(&self.before, &error)),
        }
    }

    /// Whether the job goes on where a Secret cannot be stored: nothing would ever be uninstalled in a namespace that terminates.
    fn goes_without(&self, error: &kube::Error) -> bool {
        self.phase == Phase::Deleting && item_secrets::is_refused(error)
    }

    /// Whether the item's status says all of a state already: another try of a failed call writes nothing new, and the error
    /// of the last one stays to be seen.
    fn has(&self, state: &WrittenStatus) -> bool {
        let status = self.before.status.as_ref().and_then(|status| status.provider_status.as_ref());
        self.before.phase() == self.phase.as_str() && status == state.status.as_ref()
    }

    /// The kubeconfigs of the clusters that have objects of the item, and where they are kept, by the uid of the cluster.
    fn used_credentials(&self, state: &ItemState) -> Vec<(String, String, TargetKubeconfig)> {
        let clusters = state.cluster_uids().filter(|_| !state.inventory.0.is_empty());
        let used = clusters.filter_map(|(on, uid)| {
            let (target, kubeconfig) = self.targets.as_ref()?.used(on, uid)?;
            Some((uid.to_owned(), secret_of(&target, uid), kubeconfig))
        });
        used.collect()
    }

    /// Keeps the kubeconfigs of a state; what is answered is let go when the status refers to them.
    async fn keep_credentials(&self, state: &ItemState) -> Vec<KeptSecret> {
        let used = self.used_credentials(state).into_iter().map(|(_, secret, kubeconfig)| (secret, kubeconfig));
        let mut kept = Vec::new();
        for (secret, kubeconfig) in used.collect::<BTreeMap<_, _>>() {
            kept.push(kept_credentials::keep(&self.host, &secret, &kubeconfig).await);
        }
        kept
    }

    /// Where the credentials of clusters are, those that were kept before included: they go with the item, or when nothing
    /// is left in the cluster.
    fn credentials(&self, state: &ItemState) -> BTreeMap<String, String> {
        let used = self.used_credentials(state).into_iter().map(|(uid, secret, _)| (uid, secret));
        state.credentials.clone().into_iter().chain(used).collect()
    }

    /// What a state becomes.
    fn sealed(&self, state: &ItemState) -> WrittenStatus {
        let before = self.before.status.as_ref().and_then(|status| status.provider_status.as_ref());
        let Key { namespace, name } = Key::of(self.before.as_ref());
        provider_status::write(
            state,
            &self.credentials(state),
            (&name, before, &self.job),
            Sealer::of(&self.host, &self.before),
            &self.host.secrets.masker(&namespace),
        )
    }

    /// The Secrets that the item's status names, as far as it is the host's word.
    fn stored(&self) -> BTreeSet<String> {
        let status = self.before.status.as_ref().and_then(|status| status.provider_status.as_ref());
        provider_status::secrets(status, Sealer::of(&self.host, &self.before))
    }

    /// The item is uninstalled: it may go.
    pub(super) async fn release(&self) -> Step<()> {
        job::release(&self.host, &self.host.stores.deploy_items, self.before.as_ref()).await
    }

    /// The item has exports, or has none any more.
    pub(super) async fn refer_to_exports(&mut self, exported: bool) -> Step<()> {
        let status = self.draft.status.get_or_insert_default();
        let stale = status.export_ref.take();
        if exported {
            status.export_ref = Some(exports::reference(&self.before));
            return Ok(());
        }
        // Others may write the status: only the Secret that the host writes is removed.
        match stale.filter(|stale| stale.name == exports::reference(&self.before).name) {
            Some(stale) => exports::remove(&self.host.client, &self.before, &stale.name).await,
            None => Ok(()),
        }
    }
}

impl ProgressStore for StatusWriter {
    fn record<'a>(&'a mut self, state: &'a ItemState) -> BoxFuture<'a, Step<()>> {
        Box::pin(async move {
            // A large one is compressed for that, and not once more to be written.
            let sealed = self.sealed(state);
            if self.has(&sealed) {
                return Ok(());
            }
            let rest = StatusUpdate { phase: self.phase, ended: false, failure: None, wait: None };
            let generation = generation_of(self.before.as_ref());
            self.draft.status.get_or_insert_default().rest(&rest, generation, &self.now);
            self.write(Some((sealed, state))).await
        })
    }

    fn persist<'a>(&'a mut self, proposal: &'a Proposal) -> BoxFuture<'a, Step<StoredProposal>> {
        Box::pin(async move {
            let packed = PackedProposal::of(&self.before, proposal)?;
            let stored = match packed.persist(&self.host.client, &self.before).await {
                Err(error) if self.goes_without(&error) => packed.in_memory(),
                stored => stored.map_err(|error| proposal_cache::not_kept(&self.before, &error))?,
            };
            self.persisted.extend(stored.secrets.iter().cloned());
            Ok(stored)
        })
    }

    fn export<'a>(&'a mut self, exports: &'a Value) -> BoxFuture<'a, Step<()>> {
        Box::pin(async move {
            exports::write(&self.host, &self.before, exports).await?;
            let is_on_record = self.host.job_histories.most.is_some();
            self.exported = is_on_record.then(|| digest(&self.host, uid_of(self.before.as_ref()), exports));
            Ok(())
        })
    }
}

/// Whether a job is still the current one of an item, as far as the store knows: no read of the API.
fn is_current(host: &ControllerContext, item: &DeployItem, job: &JobId) -> bool {
    let newest = host.stores.deploy_items.get(&Key::of(item));
    newest.is_some_and(|newest| {
        newest.metadata.uid == item.metadata.uid && newest.job_id() == job && newest.job_id_finished() != job
    })
}

/// What was known of drift says nothing any more.
pub(super) fn forget_drift(status: &mut DeployItemStatus, generation: i64, now: &Time) {
    status.drift = None;
    status.conditions = condition::with_drift(&DriftReport::Unwatched, generation, &status.conditions, now);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn c_24_a_fence_looks_at_each_version_of_an_item_and_lets_nothing_pass_for_another_job() {
        let host = crate::controller_context::tests::host();
        let item = |version: u64, job: &str, finished: &str| -> DeployItem {
            let metadata = json!({"namespace": "n", "name": "x", "uid": "u", "resourceVersion": version.to_string()});
            let status = json!({"jobID": job, "jobIDFinished": finished});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}, "status": status})).unwrap()
        };
        let store = &host.stores.deploy_items;
        let identity =
            PluginIdentity { name: "p".to_owned(), version: "1".to_owned(), digest: String::new(), is_pinned: false };
        let (job, before, now) = ("a".into(), store.upsert(item(1, "a", "")), host.now());
        let fence = StatusWriter::new(&host, &before, (&job, Phase::Progressing, false), &identity, &now).fence();
        assert_eq!([fence(), fence()], [true, true]);
        for (version, job, finished, passes) in
            [(2, "a", "", true), (3, "b", "a", false), (4, "a", "", true), (5, "a", "a", false), (6, "a", "", true)]
        {
            store.upsert(item(version, job, finished));
            assert_eq!([fence(), fence()], [passes, passes], "{version}");
        }
        store.forget(&item(6, "a", ""));
        assert_eq!([fence(), fence()], [false, false], "it is gone");
    }
}
