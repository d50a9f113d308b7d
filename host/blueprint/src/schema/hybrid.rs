//! The validator of the original takes keywords of the drafts 4 to 7 in one schema. Ours takes one draft: what draft 4
//! writes differently is written as the later ones do.

use serde_json::Value;

use super::steps::DATA;

/// The schema with exclusive bounds as numbers: `maximum: 5, exclusiveMaximum: true` is `exclusiveMaximum: 5`.
pub(super) fn numbered(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let walk = |(name, value): (&String, &Value)| {
                let value = if DATA.contains(&name.as_str()) { value.clone() } else { numbered(value) };
                (name.clone(), value)
            };
            let mut map: serde_json::Map<String, Value> = map.iter().map(walk).collect();
            for (bound, exclusive) in [("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")] {
                match (map.get(bound), map.get(exclusive)) {
                    (Some(Value::Number(_)), Some(Value::Bool(true))) => {
                        if let Some(number) = map.remove(bound) {
                            map.insert(exclusive.to_owned(), number);
                        }
                    }
                    (Some(Value::Number(_)), Some(Value::Bool(false))) => drop(map.remove(exclusive)),
                    _ => {}
                }
            }
            Value::Object(map)
        }
        Value::Array(items) => items.iter().map(numbered).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}
