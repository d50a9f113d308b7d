//! One stored object: its bytes as they are on the wire, and the few facts that indexes and selectors need.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::object;

/// Where an object lies: which collection (`deployments.apps`), which namespace (empty for cluster-scoped), which name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoreKey {
    pub(crate) collection: std::sync::Arc<str>,
    pub(crate) name: ObjectName,
}

/// Namespace and name; orders objects as etcd would.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
}

impl ObjectName {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// What the store knows of an object without reading its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectHead {
    pub(crate) uid: Box<str>,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// The uids of its owners.
    pub(crate) owners: Box<[Box<str>]>,
    /// Deletion was asked for.
    pub(crate) deleting: bool,
    /// How many finalizers hold it.
    pub(crate) finalizers: usize,
}

/// A version of an object, never changed once made. Lists and watches share its bytes.
#[derive(Clone, Debug)]
pub(crate) struct ObjectVersion {
    /// The number behind its `resourceVersion`.
    pub(crate) revision: u64,
    pub(crate) head: ObjectHead,
    /// Compact JSON.
    pub(crate) bytes: Bytes,
}

impl ObjectVersion {
    /// Encodes an object that bears the given revision from now on.
    pub(crate) fn encode(mut object: Value, revision: u64) -> Self {
        let version = Value::String(revision.to_string());
        object::meta_mut(&mut object).insert("resourceVersion".to_owned(), version);
        let head = head_of(&object);
        Self { revision, head, bytes: exact(object.to_string()) }
    }

    /// An object that is shown and not stored: the answer to a dry run.
    pub(crate) fn unnumbered(object: &Value) -> Self {
        Self { revision: 0, head: head_of(object), bytes: exact(object.to_string()) }
    }

    /// Reads back what `encode` wrote.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self, serde_json::Error> {
        let outline: Outline = serde_json::from_slice(&bytes)?;
        let meta = outline.metadata;
        let head = ObjectHead {
            uid: meta.uid.into(),
            labels: meta.labels.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
            owners: meta.owner_references.into_iter().map(|owner| owner.uid.into()).collect(),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.len(),
        };
        Ok(Self { revision: meta.resource_version.parse().unwrap_or_default(), head, bytes })
    }

    /// The whole object. One whose managed fields are too deep to be read, as a server before this one took them, is without
    /// these: it can be changed and deleted (C-154).
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).or_else(|_too_deep| without_managed_fields(&self.bytes)).unwrap_or_else(
            |error| {
                tracing::error!(%error, revision = self.revision, "a stored object cannot be read");
                Value::Object(Map::new())
            },
        )
    }
}

/// A text without the room in which it grew, which is as long as the text again: it is kept.
fn exact(text: String) -> Bytes {
    Bytes::from(text.into_boxed_str().into_boxed_bytes())
}

/// An object without its managed fields, however deep these are.
fn without_managed_fields(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes)?;
    let metadata = fields.remove("metadata").map_or("{}", RawValue::get);
    let mut metadata: BTreeMap<String, &RawValue> = serde_json::from_str(metadata)?;
    metadata.remove("managedFields");
    let read = |fields: BTreeMap<String, &RawValue>| -> Result<Map<String, Value>, serde_json::Error> {
        fields.into_iter().map(|(name, text)| Ok((name, serde_json::from_str(text.get())?))).collect()
    };
    let (mut object, metadata) = (read(fields)?, read(metadata)?);
    object.insert("metadata".to_owned(), Value::Object(metadata));
    Ok(Value::Object(object))
}

fn head_of(object: &Value) -> ObjectHead {
    let labels = object::at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let owners = object::items(object, &["metadata", "ownerReferences"]);
    ObjectHead {
        uid: object::meta(object, "uid").into(),
        labels: labels.filter_map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into()))).collect(),
        owners: owners.iter().filter_map(|owner| Some(owner.get("uid")?.as_str()?.into())).collect(),
        deleting: object::deleting(object),
        finalizers: object::finalizers(object).len(),
    }
}

#[derive(Deserialize)]
struct Outline {
    metadata: OutlineMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OutlineMeta {
    uid: String,
    resource_version: String,
    labels: std::collections::BTreeMap<String, String>,
    owner_references: Vec<OutlineOwner>,
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
}

#[derive(Deserialize)]
struct OutlineOwner {
    uid: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_154_an_object_that_was_taken_with_managed_fields_too_deep_to_be_read_is_read_without_them() {
        let deep = format!("{}1{}", "{\"f:a\":".repeat(500), "}".repeat(500));
        let text = format!(
            "{{\"metadata\":{{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[\"x\"],\"managedFields\":[{deep}]}},\"spec\":[1]}}"
        );
        let version = ObjectVersion::decode(Bytes::from(text)).unwrap();
        let metadata = json!({"uid": "u", "resourceVersion": "7", "finalizers": ["x"]});
        assert_eq!(version.value(), json!({"metadata": metadata, "spec": [1]}));
        assert_eq!((version.revision, version.head.finalizers), (7, 1));
    }
}
