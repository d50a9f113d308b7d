//! Which calls were the reason for the end of a process, as far as what it has written down says so (C-283).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use orangery_core::name::Namespace;

use crate::written::{CallState, JournalEntry, WrittenCall, WrittenNamespace};

/// A namespace that was there at so many kills in a row, and the only one that was, is the reason.
const SURE_AFTER: u32 = 3;

/// Namespaces that were there at so many are called apart.
const APART_AFTER: u32 = 2;

/// How long one of them is called without the others at first; with each further kill twice as long.
const FIRST_WINDOW: Duration = Duration::from_secs(30);

/// The most of such times before one is called: what kills takes no more time than that.
const MOST_WINDOWS: u32 = 8;

/// What is known of a namespace.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Evidence {
    kills: u32,
    together: u32,
}

/// What is known once a process has ended with these entries, each to be written down again.
///
/// Calls that worked are the reason, and where none did, those that waited on a server with what they had read; but they count for
/// the namespace alone that is known to be it: the only one that had calls under way, whether they worked or waited; else the one
/// that has killed before, or was there at more kills than all others.
pub(crate) fn after_kill(before: Vec<JournalEntry>) -> Vec<JournalEntry> {
    let (mut calls, mut known) = (Vec::new(), BTreeMap::<Namespace, Evidence>::new());
    for entry in before {
        match entry {
            JournalEntry::Call(call) => calls.push(call),
            JournalEntry::Namespace(WrittenNamespace { namespace, kills, together }) => {
                known.insert(namespace, Evidence { kills, together });
            }
        }
    }
    let are_some_at_work = calls.iter().any(|call| call.state == CallState::Works);
    let reason = if are_some_at_work { CallState::Works } else { CallState::WaitsOnServer };
    let under_way = calls.iter().filter(|call| call.state != CallState::Suspected);
    let there: BTreeSet<Namespace> = under_way.map(|call| call.key.namespace.clone()).collect();
    for namespace in &there {
        let evidence = known.entry(namespace.clone()).or_default();
        evidence.together = evidence.together.saturating_add(1);
    }
    let blamed = blamed(&there, &known);
    let is_blamed = |call: &WrittenCall| blamed.as_ref() == Some(&call.key.namespace);
    // Of the one that is blamed what waits counts where nothing of it worked.
    let works = calls.iter().any(|call| is_blamed(call) && call.state == CallState::Works);
    let counts = |call: &WrittenCall| {
        let of_it = if works { CallState::Works } else { CallState::WaitsOnServer };
        is_blamed(call) && call.state == of_it
    };
    if let Some(blamed) = &blamed {
        let is_anew = calls.iter().any(|call| counts(call) && call.times == 0);
        for (namespace, evidence) in &mut known {
            let more = u32::from(namespace == blamed && is_anew);
            *evidence = Evidence { kills: evidence.kills.saturating_add(more), together: 0 };
        }
    }
    let again: Vec<WrittenCall> = calls
        .into_iter()
        .map(|call| {
            let times = match (counts(&call), call.state == reason) {
                (true, _) => call.times.saturating_add(1),
                (false, true) => call.times.max(1),
                (false, false) => call.times,
            };
            WrittenCall { state: CallState::Suspected, times, ..call }
        })
        .collect();
    let namespaces = known.into_iter().filter(|(_, evidence)| *evidence != Evidence::default());
    let namespaces = namespaces.map(|(namespace, Evidence { kills, together })| {
        JournalEntry::Namespace(WrittenNamespace { namespace, kills, together })
    });
    namespaces.chain(again.into_iter().filter(|call| call.times > 0).map(JournalEntry::Call)).collect()
}

