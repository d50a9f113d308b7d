//! What an Execution does next: the five classes and the two policies that follow from them (EXE-16 … EXE-30,
//! EXE-45 … EXE-51).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    dag::{Dag, Direction},
    error::{Code, Failure},
    job::JobIds,
    phase::item::Item as ItemPhase,
    step::{Halt, Until, Verdict, Wait, Waiting},
};

/// What is known of one deploy item of the spec.
#[derive(Clone, Debug)]
pub struct ItemState<'a> {
    /// Its name in the spec.
    pub name: &'a str,
    /// The names it depends on.
    pub depends_on: Vec<&'a str>,
    /// The object; `None` where it does not exist.
    pub object: Option<ObjectState>,
}

impl ItemState<'_> {
    /// Whether its object works for this job now. One that the spec lost during the job counts as long as it does: nothing
    /// ends before it has (INS-08).
    pub fn is_running(&self, job: &str) -> bool {
        self.object.as_ref().is_some_and(|object| object.ids.running() == Some(job))
    }
}

/// What is known of a DeployItem object.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    /// Its name.
    pub object_name: String,
    /// Its job ids.
    pub ids: JobIds,
    /// Its phase.
    pub phase: Option<ItemPhase>,
    /// Its last error, for the message of whoever fails with it.
    pub failure: Option<Failure>,
}

/// Which of the five classes an item is in. Every item is in exactly one (EXE-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A: triggered, finished, well (EXE-19). Going backward success is absence (EXE-46).
    Succeeded,
    /// B: triggered, finished, failed (EXE-20, EXE-46), or vanished in the middle of a job (C-30).
    Failed,
    /// C: triggered, not finished (EXE-21).
    Running,
    /// D: not triggered, nothing pending before it (EXE-22, EXE-47).
    Runnable,
    /// E: not triggered, something pending before it (EXE-22, EXE-47).
    Pending,
}

/// What to do with the items now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Names of the items to be triggered now, in the order of the spec.
    pub trigger: Vec<String>,
    /// What the phase concluded, or what it waits for.
    pub outcome: Result<Verdict, Halt>,
}

/// Classifies one item (C-02: satisfied means finished and succeeded).
fn class(item: &ItemState<'_>, job: &str, direction: Direction, settled: &BTreeSet<&str>, dag: &Dag) -> Class {
    let Some(object) = &item.object else {
        return match direction {
            Direction::Forward => Class::Failed,
            Direction::Backward => Class::Succeeded,
        };
    };
    // One that was deployed in this very job before it was to go gets the job once more.
    let deployed =
        direction == Direction::Backward && object.phase == Some(ItemPhase::Succeeded) && object.ids.has_finished(job);
    if deployed || object.ids.job.as_deref() != Some(job) {
        let free = dag.before(item.name, direction).all(|before| settled.contains(before));
        return if free { Class::Runnable } else { Class::Pending };
    }
    if !object.ids.has_finished(job) {
        return Class::Running;
    }
    match (direction, object.phase) {
        (Direction::Forward, Some(ItemPhase::Succeeded)) => Class::Succeeded,
        (Direction::Forward | Direction::Backward, _) => Class::Failed,
    }
}

/// The classes of all items, in the order of the spec.
pub fn classify<'a>(items: &'a [ItemState<'a>], job: &str, direction: Direction) -> Vec<(&'a str, Class)> {
    // Duplicate names are refused when the items are rendered; here the first one counts.
    let mut seen = BTreeSet::new();
    let unique: Vec<&ItemState<'_>> = items.iter().filter(|item| seen.insert(item.name)).collect();
    let dag = Dag::unchecked(unique.iter().map(|item| (item.name, item.depends_on.clone()))).unwrap_or_default();
    let settled = settled(&unique, job, direction);
    unique.iter().map(|item| (item.name, class(item, job, direction, &settled, &dag))).collect()
}

/// The items that do not hold up what comes after them.
fn settled<'a>(items: &[&ItemState<'a>], job: &str, direction: Direction) -> BTreeSet<&'a str> {
    items
        .iter()
        .filter(|item| match (direction, &item.object) {
            (Direction::Forward, Some(object)) => {
                object.ids.has_finished(job) && object.phase == Some(ItemPhase::Succeeded)
            }
            (Direction::Forward, None) => false,
            (Direction::Backward, object) => object.is_none(),
        })
        .map(|item| item.name)
        .collect()
}

