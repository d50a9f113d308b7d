//! One Kubernetes API server: reads and writes of objects of any kind.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::Request as HttpRequest;
use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
    core::Request,
};
use orangery_core::{
    memory,
    name::{ApiVersion, Namespace},
};
use orangery_proposal::{ObjectKey, Selection, deployer::ApiResource};
use orangery_turns::{HeldBytes, SharedBytes};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    discovery::Discovery,
    requests::{NoRoom, RequestGate},
};

pub use self::requests::MOST_REQUESTS;
pub(crate) use self::requests::ServerGate;
use crate::{
    Call, Error,
    object_memory::{HeldObject, KeptObjects, MOST_OBJECT_BYTES, share_of},
    path::segment,
    request_figures::RequestFigures,
    shares::ClusterShares,
    watch::{Feeds, PAGE, Wake, Watches},
};

mod discovery;
mod requests;
mod shared_answers;

/// The field manager of everything that is written to targets.
const FIELD_MANAGER: &str = "orangery";

/// How long one request may take; watches are not requests of this sort.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The most pages of one list.
pub const MOST_PAGES: usize = 1_000;

/// One Kubernetes API server, asked for one call of a controller.
pub struct Cluster {
    server: Arc<ApiServer>,
    call: Call,
    /// What the newest answer takes, where it is held. Protects it, for a change.
    newest: Option<Mutex<HeldBytes>>,
}

/// What all share who ask one API server with the same credentials.
struct ApiServer {
    client: Client,
    address: String,
    requests: RequestGate,
    discovery: Discovery,
    watches: Watches,
    feeds: Feeds,
    objects: Arc<SharedBytes>,
    figures: Arc<RequestFigures>,
}

/// Which object a delete is meant for: one that is another by now, or has changed, is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// The uid of the object that was read.
    pub uid: String,
    /// The version that was read.
    pub resource_version: String,
}

impl Precondition {
    /// That the object is still as it was read.
    pub fn of(live: &Value) -> Self {
        let text = |at: &str| live.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { uid: text("/metadata/uid"), resource_version: text("/metadata/resourceVersion") }
    }
}

/// Whether an object of a list is one of a selection.
fn wanted(what: &Selection, object: &Value) -> bool {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    what.names.is_empty() || what.names.iter().any(|wanted| wanted == name)
}

/// How an object is deleted.
fn deletion_parameters(read: &Precondition, grace: Option<Duration>) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: Some(read.uid.clone()),
            resource_version: Some(read.resource_version.clone()),
        }),
        grace_period_seconds: grace.map(|grace| u32::try_from(grace.as_secs()).unwrap_or(u32::MAX)),
        ..DeleteParams::default()
    }
}

/// What a delete has answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion {
    /// The object is gone.
    Gone,
    /// It goes, but not yet: it has finalizers or time to stop.
    Pending(Box<Value>),
}

impl Cluster {
    /// The server behind a client. `address` names it in messages; `wake` is called for whoever waits on its objects.
    pub fn new(client: Client, address: String, wake: Wake) -> Self {
        Self::beside((client, address), wake, &Arc::default(), &ClusterShares::new(MOST_OBJECT_BYTES))
    }

    /// The same for a server that others ask, too, with credentials of their own: all share its limit of requests, and those of
    /// one namespace whether it answers. All clusters have their parts of `shares`.
    pub(crate) fn beside(
        (client, address): (Client, String),
        wake: Wake,
        server: &Arc<ServerGate>,
        shares: &ClusterShares,
    ) -> Self {
        let (requests, discovery) = (RequestGate::of(server), Discovery::default());
        let (watches, feeds) = (Watches::new(wake, shares.clone()), Feeds::new(shares));
        let (objects, figures) = (Arc::clone(&shares.objects), Arc::clone(&shares.requests));
        let server = ApiServer { client, address, requests, discovery, watches, feeds, objects, figures };
        Self { server: Arc::new(server), call: Call::default(), newest: None }
    }

    /// The same server, asked for a call: its requests end with the call.
    #[must_use]
    pub fn during(&self, call: &Call) -> Self {
        Self { server: Arc::clone(&self.server), call: call.clone(), newest: None }
    }

    /// The same server, asked about one object: what the newest answer takes of the memory that all clusters share is held until
    /// the next one is in, or this is dropped. An answer for which there is no room is an error that passes (C-201).
    #[must_use]
    pub fn of_object(&self) -> Self {
        let newest = Some(Mutex::new(self.server.objects.none_of(self.call.tenant())));
        Self { server: Arc::clone(&self.server), call: self.call.clone(), newest }
    }

