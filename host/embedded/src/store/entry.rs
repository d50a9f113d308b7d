//! One stored object: its bytes as they are on the wire, and the few facts that indexes and selectors need.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

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

    /// The whole object. The bytes were encoded by this server, so they parse.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("stored bytes were encoded by `encode`")
    }
}

/// A text without the room in which it grew, which is as long as the text again: it is kept.
fn exact(text: String) -> Bytes {
    Bytes::from(text.into_boxed_str().into_boxed_bytes())
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
