//! How many items are under way at once in the whole host (WF-15): who has a place, and whose turn is next.
//!
//! Namespaces take turns, and within a namespace whoever came first is first.

use std::{
    collections::{BTreeSet, VecDeque},
    num::NonZeroU32,
};

/// Namespace and name of an item.
pub type Guest = (String, String);

/// Places for items that are under way.
#[derive(Debug)]
pub struct Room {
    most: usize,
    inside: BTreeSet<Guest>,
    /// All that wait, to be found quickly.
    waiting: BTreeSet<Guest>,
    /// The same by namespace; the first of the first comes next.
    turns: VecDeque<(String, VecDeque<String>)>,
}

impl Room {
    /// Room for so many.
    pub fn new(most: NonZeroU32) -> Self {
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        Self { most, inside: BTreeSet::new(), waiting: BTreeSet::new(), turns: VecDeque::new() }
    }

    /// Whether an item that is to begin has a place; without one it waits from now on.
    pub fn enter(&mut self, guest: &Guest) -> bool {
        if self.inside.contains(guest) {
            return true;
        }
        if self.waiting.is_empty() && self.inside.len() < self.most {
            self.inside.insert(guest.clone());
            return true;
        }
        if self.waiting.insert(guest.clone()) {
            let (namespace, name) = guest.clone();
            match self.turns.iter_mut().find(|(of, _)| *of == namespace) {
                Some((_, names)) => names.push_back(name),
                None => self.turns.push_back((namespace, VecDeque::from([name]))),
            }
        }
        false
    }

    /// An item that has begun has a place, also where that is one too many: as after a restart with fewer places.
    pub fn stay(&mut self, guest: &Guest) {
        self.forget(guest);
        self.inside.insert(guest.clone());
    }

    /// An item is under way no more, and waits no more. Those that have a place now instead are to be looked at.
    pub fn leave(&mut self, guest: &Guest) -> Vec<Guest> {
        self.inside.remove(guest);
        self.forget(guest);
        let mut next = Vec::new();
        while self.inside.len() < self.most {
            let Some((namespace, mut names)) = self.turns.pop_front() else { break };
            let Some(name) = names.pop_front() else { continue };
            if !names.is_empty() {
                self.turns.push_back((namespace.clone(), names));
            }
            let guest = (namespace, name);
            self.waiting.remove(&guest);
            self.inside.insert(guest.clone());
            next.push(guest);
        }
        next
    }

    fn forget(&mut self, guest: &Guest) {
        if self.waiting.remove(guest) {
            for (_, names) in self.turns.iter_mut().filter(|(namespace, _)| *namespace == guest.0) {
                names.retain(|name| *name != guest.1);
            }
            self.turns.retain(|(_, names)| !names.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(text: &str) -> Guest {
        let (namespace, name) = text.split_once('/').unwrap();
        (namespace.to_owned(), name.to_owned())
    }

    fn room(most: u32) -> Room {
        Room::new(NonZeroU32::new(most).unwrap())
    }

    /// Which of these have a place when they come in this order.
    fn enter(room: &mut Room, guests: &[&str]) -> Vec<bool> {
        guests.iter().map(|text| room.enter(&guest(text))).collect()
    }

    fn leave(room: &mut Room, text: &str) -> Vec<String> {
        room.leave(&guest(text)).into_iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect()
    }

    #[test]
    fn wf_15_no_more_than_there_are_places_are_inside_and_who_leaves_makes_room_for_one() {
        let mut room = room(2);
        assert_eq!(
            enter(&mut room, &["n/a", "n/b", "n/c", "n/a", "n/c", "n/d"]),
            [true, true, false, true, false, false]
        );
        assert_eq!(leave(&mut room, "n/a"), ["n/c"]);
        assert_eq!(enter(&mut room, &["n/c", "n/a"]), [true, false]);
        assert_eq!(leave(&mut room, "n/x"), [""; 0]);
        assert_eq!(leave(&mut room, "n/c"), ["n/d"]);
        assert_eq!(leave(&mut room, "n/b"), ["n/a"]);
        assert_eq!(leave(&mut room, "n/a"), [""; 0]);
        assert_eq!(enter(&mut room, &["n/b"]), [true]);
    }

    #[test]
    fn wf_15_namespaces_take_turns() {
        let mut room = room(1);
        enter(&mut room, &["a/1", "a/2", "a/3", "b/1", "a/4", "c/1"]);
        let mut order = vec!["a/1".to_owned()];
        while let Some(next) = order.last().cloned().and_then(|last| leave(&mut room, &last).pop()) {
            order.push(next);
        }
        assert_eq!(order, ["a/1", "a/2", "b/1", "c/1", "a/3", "a/4"]);
    }

    #[test]
    fn wf_15_who_waits_may_go_away_and_nobody_gets_its_turn_twice() {
        let mut room = room(1);
        enter(&mut room, &["a/1", "a/2", "b/1", "b/2"]);
        assert_eq!(leave(&mut room, "b/1"), [""; 0]);
        assert_eq!(leave(&mut room, "a/2"), [""; 0]);
        assert_eq!(leave(&mut room, "a/1"), ["b/2"]);
        assert_eq!(leave(&mut room, "b/2"), [""; 0]);
    }

    #[test]
    fn wf_15_what_has_begun_goes_on_and_counts() {
        let mut room = room(1);
        assert_eq!(enter(&mut room, &["a/1", "a/2"]), [true, false]);
        room.stay(&guest("a/2"));
        room.stay(&guest("a/3"));
        assert_eq!(enter(&mut room, &["a/4"]), [false]);
        assert_eq!(leave(&mut room, "a/1"), [""; 0]);
        assert_eq!(leave(&mut room, "a/2"), [""; 0]);
        assert_eq!(leave(&mut room, "a/3"), ["a/4"]);
    }
}
