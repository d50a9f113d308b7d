//! The global identity of a resource, as `getResourceKey` answers it and `chart.resourceRef` takes it: YAML in base64.

use data_encoding::BASE64;
use serde_json::Value;

use super::{Descriptor, Resource};
use orangery_core::yaml;

/// The key of a resource of a component version (`docs/wire.md` §4.5), to the letter of Go's YAML writer.
pub fn resource_key(component: &Descriptor, resource: &Resource) -> String {
    let mut text =
        format!("component:\n  name: {}\n  version: {}\n", scalar(&component.name), scalar(&component.version));
    text.push_str("resource:\n");
    let all = component.resources.iter().map(|resource| &resource.element);
    for (name, value) in resource.element.identity_among(all) {
        text.push_str(&format!("  {}: {}\n", scalar(&name), scalar(&value)));
    }
    BASE64.encode(text.as_bytes())
}

/// A text as Go's YAML writer gives it: plain, in double quotes where plain text would be another value, in single
/// quotes where a character would not be plain.
fn scalar(text: &str) -> String {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Value::from(text).to_string();
    }
    match yaml::decode(text) {
        Ok(Value::String(read)) if read == text && is_plain(text) => text.to_owned(),
        Ok(Value::String(_) | Value::Object(_) | Value::Array(_)) | Err(_) => format!("'{}'", text.replace('\'', "''")),
        Ok(Value::Null) if text.trim_start().starts_with('#') => format!("'{text}'"),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_)) => format!("\"{text}\""),
    }
}

/// Whether no character at its place has a meaning of its own.
fn is_plain(text: &str) -> bool {
    let special_first = |c: char| "-?:,[]{}#&*!|>'\"%@`".contains(c);
    !text.starts_with(special_first)
        && !text.starts_with(' ')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
}
