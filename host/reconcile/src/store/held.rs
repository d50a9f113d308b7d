//! One object as a store holds it: whole, or folded into its text.

use std::sync::Arc;

use kube::core::ObjectMeta;

use crate::Watched;

/// An object, with what is asked of it most.
pub(super) struct StoredObject<K> {
    uid: Box<str>,
    version: Option<u64>,
    form: StoredForm<K>,
}

/// The form in which an object is held. Cheap to clone, so that no reader unfolds under the lock.
pub(super) enum StoredForm<K> {
    Whole(Arc<K>),
    /// As JSON. The many small maps of an object need three times as much memory as its text.
    Folded(Arc<[u8]>),
}

impl<K> Clone for StoredForm<K> {
    fn clone(&self) -> Self {
        match self {
            StoredForm::Whole(object) => StoredForm::Whole(Arc::clone(object)),
            StoredForm::Folded(text) => StoredForm::Folded(Arc::clone(text)),
        }
    }
}

impl<K: Watched> StoredForm<K> {
    /// The object. What was folded can be unfolded: `None` is a fault of its kind's code, and logged.
    pub(super) fn object(&self) -> Option<Arc<K>> {
        match self {
            StoredForm::Whole(object) => Some(Arc::clone(object)),
            StoredForm::Folded(text) => match serde_json::from_slice(text) {
                Ok(object) => Some(Arc::new(object)),
                Err(error) => {
                    tracing::error!(kind = %K::kind(&()), %error, "what a store has folded cannot be unfolded");
                    None
                }
            },
        }
    }
}

impl<K: Watched> StoredObject<K> {
    /// An object held whole, or folded.
    pub(super) fn new(object: &Arc<K>, fold: bool) -> Self {
        let text = if fold { serde_json::to_vec(object.as_ref()).ok() } else { None };
        let form = text.map_or_else(|| StoredForm::Whole(Arc::clone(object)), |text| StoredForm::Folded(text.into()));
        let meta = object.meta();
        Self { uid: uid(meta).into(), version: version(meta), form }
    }

    pub(super) fn form(&self) -> StoredForm<K> {
        self.form.clone()
    }

    pub(super) fn object(&self) -> Option<Arc<K>> {
        self.form.object()
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    /// Its resource version as a number.
    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }
}

pub(super) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

/// Resource versions of one kind are numbers that grow, on every server that is built on etcd's revisions
/// (Kubernetes KEP-5504 makes it a promise).
pub(super) fn version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}
