//! Schemas that are small and would take for ever.

use std::time::{Duration, Instant};

use super::*;

/// More than any of these takes, on the slowest machine.
const SOON: Duration = Duration::from_secs(30);

fn with_types(types: BTreeMap<String, Value>, schema: &Value, value: &Value) -> Result<(), SchemaError> {
    let began = Instant::now();
    let files = FileSystem::parse(&json!({})).unwrap();
    let found = Schemas { local_types: &types, files: &files, resources: &BTreeMap::new() }.check(schema, value);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    found
}

#[test]
fn limits_schema_local_types_that_double_are_refused_before_they_unfold() {
    let twice = |name: String| json!({"allOf": [{"$ref": name}, {"$ref": name}]});
    let mut types: BTreeMap<String, Value> =
        (1..30).map(|level| (format!("t{level}"), twice(format!("local://t{}", level - 1)))).collect();
    types.insert("t0".to_owned(), json!({"type": "string"}));
    assert_eq!(with_types(types.clone(), &json!({"$ref": "local://t29"}), &json!("x")), Err(SchemaError::Unfolded));
    assert_eq!(with_types(types, &json!({"$ref": "local://t5"}), &json!("x")), Ok(()));
    // A long text that is referred to often.
    let long = BTreeMap::from([("t".to_owned(), json!({"title": "x".repeat(50 << 10)}))]);
    let often = json!({"allOf": vec![json!({"$ref": "local://t"}); 1_000]});
    assert_eq!(with_types(long, &often, &json!("x")), Err(SchemaError::Unfolded));
}

#[test]
fn limits_schema_depth_is_bounded_with_references_unfolded() {
    let types: BTreeMap<String, Value> = (0..1_000)
        .map(|level| (format!("t{level}"), json!({"items": {"$ref": format!("local://t{}", level + 1)}})))
        .collect();
    assert_eq!(with_types(types, &json!({"$ref": "local://t0"}), &json!([])), Err(SchemaError::TooDeep));
}

#[test]
fn limits_schema_definitions_that_double_are_refused_before_a_validator_is_built() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let below = |level: usize| json!({"$ref": format!("#/definitions/t{}", level - 1)});
        let part = |level: usize| (format!("t{level}"), json!({keyword: [below(level), below(level)]}));
        let mut definitions: serde_json::Map<String, Value> = (1..40).map(part).collect();
        definitions.insert("t0".to_owned(), json!({"type": "string"}));
        let schema = json!({"definitions": definitions, "$ref": "#/definitions/t39"});
        let found = with_types(BTreeMap::new(), &schema, &json!("x"));
        assert!(matches!(found, Err(SchemaError::Parts { .. })), "{keyword}: {found:?}");
    }
    // A part with a name of its own would have references that count from there.
    let named = json!({"properties": {"a": {"$id": "http://example.org/a", "type": "string"}}});
    assert_eq!(with_types(BTreeMap::new(), &named, &json!({})), Err(SchemaError::Named));
    let honest = json!({"$id": "http://example.org/a", "properties": {"id": {"type": "string"}, "$id": {"enum": [{"id": "x"}]}}});
    assert_eq!(with_types(BTreeMap::new(), &honest, &json!({"id": "x"})), Ok(()));
}

#[test]
fn limits_schema_what_doubles_with_each_level_of_the_value_ends_where_the_steps_do() {
    let schema = json!({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}});
    let deep = (0..60).fold(json!(1), |value, _| json!([value]));
    assert_eq!(with_types(BTreeMap::new(), &schema, &deep), Err(SchemaError::Steps));
    let honest = json!({"properties": {"children": {"items": {"$ref": "#"}}, "enum": {"type": "string"}}});
    let tree = (0..50).fold(json!({}), |value, _| json!({"children": [value, {"enum": "x"}]}));
    assert_eq!(with_types(BTreeMap::new(), &honest, &tree), Ok(()));
    let message = SchemaError::Steps.to_string();
    assert!(
        message.starts_with("checking the value takes more than the 2000000 steps that are allowed; "),
        "{message}"
    );
}

