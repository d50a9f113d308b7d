//! The clusters that an object reaches: its target, other targets of its namespace, and the host's own (`docs/wire.md`
//! §1.4).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kube::ResourceExt;
use orangery_api::{convert::original, deploy_item::DeployItem, target::Target};
use orangery_cluster::{Call, Cluster, ClusterPool, Connections};
use orangery_core::{
    name::Namespace,
    port::BoxFuture,
    step::{Halt, Step},
};
use orangery_policy::PolicyRequest;
use orangery_proposal::{ClusterRef, SecretContent};
use orangery_reconcile::Key;
use serde_json::Value;

use super::{Targets, stall};
use crate::{
    acting_account::acting_account,
    controller_context::ControllerContext,
    kept_credentials,
    secret_values::reader,
    target_kubeconfig::{LeftCluster, TargetKubeconfig},
};

/// The cluster of the resources, in messages.
const HOST_CLUSTER: &str = "the host cluster";

/// Those of a deletion, and the call that they are asked for.
#[derive(Clone, Default)]
struct LeftClusters {
    clusters: BTreeMap<ClusterRef, LeftCluster>,
    call: Call,
}

/// The targets that an object may reach, by name in its namespace.
pub(crate) struct TargetConnections {
    host: Arc<ControllerContext>,
    pool: Arc<ClusterPool>,
    namespace: Namespace,
    /// The object that needs them, in messages.
    whose: String,
    own: Option<String>,
    /// Protects how clusters were connected. Held for one look-up or one change.
    used: Mutex<BTreeMap<ClusterRef, (TargetKubeconfig, Arc<Cluster>)>>,
    /// Protects the clusters of a deletion. Held for one look-up or one change.
    left: Mutex<LeftClusters>,
}

impl TargetConnections {
    /// Those of a deploy item.
    pub(crate) fn of(host: &Arc<ControllerContext>, pool: &Arc<ClusterPool>, item: &DeployItem) -> Self {
        let whose = reader(&item.name_any());
        let own = item.spec.target.as_ref().map(|target| target.name.clone());
        Self { own: own.map(String::from), ..Self::named(host, pool, &Key::of(item).namespace, whose) }
    }

    /// Those of an object that has no target of its own.
    pub(crate) fn named(
        host: &Arc<ControllerContext>,
        pool: &Arc<ClusterPool>,
        namespace: &Namespace,
        whose: String,
    ) -> Self {
        Self {
            host: Arc::clone(host),
            pool: Arc::clone(pool),
            namespace: namespace.to_owned(),
            whose,
            own: None,
            used: Mutex::default(),
            left: Mutex::default(),
        }
    }

