//! Puts in place what `$ref`s of our schemes stand for. Fields next to such a `$ref` are dropped, as in the original.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{SchemaError, Schemas};

/// A schema without references that leave it.
pub(super) fn resolve(schemas: &Schemas<'_>, schema: &Value) -> Result<Value, SchemaError> {
    walk(schemas, schema, &BTreeSet::new())
}

/// `above` are the references that this part stands under.
fn walk(schemas: &Schemas<'_>, part: &Value, above: &BTreeSet<String>) -> Result<Value, SchemaError> {
    match part {
        Value::Object(map) => match map.get("$ref") {
            Some(Value::String(reference)) if !reference.starts_with('#') => follow(schemas, reference, above),
            Some(_) | None => map
                .iter()
                .map(|(name, value)| Ok((name.clone(), walk(schemas, value, above)?)))
                .collect::<Result<_, _>>()
                .map(Value::Object),
        },
        Value::Array(items) => items.iter().map(|item| walk(schemas, item, above)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(part.clone()),
    }
}

fn follow(schemas: &Schemas<'_>, reference: &str, above: &BTreeSet<String>) -> Result<Value, SchemaError> {
    let own = || reference.to_owned();
    let mut above = above.clone();
    if !above.insert(own()) {
        return Err(SchemaError::Circle { reference: own() });
    }
    let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let found = if let Some(name) = address.strip_prefix("local://") {
        schemas.local_types.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = schemas.local_types.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            SchemaError::UnknownType { reference: own(), name: name.to_owned(), known }
        })?
    } else if let Some(path) = address.strip_prefix("blueprint://") {
        let bytes = schemas.files.read(path).map_err(|reason| SchemaError::File { reference: own(), reason })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| SchemaError::File { reference: own(), reason: format!("{path} is not JSON: {error}") })?
    } else if address.starts_with("cd://") {
        return Err(SchemaError::Component { reference: own() });
    } else {
        return Err(SchemaError::Scheme { reference: own() });
    };
    let resolved = walk(schemas, &found, &above)?;
    let mut part = &resolved;
    for field in fragment.trim_matches('/').split('/').filter(|field| !field.is_empty()) {
        part = part.get(field).ok_or_else(|| SchemaError::Fragment { reference: own(), field: field.to_owned() })?;
    }
    Ok(part.clone())
}
