//! The plan compared with a second, naive reading of EXE-16 … EXE-30 and EXE-45 … EXE-51, over all graphs of up to three
//! items, self-dependencies and cycles included, in all states.

use super::*;

const STATES: [&str; 6] = ["missing", "succeeded", "failed", "delete-failed", "running", "old"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// One case: the state of each item, and for each a mask of the items it depends on.
struct Case {
    states: Vec<&'static str>,
    masks: Vec<usize>,
}

impl Case {
    fn items(&self) -> Vec<ItemState<'static>> {
        (0..self.states.len())
            .map(|item| {
                let others = (0..self.states.len()).filter(|other| self.depends(item, *other));
                let depends_on = others.map(|other| NAMES[other]).collect();
                ItemState::new(NAMES[item], depends_on, object(NAMES[item], self.states[item]))
            })
            .collect()
    }

    fn depends(&self, item: usize, on: usize) -> bool {
        self.masks[item] & (1 << on) != 0
    }

    /// The class as the letter of the rules; `-` for what is gone in a deletion, where there is no class A.
    fn letter(&self, item: usize, direction: Direction) -> char {
        let every = |holds: &dyn Fn(usize) -> bool| (0..self.states.len()).all(holds);
        let free = match direction {
            Direction::Forward => every(&|other| !self.depends(item, other) || self.states[other] == "succeeded"),
            Direction::Backward => every(&|other| !self.depends(other, item) || self.states[other] == "missing"),
        };
        match (self.states[item], direction) {
            ("running", _) => 'C',
            ("succeeded", Direction::Forward) => 'A',
            ("old" | "succeeded", _) if free => 'D',
            ("old" | "succeeded", _) => 'E',
            ("missing", Direction::Backward) => '-',
            _ => 'B',
        }
    }

    /// What is triggered, what is waited for, and how it ends.
    fn expected(&self, direction: Direction) -> (Vec<&'static str>, Vec<&'static str>, &'static str) {
        let in_class = |wanted: &str| -> Vec<&'static str> {
            (0..self.states.len())
                .filter(|item| wanted.contains(self.letter(*item, direction)))
                .map(|item| NAMES[item])
                .collect()
        };
        let (failed, running, runnable, pending) = (in_class("B"), in_class("C"), in_class("D"), in_class("E"));
        match (failed.is_empty(), running.is_empty(), runnable.is_empty(), pending.is_empty()) {
            (false, false, _, _) => (vec![], running, "waits"),
            (false, true, _, _) => (vec![], vec![], "DeployItemsFailed"),
            (true, true, true, true) => (vec![], vec![], "done"),
            (true, true, true, false) => (vec![], vec![], "DeployItemsStuck"),
            (true, _, _, _) => (runnable, in_class("CD"), "waits"),
        }
    }
}

/// The number's digits to this base, lowest first.
fn digits(mut number: usize, base: usize, count: usize) -> Vec<usize> {
    (0..count)
        .map(|_| {
            let digit = number % base;
            number /= base;
            digit
        })
        .collect()
}

fn cases(items: u32) -> impl Iterator<Item = Case> {
    let count = items as usize;
    let (graphs, states) = ((1_usize << count).pow(items), STATES.len().pow(items));
    (0..graphs).flat_map(move |graph| {
        (0..states).map(move |number| Case {
            states: digits(number, STATES.len(), count).into_iter().map(|state| STATES[state]).collect(),
            masks: digits(graph, 1 << count, count),
        })
    })
}

#[track_caller]
fn compare(case: &Case, direction: Direction) {
    let items = case.items();
    let plan = match direction {
        Direction::Forward => progressing(&items, NEW, WorkflowPolicy::default()),
        Direction::Backward => deleting(&items, NEW, WorkflowPolicy::default()),
    };
    let (waited, ending) = match &plan.outcome {
        Ok(Verdict::Done) => (BTreeSet::new(), "done"),
        Ok(Verdict::Failed(failure)) => (BTreeSet::new(), failure.reason.as_str()),
        Err(Halt::Wait(wait)) => (wait.objects().clone(), "waits"),
        Err(Halt::Retry(_) | Halt::Stall(_)) => (BTreeSet::new(), "halts"),
    };
    let (trigger, waiting, expected) = case.expected(direction);
    let until = if direction == Direction::Forward { Until::Finished } else { Until::Gone };
    let waiting: BTreeSet<Waiting> =
        waiting.into_iter().map(|name| Waiting::beside("DeployItem", format!("x-{name}"), until)).collect();
    let got = (plan.trigger.iter().map(String::as_str).collect::<Vec<_>>(), waited, ending);
    assert_eq!(got, (trigger, waiting, expected), "{:?} {:?} {direction:?}", case.states, case.masks);
}

#[test]
fn exe_16_to_30_the_plan_is_that_of_the_rules_for_all_small_graphs() {
    for case in (0..=3).flat_map(cases) {
        compare(&case, Direction::Forward);
    }
}

#[test]
fn exe_45_to_51_the_deletion_is_that_of_the_rules_for_all_small_graphs() {
    for case in (0..=3).flat_map(cases) {
        compare(&case, Direction::Backward);
    }
}
