//! Nothing is written that nobody has approved, where that is required (C-311 … C-316): what an item is about to write is tried out,
//! and held against its Plans, whenever the item goes on.

use std::collections::BTreeSet;

use orangery_api::plan::{PlanContent, PlanContentError, PlanInputs, PlanItem, PlannedWrite, PlannedWrites, phase};
use orangery_apply::{DryRun, Effect, ItemState, Purpose, dry_run, dry_run_of_deletion, reached};
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    plan::approval::{ApprovalStep, KnownPlan, PlanOrigin, ProposedWrites, StalePlan, WriteDigest, approval_step},
    step::{Halt, Step, Until, Waiting},
};
use orangery_proposal::{Action, ObjectKey, Proposal, counted, executor::ExecutionStep, inventory::Inventory};
use serde_json::json;

use crate::{
    deploy_item::gather::{GatheredItem, ItemReconciliation},
    plans::{ItemPlans, digest},
};

/// What is tried out for a Plan.
#[derive(Default)]
struct PlannedRun {
    effects: Vec<Effect>,
    notes: Vec<String>,
    /// What lies in former clusters, and goes.
    former: BTreeSet<WriteDigest>,
}

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
        let has_rules = self.gathered.has_plan_rules() && resumed(state).is_none();
        if !self.gathered.requires_approval && !has_rules {
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
            self.check_rules(&run)?;
        }
        let Some(known) = known else { return Ok(()) };
        let next = self.tried(run, state);
        let follows = match purpose {
            Purpose::Install => PlannedRun::default(),
            Purpose::Uninstall => self.tried_deletion(state).await?,
        };
        self.approve(known, next, follows).await
    }

    /// The Plans of the job, where nothing is written without one. They are read before anything is tried out: what counts is how everything
    /// is after somebody has approved it.
    async fn known_plans(&self) -> Step<Option<(Vec<KnownPlan>, u32)>> {
        if self.gathered.requires_approval { self.plans().known().await.map(Some) } else { Ok(None) }
    }

    /// Whether the deletion of what the item has deployed is approved.
    ///
    /// # Errors
    /// As [`check_approval`](Self::check_approval).
    pub(super) async fn check_approval_of_deletion(&mut self, state: &ItemState) -> Step<()> {
        let Some(known) = self.known_plans().await? else { return Ok(()) };
        let next = self.tried_deletion(state).await?;
        self.approve(known, next, PlannedRun::default()).await
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
        self.check_rules(&run)
    }

    /// Rules over what is written are held against each proposal before the first write of it (C-318).
    fn check_rules(&self, run: &DryRun) -> Step<()> {
        let broken = self.gathered.broken_plan_rules(&run.effects);
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
        let next = self.tried(DryRun::nothing(), state);
        self.approve(known, next, PlannedRun::default()).await
    }

    /// Whether the deletion of what lies in a former cluster is approved, without asking for that.
    pub(super) async fn is_approved_in_former(&self, uid: &str, left: &Inventory) -> Step<bool> {
        if !self.gathered.requires_approval {
            return Ok(true);
        }
        let next = self.former_writes(uid, left);
        let proposed = ProposedWrites { origin: self.origin(), whole: next.clone(), next };
        let (known, _) = self.plans().known().await?;
        Ok(matches!(approval_step(&proposed, &known), ApprovalStep::GoOn(_)))
    }

    async fn tried_deletion(&self, state: &ItemState) -> Step<PlannedRun> {
        let run = dry_run_of_deletion(&self.gathered.job(Purpose::Uninstall, &|| true), state).await?;
        Ok(self.tried(run, state))
    }

    /// `known` is the state that was tried from: what has moved to a former cluster in the dry run counts as well.
    fn tried(&self, run: DryRun, known: &ItemState) -> PlannedRun {
        let DryRun { effects, mut notes, former, .. } = run;
        let mut writes = BTreeSet::new();
        for (uid, left) in known.former.iter().chain(&former) {
            // All of them: what is not shown is not approved.
            let objects: Vec<String> = left.0.keys().map(|located| located.key.to_string()).collect();
            let objects = objects.join(", ");
            notes.push(format!("in the former cluster whose kube-system has the uid {uid} are deleted: {objects}"));
            writes.extend(self.former_writes(uid, left));
        }
        PlannedRun { effects, notes, former: writes }
    }

    fn former_writes(&self, uid: &str, left: &Inventory) -> BTreeSet<WriteDigest> {
        let objects = left
            .0
            .iter()
            .map(|(located, entry)| self.write_digest(&located.key, &json!(["former", uid, located, entry.uid])));
        objects.collect()
    }

    fn write_digest(&self, key: &ObjectKey, write: &serde_json::Value) -> WriteDigest {
        let digest = digest(&self.gathered.host, &self.gathered.item, write);
        WriteDigest { object: key.to_string(), digest }
    }

    fn plans(&self) -> ItemPlans<'_> {
        ItemPlans { host: &self.gathered.host, item: &self.gathered.item, job: &self.gathered.job.id }
    }

    fn origin(&self) -> PlanOrigin {
        let spec = json!(self.gathered.item.spec).to_string();
        let component = self.gathered.deployer.identity().digest.clone();
        PlanOrigin { component, item: sha256(spec.as_bytes()) }
    }

    fn writes(&self, run: &PlannedRun) -> BTreeSet<WriteDigest> {
        let of = |effect: &Effect| {
            let writes = effect.writes();
            writes.iter().map(|write| self.write_digest(&effect.located.key, write)).collect::<Vec<_>>()
        };
        run.effects.iter().flat_map(of).chain(run.former.iter().cloned()).collect()
    }

    async fn approve(
        &mut self,
        (known, number): (Vec<KnownPlan>, u32),
        next: PlannedRun,
        follows: PlannedRun,
    ) -> Step<()> {
        let next_writes = self.writes(&next);
        let whole = next_writes.iter().cloned().chain(self.writes(&follows)).collect();
        let proposed = ProposedWrites { origin: self.origin(), next: next_writes, whole };
        match approval_step(&proposed, &known) {
            ApprovalStep::GoOn(None) => Ok(()),
            ApprovalStep::GoOn(Some(plan)) => {
                self.plans().tell(&plan, phase::APPLYING, ("Approved", "it is being carried out")).await;
                Ok(())
            }
            ApprovalStep::WaitFor(plan) => Err(waiting(&plan)),
            ApprovalStep::Reject { plan, why } => {
                self.plans().tell(&plan, phase::REJECTED, ("Rejected", "its item fails")).await;
                let message = format!("Plan {plan} was rejected{why}; nothing of it is written");
                Err(Halt::Stall(Failure::new("Approve", "Rejected", message).with_code(Code::PolicyViolation)))
            }
            ApprovalStep::Make(stale) => {
                let spec = self.content(&proposed, next, follows, number)?;
                let plan = self.plans().make(number, spec).await?;
                for StalePlan { name, why } in stale {
                    let why = format!("{why}; Plan {plan} has taken its place");
                    self.plans().tell(&name, phase::STALE, ("Changed", &why)).await;
                }
                Err(waiting(&plan))
            }
        }
    }

    /// A Plan of what is proposed.
    fn content(
        &self,
        proposed: &ProposedWrites,
        next: PlannedRun,
        follows: PlannedRun,
        number: u32,
    ) -> Step<PlanContent> {
        let gathered = &self.gathered;
        let masker = gathered.host.secrets.masker(&gathered.key.namespace);
        let notes: BTreeSet<String> = next.notes.into_iter().chain(follows.notes).collect();
        let write = |write: &WriteDigest| PlannedWrite { object: write.object.clone(), digest: write.digest.clone() };
        let effects: Vec<Effect> =
            next.effects.into_iter().chain(follows.effects).filter(|effect| effect.action.writes()).collect();
        let place = |effect: &Effect| {
            let identity = effect.cluster.as_ref()?;
            let place = identity.uid().or(identity.address())?;
            Some((effect.located.on.to_string(), place.to_owned()))
        };
        let planned = PlannedWrites {
            clusters: effects.iter().filter_map(place).collect(),
            objects: effects.into_iter().map(|effect| effect.display(&masker)).collect(),
            notes: notes.iter().map(|note| masker.mask(note).into_owned()).collect(),
            writes: proposed.whole.iter().map(write).collect(),
        };
        let stored = planned.stored().map_err(|error: PlanContentError| {
            let message = format!(
                "what DeployItem {} is about to write cannot be approved: the Plan of it would be too large ({error}); split the item",
                gathered.key
            );
            Halt::Stall(Failure::new("Approve", "PlanTooLarge", message).with_code(Code::LimitExceeded))
        })?;
        let identity = gathered.deployer.identity();
        Ok(PlanContent {
            item: PlanItem { name: gathered.key.name.to_string(), uid: gathered.owner.uid.clone() },
            installation: gathered.root(),
            job_id: gathered.job.id.clone(),
            number,
            plugin: identity.to_string(),
            made_from: PlanInputs { component: proposed.origin.component.clone(), item: proposed.origin.item.clone() },
            summary: summary(planned.objects.iter().map(|object| object.action)),
            plan_hash: stored.plan_hash,
            content: stored.content,
            seal: String::new(),
        })
    }
}

