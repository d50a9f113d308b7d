//! Reads of the cluster of a connection on behalf of a component: the port `core::deployer::Clusters`.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::{self, Discovery, Scope as Reach, pinned_kind},
};
use orangery_core::{
    error::{Code, Fault},
    name::Namespace,
    port::BoxFuture,
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
};
use serde_json::Value;

use crate::call::{CallError, CallSubject};

/// Reads that are under way at once.
const READS_AT_ONCE: usize = 16;

/// The cluster of a connection as the target of a component; there are no others.
pub(crate) struct ClusterReads(pub(crate) Client);

impl ClusterReads {
    fn client(&self, on: &ClusterRef) -> Result<&Client, Fault> {
        match on {
            ClusterRef::Target => Ok(&self.0),
            ClusterRef::Host | ClusterRef::Named(_) => {
                Err(Fault::denied("only the cluster of the command is read here, which is the target"))
            }
        }
    }

    /// The objects of a kind; without a namespace those of all namespaces.
    async fn api(
        &self,
        on: &ClusterRef,
        (api_version, kind): (&str, &str),
        namespace: Option<&Namespace>,
    ) -> Result<Api<DynamicObject>, Fault> {
        let client = self.client(on)?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let known = pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await;
        let (resource, capabilities) = known.map_err(|error| fault(kind, api_version, error))?;
        Ok(match (capabilities.scope, namespace) {
            (Reach::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
            (Reach::Namespaced | Reach::Cluster, _) => Api::all_with(client.clone(), &resource),
        })
    }

    async fn read(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault> {
        let ObjectKey { api_version, kind, namespace, name } = key;
        let api = self.api(on, (api_version, kind), namespace.as_ref()).await?;
        let found = api.get_opt(name).await.map_err(|error| fault(kind, api_version, error))?;
        found.map(|object| document(object, api_version, kind)).transpose()
    }

    async fn select(&self, on: &ClusterRef, what: &Selection) -> Result<Vec<Value>, Fault> {
        let Selection { api_version, kind, namespace, names, labels, fields } = what;
        let api = self.api(on, (api_version, kind), namespace.as_ref()).await?;
        let asked =
            ListParams { label_selector: labels.clone(), field_selector: fields.clone(), ..ListParams::default() };
        let found = api.list(&asked).await.map_err(|error| fault(kind, api_version, error))?;
        let mut objects = found.items;
        objects.retain(|object| {
            names.is_empty() || object.metadata.name.as_ref().is_some_and(|name| names.contains(name))
        });
        objects.sort_by(|one, other| {
            let place = |of: &DynamicObject| (of.metadata.namespace.clone(), of.metadata.name.clone());
            place(one).cmp(&place(other))
        });
        objects.into_iter().map(|object| document(object, api_version, kind)).collect()
    }

    async fn kinds(&self, on: &ClusterRef) -> Result<Vec<ApiResource>, Fault> {
        let client = self.client(on)?.clone();
        let found = Discovery::new(client).run().await.map_err(|error| fault("", "", error))?;
        let mut kinds: Vec<ApiResource> = found.groups().flat_map(of_group).collect();
        kinds.sort();
        Ok(kinds)
    }
}

fn of_group(group: &discovery::ApiGroup) -> impl Iterator<Item = ApiResource> {
    let versions = group.versions().flat_map(|version| group.versioned_resources(version));
    versions.map(|(resource, capabilities)| ApiResource {
        api_version: resource.api_version,
        kind: resource.kind,
        plural: resource.plural,
        namespaced: capabilities.scope == Reach::Namespaced,
    })
}

/// An object as the contract has it: what a list answers does not say its kind.
fn document(object: DynamicObject, api_version: &str, kind: &str) -> Result<Value, Fault> {
    let mut document = serde_json::to_value(object).map_err(|error| {
        Fault::invalid(Code::InternalProblem, format!("the cluster's answer is no object: {error}"))
    })?;
    if let Some(fields) = document.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok(document)
}

fn fault(kind: &str, group: &str, error: kube::Error) -> Fault {
    if matches!(error, kube::Error::Discovery(_)) {
        let message = format!("the cluster does not know the kind {kind} of {group}; install its definition first");
        return Fault::invalid(Code::ConfigurationProblem, message);
    }
    let error = CallError::of(CallSubject { kind, group, namespace: Namespace::EMPTY, name: "" }, error);
    match error {
        CallError::Forbidden { .. } | CallError::Unauthorized => Fault::denied(error.to_string()),
        _ if error.may_pass() => Fault::later(Code::InternalProblem, error.to_string()),
        _ => Fault::invalid(Code::ConfigurationProblem, error.to_string()),
    }
}

impl Clusters for ClusterReads {
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
        Box::pin(self.select(on, what))
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move {
            let version = self.client(on)?.apiserver_version().await.map_err(|error| fault("", "", error))?;
            Ok(version.git_version)
        })
    }

    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(self.kinds(on))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddr},
        sync::Arc,
    };

    use kube::{
        Config,
        api::PostParams,
        config::{KubeConfigOptions, Kubeconfig},
    };
    use orangery_embedded::{Options, Server, Storage};
    use serde_json::json;

    use super::*;

    async fn start() -> (Server, ClusterReads) {
        let server = orangery_embedded::start(Options {
            storage: Storage::Memory,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            clock: Arc::new(|| jiff::Timestamp::UNIX_EPOCH),
        });
        let server = server.await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        (server, ClusterReads(Client::try_from(config).unwrap()))
    }

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey { api_version: "v1".into(), kind: kind.into(), namespace: Some("default".into()), name: name.into() }
    }

    fn selection(names: &[&str], labels: Option<&str>) -> Selection {
        Selection {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            labels: labels.map(str::to_owned),
            fields: None,
        }
    }

    #[tokio::test]
    async fn objects_kinds_and_the_version_are_read() {
        let (_server, reads) = start().await;
        let on = &ClusterRef::Target;
        let api = reads.api(on, ("v1", "ConfigMap"), Some(&"default".into())).await.unwrap();
        for (name, team) in [("b", "x"), ("a", "x"), ("c", "y")] {
            let object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"team": team}}});
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
        let found = reads.get_many(on, &[key("ConfigMap", "c"), key("ConfigMap", "none")]).await.unwrap();
        let [Some(one), None] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (&one["apiVersion"], &one["kind"], &one["metadata"]["name"]),
            (&json!("v1"), &json!("ConfigMap"), &json!("c"))
        );
        for (what, expected) in
            [(selection(&[], Some("team=x")), ["a", "b"].as_slice()), (selection(&["b", "c"], None), &["b", "c"])]
        {
            let found = reads.list(on, &what).await.unwrap();
            let names: Vec<_> = found.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
            assert_eq!(names, expected);
            assert!(found.iter().all(|object| object["kind"] == "ConfigMap"), "{found:?}");
        }
        assert!(reads.version(on).await.unwrap().starts_with("v1."));
        let known = ApiResource {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        };
        assert!(reads.discover(on).await.unwrap().contains(&known));
    }

    #[tokio::test]
    async fn other_clusters_and_unknown_kinds_are_faults() {
        let (_server, reads) = start().await;
        for on in [ClusterRef::Host, ClusterRef::Named("other".into())] {
            assert!(matches!(reads.get(&on, &key("ConfigMap", "a")).await, Err(Fault::Denied(_))), "{on:?}");
            assert!(matches!(reads.discover(&on).await, Err(Fault::Denied(_))), "{on:?}");
        }
        let unknown = reads.get(&ClusterRef::Target, &key("Nothing", "a")).await;
        assert!(matches!(unknown, Err(Fault::Invalid(_))), "{unknown:?}");
    }
}