    /// An object that is kept beside others which take so many bytes; `None` where all of them would take more than a quarter of
    /// what a namespace has of the memory that all clusters share, or where there is no room.
    pub fn keep(&self, object: Arc<Value>, others: u64) -> Option<HeldObject> {
        let bytes = memory::of(&object);
        let mut held = self.server.objects.none_of(self.call.tenant());
        let most = held.of().most_of_one() / 4;
        (others.saturating_add(bytes) <= most && held.set(bytes)).then(|| HeldObject::new(object, held))
    }

    /// Objects that are kept together take so many bytes of the memory that all clusters share from now on (C-201). `key` is the one
    /// that has come last.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn reserve(&self, kept: &mut KeptObjects, bytes: u64, key: &ObjectKey) -> Result<(), Error> {
        let none = || self.server.objects.none_of(self.call.tenant());
        kept.take(bytes, none).map_err(|limit| {
            let (cluster, key) = (self.address().to_owned(), Box::new(key.clone()));
            Error::NoRoomTogether { cluster, key, limit }
        })
    }

    /// Bytes of memory that objects of one namespace may take, on all clusters.
    pub fn most_objects_of_one(&self) -> u64 {
        self.server.objects.most_of_one()
    }

    /// Whether both are the same server, and share what is known of it.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.server.client
    }

    /// How messages name it.
    pub fn address(&self) -> &str {
        &self.server.address
    }

    /// The watches that items share on it.
    pub fn watches(&self) -> &Watches {
        &self.server.watches
    }

    /// The feeds that items share on it.
    pub fn feeds(&self) -> &Feeds {
        &self.server.feeds
    }

    /// One object; `None` where it does not exist.
    pub async fn get(&self, resource: &ApiResource, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let request = at(resource, key.namespace.as_ref()).get(&segment(&key.name), &GetParams::default());
        match self.ask(key, request).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object; the answer is what the server keeps.
    pub async fn create(&self, resource: &ApiResource, key: &ObjectKey, object: &Value) -> Result<Value, Error> {
        let request = at(resource, key.namespace.as_ref()).create(&post(), object.to_string().into_bytes());
        self.written(resource, key, self.ask(key, request).await)
    }

    /// A PUT; the object carries the resource version that was read.
    pub async fn replace(&self, resource: &ApiResource, key: &ObjectKey, object: &Value) -> Result<Value, Error> {
        self.written(resource, key, self.put(&post(), resource, key, object).await)
    }

    /// A JSON merge patch.
    pub async fn patch(&self, resource: &ApiResource, key: &ObjectKey, patch: &Value) -> Result<Value, Error> {
        self.written(resource, key, self.patched(&merging(), resource, key, &Patch::Merge(patch)).await)
    }

    /// Server-side apply. Fields of others that the object names are taken over, as controllers do.
    pub async fn apply(&self, resource: &ApiResource, key: &ObjectKey, object: &Value) -> Result<Value, Error> {
        self.written(resource, key, self.patched(&applying(None), resource, key, &Patch::Apply(object)).await)
    }

    /// Server-side apply in the name of another tool; fields of others stay theirs.
    pub async fn apply_as(
        &self,
        manager: &str,
        resource: &ApiResource,
        key: &ObjectKey,
        object: &Value,
    ) -> Result<Value, Error> {
        self.written(resource, key, self.patched(&applying(Some(manager)), resource, key, &Patch::Apply(object)).await)
    }

    /// What a server-side apply would answer, without one being done: of our own, or in the name of another tool.
    pub async fn try_apply(
        &self,
        manager: Option<&str>,
        resource: &ApiResource,
        key: &ObjectKey,
        object: &Value,
    ) -> Result<Value, Error> {
        self.patched(&applying(manager).dry_run(), resource, key, &Patch::Apply(object)).await
    }

    /// What a merge patch would answer, without one being done.
    pub async fn try_merge(&self, resource: &ApiResource, key: &ObjectKey, patch: &Value) -> Result<Value, Error> {
        self.patched(&merging().dry_run(), resource, key, &Patch::Merge(patch)).await
    }

    /// What a replacement would answer, without one being done.
    pub async fn try_replace(&self, resource: &ApiResource, key: &ObjectKey, object: &Value) -> Result<Value, Error> {
        self.put(&PostParams { dry_run: true, ..post() }, resource, key, object).await
    }

    async fn put(
        &self,
        params: &PostParams,
        resource: &ApiResource,
        key: &ObjectKey,
        object: &Value,
    ) -> Result<Value, Error> {
        let bytes = object.to_string().into_bytes();
        self.ask(key, at(resource, key.namespace.as_ref()).replace(&segment(&key.name), params, bytes)).await
    }

    async fn patched(
        &self,
        params: &PatchParams,
        resource: &ApiResource,
        key: &ObjectKey,
        patch: &Patch<&Value>,
    ) -> Result<Value, Error> {
        self.ask(key, at(resource, key.namespace.as_ref()).patch(&segment(&key.name), params, patch)).await
    }

    /// Deletes an object as it was read, its dependents in the background. One that is not there is gone; one that is another
    /// by now, or has changed, is a conflict. `grace` is the time that it has to end in, where not its own.
    pub async fn delete(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        read: &Precondition,
        grace: Option<Duration>,
    ) -> Result<Deletion, Error> {
        let params = deletion_parameters(read, grace);
        let request = at(resource, key.namespace.as_ref()).delete(&segment(&key.name), &params);
        let answer: Value = match self.ask(key, request).await {
            Ok(answer) => answer,
            Err(Error::Missing { .. }) => return Ok(Deletion::Gone),
            Err(error) => return Err(error),
        };
        if answer.get("kind") == Some(&json!("Status")) {
            return Ok(Deletion::Gone);
        }
        self.server.watches.upsert(resource, &answer);
        Ok(Deletion::Pending(Box::new(answer)))
    }

    /// All objects of a selection.
    pub async fn list(&self, resource: &ApiResource, what: &Selection) -> Result<Vec<Value>, Error> {
        let key = ObjectKey {
            api_version: what.api_version.clone(),
            kind: what.kind.clone(),
            namespace: what.namespace.clone(),
            name: "(all)".into(),
        };
        let mut params = ListParams {
            label_selector: what.labels.clone(),
            field_selector: what.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let mut objects = Vec::new();
        let (mut bytes, mut held) = (0, self.server.objects.none_of(self.call.tenant()));
        for _ in 0..MOST_PAGES {
            let request = at(resource, what.namespace.as_ref()).list(&params);
            let mut page: Value = self.ask(&key, request).await?;
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                let items: Vec<Value> = items.into_iter().filter(|item| wanted(what, item)).collect();
                bytes = items.iter().fold(bytes, |sum: u64, item| sum.saturating_add(memory::of(item)));
                objects.extend(items.into_iter().map(|item| typed(item, resource)));
            }
            if !held.set(bytes) {
                return Err(self.too_large(key, share_of(&self.server.objects)));
            }
            params.continue_token = page
                .pointer("/metadata/continue")
                .and_then(Value::as_str)
                .filter(|token| !token.is_empty())
                .map(str::to_owned);
            if params.continue_token.is_none() {
                return Ok(objects);
            }
        }
        Err(self.too_large(key, format!("{MOST_PAGES} pages")))
    }

    fn too_large(&self, key: ObjectKey, limit: String) -> Error {
        Error::TooLarge { cluster: self.address().to_owned(), key: Box::new(key), limit }
    }

    /// A request of the API, within its time and that of the call.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        key: &ObjectKey,
        request: Result<HttpRequest<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, Error> {
        let (answer, held) = Box::pin(self.server.ask(&self.call, key, request)).await?;
        if let Some(newest) = &self.newest {
            let before = mem::replace(&mut *newest.lock().unwrap_or_else(PoisonError::into_inner), held);
            drop(before);
        }
        Ok(answer)
    }

    /// Tells whoever watches the kind what a write has answered, so that nobody judges by an older version.
    fn written(&self, resource: &ApiResource, key: &ObjectKey, answer: Result<Value, Error>) -> Result<Value, Error> {
        let answer = answer?;
        self.server.watches.upsert(resource, &answer);
        if orangery_proposal::inventory::is_definition(key) {
            self.server.discovery.forget_all();
        }
        Ok(answer)
    }
}

