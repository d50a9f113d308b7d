//! A running server: what it takes to start one, and what it tells others.

use std::{io, net::SocketAddr, sync::Arc};

use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

use crate::{
    Options, Storage,
    cluster::EmbeddedCluster,
    http,
    identity::{IdentityError, ServerIdentity},
    lifecycle,
    operation::{FieldValidation, ObjectPart, WriteRequest},
    refusal::{Refusal, RefusalReason},
    store::{DataFolderError, ObjectName, ObjectStore, StoreKey},
};

/// The namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
    /// There are no certificates, or no token.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Somebody else listens there.
    #[error(
        "the address {address} is in use; stop the program that has it or choose another port (0 takes any that is free)"
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address} ({source}); choose an address of this machine")]
    Address {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What every cluster has cannot be made.
    #[error("cannot make {name} in {collection}: {why}")]
    Object {
        /// Its kind, as `namespaces`.
        collection: String,
        /// Its name.
        name: String,
        /// The refusal's sentence.
        why: String,
    },
}

/// A running API server. Dropping it leaves it running; `stop` ends it.
pub struct Server {
    cluster: Arc<EmbeddedCluster>,
    address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Starts a server, which answers when this returns.
///
/// # Errors
/// A data folder that cannot be used, an address that is taken: each in one sentence with what to do.
pub async fn start(options: Options) -> Result<Server, StartError> {
    let Options { storage, address, clock } = options;
    // The port first: it is the cheaper thing to be refused.
    let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
        _ => StartError::Address { address, source },
    })?;
    let address = listener.local_addr().map_err(|source| StartError::Address { address, source })?;
    let open = move || open(&storage);
    let (store, notes, identity) = match tokio::task::spawn_blocking(open).await {
        Ok(opened) => opened?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let tls = TlsAcceptor::from(identity.tls()?);
    let cluster = Arc::new(EmbeddedCluster::new(store, identity, clock));
    let lifecycle = tokio::spawn(lifecycle::run(Arc::clone(&cluster), notes));
    for namespace in NAMESPACES {
        make_namespace(&cluster, namespace).await?;
    }
    make_service(&cluster, address.port()).await?;
    let router = http::guarded(Arc::clone(&cluster));
    let accept = tokio::spawn(http::accept(listener, tls, router, cluster.stop.clone()));
    Ok(Server { cluster, address, tasks: vec![accept, lifecycle] })
}

type OpenedStore = (ObjectStore, tokio::sync::mpsc::UnboundedReceiver<crate::store::Note>, ServerIdentity);

fn open(storage: &Storage) -> Result<OpenedStore, StartError> {
    match storage {
        Storage::Memory => {
            let (store, notes) = ObjectStore::in_memory();
            Ok((store, notes, ServerIdentity::fresh()?))
        }
        // The store's lock is taken before the identity is read or made.
        Storage::Folder(folder) => {
            let (store, notes) = ObjectStore::in_folder(folder)?;
            Ok((store, notes, ServerIdentity::in_folder(folder)?))
        }
    }
}

async fn make_namespace(cluster: &EmbeddedCluster, namespace: &'static str) -> Result<(), StartError> {
    let name = StoreKey { collection: "namespaces".into(), name: ObjectName::new("", namespace) };
    make(cluster, &name, json!({"metadata": {"name": namespace}})).await
}

/// The Service by which programs in a cluster reach its server: many ask for it, whether it leads there or not.
async fn make_service(cluster: &EmbeddedCluster, port: u16) -> Result<(), StartError> {
    let name = StoreKey { collection: "services".into(), name: ObjectName::new("default", "kubernetes") };
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let ports = json!([{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]);
    let spec = json!({"type": "ClusterIP", "clusterIP": "10.96.0.1", "ports": ports});
    make(cluster, &name, json!({"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec})).await
}

/// Makes an object that every cluster has, unless it is there.
async fn make(cluster: &EmbeddedCluster, name: &StoreKey, object: Value) -> Result<(), StartError> {
    let refused = |refusal: Refusal| StartError::Object {
        collection: name.collection.to_string(),
        name: name.name.name.to_string(),
        why: refusal.message,
    };
    let served =
        cluster.catalog().in_collection(&name.collection).ok_or_else(Refusal::unknown_path).map_err(refused)?;
    if cluster.store.get(name).is_some() {
        return Ok(());
    }
    let call = WriteRequest {
        served,
        namespace: name.name.namespace.to_string(),
        part: ObjectPart::Main,
        dry_run: false,
        manager: "kube-apiserver".to_owned(),
        user: None,
        validation: FieldValidation::Ignore,
        doubled: Vec::new(),
    };
    match cluster.create(&call, object).await {
        Err(refusal) if refusal.reason != RefusalReason::AlreadyExists => Err(refused(refusal)),
        _ => Ok(()),
    }
}

impl Server {
    /// Where it listens, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, by an address that its certificate names.
    #[must_use]
    pub fn url(&self) -> String {
        let address = self.address;
        match address.ip() {
            ip if ip.is_unspecified() => format!("https://localhost:{}", address.port()),
            ip if ip.is_loopback() => format!("https://{address}"),
            _ => format!("https://localhost:{}", address.port()),
        }
    }

    /// The certificate of its authority, as PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.cluster.identity.ca_pem()
    }

    /// The admin's bearer token.
    #[must_use]
    pub fn token(&self) -> &str {
        self.cluster.identity.token()
    }

    /// A kubeconfig (YAML) with one context, `orangery`, that bears the authority and the token in itself.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let authority = data_encoding::BASE64.encode(self.ca_pem().as_bytes());
        let (url, token) = (self.url(), self.token());
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: orangery\n\
             clusters:\n- name: orangery\n  cluster:\n    server: {url}\n    certificate-authority-data: {authority}\n\
             users:\n- name: orangery\n  user:\n    token: {token}\n\
             contexts:\n- name: orangery\n  context:\n    cluster: orangery\n    user: orangery\n    namespace: default\n"
        )
    }

    /// The same API in this process, without TLS; the caller is the admin.
    pub fn router(&self) -> axum::Router {
        http::trusted(Arc::clone(&self.cluster))
    }

    /// From now on workloads are marked as the controllers of Kubernetes and a kubelet would mark them: Deployments,
    /// StatefulSets, DaemonSets, ReplicaSets and Pods ready, Jobs complete, claims bound, load balancers with an address.
    /// No container runs. Annotations on the workload, else on its pod template, say `simulate.orangery.dev/delay` and
    /// `simulate.orangery.dev/fail`. To be called once.
    pub fn simulate_workloads(&mut self) {
        self.tasks.push(tokio::spawn(lifecycle::simulate(Arc::clone(&self.cluster))));
    }

    /// Stops: ends watches, finishes answers under way, writes all that is accepted.
    pub async fn stop(self) {
        self.cluster.stop.cancel();
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task of the server ended badly");
            }
        }
        let store = self.cluster.store.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || store.close()).await {
            tracing::error!(%error, "the store ended badly");
        }
    }
}
