//! How lists and maps of a kind are merged: from the schema of custom kinds, from a table for built-in ones.

use serde_json::Value;

/// What a place of an object is, seen from the merge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// A place of a built-in kind, or the metadata of any: the field, and the field around it.
    Builtin { around: &'a str, field: &'a str },
    /// A place that a schema describes.
    Schema(&'a Value),
    /// The top of a custom object.
    Custom(Option<&'a Value>),
    /// Nothing is known: maps merge, lists do not.
    Unknown,
}

/// How a list is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListMerge<'a> {
    /// As one value.
    Atomic,
    /// Each value on its own.
    Set,
    /// Each entry by the values of these fields.
    Map(Vec<&'a str>),
}

impl<'a> Shape<'a> {
    /// The top of an object of a built-in kind.
    pub(crate) const BUILTIN: Self = Self::Builtin { around: "", field: "" };

    /// The shape of a field.
    pub(crate) fn field(self, name: &'a str) -> Self {
        match self {
            Self::Custom(_) if name == "metadata" => Self::Builtin { around: "", field: "metadata" },
            Self::Custom(None) | Self::Unknown => Self::Unknown,
            Self::Builtin { field, .. } => Self::Builtin { around: field, field: name },
            Self::Schema(schema) | Self::Custom(Some(schema)) => {
                let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
                if embedded && name == "metadata" {
                    return Self::Builtin { around: "", field: "metadata" };
                }
                let known = schema.get("properties").and_then(|properties| properties.get(name));
                match known.or_else(|| schema.get("additionalProperties").filter(|more| more.is_object())) {
                    Some(known) => Self::Schema(known),
                    None => Self::Unknown,
                }
            }
        }
    }

    /// The shape of a list's entries.
    pub(crate) fn entry(self) -> Self {
        match self {
            Self::Builtin { .. } => self,
            Self::Schema(schema) => schema.get("items").map_or(Self::Unknown, Shape::Schema),
            Self::Custom(_) | Self::Unknown => Self::Unknown,
        }
    }

    /// How a list at this place is merged.
    pub(crate) fn listing(self) -> ListMerge<'a> {
        match self {
            Self::Builtin { around, field } => builtin_listing(around, field),
            Self::Schema(schema) | Self::Custom(Some(schema)) => {
                match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                    Some("set") => ListMerge::Set,
                    Some("map") => {
                        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                        ListMerge::Map(keys.into_iter().flatten().filter_map(Value::as_str).collect())
                    }
                    _ => ListMerge::Atomic,
                }
            }
            Self::Custom(None) | Self::Unknown => ListMerge::Atomic,
        }
    }

    /// Whether server-side apply treats a map at this place as one value.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Builtin { field, .. } => matches!(
                field,
                "selector"
                    | "nodeSelector"
                    | "labelSelector"
                    | "namespaceSelector"
                    | "podSelector"
                    | "secretRef"
                    | "configMapKeyRef"
                    | "secretKeyRef"
                    | "fieldRef"
                    | "resourceFieldRef"
                    | "involvedObject"
                    | "roleRef"
            ),
            Self::Schema(schema) => schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            Self::Custom(_) | Self::Unknown => false,
        }
    }

    /// What a key field of a list's entry is when the entry does not say.
    pub(crate) fn key_default(self, key: &str) -> Option<Value> {
        match self {
            Self::Builtin { .. } => (key == "protocol").then(|| Value::from("TCP")),
            Self::Schema(schema) => schema.pointer(&format!("/items/properties/{key}/default")).cloned(),
            Self::Custom(_) | Self::Unknown => None,
        }
    }
}

/// The lists of built-in kinds that are merged entry by entry. The first key is the one of strategic merge patches.
fn builtin_listing(around: &str, field: &str) -> ListMerge<'static> {
    let keys: &'static [&'static str] = match (around, field) {
        ("metadata", "finalizers") => return ListMerge::Set,
        ("metadata", "ownerReferences") => &["uid"],
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => &["containerPort", "protocol"],
        ("spec", "ports") => &["port", "protocol"],
        (_, "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets") => {
            &["name"]
        }
        (_, "resourceClaims" | "claims" | "webhooks") | ("", "secrets") => &["name"],
        (_, "volumeMounts") => &["mountPath"],
        (_, "volumeDevices") => &["devicePath"],
        (_, "hostAliases" | "podIPs" | "hostIPs") => &["ip"],
        (_, "topologySpreadConstraints") => &["topologyKey", "whenUnsatisfiable"],
        ("status", "conditions" | "addresses") => &["type"],
        _ => return ListMerge::Atomic,
    };
    ListMerge::Map(keys.to_vec())
}
