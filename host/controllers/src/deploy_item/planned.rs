//! What an item is about to write, as it was tried out, and the Plan of it (C-311 … C-315).

use std::collections::BTreeSet;

use orangery_api::{
    annotation::CHANGED_BY,
    marks::Marks as _,
    plan::{PlanContent, PlanContentError, PlanInputs, PlanItem, PlannedWrite, PlannedWrites, phase},
};
use orangery_apply::{DryRun, Effect, ItemState, Purpose, dry_run_of_deletion};
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    plan::approval::{
        ApprovalDecision, ApprovalStep, KnownPlan, PlanOrigin, ProposedWrites, StalePlan, WriteDigest, approval_step,
    },
    step::{Halt, Step},
};
use orangery_proposal::{Action, ObjectKey, counted, inventory::Inventory};
use serde_json::json;

use super::gather::{GatheredItem, former_cluster};
use crate::{
    job_writes::JobObject,
    plans::{ItemPlans, JobPlans, PlanTurn, digest},
};

/// The most bytes of the name of whoever has made a change (C-367).
const LONGEST_AUTHOR: usize = 1024;

/// What is tried out for a Plan.
#[derive(Default)]
pub(super) struct PlannedRun {
    pub(super) effects: Vec<Effect>,
    pub(super) notes: Vec<String>,
    /// What lies in former clusters, and goes.
    pub(super) former: BTreeSet<WriteDigest>,
    /// The same for rules over the whole job.
    pub(super) former_objects: BTreeSet<JobObject>,
}

/// The same with what follows it in the job.
#[derive(Default)]
pub(super) struct ItemWrites {
    pub(super) next: PlannedRun,
    pub(super) follows: PlannedRun,
}

impl ItemWrites {
    /// Nothing follows.
    pub(super) fn of(next: PlannedRun) -> Self {
        Self { next, follows: PlannedRun::default() }
    }

    /// What rules over the whole job are over (C-362).
    pub(super) fn job_objects(&self) -> BTreeSet<JobObject> {
        let runs = [&self.next, &self.follows];
        let object = |effect: &Effect| JobObject {
            action: effect.action,
            cluster: effect.located.on.to_string(),
            key: effect.located.key.clone(),
            ephemeral: effect.ephemeral,
        };
        let written =
            runs.iter().flat_map(|run| run.effects.iter().filter(|effect| effect.action.writes()).map(object));
        written.chain(runs.iter().flat_map(|run| run.former_objects.iter().cloned())).collect()
    }
}

/// What becomes of writes that were held against the Plans of the job.
pub(super) enum PlanVerdict {
    /// They may be done; with the Plan that is carried out from now on.
    GoOn(Option<String>),
    /// They wait for what somebody says of this Plan.
    WaitFor(String),
    /// They are not done: this Plan is rejected.
    Reject {
        plan: String,
        /// By whom and why, as a sentence goes on.
        why: String,
    },
}

impl GatheredItem {
    pub(super) async fn tried_deletion(&self, state: &ItemState) -> Step<PlannedRun> {
        let run = dry_run_of_deletion(&self.job(Purpose::Uninstall, &|| true), state).await?;
        Ok(self.tried(run, state))
    }

    /// What a run writes, and where the item goes what is deleted after that.
    pub(super) async fn item_writes(&self, purpose: Purpose, run: DryRun, state: &ItemState) -> Step<ItemWrites> {
        let next = self.tried(run, state);
        match purpose {
            Purpose::Install => Ok(ItemWrites::of(next)),
            Purpose::Uninstall => Ok(ItemWrites { next, follows: self.tried_deletion(state).await? }),
        }
    }

    /// `known` is the state that was tried from: what has moved to a former cluster in the dry run counts as well.
    pub(super) fn tried(&self, run: DryRun, known: &ItemState) -> PlannedRun {
        let DryRun { effects, mut notes, former, .. } = run;
        let (mut writes, mut former_objects) = (BTreeSet::new(), BTreeSet::new());
        for (uid, left) in known.former.iter().chain(&former) {
            // All of them: what is not shown is not approved.
            let objects: Vec<String> = left.0.keys().map(|located| located.key.to_string()).collect();
            let objects = objects.join(", ");
            let cluster = former_cluster(uid);
            notes.push(format!("in {cluster} are deleted: {objects}"));
            writes.extend(self.former_writes(uid, left));
            former_objects.extend(left.0.keys().map(|located| JobObject {
                action: Action::Delete,
                cluster: cluster.clone(),
                key: located.key.clone(),
                ephemeral: false,
            }));
        }
        PlannedRun { effects, notes, former: writes, former_objects }
    }

    pub(super) fn former_writes(&self, uid: &str, left: &Inventory) -> BTreeSet<WriteDigest> {
        let objects = left
            .0
            .iter()
            .map(|(located, entry)| self.write_digest(&located.key, &json!(["former", uid, located, entry.uid])));
        objects.collect()
    }

