//! What was decided is applied: the component is called where there is something new to decide, and its proposal is taken
//! as far as it goes without waiting.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use orangery_apply::{ItemState, Outcome, ProgressStore as _, Purpose, carry_out, manifest, writes_all};
use orangery_core::{
    error::{Code, Failure, Problem},
    phase::item::Item as Phase,
    step::{Halt, Step, Verdict, Wait},
};
use orangery_proposal::{
    Next, Proposal,
    deployer::Deployer,
    drift_rules::DriftRules,
    inventory::LocatedObject,
    item::{ItemAction, NextCall, ProposalAction, is_overdue, proposal_action, timed_out},
};

use super::{
    dependencies,
    gather::{GatheredItem, ItemReconciliation},
    plan_ahead::plan_queued,
    status::{ContentSeal, proposal_cache, provider_status::ReadStatus},
    timeout::in_time,
    trigger::of_an_orphan,
};
use orangery_reconcile::{ReservedForReading, reserve_now, reserve_when_free};

use crate::{event, kept_credentials, refresh, seal::SealError, secret_values::reader};

pub(super) mod approval;
mod charts;
pub(super) mod ended;
pub(super) mod former;
mod job_rules;
mod successors;
mod termination;
mod uninstall;

/// What is told as well where a part of a state is encrypted with a key that is gone.
const PART_LOST: &str = "; a part of it is encrypted with a key that is gone: if the Target has named another cluster before, look for \
    objects with the annotation orangery.dev/owner of this item there";

/// How often a component is called in a row that goes on without waiting for anything: one that goes on for ever would hold its
/// item up for ever where that has no timeout.
const MOST_CALLS_IN_A_ROW: usize = 256;

/// How often the objects of a proposal are in memory while it is carried out: as they were proposed, and as they are written.
const VALUES_OF_A_PROPOSAL: u64 = 2;

/// Bytes of memory of a proposal that waits for none.
const SMALL_PROPOSAL: u64 = 1 << 20;

/// The job was interrupted, or is over.
fn superseded() -> Halt {
    let message = "the job has been superseded or interrupted";
    Halt::Retry(Failure::new("Plan", "Superseded", message))
}

/// Others have the memory for what is proposed.
fn crowded(bytes: u64) -> Halt {
    let message =
        format!("what is proposed takes {bytes} bytes of memory, and others have what is left; it is tried again");
    Halt::Retry(Failure::new("Plan", "MemoryTaken", message).with_code(Code::LimitExceeded))
}

/// The component does not come to an end.
fn endless(by: &dyn Deployer) -> Failure {
    let message = format!(
        "plugin {} was called {MOST_CALLS_IN_A_ROW} times in a row and goes on without waiting for anything, so it would go on for ever; \
         correct it, or use another version",
        by.identity().name
    );
    Failure::new("Plan", "EndlessCalls", message).with_code(Code::LimitExceeded)
}

/// What a call of the controller came to.
pub(super) struct Applied {
    pub(super) result: Step<Verdict>,
    /// When.
    pub(super) now: Timestamp,
    /// How much of the item's time is left; `None` where it has none, or its job has not begun.
    pub(super) left: Option<Duration>,
}

/// Applies an action.
///
/// # Errors
/// What the item uses could not be guarded: nothing has been done, and the status is left as it is.
pub(super) async fn apply(reconciliation: &mut ItemReconciliation, action: ItemAction) -> Step<Applied> {
    if !matches!(action, ItemAction::Queue(_)) && !reconciliation.status.has_begun() {
        reconciliation.status.pick_up();
        if action == ItemAction::Install {
            // The job reads anew what it needs (C-195).
            let GatheredItem { host, key, .. } = &reconciliation.gathered;
            host.secrets.forget_reads(&key.namespace, &reader(&key.name));
            reconciliation.tell_named_twice();
        }
        if action != ItemAction::Skip && reconciliation.phase != Phase::Deleting {
            match dependencies::guard(&reconciliation.gathered.host, &reconciliation.gathered.item).await {
                // What it uses goes, and nothing can keep it any more (C-109).
                Err(going @ Halt::Stall(_)) => {
                    return Ok(Applied {
                        result: Err(going),
                        now: reconciliation.gathered.host.clock.now(),
                        left: None,
                    });
                }
                guarded => guarded?,
            }
        }
    }
    let result = match action {
        ItemAction::Skip => Ok(Verdict::Done),
        ItemAction::Queue(wait) => Err(plan_queued(&reconciliation.gathered, reconciliation.phase, wait).await),
        ItemAction::Fail(failure) => Err(Halt::Stall(failure)),
        ItemAction::Install => return Ok(reconciliation.in_time(Purpose::Install).await),
        ItemAction::Uninstall => return Ok(reconciliation.in_time(Purpose::Uninstall).await),
    };
    Ok(Applied { result, now: reconciliation.gathered.host.clock.now(), left: None })
}

