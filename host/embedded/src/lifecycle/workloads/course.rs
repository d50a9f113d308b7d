//! What a rule sees of an object, and what it says of it.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::simulation_spec::SimulationSpec;
use crate::object;

/// An object, and what there is to know besides.
pub(super) struct Scene<'a> {
    pub(super) object: &'a Value,
    pub(super) simulation: SimulationSpec,
    /// RFC 3339, whole seconds.
    pub(super) now: &'a str,
}

/// What becomes of an object.
pub(super) enum Course {
    /// It stays as it is.
    Rest,
    /// It has this status at once, whatever is wished.
    Now(Value),
    /// Its work takes the time that is wished.
    Work {
        /// Its status while the work goes on; none when it says so already.
        begun: Option<Value>,
        /// Its status at the end.
        done: Value,
        /// The time that the work takes, and whether it fails.
        simulation: SimulationSpec,
    },
}

impl Scene<'_> {
    /// A field of the spec.
    pub(super) fn spec(&self, field: &str) -> Option<&Value> {
        object::at(self.object, &["spec", field])
    }

    /// A field of the status.
    pub(super) fn status(&self, field: &str) -> Option<&Value> {
        object::at(self.object, &["status", field])
    }

    /// A number of the spec.
    pub(super) fn wanted(&self, field: &str) -> Option<i64> {
        self.spec(field).and_then(Value::as_i64)
    }

    /// A number of the status.
    pub(super) fn counted(&self, field: &str) -> i64 {
        self.status(field).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn generation(&self) -> Value {
        object::at(self.object, &["metadata", "generation"]).cloned().unwrap_or_default()
    }

    /// Whether the status speaks of the present generation.
    pub(super) fn is_observed(&self) -> bool {
        self.status("observedGeneration") == Some(&self.generation())
    }

    /// A condition of the present status.
    pub(super) fn present(&self, kind: &str) -> Option<&Value> {
        let conditions = object::items(self.object, &["status", "conditions"]);
        conditions.iter().find(|condition| object::text(condition, &["type"]) == Some(kind))
    }

    /// Whether a condition of the present status is True.
    pub(super) fn holds(&self, kind: &str) -> bool {
        self.present(kind).is_some_and(|condition| object::text(condition, &["status"]) == Some("True"))
    }

    /// A condition, which keeps the time since when it has its status.
    pub(super) fn condition(&self, kind: &str, holds: bool, reason: &str, message: &str) -> Value {
        let status = if holds { "True" } else { "False" };
        let since = self.present(kind).filter(|present| object::text(present, &["status"]) == Some(status));
        let since = since.and_then(|present| object::text(present, &["lastTransitionTime"])).unwrap_or(self.now);
        let condition = json!({
            "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
        });
        sparse(condition)
    }
}

/// The fields that say something: neither zero nor empty.
pub(super) fn sparse(status: Value) -> Value {
    let Value::Object(fields) = status else { return status };
    let says = |(_, value): &(String, Value)| match value {
        Value::Null => false,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        Value::Bool(_) | Value::Object(_) => true,
    };
    Value::Object(fields.into_iter().filter(says).collect::<Map<_, _>>())
}

/// A short name for a value, which follows from it.
pub(super) fn hash(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    data_encoding::HEXLOWER.encode(digest.get(..5).unwrap_or_default())
}
