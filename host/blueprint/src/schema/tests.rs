use serde_json::json;

use super::*;
use crate::FileSystem;

mod bombs;
mod edges;

fn check(schema: Value, value: Value) -> Result<(), SchemaError> {
    let local_types = BTreeMap::from([
        ("port".to_owned(), json!({"type": "integer", "maximum": 65535})),
        ("server".to_owned(), json!({"type": "object", "properties": {"port": {"$ref": "local://port"}}})),
        ("loop".to_owned(), json!({"items": {"$ref": "local://loop"}})),
        ("parts".to_owned(), json!({"definitions": {"name": {"type": "string"}}})),
    ]);
    let files =
        FileSystem::parse(&json!({"schemas": {"a.json": "{\"$ref\": \"local://port\"}", "bad.json": "{"}})).unwrap();
    Schemas { local_types: &local_types, files: &files, resources: &BTreeMap::new() }.check(&schema, &value)
}

#[track_caller]
fn message_of(schema: Value, value: Value, expected: &str) {
    assert_eq!(check(schema, value).unwrap_err().to_string(), expected);
}

#[test]
fn values_that_follow_the_schema_pass() {
    assert_eq!(check(json!({"type": "string"}), json!("x")), Ok(()));
    assert_eq!(check(json!(true), json!(null)), Ok(()));
    let recorded = json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object"});
    assert_eq!(check(recorded, json!({})), Ok(()));
}

#[test]
fn faults_name_the_place_and_the_sort_and_never_the_value() {
    message_of(
        json!({"type": "string"}),
        json!(5),
        "the value does not follow the schema: at /: value is not of type \"string\", found number",
    );
    let schema = json!({"type": "object", "required": ["a"], "properties": {"b": {"type": "array", "items": {"type": "integer"}}, "c": {"enum": ["x"]}}});
    message_of(
        schema,
        json!({"b": [1, "secret-1"], "c": "secret-2"}),
        "the value does not follow the schema: at /: \"a\" is a required property; at /b/1: value is not of type \"integer\", found string; at /c: value is not one of \"x\"",
    );
    let SchemaError::Value { faults } =
        check(json!({"items": {"type": "null"}}), json!([1, 2, 3, 4, 5, 6, 7])).unwrap_err()
    else {
        panic!("the value is at fault");
    };
    assert_eq!(faults.len(), MOST_FAULTS);
}

#[test]
fn an_invalid_schema_is_the_blueprint_s_fault() {
    let SchemaError::Schema { .. } = check(json!({"type": "strin"}), json!("x")).unwrap_err() else {
        panic!("the schema is at fault");
    };
    let draft_4 = json!({"type": "number", "maximum": 5, "exclusiveMaximum": true});
    assert_eq!(check(draft_4.clone(), json!(4)), Ok(()));
    assert!(check(draft_4, json!(5)).is_err());
}

#[test]
fn references_of_our_schemes_are_put_in_place() {
    let server = json!({"$ref": "local://server", "dropped": true});
    assert_eq!(check(server.clone(), json!({"port": 80})), Ok(()));
    message_of(
        server,
        json!({"port": "http"}),
        "the value does not follow the schema: at /port: value is not of type \"integer\", found string",
    );
    assert_eq!(check(json!({"$ref": "blueprint://schemas/a.json"}), json!(80)), Ok(()));
    assert!(check(json!({"$ref": "blueprint://schemas/a.json"}), json!("x")).is_err());
    let part = json!({"$ref": "local://parts#/definitions/name"});
    assert_eq!(check(part.clone(), json!("x")), Ok(()));
    assert!(check(part, json!(1)).is_err());
    let inside = json!({"definitions": {"n": {"type": "number"}}, "items": {"$ref": "#/definitions/n"}});
    assert_eq!(check(inside.clone(), json!([1])), Ok(()));
    assert!(check(inside, json!(["x"])).is_err());
}

#[test]
fn references_that_lead_nowhere_are_told_apart() {
    let refused =
        |reference: &str, told_as: &str| message_of(json!({"items": {"$ref": reference}}), json!([]), told_as);
    refused(
        "local://gone",
        "the schema refers to local://gone, but localTypes of the blueprint has no \"gone\"; known are: loop, parts, port, server",
    );
    refused(
        "blueprint://gone.json",
        "the schema refers to blueprint://gone.json: the blueprint has no file gone.json; it has schemas/a.json, schemas/bad.json",
    );
    assert!(matches!(check(json!({"$ref": "blueprint://schemas/bad.json"}), json!(1)), Err(SchemaError::File { .. })));
    refused(
        "local://parts#/definitions/gone",
        "the schema refers to local://parts#/definitions/gone, but there is no field \"gone\" on that path",
    );
    refused(
        "local://loop",
        "the schema refers to local://loop from within itself; break the circle, or use `#/…` references inside one schema",
    );
    refused(
        "cd://resources/x",
        "the schema refers to cd://resources/x, but the blueprint belongs to no component version; give the installation a componentDescriptor",
    );
    for reference in ["https://example.org/s.json", "file:///etc/passwd", "other.json"] {
        refused(
            reference,
            &format!(
                "the schema refers to {reference}; only local://, blueprint:// and `#` references are followed, nothing is fetched"
            ),
        );
    }
}