impl ItemReconciliation {
    /// The work, and what becomes of it where the time of the item is up meanwhile.
    async fn in_time(&mut self, purpose: Purpose) -> Applied {
        let left = self.time_for_requests().await;
        self.gathered.clusters.call().end_in(left);
        // Boxed: the states of all that an item may wait for take much of a stack.
        let result = match purpose {
            Purpose::Install => in_time(left, Box::pin(self.install())).await,
            Purpose::Uninstall => in_time(left, Box::pin(self.uninstall())).await,
        };
        let now = self.gathered.host.clock.now();
        let result = match (result, self.gathered.job.limit) {
            (Err(halt), Some(limit)) if self.is_overdue(&halt, now) && self.status.is_current() => {
                self.gathered.clusters.call().end_in(Some(limit));
                in_time(Some(limit), Box::pin(self.recover(timed_out(limit, &halt), purpose, now))).await
            }
            (result, _) => result,
        };
        self.end_with_job(&result).await;
        let result = if self.is_orphaned { of_an_orphan(result) } else { result };
        // The time of the item begins anew when somebody has approved what it writes (C-316).
        let left = if awaits_approval(&result) { None } else { self.left(now) };
        Applied { result, now, left }
    }

    /// Whether the time of the item is up. While it waits for an approval it has all of it.
    fn is_overdue(&self, halt: &Halt, now: Timestamp) -> bool {
        !matches!(halt, Halt::Wait(wait) if wait.awaits_approval()) && is_overdue(halt, self.end(), now)
    }

    /// Brings the item about.
    async fn install(&mut self) -> Step<Verdict> {
        let read = self.gathered.state_with_target().await?;
        let mut state = self.vouched(read).await?;
        let result = self.carry_on(Purpose::Install, &mut state).await;
        if result.is_ok() {
            self.clean_up_if_possible(&mut state).await;
        }
        self.state = Some(state);
        match result {
            Err(halt) => Err(self.ended_by_termination(halt).await),
            done @ Ok(_) => done,
        }
    }

    /// The state that counts; what does not is told. A state is older than another one where it is the newest that the
    /// server has: else the item is worked on as it is now.
    async fn vouched(&self, read: ReadStatus) -> Step<ItemState> {
        let GatheredItem { host, item, key, .. } = &self.gathered;
        if read.seal_error == Some(SealError::Replayed) {
            let store = &host.stores.deploy_items;
            refresh::read(host, store, key).await?;
            let newest = store.get(key).and_then(|newest| newest.metadata.resource_version.clone());
            if newest != item.metadata.resource_version {
                let message = format!("DeployItem {key} has changed since it was read; it is worked on as it is now");
                return Err(Halt::Retry(Failure::new("ReadStatus", "Conflict", message)));
            }
        }
        let ReadStatus { mut state, seal_error, is_part_lost, is_of_origin } = read;
        if let Some(seal_error) = seal_error {
            kept_credentials::prove(host, item, &mut state).await?;
            let lost = if is_part_lost { PART_LOST } else { "" };
            self.tell("StateNotTrusted", &format!("{}{lost}", seal_error.note()));
        }
        state.notes.extend(self.gathered.retain_vouched(&mut state.deletion_order, is_of_origin));
        if self.was_cut_off {
            self.gathered.is_unaccounted_for(&state);
        }
        Ok(state)
    }

    fn tell(&self, reason: &str, note: &str) {
        let GatheredItem { host, item, key, .. } = &self.gathered;
        tracing::warn!(item = %key, "{note}");
        event::warn(host, item.as_ref(), reason, note);
    }

