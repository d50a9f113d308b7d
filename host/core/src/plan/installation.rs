//! What an Installation does next: waiting for predecessors, successors, children and orphans (INS-21, INS-27 … INS-35,
//! INS-61 … INS-69, C-13, C-15).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    dag::DagError,
    error::{Code, Failure, joined},
    job::JobIds,
    listing,
    name::{JobId, Kind},
    phase::Phase,
    step::{Halt, Step, Until, Verdict, Wait, Waiting},
};

/// How a child, a sibling or an orphan stands, whatever its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It never had a phase.
    New,
    /// In a phase that is not final.
    Working,
    /// `Succeeded`
    Succeeded,
    /// `Failed`
    Failed,
    /// `DeleteFailed`
    DeleteFailed,
}

impl ChildState {
    /// From a phase.
    pub fn of<P: Phase>(phase: Option<P>) -> Self {
        match phase {
            None => ChildState::New,
            Some(phase) if phase == P::FAILED => ChildState::Failed,
            Some(phase) if phase == P::DELETE_FAILED => ChildState::DeleteFailed,
            Some(phase) if phase.is_final() => ChildState::Succeeded,
            Some(_) => ChildState::Working,
        }
    }
}

/// An object that this Installation waits for.
#[derive(Clone, Debug)]
pub struct RelatedObject {
    /// `Installation` or `Execution`.
    pub kind: Kind,
    /// The object's name.
    pub name: String,
    /// Its job ids.
    pub ids: JobIds,
    /// How it stands.
    pub standing: ChildState,
    /// Its last error.
    pub failure: Option<Failure>,
    /// Whether a request to reconcile it is pending.
    pub requested: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl RelatedObject {
    /// Whether it may have got a job without its being known here (C-136).
    pub fn may_have_got(&self, job: &JobId) -> bool {
        self.ids.may_have_got(job, self.deleting)
    }

    fn waiting(&self, until: Until) -> Waiting {
        Waiting::beside(&self.kind, &self.name, until)
    }

    /// What went wrong below, in the words of the leaf that failed.
    fn cause(&self) -> String {
        let kind = self.kind.to_lowercase();
        match &self.failure {
            Some(failure) => format!("{kind} {} failed: {}", self.name, failure.message),
            None => format!("{kind} {} failed", self.name),
        }
    }
}

/// Waits for related objects, where there are some.
fn wait_for(related: &[&RelatedObject], until: Until) -> Step<()> {
    Wait::each(related.iter().map(|related_object| related_object.waiting(until)))
        .map_or(Ok(()), |wait| Err(Halt::Wait(wait)))
}

/// The failure of a phase by those that failed, and by what is said besides.
fn failed(operation: &str, reason: &str, related: &[&RelatedObject], besides: &[String]) -> Failure {
    let codes: BTreeSet<Code> = related
        .iter()
        .filter_map(|related_object| related_object.failure.as_ref())
        .flat_map(|failure| failure.codes.iter().cloned())
        // It is about the object that has it, and says nothing of those above.
        .filter(|code| *code != Code::ForInfoOnly)
        .collect();
    let causes = related.iter().map(|related_object| related_object.cause());
    let causes: Vec<String> = causes.chain(besides.iter().cloned()).collect();
    Failure { operation: operation.to_owned(), reason: reason.to_owned(), message: joined(&causes), codes }
}

/// `Init`: may it begin, as far as its predecessors are concerned? (INS-21, `docs/wire.md` §5.7)
///
/// A root waits until a predecessor has neither a running job nor a pending request, a child until its sibling has
/// finished this very job. A predecessor that has not succeeded then fails the Installation; one that is being deleted fails
/// it at once, as it waits itself until nobody imports from it any more (INS-61).
pub fn predecessors(related: &[RelatedObject], root: bool, job: &JobId) -> Step<()> {
    let leaving: Vec<&str> = related
        .iter()
        .filter(|related_object| related_object.deleting)
        .map(|related_object| related_object.name.as_str())
        .collect();
    if !leaving.is_empty() {
        return Err(Halt::Stall(Failure::new(
            "CheckPredecessors",
            "PredecessorDeleted",
            format!("an installation whose exports are imported here is being deleted: {}", listing::joined(leaving)),
        )));
    }
    let unfinished: Vec<&RelatedObject> = related
        .iter()
        .filter(|related_object| {
            if root {
                related_object.requested || related_object.ids.running().is_some()
            } else {
                !related_object.ids.has_finished(job)
            }
        })
        .collect();
    wait_for(&unfinished, Until::Finished)?;
    let bad: Vec<&RelatedObject> =
        related.iter().filter(|related_object| related_object.standing != ChildState::Succeeded).collect();
    if bad.is_empty() {
        return Ok(());
    }
    let causes: Vec<String> = bad
        .iter()
        .map(|related_object| match related_object.standing {
            ChildState::New => format!("installation {} was never reconciled; reconcile it first", related_object.name),
            ChildState::Working | ChildState::Succeeded | ChildState::Failed | ChildState::DeleteFailed => {
                related_object.cause()
            }
        })
        .collect();
    let message = format!("an installation whose exports are imported here has not succeeded: {}", joined(&causes));
    let failure = Failure::new("CheckPredecessors", "PredecessorNotSucceeded", message);
    Err(Halt::Stall(failure.with_code(Code::ForInfoOnly)))
}

/// What a root under the policy `OnChange` may start a job by: the hashes of its last job, and those of now.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'a> {
    /// Of its imports ([`content_hash`](orangery_blueprint::import::content_hash)), when its last job began or read them.
    pub marked: &'a str,
    /// The same of now; `None` where they are not all there or not known, and then nothing starts.
    pub imports: Option<&'a str>,
    /// Of the answers of gate expressions that were out of date when its last job began, one for each object that has such.
    pub marked_answers: &'a [String],
    /// The same of now; empty where all are as they were in the last job.
    pub answers: &'a [String],
}

