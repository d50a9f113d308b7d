use super::*;
use crate::FileSystem;
use orangery_core::name::{JobId, Kind, Namespace};

mod edges;

const SCOPE: RecordWriter<'static> = RecordWriter {
    namespace: &Namespace::from_static("ns"),
    installation: "m",
    parent: None,
    job: &JobId::from_static("j"),
};

fn map(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

fn definitions() -> Vec<ExportDefinition> {
    vec![
        ExportDefinition { name: "e".to_owned(), kind: ExportKind::Data { schema: json!({"type": "string"}) } },
        ExportDefinition { name: "t".to_owned(), kind: ExportKind::Target { target_type: "x/cluster".to_owned() } },
    ]
}

fn checked(exports: Value) -> Result<(Value, Vec<String>), ExportError> {
    let files = FileSystem::default();
    let schemas = Schemas { local_types: &BTreeMap::new(), files: &files, resources: &BTreeMap::new() };
    let mut exports = map(exports);
    let dropped = check(&definitions(), &mut exports, &schemas, &SCOPE)?;
    Ok((Value::Object(exports), dropped))
}

fn listed(json: Value) -> ExportBindings {
    serde_json::from_value(json).unwrap()
}

#[test]
fn ins_40_export_executions_see_everything_under_values_and_at_the_top() {
    let data = BTreeMap::from([("d".to_owned(), json!(1))]);
    let targets = BTreeMap::from([("t".to_owned(), json!({"kind": "Target"}))]);
    let parts = json!({"deployitems": {"item": null}, "dataobjects": {"d": 1}, "targets": {"t": {"kind": "Target"}}});
    let mut expected = map(parts.clone());
    expected.insert("values".to_owned(), parts);
    assert_eq!(inputs(Some(json!({"item": null})), data, targets), expected);
    assert_eq!(inputs(None, BTreeMap::new(), BTreeMap::new())["deployitems"], json!({}));
}

#[test]
fn what_the_blueprint_does_not_define_is_dropped_and_told() {
    let exports = json!({"zzz": 1, "e": "v", "aaa": 2});
    assert_eq!(checked(exports), Ok((json!({"e": "v"}), vec!["aaa".to_owned(), "zzz".to_owned()])));
    assert_eq!(checked(json!({})), Ok((json!({}), Vec::new())));
}

#[test]
fn values_follow_the_blueprint_s_schema_and_target_types() {
    assert_eq!(
        checked(json!({"e": 5})).unwrap_err().to_string(),
        "data export \"e\" of installation ns/m: the value does not follow the schema: at /: value is not of type \"string\", found number"
    );
    let target = json!({"type": "x/cluster", "config": {}});
    assert_eq!(checked(json!({"t": target})), Ok((json!({"t": target}), Vec::new())));
    assert_eq!(
        checked(json!({"t": {"type": "x/other"}})).unwrap_err().to_string(),
        "target export \"t\" of installation ns/m is of type \"x/other\", and the blueprint declares x/cluster"
    );
    assert_eq!(
        checked(json!({"t": "text"})).unwrap_err().to_string(),
        "target export \"t\" of installation ns/m is no target: expected an object, found a text; answer {type, config} or {type, secretRef}"
    );
}

/// The exports of `tests/golden/data-mappings`.
#[test]
fn ins_42_listed_exports_are_the_objects_recorded_from_the_original() {
    let exports = listed(json!({"data": [{"name": "e", "dataRef": "e-out"}, {"name": "mapped", "dataRef": "m-out"}]}));
    let values = map(json!({"e": "pre-x", "mapped": {"from": "pre-x-suffix"}, "unlisted": 1}));
    let record = |key: &str, data: Value, hash: &str| Record {
        name: key.into(),
        context: String::new(),
        source: "Inst.m".to_owned(),
        purpose: Some(Purpose::Export),
        key: key.to_owned(),
        place: None,
        job: "j".into(),
        hash: hash.to_owned(),
        content: RecordContent::Data(data),
    };
    assert_eq!(
        records(&exports, &values, &SCOPE),
        Ok(vec![
            record("e-out", json!("pre-x"), "c9c6985bda49781ffc66d2f8766ca9ac75bc3019"),
            record("m-out", json!({"from": "pre-x-suffix"}), "feace104181cdfcd9617d9f4be1a35b2d66d8da0"),
        ])
    );
}

#[test]
fn exported_targets_are_made_from_their_templates() {
    let exports = listed(json!({"targets": [{"name": "t", "target": "out"}]}));
    let content = |template: Value| {
        let records = records(&exports, &map(json!({"t": template})), &SCOPE).unwrap();
        let [Record { content: RecordContent::Target(content), name, .. }] = records.as_slice() else {
            panic!("one target")
        };
        assert_eq!(name, "out");
        content.clone()
    };
    let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    assert_eq!(
        content(json!({"type": "x/c", "config": {"k": 1}, "labels": {"l": "a"}, "annotations": {"n": "b"}})),
        TargetContent {
            spec: json!({"type": "x/c", "config": {"k": 1}}),
            labels: one("l", "a"),
            annotations: one("n", "b"),
            original: None
        }
    );
    let spec = |template: Value| content(template).spec;
    let secret = json!({"type": "x/c", "secretRef": {"name": "s", "key": "k"}});
    assert_eq!(spec(secret.clone()), secret);
    assert_eq!(
        spec(json!({"type": "x/c", "secretRef": {"name": "s"}})),
        json!({"type": "x/c", "secretRef": {"name": "s"}})
    );
    assert_eq!(spec(json!({"type": "x/c", "configuration": {"k": 1}})), json!({"type": "x/c", "config": {"k": 1}}));
}

#[test]
fn a_listed_export_without_value_fails() {
    let message = |exports: Value| records(&listed(exports), &Map::new(), &SCOPE).unwrap_err().to_string();
    assert_eq!(
        message(json!({"data": [{"name": "e", "dataRef": "x"}]})),
        "data export \"e\" of installation ns/m has no value; let an exportExecution of the blueprint answer it under `exports`, or remove it from spec.exports"
    );
    assert!(message(json!({"targets": [{"name": "t", "target": "x"}]})).starts_with("target export \"t\""));
}

/// Recorded in `tests/golden/export-conflict-roots`.
#[test]
fn c_100_an_object_of_another_installation_or_a_user_is_not_overwritten() {
    let record = SCOPE.record(Purpose::Export, "k", None, RecordContent::Data(json!(1)));
    let of = |owner, is_export| may_write(&record, Some(ExportOccupant { owner, is_export }), &SCOPE);
    assert_eq!(may_write(&record, None, &SCOPE), Ok(()));
    assert_eq!([of(Some("m"), true), of(Some("m"), false), of(None, true)], [Ok(()), Ok(()), Ok(())]);
    let users = of(None, false).unwrap_err();
    assert_eq!(
        (users.reason(), users.to_string().as_str()),
        (
            "ExportConflict",
            "DataObject k exists already and was exported by no installation, so installation ns/m does not overwrite it; rename the \
             export, or delete the object"
        )
    );
    let error = of(Some("one"), true).unwrap_err();
    assert_eq!(error.reason(), "ExportConflict");
    assert_eq!(
        error.to_string(),
        "DataObject k of installation ns/m belongs to installation one, which exports it too; rename one of the exports"
    );
}

#[test]
fn every_error_has_its_word() {
    let text = str::to_owned;
    let installation = || text("ns/m");
    let decode = orangery_core::lenient::DecodeError { path: text("type"), reason: text("expected a text") };
    let faults = vec![text("at /: x")];
    let cases = [
        (ExportError::Missing { sort: "data", name: text("e"), installation: installation() }, "ExportNotDefined"),
        (
            ExportError::Schema {
                name: text("e"),
                installation: installation(),
                source: SchemaError::Value { faults },
            },
            "SchemaValidationFailed",
        ),
        (
            ExportError::Target { name: text("e"), installation: installation(), source: decode },
            "SchemaValidationFailed",
        ),
        (
            ExportError::TargetType {
                name: text("e"),
                installation: installation(),
                expected: text("a/b"),
                found: text("c/d"),
            },
            "SchemaValidationFailed",
        ),
        (
            ExportError::ForeignObject {
                kind: Kind::from_static("Target"),
                object: text("t"),
                installation: installation(),
                owner: text("other"),
            },
            "ExportConflict",
        ),
    ];
    for (error, reason) in cases {
        assert_eq!(error.reason(), reason);
        assert!(error.to_string().contains("installation ns/m"), "{error}");
    }
}

#[test]
fn children_export_into_the_context_of_their_parent() {
    let exports =
        listed(json!({"targets": [{"name": "t", "target": "out"}], "data": [{"name": "e", "dataRef": "#global"}]}));
    let values = map(json!({"t": {"type": "x/c", "config": {}}, "e": 1}));
    let scope = RecordWriter { parent: Some("up"), ..SCOPE };
    let display: Vec<(String, String, String)> = records(&exports, &values, &scope)
        .unwrap()
        .into_iter()
        .map(|record| (record.name.into(), record.context, record.key))
        .collect();
    let text = str::to_owned;
    assert_eq!(
        display,
        [
            (text("global"), text("Inst.up"), text("global")),
            (orangery_core::name::object_name("Inst.up", "out").into(), text("Inst.up"), text("out")),
        ]
    );
}

#[test]
fn a_mapped_export_is_not_checked_against_the_blueprint() {
    let exports = listed(json!({"data": [{"name": "e", "dataRef": "x"}]}));
    let records = records(&exports, &map(json!({"e": 5})), &SCOPE).unwrap();
    assert_eq!(records[0].content, RecordContent::Data(json!(5)));
}
