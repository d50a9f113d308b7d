//! Which calls were the reason for the end of a process, as far as what it has written down says so (C-283).

use std::collections::BTreeSet;

use orangery_core::name::Namespace;

use crate::written::{CallState, JournalEntry, WrittenCall, WrittenNamespace};

/// What is known once a process has ended with these entries, each to be written down again.
///
/// Calls that worked are the reason, and where none did, those that waited on a server with what they had read. With calls of
/// several namespaces it is not known which of them: all are suspected, and none counts further. What killed earlier processes and
/// was not under way in this one counts as before.
pub(crate) fn after_kill(before: Vec<JournalEntry>) -> Vec<JournalEntry> {
    let (mut calls, mut namespaces) = (Vec::new(), Vec::new());
    for entry in before {
        match entry {
            JournalEntry::Call(call) => calls.push(call),
            JournalEntry::Namespace(namespace) => namespaces.push(namespace),
        }
    }
    let are_some_at_work = calls.iter().any(|call| call.state == CallState::Works);
    let reason = if are_some_at_work { CallState::Works } else { CallState::WaitsOnServer };
    let is_reason = |call: &WrittenCall| call.state == reason;
    let suspected: BTreeSet<Namespace> =
        calls.iter().filter(|call| is_reason(call)).map(|call| call.key.namespace.clone()).collect();
    let counts = |times: u32| if suspected.len() == 1 { times.saturating_add(1) } else { times.max(1) };
    let anew = calls.iter().filter(|call| is_reason(call) && call.times == 0);
    for namespace in anew.map(|call| call.key.namespace.clone()).collect::<BTreeSet<_>>() {
        match namespaces.iter_mut().find(|known| known.namespace == namespace) {
            Some(known) => known.kills = counts(known.kills),
            None => namespaces.push(WrittenNamespace { namespace, kills: 1 }),
        }
    }
    let again = calls.into_iter().map(|call| {
        let times = if is_reason(&call) { counts(call.times) } else { call.times };
        WrittenCall { state: CallState::Suspected, times, ..call }
    });
    let namespaces = namespaces.into_iter().filter(|known| known.kills > 0).map(JournalEntry::Namespace);
    namespaces.chain(again.filter(|call| call.times > 0).map(JournalEntry::Call)).collect()
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
        JournalEntry::Namespace(WrittenNamespace { namespace: namespace.into(), kills })
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
                "a neighbour waited on a server",
                vec![call("a/x", Works, 1), call("b/x", WaitsOnServer, 0), call("b/y", WaitsOnServer, 1)],
                vec![call("a/x", Suspected, 2), call("b/y", Suspected, 1)],
            ),
            (
                "a neighbour worked as well: both are suspected, and neither counts further",
                vec![call("a/x", Works, 1), namespace("a", 2), call("b/x", Works, 0)],
                vec![namespace("a", 2), namespace("b", 1), call("a/x", Suspected, 1), call("b/x", Suspected, 1)],
            ),
            ("all waited", vec![call("a/x", WaitsOnServer, 1)], vec![call("a/x", Suspected, 2)]),
            ("as nobody writes it", vec![call("a/x", Suspected, 0), namespace("a", 0)], vec![]),
        ];
        for (what, before, expected) in cases {
            assert_eq!(after_kill(before), expected, "{what}");
        }
    }
}
