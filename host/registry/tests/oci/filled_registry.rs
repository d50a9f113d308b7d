//! A small registry without a password that a test fills, changes and closes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    body::Body,
    extract::Request,
    http::{Response, StatusCode},
};
use orangery_core::digest::sha256;
use orangery_ocm::{ComponentRequest, ComponentSource, SignaturePolicy, VersionReference};
use orangery_registry::{Repositories, RepositorySettings, oci};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, limits, status};

/// What is answered, by path; nothing stands for 404.
type Answers = Arc<Mutex<BTreeMap<String, (u16, Vec<u8>)>>>;

pub(crate) struct FilledRegistry {
    pub(crate) server: Server,
    answers: Answers,
}

impl FilledRegistry {
    pub(crate) async fn open() -> Self {
        let answers = Answers::default();
        let shared = Arc::clone(&answers);
        let server = Server::start(move |request: Request| {
            let answer = answered(&shared, request.uri().path());
            async move { answer }
        })
        .await;
        Self { server, answers }
    }

    /// What it answers to a path: for a server that stands before it.
    pub(crate) fn answer(&self, path: &str) -> Response<Body> {
        answered(&self.answers, path)
    }

    /// Answers a path from now on.
    pub(crate) fn put(&self, path: &str, code: StatusCode, body: &[u8]) {
        self.answers.lock().expect("a lock").insert(path.to_owned(), (code.as_u16(), body.to_vec()));
    }

    /// What is answered to a path, as text.
    pub(crate) fn body(&self, path: &str) -> String {
        let (_, body) = self.answers.lock().expect("a lock").get(path).cloned().expect("it is there");
        String::from_utf8(body).expect("text")
    }

    /// Answers the same below another path as well.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        let mut answers = self.answers.lock().expect("a lock");
        let copies: Vec<_> = answers
            .iter()
            .filter_map(|(path, answer)| Some((format!("{to}{}", path.strip_prefix(from)?), answer.clone())))
            .collect();
        answers.extend(copies);
    }

    /// Answers everything that it has with this status from now on.
    pub(crate) fn refuse(&self, code: StatusCode) {
        for (status, body) in self.answers.lock().expect("a lock").values_mut() {
            (*status, *body) = (code.as_u16(), Vec::new());
        }
    }

    /// A blob; the answer is its descriptor.
    pub(crate) fn blob(&self, repository: &str, media_type: &str, content: &[u8]) -> Value {
        let digest = sha256(content);
        self.put(&format!("/v2/{repository}/blobs/{digest}"), StatusCode::OK, content);
        json!({"mediaType": media_type, "digest": digest, "size": content.len()})
    }

    /// A component version 1.0.0; `blobs` are local blobs, which need not be there.
    pub(crate) fn component(&self, name: &str, resources: &Value, blobs: &[Value]) {
        let repository = format!("components/component-descriptors/{name}");
        let descriptor = json!({
            "meta": {"schemaVersion": "v2"},
            "component": {
                "name": name, "version": "1.0.0", "provider": "us", "repositoryContexts": [self.context()],
                "sources": [], "resources": resources, "componentReferences": [],
            },
        });
        let kind = "application/vnd.ocm.software.component-descriptor.v2+json";
        let layer = self.blob(&repository, kind, descriptor.to_string().as_bytes());
        let config = json!({"componentDescriptorLayer": layer}).to_string();
        let config = self.blob(&repository, "application/vnd.ocm.software.component.config.v1+json", config.as_bytes());
        let layers: Vec<_> = std::iter::once(layer).chain(blobs.iter().cloned()).collect();
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string();
        self.put(&format!("/v2/{repository}/manifests/1.0.0"), StatusCode::OK, manifest.as_bytes());
    }

    pub(crate) fn context(&self) -> Value {
        context(&self.server)
    }

    /// A request for version 1.0.0 as it is made without credentials.
    pub(crate) fn request(&self, name: &str) -> ComponentRequest {
        request(name, &self.server)
    }
}

/// A request to a server for version 1.0.0 as it is made without credentials.
pub(crate) fn request(name: &str, server: &Server) -> ComponentRequest {
    let (name, version) = (name.to_owned(), "1.0.0".to_owned());
    let reference = VersionReference { repository_context: Some(context(server).into()), name, version };
    ComponentRequest::of(ComponentSource::Reference(reference))
}

fn context(server: &Server) -> Value {
    json!({"type": "OCIRegistry", "baseUrl": format!("http://{}", server.address), "subPath": "components"})
}

fn answered(answers: &Answers, path: &str) -> Response<Body> {
    let answer = answers.lock().expect("a lock").get(path).cloned();
    let (code, body) = answer.unwrap_or((404, Vec::new()));
    status(code, body)
}

/// A resource in a local blob of its component.
pub(crate) fn local(name: &str, blob: &Value) -> Value {
    let access = json!({"type": "localBlob", "localReference": blob["digest"], "mediaType": blob["mediaType"]});
    json!({"name": name, "version": "1", "type": "plain", "relation": "local", "access": access})
}

/// A start of the host with this cache, and short limits.
pub(crate) fn start(folder: &TempDir) -> Repositories {
    start_with(folder, oci::RegistrySettings { limits: limits(), ..oci::RegistrySettings::default() })
}

pub(crate) fn start_with(folder: &TempDir, oci: oci::RegistrySettings) -> Repositories {
    let (cache, signatures) = (folder.path().to_owned(), SignaturePolicy::default());
    Repositories::new(RepositorySettings { folders: Vec::new(), cache, cache_bytes: 64 << 20, oci, signatures })
        .expect("repositories")
}
