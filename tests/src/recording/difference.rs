//! Where objects differ from those that are expected: nothing may be missing, and nothing too much.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The phases of objects, called by their kind and stable name, in order.
pub type Phases = BTreeMap<String, Vec<String>>;

/// An expected value that anything may stand for which is there.
pub const ANY: &str = "<any>";

/// The differences, one line each under the object that has them; empty when there are none.
pub fn differences(expected: &[Value], found: &[Value]) -> Vec<String> {
    let titles: BTreeSet<(&str, &str)> = expected.iter().chain(found).map(title).collect();
    let of = |objects: &[Value], wanted| objects.iter().find(|object| title(object) == wanted).cloned();
    let mut lines = Vec::new();
    for wanted in titles {
        let (kind, name) = wanted;
        match (of(expected, wanted), of(found, wanted)) {
            (Some(expected), Some(found)) => {
                let mut fields = Vec::new();
                compare(&expected, &found, "", &mut fields);
                if !fields.is_empty() {
                    lines.push(format!("{kind} {name}"));
                    lines.extend(fields.into_iter().map(|field| format!("  {field}")));
                }
            }
            (Some(_), None) => lines.push(format!("{kind} {name} is missing")),
            (None, found) => lines.push(format!("{kind} {name} is too much: {}", found.unwrap_or_default())),
        }
    }
    lines
}

/// In these a job has ended, or all of the object.
const ENDS: [&str; 4] = ["Succeeded", "Failed", "DeleteFailed", "gone"];

/// In these an Installation and an Execution wait for what is below them.
const WAITS: [&str; 2] = ["Progressing", "Deleting"];

/// What has to be found of the phases that were recorded of an object.
fn lower_bound(of: &str, recorded: &[String]) -> Vec<String> {
    let waits = !of.starts_with("DeployItem ");
    let is_required = |phase: &&String| ENDS.contains(&phase.as_str()) || waits && WAITS.contains(&phase.as_str());
    let mut required: Vec<String> = recorded.iter().filter(is_required).cloned().collect();
    required.dedup();
    required
}

/// Where the phases of objects differ from those that were recorded. A phase is written where something waits or ends, so that
/// what is found is a part of what was recorded, in the same order, which has each end and each wait for others; each object is in
/// both.
pub fn of_phases(recorded: &Phases, found: &Phases) -> Vec<String> {
    let objects: BTreeSet<&String> = recorded.keys().chain(found.keys()).collect();
    let line = |of: &String| match (recorded.get(of), found.get(of)) {
        (Some(recorded), Some(found)) => {
            let required = lower_bound(of, recorded);
            if !is_part(found, recorded) {
                Some(format!("{of}: {found:?} is no part of {recorded:?}"))
            } else if !is_part(&required, found) {
                Some(format!("{of}: {found:?} has not all of {required:?}"))
            } else {
                None
            }
        }
        (Some(_), None) => Some(format!("{of} is missing")),
        (None, found) => Some(format!("{of} is too much: {found:?}")),
    };
    objects.into_iter().filter_map(line).collect()
}

/// Whether all of one is in the other, in the same order.
pub fn is_part(part: &[String], whole: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|phase| rest.any(|of| of == phase))
}

fn title(object: &Value) -> (&str, &str) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (text("/kind"), text("/metadata/name"))
}

/// One field of a map, as a part of a JSON pointer.
pub fn step(field: &str) -> String {
    format!("/{}", field.replace('~', "~0").replace('/', "~1"))
}

fn compare(expected: &Value, found: &Value, path: &str, lines: &mut Vec<String>) {
    match (expected, found) {
        (Value::String(any), _) if any == ANY => {}
        (Value::Object(expected), Value::Object(found)) => compare_fields(expected, found, path, lines),
        (Value::Array(entries), Value::Array(present)) if entries.len() == present.len() => {
            for (index, (expected, found)) in entries.iter().zip(present).enumerate() {
                compare(expected, found, &format!("{path}/{index}"), lines);
            }
        }
        _ if expected == found => {}
        _ => lines.push(format!("{path}: expected {expected}, found {found}")),
    }
}

fn compare_fields(expected: &Map<String, Value>, found: &Map<String, Value>, path: &str, lines: &mut Vec<String>) {
    let fields: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    for field in fields {
        let path = format!("{path}{}", step(field));
        match (expected.get(field), found.get(field)) {
            (Some(expected), Some(found)) => compare(expected, found, &path, lines),
            (Some(expected), None) => lines.push(format!("{path}: expected {expected}, found nothing")),
            (None, found) => lines.push(format!("{path}: expected nothing, found {}", found.unwrap_or(&Value::Null))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, data: Value) -> Value {
        json!({"kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    }

    #[test]
    fn nothing_may_be_missing_and_nothing_too_much() {
        let expected = [
            object("a", json!({"same": 1, "less": 1, "other": [1, 2], "a/b": 1, "any": ANY, "null": null})),
            object("b", json!({})),
        ];
        let found = [
            object("a", json!({"same": 1, "more": null, "other": [1], "a/b": 2, "any": {}, "null": null})),
            object("c", json!({})),
        ];
        assert_eq!(
            differences(&expected, &found),
            [
                "ConfigMap a",
                "  /data/a~1b: expected 1, found 2",
                "  /data/less: expected 1, found nothing",
                "  /data/more: expected nothing, found null",
                "  /data/other: expected [1,2], found [1]",
                "ConfigMap b is missing",
                r#"ConfigMap c is too much: {"data":{},"kind":"ConfigMap","metadata":{"name":"c"}}"#,
            ]
        );
        assert_eq!(differences(&found, &found), Vec::<String>::new());
    }
    #[test]
    fn phases_are_a_part_in_the_same_order_of_the_same_objects() {
        let phases = |rows: &[(&str, &str)]| -> Phases {
            let row = |(of, phases): &(&str, &str)| ((*of).to_owned(), phases.split(' ').map(str::to_owned).collect());
            rows.iter().map(row).collect()
        };
        let recorded = phases(&[("a", "Init Progressing Completing Succeeded gone"), ("b", "Init")]);
        let same = phases(&[("a", "Progressing Succeeded gone"), ("b", "Init")]);
        assert_eq!(of_phases(&recorded, &same), Vec::<String>::new());
        let other = phases(&[("a", "Succeeded Progressing"), ("c", "Init")]);
        assert_eq!(
            of_phases(&recorded, &other),
            [
                r#"a: ["Succeeded", "Progressing"] is no part of ["Init", "Progressing", "Completing", "Succeeded", "gone"]"#,
                "b is missing",
                r#"c is too much: Some(["Init"])"#,
            ]
        );
        let less = phases(&[("a", "Succeeded gone"), ("b", "Init")]);
        let line = r#"a: ["Succeeded", "gone"] has not all of ["Progressing", "Succeeded", "gone"]"#;
        assert_eq!(of_phases(&recorded, &less), [line]);
        let item = phases(&[("DeployItem a", "Init Progressing Succeeded Init Succeeded")]);
        assert_eq!(of_phases(&item, &phases(&[("DeployItem a", "Init Succeeded")])), [""; 0]);
        assert_eq!(of_phases(&item, &phases(&[("DeployItem a", "Init Progressing")])).len(), 1);
        let again = phases(&[("a", "Progressing Succeeded Progressing"), ("b", "Init")]);
        assert_eq!(of_phases(&recorded, &again).len(), 1);
    }
}