    fn write_digest(&self, key: &ObjectKey, write: &serde_json::Value) -> WriteDigest {
        let digest = digest(&self.host, &self.item, write);
        WriteDigest { object: key.to_string(), digest }
    }

    pub(super) fn plans(&self) -> ItemPlans<'_> {
        ItemPlans { host: &self.host, item: &self.item, job: &self.job.id }
    }

    pub(super) fn origin(&self) -> PlanOrigin {
        let spec = json!(self.item.spec).to_string();
        let component = self.deployer.identity().digest.clone();
        PlanOrigin { component, item: sha256(spec.as_bytes()) }
    }

    /// What of a run has to be approved.
    fn writes(&self, run: &PlannedRun) -> BTreeSet<WriteDigest> {
        let of = |effect: &Effect| {
            let writes = effect.writes();
            writes.iter().map(|write| self.write_digest(&effect.located.key, write)).collect::<Vec<_>>()
        };
        self.to_be_approved(&run.effects).into_iter().flat_map(of).chain(run.former.iter().cloned()).collect()
    }

    /// Holds writes against the Plans of the job. Where none of them has these, a Plan is made, and those that do not count any more
    /// say so.
    ///
    /// # Errors
    /// A Plan cannot be made.
    pub(super) async fn hold_against(
        &self,
        (known, number): JobPlans,
        writes: ItemWrites,
        turn: PlanTurn,
    ) -> Step<PlanVerdict> {
        let known = as_they_count(known, self.requires_approval);
        let next = self.writes(&writes.next);
        let whole = next.iter().cloned().chain(self.writes(&writes.follows)).collect();
        let proposed = ProposedWrites { origin: self.origin(), next, whole };
        match approval_step(&proposed, &known) {
            ApprovalStep::GoOn(plan) => Ok(PlanVerdict::GoOn(plan)),
            ApprovalStep::WaitFor(plan) => {
                if known.iter().any(|known| known.name == plan && known.is_misdecided) {
                    self.plans().tell_misdecided(&plan).await;
                }
                Ok(PlanVerdict::WaitFor(plan))
            }
            ApprovalStep::Reject { plan, why } => Ok(PlanVerdict::Reject { plan, why }),
            ApprovalStep::Make(stale) => {
                let spec = self.content(&proposed, writes, number)?;
                let plan = self.plans().make(number, spec, turn).await?;
                for StalePlan { name, why } in stale {
                    let why = format!("{why}; Plan {plan} has taken its place");
                    self.plans().tell(&name, phase::STALE, ("Changed", &why)).await;
                }
                Ok(if self.requires_approval { PlanVerdict::WaitFor(plan) } else { PlanVerdict::GoOn(Some(plan)) })
            }
        }
    }

    /// By whom the change was made that the job carries out, and whether somebody else has to approve it.
    fn author(&self) -> Step<(String, bool)> {
        let root = self.root_installation();
        let requires_other_approver = self.requires_approval && self.requires_other_approver();
        let author = named_author(root.as_deref().and_then(|root| root.annotation(CHANGED_BY)));
        if author.is_some() || !requires_other_approver {
            return Ok((author.unwrap_or_default().to_owned(), requires_other_approver));
        }
        let message = format!(
            "a policy has somebody else approve what DeployItem {} writes than has made the change, and the Installation {} does not say \
             who that was: set its annotation {CHANGED_BY} to the name of whoever changes it, of at most {LONGEST_AUTHOR} letters, with the \
             change",
            self.key,
            self.root()
        );
        Err(Halt::Stall(Failure::new("Approve", "AuthorUnknown", message).with_code(Code::PolicyViolation)))
    }

    /// A Plan of what is proposed.
    fn content(&self, proposed: &ProposedWrites, writes: ItemWrites, number: u32) -> Step<PlanContent> {
        let ItemWrites { next, follows } = writes;
        let (author, requires_other_approver) = self.author()?;
        let masker = self.host.secrets.masker(&self.key.namespace);
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
                self.key
            );
            Halt::Stall(Failure::new("Approve", "PlanTooLarge", message).with_code(Code::LimitExceeded))
        })?;
        let identity = self.deployer.identity();
        Ok(PlanContent {
            item: PlanItem { name: self.key.name.to_string(), uid: self.owner.uid.clone() },
            installation: self.root(),
            job_id: self.job.id.clone(),
            number,
            author,
            requires_other_approver,
            needs_no_approval: !self.requires_approval,
            plugin: identity.to_string(),
            made_from: PlanInputs { component: proposed.origin.component.clone(), item: proposed.origin.item.clone() },
            summary: summary(planned.objects.iter().map(|object| object.action)),
            plan_hash: stored.plan_hash,
            content: stored.content,
            seal: String::new(),
        })
    }
}

