//! The regular expressions of a schema, before any of them is read.

use orangery_expression::ReadingBudget;
use serde_json::{Map, Value};

use super::{MOST_PATTERNS, SchemaError};

/// How many a schema has.
pub(super) fn count(schema: &Value) -> Result<usize, SchemaError> {
    let mut found = Vec::new();
    collect(schema, &mut found);
    if found.len() > MOST_PATTERNS {
        return Err(SchemaError::Patterns { count: found.len() });
    }
    let mut budget = ReadingBudget::default();
    found
        .iter()
        // What is none is told by whoever builds a validator.
        .try_for_each(|pattern| budget.read_of_schema(pattern).map(drop))
        .map_err(|reason| SchemaError::Reading { reason })?;
    Ok(found.len())
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