impl Changes<'_> {
    /// Whether there is anything new.
    pub fn tell(&self) -> bool {
        let answered = self.answers.iter().any(|hash| !self.marked_answers.contains(hash));
        self.imports.is_some_and(|now| now != self.marked || answered)
    }
}

/// Under the policy `OnChange`: does a root whose last job has ended start one because of what it imports, or what conditions
/// look at (C-05, ORC-33)?
///
/// As long as `Init` would not go past the predecessors nothing starts, nor once one of them is about to ask for a job
/// (`asked`): their success asks for one anyway (INS-43).
pub fn changes_start(changes: Changes<'_>, related: &[RelatedObject], asked: bool) -> bool {
    changes.tell() && !asked && predecessors(related, true, JobId::EMPTY).is_ok()
}

/// `Init`: roots that import each other's exports in a circle would wait for each other for ever (C-17).
pub fn no_circle(circle: Option<DagError>) -> Step<()> {
    let Some(circle) = circle else { return Ok(()) };
    let message = format!("installations {circle}");
    Err(Halt::Stall(Failure::new("CheckPredecessors", "CyclicImports", message).with_code(Code::CyclicDependencies)))
}

/// `CleanupOrphaned`: which orphans to trigger, or how the phase ends (INS-27 … INS-30).
pub fn orphans(orphans: &[RelatedObject], job: &JobId) -> (Vec<String>, Step<Verdict>) {
    // One that ended this job before it was to go gets it once more.
    let ended_before = |related_object: &&RelatedObject| {
        related_object.ids.has_finished(job) && related_object.standing != ChildState::DeleteFailed
    };
    let untriggered =
        |related_object: &&RelatedObject| related_object.ids.job.as_ref() != Some(job) || ended_before(related_object);
    let trigger: Vec<String> =
        orphans.iter().filter(untriggered).map(|related_object| related_object.name.clone()).collect();
    let gone_or_failed = gone(orphans, job, "CleanupOrphaned", "OrphansNotDeleted");
    (trigger, gone_or_failed)
}

