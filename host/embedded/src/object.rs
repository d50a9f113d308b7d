//! Reading and writing places of a JSON object that stands for a Kubernetes object.

use serde_json::{Map, Value};

/// The value at a path of field names.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, field| value.get(field))
}

/// How many lists and objects stand in each other.
pub(crate) fn levels(value: &Value) -> usize {
    let below = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(fields) => fields.values().map(levels).max(),
    };
    below.unwrap_or_default() + 1
}

/// The text at a path of field names.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(object, path).and_then(Value::as_str)
}

/// A text field of the metadata; empty when absent.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    text(object, &["metadata", field]).unwrap_or_default()
}

/// The entries of a list; empty when absent.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The object behind a value, which becomes an empty one if it was none.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

/// The metadata, made if missing.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    fields(fields(object).entry("metadata").or_insert_with(|| Value::Object(Map::new())))
}

/// Puts a value at a path, making the objects on the way.
pub(crate) fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, way)) = path.split_last() else { return };
    let mut place = object;
    for field in way {
        place = fields(place).entry(*field).or_insert(Value::Null);
    }
    fields(place).insert((*last).to_owned(), value);
}

/// Takes the value at a path out.
pub(crate) fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, way) = path.split_last()?;
    let place = way.iter().try_fold(object, |value, field| value.get_mut(field))?;
    place.as_object_mut()?.remove(*last)
}

/// Copies the value at a path from one object to another, or removes it there.
pub(crate) fn carry(from: &Value, to: &mut Value, path: &[&str]) {
    match at(from, path) {
        Some(value) => set(to, path, value.clone()),
        None => {
            take(to, path);
        }
    }
}

/// Whether deletion was asked for.
pub(crate) fn deleting(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null())
}

/// The finalizers that hold the object.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    items(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect()
}