/// What Plans count for: where nobody has to approve anything they are there for rules over the whole job, and go on unless somebody
/// has rejected them (C-362).
fn as_they_count(known: Vec<KnownPlan>, requires_approval: bool) -> Vec<KnownPlan> {
    let of = |plan: KnownPlan| match plan.decision {
        ApprovalDecision::Open if !requires_approval => KnownPlan { decision: ApprovalDecision::Approved, ..plan },
        // Nobody was asked to look at it.
        _ if requires_approval && plan.needs_no_approval => KnownPlan { is_stale: true, ..plan },
        _ => plan,
    };
    known.into_iter().map(of).collect()
}

/// The name of whoever has made a change; one that is too long is none.
fn named_author(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty() && name.len() <= LONGEST_AUTHOR)
}

/// How many objects become what, in words.
fn summary(actions: impl Iterator<Item = Action>) -> String {
    counted(actions).unwrap_or_else(|| "what is left in a former cluster".to_owned())
}

#[cfg(test)]
mod tests {
    use orangery_proposal::{ClusterRef, inventory::LocatedObject};

    use super::*;

    #[test]
    fn c_311_a_plan_says_in_words_what_becomes_of_how_many_objects() {
        let of = |actions: &[Action]| summary(actions.iter().copied());
        assert_eq!(of(&[Action::Delete, Action::Create, Action::Create]), "2 to create, 1 to delete");
        assert_eq!(of(&[]), "what is left in a former cluster");
    }

    #[test]
    fn c_367_limits_author_of_a_change_has_a_name_or_nobody_may_approve() {
        assert_eq!(named_author(Some("anna")), Some("anna"));
        assert_eq!(named_author(Some(&"a".repeat(1024))).map(str::len), Some(1024));
        for nobody in [None, Some(String::new()), Some("a".repeat(1025))] {
            assert_eq!(named_author(nobody.as_deref()), None);
        }
    }

    fn known(decision: ApprovalDecision, needs_no_approval: bool) -> KnownPlan {
        KnownPlan {
            name: "p".to_owned(),
            is_applied: false,
            is_stale: false,
            is_ended: false,
            origin: PlanOrigin { component: "c".to_owned(), item: "i".to_owned() },
            writes: BTreeSet::new(),
            decision,
            is_misdecided: false,
            needs_no_approval,
        }
    }

    #[test]
    fn c_362_plans_that_are_there_for_rules_go_on_unless_somebody_has_rejected_them() {
        let of = |plan: KnownPlan, requires_approval| {
            let [plan] = as_they_count(vec![plan], requires_approval).try_into().unwrap();
            let KnownPlan { decision, is_stale, .. } = plan;
            (decision, is_stale)
        };
        let rejected = || ApprovalDecision::Rejected { by: "anna".to_owned(), reason: String::new() };
        assert_eq!(of(known(ApprovalDecision::Open, true), false), (ApprovalDecision::Approved, false));
        assert_eq!(of(known(rejected(), true), false), (rejected(), false));
        assert_eq!(of(known(ApprovalDecision::Open, false), true), (ApprovalDecision::Open, false));
        // Where an approval is required since, nobody was asked to look at it.
        assert_eq!(of(known(ApprovalDecision::Open, true), true), (ApprovalDecision::Open, true));
        assert_eq!(of(known(ApprovalDecision::Approved, true), true), (ApprovalDecision::Approved, true));
        assert_eq!(of(known(ApprovalDecision::Approved, false), true), (ApprovalDecision::Approved, false));
    }

    #[test]
    fn c_362_rules_over_jobs_have_what_is_written_what_follows_and_what_lies_in_former_clusters() {
        let key = |name: &str| ObjectKey {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some("n".into()),
            name: name.into(),
        };
        let effect = |action: Action, name: &str| Effect {
            located: LocatedObject { on: ClusterRef::Target, key: key(name) },
            cluster: None,
            action,
            before: None,
            after: None,
            stage: "one".to_owned(),
            ephemeral: name == "hook",
        };
        let object = |action, cluster: &str, name: &str, ephemeral| JobObject {
            action,
            cluster: cluster.to_owned(),
            key: key(name),
            ephemeral,
        };
        let former = object(Action::Delete, "the former cluster whose kube-system has the uid u", "left", false);
        let next = PlannedRun {
            effects: vec![
                effect(Action::Create, "hook"),
                effect(Action::None, "same"),
                effect(Action::Foreign, "theirs"),
            ],
            former_objects: [former.clone()].into(),
            ..PlannedRun::default()
        };
        let follows = PlannedRun { effects: vec![effect(Action::Delete, "old")], ..PlannedRun::default() };
        let expected = [
            object(Action::Create, "the target cluster", "hook", true),
            object(Action::Delete, "the target cluster", "old", false),
            former,
        ];
        assert_eq!(ItemWrites { next, follows }.job_objects(), expected.into());
        assert_eq!(ItemWrites::of(PlannedRun::default()).job_objects(), BTreeSet::new());
    }
}
