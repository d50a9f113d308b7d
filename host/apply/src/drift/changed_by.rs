//! Which field manager a change is told of, as far as the server says it.

use std::{cmp::Reverse, collections::BTreeSet};

use orangery_proposal::overlay::{Ignored, drift};
use serde_json::Value;

use super::DriftFinding;

/// Our own field manager.
const OWN: &str = "orangery";

/// The managers, those first that were at work last, of which it is asked whether they manage a field that differs: for each the
/// objects are compared once (C-295).
const MOST_ASKED: usize = 8;

/// The field manager that a change is told of: of those that manage a field that differs, the one that was at work last. Where
/// none does, as of fields that were taken away, the last of all. What writes a subresource, as a status, changes none of what
/// was written; nor do we.
pub(super) fn changed_by(finding: &DriftFinding, live: &Value, (kept, ignored): (&Value, &Ignored)) -> Option<String> {
    let mut others = others(live);
    others.sort_by_key(|(_, time)| Reverse(*time));
    let last = others.first()?.0;
    let DriftFinding::Different(found) = finding else { return Some(last.to_owned()) };
    let manages = |manager: &str| {
        let mut ignored = ignored.clone();
        ignored.managers.insert(manager.to_owned());
        drift(kept, live, &ignored).len() < found.len()
    };
    let mut asked = BTreeSet::new();
    let distinct = others.iter().map(|(manager, _)| *manager).filter(|manager| asked.insert(*manager));
    let found = distinct.take(MOST_ASKED).find(|manager| manages(manager));
    Some(found.unwrap_or(last).to_owned())
}

/// The other managers of an object itself, each with the time of its last change.
fn others(live: &Value) -> Vec<(&str, Option<&str>)> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let others = entries.into_iter().flatten().filter_map(|entry| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let is_whole = text("subresource").is_none_or(str::is_empty);
        let manager = text("manager").filter(|manager| is_whole && *manager != OWN)?;
        Some((manager, text("time")))
    });
    others.collect()
}

#[cfg(test)]
mod tests {
    use orangery_proposal::overlay::Drift;
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, second: u32, fields: Value) -> Value {
        json!({"manager": manager, "time": format!("2026-01-01T00:00:{second:02}Z"), "fieldsV1": fields})
    }

    fn changed(data: &Value, entries: &[Value]) -> Option<String> {
        let kept = json!({"data": {"k": "v"}});
        let live = json!({"metadata": {"managedFields": entries}, "data": data});
        let ignored = Ignored::default();
        let finding = match drift(&kept, &live, &ignored) {
            none if none.is_empty() => DriftFinding::BeingDeleted,
            found => DriftFinding::Different(found),
        };
        changed_by(&finding, &live, (&kept, &ignored))
    }

    #[test]
    fn c_60_the_manager_of_what_differs_is_named_and_not_the_one_that_was_at_work_last() {
        let theirs = || entry("hand", 1, json!({"f:data": {"f:k": {}}}));
        let elsewhere = || entry("scaler", 2, json!({"f:data": {"f:other": {}}}));
        let mut status = entry("controller", 3, json!({"f:data": {"f:k": {}}}));
        status["subresource"] = json!("status");
        let own = entry("orangery", 4, json!({"f:data": {"f:k": {}}}));
        let all = [theirs(), elsewhere(), status.clone(), own.clone()];
        let different = json!({"k": "theirs", "other": "x"});
        assert_eq!(changed(&different, &all).as_deref(), Some("hand"));
        let newer = entry("newer", 5, json!({"f:data": {"f:k": {}}}));
        assert_eq!(changed(&different, &[theirs(), newer, elsewhere()]).as_deref(), Some("newer"));
        // Nobody manages what is not there.
        let without = [entry("hand", 1, json!({"f:data": {"f:more": {}}})), elsewhere()];
        assert_eq!(changed(&json!({"other": "x"}), &without).as_deref(), Some("scaler"));
        assert_eq!(changed(&json!({"k": "v"}), &all).as_deref(), Some("scaler"), "it is being deleted");
        assert_eq!(changed(&different, &[status, own]), None);
        let missing = DriftFinding::Different(vec![Drift::Missing("/data/k".to_owned())]);
        assert_eq!(changed_by(&missing, &json!({}), (&json!({}), &Ignored::default())), None);
    }

    #[test]
    fn c_295_limits_drift_so_many_managers_are_asked_and_not_all_of_them() {
        let of = |before: u32| {
            let newer = (0..before).map(|at| entry(&format!("m{at}"), 10 + at, json!({"f:data": {"f:other": {}}})));
            let all: Vec<Value> = newer.chain([entry("hand", 1, json!({"f:data": {"f:k": {}}}))]).collect();
            changed(&json!({"k": "theirs"}), &all)
        };
        assert_eq!(of(7).as_deref(), Some("hand"));
        assert_eq!(of(8).as_deref(), Some("m7"), "the one that was at work last");
        let finalizers =
            |from: u32| -> Value { (from..from + 8_000).map(|at| json!(format!("example.org/{at}"))).collect() };
        let managers: Vec<Value> =
            (0..5_000).map(|at| entry(&format!("m{at}"), 1, json!({"f:metadata": {}}))).collect();
        let object = |from: u32, managers: &[Value]| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": finalizers(from), "managedFields": managers}});
        let (kept, live, begun) = (object(0, &[]), object(4_000, &managers), std::time::Instant::now());
        let finding = DriftFinding::Different(drift(&kept, &live, &Ignored::default()));
        assert!(changed_by(&finding, &live, (&kept, &Ignored::default())).is_some());
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    }
}