    /// Tells of objects that the configuration says both to ignore and to deploy (C-204).
    fn tell_named_twice(&self) {
        let twice = self.gathered.named_twice();
        if twice.is_empty() {
            return;
        }
        let note = format!(
            "manifests has {} twice, under `ignore` and under another policy, which counts: what is deployed goes with the item; remove \
             one of the two entries",
            former::named(twice.iter())
        );
        self.tell("ObjectNamedTwice", &note);
    }

    /// Tells what was not deleted, and why.
    fn tell_what_stays(&self, state: &mut ItemState) {
        let mut notes = std::mem::take(&mut state.notes);
        notes.sort();
        if !notes.is_empty() {
            self.tell("ObjectsStay", &notes.join("; "));
        }
    }

    /// The item's time is up. A component that recovers from failed stages is called for this one, too, and has as much time
    /// again; else the item fails.
    async fn recover(&mut self, failure: Failure, purpose: Purpose, now: Timestamp) -> Step<Verdict> {
        let Some(mut state) = self.state.take() else { return Err(Halt::Stall(failure)) };
        // What cannot be read now will not be asked for again: the time is up.
        let stored = self.stored(&state).await.unwrap_or(None);
        let recovering = match (&state.progress, &stored, self.gathered.job.limit) {
            (Some(progress), Some(proposal), Some(limit)) => progress.timed_out(proposal, &failure, now, limit),
            _ => None,
        };
        let result = match recovering {
            None => Err(Halt::Stall(failure)),
            Some(progress) => {
                state.progress = Some(progress);
                match purpose {
                    Purpose::Install => self.carry_on(purpose, &mut state).await,
                    Purpose::Uninstall => self.take_away(&mut state).await,
                }
            }
        };
        self.state = Some(state);
        result
    }

    /// Calls the component and carries out what it proposes, until it has nothing more to do. Between two calls of an
    /// install the time may be up.
    async fn carry_on(&mut self, purpose: Purpose, state: &mut ItemState) -> Step<Verdict> {
        let recovers_until = state.progress.as_ref().and_then(|progress| progress.recovers_until);
        let end = recovers_until.or(self.deadline).filter(|_| purpose == Purpose::Install);
        for _ in 0..MOST_CALLS_IN_A_ROW {
            let Some((proposal, memory)) = self.proposal_with_memory(purpose, state).await? else {
                return Ok(Verdict::Done);
            };
            Box::pin(self.check_approval(purpose, &proposal, state)).await?;
            let before = planned(state);
            // Boxed: what waits in them would stand on the stack once for each function above.
            let carried_out = Box::pin(self.carry_out(&proposal, purpose, state)).await?;
            match carried_out {
                Outcome::Finished => {
                    if purpose == Purpose::Install {
                        self.keep_manifest(&proposal, &before, state).await?;
                        self.status.refer_to_exports(has_exports(&proposal)).await?;
                    }
                    return Ok(Verdict::Done);
                }
                Outcome::Failed(problem) => {
                    return Ok(Verdict::Failed(asked_for(problem, self.gathered.deployer.as_ref())));
                }
                Outcome::Call if end.is_some_and(|end| self.gathered.host.clock.now() >= end) => {
                    return Err(Halt::Wait(Wait::poll(Duration::ZERO)));
                }
                Outcome::Call if !self.status.is_current() => return Err(superseded()),
                Outcome::Call => {}
            }
            drop(proposal);
            memory.takes(0).await;
        }
        Err(Halt::Stall(endless(self.gathered.deployer.as_ref())))
    }

    /// The proposal that is carried out next, with its memory. One that has none now is dropped, and asked for again when
    /// there is some (C-325).
    async fn proposal_with_memory(
        &mut self,
        purpose: Purpose,
        state: &mut ItemState,
    ) -> Step<Option<(Arc<Proposal>, ReservedForReading)>> {
        let Some(proposal) = Box::pin(self.proposal(purpose, state)).await? else { return Ok(None) };
        let namespace = self.gathered.key.namespace.clone();
        let bytes = proposal_cache::bytes_of(&proposal).saturating_mul(VALUES_OF_A_PROPOSAL);
        if bytes < SMALL_PROPOSAL {
            return Ok(Some((proposal, ReservedForReading::default())));
        }
        if let Some(memory) = reserve_now(&namespace, bytes).await {
            return Ok(Some((proposal, memory)));
        }
        drop(proposal);
        let Some(memory) = reserve_when_free(&namespace, bytes).await else { return Err(crowded(bytes)) };
        Ok(Box::pin(self.proposal(purpose, state)).await?.map(|proposal| (proposal, memory)))
    }

