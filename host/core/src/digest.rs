//! The only hasher of the repository, and the canonical form of what it hashes (`docs/wire.md` §2.4, §5.6).
//!
//! Canonical JSON is what Go's `encoding/json` writes: sorted keys, `<`, `>` and `&` escaped, the shortest number that
//! reads back the same.

pub mod content;

use std::{collections::BTreeMap, fmt::Write};

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Number, Value};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// `sha256:…` of the bytes of a component or artifact.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// The bytes of SHA-256.
pub fn sha256_bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// 32 bytes that only who has the key can tell: HMAC-SHA-256 over the parts, each behind its length, so that no two lists
/// of parts are one text.
pub fn derived(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// The hash of a DataObject's content, as its annotation has it: SHA-1 over the indented form.
pub fn data_hash(data: &Value) -> String {
    sha1(&indented(data))
}

/// The hash of a Target's content, as its annotation has it: over `config`, else over the reference to a Secret.
pub fn target_hash(spec: &Value) -> String {
    let field = |name: &str| spec.get(name).filter(|value| !value.is_null());
    match (field("config"), field("secretRef")) {
        (Some(config), _) => sha1(&compact(config)),
        (None, Some(reference)) => {
            // The original writes the reference in the order of its Go type, name first.
            let text = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
            let mut json = String::from(r#"{"secretRef":{"name":"#);
            write_text(&mut json, text("name"));
            if !text("key").is_empty() {
                json.push_str(r#","key":"#);
                write_text(&mut json, text("key"));
            }
            json.push_str("}}");
            sha1(&json)
        }
        (None, None) => sha1(""),
    }
}

/// What stands for data without a hash annotation in the hash of the imports: SHA-1 over the compact form, which is how
/// the API server stores it.
pub fn stored_hash(data: &Value) -> String {
    sha1(&compact(data))
}

/// The fingerprints of an installation's imports, by import name, for [`imports_hash`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprints {
    /// Hashes of data.
    pub data_objects: BTreeMap<String, String>,
    /// Generations.
    pub targets: BTreeMap<String, String>,
    /// Generations of the elements as a JSON list; empty for an empty list.
    pub target_lists: BTreeMap<String, String>,
    /// Generations of the entries as a JSON object; empty for an empty map.
    pub target_maps: BTreeMap<String, String>,
}

/// INS-23: the hash of all imports, SHA-1 over their fingerprints (`docs/wire.md` §5.6).
pub fn imports_hash(of: &Fingerprints) -> String {
    let mut json = String::new();
    let parts = [
        ("DataObjects", &of.data_objects),
        ("Targets", &of.targets),
        ("TargetLists", &of.target_lists),
        ("TargetMaps", &of.target_maps),
    ];
    for (index, (name, fingerprints)) in parts.into_iter().enumerate() {
        json.push(if index == 0 { '{' } else { ',' });
        write_text(&mut json, name);
        json.push(':');
        let map: Map<String, Value> =
            fingerprints.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))).collect();
        json.push_str(&compact(&Value::Object(map)));
    }
    json.push('}');
    sha1(&json)
}

/// 32 characters that can stand in a name: base32 in lower case of SHA-1.
pub(crate) fn name_hash(text: &str) -> String {
    BASE32_NOPAD.encode(&Sha1::digest(text.as_bytes())).to_lowercase()
}

fn sha1(text: &str) -> String {
    HEXLOWER.encode(&Sha1::digest(text.as_bytes()))
}

/// Canonical JSON on one line.
pub fn compact(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, None);
    out
}

/// Canonical JSON indented by two spaces.
pub fn indented(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, Some(0));
    out
}

/// Writes a value; `depth` is set where lines are indented.
fn write_value(out: &mut String, value: &Value, depth: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            write_group(out, ('[', ']'), depth, items, write_value);
        }
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            write_group(out, ('{', '}'), depth, sorted, |out, (key, value), inner| {
                write_text(out, key);
                out.push_str(if inner.is_some() { ": " } else { ":" });
                write_value(out, value, inner);
            });
        }
    }
}

fn write_group<T>(
    out: &mut String,
    brackets: (char, char),
    depth: Option<usize>,
    items: impl IntoIterator<Item = T>,
    mut write_item: impl FnMut(&mut String, T, Option<usize>),
) {
    let inner = depth.map(|depth| depth + 1);
    out.push(brackets.0);
    let mut empty = true;
    for item in items {
        if !empty {
            out.push(',');
        }
        empty = false;
        break_line(out, inner);
        write_item(out, item, inner);
    }
    if !empty {
        break_line(out, depth);
    }
    out.push(brackets.1);
}

fn break_line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
}

/// Whole numbers as they are; others as Go writes a 64-bit float.
fn write_number(out: &mut String, number: &Number) {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        out.push_str(&number.to_string());
        return;
    };
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // Rust writes 1e-7 where Go does, and 1e21 where Go writes 1e+21.
        let text = format!("{float:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.push_str(digits);
                out.push_str("e+");
                out.push_str(exponent);
            }
            Some(_) | None => out.push_str(&text),
        }
        return;
    }
    out.push_str(&float.to_string());
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{0}'..='\u{1f}' => {
                write!(out, "\\u{:04x}", u32::from(character)).expect("writing to a string cannot fail");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
