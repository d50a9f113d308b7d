//! A request about resources, with its route and parameters read.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody as _, to_bytes},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::Value;

use super::{
    respond,
    route::{Route, SUBRESOURCES},
    strict,
};
use crate::{
    builtin::{self, ProtobufError},
    cluster::{EmbeddedCluster, key},
    form::ResponseForm,
    identity::User,
    metrics::Series,
    off_the_executor::LARGE,
    operation::{
        DeletionOptions, FieldValidation, ListQuery, ObjectPart, PatchCall, WatchQuery, WriteOutcome, WriteRequest,
        listing, watch,
    },
    patch::{PatchType, apply::OnConflict},
    refusal::{Refusal, RefusalReason},
    resource::Served,
    selector::ListSelector,
};

/// The largest body, as on the real server.
const MOST_BYTES: usize = 3 << 20;

/// A request with its route and parameters read.
pub(super) struct RoutedRequest {
    pub(super) cluster: Arc<EmbeddedCluster>,
    pub(super) user: User,
    pub(super) route: Route,
    pub(super) served: Served,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) query: BTreeMap<String, String>,
}

impl RoutedRequest {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.parameter(name), Some("true" | "1"))
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    pub(super) fn namespace(&self) -> &str {
        self.route.namespace.as_deref().unwrap_or_default()
    }

    /// What the request is counted under: names of others are no part of it (C-300).
    pub(super) fn series(&self) -> Series {
        let apply = self.content_type().starts_with("application/apply-patch");
        let verb = match (self.method.as_str(), self.route.name.is_some()) {
            ("GET" | "HEAD", _) if self.flag("watch") => "WATCH",
            ("GET" | "HEAD", true) => "GET",
            ("GET" | "HEAD", false) => "LIST",
            ("POST", _) => "POST",
            ("PUT", _) => "PUT",
            ("PATCH", _) if apply => "APPLY",
            ("PATCH", _) => "PATCH",
            ("DELETE", true) => "DELETE",
            ("DELETE", false) => "DELETECOLLECTION",
            _ => "OTHER",
        };
        let subresource = self.route.subresource.as_deref().unwrap_or_default();
        let is_known = subresource.is_empty() || SUBRESOURCES.contains(&subresource);
        Series {
            verb,
            group: self.route.group.clone(),
            version: self.route.version.clone(),
            resource: self.route.plural.clone(),
            subresource: if is_known { subresource } else { "other" }.to_owned(),
            code: 0,
        }
    }

    /// Whether namespace, name and subresource fit the resource.
    pub(super) fn check_path(&self) -> Result<(), Refusal> {
        let namespaced = self.served.resource.namespaced;
        let named = self.route.name.is_some();
        let creates = self.method == Method::POST && self.route.subresource.is_none();
        let fits = match (&self.route.namespace, namespaced) {
            (Some(_), namespaced) => namespaced,
            (None, true) => !named && !creates,
            (None, false) => true,
        };
        let has_status = self.route.subresource.as_deref() != Some("status") || self.served.version().status;
        if fits && has_status { Ok(()) } else { Err(Refusal::unknown_path()) }
    }

    /// Whether the request may take long: a list, a long body or one whose length is not known, or an object that is long. What a
    /// watch tells is made later, piece by piece.
    pub(super) fn may_take_long(&self, body: &Body) -> bool {
        let is_long = body.size_hint().exact().is_none_or(|length| length > LARGE);
        match &self.route.name {
            _ if matches!(self.method, Method::GET | Method::HEAD) && self.flag("watch") => false,
            None => self.method != Method::POST || is_long,
            Some(name) => {
                let stored = self.cluster.store.latest(&key(&self.served, self.namespace(), name));
                is_long || stored.is_some_and(|stored| stored.bytes.len() as u64 > LARGE)
            }
        }
    }

    fn content_type(&self) -> &str {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as a value: JSON, or YAML where the content type says so.
    pub(super) async fn body(&self, body: Body) -> Result<Value, Refusal> {
        let bytes = read(body).await?;
        parse(&bytes, self.content_type())
    }

    /// A write of the object in the body.
    pub(super) async fn write(&self, body: Body) -> Result<(WriteRequest, Value), Refusal> {
        let bytes = read(body).await?;
        self.checked(&bytes, self.content_type())
    }

    /// A write with its body, which is held against fields that are there twice where the author wants to know of them.
    fn checked(&self, bytes: &[u8], media: &str) -> Result<(WriteRequest, Value), Refusal> {
        let mut call = self.call();
        if call.validation == FieldValidation::Ignore || media == PROTOBUF {
            return Ok((call, parse(bytes, media)?));
        }
        let body = match strict::json(bytes) {
            Ok(body) => body,
            Err(_) => {
                let told = strict::doubled_key(bytes).filter(|_| is_yaml(media));
                if let Some(told) = told.filter(|_| call.validation == FieldValidation::Strict) {
                    return Err(Refusal::bad_request(format!("error converting YAML to JSON: {told}")));
                }
                return Ok((call, parse(bytes, media)?));
            }
        };
        call.doubled = body.doubled;
        Ok((call, body.value))
    }

    /// What a write has in common with all others.
    pub(super) fn call(&self) -> WriteRequest {
        let agent = self.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let manager = self.parameter("fieldManager").filter(|manager| !manager.is_empty());
        let apply = PatchType::parse(self.content_type()) == Some(PatchType::Apply);
        let from_agent =
            if apply { "" } else { agent.split('/').next().filter(|a| !a.is_empty()).unwrap_or("unknown") };
        WriteRequest {
            served: self.served.clone(),
            namespace: self.namespace().to_owned(),
            part: if self.route.subresource.is_some() { ObjectPart::Status } else { ObjectPart::Main },
            dry_run: self.parameter("dryRun").is_some_and(|dry_run| dry_run == "All"),
            manager: manager.unwrap_or(from_agent).to_owned(),
            user: Some(self.user.clone()),
            validation: match self.parameter("fieldValidation") {
                Some("Strict") => FieldValidation::Strict,
                Some("Ignore") => FieldValidation::Ignore,
                _ => FieldValidation::Warn,
            },
            doubled: Vec::new(),
        }
    }

    /// The form of the answer. It is asked before anything is written: a client that cannot read it changes nothing.
    pub(super) fn form(&self) -> Result<ResponseForm, Refusal> {
        let mut accepts = self.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let accept = accepts.next().unwrap_or_default();
        ResponseForm::parse(accept, self.parameter("includeObject")).ok_or_else(|| {
            let why = "only the following media types are accepted: application/json, \
                       application/json;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
            Refusal::new(RefusalReason::NotAcceptable, why)
        })
    }

    pub(super) fn get(&self, name: &str) -> Result<Response, Refusal> {
        let form = self.form()?;
        let entry = self.cluster.find(&self.served, self.namespace(), name)?;
        Ok(respond::bytes(StatusCode::OK, form.one(&self.cluster, &self.served, &entry)))
    }

    fn selector(&self) -> Result<ListSelector, Refusal> {
        let selector = ListSelector::parse(self.parameter("labelSelector"), self.parameter("fieldSelector"))?;
        selector.check(&self.served)?;
        Ok(selector)
    }

    pub(super) fn list_query(&self) -> Result<ListQuery, Refusal> {
        let text = |name: &str| self.parameter(name).map(str::to_owned);
        Ok(ListQuery {
            selector: self.selector()?,
            limit: self.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(0),
            token: text("continue"),
            resource_version: text("resourceVersion"),
            version_match: text("resourceVersionMatch"),
        })
    }

    pub(super) fn list(&self) -> Result<Response, Refusal> {
        let (form, query) = (self.form()?, self.list_query()?);
        let listing = listing(&self.cluster, &self.served, self.route.namespace.as_deref(), &query)?;
        let list = form.many(&self.cluster, &self.served, &listing.entries, listing.meta);
        Ok(respond::bytes(StatusCode::OK, list))
    }

    pub(super) fn watch(&self) -> Result<Response, Refusal> {
        let mut selector = self.selector()?;
        if let Some(name) = &self.route.name {
            selector = selector.and_name(name);
        }
        let query = WatchQuery {
            selector,
            namespace: self.route.namespace.clone(),
            resource_version: self.parameter("resourceVersion").map(str::to_owned),
            bookmarks: self.flag("allowWatchBookmarks"),
            initial_events: self.parameter("sendInitialEvents").map(|_| self.flag("sendInitialEvents")),
            timeout: self.parameter("timeoutSeconds").and_then(|text| text.parse().ok()).map(Duration::from_secs),
            form: self.form()?,
        };
        let stream = watch(Arc::clone(&self.cluster), self.served.clone(), query)?;
        let json = [(header::CONTENT_TYPE, "application/json")];
        Ok((json, Body::from_stream(stream)).into_response())
    }

    pub(super) async fn patch(&self, name: &str, answer: ResponseForm, body: Body) -> Result<Response, Refusal> {
        let form = PatchType::parse(self.content_type()).ok_or_else(|| {
            let why = format!("the body of the request was in an unknown format - \"{}\"", self.content_type());
            Refusal::new(RefusalReason::UnsupportedMediaType, why)
        })?;
        let bytes = read(body).await?;
        let media = if form == PatchType::Apply { "application/yaml" } else { "application/json" };
        let on_conflict = if self.flag("force") { OnConflict::Take } else { OnConflict::Refuse };
        // What is there twice in a patch of another form is not told.
        let (call, patch) = match form {
            PatchType::Apply => self.checked(&bytes, media)?,
            PatchType::Json | PatchType::Merge | PatchType::Strategic => (self.call(), parse(&bytes, media)?),
        };
        let patch = PatchCall { call, name: name.to_owned(), form, patch, on_conflict };
        let outcome = self.cluster.patch(patch).await?;
        Ok(self.written(answer, &outcome))
    }

    pub(super) async fn deletion(&self, body: Body) -> Result<DeletionOptions, Refusal> {
        let bytes = read(body).await?;
        let body = if bytes.is_empty() { Value::Null } else { parse(&bytes, self.content_type())? };
        DeletionOptions::parse(&body, self.parameter("propagationPolicy"))
    }

    /// The answer to a write: the object as it is now.
    pub(super) fn written(&self, form: ResponseForm, outcome: &WriteOutcome) -> Response {
        let status = if outcome.created { StatusCode::CREATED } else { StatusCode::OK };
        let object = form.one(&self.cluster, &self.served, &outcome.entry);
        let mut response = respond::bytes(status, object);
        respond::warn(&mut response, &outcome.warnings);
        response
    }
}

