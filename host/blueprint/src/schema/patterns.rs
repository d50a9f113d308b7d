//! The regular expressions of a schema, before any of them is read.

use orangery_expression::{ReadingBudget, STEPS_OF_A_BYTE, check_pattern_length};
use serde_json::{Map, Value};

use super::{MOST_PATTERNS, SchemaError};

/// What a class of white space is written out as, in bytes, and any other.
const SPACES: usize = 256;
const OTHER: usize = 32;

/// How many a schema has. They are written as JavaScript has them, and the library makes of them what the crate `regex` takes:
/// making it is counted like reading it.
pub(super) fn count(schema: &Value) -> Result<usize, SchemaError> {
    let mut found = Vec::new();
    collect(schema, &mut found);
    if found.len() > MOST_PATTERNS {
        return Err(SchemaError::Patterns { count: found.len() });
    }
    let mut budget = ReadingBudget::default();
    found
        .iter()
        .try_for_each(|pattern| read(pattern, &mut budget))
        .map_err(|reason| SchemaError::Reading { reason })?;
    Ok(found.len())
}

fn read(pattern: &str, budget: &mut ReadingBudget) -> Result<(), String> {
    check_pattern_length(pattern)?;
    // Each of these is written out by itself, and then the whole is read anew.
    let of = |names: [&str; 2]| names.map(|name| pattern.matches(name).count()).iter().sum::<usize>();
    let (spaces, others) =
        (of([r"\s", r"\S"]), of([r"\d", r"\D"]) + of([r"\w", r"\W"]) + pattern.matches(r"\c").count());
    let longest = pattern.len() + spaces * SPACES + others * OTHER;
    let parsed = u64::try_from((spaces + others + 1) * longest).unwrap_or(u64::MAX);
    budget.pay(parsed.saturating_mul(STEPS_OF_A_BYTE))?;
    // What is none is told by whoever builds a validator.
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Ok(()) };
    budget.read_translated(&translated).map(drop)
}

fn collect<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(map) => {
            found.extend(map.get("pattern").and_then(Value::as_str));
            let named = map.get("patternProperties").and_then(Value::as_object);
            found.extend(named.into_iter().flat_map(Map::keys).map(String::as_str));
            map.values().for_each(|part| collect(part, found));
        }
        Value::Array(items) => items.iter().for_each(|part| collect(part, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
