//! Writes objects under the version that was read, and tells the store what the server answered.

use std::sync::Arc;

use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use serde_json::{Value, json};

pub use self::error::{CONFLICT, WriteError};
use crate::{Key, Store, Watched, difference::merge_patch, key::describe};

mod error;

/// The field manager of writes to our own kinds.
const FIELD_MANAGER: &str = "orangery";

/// Writes the objects of one kind. Every answer goes to the store before the caller has it; counts and logs nothing.
///
/// After [`WriteError::Conflict`] and [`WriteError::AlreadyExists`] the writer has read the object once more, so the
/// store knows the version that was in the way and the next try does not meet it again.
pub struct Writer<K> {
    client: Client,
    store: Store<K>,
}

impl<K> Clone for Writer<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), store: self.store.clone() }
    }
}

/// The parts of an object that one write may change.
#[derive(Clone, Copy)]
enum WrittenPart {
    /// Everything but the status.
    Main,
    /// The status alone.
    Status,
}

impl<K: Watched> Writer<K> {
    /// A writer that tells `store`.
    pub fn new(client: Client, store: Store<K>) -> Self {
        Self { client, store }
    }

    /// The store that is told.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// Creates an object.
    ///
    /// # Errors
    /// [`WriteError`]; the status is not written, as the server ignores it at creation.
    pub async fn create(&self, object: &K) -> Result<Arc<K>, WriteError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.api(object).create(&params, object).await {
            Ok(answer) => Ok(self.store.upsert(answer)),
            Err(error) => Err(self.refused(object, error).await),
        }
    }

    /// Writes what differs between `before`, as it was read, and `after`, the status left out: a JSON merge patch
    /// under `before`'s resource version. Sends nothing where nothing differs.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn update(&self, before: &K, after: &K) -> Result<Arc<K>, WriteError> {
        self.patch(before, after, WrittenPart::Main).await
    }

    /// The same for the status, through the status subresource: everything else is left out.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn update_status(&self, before: &K, after: &K) -> Result<Arc<K>, WriteError> {
        self.patch(before, after, WrittenPart::Status).await
    }

    /// Deletes an object, its dependents in the background, if it still is as it was read: of that uid and that resource
    /// version, since a later one may have another owner (C-23). An object that is gone already is a success. One that
    /// has finalizers stays known, with its deletion timestamp.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn delete(&self, object: &K) -> Result<(), WriteError> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions {
                uid: object.meta().uid.clone(),
                resource_version: object.meta().resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let key = Key::of(object);
        match self.api(object).delete(&key.name, &params).await {
            Ok(answer) => {
                match answer.left() {
                    Some(last) if last.meta().finalizers.as_ref().is_some_and(|held| !held.is_empty()) => {
                        self.store.upsert(last);
                    }
                    Some(_) | None => self.store.forget(object),
                }
                Ok(())
            }
            Err(error) => match self.refused(object, error).await {
                WriteError::NotFound { .. } => {
                    self.store.forget(object);
                    Ok(())
                }
                // The name belongs to another object by now: the one that was meant is gone.
                WriteError::Conflict { .. } if !self.is_there(object) => {
                    self.store.forget(object);
                    Ok(())
                }
                error @ (WriteError::AlreadyExists { .. }
                | WriteError::Conflict { .. }
                | WriteError::Refused { .. }
                | WriteError::NoWebhook { .. }
                | WriteError::Unreachable { .. }) => Err(error),
            },
        }
    }

    /// Whether the store knows this very object, and no other of its name.
    fn is_there(&self, object: &K) -> bool {
        self.store.get(&Key::of(object)).is_some_and(|known| known.meta().uid == object.meta().uid)
    }

    async fn patch(&self, before: &K, after: &K, part: WrittenPart) -> Result<Arc<K>, WriteError> {
        let Some(patch) = difference(before, after, part)? else { return Ok(Arc::new(before.clone())) };
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let (api, name) = (self.api(before), Key::of(before).name);
        let answer = match part {
            WrittenPart::Main => api.patch(&name, &params, &Patch::Merge(patch)).await,
            WrittenPart::Status => api.patch_status(&name, &params, &Patch::Merge(patch)).await,
        };
        match answer {
            Ok(answer) => Ok(self.store.upsert(answer)),
            Err(error) => Err(self.refused(before, error).await),
        }
    }

    /// Judges an error and brings the store up to date where the error says that it is not.
    async fn refused(&self, object: &K, error: kube::Error) -> WriteError {
        let error = WriteError::classify(describe(object), error);
        match &error {
            WriteError::Conflict { .. } | WriteError::AlreadyExists { .. } => {
                let key = Key::of(object);
                let before = self.store.get(&key);
                match self.api(object).get_opt(&key.name).await {
                    Ok(Some(newest)) => {
                        self.store.upsert_read(before.as_deref(), newest);
                        error
                    }
                    Ok(None) => {
                        self.store.forget(object);
                        error
                    }
                    Err(unread) => WriteError::classify(describe(object), unread),
                }
            }
            WriteError::NotFound { .. } => {
                self.store.forget(object);
                error
            }
            WriteError::Refused { .. } | WriteError::NoWebhook { .. } | WriteError::Unreachable { .. } => error,
        }
    }

    fn api(&self, object: &K) -> Api<K> {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// The patch of one part of an object, under the version of `before`.
fn difference<K: Watched>(before: &K, after: &K, part: WrittenPart) -> Result<Option<Value>, WriteError> {
    let document = |object: &K| -> Result<Value, WriteError> {
        let mut document = serde_json::to_value(object).map_err(|error| WriteError::Unreachable {
            object: describe(object),
            source: Box::new(kube::Error::SerdeError(error)),
        })?;
        let status = document.as_object_mut().and_then(|members| members.remove("status"));
        Ok(match part {
            WrittenPart::Main => document,
            WrittenPart::Status => json!({ "status": status }),
        })
    };
    let Some(mut patch) = merge_patch(&document(before)?, &document(after)?) else { return Ok(None) };
    if let (Some(patch), Some(version)) = (patch.as_object_mut(), &before.meta().resource_version) {
        let meta = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("resourceVersion".to_owned(), json!(version));
        }
    }
    Ok(Some(patch))
}

#[cfg(test)]
mod tests;
