//! An object as the server sends it, in a watch, a list or an answer.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, core::ObjectMeta};
use orangery_core::{
    levels::{self, DEEPEST_OBJECT},
    memory,
    name::{Namespace, ObjectName},
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use crate::{
    Watched,
    status_authors::{ManagedFieldsHead, StatusAuthor, authors},
};

/// Bytes of memory from which on objects are decoded one after the other.
const LARGE: u64 = 4 << 20;

/// Bytes of text from which on an object is decoded off the executor: what is below is never large, and takes less than a
/// millisecond.
pub(crate) const LONG: usize = 32 << 10;

/// The turn of a large object. Held while it is decoded and told, by one watch of all: a server may have many of them, and a
/// machine may have many processors.
static LARGE_TURN: Mutex<()> = Mutex::new(());

/// An object as a server tells it: which one it is by its metadata, and its text for those who have not heard of this version yet.
///
/// Most events are echoes of our own writes, which the store knows already: they are never decoded.
#[derive(Clone, Debug)]
pub(crate) struct WatchedObject<K> {
    pub(crate) meta: ObjectMeta,
    text: Arc<RawValue>,
    /// The operators that have written its status.
    pub(crate) authors: Vec<StatusAuthor>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Watched> WatchedObject<K> {
    /// Whoever decodes holds this until nothing of the object is whole any more: at most one large object is, whatever number
    /// of watches there are (C-99).
    pub(crate) fn turn(&self) -> Option<MutexGuard<'static, ()>> {
        let is_large = memory::of_json(self.text.get()) > LARGE;
        is_large.then(|| LARGE_TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether decoding it, or waiting for its turn, may take long.
    pub(crate) fn is_long(&self) -> bool {
        self.text.get().len() > LONG
    }

    /// The object, without its managed fields, which nobody here reads: they are as deep as whoever writes them likes.
    ///
    /// # Errors
    /// It is too deep, or not of its kind. One that is being deleted is never too deep: what is so is left out of it, so that its
    /// owner is rid of it without correcting it before (C-153).
    pub(crate) fn decode(&self) -> Result<K, serde_json::Error> {
        let text = without_managed_fields(self.text.get())?;
        let found = levels::of_json(&text);
        if found <= DEEPEST_OBJECT {
            return serde_json::from_str(&text);
        }
        if self.meta.deletion_timestamp.is_some() {
            return serde_json::from_str(&levels::cut(&text, DEEPEST_OBJECT));
        }
        Err(serde_json::Error::custom(too_deep(found)))
    }

    /// The object without what is too deep in it.
    pub(crate) fn decode_in_part(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(&levels::cut(&without_managed_fields(self.text.get())?, DEEPEST_OBJECT))
    }
}

/// Why an object with values so deep in each other is neither read nor written.
pub(crate) fn too_deep(levels: usize) -> String {
    format!(
        "its values stand {levels} levels deep in each other, {DEEPEST_OBJECT} are allowed; make what stands in it less deep, or \
         delete it"
    )
}

/// The text of an object with `null` for its managed fields.
fn without_managed_fields(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    #[derive(Deserialize)]
    struct OutlinedObject<'a> {
        #[serde(borrow, default)]
        metadata: MetaOutline<'a>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct MetaOutline<'a> {
        #[serde(borrow)]
        managed_fields: Option<&'a RawValue>,
    }
    let outline: OutlinedObject<'_> = serde_json::from_str(text)?;
    let Some(fields) = outline.metadata.managed_fields.map(RawValue::get) else { return Ok(Cow::Borrowed(text)) };
    let start = fields.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let (before, after) = (text.get(..start), text.get(start.saturating_add(fields.len())..));
    Ok(Cow::Owned([before.unwrap_or_default(), "null", after.unwrap_or_default()].concat()))
}

#[derive(Deserialize)]
struct EventHead {
    #[serde(default)]
    metadata: MetaHead,
}

/// An object of which nothing is read but which one it is and its labels: nothing that stands in it is too deep for that (C-153).
#[derive(Clone, Debug)]
pub struct UnreadObject<K> {
    meta: ObjectMeta,
    kind: PhantomData<fn() -> K>,
}

impl<'de, K> Deserialize<'de> for UnreadObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { meta: EventHead::deserialize(deserializer)?.metadata.into(), kind: PhantomData })
    }
}

/// What is known of an object before it is decoded: nothing in it is deep, whatever stands beside.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MetaHead {
    namespace: Option<Namespace>,
    name: Option<ObjectName>,
    labels: Option<BTreeMap<String, String>>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
    managed_fields: Option<Vec<ManagedFieldsHead>>,
}

impl From<MetaHead> for ObjectMeta {
    fn from(head: MetaHead) -> Self {
        Self {
            namespace: head.namespace.map(Into::into),
            name: head.name.map(Into::into),
            labels: head.labels,
            uid: head.uid,
            resource_version: head.resource_version,
            deletion_timestamp: head.deletion_timestamp,
            deletion_grace_period_seconds: head.deletion_grace_period_seconds,
            finalizers: head.finalizers,
            ..Self::default()
        }
    }
}

impl<'de, K> Deserialize<'de> for WatchedObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut head: EventHead = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let authors = authors(head.metadata.managed_fields.take().unwrap_or_default());
        Ok(Self { meta: head.metadata.into(), text: text.into(), authors, kind: PhantomData })
    }
}

/// Makes what has the metadata of an object a resource of its kind.
macro_rules! resource_of {
    ($type:ident) => {
        impl<K: Resource<DynamicType = ()>> Resource for $type<K> {
            type DynamicType = ();
            type Scope = K::Scope;

            fn kind(dt: &()) -> Cow<'_, str> {
                K::kind(dt)
            }

            fn group(dt: &()) -> Cow<'_, str> {
                K::group(dt)
            }

            fn version(dt: &()) -> Cow<'_, str> {
                K::version(dt)
            }

            fn plural(dt: &()) -> Cow<'_, str> {
                K::plural(dt)
            }

            fn meta(&self) -> &ObjectMeta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.meta
            }
        }
    };
}

resource_of!(WatchedObject);
resource_of!(UnreadObject);