    fn targets(&self) -> Targets<'_> {
        Targets { host: &self.host, namespace: &self.namespace, whose: &self.whose }
    }

    /// The kubeconfig by which the cluster of this uid was connected, and the Target that it is of. A Target that leads elsewhere by
    /// now says nothing of that cluster.
    pub(crate) fn used(&self, on: &ClusterRef, uid: &str) -> Option<(Key, TargetKubeconfig)> {
        let name = self.own_name(on).ok()?;
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (kubeconfig, cluster) = used.get(on)?;
        let is_it = cluster.known_uid().as_deref() == Some(uid);
        is_it.then(|| (Key::new(self.namespace.clone(), name), kubeconfig.clone()))
    }

    /// From now on a cluster whose Target does not exist is reached by the kubeconfig that was kept of it in a Secret (C-28), and
    /// one whose Target is a copy by what that is a copy of now (C-172).
    pub(crate) fn fall_back_on(&self, clusters: BTreeMap<ClusterRef, LeftCluster>, call: &Call) {
        let left = LeftClusters { clusters, call: call.clone() };
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = left;
    }

    /// What is known of a cluster in a deletion, and the call that it is asked for.
    fn left(&self, on: &ClusterRef) -> Option<(LeftCluster, Call)> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        Some((left.clusters.get(on)?.clone(), left.call.clone()))
    }

    /// The kubeconfig that was kept of a cluster, where the policy of the namespace allows its server.
    pub(crate) async fn kept_kubeconfig(&self, on: &ClusterRef) -> Step<Option<TargetKubeconfig>> {
        match self.left(on).and_then(|(left, _)| left.kept) {
            Some(secret) => kept_credentials::usable(&self.host, &self.namespace, &secret).await,
            None => Ok(None),
        }
    }

    /// The kubeconfig of the Target of a cluster; in a deletion, where there is no such Target any more, the one that was kept, and
    /// where it is a copy, what is newer.
    async fn kubeconfig(&self, on: &ClusterRef) -> Step<TargetKubeconfig> {
        let name = self.own_name(on)?;
        let instead = match self.targets().find(name).await? {
            Some(target) => self.newer(on, &target).await?,
            None => self.kept_kubeconfig(on).await?,
        };
        match instead {
            Some(kubeconfig) => Ok(kubeconfig),
            None => self.targets().kubeconfig(name).await,
        }
    }

    /// The kubeconfig in a deletion that is newer than a copy: that of its original which has changed since, or what was kept where
    /// that is gone. It counts where it leads to the cluster with the objects: the copy may be all that still does.
    async fn newer(&self, on: &ClusterRef, copy: &Target) -> Step<Option<TargetKubeconfig>> {
        let (Some((left, call)), Some(original)) = (self.left(on), original(copy)) else { return Ok(None) };
        let newer = match self.targets().find(original).await? {
            Some(original) if original.spec == copy.spec => None,
            // Why it cannot be used is no reason to use the copy no more.
            Some(_) => self.targets().kubeconfig(original).await.ok(),
            None => self.kept_kubeconfig(on).await.ok().flatten(),
        };
        let Some(newer) = newer else { return Ok(None) };
        let there = match self.cluster(&newer).await {
            Ok(cluster) => cluster.during(&call).uid().await.ok().flatten(),
            Err(_) => None,
        };
        Ok(Some(newer).filter(|_| there == Some(left.uid)))
    }

    async fn cluster(&self, kubeconfig: &TargetKubeconfig) -> Step<Arc<Cluster>> {
        let networks = self.host.policies.networks(&self.namespace, kubeconfig)?;
        let cluster = self.pool.connect(&kubeconfig.text, &networks, &Some(self.namespace.clone())).await;
        cluster.map_err(Halt::from)
    }

    /// An item whose target does not exist fails at once (`docs/wire.md` §3.5); one without a target is not asked.
    pub(crate) async fn exist(&self) -> Step<()> {
        match &self.own {
            Some(name) => self.targets().target(name).await.map(drop),
            None => Ok(()),
        }
    }

    /// The cluster of the resources, as the service account that the operator acts as for this namespace: never as itself
    /// (C-38).
    fn host_cluster(&self) -> Step<Arc<Cluster>> {
        let client = &self.host.client;
        let known = (&self.host.accounts, &self.host.policies);
        let Some(account) = acting_account(known, &self.namespace)? else {
            return Ok(self.pool.adopt(HOST_CLUSTER, client));
        };
        self.pool.adopt_for(&account.user(), HOST_CLUSTER, client).map_err(|_invalid| {
            stall("NoServiceAccount", format!("the operator cannot act as {account}, whose name no API server knows"))
        })
    }

    fn own_name<'a>(&'a self, on: &'a ClusterRef) -> Step<&'a str> {
        match on {
            ClusterRef::Named(name) => Ok(name),
            ClusterRef::Target => self.own.as_deref().ok_or_else(|| {
                let message = format!("{} has no target, but its plugin needs one; set spec.target", self.whose);
                stall("NoTargetDefined", message)
            }),
            ClusterRef::Host => Err(stall(
                "NoTargetDefined",
                "the host cluster is no Target: it has neither a kubeconfig nor a target document to place".to_owned(),
            )),
        }
    }
}

impl Connections for TargetConnections {
    fn connect<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
        Box::pin(async move {
            if *on == ClusterRef::Host {
                self.targets().allowed(PolicyRequest::HostCluster)?;
                return self.host_cluster();
            }
            let kubeconfig = self.kubeconfig(on).await?;
            let cluster = self.cluster(&kubeconfig).await?;
            let used = (kubeconfig, Arc::clone(&cluster));
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(on.clone(), used);
            Ok(cluster)
        })
    }

    fn content<'a>(&'a self, content: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
        Box::pin(async move {
            match content {
                SecretContent::Kubeconfig(on) => Ok(self.kubeconfig(on).await?.text),
                SecretContent::TargetDocument(on) => self.targets().document(self.own_name(on)?).await,
            }
        })
    }

    fn has_read(&self, on: &ClusterRef, secret: &Value) {
        self.host.secrets.learn_read(&self.namespace, &self.whose, on, secret);
    }
}
