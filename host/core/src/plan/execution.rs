//! What an Execution does next: its items as a workflow, the six classes and the two policies (EXE-16 … EXE-30,
//! EXE-45 … EXE-51, C-01). The sub-installations of an Installation are such items too, where gate expressions have a say in
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    dag::{Dag, Direction},
    error::{Code, Failure, joined},
    job::JobIds,
    listing,
    name::{JobId, ObjectName},
    phase::item::Item as ItemPhase,
    step::{Halt, Until, Verdict, Wait, Waiting},
    workflow::{
        Answers, Class, DesiredAction, Ending, Facts, GateKind, Workflow, WorkflowDecision, WorkflowItem,
        WorkflowItemState, WorkflowPolicy,
    },
};

/// What stands behind an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemKind {
    /// A DeployItem of an Execution.
    #[default]
    DeployItem,
    /// An Installation of an Installation.
    Subinstallation,
}

impl ItemKind {
    /// The kind of its object.
    pub fn object(self) -> &'static str {
        match self {
            Self::DeployItem => "DeployItem",
            Self::Subinstallation => "Installation",
        }
    }

    /// As messages name it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::DeployItem => "deploy item",
            Self::Subinstallation => "sub-installation",
        }
    }

    fn failed(self) -> &'static str {
        match self {
            Self::DeployItem => "DeployItemsFailed",
            Self::Subinstallation => "SubobjectsFailed",
        }
    }

    fn stuck(self) -> &'static str {
        match self {
            Self::DeployItem => "DeployItemsStuck",
            Self::Subinstallation => "SubobjectsStuck",
        }
    }
}

/// What is known of one deploy item of the spec.
#[derive(Clone, Debug)]
pub struct ItemState<'a> {
    /// What stands behind it; the same for all items of a workflow.
    pub kind: ItemKind,
    /// Its name in the spec.
    pub name: &'a str,
    /// The names it depends on.
    pub depends_on: Vec<&'a str>,
    /// The object; `None` where it does not exist.
    pub object: Option<ObjectState>,
    /// An object of it that is being deleted, in a job that reconciles.
    pub going: Option<ObjectState>,
    /// Whether what it deployed stays when it is deleted (WF-27).
    pub keep: bool,
    /// Whether its object is made when it starts and not before: gate expressions of its own, or of what it depends on, decide
    /// whether it is to be there.
    pub late: bool,
    /// What its gate expressions answer.
    pub answers: Answers,
    /// The gate expression that is not waited for any longer, and why ([`orangery_blueprint::gate::given_up`]).
    pub given_up: Option<(GateKind, Failure)>,
}

impl<'a> ItemState<'a> {
    /// An item without gate expressions, of which nothing stays when it is deleted.
    pub fn new(name: &'a str, depends_on: Vec<&'a str>, object: Option<ObjectState>) -> Self {
        Self {
            kind: ItemKind::default(),
            name,
            depends_on,
            object,
            going: None,
            keep: false,
            late: false,
            answers: Answers::default(),
            given_up: None,
        }
    }

    /// Whether its object works for this job now. One that the spec lost during the job counts as long as it does: nothing
    /// ends before it has (INS-08).
    pub fn is_running(&self, job: &JobId) -> bool {
        self.object.as_ref().is_some_and(|object| object.ids.running() == Some(job))
    }

    /// `goes`: whether a job that reconciles has to delete it.
    fn facts(&self, job: &JobId, direction: Direction, goes: bool) -> Facts {
        let state = match &self.given_up {
            Some((GateKind::Deleted, _)) => WorkflowItemState::DeleteFailed,
            Some((GateKind::Activate | GateKind::When | GateKind::Ready, _)) => WorkflowItemState::ReconcileFailed,
            None if goes => self.state(self.going.as_ref().or(self.object.as_ref()), job, Direction::Backward),
            None => self.state(self.object.as_ref(), job, direction),
        };
        Facts { state, answers: self.answers, keep: self.keep }
    }

