//! An object as the server's watch sends it.

use std::{borrow::Cow, marker::PhantomData, sync::Arc};

use kube::{Resource, core::ObjectMeta};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use crate::Watched;

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
