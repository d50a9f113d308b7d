//! Edges of `docs/wire.md` §5.5: order, lenient forms, and what several faults tell first.

use super::*;
use orangery_core::name::Kind;

#[test]
fn records_stand_in_the_order_listed_data_before_targets() {
    let exports = listed(json!({
        "data": [{"name": "z", "dataRef": "z-out"}, {"name": "a", "dataRef": "a-out"}],
        "targets": [{"name": "y", "target": "y-out"}, {"name": "b", "target": "b-out"}],
    }));
    let values = map(json!({"a": 1, "z": 2, "b": {"type": "x/c"}, "y": {"type": "x/c"}}));
    let names: Vec<String> =
        records(&exports, &values, &SCOPE).unwrap().into_iter().map(|record| record.name.into()).collect();
    assert_eq!(names, ["z-out", "a-out", "y-out", "b-out"]);
}

#[test]
fn a_null_of_data_is_a_value() {
    let exports = listed(json!({"data": [{"name": "e", "dataRef": "x"}]}));
    let records = records(&exports, &map(json!({"e": null})), &SCOPE).unwrap();
    assert_eq!(records[0].content, RecordContent::Data(Value::Null));
}

#[test]
fn target_templates_are_read_whatever_the_case_of_their_fields() {
    let target = json!({"TYPE": "x/cluster", "Config": {"Kept": 1}, "secretref": {"NAME": "s", "key": ""}, "new": 1});
    assert_eq!(checked(json!({"t": target})), Ok((json!({"t": target}), Vec::new())));
    let exports = listed(json!({"targets": [{"name": "t", "target": "out"}]}));
    let records = records(&exports, &map(json!({"t": target})), &SCOPE).unwrap();
    let spec = json!({"type": "x/cluster", "config": {"Kept": 1}, "secretRef": {"name": "s"}});
    assert_eq!(records[0].content, RecordContent::Target(TargetContent { spec, ..TargetContent::default() }));
}

#[test]
fn wrong_forms_of_a_listed_target_are_told_with_the_place() {
    let exports = listed(json!({"targets": [{"name": "t", "target": "out"}]}));
    let message = |target: Value| records(&exports, &map(json!({"t": target})), &SCOPE).unwrap_err().to_string();
    for (target, place) in [
        (json!(["secret"]), "expected an object, found a list"),
        (json!({"type": 5}), "type: expected a text; write it in quotes, found a number"),
        (json!({"labels": {"l": true}}), "labels.l: expected a text; write it in quotes, found true or false"),
        (json!({"secretRef": "secret"}), "secretRef: expected an object, found a text"),
    ] {
        let expected = format!(
            "target export \"t\" of installation ns/m is no target: {place}; answer {{type, config}} or {{type, secretRef}}"
        );
        assert_eq!(message(target), expected);
    }
}

#[test]
fn the_first_defined_export_at_fault_is_told() {
    let both = json!({"t": "text", "e": 5});
    assert!(matches!(checked(both), Err(ExportError::Schema { name, .. }) if name == "e"));
}

#[test]
fn a_foreign_target_is_told_as_target() {
    let content = RecordContent::Target(TargetContent::default());
    let record = SCOPE.record(Purpose::Export, "k", None, content);
    let error = ExportError::ForeignObject {
        kind: Kind::from_static("Target"),
        object: "k".to_owned(),
        installation: "ns/m".to_owned(),
        owner: "one".to_owned(),
    };
    assert_eq!(may_write(&record, Some(ExportOccupant { owner: Some("one"), is_export: true }), &SCOPE), Err(error));
}
