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

/// What a component may reach.
pub(crate) fn grants(_: &mut SchemaGenerator) -> Schema {
    let texts = |description: &str| json!({"type": "array", "maxItems": 1024, "items": {"type": "string"}, "description": description});
    let kinds = |description: &str| {
        json!({
            "type": "array",
            "maxItems": 1024,
            "description": description,
            "items": {
                "type": "object",
                "properties": {
                    "groups": texts("API groups; the core group is empty. All where it is not said."),
                    "kinds": texts("Kinds. All where it is not said."),
                    "namespaces": texts("Namespaces. All where it is not said; objects of no namespace are matched by `*` alone."),
                },
            },
        })
    };
    json_schema!({
        "type": "object",
        "description": "What it may reach; nothing unless it stands here.",
        "properties": {
            "clusters": {
                "type": "object",
                "description": "Clusters that may be read and written.",
                "properties": {
                    "target": {"type": "boolean", "description": "The cluster behind the item's target."},
                    "host": {"type": "boolean", "description": "The cluster that the operator runs for."},
                    "named": texts("Other targets of the item's namespace: names, or `*`."),
                },
            },
            "reads": kinds("Kinds that may be read."),
            "writes": kinds("Kinds that a proposal may write or remove."),
            "deleteUnmanaged": {
                "type": "boolean",
                "description": "Whether a deletion may take in objects that are not in the inventory.",
            },
            "artifacts": texts("Artifact references by prefix."),
            "hosts": texts("Hosts of URLs."),
            "kubeconfigs": texts("Kinds of credentials that a template may have issued, or `*`."),
        },
    })
}

/// What one call may spend.
pub(crate) fn limits(_: &mut SchemaGenerator) -> Schema {
    let limit =
        |description: &str| json!({"type": "integer", "format": "int64", "minimum": 0, "description": description});
    json_schema!({
        "type": "object",
        "description": "What one call may spend; what is left out has its default.",
        "properties": {
            "cpuMilliseconds": limit("Time on the processor."),
            "wallMilliseconds": limit("Time from the start of a call to its end."),
            "memoryMiB": limit("All linear memories together; at most 512."),
            "tableElements": limit("All tables together; at most 1000000."),
            "handles": limit("Resources that are held at once."),
            "hostCalls": limit("Calls of the host."),
            "hostCallBytes": limit("Bytes that go in and out of them."),
            "outputBytes": limit("Bytes of the answer."),
            "logLines": limit("Lines of log."),
            "logBytes": limit("Bytes of log."),
        },
    })
}
