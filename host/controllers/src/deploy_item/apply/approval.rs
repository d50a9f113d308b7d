//! Nothing is written that nobody has approved, where that is required (C-311 … C-316): what an item is about to write is tried out,
//! and held against its Plans, whenever the item goes on.

use orangery_api::plan::phase;
use orangery_apply::{DryRun, ItemState, Purpose, dry_run, dry_run_of_deletion, reached};
use orangery_core::{
    error::{Code, Failure},
    plan::approval::{ApprovalStep, ProposedWrites, approval_step},
    step::{Halt, Step, Until, Waiting},
};
use orangery_policy::BrokenRule;
use orangery_proposal::{Proposal, executor::ExecutionStep, inventory::Inventory};

use crate::{
    deploy_item::{
        gather::{GatheredItem, ItemReconciliation},
        planned::{ItemWrites, PlanVerdict},
    },
    plans::{JobPlans, PlanTurn},
};

impl ItemReconciliation {
    /// Whether what a proposal writes from here on is approved.
    ///
    /// # Errors
    /// It waits for an approval, its Plan is rejected, or it cannot be tried out.
    pub(super) async fn check_approval(
        &mut self,
        purpose: Purpose,
        proposal: &Proposal,
        state: &ItemState,
    ) -> Step<()> {
        let is_new = resumed(state).is_none();
        let has_rules = self.gathered.has_plan_rules() && is_new;
        // What a proposal comes to when it is gone on with, rules over the whole job have seen at its begin.
        let has_job_rules = self.gathered.has_job_rules() && is_new;
        if !self.gathered.requires_approval && !has_rules && !has_job_rules {
            return Ok(());
        }
        let known = self.known_plans().await?;
        let mut run = dry_run(&self.gathered.job(purpose, &|| true), proposal, state).await?;
        if let Some(step) = resumed(state).filter(|_| run.former.is_empty()) {
            // What an approved proposal has come to already, it may come to again, as the release of a chart. In another cluster it begins anew.
            let reached = reached(proposal, step);
            run.effects.retain(|effect| !reached.contains(&effect.located));
        }
        if has_rules {
            self.check_rules(&run, state).await?;
        }
        let Some(known) = known else { return Ok(()) };
        let writes = self.gathered.item_writes(purpose, run, state).await?;
        self.approve(known, writes).await
    }

    /// The Plans of the item in the job, where nothing is written without one. They are read before anything is tried out: what counts is how everything
    /// is after somebody has approved it.
    async fn known_plans(&self) -> Step<Option<JobPlans>> {
        if !self.gathered.has_plans() {
            return Ok(None);
        }
        self.gathered.read_job().await?;
        self.gathered.plans().known().await.map(Some)
    }

    /// Whether the deletion of what the item has deployed is approved.
    ///
    /// # Errors
    /// As [`check_approval`](Self::check_approval).
    pub(super) async fn check_approval_of_deletion(&mut self, state: &ItemState) -> Step<()> {
        let Some(known) = self.known_plans().await? else { return Ok(()) };
        let next = self.gathered.tried_deletion(state).await?;
        self.approve(known, ItemWrites::of(next)).await
    }

    /// Rules over what is written are held against the deletion of what the item has deployed, before anything of it begins (C-318).
    ///
    /// # Errors
    /// A rule does not hold, or the deletion cannot be tried out.
    pub(super) async fn check_rules_of_deletion(&self, state: &ItemState) -> Step<()> {
        if !self.gathered.has_plan_rules() {
            return Ok(());
        }
        let run = dry_run_of_deletion(&self.gathered.job(Purpose::Uninstall, &|| true), state).await?;
        self.check_rules(&run, state).await
    }

    /// Rules over what is written are held against each proposal before the first write of it (C-318).
    async fn check_rules(&self, run: &DryRun, state: &ItemState) -> Step<()> {
        self.refuse_broken(self.gathered.broken_plan_rules(run, state).await)
    }

    /// An item fails by rules that deny, and tells of those that warn.
    pub(super) fn refuse_broken(&self, broken: Vec<BrokenRule>) -> Step<()> {
        let (denies, warns): (Vec<_>, Vec<_>) = broken.into_iter().partition(|rule| rule.denies);
        if !warns.is_empty() {
            let told: Vec<String> = warns.into_iter().map(|rule| rule.message).collect();
            self.tell("PlanWarning", &told.join("; "));
        }
        if denies.is_empty() {
            return Ok(());
        }
        let told: Vec<String> = denies.into_iter().map(|rule| rule.message).collect();
        let message = format!(
            "nothing is written: {}; correct the item, or have an administrator correct the rule",
            told.join("; ")
        );
        Err(Halt::Stall(Failure::new("CheckPlan", "RuleBroken", message).with_code(Code::PolicyViolation)))
    }

