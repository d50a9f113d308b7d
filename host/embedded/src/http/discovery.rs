//! What is served: versions, groups and resources, in the old form and in the aggregated one.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use serde_json::{Value, json};

use super::{respond, route::Route};
use crate::{
    catalog::Catalog,
    cluster::EmbeddedCluster,
    refusal::Refusal,
    resource::{ServedResource, ServedVersion},
};

/// The Kubernetes version whose behaviour this server follows.
const MAJOR: &str = "1";
const MINOR: &str = "33";

/// `/version`.
pub(super) async fn version() -> Response {
    let git = format!("v{MAJOR}.{MINOR}.0+orangery-{}", env!("CARGO_PKG_VERSION"));
    respond::json(&json!({
        "major": MAJOR, "minor": MINOR, "gitVersion": git, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    }))
}

/// `/api`.
pub(super) async fn core_versions(State(cluster): State<Arc<EmbeddedCluster>>, headers: HeaderMap) -> Response {
    match aggregated(&headers) {
        Some(form) => respond_aggregated(&cluster.catalog(), form, true),
        None => respond::json(&json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        })),
    }
}

/// `/apis`.
pub(super) async fn groups(State(cluster): State<Arc<EmbeddedCluster>>, headers: HeaderMap) -> Response {
    let catalog = cluster.catalog();
    match aggregated(&headers) {
        Some(form) => respond_aggregated(&catalog, form, false),
        None => {
            let groups: Vec<Value> = by_group(&catalog)
                .into_iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(_, of)| group_of(&of))
                .collect();
            respond::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
    }
}

/// `/apis/{group}`, `/apis/{group}/{version}` and `/api/v1`.
pub(super) fn version_or_group(cluster: &EmbeddedCluster, route: &Route) -> Response {
    let catalog = cluster.catalog();
    let groups = by_group(&catalog);
    let Some(resources) = groups.get(route.group.as_str()) else { return respond::refused(&Refusal::unknown_path()) };
    if route.version.is_empty() {
        let mut group = group_of(resources);
        crate::object::set(&mut group, &["kind"], json!("APIGroup"));
        crate::object::set(&mut group, &["apiVersion"], json!("v1"));
        return respond::json(&group);
    }
    let served = at_version(resources, &route.version);
    let listed: Vec<Value> = served.iter().flat_map(|(resource, version)| plain(resource, version)).collect();
    if listed.is_empty() {
        return respond::refused(&Refusal::unknown_path());
    }
    let group_version =
        if route.group.is_empty() { route.version.clone() } else { format!("{}/{}", route.group, route.version) };
    respond::json(
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}),
    )
}

type Groups<'a> = BTreeMap<&'a str, Vec<&'a Arc<ServedResource>>>;

fn by_group(catalog: &Catalog) -> Groups<'_> {
    let mut groups = Groups::new();
    for resource in catalog.resources() {
        groups.entry(&resource.group).or_default().push(resource);
    }
    groups
}

fn at_version<'a>(
    resources: &[&'a Arc<ServedResource>],
    version: &str,
) -> Vec<(&'a ServedResource, &'a ServedVersion)> {
    let resources = resources.iter().map(|resource| -> &'a ServedResource { resource });
    let at = |resource: &'a ServedResource| Some((resource, resource.versions.iter().find(|v| v.name == version)?));
    resources.filter_map(at).collect()
}

/// The versions of a group, the preferred one first: as the resource with most versions has them.
fn versions<'a>(resources: &[&'a Arc<ServedResource>]) -> Vec<&'a str> {
    let mut versions = Vec::new();
    let mut richest: Vec<_> = resources.to_vec();
    richest.sort_by_key(|resource| std::cmp::Reverse(resource.versions.len()));
    for version in richest.iter().flat_map(|resource| resource.versions.iter()) {
        if !versions.contains(&version.name.as_str()) {
            versions.push(version.name.as_str());
        }
    }
    versions
}

fn group_of(resources: &[&Arc<ServedResource>]) -> Value {
    let group = resources.first().map(|resource| resource.group.as_str()).unwrap_or_default();
    let version = |version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let versions: Vec<Value> = versions(resources).into_iter().map(version).collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

/// A resource and its subresources in the old form.
fn plain(resource: &ServedResource, version: &ServedVersion) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs(),
    });
    for (field, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            crate::object::set(&mut main, &[field], json!(names));
        }
    }
    let below = subresources(resource, version).into_iter().map(|below| {
        json!({
            "name": format!("{}/{}", resource.plural, below.name), "singularName": "", "namespaced": resource.namespaced,
            "group": below.group, "version": below.version, "kind": below.kind, "verbs": below.verbs,
        })
    });
    std::iter::once(main).chain(below).collect()
}

struct Subresource {
    name: &'static str,
    group: String,
    version: String,
    kind: String,
    verbs: &'static [&'static str],
}

fn subresources(resource: &ServedResource, version: &ServedVersion) -> Vec<Subresource> {
    let own = |name, verbs| Subresource {
        name,
        group: resource.group.clone(),
        version: version.name.clone(),
        kind: resource.kind.clone(),
        verbs,
    };
    let other = |name, group: &str, kind: &str, verbs| Subresource {
        name,
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        verbs,
    };
    let mut below = Vec::new();
    if version.status {
        below.push(own("status", &["get", "patch", "update"]));
    }
    if version.scale.is_some() {
        below.push(other("scale", "autoscaling", "Scale", &["get", "patch", "update"]));
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => below.push(own("finalize", &["update"])),
        ("", "ServiceAccount") => below.push(other("token", "authentication.k8s.io", "TokenRequest", &["create"])),
        ("", "Pod") => below.push(other("eviction", "policy", "Eviction", &["create"])),
        _ => {}
    }
    below
}

/// The version of aggregated discovery that a client asks for before the old form.
fn aggregated(headers: &HeaderMap) -> Option<&'static str> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').find_map(|range| {
        let asks = range.contains("as=APIGroupDiscoveryList") && range.contains("g=apidiscovery.k8s.io");
        match () {
            () if asks && range.contains("v=v2beta1") => Some("v2beta1"),
            () if asks && range.contains("v=v2") => Some("v2"),
            () => None,
        }
    })
}

fn respond_aggregated(catalog: &Catalog, form: &'static str, core: bool) -> Response {
    let groups = by_group(catalog).into_iter().filter(|(group, _)| group.is_empty() == core);
    let items: Vec<Value> = groups.map(|(group, resources)| aggregate(group, &resources)).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{form}"), "metadata": {}, "items": items,
    });
    let mut response = respond::json(&list);
    let media = match form {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn aggregate(group: &str, resources: &[&Arc<ServedResource>]) -> Value {
    let version = |version: &str| {
        let served = at_version(resources, version);
        let resources: Vec<Value> = served.iter().map(|(resource, version)| aggregate_one(resource, version)).collect();
        json!({"version": version, "freshness": "Current", "resources": resources})
    };
    let versions: Vec<Value> = versions(resources).into_iter().map(version).collect();
    json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
}

fn aggregate_one(resource: &ServedResource, version: &ServedVersion) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let below: Vec<Value> = subresources(resource, version)
        .iter()
        .map(|below| {
            json!({"subresource": below.name, "responseKind": kind(&below.group, &below.version, &below.kind), "verbs": below.verbs})
        })
        .collect();
    let mut one = json!({
        "resource": resource.plural, "responseKind": kind(&resource.group, &version.name, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs(),
    });
    for (field, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            crate::object::set(&mut one, &[field], json!(names));
        }
    }
    if !below.is_empty() {
        crate::object::set(&mut one, &["subresources"], json!(below));
    }
    one
}
