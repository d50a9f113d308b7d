//! OpenAPI documents: enough for `kubectl` to find out that the server validates, and to explain kinds.

mod metadata;
mod v2;

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::respond;
use crate::{
    builtin,
    cluster::EmbeddedCluster,
    refusal::Refusal,
    resource::{ResourceOrigin, ServedResource, ServedVersion},
};

/// `/openapi/v2`: the definitions of all kinds, in JSON or in protobuf.
pub(super) async fn v2(State(cluster): State<Arc<EmbeddedCluster>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let document = v2::document(&cluster.catalog());
    if accept.contains("openapi.spec.v2") {
        let mut response = respond::bytes(StatusCode::OK, Bytes::from(v2::encode(&document)));
        let media = HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        return response;
    }
    respond::json(&document)
}

/// Where a schema says of which kinds it is.
const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "v1.33.0"})
}

/// `/openapi/v3`: where the document of each group and version is.
pub(super) async fn index(State(cluster): State<Arc<EmbeddedCluster>>) -> Response {
    let catalog = cluster.catalog();
    let place = |resource: &Arc<ServedResource>, version: &ServedVersion| match resource.group.as_str() {
        "" => format!("api/{}", version.name),
        group => format!("apis/{group}/{}", version.name),
    };
    let places: BTreeSet<String> =
        catalog.resources().flat_map(|resource| resource.versions.iter().map(move |v| place(resource, v))).collect();
    let revision = cluster.store.revision();
    let entry = |place: String| {
        let url = format!("/openapi/v3/{place}?hash={revision}");
        (place, json!({"serverRelativeURL": url}))
    };
    let paths: Map<String, Value> = places.into_iter().map(entry).collect();
    respond::json(&json!({"paths": paths}))
}

/// `/openapi/v3/apis/{group}/{version}`: one document.
pub(super) async fn document(State(cluster): State<Arc<EmbeddedCluster>>, Path(path): Path<String>) -> Response {
    let parts: Vec<&str> = path.split('/').collect();
    let (group, version) = match parts.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return respond::refused(&Refusal::unknown_path()),
    };
    let catalog = cluster.catalog();
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in catalog.resources().filter(|resource| resource.group == group) {
        let Some(at) = resource.versions.iter().find(|candidate| candidate.name == version) else { continue };
        let (name, schema) = documented(resource, at, &mut schemas);
        schemas.insert(name.clone(), schema);
        paths.extend(operations(&path, resource, version, &name));
    }
    if schemas.is_empty() {
        return respond::refused(&Refusal::unknown_path());
    }
    respond::json(&json!({"openapi": "3.0.0", "info": info(), "paths": paths, "components": {"schemas": schemas}}))
}

/// The name of a kind's schema: that of its Go type for a built-in kind, else reverse domain, version and kind, as
/// `com.example.v1.Thing`.
fn schema_name(resource: &ServedResource, version: &str) -> String {
    let kind = &resource.kind;
    let package = match (resource.origin, resource.group.as_str()) {
        (ResourceOrigin::Custom | ResourceOrigin::Terminating, group) => {
            let reversed: Vec<&str> = group.split('.').rev().collect();
            reversed.join(".")
        }
        (_, "") => "io.k8s.api.core".to_owned(),
        (_, "apiextensions.k8s.io") => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        (_, "apiregistration.k8s.io") => "io.k8s.kube-aggregator.pkg.apis.apiregistration".to_owned(),
        (_, group) => format!("io.k8s.api.{}", group.split('.').next().unwrap_or_default()),
    };
    format!("{package}.{version}.{kind}")
}

fn kind_of(resource: &ServedResource, version: &str) -> Value {
    json!({"group": resource.group, "version": version, "kind": resource.kind})
}

/// The schema of a kind, with the name it has in documents. What it refers to goes to `definitions`.
fn documented(
    resource: &ServedResource,
    version: &ServedVersion,
    definitions: &mut Map<String, Value>,
) -> (String, Value) {
    let mut schema = match &version.schema {
        Some(schema) => schema.root().clone(),
        None => builtin::describe(&resource.api_version(&version.name), &resource.kind, definitions)
            .unwrap_or_else(|| json!({"type": "object"})),
    };
    for (field, of) in metadata::own_fields(definitions) {
        crate::object::set(&mut schema, &["properties", field], of);
    }
    crate::object::set(&mut schema, &[GROUP_VERSION_KIND], json!([kind_of(resource, &version.name)]));
    (schema_name(resource, &version.name), schema)
}

/// The paths of a resource, with the query parameters by which `kubectl` decides who validates.
fn operations(path: &str, resource: &ServedResource, version: &str, schema: &str) -> Vec<(String, Value)> {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let write: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"].map(parameter).into();
    let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
    let answer = json!({"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}});
    let operation = |action: &str, parameters: &[Value], media: &[&str]| {
        let content: Map<String, Value> =
            media.iter().map(|media| ((*media).to_owned(), json!({"schema": reference}))).collect();
        let mut operation = json!({
            "responses": answer, "parameters": parameters,
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind_of(resource, version),
        });
        if !content.is_empty() {
            crate::object::set(&mut operation, &["requestBody"], json!({"content": content}));
        }
        operation
    };
    let patches = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let all = format!("/{path}{scope}/{}", resource.plural);
    vec![
        (
            format!("{all}/{{name}}"),
            json!({
                "get": operation("get", &[], &[]), "delete": operation("delete", &write, &[]),
                "put": operation("put", &write, &["*/*"]), "patch": operation("patch", &write, &patches),
            }),
        ),
        (all, json!({"get": operation("list", &[], &[]), "post": operation("post", &write, &["*/*"])})),
    ]
}
