//! JSON schemas of fields that hold free JSON or types of Kubernetes, in the form that structural CRD schemas want.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// In place of a `Time` of Kubernetes. The schemas of all types of Kubernetes would be built for this one.
pub(crate) struct DateTime;

impl JsonSchema for DateTime {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Any JSON value, kept as it is.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// An object whose fields are kept as they are.
pub(crate) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// An object with `apiVersion` and `kind`.
pub(crate) fn embedded(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// A map from names to any JSON value.
pub(crate) fn map_of_any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
    })
}

/// A whole number of 1 or more.
pub(crate) fn positive(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX})
}

/// A number of things.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX})
}

/// What an item says about drift.
pub(crate) fn drift_rules(_: &mut SchemaGenerator) -> Schema {
    let text = |description: &str| json!({"type": "string", "description": description});
    let texts = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    json_schema!({
        "type": "object",
        "description": "What is done when objects are changed that the item has written. Not in the original.",
        "properties": {
            "policy": {
                "type": "string",
                "enum": ["Ignore", "Report", "Correct"],
                "description": "Ignore: nobody looks. Report, which is meant where nothing is said: status.drift, the condition Drifted and an event tell it. Correct: what was written is written again.",
            },
            "ignore": {
                "type": "array",
                "description": "Fields whose changes are no drift.",
                "items": {
                    "type": "object",
                    "properties": {
                        "group": text("The API group of the objects, empty for the core group; any where it is not said."),
                        "kind": text("Their kind."),
                        "namespace": text("Their namespace."),
                        "name": text("Their name."),
                        "jsonPointers": texts("The fields (RFC 6901), each with all that lies below it."),
                        "managedFieldsManagers": texts("Field managers: what one of them manages is its own."),
                    },
                },
            },
        },
    })
}

/// Bytes in base64.
pub(crate) fn base64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "byte"})
}
