use serde_json::{Value, json};

use super::*;

mod laws;

fn imports(json: Value) -> ImportBindings {
    serde_json::from_value(json).unwrap()
}

fn exports(json: Value) -> ExportBindings {
    serde_json::from_value(json).unwrap()
}

#[track_caller]
fn refuses(of: Value, path: &str, fault: BindingFault) {
    let imports = imports(of["imports"].as_object().map_or(json!({}), |map| Value::Object(map.clone())));
    let exports = exports(of["exports"].as_object().map_or(json!({}), |map| Value::Object(map.clone())));
    assert_eq!(check(&imports, &exports), Err(BindingError { path: path.to_owned(), fault }), "{of}");
}

#[test]
fn every_source_is_known_by_its_field() {
    let of = imports(json!({
        "data": [
            {"name": "a", "dataRef": "k"},
            {"name": "b", "secretRef": {"name": "s", "key": "x"}},
            {"name": "c", "configMapRef": {"name": "m"}},
        ],
        "targets": [
            {"name": "d", "target": "t"},
            {"name": "e", "targets": []},
            {"name": "f", "targetListRef": "l"},
            {"name": "g", "targetMap": {}},
            {"name": "h", "targetMapRef": "m"},
        ],
    }));
    let secret = KeyReference { name: "s".to_owned(), key: "x".to_owned() };
    let map = KeyReference { name: "m".to_owned(), key: String::new() };
    assert_eq!(
        of.data.iter().map(DataImport::source).collect::<Vec<_>>(),
        [Some(DataSource::DataObject("k")), Some(DataSource::Secret(&secret)), Some(DataSource::ConfigMap(&map))]
    );
    assert_eq!(
        of.targets.iter().map(TargetImport::source).collect::<Vec<_>>(),
        [
            Some(TargetSource::Target("t")),
            Some(TargetSource::List(&[])),
            Some(TargetSource::ListOf("l")),
            Some(TargetSource::Map(&BTreeMap::new())),
            Some(TargetSource::MapOf("m")),
        ]
    );
    assert_eq!(check(&of, &ExportBindings::default()), Ok(()));
}

#[test]
fn explicit_empty_lists_and_maps_survive() {
    for json in [json!({"name": "e", "targets": []}), json!({"name": "g", "targetMap": {}}), json!({"name": "x"})] {
        let import: TargetImport = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(import).unwrap(), json);
    }
}

#[test]
fn an_import_has_exactly_one_source() {
    let none = json!({"imports": {"data": [{"name": "a"}]}});
    refuses(none, "imports.data[0]", BindingFault::NotOne(DATA_SOURCES));
    let two = json!({"imports": {"data": [{"name": "a", "dataRef": "k", "secretRef": {"name": "s"}}]}});
    refuses(two, "imports.data[0]", BindingFault::NotOne(DATA_SOURCES));
    let two = json!({"imports": {"targets": [{"name": "a", "target": "t", "targets": []}]}});
    refuses(two, "imports.targets[0]", BindingFault::NotOne(TARGET_SOURCES));
}

#[test]
fn names_and_references_are_set_and_unique() {
    let twice =
        json!({"imports": {"data": [{"name": "a", "dataRef": "k"}], "targets": [{"name": "a", "target": "t"}]}});
    refuses(twice, "imports.targets[0].name", BindingFault::Duplicate("a".to_owned()));
    refuses(json!({"imports": {"data": [{"dataRef": "k"}]}}), "imports.data[0].name", BindingFault::Empty);
    let list = json!({"imports": {"targets": [{"name": "a", "targets": ["t", ""]}]}});
    refuses(list, "imports.targets[0].targets[1]", BindingFault::Empty);
    let secret = json!({"imports": {"data": [{"name": "a", "secretRef": {"key": "x"}}]}});
    refuses(secret, "imports.data[0].secretRef.name", BindingFault::Empty);
    let map = json!({"imports": {"targets": [{"name": "a", "targetMap": {"Red": "t"}}]}});
    refuses(map, "imports.targets[0].targetMap", BindingFault::MapKey("Red".to_owned()));
    refuses(json!({"exports": {"data": [{"name": "e"}]}}), "exports.data[0].dataRef", BindingFault::Empty);
    refuses(json!({"exports": {"targets": [{"name": "e"}]}}), "exports.targets[0].target", BindingFault::Empty);
    let twice = json!({"exports": {"data": [{"name": "e", "dataRef": "x"}, {"name": "e", "dataRef": "y"}]}});
    refuses(twice, "exports.data[1].name", BindingFault::Duplicate("e".to_owned()));
}

#[test]
fn the_same_export_name_may_stand_for_data_and_a_target() {
    let both = exports(json!({"data": [{"name": "e", "dataRef": "x"}], "targets": [{"name": "e", "target": "x"}]}));
    assert_eq!(check(&ImportBindings::default(), &both), Ok(()));
}

#[test]
fn every_fault_is_one_sentence_with_the_fix() {
    let message = |fault: BindingFault| BindingError { path: "imports.data[0]".to_owned(), fault }.to_string();
    let text = str::to_owned;
    assert_eq!(message(BindingFault::Empty), "imports.data[0]: is empty; set it");
    assert_eq!(
        message(BindingFault::Duplicate(text("a"))),
        "imports.data[0]: \"a\" stands twice; give every entry its own name"
    );
    assert_eq!(
        message(BindingFault::NotOne(DATA_SOURCES)),
        "imports.data[0]: set exactly one of dataRef, secretRef, configMapRef"
    );
    assert_eq!(
        message(BindingFault::NotOne(TARGET_SOURCES)),
        "imports.data[0]: set exactly one of target, targets, targetListRef, targetMap, targetMapRef"
    );
    assert_eq!(
        message(BindingFault::MapKey(text("Red"))),
        "imports.data[0]: \"Red\" cannot be a key; use at most 63 lower-case letters, digits, `-` and `.`, with a letter or digit at both ends"
    );
    assert_eq!(
        message(BindingFault::RootsOnly),
        "imports.data[0]: installation templates import by dataRef only; import the Secret or ConfigMap in the root installation"
    );
}

#[test]
fn map_keys_have_the_form_of_labels() {
    let check = |key: &str| {
        let map = json!({"targets": [{"name": "a", "targetMap": {(key): "t"}}]});
        check(&imports(map), &ExportBindings::default())
    };
    for key in ["a", "0", "red-1.x", &"x".repeat(63)] {
        assert_eq!(check(key), Ok(()), "{key}");
    }
    for key in ["", "-a", "a-", ".a", "a_b", "Ä", &"x".repeat(64)] {
        let fault = BindingFault::MapKey(key.to_owned());
        assert_eq!(check(key), Err(BindingError { path: "imports.targets[0].targetMap".to_owned(), fault }), "{key}");
    }
}

#[test]
fn the_form_is_that_of_the_wire() {
    let wire = json!({
        "data": [
            {"name": "a", "dataRef": "k"},
            {"name": "b", "secretRef": {"name": "s"}},
            {"name": "c", "configMapRef": {"name": "m", "key": "x"}},
        ],
        "targets": [{"name": "d", "targetMapRef": "m"}, {"name": "e", "targetListRef": "l"}],
    });
    assert_eq!(serde_json::to_value(imports(wire.clone())).unwrap(), wire);
    let wire = json!({"data": [{"name": "a", "dataRef": "k"}], "targets": [{"name": "b", "target": "t"}]});
    assert_eq!(serde_json::to_value(exports(wire.clone())).unwrap(), wire);
    assert_eq!(serde_json::to_value(ImportBindings::default()).unwrap(), json!({}));
}
