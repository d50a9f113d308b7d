//! Reading clusters on behalf of components: the port `core::deployer::Clusters`.

use data_encoding::BASE64;
use futures::{StreamExt, TryFutureExt, TryStreamExt, future::try_join, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList};
use orangery_core::{error::Fault, name::ApiVersion, port::BoxFuture, step::Halt};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{Cluster, ClusterSet, Error, error};

/// Reads of one call that are under way at once.
const READS_AT_ONCE: usize = 16;

impl ClusterSet {
    /// One object, with what holds the memory that it takes (C-201).
    async fn read(&self, on: &ClusterRef, key: &ObjectKey) -> Result<(Option<Value>, Cluster), Fault> {
        let cluster = self.cluster(on).await.map_err(error::fault)?.of_object();
        let resource = cluster.served(&key.api_version, &key.kind).await.map_err(unread)?;
        let object = cluster.get(&resource, key).await.map_err(unread)?;
        object.iter().for_each(|object| self.has_read(on, (&key.api_version, &key.kind), object));
        Ok((object, cluster))
    }
}

/// A label of Secrets with something packed, by which a deployer lists its own: no value in them could be found anywhere, and they are
/// large.
struct PackedSecrets {
    /// As it stands in a selection.
    label: &'static str,
    /// Whether an object with the label is one of them.
    is_one: fn(&Value) -> bool,
}

/// The releases of Helm, and the states of container items: an archive that is compressed and cut into pieces.
const PACKED: [PackedSecrets; 2] = [
    PackedSecrets { label: "owner=helm", is_one: is_release },
    PackedSecrets { label: "container.deployer.landscaper.gardener.cloud/type=state", is_one: has_no_text },
];

/// Whether an object that such a selection has found is packed.
fn is_packed(what: &Selection, object: &Value) -> bool {
    let labels = what.labels.as_deref().unwrap_or_default();
    PACKED.iter().any(|packed| labels.split(',').any(|label| label == packed.label) && (packed.is_one)(object))
}

fn is_release(object: &Value) -> bool {
    object.get("type").and_then(Value::as_str) == Some("helm.sh/release.v1")
}

/// Whether no entry of a Secret is a text.
fn has_no_text(object: &Value) -> bool {
    let mut entries = object.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.values());
    entries.all(|entry| {
        let bytes = entry.as_str().and_then(|encoded| BASE64.decode(encoded.as_bytes()).ok());
        bytes.is_some_and(|bytes| std::str::from_utf8(&bytes).is_err())
    })
}

/// A kind that is not served is a fault of the configuration here: the component may ask `discover` first.
fn unread(error: Error) -> Fault {
    match error {
        Error::NotServed { .. } => Fault::invalid(orangery_core::error::Code::ConfigurationProblem, error.to_string()),
        other => error::fault(Halt::from(other)),
    }
}

impl Clusters for ClusterSet {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move { Ok(self.read(on, key).await?.0) })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        // What one takes is held until all of them are here.
        let reads = stream::iter(keys).map(|key| self.read(on, key)).buffered(READS_AT_ONCE).try_collect();
        Box::pin(
            reads.map_ok(|found: Vec<(Option<Value>, Cluster)>| found.into_iter().map(|(object, _)| object).collect()),
        )
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let cluster = self.cluster(on).await.map_err(error::fault)?;
            let resource = cluster.served(&what.api_version, &what.kind).await.map_err(unread)?;
            let objects = cluster.list(&resource, what).await.map_err(unread)?;
            for object in objects.iter().filter(|object| !is_packed(what, object)) {
                self.has_read(on, (&what.api_version, &what.kind), object);
            }
            Ok(objects)
        })
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move {
            let cluster = self.cluster(on).await.map_err(error::fault)?;
            let version: Value = ask(&cluster, "/version").await?;
            Ok(version.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
        })
    }

    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async move {
            let cluster = self.cluster(on).await.map_err(error::fault)?;
            let (groups, core) =
                try_join(ask_as(&cluster, "/apis", AGGREGATED), ask_as(&cluster, "/api", AGGREGATED)).await?;
            let mut resources = match (aggregated(&groups), aggregated(&core)) {
                (Some(groups), Some(core)) => [groups, core].concat(),
                _ => one_by_one(&cluster, &groups).await?,
            };
            within_kinds(&cluster, resources.len())?;
            resources.sort();
            Ok(resources)
        })
    }
}