/// `Progressing`: which items to trigger, or how the phase ends.
pub fn progressing(items: &[ItemState<'_>], job: &str) -> Plan {
    decide(items, job, Direction::Forward)
}

/// `Deleting`: the same, backward (EXE-45 … EXE-51).
pub fn deleting(items: &[ItemState<'_>], job: &str) -> Plan {
    decide(items, job, Direction::Backward)
}

fn decide(items: &[ItemState<'_>], job: &str, direction: Direction) -> Plan {
    let classes = classify(items, job, direction);
    let of = |wanted: Class| classes.iter().filter(move |(_, class)| *class == wanted).map(|(name, _)| *name);
    let ended = |outcome| Plan { trigger: Vec::new(), outcome };
    let failed: Vec<&str> = of(Class::Failed).collect();
    let running: Vec<&str> = of(Class::Running).collect();
    if !failed.is_empty() {
        // EXE-25, EXE-49: not one further item is triggered; EXE-26: the running ones are waited for.
        return ended(match waiting(items, &running, direction) {
            Some(halt) => Err(halt),
            None => Ok(Verdict::Failed(failures(items, &failed, direction))),
        });
    }
    let runnable: Vec<&str> = of(Class::Runnable).collect();
    let waited_for: Vec<&str> = running.iter().chain(&runnable).copied().collect();
    if let Some(halt) = waiting(items, &waited_for, direction) {
        return Plan { outcome: Err(halt), trigger: runnable.into_iter().map(str::to_owned).collect() };
    }
    let pending: Vec<&str> = of(Class::Pending).collect();
    ended(Ok(if pending.is_empty() { Verdict::Done } else { Verdict::Failed(stuck(items, &pending, direction)) }))
}

fn operation(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "Progressing",
        Direction::Backward => "Deleting",
    }
}

/// The wait for these items; `None` where there are none.
fn waiting(items: &[ItemState<'_>], names: &[&str], direction: Direction) -> Option<Halt> {
    let until = match direction {
        Direction::Forward => Until::Finished,
        Direction::Backward => Until::Gone,
    };
    let object_name = |name: &str| {
        let object = items.iter().find(|item| item.name == name).and_then(|item| item.object.as_ref());
        object.map_or_else(|| name.to_owned(), |object| object.object_name.clone())
    };
    let waiting = |name: &&str| Waiting { kind: "DeployItem".to_owned(), name: object_name(name), until };
    Wait::each(names.iter().map(waiting)).map(Halt::Wait)
}

/// Names every failed item with its own cause; the codes of all of them (WF-44).
fn failures(items: &[ItemState<'_>], failed: &[&str], direction: Direction) -> Failure {
    let mut codes = BTreeSet::new();
    let causes: Vec<String> = failed
        .iter()
        .map(|name| {
            let object = items.iter().find(|item| item.name == *name).and_then(|item| item.object.as_ref());
            match object {
                None => format!("deploy item {name} is missing: its object was deleted during the job; reconcile the root installation again"),
                Some(object) => match &object.failure {
                    Some(failure) => {
                        codes.extend(failure.codes.iter().cloned());
                        format!("deploy item {name} failed: {}", failure.message)
                    }
                    None => format!("deploy item {name} failed; see DeployItem {}", object.object_name),
                },
            }
        })
        .collect();
    Failure {
        operation: operation(direction).to_owned(),
        reason: "DeployItemsFailed".to_owned(),
        message: causes.join("; "),
        codes,
    }
}

/// EXE-29, EXE-30: items that nothing can start any more.
fn stuck(items: &[ItemState<'_>], pending: &[&str], direction: Direction) -> Failure {
    let edges = items.iter().map(|item| (item.name, item.depends_on.clone()));
    let why = match Dag::new(edges) {
        Err(error) => error.to_string(),
        Ok(_) => "what they depend on does not exist".to_owned(),
    };
    Failure::new(
        operation(direction),
        "DeployItemsStuck",
        format!("deploy items {} cannot be started: {why}", pending.join(", ")),
    )
    .with_code(Code::CyclicDependencies)
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
