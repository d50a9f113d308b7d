use serde_json::{Value, json};

use super::*;

fn imports(json: Value) -> Imports {
    serde_json::from_value(json).unwrap()
}

fn exports(json: Value) -> Exports {
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
    assert_eq!(check(&of, &Exports::default()), Ok(()));
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
    assert_eq!(check(&Imports::default(), &both), Ok(()));
}