#[test]
fn limits_schema_no_part_hides_where_nothing_counts() {
    for reference in ["#/enum/0", "#/definitions/a/const", "#/default", "#/en%75m/0", "#/properties/x/examples/0"] {
        let schema = json!({"items": {"$ref": reference}, "enum": [{"type": "string"}]});
        let expected = Err(SchemaError::Data { reference: reference.to_owned() });
        assert_eq!(with_types(BTreeMap::new(), &schema, &json!([])), expected, "{reference}");
    }
    for reference in ["#/definitions/enum", "#/properties/default", "#/definitions/a%20b", "#"] {
        let schema = json!({
            "definitions": {"enum": {}, "a b": {}}, "properties": {"default": {}}, "items": {"$ref": reference},
        });
        assert_eq!(with_types(BTreeMap::new(), &schema, &json!([])), Ok(()), "{reference}");
    }
}

#[test]
fn limits_schema_patterns_take_linear_time_and_are_bounded() {
    let schema = json!({"pattern": "^(a+)+$"});
    assert!(matches!(
        with_types(BTreeMap::new(), &schema, &json!(format!("{}b", "a".repeat(100_000)))),
        Err(SchemaError::Value { .. })
    ));
    for pattern in ["^(?=a).*$", r"(a)\1", "(((a{1000}){1000}){1000})"] {
        let found = with_types(BTreeMap::new(), &json!({"pattern": pattern}), &json!("a"));
        assert!(matches!(found, Err(SchemaError::Schema { .. })), "{pattern}: {found:?}");
    }
    let many: Vec<Value> = (0..=MOST_PATTERNS).map(|at| json!({"pattern": format!("a{at}")})).collect();
    let found = with_types(BTreeMap::new(), &json!({"anyOf": many}), &json!("a"));
    assert_eq!(found, Err(SchemaError::Patterns { count: MOST_PATTERNS + 1 }));
    // A class of many letters takes kilobytes, and what one may take all of them share.
    let large = |count: usize| {
        let patterns = (0..count).map(|at| json!({"pattern": format!("^\\p{{L}}{{34}}q{at}$")}));
        with_types(BTreeMap::new(), &json!({"anyOf": patterns.collect::<Vec<_>>()}), &json!("a"))
    };
    assert!(matches!(large(2), Err(SchemaError::Value { .. })));
    assert!(matches!(large(MOST_PATTERNS), Err(SchemaError::Schema { .. })));
}

#[test]
fn limits_schema_reading_patterns_takes_so_many_steps() {
    let check = |pattern: &str, value: &str| with_types(BTreeMap::new(), &json!({"pattern": pattern}), &json!(value));
    let refused = |pattern: &str| match check(pattern, "a") {
        Err(SchemaError::Reading { reason }) => reason,
        other => panic!("{pattern}: {other:?}"),
    };
    assert_eq!(check(r"^\d+\.\d+\.\d+\s*$", "1.2.3 "), Ok(()));
    assert_eq!(check(r"(?i:^[\w.-]+@[\w-]+\.[a-z]+$)", "a@B.C"), Ok(()));
    assert_eq!(check(r"^[^[\]]+\cA$", "x\u{1}"), Ok(()));
    assert_eq!(
        refused(&"a".repeat(5_000)),
        "a regular expression has 5000 bytes, 4096 are allowed; write a shorter one"
    );
    let too_much = "reading its regular expressions takes more than ";
    // Each is written out by itself, and the whole read anew.
    for class in [r"\s", r"\d", r"\W", r"\cA"] {
        assert!(refused(&class.repeat(1_000)).starts_with(too_much), "{class}");
    }
    // Made letter by letter.
    assert!(refused(&format!("(?i:[{}])", r"\p{L}".repeat(800))).starts_with(too_much));
    let named = json!({"patternProperties": {format!("(?i:[{}])", r"\p{L}".repeat(800)): {}}});
    assert!(matches!(with_types(BTreeMap::new(), &named, &json!({})), Err(SchemaError::Reading { .. })));
    // All of a schema together.
    let many: Vec<Value> = (1..10).map(|at| json!({"pattern": format!(r"(?i:[\x00-\x{{10FFFF}}]{{{at}}})")})).collect();
    let found = with_types(BTreeMap::new(), &json!({"anyOf": many}), &json!("a"));
    assert!(matches!(found, Err(SchemaError::Reading { .. })), "{found:?}");
}

/// Definitions `d0` to `d<count>`, each of which is made of the next one.
fn chain(count: usize, link: impl Fn(Value) -> Value, end: Value) -> Value {
    let next = |at: usize| json!({"$ref": format!("#/definitions/d{}", at + 1)});
    let mut definitions: serde_json::Map<String, Value> =
        (0..count).map(|at| (format!("d{at}"), link(next(at)))).collect();
    definitions.insert(format!("d{count}"), end);
    json!({"$ref": "#/definitions/d0", "definitions": definitions})
}