/// Whether all are gone, some are at work, or all that are left have failed to delete in this job.
fn gone(related: &[RelatedObject], job: &JobId, operation: &str, reason: &str) -> Step<Verdict> {
    let (left, working): (Vec<&RelatedObject>, Vec<&RelatedObject>) = related.iter().partition(|related_object| {
        related_object.ids.has_finished(job) && related_object.standing == ChildState::DeleteFailed
    });
    wait_for(&working, Until::Gone)?;
    Ok(if left.is_empty() { Verdict::Done } else { Verdict::Failed(failed(operation, reason, &left, &[])) })
}

/// `Progressing`: have all children finished, and well? (INS-33 … INS-35, C-13) `missing` are those that the job made, in
/// words, and that are there no more: without them nothing can have ended well.
pub fn progressing(children: &[RelatedObject], missing: &[String], job: &JobId) -> Step<Verdict> {
    let unfinished: Vec<&RelatedObject> =
        children.iter().filter(|related_object| !related_object.ids.has_finished(job)).collect();
    wait_for(&unfinished, Until::Finished)?;
    let bad: Vec<&RelatedObject> =
        children.iter().filter(|related_object| related_object.standing != ChildState::Succeeded).collect();
    if bad.is_empty() && missing.is_empty() {
        return Ok(Verdict::Done);
    }
    let lost = missing.iter().map(|child| {
        format!("{child} is missing: its object was deleted during the job; reconcile the root installation again")
    });
    let lost: Vec<String> = lost.collect();
    Ok(Verdict::Failed(failed("Progressing", "SubobjectsFailed", &bad, &lost)))
}

/// `InitDelete`: may it go on, as far as its successors are concerned? (INS-61, C-15)
pub fn successors(related: &[RelatedObject], job: &JobId) -> Step<()> {
    let bad: Vec<&RelatedObject> = related
        .iter()
        .filter(|related_object| {
            related_object.ids.has_finished(job) && related_object.standing == ChildState::DeleteFailed
        })
        .collect();
    if bad.is_empty() {
        return wait_for(&related.iter().collect::<Vec<_>>(), Until::Gone);
    }
    let failure = failed("CheckSuccessors", "SuccessorNotDeleted", &bad, &[]);
    Err(Halt::Stall(Failure {
        message: format!("an installation that imports exports of this one could not be deleted: {}", failure.message),
        ..failure
    }))
}

/// `Deleting`: are all children gone? (INS-66 … INS-69)
pub fn deleting(children: &[RelatedObject], job: &JobId) -> Step<Verdict> {
    gone(children, job, "Deleting", "UndeletedSubobjects")
}

/// A sub-installation object, as far as comparing it with the templates goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// The object's name.
    pub object: String,
    /// The template it was made from; `None` where the annotation is missing.
    pub template: Option<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What `Init` does with the sub-installations (INS-24, INS-25, `docs/wire.md` §5.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subinstallations {
    /// Templates without an object.
    pub create: Vec<String>,
    /// Template name to object name.
    pub update: BTreeMap<String, String>,
    /// Objects whose template is gone.
    pub orphan: Vec<String>,
}

/// Compares the templates with the objects.
pub fn subinstallations<'a>(
    templates: impl IntoIterator<Item = &'a str>,
    existing: &[Existing],
) -> Step<Subinstallations> {
    let mut plan = Subinstallations::default();
    let mut by_template: BTreeMap<&str, &Existing> = BTreeMap::new();
    for object in existing {
        match &object.template {
            Some(template) => drop(by_template.entry(template).or_insert(object)),
            None => {
                return Err(Halt::Stall(Failure::new(
                    "ReconcileSubinstallations",
                    "DanglingSubinstallation",
                    format!(
                        "sub-installation {} lacks the annotation landscaper.gardener.cloud/subinstallation-name, so its template \
                         is unknown; delete it or restore the annotation",
                        object.object
                    ),
                )));
            }
        }
    }
    for template in templates {
        match by_template.remove(template) {
            Some(object) if object.deleting => return Err(Halt::wait("Installation", &object.object, Until::Gone)),
            Some(object) => drop(plan.update.insert(template.to_owned(), object.object.clone())),
            None => plan.create.push(template.to_owned()),
        }
    }
    let kept: BTreeSet<&String> = plan.update.values().collect();
    plan.orphan =
        existing.iter().map(|object| &object.object).filter(|object| !kept.contains(object)).cloned().collect();
    Ok(plan)
}