    /// The proposal that is carried out next; `None` where the component has none.
    async fn proposal(&mut self, purpose: Purpose, state: &mut ItemState) -> Step<Option<Arc<Proposal>>> {
        let stored = if state.progress.is_some() { self.stored(state).await? } else { None };
        if stored.is_none() {
            // Somebody has deleted what was stored: the component is asked as at the begin of the job.
            state.progress = None;
            state.manifest = None;
        }
        match proposal_action(state.progress.as_ref(), stored.as_deref(), self.gathered.host.clock.now()) {
            ProposalAction::Resume => match stored {
                Some(proposal) => self.gathered.check(proposal, purpose).await.map(Some),
                None => Ok(None),
            },
            ProposalAction::CallIn(left) => Err(Halt::Wait(Wait::poll(left))),
            ProposalAction::Call(call) => {
                if purpose == Purpose::Uninstall
                    && call == NextCall::default()
                    && let Some(answered) = self.answered.take()
                {
                    return Ok(Some(answered));
                }
                if let (Some(stored), Purpose::Install) = (&stored, purpose) {
                    self.keep_manifest(stored, &planned(state), state).await?;
                }
                self.gathered.ask(purpose, call, state).await
            }
        }
    }

    /// The stored proposal.
    async fn stored(&self, state: &ItemState) -> Step<Option<Arc<Proposal>>> {
        match &state.stored {
            Some(stored) => {
                proposal_cache::find(&self.cache, &self.gathered.host.client, &self.gathered.key, stored).await
            }
            None => Ok(None),
        }
    }

    /// What the proposals of the job have written so far is kept for an item that wants to know of drift, and for no other
    /// (C-58). `planned` is what those before this one have.
    async fn keep_manifest(
        &mut self,
        proposal: &Proposal,
        planned: &BTreeSet<LocatedObject>,
        state: &mut ItemState,
    ) -> Step<()> {
        let GatheredItem { host, key, item, .. } = &self.gathered;
        let is_whole = writes_all(proposal, planned);
        let before = match &state.manifest {
            Some(stored) if !is_whole => {
                proposal_cache::read(&host.client, &key.namespace, stored, ContentSeal::Good).await?
            }
            Some(_) | None => None,
        };
        let is_wanted = DriftRules::of(item.spec.drift.as_ref(), item.spec.config.as_ref()).is_some();
        // Where somebody has deleted what was kept of those before, the next job keeps it.
        state.manifest = if is_wanted && (is_whole || before.is_some()) {
            let manifest = manifest(before.as_ref(), proposal, &state.inventory);
            Some(self.status.persist(&manifest).await?)
        } else {
            None
        };
        Ok(())
    }

    async fn carry_out(&mut self, proposal: &Arc<Proposal>, purpose: Purpose, state: &mut ItemState) -> Step<Outcome> {
        let is_current = self.status.fence();
        let job = self.gathered.job(purpose, &is_current);
        let order = state.deletion_order.clone();
        let result = carry_out(&job, &mut self.status, proposal, state).await;
        self.tell_what_stays(state);
        if purpose == Purpose::Uninstall && proposal.deletion_order.is_empty() {
            state.deletion_order = order;
        }
        if let Some(stored) = &state.stored {
            self.cache.put(self.gathered.key.clone(), stored.digest.clone(), Arc::clone(proposal));
        }
        result
    }
}

/// Whether an item waits until somebody approves what it writes.
fn awaits_approval(result: &Step<Verdict>) -> bool {
    matches!(result, Err(Halt::Wait(wait)) if wait.awaits_approval())
}

/// What the proposals of the job before the next one have planned.
fn planned(state: &ItemState) -> BTreeSet<LocatedObject> {
    state.progress.as_ref().map_or_else(BTreeSet::new, |progress| progress.planned.clone())
}

fn has_exports(proposal: &Proposal) -> bool {
    matches!(&proposal.next, Next::Finish(completion) if !completion.exports.is_empty())
}

/// The component asked for the failure.
fn asked_for(problem: Problem, deployer: &dyn Deployer) -> Failure {
    let message = format!("plugin {}: {problem}", deployer.identity().name);
    let failure = Failure::new("Plan", "PluginFailedItem", message);
    if problem.code.to_string().is_empty() { failure } else { failure.with_code(problem.code) }
}
