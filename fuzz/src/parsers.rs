//! Parsers and evaluators of what others wrote, each as a fuzzer calls it: bytes in, no answer. What has to hold of every
//! answer is asserted.

use std::collections::BTreeMap;

use orangery_blueprint::{FileSystem, schema::Schemas};
use orangery_core::{
    jsonpath::ParsedPath,
    memory,
    yaml::{self, MOST_ALIASED_BYTES, MOST_YAML_BYTES, MOST_YAML_DEPTH},
};
use orangery_expression::{Expression, Type};
use orangery_ocm::{Descriptor, Normalisation, ResourceKey, ResourceReference};
use serde_json::{Map, Value, json};

/// Calls a parser.
pub type Parser = fn(&[u8]);

/// All parsers by name: that of the target and of the folder of its corpus.
pub const ALL: [(&str, Parser); 8] = [
    ("archive", archive),
    ("descriptor", descriptor),
    ("expression", expression),
    ("json", json_text),
    ("jsonpath", jsonpath),
    ("reference", reference),
    ("schema", schema),
    ("yaml", yaml_text),
];

/// Runs the parser of a name.
pub fn run(name: &str, bytes: &[u8]) {
    let found = ALL.iter().find(|(own, _)| *own == name);
    let (_, parser) = found.unwrap_or_else(|| panic!("there is no parser {name}"));
    parser(bytes);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A YAML document of any sort.
fn yaml_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let decoded = yaml::decode(text);
    let located = yaml::locate(text).map(|located| located.value);
    assert_eq!(decoded, located, "it is the same with places");
    if let Ok(value) = decoded {
        assert!(depth(&value) <= MOST_YAML_DEPTH, "it is too deep");
        assert!(memory::of(&value) <= 2 * (MOST_YAML_BYTES + MOST_ALIASED_BYTES), "it is too large");
    }
    let _ = yaml::documents(text);
}

/// A JSON answer: it is never measured below what it takes.
fn json_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let most = memory::of_json(text);
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        assert!(memory::of(&value) <= most, "{most} is below {}", memory::of(&value));
    }
}

/// A JSONPath over an object with a little of everything.
fn jsonpath(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(path) = ParsedPath::parse(text) else { return };
    let conditions: Vec<Value> =
        (0..50).map(|at| json!({"type": format!("T{at}"), "status": "True", "n": at})).collect();
    let document = json!({
        "a": {"a": {"a": {"a": [1, 2, [3, [4, [5]]]]}}}, "status": {"conditions": conditions}, "list": [0, "x", null, true],
    });
    let _ = path.all(&document);
    let _ = path.one(&document);
}

/// A schema, a line break, and a value; the schema is a local type as well.
fn schema(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (schema, value) = text.split_once('\n').unwrap_or((text, "{}"));
    let (Ok(schema), Ok(value)) = (serde_json::from_str::<Value>(schema), serde_json::from_str::<Value>(value)) else {
        return;
    };
    let types = match schema.get("localTypes").and_then(Value::as_object) {
        Some(types) => types.iter().map(|(name, of)| (name.clone(), of.clone())).collect(),
        None => BTreeMap::from([("t".to_owned(), schema.clone())]),
    };
    let Ok(files) = FileSystem::parse(&json!({})) else { return };
    let schemas = Schemas { local_types: &types, files: &files, resources: &BTreeMap::new() };
    let _ = schemas.check(&schema, &value);
}

/// An expression in CEL: compiled, checked, its cost told, evaluated.
fn expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(expression) = Expression::compile(text) else { return };
    let document: Map<String, Value> =
        [("imports".to_owned(), json!({"list": [1, 2, 3], "text": "abc", "map": {"a": 1}}))].into_iter().collect();
    let _ = expression.check(&[("imports", Type::Any)]);
    let _ = expression.reads();
    let _ = expression.holds_of(&document);
}

/// A component descriptor in YAML, and its normal forms.
fn descriptor(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(document) = yaml::decode(text) else { return };
    let Ok(descriptor) = Descriptor::parse(&document) else { return };
    for form in [Normalisation::V1, Normalisation::V2, Normalisation::V3] {
        let _ = descriptor.normalised(form);
    }
}

/// A reference to a resource, or a resource key.
fn reference(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = ResourceReference::parse(text);
    let _ = ResourceKey::read(text);
}

/// A blueprint in an archive.
fn archive(bytes: &[u8]) {
    let _ = orangery_registry::blueprint(bytes);
}
