//! Whether an object of a built-in kind has the fields of its kind, each of its type.

use serde_json::{Map, Value};

use super::fields::{Field, FieldType, Many, is_union, members_of, message_of};

/// What does not fit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Misfits {
    /// The paths of fields that do not exist; they are removed.
    pub(crate) unknown: Vec<String>,
    pub(crate) mistyped: Vec<Mistyped>,
}

/// A value of the wrong type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistyped {
    pub(crate) path: String,
    pub(crate) found: &'static str,
    pub(crate) wanted: &'static str,
}

impl std::fmt::Display for Mistyped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, found, wanted } = self;
        write!(f, "cannot unmarshal {found} into the field {path} of type {wanted}")
    }
}

/// Removes the fields that a built-in kind does not have, and tells of values that are of another type.
pub(crate) fn check(object: &mut Value) -> Misfits {
    let mut misfits = Misfits::default();
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let message = message_of(text("apiVersion"), text("kind"));
    if let (Some(message), Value::Object(fields)) = (message, object) {
        check_message(fields, message, "", &mut misfits);
    }
    misfits
}

fn check_message(object: &mut Map<String, Value>, message: &str, path: &str, misfits: &mut Misfits) {
    let known = members_of(message);
    object.retain(|name, value| {
        let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "stringData") {
            return true;
        }
        // A template of claims holds whole objects.
        if message == "core.PersistentVolumeClaim" && matches!(name.as_str(), "apiVersion" | "kind") {
            return true;
        }
        match known.iter().find(|field| field.name == name) {
            Some(field) => check_field(value, field, &place, misfits),
            None => misfits.unknown.push(place),
        }
        known.iter().any(|field| field.name == name)
    });
}

fn check_field(value: &mut Value, field: &Field, path: &str, misfits: &mut Misfits) {
    match (field.many, value) {
        (_, Value::Null) => {}
        (Many::One, value) => check_value(value, field.of, path, misfits),
        (Many::List, Value::Array(entries)) => {
            for (index, entry) in entries.iter_mut().enumerate() {
                check_value(entry, field.of, &format!("{path}[{index}]"), misfits);
            }
        }
        (Many::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                check_value(value, field.of, &format!("{path}.{name}"), misfits);
            }
        }
        (Many::List, other) => mistyped(other, "a list", path, misfits),
        (Many::Map, other) => mistyped(other, "a map", path, misfits),
    }
}

fn check_value(value: &mut Value, kind: FieldType, path: &str, misfits: &mut Misfits) {
    let wanted = match (kind, &mut *value) {
        (_, Value::Null) | (FieldType::Raw, _) => return,
        (FieldType::Message(message), Value::Object(fields)) => return check_message(fields, message, path, misfits),
        (FieldType::Message(message), Value::Array(entries)) if is_union(message) => {
            for (index, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| entry.is_object()) {
                check_value(entry, kind, &format!("{path}[{index}]"), misfits);
            }
            return;
        }
        (FieldType::Message(message), Value::Bool(_)) if is_union(message) => return,
        (FieldType::Message(_), _) => "an object",
        (
            FieldType::Text | FieldType::Bytes | FieldType::Time | FieldType::MicroTime | FieldType::Duration,
            Value::String(_),
        ) => return,
        (FieldType::Text | FieldType::Bytes | FieldType::Time | FieldType::MicroTime | FieldType::Duration, _) => {
            "string"
        }
        (FieldType::Bool, Value::Bool(_)) => return,
        (FieldType::Bool, _) => "bool",
        (FieldType::Int, Value::Number(number)) if number.is_i64() || number.is_u64() => return,
        (FieldType::Int, _) => "integer",
        (FieldType::Float, Value::Number(_)) => return,
        (FieldType::Float, _) => "number",
        (FieldType::Quantity | FieldType::IntOrText, Value::String(_) | Value::Number(_)) => return,
        (FieldType::Quantity | FieldType::IntOrText, _) => "string or number",
    };
    mistyped(value, wanted, path, misfits);
}

fn mistyped(value: &Value, wanted: &'static str, path: &str, misfits: &mut Misfits) {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    misfits.mistyped.push(Mistyped { path: path.to_owned(), found, wanted });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_those_of_the_kind() {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "imagee": "x", "ports": [{"containerPort": "80"}],
             "livenessProbe": {"httpGet": {"port": "http"}}, "resources": {"limits": {"cpu": 1}}}],
            "volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": 1}});
        let misfits = check(&mut pod);
        assert_eq!(misfits.unknown, ["spec.containers[0].imagee"]);
        assert_eq!(
            misfits.mistyped.iter().map(Mistyped::to_string).collect::<Vec<_>>(),
            [
                "cannot unmarshal string into the field spec.containers[0].ports[0].containerPort of type integer",
                "cannot unmarshal number into the field spec.restartPolicy of type string",
            ]
        );
        assert_eq!(pod.pointer("/spec/volumes/0/emptyDir"), Some(&json!({})));
    }
}