/// A value of so many levels, each in the field `a` of the one above.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |value, _| json!({"a": value}))
}

#[test]
fn limits_schema_so_many_parts_look_at_one_value_in_a_row() {
    let all_of = |part: Value| json!({"allOf": [part]});
    let back = json!({"properties": {"a": {"$ref": "#/definitions/d0"}}});
    let of = |count: usize| with_types(BTreeMap::new(), &chain(count, all_of, back.clone()), &nested(120));
    // The root, two for each link, and the last one.
    let most = (MOST_PARTS_OF_A_VALUE - 2) / 2;
    assert_eq!((of(most), of(most + 1)), (Ok(()), Err(SchemaError::InARow)));
    for circle in [json!({"$ref": "#"}), json!({"not": {"$ref": "#"}}), json!({"dependencies": {"a": {"$ref": "#"}}})] {
        assert_eq!(with_types(BTreeMap::new(), &circle, &json!({"a": 1})), Err(SchemaError::InARow), "{circle}");
    }
    let tree = json!({"properties": {"a": {"$ref": "#"}}});
    assert_eq!(with_types(BTreeMap::new(), &tree, &nested(120)), Ok(()));
}

#[test]
fn limits_schema_has_so_many_levels_with_its_references_unfolded() {
    let in_field = |part: Value| json!({"properties": {"a": part}});
    let of = |count: usize| with_types(BTreeMap::new(), &chain(count, in_field, json!({})), &json!({}));
    // A link is its part, its properties and the reference.
    assert_eq!(of(MOST_SCHEMA_LEVELS / 3 - 1), Ok(()));
    assert_eq!((of(MOST_SCHEMA_LEVELS / 3 + 1), of(5_000)), (Err(SchemaError::Levels), Err(SchemaError::Levels)));
    assert_eq!(
        with_types(BTreeMap::new(), &chain(20_000, |part| part, json!({})), &json!({})),
        Err(SchemaError::Levels)
    );
}

#[test]
fn c_299_limits_schema_lists_count_as_they_unfold() {
    let types = BTreeMap::from([("big".to_owned(), json!({"enum": vec![json!([]); 10_000]}))]);
    let often = json!({"allOf": vec![json!({"$ref": "local://big"}); 1_000]});
    assert_eq!(with_types(types.clone(), &often, &json!("x")), Err(SchemaError::Unfolded));
    let seldom = json!({"allOf": [{"not": {"$ref": "local://big"}}]});
    assert_eq!(with_types(types, &seldom, &json!("x")), Ok(()));
}

#[test]
fn c_299_limits_schema_what_a_value_is_compared_with_and_looked_up_by_takes_steps() {
    let options: Vec<usize> = (0..20_000).collect();
    let names: Vec<String> = options.iter().map(ToString::to_string).collect();
    let each = |of: &dyn Fn(&String) -> Value| -> Value { names.iter().map(|name| (name.clone(), of(name))).collect() };
    let fields: Value = (0..1_000).map(|at| (at.to_string(), json!(1))).collect();
    for (part, one, count) in [
        (json!({"enum": options}), json!(19_999), 10_000),
        (json!({"const": "x".repeat(1 << 20)}), json!("x"), 10_000),
        (json!({"properties": each(&|_| json!({}))}), json!({}), 1_000),
        (json!({"dependencies": each(&|_| json!(["a"]))}), json!({}), 1_000),
        (json!({"patternProperties": {"a": {}, "b": {}, "c": {}, "d": {}}}), fields, 500),
    ] {
        let schema = json!({"items": part});
        let many = Value::Array(vec![one.clone(); count]);
        assert_eq!(with_types(BTreeMap::new(), &schema, &many), Err(SchemaError::Steps), "{}", part.to_string().len());
        let few = with_types(BTreeMap::new(), &schema, &json!([one]));
        assert_ne!(few, Err(SchemaError::Steps));
    }
}

#[test]
fn c_299_limits_schema_a_long_text_is_no_regular_expression() {
    let of = |text: String| with_types(BTreeMap::new(), &json!({"format": "regex"}), &json!(text)).is_ok();
    assert!(of("a".repeat(1024)) && of("(?<a>b)".to_owned()));
    assert!(!of("a".repeat(1025)) && !of("(".to_owned()));
}
