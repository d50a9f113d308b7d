//! The cluster of a connection as the only one that a component may read: its target.

use std::sync::Arc;

use kube::Client;
use orangery_cluster::{Cluster, ClusterPool, ClusterSet, Connections, Waiter};
use orangery_core::{
    error::{Code, Failure},
    name::Kind,
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_proposal::{ClusterRef, SecretContent};

/// Reads of the cluster behind a client, as components of deploy items make them.
pub(crate) fn cluster_reads(client: Client) -> ClusterSet {
    let target = Cluster::new(client, "the cluster of the command".to_owned(), Arc::new(|_| {}));
    let command =
        Waiter { kind: Kind::from_static("Command"), namespace: Default::default(), name: String::new().into() };
    ClusterPool::new(|_| {}).set(Arc::new(OnlyTarget(Arc::new(target))), command)
}

/// A command has no other cluster, and no content of Secrets to place.
struct OnlyTarget(Arc<Cluster>);

fn refused() -> Halt {
    let message = "only the cluster of the command is read here, which is the target";
    Halt::Stall(Failure::new("ReadCluster", "NotTheTarget", message).with_code(Code::ConfigurationProblem))
}

impl Connections for OnlyTarget {
    fn connect<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
        let connected = match on {
            ClusterRef::Target => Ok(Arc::clone(&self.0)),
            ClusterRef::Host | ClusterRef::Named(_) => Err(refused()),
        };
        Box::pin(async move { connected })
    }

    fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
        Box::pin(async { Err(refused()) })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddr},
        sync::Arc,
    };

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api, Config,
        api::PostParams,
        config::{KubeConfigOptions, Kubeconfig},
    };
    use orangery_core::error::Fault;
    use orangery_embedded::{Options, Server, Storage};
    use orangery_proposal::{
        ObjectKey, Selection,
        deployer::{ApiResource, Clusters as _},
    };
    use serde_json::json;

    use super::*;

    async fn start() -> (Client, Server, ClusterSet) {
        let server = orangery_embedded::start(Options {
            storage: Storage::Memory,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            clock: Arc::new(|| jiff::Timestamp::UNIX_EPOCH),
        });
        let server = server.await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        (client.clone(), server, cluster_reads(client))
    }

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey { api_version: "v1".into(), kind: kind.into(), namespace: Some("default".into()), name: name.into() }
    }

    fn selection(names: &[&str], labels: Option<&str>) -> Selection {
        Selection {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            names: names.iter().map(|name| (*name).into()).collect(),
            labels: labels.map(str::to_owned),
            fields: None,
        }
    }

    #[tokio::test]
    async fn objects_kinds_and_the_version_are_read() {
        let (client, _server, reads) = start().await;
        let on = &ClusterRef::Target;
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
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
        let (_client, _server, reads) = start().await;
        for on in [ClusterRef::Host, ClusterRef::Named("other".into())] {
            assert!(matches!(reads.get(&on, &key("ConfigMap", "a")).await, Err(Fault::Invalid(_))), "{on:?}");
            assert!(matches!(reads.discover(&on).await, Err(Fault::Invalid(_))), "{on:?}");
        }
        let unknown = reads.get(&ClusterRef::Target, &key("Nothing", "a")).await;
        assert!(matches!(unknown, Err(Fault::Invalid(_))), "{unknown:?}");
    }
}