    /// Whether the deletion of what lies in all former clusters is approved.
    ///
    /// # Errors
    /// As [`check_approval`](Self::check_approval).
    pub(super) async fn check_approval_in_former(&mut self, state: &ItemState) -> Step<()> {
        if state.former.is_empty() {
            return Ok(());
        }
        let Some(known) = self.known_plans().await? else { return Ok(()) };
        let next = self.gathered.tried(DryRun::nothing(), state);
        self.approve(known, ItemWrites::of(next)).await
    }

    /// Whether the deletion of what lies in a former cluster is approved, without asking for that.
    pub(super) async fn is_approved_in_former(&self, uid: &str, left: &Inventory) -> Step<bool> {
        if !self.gathered.requires_approval {
            return Ok(true);
        }
        let next = self.gathered.former_writes(uid, left);
        let proposed = ProposedWrites { origin: self.gathered.origin(), whole: next.clone(), next };
        let (known, _) = self.gathered.plans().known().await?;
        Ok(matches!(approval_step(&proposed, &known), ApprovalStep::GoOn(_)))
    }

    async fn approve(&mut self, known: JobPlans, writes: ItemWrites) -> Step<()> {
        let gathered = &self.gathered;
        let objects = writes.job_objects();
        let verdict = gathered.hold_against(known, writes, PlanTurn::Now).await?;
        // Nobody is asked about what rules deny.
        Box::pin(self.check_job_rules(objects)).await?;
        match verdict {
            PlanVerdict::GoOn(None) => Ok(()),
            PlanVerdict::GoOn(Some(plan)) => {
                gathered.plans().tell(&plan, phase::APPLYING, ("Approved", "it is being carried out")).await;
                Ok(())
            }
            PlanVerdict::WaitFor(plan) => Err(waiting(&plan)),
            PlanVerdict::Reject { plan, why } => {
                gathered.plans().tell(&plan, phase::REJECTED, ("Rejected", "its item fails")).await;
                let message = format!("Plan {plan} was rejected{why}; nothing of it is written");
                Err(Halt::Stall(Failure::new("Approve", "Rejected", message).with_code(Code::PolicyViolation)))
            }
        }
    }
}

/// Where a proposal stands that is gone on with; `None` where it is a new one.
fn resumed(state: &ItemState) -> Option<&ExecutionStep> {
    let step = state.progress.as_ref().map(|progress| &progress.step);
    step.filter(|step| !matches!(step, ExecutionStep::Calling { .. } | ExecutionStep::Recovering(_)))
}

/// Where a job has ended, its Plans say so.
pub(in crate::deploy_item) async fn end_plans(gathered: &GatheredItem, has_ended: bool, awaited_approval: bool) {
    if has_ended && (gathered.has_plans() || awaited_approval) {
        gathered.plans().end().await;
    }
}

fn waiting(plan: &str) -> Halt {
    Waiting::beside("Plan", plan, Until::Approved).because("orangery approve shows it").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_313_a_proposal_is_gone_on_with_where_it_stands_and_a_new_one_is_looked_at_as_a_whole() {
        let state = |step: Option<serde_json::Value>| {
            let progress = step.map(|step| {
                let progress = json!({"job": "j", "at": step, "since": "2026-01-01T00:00:00Z"});
                serde_json::from_value(progress).unwrap()
            });
            ItemState { progress, ..ItemState::default() }
        };
        let is_resumed = |step| resumed(&state(step)).is_some();
        assert!(!is_resumed(None), "nothing was carried out");
        assert!(!is_resumed(Some(json!({"calling": {}}))), "the component is called");
        let failed = json!({"stage": "s", "problem": {"code": "ERR_TIMEOUT", "message": "m"}});
        assert!(!is_resumed(Some(json!({"recovering": failed}))), "it goes back from a failure");
        for step in
            [json!({"stage": {"stage": 0, "step": "writing"}}), json!("pruning"), json!("tidying"), json!("deleting")]
        {
            assert!(is_resumed(Some(step.clone())), "{step}");
        }
    }

    #[test]
    fn c_316_an_item_awaits_an_approval_only_where_it_waits_for_a_plan() {
        let Halt::Wait(plan) = waiting("p") else { panic!("it waits") };
        assert!(plan.awaits_approval());
        assert_eq!(plan.to_string(), "waiting for Plan p (orangery approve shows it) to be approved");
        let other = Halt::wait("Target", "t", Until::Exists);
        let awaits = |halt: &Halt| matches!(halt, Halt::Wait(wait) if wait.awaits_approval());
        assert!(!awaits(&other));
        assert!(awaits(&other.join(Halt::Wait(plan))), "one of several");
    }
}
