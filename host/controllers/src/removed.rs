//! Whether the cluster of an item that is being deleted counts as removed: read here, decided in [`orangery_blueprint::removed`].

use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, installation::Installation, label, marks::Marks};
use orangery_blueprint::{
    binding::{ExportBindings, ImportBindings},
    removed::{AbsenceCause, UninstallSkip, exports_target, original, without_target},
};
use orangery_core::{
    error::Failure,
    name::{Namespace, installation_context},
    step::Step,
};
use orangery_reconcile::Key;

use crate::{
    controller_context::ControllerContext,
    event,
    target_access::Targets,
    tree::{CHILDREN, DEEPEST, parent},
};

/// What the deletion of an item does where its Target does not exist: a note for [`tell`] where the item goes without being
/// uninstalled, else the failure. `None` where the Target exists, or the item has none.
///
/// # Errors
/// Whether the Target exists could not be read.
pub(crate) async fn check(host: &ControllerContext, item: &DeployItem) -> Step<Option<Result<String, Failure>>> {
    let Some(target) = &item.spec.target else { return Ok(None) };
    let search = Search { host, namespace: Key::of(item).namespace };
    if search.exists(&target.name).await? {
        return Ok(None);
    }
    let skip = if !may_skip(item) {
        UninstallSkip::NotRequested
    } else {
        match search.other_cause(item, &target.name).await? {
            Some(cause) => UninstallSkip::Inconclusive(cause),
            None => UninstallSkip::ClusterRemoved,
        }
    };
    Ok(Some(without_target(&item.name_any(), &search.display(&target.name), &skip)))
}

/// Whether the Target of an item was one that a user kept: no copy of another one, and no export.
pub(crate) fn was_users_own(host: &ControllerContext, item: &DeployItem) -> bool {
    item.spec.target.as_ref().is_some_and(|target| was_users(host, item, &target.name))
}

/// The same of another Target that an item deploys to.
pub(crate) fn was_users(host: &ControllerContext, item: &DeployItem, target: &str) -> bool {
    let search = Search { host, namespace: Key::of(item).namespace };
    let is_root = search.outer(item).is_some_and(|outer| outer.is_empty());
    is_root && search.exporter("", target).is_none()
}

/// Whether an item says `onDelete.skipUninstallIfClusterRemoved`.
pub(crate) fn may_skip(item: &DeployItem) -> bool {
    item.spec.on_delete.as_ref().is_some_and(|on_delete| on_delete.skip_uninstall_if_cluster_removed)
}

/// Tells that an item goes without being uninstalled.
pub(crate) fn tell(host: &ControllerContext, item: &DeployItem, note: &str) {
    tracing::info!(item = %Key::of(item), "{note}");
    event::warn(host, item, "UninstallSkipped", note);
}

struct Search<'a> {
    host: &'a ControllerContext,
    namespace: Namespace,
}

impl Search<'_> {
    fn display(&self, name: &str) -> String {
        format!("{}/{name}", self.namespace)
    }

    async fn exists(&self, target: &str) -> Step<bool> {
        let targets = Targets { host: self.host, namespace: &self.namespace, whose: "" };
        Ok(targets.find(target).await?.is_some())
    }

    fn installation(&self, name: &str) -> Option<std::sync::Arc<Installation>> {
        self.host.stores.installations.get(&Key::new(&self.namespace, name))
    }

    /// The Installation that the one of an item is in; empty where it is in none, or the item is nobody's, and `None` where its
    /// own does not exist. The Execution has the name of its Installation.
    fn outer(&self, item: &DeployItem) -> Option<String> {
        match item.label(label::MANAGED_BY) {
            None => Some(String::new()),
            Some(name) => self.installation(name).map(|installation| parent(&installation).to_owned()),
        }
    }

    /// Follows copies up to the Target that a user keeps. `None` where that does not exist, and nobody makes it.
    async fn other_cause(&self, item: &DeployItem, target: &str) -> Step<Option<AbsenceCause>> {
        let Some(mut outer) = self.outer(item) else { return Ok(Some(AbsenceCause::Unknown)) };
        let mut target = target.to_owned();
        for _ in 0..DEEPEST {
            if let Some(exporter) = self.exporter(&outer, &target) {
                return Ok(Some(AbsenceCause::ExportedBy(self.display(&exporter))));
            }
            if outer.is_empty() {
                return Ok(None);
            }
            let Some(keeper) = self.installation(&outer) else { break };
            let above = parent(&keeper).to_owned();
            let imports = ImportBindings::from(&keeper.spec.imports);
            let Some(name) = original(&target, &imports, &context(&outer), &context(&above)) else { break };
            if self.exists(&name).await? {
                return Ok(Some(AbsenceCause::CopyOf(self.display(&name))));
            }
            (outer, target) = (above, name.into());
        }
        Ok(Some(AbsenceCause::Unknown))
    }

    /// The name of an Installation that exports a Target into the context of its parent.
    fn exporter(&self, parent: &str, target: &str) -> Option<String> {
        let siblings = CHILDREN.find(&self.host.stores.installations, &self.namespace, parent);
        let exports = |sibling: &Installation| {
            exports_target(&ExportBindings::from(&sibling.spec.exports), &context(parent), target)
        };
        siblings.into_iter().find(|sibling| exports(sibling)).map(|sibling| sibling.name_any())
    }
}

/// The context below an Installation; that of roots has no Installation and no name.
fn context(installation: &str) -> String {
    if installation.is_empty() { String::new() } else { installation_context(installation) }
}
