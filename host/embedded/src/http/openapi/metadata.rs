//! The metadata of all objects, as `kubectl explain` tells it.

use serde_json::{Map, Value, json};

/// The name of its schema.
pub(super) const NAME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// What its fields are, in the first sentences of the documentation of Kubernetes.
const FIELDS: &[(&str, &str, &str)] = &[
    (
        "annotations",
        "texts",
        "Annotations is an unstructured key value map stored with a resource that may be set by external tools to store and retrieve arbitrary metadata.",
    ),
    (
        "creationTimestamp",
        "time",
        "CreationTimestamp is a timestamp representing the server time when this object was created.",
    ),
    (
        "deletionGracePeriodSeconds",
        "integer",
        "Number of seconds allowed for this object to gracefully terminate before it will be removed from the system.",
    ),
    (
        "deletionTimestamp",
        "time",
        "DeletionTimestamp is RFC 3339 date and time at which this resource will be deleted.",
    ),
    ("finalizers", "list", "Must be empty before the object is deleted from the registry."),
    (
        "generateName",
        "string",
        "GenerateName is an optional prefix, used by the server, to generate a unique name ONLY IF the Name field has not been provided.",
    ),
    ("generation", "integer", "A sequence number representing a specific generation of the desired state."),
    (
        "labels",
        "texts",
        "Map of string keys and values that can be used to organize and categorize (scope and select) objects.",
    ),
    (
        "managedFields",
        "objects",
        "ManagedFields maps workflow-id and version to the set of fields that are managed by that workflow.",
    ),
    ("name", "string", "Name must be unique within a namespace."),
    ("namespace", "string", "Namespace defines the space within which each name must be unique."),
    ("ownerReferences", "objects", "List of objects depended by this object."),
    (
        "resourceVersion",
        "string",
        "An opaque value that represents the internal version of this object that can be used by clients to determine when objects have changed.",
    ),
    (
        "selfLink",
        "string",
        "Deprecated: selfLink is a legacy read-only field that is no longer populated by the system.",
    ),
    ("uid", "string", "UID is the unique in time and space value for this object."),
];

/// The fields that every object has, of which the metadata is a schema of its own: that one goes to `definitions`.
pub(super) fn own_fields(definitions: &mut Map<String, Value>) -> [(&'static str, Value); 3] {
    definitions.entry(NAME).or_insert_with(schema);
    let reference = json!([{"$ref": format!("#/components/schemas/{NAME}")}]);
    [
        (
            "apiVersion",
            json!({"type": "string", "description": "APIVersion defines the versioned schema of this representation of an object."}),
        ),
        (
            "kind",
            json!({"type": "string", "description": "Kind is a string value representing the REST resource this object represents."}),
        ),
        ("metadata", json!({"description": "Standard object's metadata.", "allOf": reference})),
    ]
}

fn schema() -> Value {
    let field = |(name, of, description): &(&str, &str, &str)| {
        let mut schema = match *of {
            "time" => json!({"type": "string", "format": "date-time"}),
            "integer" => json!({"type": "integer", "format": "int64"}),
            "texts" => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "list" => json!({"type": "array", "items": {"type": "string"}}),
            "objects" => json!({"type": "array", "items": {"type": "object"}}),
            _ => json!({"type": "string"}),
        };
        crate::object::set(&mut schema, &["description"], json!(description));
        ((*name).to_owned(), schema)
    };
    let properties: Map<String, Value> = FIELDS.iter().map(field).collect();
    let description =
        "ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.";
    json!({"type": "object", "description": description, "properties": properties})
}