    /// What became of it in this job.
    fn state(&self, object: Option<&ObjectState>, job: &JobId, direction: Direction) -> WorkflowItemState {
        let Some(object) = object else {
            return match direction {
                // It vanished in the middle of the job (C-30).
                Direction::Forward if !self.late => WorkflowItemState::ReconcileFailed,
                Direction::Forward | Direction::Backward => WorkflowItemState::Absent,
            };
        };
        match (direction, object.phase) {
            _ if object.ids.job.as_ref() != Some(job) => WorkflowItemState::Idle,
            (Direction::Forward, _) if !object.ids.has_finished(job) => WorkflowItemState::Reconciling,
            (Direction::Backward, _) if !object.ids.has_finished(job) => WorkflowItemState::Deleting,
            // One that was deployed in this very job before it was to go gets the job once more.
            (_, Some(ItemPhase::Succeeded)) => WorkflowItemState::Reconciled,
            (Direction::Forward, _) => WorkflowItemState::ReconcileFailed,
            (Direction::Backward, _) => WorkflowItemState::DeleteFailed,
        }
    }
}

/// What is known of a DeployItem object.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    /// Its name.
    pub object_name: ObjectName,
    /// Its job ids.
    pub ids: JobIds,
    /// Its phase.
    pub phase: Option<ItemPhase>,
    /// Its last error, for the message of whoever fails with it.
    pub failure: Option<Failure>,
}

/// What to do with the items now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionPlan {
    /// Names of the items to be triggered now, in the order of the spec.
    pub trigger: Vec<String>,
    /// Names of the items that a job which reconciles has to delete now: they are not wanted (WF-20, WF-21).
    pub delete: Vec<String>,
    /// What the phase concluded, or what it waits for.
    pub outcome: Result<Verdict, Halt>,
}

/// The first item of each name. Duplicate names are refused when the items are rendered.
fn unique<'i, 'a>(items: &'i [ItemState<'a>]) -> BTreeMap<&'a str, &'i ItemState<'a>> {
    let mut unique = BTreeMap::new();
    for item in items {
        unique.entry(item.name).or_insert(item);
    }
    unique
}

fn workflow(items: &[ItemState<'_>]) -> Workflow {
    let mut seen = BTreeSet::new();
    let first = items.iter().filter(|item| seen.insert(item.name));
    let dag = Dag::unchecked(first.map(|item| (item.name, item.depends_on.clone()))).unwrap_or_default();
    Workflow::from(&dag)
}

/// The classes of all items, in the order of the spec.
pub fn classify<'a>(
    items: &'a [ItemState<'a>],
    job: &JobId,
    direction: Direction,
    policy: WorkflowPolicy,
) -> Vec<(&'a str, Class)> {
    let (by_name, workflow) = (unique(items), workflow(items));
    let evaluation = evaluate(&workflow, &by_name, job, direction, policy);
    let classes = evaluation.items().iter().filter_map(|item| Some((by_name.get(item.name)?.name, item.class)));
    classes.collect()
}

fn evaluate<'w>(
    workflow: &'w Workflow,
    items: &BTreeMap<&str, &ItemState<'_>>,
    job: &JobId,
    direction: Direction,
    policy: WorkflowPolicy,
) -> WorkflowDecision<'w> {
    let going = match direction {
        Direction::Forward => unwanted(workflow, items, job),
        Direction::Backward => BTreeSet::new(),
    };
    let facts = |name: &str| match items.get(name) {
        None => Facts::of(WorkflowItemState::Absent),
        Some(item) => item.facts(job, direction, going.contains(name)),
    };
    workflow.evaluate(direction, policy, facts)
}

/// The names of the items that gate expressions make go in a job that reconciles, as far as is known.
fn unwanted<'w>(workflow: &'w Workflow, items: &BTreeMap<&str, &ItemState<'_>>, job: &JobId) -> BTreeSet<&'w str> {
    if !items.values().any(|item| item.late) {
        return BTreeSet::new();
    }
    let facts = |name: &str| match items.get(name) {
        None => Facts::of(WorkflowItemState::Absent),
        Some(item) => item.facts(job, Direction::Forward, false),
    };
    let evaluation = workflow.evaluate(Direction::Forward, WorkflowPolicy::default(), facts);
    evaluation.items().iter().filter(|item| item.desired == DesiredAction::Delete).map(|item| item.name).collect()
}