async fn read(body: Body) -> Result<Bytes, Refusal> {
    let too_large = |_| {
        Refusal::new(
            RefusalReason::TooLarge,
            format!("the request is too large or broke off; at most {MOST_BYTES} bytes are taken"),
        )
    };
    to_bytes(body, MOST_BYTES).await.map_err(too_large)
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn is_yaml(content_type: &str) -> bool {
    matches!(content_type, "application/yaml" | "application/apply-patch+yaml")
}

fn parse(bytes: &[u8], content_type: &str) -> Result<Value, Refusal> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        // JSON is YAML, and the faster to read.
        yaml if is_yaml(yaml) => serde_json::from_slice(bytes)
            .or_else(|_| yaml_serde::from_slice(bytes))
            .map_err(|error| Refusal::bad_request(format!("error decoding YAML: {error}"))),
        PROTOBUF => builtin::decode(bytes).map_err(|error| match error {
            ProtobufError::UnknownKind { .. } => Refusal::new(RefusalReason::UnsupportedMediaType, error.to_string()),
            ProtobufError::TooMany => Refusal::new(RefusalReason::TooLarge, error.to_string()),
            ProtobufError::NoMagic | ProtobufError::Damaged => Refusal::bad_request(error.to_string()),
        }),
        _ => serde_json::from_slice(bytes)
            .map_err(|error| Refusal::bad_request(format!("couldn't get version/kind; json parse error: {error}"))),
    }
}
