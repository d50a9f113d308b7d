//! Writes objects under the version that was read, and tells the store what the server answered.

use std::sync::Arc;

use http::{HeaderValue, header::CONTENT_TYPE};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
    core::Request,
};
use orangery_core::levels::{self, DEEPEST_OBJECT};
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::error::{CONFLICT, WriteError};
use crate::{
    Key, Store, Watched,
    difference::{PatchDocument, difference},
    key::describe,
    status_authors::FIELD_MANAGER,
    store::ServerStatus,
    watched_object::{WatchedObject, too_deep},
};

mod error;

/// The media type of a JSON patch, which the client library sends only with a dependency of its own for it.
const JSON_PATCH: &str = "application/json-patch+json";

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
        let document = document(object)?;
        check_levels(object, &document)?;
        let answer = async {
            let request = request(object).create(&params, document.to_string().into_bytes());
            self.client.request(request.map_err(kube::Error::BuildRequest)?).await
        };
        match answer.await {
            Ok(answer) => self.take_in(object, &answer),
            Err(error) => Err(self.refused(object, error).await),
        }
    }

    /// Writes what differs between `before`, as it was read, and `after`, the status left out: a JSON merge patch, or a JSON
    /// patch where that could not say it (C-170), under `before`'s resource version. Sends nothing where nothing differs.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn update(&self, before: &K, after: &K) -> Result<Arc<K>, WriteError> {
        self.patch(before, after, WrittenPart::Main).await
    }

    /// The same for the status, through the status subresource: everything else is left out. What somebody has changed meanwhile beside
    /// the status is as if it had come right after this write, which is done once more (C-364): else a job would begin anew with a spec
    /// that is not the one with which it has come to its objects already.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn update_status(&self, before: &K, after: &K) -> Result<Arc<K>, WriteError> {
        let written = self.patch(before, after, WrittenPart::Status).await;
        if let Err(WriteError::Conflict { .. }) = &written
            && let Some((newest, after)) = self.with_same_status(before, after)?
        {
            return self.patch(&newest, &after, WrittenPart::Status).await;
        }
        written
    }

    /// The same under the version that was read alone: what is written was decided by what stands beside the status, as that a job begins.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn update_status_as_read(&self, before: &K, after: &K) -> Result<Arc<K>, WriteError> {
        self.patch(before, after, WrittenPart::Status).await
    }

    /// The object as the store knows it now, and the same with another status; `None` where it is another object by now, or its status is
    /// not the one that was read.
    fn with_same_status(&self, before: &K, after: &K) -> Result<Option<(Arc<K>, K)>, WriteError> {
        let Some(newest) = self.store.get(&Key::of(before)) else { return Ok(None) };
        let (mut document, read, mut written) = (document(newest.as_ref())?, document(before)?, document(after)?);
        let is_same = newest.meta().uid == before.meta().uid && document.get("status") == read.get("status");
        let (true, Some(members)) = (is_same, document.as_object_mut()) else { return Ok(None) };
        members.remove("status");
        if let Some(status) = written.get_mut("status") {
            members.insert("status".to_owned(), status.take());
        }
        Ok(serde_json::from_value(document).ok().map(|after| (newest, after)))
    }

    /// Deletes an object, its dependents in the background, if it still is as it was read: of that uid and that resource
    /// version, since a later one may have another owner (C-23). An object that is gone already is a success. One that
    /// has finalizers stays known, with its deletion timestamp.
    ///
    /// # Errors
    /// [`WriteError`]
    pub async fn delete(&self, object: &K) -> Result<(), WriteError> {
        let deleted = self.delete_version(object, object.meta().resource_version.clone()).await;
        if let Err(WriteError::Unreadable { .. }) = deleted
            && let Some(version) = self.unreadable_version(object).await
        {
            return self.delete_version(object, Some(version)).await;
        }
        deleted
    }

    async fn delete_version(&self, object: &K, version: Option<String>) -> Result<(), WriteError> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions { uid: object.meta().uid.clone(), resource_version: version }),
            ..DeleteParams::default()
        };
        match self.ask_to_delete(object, &params).await {
            Ok(answer) => {
                match answer {
                    Some(last) if last.meta.finalizers.as_ref().is_some_and(|held| !held.is_empty()) => {
                        self.take_in(object, &last)?;
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
                WriteError::Conflict { .. } | WriteError::Unreadable { .. } if !self.is_there(object) => {
                    self.store.forget(object);
                    Ok(())
                }
                error @ (WriteError::AlreadyExists { .. }
                | WriteError::Conflict { .. }
                | WriteError::Refused { .. }
                | WriteError::Unreadable { .. }
                | WriteError::NoWebhook { .. }
                | WriteError::Unreachable { .. }) => Err(error),
            },
        }
    }

    /// The answer to a deletion: what is left of the object, if the server says it.
    async fn ask_to_delete(&self, object: &K, params: &DeleteParams) -> kube::Result<Option<WatchedObject<K>>> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            kind: String,
        }
        let request = request(object).delete(&Key::of(object).name, params).map_err(kube::Error::BuildRequest)?;
        let text = self.client.request_text(request).await?;
        let answer: Answer = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        if answer.kind == "Status" {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).map_err(kube::Error::SerdeError)
    }

    /// The version of an object that cannot be read any more, if it still is the one that was read, of the same owners (C-23).
    async fn unreadable_version(&self, object: &K) -> Option<String> {
        let newest = self.api(object).get_opt(&Key::of(object).name).await.ok()??.decode_in_part().ok()?;
        let (before, now) = (object.meta(), newest.meta());
        let is_same = before.uid == now.uid && before.owner_references == now.owner_references;
        now.resource_version.clone().filter(|_| is_same)
    }

    /// Tells the store what was answered.
    fn take_in(&self, object: &K, answer: &WatchedObject<K>) -> Result<Arc<K>, WriteError> {
        let decoded = answer.decode().map_err(|error| {
            self.store.unread(answer, &error);
            WriteError::Unreadable { object: describe(object), why: error.to_string() }
        });
        decoded.map(|answer| self.store.upsert(answer))
    }

    /// Whether the store knows this very object, and no other of its name.
    fn is_there(&self, object: &K) -> bool {
        self.store.get(&Key::of(object)).is_some_and(|known| known.meta().uid == object.meta().uid)
    }

    async fn patch(&self, before: &K, after: &K, part: WrittenPart) -> Result<Arc<K>, WriteError> {
        let written = self.store.written_status(before);
        let Some(patch) = change(before, after, (part, written))? else { return Ok(Arc::new(before.clone())) };
        let answer = async {
            let (body, is_json) = match patch {
                PatchDocument::Merge(patch) => (patch, false),
                PatchDocument::Json(operations) => (Value::Array(operations), true),
            };
            let manager = match part {
                WrittenPart::Main => FIELD_MANAGER.to_owned(),
                WrittenPart::Status => self.store.status_author().to_owned(),
            };
            let params = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
            let (to, name, body) = (request(before), Key::of(before).name, Patch::Merge(body));
            let asked = match part {
                WrittenPart::Main => to.patch(&name, &params, &body),
                WrittenPart::Status => to.patch_subresource("status", &name, &params, &body),
            };
            let mut asked = asked.map_err(kube::Error::BuildRequest)?;
            if is_json {
                asked.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_PATCH));
            }
            self.client.request(asked).await
        };
        let answer = answer.await;
        match answer {
            Ok(answer) => self.take_in(before, &answer),
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
                    Ok(Some(newest)) => match newest.decode() {
                        Ok(newest) => {
                            self.store.upsert_read(before.as_deref(), newest);
                            error
                        }
                        Err(unread) => {
                            self.store.unread(&newest, &unread);
                            WriteError::Unreadable { object: describe(object), why: unread.to_string() }
                        }
                    },
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
            WriteError::Refused { .. }
            | WriteError::Unreadable { .. }
            | WriteError::NoWebhook { .. }
            | WriteError::Unreachable { .. } => error,
        }
    }

    fn api(&self, object: &K) -> Api<WatchedObject<K>> {
        Api::namespaced(self.client.clone(), namespace_of(object))
    }
}

