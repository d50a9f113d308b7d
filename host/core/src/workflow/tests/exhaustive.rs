//! Looks compared with a second, naive reading of the rules: all graphs of up to two items in all states and with all
//! answers, cycles included; larger ones, of up to five items, in fewer.

use super::*;

/// A state and its answers, by flags of what differs from an item without conditions.
const EVERY: [(WorkflowItemState, &str); 19] = [
    (WorkflowItemState::Absent, ""),
    (WorkflowItemState::Absent, "off"),
    (WorkflowItemState::Absent, "off lingers"),
    (WorkflowItemState::Absent, "doubtful"),
    (WorkflowItemState::Absent, "inactive off"),
    (WorkflowItemState::Absent, "unclear off"),
    (WorkflowItemState::Idle, ""),
    (WorkflowItemState::Idle, "keep"),
    (WorkflowItemState::Idle, "off"),
    (WorkflowItemState::Idle, "doubtful"),
    (WorkflowItemState::Idle, "inactive"),
    (WorkflowItemState::Idle, "unclear"),
    (WorkflowItemState::Reconciling, ""),
    (WorkflowItemState::Reconciled, "off inactive"),
    (WorkflowItemState::Reconciled, "unready"),
    (WorkflowItemState::ReconcileFailed, ""),
    (WorkflowItemState::Deleting, ""),
    (WorkflowItemState::DeleteFailed, ""),
    (WorkflowItemState::DeleteFailed, "keep"),
];

/// For larger graphs, those that tell the most: fresh, idle, not wanted, taking no part, ready, failed both ways.
const SOME: [usize; 7] = [0, 6, 8, 10, 13, 15, 17];
const FEW: [usize; 4] = [6, 8, 13, 15];

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn facts(case: usize) -> Facts {
    let (state, flags) = EVERY[case];
    flagged(state, |flag| flags.split_whitespace().any(|other| other == flag))
}

/// The rules once more, item by item and as they are written, over masks of who depends on whom.
struct Naive<'a> {
    on: &'a [usize],
    facts: &'a [Facts],
    direction: Direction,
    policy: FailurePolicy,
    desired: Vec<char>,
}

impl<'a> Naive<'a> {
    fn new(on: &'a [usize], facts: &'a [Facts], direction: Direction, policy: FailurePolicy) -> Self {
        let mut naive = Self { on, facts, direction, policy, desired: Vec::new() };
        naive.desired = naive.items().map(|item| naive.found_desired(item)).collect();
        naive
    }

    fn items(&self) -> std::ops::Range<usize> {
        0..self.facts.len()
    }

    fn depends(&self, item: usize, on: usize) -> bool {
        self.on[item] & (1 << on) != 0
    }

    /// The mask of all that an item depends on, over any number of others.
    fn reach(&self, item: usize) -> usize {
        let mut mask = self.on[item];
        for _ in self.items() {
            mask |= self.items().filter(|via| mask & (1 << via) != 0).fold(0, |all, via| all | self.on[via]);
        }
        mask
    }

    fn asked(&self, item: usize) -> bool {
        !matches!(self.facts[item].state, WorkflowItemState::Absent | WorkflowItemState::Idle)
    }

    /// `d` for what is deleted by itself, `l` for what takes no part, `u` for doubt, `r` for what is to be reconciled.
    fn desired_alone(&self, item: usize) -> char {
        let Facts { state, answers, .. } = self.facts[item];
        match (state, answers.activate, answers.when) {
            (WorkflowItemState::Deleting | WorkflowItemState::DeleteFailed, ..) => 'd',
            _ if self.asked(item) => 'r',
            (_, Answer::NotMet, _) => 'l',
            (_, Answer::Unknown, _) => 'u',
            (_, Answer::Met, Answer::NotMet) => 'd',
            (_, Answer::Met, Answer::Unknown) => 'u',
            (_, Answer::Met, Answer::Met) => 'r',
        }
    }

