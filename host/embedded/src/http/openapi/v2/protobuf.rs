//! An OpenAPI 2 document in the protobuf of `gnostic`, which older clients read instead of JSON.

use serde_json::{Map, Value};

/// The whole document.
pub(in crate::http::openapi) fn encode(document: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    text(&mut bytes, 1, document.get("swagger"));
    let mut info = Vec::new();
    text(&mut info, 1, document.pointer("/info/title"));
    text(&mut info, 2, document.pointer("/info/version"));
    chunk(&mut bytes, 2, &info);
    chunk(&mut bytes, 8, &[]);
    let definitions = document.get("definitions").and_then(Value::as_object);
    chunk(&mut bytes, 9, &named_schemas(definitions.into_iter().flatten()));
    bytes
}

fn named_schemas<'a>(schemas: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, of) in schemas {
        let mut named = Vec::new();
        chunk(&mut named, 1, name.as_bytes());
        chunk(&mut named, 2, &schema(of));
        chunk(&mut bytes, 1, &named);
    }
    bytes
}

fn schema(of: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (word, value) in of.as_object().into_iter().flatten() {
        member(&mut bytes, word, value);
    }
    bytes
}

fn member(bytes: &mut Vec<u8>, word: &str, value: &Value) {
    match word {
        "$ref" => text(bytes, 1, Some(value)),
        "format" => text(bytes, 2, Some(value)),
        "title" => text(bytes, 3, Some(value)),
        "description" => text(bytes, 4, Some(value)),
        "default" => chunk(bytes, 5, &any(value)),
        "multipleOf" => float(bytes, 6, value),
        "maximum" => float(bytes, 7, value),
        "exclusiveMaximum" => flag(bytes, 8, value),
        "minimum" => float(bytes, 9, value),
        "exclusiveMinimum" => flag(bytes, 10, value),
        "maxLength" => number(bytes, 11, value),
        "minLength" => number(bytes, 12, value),
        "pattern" => text(bytes, 13, Some(value)),
        "maxItems" => number(bytes, 14, value),
        "minItems" => number(bytes, 15, value),
        "uniqueItems" => flag(bytes, 16, value),
        "maxProperties" => number(bytes, 17, value),
        "minProperties" => number(bytes, 18, value),
        "required" => value.as_array().into_iter().flatten().for_each(|name| text(bytes, 19, Some(name))),
        "enum" => value.as_array().into_iter().flatten().for_each(|value| chunk(bytes, 20, &any(value))),
        "additionalProperties" => {
            let mut of = Vec::new();
            match value {
                Value::Bool(_) => flag(&mut of, 2, value),
                value => chunk(&mut of, 1, &schema(value)),
            }
            chunk(bytes, 21, &of);
        }
        "type" => {
            let mut of = Vec::new();
            text(&mut of, 1, Some(value));
            chunk(bytes, 22, &of);
        }
        "items" => {
            let mut of = Vec::new();
            chunk(&mut of, 1, &schema(value));
            chunk(bytes, 23, &of);
        }
        "properties" => chunk(bytes, 25, &named_schemas(value.as_object().unwrap_or(&Map::new()).iter())),
        extension if extension.starts_with("x-") => {
            let mut named = Vec::new();
            chunk(&mut named, 1, extension.as_bytes());
            chunk(&mut named, 2, &any(value));
            chunk(bytes, 31, &named);
        }
        _ => {}
    }
}

/// Any value: its text in YAML, of which JSON is a part.
fn any(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    chunk(&mut bytes, 2, value.to_string().as_bytes());
    bytes
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
}

fn chunk(bytes: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(bytes, field << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

fn text(bytes: &mut Vec<u8>, field: u64, value: Option<&Value>) {
    if let Some(text) = value.and_then(Value::as_str) {
        chunk(bytes, field, text.as_bytes());
    }
}

fn flag(bytes: &mut Vec<u8>, field: u64, value: &Value) {
    if value == &Value::Bool(true) {
        varint(bytes, field << 3);
        varint(bytes, 1);
    }
}

fn number(bytes: &mut Vec<u8>, field: u64, value: &Value) {
    if let Some(number) = value.as_u64() {
        varint(bytes, field << 3);
        varint(bytes, number);
    }
}

fn float(bytes: &mut Vec<u8>, field: u64, value: &Value) {
    if let Some(number) = value.as_f64() {
        varint(bytes, field << 3 | 1);
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_encoded_with_names_types_and_extensions() {
        let document = json!({"swagger": "2.0", "info": {"title": "T", "version": "v"}, "paths": {},
            "definitions": {"a": {"type": "object", "x-y": [1],
                "properties": {"b": {"type": "array", "items": {"$ref": "#/d"}}}}}});
        let bytes = encode(&document);
        assert!(bytes.starts_with(b"\x0a\x032.0\x12\x06\x0a\x01T\x12\x01v\x42\x00\x4a"));
        let found = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(found(b"\xb2\x01\x07\x0a\x05array"), "the type of b");
        assert!(found(b"\xba\x01\x07\x0a\x05\x0a\x03#/d"), "the entries of b");
        assert!(found(b"\xfa\x01\x0c\x0a\x03x-y\x12\x05\x12\x03[1]"), "the extension");
    }
}
