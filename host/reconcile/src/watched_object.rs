//! An object as the server's watch sends it.

use std::{
    borrow::Cow,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Resource, core::ObjectMeta};
use orangery_core::memory;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use crate::Watched;

/// Bytes of memory from which on objects are decoded one after the other.
const LARGE: u64 = 4 << 20;

/// Bytes of text from which on an object is decoded off the executor: what is below is never large, and takes less than a
/// millisecond.
pub(crate) const LONG: usize = 32 << 10;

/// The turn of a large object. Held while it is decoded and told, by one watch of all: a server may have many of them, and a
/// machine may have many processors.
static LARGE_TURN: Mutex<()> = Mutex::new(());

/// An object as the watch tells it: its metadata, and its text for those who have not heard of this version yet.
///
/// Most events are echoes of our own writes, which the store knows already: they are never decoded.
#[derive(Clone, Debug)]
pub(crate) struct WatchedObject<K> {
    pub(crate) meta: ObjectMeta,
    text: Arc<RawValue>,
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

    pub(crate) fn decode(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(self.text.get())
    }
}

#[derive(Deserialize)]
struct EventHead {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de, K> Deserialize<'de> for WatchedObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: EventHead = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { meta: head.metadata, text: text.into(), kind: PhantomData })
    }
}

impl<K: Resource<DynamicType = ()>> Resource for WatchedObject<K> {
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
