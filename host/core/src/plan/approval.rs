//! Whether what a deploy item is about to write is approved (C-311 … C-314).

use std::collections::BTreeSet;

/// How many objects a message names.
const NAMED: usize = 5;

/// One thing that is done to an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteDigest {
    /// Which object, in words.
    pub object: String,
    /// What is done.
    pub digest: String,
}

/// What a Plan is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOrigin {
    /// The digest of the component.
    pub component: String,
    /// The digest of the spec of the item.
    pub item: String,
}

/// What an item is about to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedWrites {
    /// What it is made from.
    pub origin: PlanOrigin,
    /// What is written next.
    pub next: BTreeSet<WriteDigest>,
    /// The same, and what is known of what follows: what a Plan that is made now has.
    pub whole: BTreeSet<WriteDigest>,
}

/// What somebody said of a Plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// Nothing yet.
    Open,
    /// It is to be carried out.
    Approved,
    /// It is not.
    Rejected {
        /// By whom; empty where that is not said.
        by: String,
        /// Why; empty where that is not said.
        reason: String,
    },
}

/// A Plan of the item in this job, which this operator has made as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPlan {
    /// Its name.
    pub name: String,
    /// Whether its item has gone on with it.
    pub is_applied: bool,
    /// Whether it is known not to count any more.
    pub is_stale: bool,
    /// Whether its job has ended.
    pub is_ended: bool,
    /// What it was made from.
    pub origin: PlanOrigin,
    /// What it says that is written.
    pub writes: BTreeSet<WriteDigest>,
    /// What somebody said of it who may.
    pub decision: ApprovalDecision,
    /// Whether somebody said something of it who may not, and was not told yet (C-367).
    pub is_misdecided: bool,
    /// Whether it was made for rules over the whole job, and nobody was asked (C-362).
    pub needs_no_approval: bool,
}

/// A Plan that does not count any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StalePlan {
    /// Its name.
    pub name: String,
    /// Why, in words.
    pub why: String,
}

/// What becomes of an item that is about to write something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalStep {
    /// It goes on; with the Plan that is carried out from now on, where it has not been before.
    GoOn(Option<String>),
    /// It waits until somebody has said something of this Plan.
    WaitFor(String),
    /// Its job ends: this Plan is rejected.
    Reject {
        /// Its name.
        plan: String,
        /// By whom and why, as a sentence goes on; empty where that is not said.
        why: String,
    },
    /// A new Plan is made, and these do not count any more.
    Make(Vec<StalePlan>),
}

/// What becomes of an item that is about to write something, where nothing may be written that nobody has approved.
pub fn approval_step(proposed: &ProposedWrites, known: &[KnownPlan]) -> ApprovalStep {
    if proposed.next.is_empty() {
        return ApprovalStep::GoOn(None);
    }
    let counting = || known.iter().filter(|plan| !plan.is_stale && plan.origin == proposed.origin);
    let covering = || counting().filter(|plan| proposed.next.is_subset(&plan.writes));
    if let Some(plan) = covering().find(|plan| plan.decision == ApprovalDecision::Approved) {
        return ApprovalStep::GoOn((!plan.is_applied).then(|| plan.name.clone()));
    }
    for plan in covering() {
        if let ApprovalDecision::Rejected { by, reason } = &plan.decision {
            let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            return ApprovalStep::Reject { plan: plan.name.clone(), why: format!("{by}{reason}") };
        }
    }
    if let Some(plan) = counting().find(|plan| plan.decision == ApprovalDecision::Open && plan.writes == proposed.whole)
    {
        return ApprovalStep::WaitFor(plan.name.clone());
    }
    let stale = known.iter().filter(|plan| !plan.is_stale && !plan.is_applied);
    ApprovalStep::Make(stale.map(|plan| StalePlan { name: plan.name.clone(), why: differs(proposed, plan) }).collect())
}