impl ApiServer {
    async fn ask<T: DeserializeOwned>(
        &self,
        call: &Call,
        key: &ObjectKey,
        request: Result<HttpRequest<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<(T, HeldBytes), Error> {
        let classify = |error| match no_room_for_a_page(&error) {
            Some(limit) => Error::TooLarge { cluster: self.address.clone(), key: Box::new(key.clone()), limit },
            None => Error::classify(&self.address, key, error),
        };
        let request = request.map_err(|error| classify(kube::Error::BuildRequest(error)))?;
        let limit = call.left(ANSWER_WITHIN);
        if limit.is_zero() {
            return Err(Error::OutOfTime { cluster: self.address.clone(), key: Box::new(key.clone()) });
        }
        let attempt = self.requests.attempt(call.tenant()).map_err(|error| error.about(key))?;
        let (method, begun) = (request.method().clone(), Instant::now());
        let answer = call.wait(limit, self.requests.send(&attempt, (&self.client, &self.objects), request)).await;
        if let (Err(_elapsed), Some(left)) = (&answer, self.requests.left_alone_for(&attempt)) {
            let (cluster, key) = (self.address.clone(), Box::new(key.clone()));
            return Err(Error::Busy { cluster, key, seconds: left.as_secs_f64().ceil() as u64 });
        }
        if answer.is_err() && !attempt.was_sent() {
            return Err(Error::OutOfTime { cluster: self.address.clone(), key: Box::new(key.clone()) });
        }
        let answer = answer.map_or_else(|_elapsed| Err(self.unanswered(key, limit)), |answer| answer.map_err(classify));
        self.figures.count(&method, &answer, begun.elapsed());
        match &answer {
            Err(error @ (Error::Unreachable { .. } | Error::Unanswered { .. })) => attempt.failed(error),
            Ok(_) | Err(_) => attempt.answered(),
        }
        // What was known of the version does not hold any more.
        if let Err(Error::NotServed { api_version, .. }) = &answer {
            self.discovery.forget(api_version);
        }
        answer
    }

    fn unanswered(&self, key: &ObjectKey, limit: Duration) -> Error {
        Error::Unanswered {
            cluster: self.address.clone(),
            key: Box::new(key.clone()),
            seconds: limit.as_secs_f64().ceil() as u64,
        }
    }
}

/// The limit that a page of objects does not keep.
fn no_room_for_a_page(error: &kube::Error) -> Option<String> {
    let kube::Error::Service(error) = error else { return None };
    error.downcast_ref::<NoRoom>().filter(|no_room| no_room.is_page).map(|no_room| no_room.limit.clone())
}

/// Of our own, fields of others are taken over.
fn applying(manager: Option<&str>) -> PatchParams {
    manager.map_or_else(|| PatchParams::apply(FIELD_MANAGER).force(), PatchParams::apply)
}

fn merging() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn post() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// Whether an object is being deleted.
pub fn is_being_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

fn typed(mut object: Value, resource: &ApiResource) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".to_owned(), json!(resource.api_version));
        map.insert("kind".to_owned(), json!(resource.kind));
    }
    object
}