/// `Completing`: did spec or imports change during the job? (INS-36 … INS-38)
pub fn unchanged(generation: (i64, i64), imports_hash: (&str, &str)) -> Step<()> {
    let (at_init, now) = generation;
    let change = if at_init != now {
        Some(("CheckObservedGeneration", "its spec"))
    } else if imports_hash.0 != imports_hash.1 {
        Some(("CheckImportsHash", "an import"))
    } else {
        None
    };
    match change {
        None => Ok(()),
        Some((operation, what)) => {
            let message = format!(
                "{what} changed while the job was running; reconcile the root installation to take the change into account"
            );
            let failure = Failure::new(operation, "ChangedDuringJob", message);
            Err(Halt::Stall(failure.with_code(Code::ForInfoOnly)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &JobId = &JobId::from_static("new");

    /// `a=succeeded/new`, `b=working/old`, `c=new/`: standing and finished job; all are asked for job `new`, but those in `old!`.
    fn related(text: &str) -> Vec<RelatedObject> {
        text.split_whitespace()
            .map(|word| {
                let (name, rest) = word.split_once('=').unwrap();
                let (standing, finished) = rest.split_once('/').unwrap();
                let standing = match standing {
                    "new" => ChildState::New,
                    "working" => ChildState::Working,
                    "succeeded" => ChildState::Succeeded,
                    "failed" => ChildState::Failed,
                    "delete-failed" => ChildState::DeleteFailed,
                    other => panic!("{other}"),
                };
                let job = if finished.ends_with('!') { finished.trim_end_matches('!') } else { "new" };
                RelatedObject {
                    kind: "Installation".into(),
                    name: name.to_owned(),
                    ids: JobIds::new(job, finished.trim_end_matches('!')),
                    failure: matches!(standing, ChildState::Failed | ChildState::DeleteFailed)
                        .then(|| Failure::new("O", "R", "boom").with_code(Code::Timeout)),
                    standing,
                    requested: name.starts_with("requested"),
                    deleting: name.starts_with("leaving"),
                }
            })
            .collect()
    }

    fn show<T>(step: Step<T>) -> String
    where
        T: std::fmt::Debug,
    {
        match step {
            Ok(value) => format!("{value:?}"),
            Err(Halt::Wait(wait)) => wait.to_string(),
            Err(Halt::Retry(failure)) => format!("retry: {failure}"),
            Err(Halt::Stall(failure)) => format!("stall {}: {failure}", failure.reason),
        }
    }

    #[test]
    fn an_object_of_any_kind_stands_as_its_phase_says() {
        use crate::phase::{execution::Execution, installation::Installation};
        use ChildState::{DeleteFailed, Failed, New, Succeeded, Working};
        let installations = Installation::ALL.iter().map(|phase| ChildState::of(Some(*phase))).collect::<Vec<_>>();
        assert_eq!(
            installations,
            [Working, Working, Working, Working, Working, Succeeded, Failed, Working, Working, Working, DeleteFailed]
        );
        let executions = Execution::ALL.iter().map(|phase| ChildState::of(Some(*phase))).collect::<Vec<_>>();
        assert_eq!(executions, [Working, Working, Working, Succeeded, Failed, Working, Working, DeleteFailed]);
        assert_eq!(ChildState::of::<Installation>(None), New);
    }

    #[test]
    fn ins_21_a_child_waits_for_its_siblings_of_this_job() {
        assert_eq!(show(predecessors(&related("a=succeeded/old"), false, NEW)), "waiting for Installation a to finish");
        assert_eq!(
            show(predecessors(&related("a=succeeded/old!"), false, NEW)),
            "waiting for Installation a to finish"
        );
        assert_eq!(show(predecessors(&related("a=succeeded/new"), false, NEW)), "()");
    }

    #[test]
    fn ins_21_a_root_waits_for_running_and_requested_predecessors_only() {
        assert_eq!(show(predecessors(&related("a=succeeded/old!"), true, &"mine".into())), "()");
        assert_eq!(
            show(predecessors(&related("a=working/old"), true, &"mine".into())),
            "waiting for Installation a to finish"
        );
        assert_eq!(
            show(predecessors(&related("requested=succeeded/old!"), true, &"mine".into())),
            "waiting for Installation requested to finish"
        );
    }

    #[test]
    fn orc_08_each_wait_names_the_objects_beside_the_installation_and_what_must_become_of_them() {
        let halted = |step: Step<Verdict>| match step {
            Err(Halt::Wait(wait)) => wait,
            other => panic!("{other:?}"),
        };
        let done = |step: Step<()>| step.map(|()| Verdict::Done);
        let both = || related("a=working/old b=working/old");
        let each = |until| Wait::each(["a", "b"].map(|name| Waiting::beside("Installation", name, until))).unwrap();
        for finished in [done(predecessors(&both(), true, &"mine".into())), progressing(&both(), &[], NEW)] {
            assert_eq!(halted(finished), each(Until::Finished));
        }
        for gone in [orphans(&both(), NEW).1, done(successors(&both(), NEW)), deleting(&both(), NEW)] {
            assert_eq!(halted(gone), each(Until::Gone));
        }
        let going = Existing { object: "a".to_owned(), template: Some("t".to_owned()), deleting: true };
        let remade = subinstallations(["t"], &[going]).map(|_| Verdict::Done);
        assert_eq!(halted(remade), Wait::on("Installation", "a", Until::Gone));
    }

    #[test]
    fn ins_21_a_predecessor_that_has_not_succeeded_is_fatal() {
        assert_eq!(
            show(predecessors(&related("a=failed/new b=new/!"), true, &"mine".into())),
            "stall PredecessorNotSucceeded: an installation whose exports are imported here has not succeeded: \
             installation a failed: boom; installation b was never reconciled; reconcile it first"
        );
    }

    #[test]
    fn c_05_orc_33_imports_start_a_job_when_they_bind_to_something_else() {
        let start =
            |marked, imports| changes_start(Changes { marked, imports, marked_answers: &[], answers: &[] }, &[], false);
        assert!(start("one", Some("two")));
        assert!(start("", Some("one")), "what was missing is there");
        assert!(!start("one", Some("one")));
        assert!(!start("one", None), "something is missing");
        assert!(!start("", None));
    }

    #[test]
    fn orc_33_wf_26_other_answers_of_conditions_start_one_job_each() {
        let start = |imports, marked: &[&str], answers: &[&str]| {
            let [marked_answers, answers] =
                [marked, answers].map(|list| list.iter().map(|hash| (*hash).to_owned()).collect::<Vec<_>>());
            let (marked_answers, answers) = (marked_answers.as_slice(), answers.as_slice());
            changes_start(Changes { marked: "one", imports, marked_answers, answers }, &[], false)
        };
        assert!(start(Some("one"), &[], &["a"]));
        assert!(start(Some("one"), &["a"], &["b"]));
        assert!(start(Some("one"), &["a"], &["a", "b"]));
        assert!(!start(Some("one"), &["a"], &["a"]), "the job that these started has failed");
        assert!(!start(Some("one"), &["a", "b"], &["b"]), "not all have looked yet");
        assert!(!start(Some("one"), &["a"], &[]), "all is as in the last job");
        assert!(!start(None, &[], &["a"]), "an import is missing");
    }

    #[test]
    fn orc_33_imports_start_nothing_before_those_that_are_imported_from_have_succeeded() {
        let changes = Changes { marked: "one", imports: Some("two"), marked_answers: &[], answers: &[] };
        let start = |before: &str, asked| changes_start(changes, &related(before), asked);
        assert!(start("a=succeeded/old! b=succeeded/new", false));
        assert!(!start("a=succeeded/old!", true), "its success asks for a job");
        for held in ["a=working/old", "a=failed/new", "a=new/!", "requested=succeeded/old!", "leaving=succeeded/new"] {
            assert!(!start(held, false), "{held}");
        }
    }

    #[test]
    fn c_17_a_circle_ends_the_job_and_names_its_members() {
        assert_eq!(no_circle(None), Ok(()));
        let members = ["a", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(
            show(no_circle(Some(DagError::Cycle { members }))),
            "stall CyclicImports: installations a -> b -> a depend on each other in a circle; remove one of these dependencies"
        );
    }

    #[test]
    fn ins_21_ins_61_a_predecessor_that_is_to_go_is_not_waited_for() {
        for root in [true, false] {
            assert_eq!(
                show(predecessors(&related("leaving=working/old a=working/old"), root, &"mine".into())),
                "stall PredecessorDeleted: an installation whose exports are imported here is being deleted: leaving"
            );
        }
    }

    #[test]
    fn ins_27_orphans_of_older_jobs_are_triggered_and_waited_for() {
        let (trigger, outcome) = orphans(&related("a=succeeded/old! b=working/old"), NEW);
        assert_eq!(
            (trigger, show(outcome)),
            (vec!["a".to_owned()], "waiting for Installation a to be gone, Installation b to be gone".to_owned())
        );
    }

    #[test]
    fn ins_27_an_orphan_that_ended_this_job_before_it_was_to_go_is_triggered() {
        let (trigger, outcome) = orphans(&related("a=succeeded/new b=working/old c=delete-failed/new"), NEW);
        let waits = "waiting for Installation a to be gone, Installation b to be gone".to_owned();
        assert_eq!((trigger, show(outcome)), (vec!["a".to_owned()], waits));
    }

    #[test]
    fn ins_28_no_orphans_lead_on_and_ins_29_failed_ones_end_the_job() {
        assert_eq!(orphans(&[], NEW), (vec![], Ok(Verdict::Done)));
        let (trigger, outcome) = orphans(&related("a=delete-failed/new"), NEW);
        assert_eq!(
            (trigger.len(), show(outcome)),
            (
                0,
                show(Ok(Verdict::Failed(
                    Failure::new("CleanupOrphaned", "OrphansNotDeleted", "installation a failed: boom")
                        .with_code(Code::Timeout)
                )))
            )
        );
    }

    #[test]
    fn ins_30_an_orphan_still_working_is_waited_for_beside_a_failed_one() {
        let (_, outcome) = orphans(&related("a=delete-failed/new b=working/old"), NEW);
        assert_eq!(show(outcome), "waiting for Installation b to be gone");
    }

    #[test]
    fn ins_34_unfinished_children_are_waited_for_even_beside_failed_ones() {
        assert_eq!(
            show(progressing(&related("a=failed/new b=working/old"), &[], NEW)),
            "waiting for Installation b to finish"
        );
    }

    #[test]
    fn ins_35_all_children_well_lead_on() {
        assert_eq!(progressing(&related("a=succeeded/new b=succeeded/new"), &[], NEW), Ok(Verdict::Done));
        assert_eq!(progressing(&[], &[], NEW), Ok(Verdict::Done));
    }

    #[test]
    fn c_13_a_failed_child_fails_the_parent_naming_each() {
        assert_eq!(
            progressing(&related("a=failed/new b=succeeded/new c=failed/new"), &[], NEW),
            Ok(Verdict::Failed(
                Failure::new(
                    "Progressing",
                    "SubobjectsFailed",
                    "installation a failed: boom; installation c failed: boom"
                )
                .with_code(Code::Timeout)
            ))
        );
    }

    #[test]
    fn c_13_a_child_that_is_there_no_more_fails_the_parent_beside_those_that_failed() {
        let missing = ["execution x".to_owned()];
        let lost =
            "execution x is missing: its object was deleted during the job; reconcile the root installation again";
        let text = |children: &str| match progressing(&related(children), &missing, NEW) {
            Ok(Verdict::Failed(failure)) => (failure.reason, failure.message),
            other => (String::new(), show(other)),
        };
        assert_eq!(text("a=succeeded/new"), ("SubobjectsFailed".to_owned(), lost.to_owned()));
        assert_eq!(text("a=failed/new").1, format!("installation a failed: boom; {lost}"));
        assert_eq!(text("a=working/old").1, "waiting for Installation a to finish");
    }

    #[test]
    fn ins_61_successors_hold_up_the_deletion() {
        assert_eq!(successors(&[], NEW), Ok(()));
        assert_eq!(show(successors(&related("a=succeeded/old!"), NEW)), "waiting for Installation a to be gone");
    }

    #[test]
    fn c_15_a_successor_that_failed_to_delete_in_this_job_fails_it() {
        assert_eq!(
            show(successors(&related("a=delete-failed/new b=working/old"), NEW)),
            "stall SuccessorNotDeleted: an installation that imports exports of this one could not be deleted: installation a failed: boom"
        );
    }

    #[test]
    fn c_15_a_successor_that_only_finished_this_job_or_failed_in_an_older_one_is_waited_for() {
        for successor in ["a=succeeded/new", "a=delete-failed/old!", "a=delete-failed/old"] {
            assert_eq!(show(successors(&related(successor), NEW)), "waiting for Installation a to be gone");
        }
    }

    #[test]
    fn ins_69_failed_and_unfinished_children_together_are_still_deleting() {
        assert_eq!(
            show(deleting(&related("a=delete-failed/new b=working/old"), NEW)),
            "waiting for Installation b to be gone"
        );
        assert!(matches!(deleting(&related("a=delete-failed/new"), NEW), Ok(Verdict::Failed(_))));
        assert_eq!(deleting(&[], NEW), Ok(Verdict::Done));
    }

    fn existing(object: &str, template: Option<&str>, deleting: bool) -> Existing {
        Existing { object: object.to_owned(), template: template.map(str::to_owned), deleting }
    }

    #[test]
    fn ins_25_a_subinstallation_without_template_is_an_orphan() {
        let objects =
            [existing("a-1", Some("a"), false), existing("z-1", Some("z"), false), existing("a-2", Some("a"), true)];
        assert_eq!(
            subinstallations(["a", "b"], &objects),
            Ok(Subinstallations {
                create: vec!["b".to_owned()],
                update: BTreeMap::from([("a".to_owned(), "a-1".to_owned())]),
                orphan: vec!["z-1".to_owned(), "a-2".to_owned()],
            })
        );
    }

    #[test]
    fn a_template_whose_old_object_is_still_being_deleted_waits_for_it() {
        assert_eq!(
            show(subinstallations(["a"], &[existing("a-1", Some("a"), true)])),
            "waiting for Installation a-1 to be gone"
        );
    }

    #[test]
    fn a_subinstallation_without_its_annotation_is_told() {
        assert!(
            show(subinstallations([], &[existing("x", None, false)])).starts_with("stall DanglingSubinstallation: ")
        );
    }

    #[test]
    fn ins_37_and_ins_38_changes_during_the_job_end_it() {
        assert_eq!(unchanged((1, 1), ("h", "h")), Ok(()));
        assert!(show(unchanged((1, 2), ("h", "h"))).starts_with("stall ChangedDuringJob: its spec changed"));
        assert!(show(unchanged((1, 1), ("h", "i"))).starts_with("stall ChangedDuringJob: an import changed"));
    }
}
