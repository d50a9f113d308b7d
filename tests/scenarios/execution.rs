//! An Execution and its deploy items.
//!
//! `item NAME [after A B …]` declares an item, `policy continue` and `policy parallel N` say how the items are run, `job ID` and
//! `delete ID` trigger the Execution, `tick` lets it decide, `finish NAME ok` or `finish NAME failed MESSAGE` is a deployer's
//! answer, `gone NAME` an object that vanished.

use std::collections::BTreeMap;

use orangery_core::{
    dag::Direction,
    error::Failure,
    job::JobIds,
    name::JobId,
    phase::{Phase, execution::Execution, item::Item},
    plan::execution::{self as plan, ItemState, ObjectState},
    step::{Step, Verdict},
    walk::{StatusUpdate, Transition, advance},
    workflow::{FailurePolicy, WorkflowPolicy},
};

use crate::player::{Player, Report, check};

/// The job of an Execution, as far as its phase and its end go.
#[derive(Default)]
pub(crate) struct Job {
    /// Its id.
    pub(crate) id: JobId,
    phase: Option<Execution>,
}

impl Job {
    pub(crate) fn begin(&mut self, id: &str, phase: Execution) {
        *self = Self { id: id.into(), phase: Some(phase) };
    }

    /// Goes on with this phase.
    pub(crate) fn enter(&mut self, phase: Execution) {
        self.phase = Some(phase);
    }

    /// The phase, while the job runs.
    pub(crate) fn phase(&self) -> Option<Execution> {
        self.phase
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.phase.is_some_and(Phase::is_deletion)
    }

    /// What follows from the outcome of a phase; the phases after one that is done have nothing to do here.
    pub(crate) fn advance(&mut self, outcome: Step<Verdict>, report: &mut Report) {
        let Some(mut at) = self.phase else { return };
        let mut transition = advance(at, outcome);
        while let Transition::Next(next) = transition {
            (at, transition) = (next, advance(next, Ok(Verdict::Done)));
        }
        let rest = StatusUpdate::after(at, &transition);
        self.phase = rest.as_ref().filter(|rest| !rest.ended).map(|rest| rest.phase);
        match rest {
            Some(rest) => report.rest("  ", &rest),
            None => report.line("  released"),
        }
    }
}

/// `policy continue` and `policy parallel N`.
pub(crate) fn set_policy(policy: &mut WorkflowPolicy, words: &[&str]) {
    match words {
        ["continue"] => policy.failure = FailurePolicy::ContinueIndependent,
        ["parallel", most] => policy.max_parallel = most.parse().ok(),
        other => unreachable!("there is no policy {other:?}"),
    }
}

#[derive(Default)]
struct Executions {
    order: Vec<(String, Vec<String>)>,
    objects: BTreeMap<String, ObjectState>,
    job: Job,
    policy: WorkflowPolicy,
}

impl Player for Executions {
    fn command(&mut self, words: &[&str], report: &mut Report) {
        match words {
            ["item", name, rest @ ..] => {
                let after = rest.iter().skip(1).map(|name| (*name).to_owned()).collect();
                self.order.push(((*name).to_owned(), after));
                let object = ObjectState { object_name: format!("e-{name}-1").into(), ..ObjectState::default() };
                self.objects.insert((*name).to_owned(), object);
            }
            ["policy", policy @ ..] => set_policy(&mut self.policy, policy),
            ["job", id] => self.job.begin(id, Execution::Progressing),
            ["delete", id] => self.job.begin(id, Execution::Deleting),
            ["tick"] => self.tick(report),
            ["finish", name, "ok"] => self.finish(name, Item::Succeeded, None),
            ["finish", name, "failed", message @ ..] => {
                let phase = if self.job.is_deleting() { Item::DeleteFailed } else { Item::Failed };
                self.finish(name, phase, Some(message.join(" ")));
            }
            ["gone", name] => drop(self.objects.remove(*name).expect("an object of this name")),
            other => unreachable!("a script has no line {other:?}"),
        }
    }
}

impl Executions {
    fn finish(&mut self, name: &str, phase: Item, message: Option<String>) {
        let object = self.objects.get_mut(name).expect("an object of this name");
        assert_eq!(object.ids.job.as_ref(), Some(&self.job.id), "{name} was not triggered");
        object.ids.finished = object.ids.job.clone();
        object.phase = Some(phase);
        object.failure = message.map(|message| Failure::new("Deploy", "Failed", message));
    }

    fn tick(&mut self, report: &mut Report) {
        if self.job.phase().is_none() {
            return report.line("  nothing to do");
        }
        let direction = if self.job.is_deleting() { Direction::Backward } else { Direction::Forward };
        let present = |name: &String| direction == Direction::Forward || self.objects.contains_key(name);
        let order: Vec<_> = self.order.iter().filter(|(name, _)| present(name)).cloned().collect();
        let states: Vec<ItemState<'_>> = order
            .iter()
            .map(|(name, depends_on)| {
                let depends_on = depends_on.iter().map(String::as_str).collect();
                ItemState::new(name, depends_on, self.objects.get(name).cloned())
            })
            .collect();
        let classes = plan::classify(&states, &self.job.id, direction, self.policy);
        let classes: Vec<String> = classes.iter().map(|(name, class)| format!("{name} {class:?}")).collect();
        let plan = match direction {
            Direction::Forward => plan::progressing(&states, &self.job.id, self.policy),
            Direction::Backward => plan::deleting(&states, &self.job.id, self.policy),
        };
        report.line(&format!("  classes: {}", classes.join(", ")));
        for name in &plan.trigger {
            report.line(&format!("  trigger {name}"));
            let object = self.objects.get_mut(name).expect("a triggered object");
            object.ids = JobIds { job: Some(self.job.id.clone()), finished: object.ids.finished.clone() };
        }
        self.job.advance(plan.outcome, report);
    }
}

#[test]
fn executions_report_what_is_recorded() {
    check::<Executions>("execution");
}
