//! Edges of `docs/wire.md` §4.8: nested references, fragments, formats, and how many faults are told.

use super::*;

#[test]
fn every_fault_up_to_the_limit_is_told_and_no_more() {
    let schema = json!({"items": {"type": "null"}});
    for length in [1, MOST_FAULTS, MOST_FAULTS + 1] {
        let expected: Vec<String> = (0..length.min(MOST_FAULTS))
            .map(|index| format!("at /{index}: value is not of type \"null\", found boolean"))
            .collect();
        let value: Value = (0..length).map(|_| json!(true)).collect();
        assert_eq!(check(schema.clone(), value), Err(SchemaError::Value { faults: expected }), "{length}");
    }
}

#[test]
fn the_sort_found_is_told_for_every_sort() {
    let cases = [
        (json!(null), "null"),
        (json!(true), "boolean"),
        (json!(1.5), "number"),
        (json!("secret"), "string"),
        (json!(["secret"]), "array"),
        (json!({"secret": 1}), "object"),
    ];
    for (value, sort) in cases {
        let wanted = if sort == "null" { "string" } else { "null" };
        message_of(
            json!({"type": wanted}),
            value,
            &format!("the value does not follow the schema: at /: value is not of type \"{wanted}\", found {sort}"),
        );
    }
}

#[test]
fn references_are_followed_wherever_a_schema_stands() {
    let port = || json!({"$ref": "local://port"});
    let schemas = [
        (json!({"properties": {"p": port()}}), json!({"p": 80}), json!({"p": "x"})),
        (json!({"items": port()}), json!([80]), json!(["x"])),
        (json!({"anyOf": [port(), {"type": "null"}]}), json!(null), json!("x")),
        (json!({"allOf": [port(), {"minimum": 1}]}), json!(1), json!(0)),
        (json!({"not": port()}), json!("x"), json!(80)),
        (json!({"additionalProperties": port()}), json!({"any": 1}), json!({"any": []})),
    ];
    for (schema, good, bad) in schemas {
        assert_eq!(check(schema.clone(), good), Ok(()), "{schema}");
        assert!(matches!(check(schema.clone(), bad), Err(SchemaError::Value { .. })), "{schema}");
    }
}

#[test]
fn one_type_may_be_referred_to_several_times() {
    let schema = json!({"properties": {"a": {"$ref": "local://port"}, "b": {"$ref": "local://port"}}});
    assert_eq!(check(schema.clone(), json!({"a": 1, "b": 2})), Ok(()));
    message_of(
        schema,
        json!({"a": 1, "b": 65536}),
        "the value does not follow the schema: at /b: value is greater than the maximum of 65535",
    );
}

#[test]
fn slashes_around_a_fragment_change_nothing() {
    for reference in ["local://parts#definitions/name", "local://parts#/definitions/name/"] {
        assert_eq!(check(json!({"$ref": reference}), json!("x")), Ok(()), "{reference}");
        assert!(check(json!({"$ref": reference}), json!(1)).is_err(), "{reference}");
    }
    for reference in ["local://port#", "local://port#/"] {
        assert_eq!(check(json!({"$ref": reference}), json!(1)), Ok(()), "{reference}");
    }
}

#[test]
fn a_property_named_ref_is_no_reference() {
    let schema = json!({"properties": {"$ref": {"type": "string"}}});
    assert_eq!(check(schema.clone(), json!({"$ref": "local://gone"})), Ok(()));
    assert!(check(schema, json!({"$ref": 1})).is_err());
}

#[test]
fn formats_are_checked() {
    let schema = json!({"type": "string", "format": "ipv4"});
    assert_eq!(check(schema.clone(), json!("10.0.0.1")), Ok(()));
    assert!(matches!(check(schema, json!("10.0.0.256")), Err(SchemaError::Value { .. })));
}

#[test]
fn without_local_types_the_message_says_none() {
    let files = FileSystem::default();
    let schemas = Schemas { local_types: &BTreeMap::new(), files: &files, resources: &BTreeMap::new() };
    let error =
        SchemaError::UnknownType { reference: "local://a".to_owned(), name: "a".to_owned(), known: "none".to_owned() };
    assert_eq!(schemas.check(&json!({"$ref": "local://a"}), &json!(1)), Err(error));
}

/// As the validator of the original, whose draft is all of 4 to 7 at once.
#[test]
fn keywords_of_several_drafts_hold_in_one_schema() {
    let mixed = || json!({"maximum": 5, "exclusiveMaximum": true, "minimum": 1, "exclusiveMinimum": false, "not": {"const": 3}});
    for good in [1, 2, 4] {
        assert_eq!(check(mixed(), json!(good)), Ok(()), "{good}");
    }
    for bad in [0, 3, 5] {
        assert!(check(mixed(), json!(bad)).is_err(), "{bad}");
    }
    // Data that looks like a schema is data.
    let data = json!({"maximum": 5, "exclusiveMaximum": true});
    assert_eq!(check(json!({"enum": [data]}), data.clone()), Ok(()));
}

/// Keywords that came after draft 7 are ignored, as is a `$schema` that nobody knows.
#[test]
fn newer_keywords_and_unknown_drafts_change_nothing() {
    let newer = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "type": "object", "unevaluatedProperties": false, "dependentRequired": {"a": ["b"]},
        "properties": {"c": {"$ref": "#/$defs/text"}}, "$defs": {"text": {"type": "string"}},
    });
    assert_eq!(check(newer.clone(), json!({"a": 1, "z": 2, "c": "text"})), Ok(()));
    assert!(check(newer, json!({"c": 1})).is_err());
    assert_eq!(check(json!({"$schema": "https://example.org/mine", "type": "string"}), json!("a")), Ok(()));
}