/// The most versions of API groups that a cluster may serve: each is asked for its kinds.
pub const MOST_GROUP_VERSIONS: usize = 500;

/// The most kinds that a cluster may serve.
pub const MOST_KINDS: usize = 10_000;

/// How many of the versions are asked at the same time.
const ASKED_AT_ONCE: usize = 16;

/// Asks for all kinds in one answer, as servers give it since Kubernetes 1.30; others answer the list of groups.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The kinds of an aggregated answer; `None` where it is another one. Of an API whose server is away there are none.
fn aggregated(answer: &Value) -> Option<Vec<ApiResource>> {
    if answer.get("kind").and_then(Value::as_str) != Some("APIGroupDiscoveryList") {
        return None;
    }
    let list = |of: &Value, field: &str| of.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |of: &Value, at: &str| of.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut resources = Vec::new();
    for group in list(answer, "items") {
        let name = text(&group, "/metadata/name");
        for version in list(&group, "versions") {
            let number = text(&version, "/version");
            let api_version = ApiVersion::from(if name.is_empty() { number } else { format!("{name}/{number}") });
            let kinds = list(&version, "resources").into_iter().map(|resource| ApiResource {
                api_version: api_version.clone(),
                kind: text(&resource, "/responseKind/kind").into(),
                plural: text(&resource, "/resource"),
                namespaced: text(&resource, "/scope") == "Namespaced",
            });
            resources.extend(kinds.filter(|resource| !resource.kind.is_empty()));
        }
    }
    Some(resources)
}

/// The kinds group by group.
async fn one_by_one(cluster: &Cluster, groups: &Value) -> Result<Vec<ApiResource>, Fault> {
    let groups: APIGroupList = Deserialize::deserialize(groups).map_err(|error| {
        let message = format!("the groups that {} serves cannot be read: {error}", cluster.address());
        Fault::invalid(orangery_core::error::Code::InternalProblem, message)
    })?;
    let versions: Vec<_> = groups.groups.into_iter().flat_map(|group| group.versions).collect();
    if versions.len() > MOST_GROUP_VERSIONS {
        return Err(serves_too_much(cluster, versions.len(), "versions of API groups", MOST_GROUP_VERSIONS));
    }
    let paths = versions.into_iter().map(|version| format!("/apis/{}", version.group_version));
    let lists = stream::iter(paths.chain(["/api/v1".to_owned()])).map(|path| kinds(cluster, path));
    let mut all = Vec::new();
    let mut lists = lists.buffered(ASKED_AT_ONCE);
    while let Some(list) = lists.try_next().await? {
        all.extend(list);
        within_kinds(cluster, all.len())?;
    }
    Ok(all)
}

fn within_kinds(cluster: &Cluster, kinds: usize) -> Result<(), Fault> {
    if kinds > MOST_KINDS { Err(serves_too_much(cluster, kinds, "kinds", MOST_KINDS)) } else { Ok(()) }
}

fn serves_too_much(cluster: &Cluster, count: usize, what: &str, most: usize) -> Fault {
    let message =
        format!("{} serves {count} {what}, {most} are allowed; remove definitions that nobody uses", cluster.address());
    Fault::invalid(orangery_core::error::Code::LimitExceeded, message)
}

async fn kinds(cluster: &Cluster, path: String) -> Result<Vec<ApiResource>, Fault> {
    let list: APIResourceList = ask(cluster, &path).await?;
    let resources = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    Ok(resources
        .map(|resource| ApiResource {
            api_version: ApiVersion::from(&list.group_version),
            kind: resource.kind.into(),
            plural: resource.name,
            namespaced: resource.namespaced,
        })
        .collect())
}

async fn ask<T: serde::de::DeserializeOwned>(cluster: &Cluster, path: &str) -> Result<T, Fault> {
    ask_as(cluster, path, "application/json").await
}

