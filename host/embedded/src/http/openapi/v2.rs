//! OpenAPI 2: definitions of all kinds, without paths. `kubectl` reads version 3 first; others know only this one.

mod protobuf;

use serde_json::{Map, Value, json};

pub(super) use self::protobuf::encode;
use super::{GROUP_VERSION_KIND, documented};
use crate::{catalog::Catalog, object, schema::OpenApiSchema};

/// The whole document.
pub(super) fn document(catalog: &Catalog) -> Value {
    let mut definitions = Map::new();
    for resource in catalog.resources() {
        for version in &resource.versions {
            let (name, mut schema) = documented(resource, version, &mut definitions);
            let free = |schema: &OpenApiSchema| schema.root().get("x-kubernetes-preserve-unknown-fields").is_some();
            if version.schema.as_deref().is_some_and(free) {
                // With any property clients would take all others for unknown.
                object::fields(&mut schema).retain(|word, _| matches!(word.as_str(), "type" | GROUP_VERSION_KIND));
            }
            definitions.insert(name, schema);
        }
    }
    let definitions: Map<String, Value> =
        definitions.into_iter().map(|(name, schema)| (name, converted(schema))).collect();
    json!({"swagger": "2.0", "info": super::info(), "paths": {}, "definitions": definitions})
}

/// A schema of version 3 in the words of version 2, as the real server converts those of custom kinds: what version 2 cannot say
/// is left out.
fn converted(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else { return schema };
    if let Some(reference) = only_reference(&fields) {
        return reference;
    }
    if fields.contains_key("oneOf") && !fields.contains_key("type") {
        fields.insert("type".to_owned(), json!("string"));
    }
    for word in ["allOf", "oneOf", "anyOf", "not"] {
        fields.remove(word);
    }
    let flag = |fields: &Map<String, Value>, name: &str| fields.get(name) == Some(&Value::Bool(true));
    let nullable: Vec<String> = fields
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, of)| of.get("nullable") == Some(&Value::Bool(true)))
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| !nullable.iter().any(|of| name == of));
        if required.is_empty() {
            fields.remove("required");
        }
    }
    let null = fields.remove("nullable") == Some(Value::Bool(true));
    let free = flag(&fields, "x-kubernetes-preserve-unknown-fields");
    if null || free {
        fields.remove("items");
        fields.remove("properties");
    }
    let of = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    if null || (free && of == "object") || (of == "array" && !fields.contains_key("items")) {
        fields.remove("type");
    }
    Value::Object(fields.into_iter().map(|(word, value)| below(word, value)).collect())
}

fn below(word: String, value: Value) -> (String, Value) {
    let value = match (word.as_str(), value) {
        ("properties", Value::Object(of)) => {
            Value::Object(of.into_iter().map(|(name, schema)| (name, converted(schema))).collect())
        }
        ("items" | "additionalProperties", schema) => converted(schema),
        (_, value) => value,
    };
    (word, value)
}

/// A schema that does nothing but name another one.
fn only_reference(fields: &Map<String, Value>) -> Option<Value> {
    let [only] = fields.get("allOf")?.as_array()?.as_slice() else { return None };
    let name = only.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")?;
    let mut reference = json!({"$ref": format!("#/definitions/{name}")});
    if let Some(description) = fields.get("description") {
        object::set(&mut reference, &["description"], description.clone());
    }
    Some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_2_cannot_say_is_left_out() {
        let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "nullable": true}, "b": {"type": "array"},
            "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"d": {}}},
            "e": {"allOf": [{"$ref": "#/components/schemas/x.Y"}], "description": "d"},
            "f": {"anyOf": [{"minimum": 1}], "type": "integer"},
            "g": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/x.Y"}]}},
        }});
        let expected = json!({"type": "object", "required": ["b"], "properties": {
            "a": {}, "b": {}, "c": {"x-kubernetes-preserve-unknown-fields": true},
            "e": {"$ref": "#/definitions/x.Y", "description": "d"}, "f": {"type": "integer"},
            "g": {"type": "array", "items": {"$ref": "#/definitions/x.Y"}},
        }});
        assert_eq!(converted(schema), expected);
    }
}
