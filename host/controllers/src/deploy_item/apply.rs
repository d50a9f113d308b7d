//! What was decided is applied: the component is called where there is something new to decide, and its proposal is taken
//! as far as it goes without waiting.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use orangery_apply::{ItemState, Outcome, Purpose, carry_out};
use orangery_core::{
    error::{Failure, Problem},
    phase::item::Item as Phase,
    step::{Halt, Step, Verdict, Wait},
};
use orangery_proposal::{
    Next, Proposal,
    deployer::Deployer,
    item::{ItemAction, ProposalAction, is_overdue, proposal_action, timed_out},
};

use super::dependencies;
use super::{
    gather::{GatheredItem, ItemReconciliation},
    status::{proposal_cache, provider_status::ReadStatus},
    timeout::in_time,
};
use crate::{event, refresh, seal::SealError};

pub(super) mod former;
mod uninstall;

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
        if action != ItemAction::Skip && reconciliation.phase != Phase::Deleting {
            dependencies::guard(&reconciliation.gathered.host, &reconciliation.gathered.item).await?;
        }
    }
    let result = match action {
        ItemAction::Skip => Ok(Verdict::Done),
        ItemAction::Queue(wait) => Err(Halt::Wait(wait)),
        ItemAction::Fail(failure) => Err(Halt::Stall(failure)),
        ItemAction::Install => return Ok(reconciliation.in_time(Purpose::Install).await),
        ItemAction::Uninstall => return Ok(reconciliation.in_time(Purpose::Uninstall).await),
    };
    Ok(Applied { result, now: reconciliation.gathered.host.clock.now(), left: None })
}

impl ItemReconciliation {
    /// The work, and what becomes of it where the time of the item is up meanwhile.
    async fn in_time(&mut self, purpose: Purpose) -> Applied {
        let left = self.time_for_requests();
        self.gathered.clusters.call().end_in(left);
        let result = match purpose {
            Purpose::Install => in_time(left, self.install()).await,
            Purpose::Uninstall => in_time(left, self.uninstall()).await,
        };
        let now = self.gathered.host.clock.now();
        let result = match (result, self.gathered.job.limit) {
            (Err(halt), Some(limit)) if is_overdue(&halt, self.end(), now) && self.status.is_current() => {
                self.gathered.clusters.call().end_in(Some(limit));
                in_time(Some(limit), self.recover(timed_out(limit, &halt), purpose, now)).await
            }
            (result, _) => result,
        };
        Applied { result, now, left: self.left(now) }
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
        result
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
        if let Some(seal_error) = read.seal_error {
            self.tell("StateNotTrusted", seal_error.note());
        }
        Ok(read.state)
    }

    fn tell(&self, reason: &str, note: &str) {
        let GatheredItem { host, item, key, .. } = &self.gathered;
        tracing::warn!(item = %key, "{note}");
        event::warn(host, item.as_ref(), reason, note);
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
        loop {
            let Some(proposal) = self.proposal(purpose, state).await? else { return Ok(Verdict::Done) };
            match self.carry_out(&proposal, purpose, state).await? {
                Outcome::Finished => {
                    if purpose == Purpose::Install {
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
                Outcome::Call => {}
            }
        }
    }

    /// The proposal that is carried out next; `None` where the component has none.
    async fn proposal(&self, purpose: Purpose, state: &mut ItemState) -> Step<Option<Arc<Proposal>>> {
        let stored = if state.progress.is_some() { self.stored(state).await? } else { None };
        if stored.is_none() {
            // Somebody has deleted what was stored: the component is asked as at the begin of the job.
            state.progress = None;
        }
        match proposal_action(state.progress.as_ref(), stored.as_deref(), self.gathered.host.clock.now()) {
            ProposalAction::Resume => {
                stored.iter().try_for_each(|proposal| self.gathered.check(proposal))?;
                Ok(stored)
            }
            ProposalAction::CallIn(left) => Err(Halt::Wait(Wait::poll(left))),
            ProposalAction::Call(call) => self.gathered.ask(purpose, call, state).await,
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

fn has_exports(proposal: &Proposal) -> bool {
    matches!(&proposal.next, Next::Finish(completion) if !completion.exports.is_empty())
}

/// The component asked for the failure.
fn asked_for(problem: Problem, deployer: &dyn Deployer) -> Failure {
    let message = format!("plugin {}: {problem}", deployer.identity().name);
    let failure = Failure::new("Plan", "PluginFailedItem", message);
    if problem.code.to_string().is_empty() { failure } else { failure.with_code(problem.code) }
}