fn namespace_of<K: Watched>(object: &K) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

/// Requests of the kind of an object in its namespace.
fn request<K: Watched>(object: &K) -> Request {
    Request::new(K::url_path(&(), Some(namespace_of(object))))
}

/// What is deeper than it could be read back is not written.
fn check_levels<K: Watched>(object: &K, written: &Value) -> Result<(), WriteError> {
    let found = levels::of(written);
    if found <= DEEPEST_OBJECT {
        return Ok(());
    }
    Err(WriteError::Unreadable { object: describe(object), why: too_deep(found) })
}

fn document<K: Watched>(object: &K) -> Result<Value, WriteError> {
    serde_json::to_value(object).map_err(|error| WriteError::Unreachable {
        object: describe(object),
        source: Box::new(kube::Error::SerdeError(error)),
    })
}

/// What changes of one part of an object, under the version of `before`. `written` is the status that the server has in that version,
/// where `before` has another one (C-216).
fn change<K: Watched>(
    before: &K,
    after: &K,
    (part, written): (WrittenPart, Option<ServerStatus>),
) -> Result<Option<PatchDocument>, WriteError> {
    let document = |object: &K, written: Option<ServerStatus>| -> Result<Value, WriteError> {
        let mut document = document(object)?;
        let status = document.as_object_mut().and_then(|members| members.remove("status"));
        Ok(match (part, written.map_or(status, |written| written.0)) {
            (WrittenPart::Main, _) => document,
            (WrittenPart::Status, Some(status)) => json!({ "status": status }),
            (WrittenPart::Status, None) => json!({}),
        })
    };
    let after = document(after, None)?;
    let difference = difference(&document(before, written)?, &after, before.meta().resource_version.as_deref());
    if difference.is_some() {
        check_levels(before, &after)?;
    }
    Ok(difference)
}

#[cfg(test)]
mod tests;