/// The names of the items that gate expressions make go in this job, as far as is known: objects of theirs that are being deleted
/// are no leftovers of an earlier job.
pub fn leaving(items: &[ItemState<'_>], job: &JobId) -> BTreeSet<String> {
    let (by_name, workflow) = (unique(items), workflow(items));
    unwanted(&workflow, &by_name, job).into_iter().map(str::to_owned).collect()
}

/// The gate expressions that are to be asked now: item by item, the one that alone holds it up.
pub fn asks<'a>(
    items: &'a [ItemState<'a>],
    job: &JobId,
    direction: Direction,
    policy: WorkflowPolicy,
) -> Vec<(&'a str, GateKind)> {
    let (by_name, workflow) = (unique(items), workflow(items));
    let evaluation = evaluate(&workflow, &by_name, job, direction, policy);
    let asks = evaluation.items().iter().filter_map(|item| Some((by_name.get(item.name)?.name, item.awaits?)));
    asks.collect()
}

/// `Progressing`: which items to trigger, or how the phase ends.
pub fn progressing(items: &[ItemState<'_>], job: &JobId, policy: WorkflowPolicy) -> ExecutionPlan {
    decide(items, job, Direction::Forward, policy)
}

/// `Deleting`: the same, backward (EXE-45 … EXE-51).
pub fn deleting(items: &[ItemState<'_>], job: &JobId, policy: WorkflowPolicy) -> ExecutionPlan {
    decide(items, job, Direction::Backward, policy)
}

fn decide(items: &[ItemState<'_>], job: &JobId, direction: Direction, policy: WorkflowPolicy) -> ExecutionPlan {
    let (by_name, workflow) = (unique(items), workflow(items));
    let evaluation = evaluate(&workflow, &by_name, job, direction, policy);
    let outcome = match (evaluation.ending(), awaited(&evaluation, &by_name)) {
        (None, Some(wait)) => Err(Halt::Wait(wait)),
        // A look that goes on waits for something (ORC-08).
        (None, None) | (Some(Ending::Done), _) => Ok(Verdict::Done),
        (Some(Ending::Failed), _) => Ok(Verdict::Failed(failures(&evaluation, &by_name, direction))),
        (Some(Ending::Stuck), _) => Ok(Verdict::Failed(stuck(items, &evaluation, direction))),
    };
    let mut plan = ExecutionPlan { trigger: Vec::new(), delete: Vec::new(), outcome };
    for item in evaluation.starting() {
        let goes = item.desired == DesiredAction::Delete && direction == Direction::Forward;
        let list = if goes { &mut plan.delete } else { &mut plan.trigger };
        list.push(item.name.to_owned());
    }
    plan
}

fn operation(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "Progressing",
        Direction::Backward => "Deleting",
    }
}

fn kind_of(items: &BTreeMap<&str, &ItemState<'_>>) -> ItemKind {
    items.values().next().map(|item| item.kind).unwrap_or_default()
}

/// What is under way and what starts now; `None` where nothing is waited for.
fn awaited(evaluation: &WorkflowDecision<'_>, items: &BTreeMap<&str, &ItemState<'_>>) -> Option<Wait> {
    let starts: BTreeSet<&str> = evaluation.starts().into_iter().collect();
    let is_awaited =
        |item: &&WorkflowItem<'_>| item.class == Class::Running || item.awaits.is_some() || starts.contains(item.name);
    let waits = evaluation.items().iter().filter(is_awaited).map(|item| {
        if let Some(gate) = item.awaits {
            return Waiting::nowhere("GateExpression", format!("{}/{gate}", item.name), Until::Met);
        }
        let object = items.get(item.name).and_then(|state| state.object.as_ref().or(state.going.as_ref()));
        let name = object.map_or_else(|| item.name.to_owned(), |object| object.object_name.to_string());
        let until = if item.desired == DesiredAction::Delete { Until::Gone } else { Until::Finished };
        Waiting::beside(kind_of(items).object(), name, until)
    });
    Wait::each(waits)
}

/// Names every failed item with its own cause, and what they hold up; the codes of all of them (WF-44), and the original's for
/// information where they have none.
fn failures(
    evaluation: &WorkflowDecision<'_>,
    items: &BTreeMap<&str, &ItemState<'_>>,
    direction: Direction,
) -> Failure {
    let kind = kind_of(items);
    let noun = kind.noun();
    let mut codes = BTreeSet::new();
    let mut causes: Vec<String> = Vec::new();
    for name in evaluation.in_class(Class::Failed) {
        let item = items.get(name);
        if let Some((_, failure)) = item.and_then(|item| item.given_up.as_ref()) {
            codes.extend(failure.codes.iter().cloned());
            causes.push(failure.message.clone());
            continue;
        }
        let object = item.and_then(|item| item.object.as_ref().or(item.going.as_ref()));
        let failure = object.and_then(|object| object.failure.as_ref());
        codes.extend(failure.iter().flat_map(|failure| failure.codes.iter().cloned()));
        causes.push(match (object, failure) {
            (None, _) => format!(
                "{noun} {name} is missing: its object was deleted during the job; reconcile the root installation again"
            ),
            (Some(_), Some(failure)) => format!("{noun} {name} failed: {}", failure.message),
            (Some(object), None) => format!("{noun} {name} failed; see {} {}", kind.object(), object.object_name),
        });
    }
    if kind == ItemKind::DeployItem && codes.is_empty() {
        // As of items that were interrupted: what has to be done stands in none of them.
        codes.insert(Code::ForInfoOnly);
    }
    let blocked: Vec<&str> = evaluation.in_class(Class::Blocked).collect();
    if !blocked.is_empty() {
        let left = if direction == Direction::Forward { "started" } else { "deleted" };
        causes.push(format!("not {left} for that reason: {}", listing::joined(blocked)));
    }
    Failure {
        operation: operation(direction).to_owned(),
        reason: kind.failed().to_owned(),
        message: joined(&causes),
        codes,
    }
}

/// EXE-29, EXE-30: items that nothing can start any more.
fn stuck(items: &[ItemState<'_>], evaluation: &WorkflowDecision<'_>, direction: Direction) -> Failure {
    let edges = items.iter().map(|item| (item.name, item.depends_on.clone()));
    let why = match Dag::new(edges) {
        Err(error) => error.to_string(),
        Ok(_) => "what they depend on does not exist".to_owned(),
    };
    let pending: Vec<&str> = evaluation.in_class(Class::Pending).collect();
    let kind = items.first().map(|item| item.kind).unwrap_or_default();
    Failure::new(
        operation(direction),
        kind.stuck(),
        format!("{}s {} cannot be started: {why}", kind.noun(), listing::joined(pending)),
    )
    .with_code(Code::CyclicDependencies)
}

/// The names of the items whose objects are made when they start: those that a gate expression decides about, and all that
/// depends on them. `items` are names with what they depend on, and whether a gate expression of their own decides.
pub fn late<'a>(items: &[(&'a str, Vec<&'a str>, bool)]) -> BTreeSet<&'a str> {
    let mut dependents: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
    for (name, depends_on, _) in items {
        for dependency in depends_on {
            dependents.entry(dependency).or_default().push(name);
        }
    }
    let mut late = BTreeSet::new();
    let mut ahead: Vec<&str> = items.iter().filter(|(.., decides)| *decides).map(|(name, ..)| *name).collect();
    while let Some(name) = ahead.pop() {
        if late.insert(name) {
            ahead.extend(dependents.get(name).into_iter().flatten());
        }
    }
    late
}

/// What `Init` does with one deploy item (EXE-12 … EXE-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// Names of the spec that have no object yet.
    pub create: Vec<String>,
    /// Names of the spec with the object they already have.
    pub update: BTreeMap<String, String>,
    /// Objects without a counterpart in the spec: orphans (EXE-13).
    pub orphans: Vec<String>,
}

/// Compares the spec with the objects: `existing` maps an object's name to the name of its item.
pub fn reconcile<'a>(spec: impl IntoIterator<Item = &'a str>, existing: &BTreeMap<String, String>) -> Reconciliation {
    let mut by_item: BTreeMap<&str, &str> = BTreeMap::new();
    for (object, item) in existing {
        by_item.entry(item).or_insert(object);
    }
    let mut plan = Reconciliation { create: Vec::new(), update: BTreeMap::new(), orphans: Vec::new() };
    for name in spec {
        match by_item.remove(name) {
            Some(object) => drop(plan.update.insert(name.to_owned(), object.to_owned())),
            None => plan.create.push(name.to_owned()),
        }
    }
    let kept: BTreeSet<&String> = plan.update.values().collect();
    plan.orphans = existing.keys().filter(|object| !kept.contains(object)).cloned().collect();
    plan
}

#[cfg(test)]
mod tests;
