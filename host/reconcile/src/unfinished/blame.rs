//! Which calls were the reason for the end of a process, as far as what it has written down says so (C-283).

use std::{cmp::Reverse, collections::BTreeMap};

use orangery_core::name::Namespace;

use super::SET_ASIDE_AFTER;
use crate::written::{CallState, JournalEntry, WrittenCall, WrittenNamespace};

/// A namespace that was there with others at so many kills in a row is called one call at a time, and without the others for a while.
pub(super) const SUSPECTED_AFTER: u32 = 2;

/// What is known once a process has ended.
pub(super) struct AfterKill {
    /// Each to be written down again.
    pub(super) entries: Vec<JournalEntry>,
    /// The namespace that is called without all others at first.
    pub(super) first: Option<Namespace>,
}

/// What a namespace has against it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Evidence {
    kills: u32,
    together: u32,
}

/// What is known once a process has ended with these entries.
///
/// Calls that worked are the reason, and where none did, those that waited on a server with what they had read. They count where
/// all calls that were under way, at work or not, were of one namespace. Where several namespaces were there it is not known whose
/// they were: of those that were there at the kill before as well, or with what has been set aside, the one with most against it is
/// met alone.
pub(super) fn after_kill(before: Vec<JournalEntry>) -> AfterKill {
    let (calls, mut known) = sorted(before);
    let is_at_work = calls.iter().any(|call| call.state == CallState::Works);
    let reason = if is_at_work { CallState::Works } else { CallState::WaitsOnServer };
    let there = there(&calls);
    let is_alone = there.len() == 1;
    for namespace in there.keys() {
        known.entry(namespace.clone()).or_default();
    }
    for (namespace, Evidence { kills, together }) in &mut known {
        if !there.contains_key(namespace) {
            *together = 0;
        } else if !is_alone {
            *together = together.saturating_add(1);
        } else {
            // A call that was there with others before has a kill against it, and may have killed nothing so far.
            let of_others = u32::from(*together > 0);
            let is_new = calls.iter().any(|call| call.state == reason && call.times <= of_others);
            *kills = kills.saturating_add(u32::from(is_new));
            *together = 0;
        }
    }
    let first = if is_alone { None } else { first(&there, &known) };
    let namespaces = known.into_iter().filter(|(_, evidence)| *evidence != Evidence::default());
    let namespaces = namespaces.map(|(namespace, Evidence { kills, together })| {
        JournalEntry::Namespace(WrittenNamespace { namespace, kills, together })
    });
    let calls = calls.into_iter().map(|call| {
        let times = match (call.state == reason, is_alone) {
            (false, _) => call.times,
            (true, false) => call.times.max(1),
            (true, true) => call.times.saturating_add(1),
        };
        WrittenCall { state: CallState::Suspected, times, ..call }
    });
    let calls = calls.filter(|call| call.times > 0).map(JournalEntry::Call);
    AfterKill { entries: namespaces.chain(calls).collect(), first }
}

fn sorted(entries: Vec<JournalEntry>) -> (Vec<WrittenCall>, BTreeMap<Namespace, Evidence>) {
    let (mut calls, mut known) = (Vec::new(), BTreeMap::new());
    for entry in entries {
        match entry {
            JournalEntry::Call(call) => calls.push(call),
            JournalEntry::Namespace(WrittenNamespace { namespace, kills, together }) => {
                known.insert(namespace, Evidence { kills, together });
            }
        }
    }
    (calls, known)
}

/// The namespaces with calls under way, and how many kills count against one of these calls at most.
fn there(calls: &[WrittenCall]) -> BTreeMap<Namespace, u32> {
    let mut there = BTreeMap::<_, u32>::new();
    for call in calls.iter().filter(|call| call.state != CallState::Suspected) {
        let times = there.entry(call.key.namespace.clone()).or_default();
        *times = call.times.max(*times);
    }
    there
}