async fn ask_as<T: serde::de::DeserializeOwned>(cluster: &Cluster, path: &str, accept: &str) -> Result<T, Fault> {
    let key = ObjectKey { api_version: ApiVersion::default(), kind: "API".into(), namespace: None, name: path.into() };
    let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new());
    let request = request.map_err(kube::core::request::Error::BuildRequest);
    cluster.ask(&key, request).await.map_err(unread)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn limits_cluster_the_versions_of_api_groups_and_the_kinds_are_bounded() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = kube::Client::try_from(nowhere).unwrap();
        let cluster = Cluster::new(client, "cluster c".to_owned(), std::sync::Arc::new(|_| {}));
        let versions: Vec<Value> = (0..=MOST_GROUP_VERSIONS)
            .map(|number| json!({"groupVersion": format!("g/v{number}"), "version": format!("v{number}")}))
            .collect();
        let groups = json!({"kind": "APIGroupList", "groups": [{"name": "g", "versions": versions}]});
        let message = one_by_one(&cluster, &groups).await.unwrap_err().to_string();
        let expected =
            "cluster c serves 501 versions of API groups, 500 are allowed; remove definitions that nobody uses";
        assert_eq!(message, expected);
        assert_eq!(within_kinds(&cluster, MOST_KINDS), Ok(()));
        let expected = "cluster c serves 10001 kinds, 10000 are allowed; remove definitions that nobody uses";
        assert_eq!(within_kinds(&cluster, MOST_KINDS + 1).unwrap_err().to_string(), expected);
    }

    #[test]
    fn c_195_con_27_what_is_packed_is_not_looked_for_where_its_owner_lists_it() {
        let selection = |labels: &str| Selection {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some("ns".into()),
            names: Vec::new(),
            labels: Some(labels.to_owned()),
            fields: None,
        };
        let secret = |entries: &[&[u8]]| {
            let entries =
                entries.iter().enumerate().map(|(number, bytes)| (number.to_string(), json!(BASE64.encode(bytes))));
            json!({"type": "Opaque", "data": Value::Object(entries.collect())})
        };
        let states = "a=b,container.deployer.landscaper.gardener.cloud/type=state";
        let (packed, text): (&[u8], &[u8]) = (&[0x1f, 0x8b, 0x08], b"hunter2-hunter2");
        let of = |labels: &str, object: &Value| is_packed(&selection(labels), object);
        assert_eq!([of(states, &secret(&[packed])), of(states, &secret(&[]))], [true, true]);
        assert_eq!([of(states, &secret(&[text])), of(states, &secret(&[packed, text]))], [false, false]);
        assert_eq!([of("a=b", &secret(&[packed])), of("owner=helm", &secret(&[packed]))], [false, false]);
        let release = json!({"type": "helm.sh/release.v1", "data": {"release": BASE64.encode(text)}});
        assert_eq!([of("name=a,owner=helm", &release), of(states, &release)], [true, false]);
    }

    #[test]
    fn an_aggregated_answer_has_all_kinds() {
        let resource = |kind: &str, plural: &str, scope: &str| {
            json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": scope,
                "subresources": [{"subresource": "status"}], "verbs": ["get"]})
        };
        let answer = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
            {"metadata": {"name": "apps"}, "versions": [
                {"version": "v1", "freshness": "Current", "resources": [resource("Deployment", "deployments", "Namespaced")]}]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
            {"metadata": {}, "versions": [{"version": "v1", "resources": [resource("Node", "nodes", "Cluster"),
                {"resource": "odd", "responseKind": null, "scope": "Cluster"}]}]},
        ]});
        let kind = |api_version: &str, kind: &str, plural: &str, namespaced| ApiResource {
            api_version: api_version.into(),
            kind: kind.into(),
            plural: plural.to_owned(),
            namespaced,
        };
        let expected = vec![kind("apps/v1", "Deployment", "deployments", true), kind("v1", "Node", "nodes", false)];
        assert_eq!(aggregated(&answer), Some(expected));
        assert_eq!(aggregated(&json!({"kind": "APIGroupList", "groups": []})), None);
    }
}