/// What of a Plan is otherwise by now.
fn differs(proposed: &ProposedWrites, plan: &KnownPlan) -> String {
    if plan.origin.component != proposed.origin.component {
        return "the component is another one".to_owned();
    }
    if plan.origin.item != proposed.origin.item {
        return "the spec of the deploy item has changed".to_owned();
    }
    let changed = plan.writes.symmetric_difference(&proposed.whole).map(|write| write.object.as_str());
    let objects: BTreeSet<&str> = changed.collect();
    let more = objects.len().saturating_sub(NAMED);
    let named: Vec<&str> = objects.into_iter().take(NAMED).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("what would become of {}{more} is not the same any more", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(of: &[&str]) -> BTreeSet<WriteDigest> {
        let write = |text: &&str| WriteDigest { object: text[..1].to_owned(), digest: (*text).to_owned() };
        of.iter().map(write).collect()
    }

    fn origin(component: &str, item: &str) -> PlanOrigin {
        PlanOrigin { component: component.to_owned(), item: item.to_owned() }
    }

    fn proposed(of: &[&str]) -> ProposedWrites {
        ProposedWrites { origin: origin("c", "i"), next: writes(of), whole: writes(of) }
    }

    fn plan(name: &str, of: &[&str], decision: ApprovalDecision) -> KnownPlan {
        KnownPlan {
            name: name.to_owned(),
            is_applied: false,
            is_stale: false,
            is_ended: false,
            origin: origin("c", "i"),
            writes: writes(of),
            decision,
            is_misdecided: false,
            needs_no_approval: false,
        }
    }

    fn stale(name: &str, why: &str) -> StalePlan {
        StalePlan { name: name.to_owned(), why: why.to_owned() }
    }

    #[test]
    fn c_311_an_item_waits_for_a_plan_and_goes_on_with_an_approved_one_alone() {
        assert_eq!(approval_step(&proposed(&[]), &[]), ApprovalStep::GoOn(None), "nothing is written");
        assert_eq!(approval_step(&proposed(&["a1"]), &[]), ApprovalStep::Make(Vec::new()));
        let open = plan("p", &["a1", "b1"], ApprovalDecision::Open);
        assert_eq!(
            approval_step(&proposed(&["a1", "b1"]), std::slice::from_ref(&open)),
            ApprovalStep::WaitFor("p".to_owned())
        );
        let approved = KnownPlan { decision: ApprovalDecision::Approved, ..open };
        let go_on = |of: &[&str], plan: &KnownPlan| approval_step(&proposed(of), std::slice::from_ref(plan));
        assert_eq!(go_on(&["a1", "b1"], &approved), ApprovalStep::GoOn(Some("p".to_owned())));
        let applied = KnownPlan { is_applied: true, ..approved };
        assert_eq!(go_on(&["b1"], &applied), ApprovalStep::GoOn(None), "what is left of it");
        assert_eq!(go_on(&["b1", "c1"], &applied), ApprovalStep::Make(Vec::new()), "more than it has");
        let no = KnownPlan { is_stale: true, ..plan("p", &["a1"], ApprovalDecision::Approved) };
        assert_eq!(go_on(&["a1"], &no), ApprovalStep::Make(Vec::new()));
    }

    #[test]
    fn c_313_a_plan_is_stale_where_anything_is_otherwise_than_it_says() {
        let of_plan = |proposed: &ProposedWrites, plan: KnownPlan| approval_step(proposed, &[plan]);
        let approved = || plan("p", &["a1", "b1"], ApprovalDecision::Approved);
        let other = "what would become of b is not the same any more";
        assert_eq!(of_plan(&proposed(&["a1", "b2"]), approved()), ApprovalStep::Make(vec![stale("p", other)]));
        let component = ProposedWrites { origin: origin("d", "i"), ..proposed(&["a1"]) };
        let other = "the component is another one";
        assert_eq!(of_plan(&component, approved()), ApprovalStep::Make(vec![stale("p", other)]));
        let item = ProposedWrites { origin: origin("c", "j"), ..proposed(&["a1"]) };
        let other = "the spec of the deploy item has changed";
        assert_eq!(of_plan(&item, approved()), ApprovalStep::Make(vec![stale("p", other)]));
        let fewer = plan("p", &["a1", "b1", "c1", "d1", "e1", "f1", "g1"], ApprovalDecision::Open);
        let other = "what would become of b, c, d, e, f and 1 more is not the same any more";
        assert_eq!(
            of_plan(&proposed(&["a1"]), fewer),
            ApprovalStep::Make(vec![stale("p", other)]),
            "nobody looked at less"
        );
    }

    #[test]
    fn c_314_a_rejected_plan_ends_the_job_as_long_as_it_counts() {
        let rejected =
            |by: &str, reason: &str| ApprovalDecision::Rejected { by: by.to_owned(), reason: reason.to_owned() };
        let of = |decision, of: &[&str]| approval_step(&proposed(of), &[plan("p", &["a1"], decision)]);
        let reject = |why: &str| ApprovalStep::Reject { plan: "p".to_owned(), why: why.to_owned() };
        assert_eq!(of(rejected("anna", "too early"), &["a1"]), reject(" by anna: too early"));
        assert_eq!(of(rejected("", ""), &["a1"]), reject(""));
        assert!(matches!(of(rejected("", ""), &["a2"]), ApprovalStep::Make(_)));
    }

    #[test]
    fn c_315_what_is_written_next_is_held_against_a_plan_and_a_new_one_has_what_follows_too() {
        let first = ProposedWrites { next: writes(&["a1"]), ..proposed(&["a1", "z1"]) };
        let open = plan("p", &["a1", "z1"], ApprovalDecision::Open);
        assert_eq!(approval_step(&first, std::slice::from_ref(&open)), ApprovalStep::WaitFor("p".to_owned()));
        let approved = KnownPlan { decision: ApprovalDecision::Approved, is_applied: true, ..open };
        let then = proposed(&["z1"]);
        assert_eq!(approval_step(&then, &[approved]), ApprovalStep::GoOn(None));
    }
}