/// Which of the namespaces that were there is known to be the reason.
fn blamed(there: &BTreeSet<Namespace>, known: &BTreeMap<Namespace, Evidence>) -> Option<Namespace> {
    let evidence = |namespace: &Namespace| known.get(namespace).copied().unwrap_or_default();
    let most = there.iter().max_by_key(|namespace| evidence(namespace))?;
    let is_alone = there.iter().filter(|namespace| evidence(namespace) == evidence(most)).count() == 1;
    let Evidence { kills, together } = evidence(most);
    let is_known = there.len() == 1 || kills > 0 || together >= SURE_AFTER;
    (is_alone && is_known).then(|| most.clone())
}

/// For how long namespaces are not called yet, so that those of which it is not known which is the reason are met one by one, in
/// another order after each kill.
pub(crate) fn apart(entries: &[JournalEntry]) -> BTreeMap<Namespace, Duration> {
    let namespaces = || {
        entries.iter().filter_map(|entry| match entry {
            JournalEntry::Namespace(namespace) => Some(namespace),
            JournalEntry::Call(_) => None,
        })
    };
    let together = namespaces().map(|namespace| namespace.together).max().unwrap_or_default();
    if together < APART_AFTER {
        return BTreeMap::new();
    }
    let window = FIRST_WINDOW * 2_u32.pow((together - APART_AFTER).min(4));
    let suspects: BTreeSet<&Namespace> =
        namespaces().filter(|namespace| namespace.together == together).map(|namespace| &namespace.namespace).collect();
    let first = usize::try_from(together).unwrap_or_default().checked_rem(suspects.len()).unwrap_or_default();
    let in_turn = suspects.iter().cycle().skip(first).take(suspects.len());
    in_turn.zip(0_u32..).map(|(namespace, before)| ((*namespace).clone(), window * before.min(MOST_WINDOWS))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    fn key(of: &str) -> Key {
        let (namespace, name) = of.split_once('/').unwrap();
        Key::new(namespace, name)
    }

    fn call(of: &str, state: CallState, times: u32) -> JournalEntry {
        JournalEntry::Call(WrittenCall { controller: "c".to_owned(), key: key(of), state, times })
    }

    fn namespace(namespace: &str, kills: u32) -> JournalEntry {
        together(namespace, kills, 0)
    }

    fn together(namespace: &str, kills: u32, together: u32) -> JournalEntry {
        JournalEntry::Namespace(WrittenNamespace { namespace: namespace.into(), kills, together })
    }

    #[test]
    fn c_283_the_calls_that_worked_are_the_reason_and_count_where_all_are_of_one_namespace() {
        use CallState::{Suspected, WaitsOnServer, Works};
        let cases = [
            (
                "nothing was under way",
                vec![call("a/x", Suspected, 2), namespace("a", 1)],
                vec![namespace("a", 1), call("a/x", Suspected, 2)],
            ),
            ("one worked", vec![call("a/x", Works, 0)], vec![namespace("a", 1), call("a/x", Suspected, 1)]),
            (
                "it did before",
                vec![call("a/x", Works, 1), namespace("a", 1)],
                vec![namespace("a", 1), call("a/x", Suspected, 2)],
            ),
            (
                "another name of the namespace, while the first is gone or waits",
                vec![namespace("a", 1), call("a/x", Suspected, 1), call("a/y", Works, 0), call("a/z", Works, 0)],
                vec![
                    namespace("a", 2),
                    call("a/x", Suspected, 1),
                    call("a/y", Suspected, 1),
                    call("a/z", Suspected, 1),
                ],
            ),
            (
                "a neighbour waited on a server: it may hold what it has read, and neither counts",
                vec![call("a/x", Works, 1), call("b/x", WaitsOnServer, 0), call("b/y", WaitsOnServer, 1)],
                vec![together("a", 0, 1), together("b", 0, 1), call("a/x", Suspected, 1), call("b/y", Suspected, 1)],
            ),
            (
                "one has killed before, alone",
                vec![namespace("a", 1), call("a/x", Works, 0), together("b", 0, 2), call("b/x", Works, 0)],
                vec![namespace("a", 2), call("a/x", Suspected, 1), call("b/x", Suspected, 1)],
            ),
            (
                "one was there each time, and only asks",
                vec![
                    together("a", 0, 2),
                    together("b", 0, 1),
                    together("c", 0, 2),
                    call("a/x", WaitsOnServer, 0),
                    call("b/x", Works, 0),
                ],
                vec![namespace("a", 1), call("a/x", Suspected, 1), call("b/x", Suspected, 1)],
            ),
            (
                "both were there each time",
                vec![together("a", 0, 2), together("b", 0, 2), call("a/x", WaitsOnServer, 0), call("b/x", Works, 1)],
                vec![together("a", 0, 3), together("b", 0, 3), call("b/x", Suspected, 1)],
            ),
            ("all waited", vec![call("a/x", WaitsOnServer, 1)], vec![call("a/x", Suspected, 2)]),
            ("as nobody writes it", vec![call("a/x", Suspected, 0), namespace("a", 0)], vec![]),
        ];
        for (what, before, expected) in cases {
            assert_eq!(after_kill(before), expected, "{what}");
        }
    }

    #[test]
    fn c_283_namespaces_that_were_there_together_are_called_apart_and_each_is_first_once() {
        let apart_of = |times: u32| -> Vec<(String, u64)> {
            let of = |name: &str| together(name, 0, times);
            let entries = [
                of("a"),
                of("b"),
                of("c"),
                together("once", 0, 1),
                namespace("killer", 2),
                call("a/x", CallState::Suspected, 1),
            ];
            apart(&entries).into_iter().map(|(namespace, time)| (namespace.to_string(), time.as_secs())).collect()
        };
        let expected =
            |seconds: [u64; 3]| ["a", "b", "c"].map(str::to_owned).into_iter().zip(seconds).collect::<Vec<_>>();
        assert_eq!(apart(&[together("a", 0, 1), together("b", 0, 1)]), BTreeMap::new());
        assert_eq!(apart_of(2), expected([30, 60, 0]));
        assert_eq!(apart_of(3), expected([0, 60, 120]));
        assert_eq!(apart_of(4), expected([240, 0, 120]));
        assert_eq!(apart_of(u32::MAX).iter().map(|(_, time)| *time).max(), Some(960));
        let many: Vec<JournalEntry> = (0..100).map(|number| together(&format!("n{number}"), 0, 2)).collect();
        assert_eq!(apart(&many).values().max(), Some(&(FIRST_WINDOW * MOST_WINDOWS)));
    }

    #[test]
    fn c_283_a_namespace_that_kills_beside_a_neighbour_is_told_from_it_in_the_end() {
        // Of each the state in which its call is met, and whether it is the one that kills.
        for (killer, neighbour) in
            [(CallState::WaitsOnServer, CallState::Works), (CallState::Works, CallState::WaitsOnServer)]
        {
            let mut entries = Vec::new();
            for kill in 0.. {
                assert!(kill < 12, "it is set aside after so many kills");
                let times = apart(&entries);
                let wait = |name: &str| times.get(&Namespace::from(name)).copied().unwrap_or_default();
                // Beside the one that kills what has come to its turn by then.
                let mut under_way = vec![call(&format!("bad/b{kill}"), killer, 0)];
                under_way.extend((wait("nb") <= wait("bad")).then(|| call("nb/x", neighbour, 0)));
                entries.retain(|entry| matches!(entry, JournalEntry::Namespace(_)));
                entries.extend(under_way);
                entries = after_kill(entries);
                let kills = |name: &str| {
                    entries.iter().find_map(|entry| match entry {
                        JournalEntry::Namespace(known) if *known.namespace == *name => Some(known.kills),
                        _ => None,
                    })
                };
                assert_eq!(kills("nb").unwrap_or_default(), 0, "{entries:?}");
                if kills("bad") == Some(3) {
                    break;
                }
            }
        }
    }
}