/// Where a proposal stands that is gone on with; `None` where it is a new one.
fn resumed(state: &ItemState) -> Option<&ExecutionStep> {
    let step = state.progress.as_ref().map(|progress| &progress.step);
    step.filter(|step| !matches!(step, ExecutionStep::Calling { .. } | ExecutionStep::Recovering(_)))
}

/// Where a job has ended, its Plans say so.
pub(in crate::deploy_item) async fn end_plans(gathered: &GatheredItem, has_ended: bool, awaited_approval: bool) {
    if has_ended && (gathered.requires_approval || awaited_approval) {
        ItemPlans { host: &gathered.host, item: &gathered.item, job: &gathered.job.id }.end().await;
    }
}

fn waiting(plan: &str) -> Halt {
    Waiting::beside("Plan", plan, Until::Approved).because("orangery approve shows it").into()
}

/// How many objects become what, in words.
fn summary(actions: impl Iterator<Item = Action>) -> String {
    counted(actions).unwrap_or_else(|| "what is left in a former cluster".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_311_a_plan_says_in_words_what_becomes_of_how_many_objects() {
        let of = |actions: &[Action]| summary(actions.iter().copied());
        assert_eq!(of(&[Action::Delete, Action::Create, Action::Create]), "2 to create, 1 to delete");
        assert_eq!(of(&[]), "what is left in a former cluster");
    }

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