/// Which of several is called without all others at first. One that has been already was there at fewer kills since, so each has its turn.
fn first(there: &BTreeMap<Namespace, u32>, known: &BTreeMap<Namespace, Evidence>) -> Option<Namespace> {
    let against = there.iter().filter_map(|(namespace, times)| Some((namespace, times, known.get(namespace)?)));
    let suspected =
        against.filter(|(_, times, evidence)| evidence.together >= SUSPECTED_AFTER || **times >= SET_ASIDE_AFTER);
    let most = suspected.min_by_key(|(_, times, evidence)| Reverse((evidence.together, **times, evidence.kills)));
    most.map(|(namespace, ..)| namespace.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    fn call(of: &str, state: CallState, times: u32) -> JournalEntry {
        let (namespace, name) = of.split_once('/').unwrap();
        JournalEntry::Call(WrittenCall { controller: "c".to_owned(), key: Key::new(namespace, name), state, times })
    }

    fn namespace(namespace: &str, kills: u32, together: u32) -> JournalEntry {
        JournalEntry::Namespace(WrittenNamespace { namespace: namespace.into(), kills, together })
    }

    #[test]
    fn c_283_the_calls_that_worked_are_the_reason_and_count_where_all_are_of_one_namespace() {
        use CallState::{Suspected, WaitsOnServer, Works};
        let cases = [
            (
                "nothing was under way",
                vec![call("a/x", Suspected, 2), namespace("a", 1, 0), namespace("b", 0, 2)],
                vec![namespace("a", 1, 0), call("a/x", Suspected, 2)],
            ),
            ("one worked", vec![call("a/x", Works, 0)], vec![namespace("a", 1, 0), call("a/x", Suspected, 1)]),
            (
                "it did before",
                vec![call("a/x", Works, 1), namespace("a", 1, 0)],
                vec![namespace("a", 1, 0), call("a/x", Suspected, 2)],
            ),
            (
                "another name of the namespace, while the first is gone or waits",
                vec![namespace("a", 1, 0), call("a/x", Suspected, 1), call("a/y", Works, 0), call("a/z", Works, 0)],
                vec![
                    namespace("a", 2, 0),
                    call("a/x", Suspected, 1),
                    call("a/y", Suspected, 1),
                    call("a/z", Suspected, 1),
                ],
            ),
            (
                "a neighbour waited on a server: it may hold what it has read, and neither counts",
                vec![call("a/x", Works, 1), call("b/x", WaitsOnServer, 0), call("b/y", WaitsOnServer, 1)],
                vec![namespace("a", 0, 1), namespace("b", 0, 1), call("a/x", Suspected, 1), call("b/y", Suspected, 1)],
            ),
            (
                "one that has killed before was there with others, and is not blamed for it",
                vec![namespace("a", 2, 4), call("a/x", Works, 2), namespace("b", 0, 2), call("b/x", Works, 0)],
                vec![namespace("a", 2, 5), namespace("b", 0, 3), call("a/x", Suspected, 2), call("b/x", Suspected, 1)],
            ),
            (
                "who was not there was there at none in a row",
                vec![namespace("a", 0, 2), namespace("b", 1, 2), call("c/x", Works, 0), call("a/x", Works, 0)],
                vec![
                    namespace("a", 0, 3),
                    namespace("b", 1, 0),
                    namespace("c", 0, 1),
                    call("c/x", Suspected, 1),
                    call("a/x", Suspected, 1),
                ],
            ),
            (
                "one that was there with others before is alone: its call has killed nothing so far",
                vec![namespace("a", 0, 2), namespace("b", 0, 2), call("a/x", Works, 1)],
                vec![namespace("a", 1, 0), call("a/x", Suspected, 2)],
            ),
            (
                "the same of one that was set aside",
                vec![namespace("a", 1, 2), call("a/x", Works, 2)],
                vec![namespace("a", 1, 0), call("a/x", Suspected, 3)],
            ),
            ("all waited", vec![call("a/x", WaitsOnServer, 1)], vec![call("a/x", Suspected, 2)]),
            ("as nobody writes it", vec![call("a/x", Suspected, 0), namespace("a", 0, 0)], vec![]),
        ];
        for (what, before, expected) in cases {
            assert_eq!(after_kill(before).entries, expected, "{what}");
        }
    }

    #[test]
    fn c_283_the_namespace_with_most_against_it_is_called_first() {
        use CallState::Works;
        let first = |entries: &[JournalEntry]| after_kill(entries.to_vec()).first.map(|first| first.to_string());
        let of = |names: &[&str], times: u32| -> Vec<JournalEntry> {
            names.iter().map(|name| call(&format!("{name}/x"), Works, times)).collect()
        };
        let of_all = of(&["a", "b", "c"], 0);
        let with = |more: &[JournalEntry]| [of_all.as_slice(), more].concat();
        let together = |a, b, c| with(&[namespace("a", 0, a), namespace("b", 0, b), namespace("c", 0, c)]);
        assert_eq!(first(&of_all), None, "it is the first kill");
        assert_eq!(first(&with(&[namespace("b", 9, 0)])), None, "it is the first with others");
        assert_eq!(first(&together(1, 1, 1)).as_deref(), Some("a"));
        assert_eq!(first(&together(0, 2, 2)).as_deref(), Some("b"), "a has been called so");
        assert_eq!(first(&together(1, 0, 3)).as_deref(), Some("c"));
        let suspected = with(&of(&["c"], 1));
        let before = [namespace("a", 0, 1), namespace("b", 1, 1), namespace("c", 0, 1)];
        assert_eq!(
            first(&[suspected.as_slice(), &before].concat()).as_deref(),
            Some("c"),
            "one of its calls was there"
        );
        assert_eq!(first(&with(&before)).as_deref(), Some("b"), "it has killed");
        assert_eq!(first(&with(&of(&["c"], SET_ASIDE_AFTER))).as_deref(), Some("c"), "it was tried again");
        assert_eq!(first(&[namespace("a", 0, 2), call("a/x", Works, 2)]), None, "it was alone");
        assert_eq!(first(&[namespace("a", 0, 2)]), None, "nobody was there");
    }
}