/// The requests for a collection.
pub(crate) fn at(resource: &ApiResource, namespace: Option<&Namespace>) -> Request {
    let (version, plural) = (version_path(&resource.api_version), segment(&resource.plural));
    Request::new(match namespace {
        Some(namespace) if resource.namespaced => format!("{version}/namespaces/{}/{plural}", segment(namespace)),
        Some(_) | None => format!("{version}/{plural}"),
    })
}

/// The path of a group and version.
fn version_path(api_version: &ApiVersion) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/apis/{}/{}", segment(group), segment(version)),
        None => format!("/api/{}", segment(api_version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_of_the_path() {
        let names = ["cm-1.x", "system:node", "Not A Name", "../secrets/x", "a?b#c", "..", "é"];
        assert_eq!(
            names.map(segment),
            ["cm-1.x", "system:node", "Not%20A%20Name", "..%2Fsecrets%2Fx", "a%3Fb%23c", "%2E%2E", "%C3%A9"]
        );
    }

    #[test]
    fn a_plural_that_a_definition_makes_up_stays_one_segment() {
        let resource = ApiResource {
            api_version: "g/v1".into(),
            kind: "K".into(),
            plural: "../../secrets?x#".to_owned(),
            namespaced: true,
        };
        let path = at(&resource, Some(&"a".into())).url_path;
        assert_eq!(path, "/apis/g/v1/namespaces/a/..%2F..%2Fsecrets%3Fx%23");
    }

    #[test]
    fn an_api_version_stays_below_the_root_of_its_group() {
        let versions = ["v1", "apps/v1", "../v1", "a/../../api/v1"];
        assert_eq!(
            versions.map(|version| version_path(&version.into())),
            ["/api/v1", "/apis/apps/v1", "/apis/%2E%2E/v1", "/apis/a/..%2F..%2Fapi%2Fv1"]
        );
    }

    #[test]
    fn con_30_what_needs_no_time_to_end_in_gets_none_and_is_still_the_object_that_was_read() {
        let read = Precondition { uid: "u".to_owned(), resource_version: "1".to_owned() };
        let sent = |grace| serde_json::to_value(deletion_parameters(&read, grace)).unwrap();
        let expected =
            json!({"propagationPolicy": "Background", "preconditions": {"uid": "u", "resourceVersion": "1"}});
        assert_eq!(sent(None), expected);
        assert_eq!(sent(Some(Duration::ZERO))["gracePeriodSeconds"], json!(0));
        assert_eq!(sent(Some(Duration::ZERO))["preconditions"], expected["preconditions"]);
    }
}
