mod exhaustive;
mod vectors;

use std::collections::BTreeMap;

use super::*;

/// An item in this state, with the answers that its flags stand for.
fn flagged(state: WorkflowItemState, has: impl Fn(&str) -> bool) -> Facts {
    let answer = |no: &str, unknown: &str| match (has(no), has(unknown)) {
        (true, _) => Answer::NotMet,
        (_, true) => Answer::Unknown,
        _ => Answer::Met,
    };
    let answers = Answers {
        activate: answer("inactive", "unclear"),
        when: answer("off", "doubtful"),
        ready: answer("unready", ""),
        deleted: answer("lingers", ""),
    };
    Facts { state, answers, keep: has("keep") }
}

/// A workflow that is played to its end: whatever is started finishes at once, as the flags of the item say.
struct Play {
    items: Vec<(String, Vec<String>, Vec<String>)>,
    states: BTreeMap<String, WorkflowItemState>,
}

impl Play {
    /// `1 2(1) 3(1)=off,there`: items with what they depend on and their flags. `there` and `gone` are what an item is at the
    /// beginning; `off`, `inactive`, `doubtful`, `unclear`, `unready` and `lingers` are answers of its conditions; `fails` and
    /// `undeletable` are what becomes of it; `keep` is what stays.
    fn new(text: &str, at_first: WorkflowItemState) -> Self {
        let list = |text: &str| text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let item = |word: &str| {
            let (head, flags) = word.split_once('=').unwrap_or((word, ""));
            let (name, depends_on) = head.split_once('(').unwrap_or((head, ""));
            (name.to_owned(), list(depends_on.trim_end_matches(')')), list(flags))
        };
        let items: Vec<(String, Vec<String>, Vec<String>)> = text.split_whitespace().map(item).collect();
        let state = |flags: &Vec<String>| match flags {
            flags if flags.iter().any(|flag| flag == "there") => WorkflowItemState::Idle,
            flags if flags.iter().any(|flag| flag == "gone") => WorkflowItemState::Absent,
            _ => at_first,
        };
        let states = items.iter().map(|(name, _, flags)| (name.clone(), state(flags))).collect();
        Self { items, states }
    }

    fn has(&self, name: &str, flag: &str) -> bool {
        self.items.iter().any(|(of, _, flags)| of == name && flags.iter().any(|other| other == flag))
    }

    fn facts(&self, name: &str) -> Facts {
        flagged(self.states[name], |flag| self.has(name, flag))
    }

    fn workflow(&self) -> Workflow {
        let edges = self.items.iter().map(|(name, on, _)| (name.as_str(), on.iter().map(String::as_str).collect()));
        Workflow::from(&Dag::unchecked(edges).unwrap())
    }

    /// What is started in each step, `+` to be reconciled and `-` to be deleted, and how it ends.
    fn play(&mut self, direction: Direction, policy: WorkflowPolicy) -> String {
        let workflow = self.workflow();
        let mut steps = Vec::new();
        loop {
            let evaluation = workflow.evaluate(direction, policy, |name| self.facts(name));
            let desired = evaluation.starts().into_iter().map(|name| {
                (
                    name.to_owned(),
                    evaluation.items().iter().find(|item| item.name == name).unwrap().desired == DesiredAction::Delete,
                )
            });
            let started: Vec<(String, bool)> = desired.collect();
            if started.is_empty() {
                let end = evaluation.ending().map_or("waits".to_owned(), |ending| format!("{ending:?}").to_lowercase());
                steps.push(end);
                return steps.join(" | ");
            }
            let signed = started.iter().map(|(name, goes)| format!("{}{name}", if *goes { '-' } else { '+' }));
            steps.push(signed.collect::<Vec<_>>().join(" "));
            for (name, goes) in started {
                let state = match goes {
                    true if self.has(&name, "undeletable") => WorkflowItemState::DeleteFailed,
                    true => WorkflowItemState::Absent,
                    false if self.has(&name, "fails") => WorkflowItemState::ReconcileFailed,
                    false => WorkflowItemState::Reconciled,
                };
                self.states.insert(name, state);
            }
        }
    }

    /// The names of what is there.
    fn there(&self) -> Vec<&str> {
        self.states
            .iter()
            .filter(|(_, state)| **state != WorkflowItemState::Absent)
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

const CONTINUE: WorkflowPolicy = WorkflowPolicy { failure: FailurePolicy::ContinueIndependent, max_parallel: None };

#[track_caller]
fn check_with(policy: WorkflowPolicy, text: &str, expected: &str) {
    assert_eq!(Play::new(text, WorkflowItemState::Absent).play(Direction::Forward, policy), expected, "{text}");
}

#[track_caller]
fn check(text: &str, expected: &str) {
    check_with(CONTINUE, text, expected);
}

#[track_caller]
fn check_deletion(text: &str, expected: &str) {
    assert_eq!(Play::new(text, WorkflowItemState::Idle).play(Direction::Backward, CONTINUE), expected, "{text}");
}