    fn desired(&self, item: usize) -> char {
        self.desired[item]
    }

    fn found_desired(&self, item: usize) -> char {
        if self.direction == Direction::Backward {
            return 'd';
        }
        let reach = self.reach(item);
        let doomed = self.items().any(|other| reach & (1 << other) != 0 && "dl".contains(self.desired_alone(other)));
        let takes_part = self.asked(item) || self.facts[item].answers.activate == Answer::Met;
        if doomed && takes_part { 'd' } else { self.desired_alone(item) }
    }

    fn gone(&self, item: usize) -> bool {
        self.facts[item].state == WorkflowItemState::Absent && self.facts[item].answers.deleted == Answer::Met
    }

    fn ready(&self, item: usize) -> bool {
        let Facts { state, answers, .. } = self.facts[item];
        self.desired(item) == 'r' && state == WorkflowItemState::Reconciled && answers.ready == Answer::Met
    }

    fn passed_backward(&self, item: usize) -> bool {
        match self.desired(item) {
            'l' => true,
            'd' => self.gone(item) || self.facts[item].keep,
            _ => self.facts[item].state == WorkflowItemState::Absent,
        }
    }

    fn free(&self, item: usize) -> bool {
        match self.desired(item) {
            'd' => self.items().all(|other| !self.depends(other, item) || self.passed_backward(other)),
            _ => self.items().all(|other| !self.depends(item, other) || self.ready(other)),
        }
    }

    /// The letter of the rules, class F apart.
    fn letter(&self, item: usize) -> char {
        let done = |done, otherwise| if done { 'A' } else { otherwise };
        match (self.desired(item), self.facts[item].state) {
            ('l', _) => 'A',
            ('u', _) => 'E',
            (_, WorkflowItemState::ReconcileFailed | WorkflowItemState::DeleteFailed) => 'B',
            (_, WorkflowItemState::Reconciling | WorkflowItemState::Deleting) => 'C',
            ('r', WorkflowItemState::Reconciled) => done(self.ready(item), 'C'),
            ('d', WorkflowItemState::Absent) => done(self.gone(item), 'C'),
            _ if self.free(item) => 'D',
            _ => 'E',
        }
    }

    fn blocked(&self, letters: &[char]) -> Vec<bool> {
        let mut blocked = vec![false; letters.len()];
        if self.policy == FailurePolicy::StopTriggering || !letters.contains(&'B') {
            return blocked;
        }
        for _ in self.items() {
            for item in self.items().filter(|item| letters[*item] == 'E') {
                let goes = self.desired(item) == 'd';
                blocked[item] |= self.items().any(|other| {
                    let before = if goes { self.depends(other, item) } else { self.depends(item, other) };
                    before && (self.desired(other) == 'd') == goes && (letters[other] == 'B' || blocked[other])
                });
            }
        }
        blocked
    }

    /// The classes, what is started, and how it ends.
    fn evaluate(&self) -> (String, Vec<usize>, Option<Ending>) {
        let mut letters: Vec<char> = self.items().map(|item| self.letter(item)).collect();
        for (item, _) in self.blocked(&letters).into_iter().enumerate().filter(|(_, blocked)| *blocked) {
            letters[item] = 'F';
        }
        let has = |letter: char| letters.contains(&letter);
        let stops = has('B') && self.policy == FailurePolicy::StopTriggering;
        let starts: Vec<usize> = self.items().filter(|item| letters[*item] == 'D' && !stops).collect();
        let doubt = self.items().any(|item| {
            let beside = |other| self.depends(item, other) && "dl".contains(self.desired(other));
            letters[item] == 'E' && self.desired(item) == 'u' && (self.free(item) || self.items().any(beside))
        });
        let ending = match () {
            () if has('C') || !starts.is_empty() || (doubt && !stops) => None,
            () if has('B') => Some(Ending::Failed),
            () if has('E') => Some(Ending::Stuck),
            () => Some(Ending::Done),
        };
        (letters.into_iter().collect(), starts, ending)
    }
}

