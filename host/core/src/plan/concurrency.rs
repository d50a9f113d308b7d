//! How many items are under way at once in the whole host (WF-15): which have a slot, and which one is next.
//!
//! Namespaces take turns, and within a namespace the item that came first is first.

use crate::name::Namespace;
use std::{
    collections::{BTreeSet, VecDeque},
    num::NonZeroU32,
};

/// Namespace and name of an item.
pub type SlotOwner = (Namespace, String);

/// The slots for items that are under way.
#[derive(Debug)]
pub struct Slots {
    most: usize,
    occupied: BTreeSet<SlotOwner>,
    /// All that wait, to be found quickly.
    waiting: BTreeSet<SlotOwner>,
    /// The same by namespace; the first of the first comes next.
    turns: VecDeque<(Namespace, VecDeque<String>)>,
}

impl Slots {
    /// So many slots.
    pub fn new(most: NonZeroU32) -> Self {
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        Self { most, occupied: BTreeSet::new(), waiting: BTreeSet::new(), turns: VecDeque::new() }
    }

    /// Whether an item that is to begin has a slot; without one it waits from now on.
    pub fn acquire(&mut self, owner: &SlotOwner) -> bool {
        if self.occupied.contains(owner) {
            return true;
        }
        if self.waiting.is_empty() && self.occupied.len() < self.most {
            self.occupied.insert(owner.clone());
            return true;
        }
        if self.waiting.insert(owner.clone()) {
            let (namespace, name) = owner.clone();
            match self.turns.iter_mut().find(|(of, _)| *of == namespace) {
                Some((_, names)) => names.push_back(name),
                None => self.turns.push_back((namespace, VecDeque::from([name]))),
            }
        }
        false
    }

    /// An item that has begun has a slot, also where that is one too many: as after a restart with fewer slots.
    pub fn occupy(&mut self, owner: &SlotOwner) {
        self.forget(owner);
        self.occupied.insert(owner.clone());
    }

    /// An item is under way no more, and waits no more. Those that have its slot now are to be looked at.
    pub fn release(&mut self, owner: &SlotOwner) -> Vec<SlotOwner> {
        self.occupied.remove(owner);
        self.forget(owner);
        let mut next = Vec::new();
        while self.occupied.len() < self.most {
            let Some((namespace, mut names)) = self.turns.pop_front() else { break };
            let Some(name) = names.pop_front() else { continue };
            if !names.is_empty() {
                self.turns.push_back((namespace.clone(), names));
            }
            let owner = (namespace, name);
            self.waiting.remove(&owner);
            self.occupied.insert(owner.clone());
            next.push(owner);
        }
        next
    }

    fn forget(&mut self, owner: &SlotOwner) {
        if self.waiting.remove(owner) {
            for (_, names) in self.turns.iter_mut().filter(|(namespace, _)| *namespace == owner.0) {
                names.retain(|name| *name != owner.1);
            }
            self.turns.retain(|(_, names)| !names.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(text: &str) -> SlotOwner {
        let (namespace, name) = text.split_once('/').unwrap();
        (namespace.into(), name.to_owned())
    }

    fn slots(most: u32) -> Slots {
        Slots::new(NonZeroU32::new(most).unwrap())
    }

    /// Which of these have a slot when they come in this order.
    fn enter(slots: &mut Slots, owners: &[&str]) -> Vec<bool> {
        owners.iter().map(|text| slots.acquire(&owner(text))).collect()
    }

    fn leave(slots: &mut Slots, text: &str) -> Vec<String> {
        slots.release(&owner(text)).into_iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect()
    }

    #[test]
    fn wf_15_no_more_than_there_are_slots_are_under_way_and_each_end_frees_one() {
        let mut slots = slots(2);
        assert_eq!(
            enter(&mut slots, &["n/a", "n/b", "n/c", "n/a", "n/c", "n/d"]),
            [true, true, false, true, false, false]
        );
        assert_eq!(leave(&mut slots, "n/a"), ["n/c"]);
        assert_eq!(enter(&mut slots, &["n/c", "n/a"]), [true, false]);
        assert_eq!(leave(&mut slots, "n/x"), [""; 0]);
        assert_eq!(leave(&mut slots, "n/c"), ["n/d"]);
        assert_eq!(leave(&mut slots, "n/b"), ["n/a"]);
        assert_eq!(leave(&mut slots, "n/a"), [""; 0]);
        assert_eq!(enter(&mut slots, &["n/b"]), [true]);
    }

    #[test]
    fn wf_15_namespaces_take_turns() {
        let mut slots = slots(1);
        enter(&mut slots, &["a/1", "a/2", "a/3", "b/1", "a/4", "c/1"]);
        let mut order = vec!["a/1".to_owned()];
        while let Some(next) = order.last().cloned().and_then(|last| leave(&mut slots, &last).pop()) {
            order.push(next);
        }
        assert_eq!(order, ["a/1", "a/2", "b/1", "c/1", "a/3", "a/4"]);
    }

    #[test]
    fn wf_15_an_item_that_waits_may_go_away_and_none_gets_its_turn_twice() {
        let mut slots = slots(1);
        enter(&mut slots, &["a/1", "a/2", "b/1", "b/2"]);
        assert_eq!(leave(&mut slots, "b/1"), [""; 0]);
        assert_eq!(leave(&mut slots, "a/2"), [""; 0]);
        assert_eq!(leave(&mut slots, "a/1"), ["b/2"]);
        assert_eq!(leave(&mut slots, "b/2"), [""; 0]);
    }

    #[test]
    fn wf_15_what_has_begun_goes_on_and_counts() {
        let mut slots = slots(1);
        assert_eq!(enter(&mut slots, &["a/1", "a/2"]), [true, false]);
        slots.occupy(&owner("a/2"));
        slots.occupy(&owner("a/3"));
        assert_eq!(enter(&mut slots, &["a/4"]), [false]);
        assert_eq!(leave(&mut slots, "a/1"), [""; 0]);
        assert_eq!(leave(&mut slots, "a/2"), [""; 0]);
        assert_eq!(leave(&mut slots, "a/3"), ["a/4"]);
    }
}
