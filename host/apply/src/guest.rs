//! Reading clusters on behalf of components: the port `core::port::Clusters`.

use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList};
use orangery_core::{
    error::Fault,
    port::{ApiResource, BoxFuture, Clusters},
    proposal::{ClusterRef, ObjectKey, Selection},
    step::Halt,
};
use serde_json::Value;

use crate::{Cluster, ClusterSet, Error, error};

/// Reads of one call that are under way at once.
const READS_AT_ONCE: usize = 16;

impl ClusterSet {
    async fn read(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault> {
        let cluster = self.cluster(on).await.map_err(error::fault)?;
        let resource = cluster.served(&key.api_version, &key.kind).await.map_err(unread)?;
        cluster.get(&resource, key).await.map_err(unread)
    }
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
        Box::pin(self.read(on, key))
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(stream::iter(keys).map(|key| self.read(on, key)).buffered(READS_AT_ONCE).try_collect())
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let cluster = self.cluster(on).await.map_err(error::fault)?;
            let resource = cluster.served(&what.api_version, &what.kind).await.map_err(unread)?;
            cluster.list(&resource, what).await.map_err(unread)
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
            let groups: APIGroupList = ask(&cluster, "/apis").await?;
            let versions = groups.groups.into_iter().flat_map(|group| group.versions);
            let paths = versions.map(|version| format!("/apis/{}", version.group_version));
            let lists = paths.chain(["/api/v1".to_owned()]).map(|path| kinds(&cluster, path));
            let mut resources: Vec<ApiResource> = try_join_all(lists).await?.into_iter().flatten().collect();
            resources.sort();
            Ok(resources)
        })
    }
}

async fn kinds(cluster: &Cluster, path: String) -> Result<Vec<ApiResource>, Fault> {
    let list: APIResourceList = ask(cluster, &path).await?;
    let resources = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    Ok(resources
        .map(|resource| ApiResource {
            api_version: list.group_version.clone(),
            kind: resource.kind,
            plural: resource.name,
            namespaced: resource.namespaced,
        })
        .collect())
}

async fn ask<T: serde::de::DeserializeOwned>(cluster: &Cluster, path: &str) -> Result<T, Fault> {
    let key = ObjectKey { api_version: String::new(), kind: "API".to_owned(), namespace: None, name: path.to_owned() };
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::core::request::Error::BuildRequest);
    cluster.ask(&key, request).await.map_err(unread)
}