fn letter(class: Class) -> char {
    match class {
        Class::Succeeded => 'A',
        Class::Failed => 'B',
        Class::Running => 'C',
        Class::Runnable => 'D',
        Class::Pending => 'E',
        Class::Blocked => 'F',
    }
}

fn compare(workflow: &Workflow, on: &[usize], cases: &[usize]) {
    let facts: Vec<Facts> = cases.iter().map(|case| facts(*case)).collect();
    for direction in [Direction::Forward, Direction::Backward] {
        for failure in [FailurePolicy::StopTriggering, FailurePolicy::ContinueIndependent] {
            let mut next = facts.iter();
            let evaluation =
                workflow.evaluate(direction, WorkflowPolicy { failure, max_parallel: None }, |_| *next.next().unwrap());
            let starts =
                evaluation.starts().into_iter().map(|name| NAMES.iter().position(|other| *other == name).unwrap());
            let classes: String = evaluation.items().iter().map(|item| letter(item.class)).collect();
            let got = (classes, starts.collect::<Vec<_>>(), evaluation.ending());
            let naive = Naive::new(on, &facts, direction, failure);
            assert_eq!(got, naive.evaluate(), "{on:?} {facts:?} {direction:?} {failure:?}");
        }
    }
}

/// The number's digits to this base, lowest first.
fn digits(mut number: usize, base: usize, count: usize) -> Vec<usize> {
    let digit = |_| {
        let digit = number % base;
        number /= base;
        digit
    };
    (0..count).map(digit).collect()
}

/// Compares the looks at a graph, whose items are each in one of these cases.
fn compare_all(on: &[usize], cases: &[usize]) {
    let size = on.len();
    let names = |mask: usize| (0..size).filter(|other| mask & (1 << other) != 0).map(|other| NAMES[other]).collect();
    let dag = Dag::unchecked((0..size).map(|item| (NAMES[item], names(on[item])))).unwrap();
    let workflow = Workflow::from(&dag);
    for number in 0..cases.len().pow(u32::try_from(size).unwrap()) {
        let chosen = digits(number, cases.len(), size).into_iter().map(|case| cases[case]);
        compare(&workflow, on, &chosen.collect::<Vec<_>>());
    }
}

/// All graphs of so many items in which an item depends only on those before it.
fn acyclic(size: usize) -> impl Iterator<Item = Vec<usize>> {
    let edges = size * (size - 1) / 2;
    (0..1_usize << edges).map(move |graph| {
        let row = |item: usize| (graph >> (item * item.saturating_sub(1) / 2)) & ((1 << item) - 1);
        (0..size).map(row).collect()
    })
}

#[test]
fn wf_17_to_42_hold_of_all_graphs_of_up_to_two_items_in_every_state() {
    let every: Vec<usize> = (0..EVERY.len()).collect();
    for size in 0..=2 {
        for graph in 0..(1_usize << size).pow(u32::try_from(size).unwrap()) {
            compare_all(&digits(graph, 1 << size, size), &every);
        }
    }
}

#[test]
fn wf_17_to_42_hold_of_all_graphs_of_three_items_in_every_state() {
    let every: Vec<usize> = (0..EVERY.len()).collect();
    acyclic(3).for_each(|on| compare_all(&on, &every));
}

#[test]
fn wf_17_to_42_hold_of_all_graphs_of_three_items_with_their_cycles() {
    (0..512).for_each(|graph| compare_all(&digits(graph, 8, 3), &FEW));
}

#[test]
fn wf_17_to_42_hold_of_all_graphs_of_four_items() {
    acyclic(4).for_each(|on| compare_all(&on, &SOME));
}

#[test]
fn wf_17_to_42_hold_of_all_graphs_of_five_items() {
    acyclic(5).for_each(|on| compare_all(&on, &FEW));
}
