//! The clusters of an item: its target, other targets of its namespace, and the host's own (`landscaper.md` §1.4).

use std::sync::Arc;

use kube::ResourceExt;
use orangery_api::deploy_item::DeployItem;
use orangery_apply::{Cluster, ClusterPool, Connections};
use orangery_core::{
    error::{Code, Failure},
    port::BoxFuture,
    proposal::{ClusterRef, SecretContent},
    step::{Halt, Step},
};

use crate::{host::Host, target::Targets};

/// The targets that an item may reach, by name in its namespace.
pub(super) struct ItemTargets {
    host: Arc<Host>,
    pool: Arc<ClusterPool>,
    namespace: String,
    /// Who needs them, in messages.
    item: String,
    own: Option<String>,
}

impl ItemTargets {
    pub(super) fn of(host: &Arc<Host>, pool: &Arc<ClusterPool>, item: &DeployItem) -> Self {
        Self {
            host: Arc::clone(host),
            pool: Arc::clone(pool),
            namespace: item.namespace().unwrap_or_default(),
            item: format!("DeployItem {}", item.name_any()),
            own: item.spec.target.as_ref().map(|target| target.name.clone()),
        }
    }

    fn targets(&self) -> Targets<'_> {
        Targets { host: &self.host, namespace: &self.namespace, whose: &self.item }
    }

    /// An item whose target does not exist fails at once (`landscaper.md` §3.5); one without a target is not asked.
    pub(super) async fn exist(&self) -> Step<()> {
        match &self.own {
            Some(name) => self.targets().target(name).await.map(drop),
            None => Ok(()),
        }
    }

    fn own_name<'a>(&'a self, on: &'a ClusterRef) -> Step<&'a str> {
        match on {
            ClusterRef::Named(name) => Ok(name),
            ClusterRef::Target => self.own.as_deref().ok_or_else(|| {
                let message = format!("{} has no target, but its plugin needs one; set spec.target", self.item);
                stall("NoTargetDefined", message)
            }),
            ClusterRef::Host => Err(stall(
                "NoTargetDefined",
                "the host cluster is no Target: it has neither a kubeconfig nor a target document to place".to_owned(),
            )),
        }
    }
}

impl Connections for ItemTargets {
    fn connect<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
        Box::pin(async move {
            if *on == ClusterRef::Host {
                return Ok(self.pool.adopt("the host cluster", &self.host.client));
            }
            let kubeconfig = self.targets().kubeconfig(self.own_name(on)?).await?;
            self.pool.connect(&kubeconfig).await.map_err(Halt::from)
        })
    }

    fn content<'a>(&'a self, content: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
        Box::pin(async move {
            match content {
                SecretContent::Kubeconfig(on) => self.targets().kubeconfig(self.own_name(on)?).await,
                SecretContent::TargetDocument(on) => self.targets().document(self.own_name(on)?).await,
            }
        })
    }
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("ResolveTarget", reason, message).with_code(Code::ConfigurationProblem))
}
