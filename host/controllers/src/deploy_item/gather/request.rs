//! What a component is called with, and what it may ask then.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt;
use orangery_api::deploy_item::DeployItem;
use orangery_cluster::ClusterSet;
use orangery_proposal::{
    Item,
    deployer::Reads,
    item::{NextCall, seed},
};
use orangery_reconcile::Key;
use serde_json::Value;

use super::resources::ItemResources;
use crate::{artifacts::ContextArtifacts, controller_context::ControllerContext};
use orangery_core::name::JobId;

/// The Context of an item that names none.
const USUAL_CONTEXT: &str = "default";

/// The job that a component is called for.
pub(in crate::deploy_item) struct ItemJob {
    /// Its id.
    pub(in crate::deploy_item) id: JobId,
    /// When it began.
    pub(in crate::deploy_item) begun: Timestamp,
    /// How long it may take; `None` for ever.
    pub(in crate::deploy_item) limit: Option<Duration>,
}

/// The Context of an item.
pub(in crate::deploy_item) fn context(of: &DeployItem) -> Key {
    let named = &of.spec.context;
    let name = if named.is_empty() { USUAL_CONTEXT.to_owned() } else { named.clone() };
    Key { name: name.into(), ..Key::of(of) }
}

/// The item as the component sees it; `status` is what the component keeps there.
pub(super) fn item(of: &DeployItem, job: &ItemJob, call: NextCall, status: Option<&Value>) -> Item {
    let Key { namespace, name } = Key::of(of);
    let uid = of.uid().unwrap_or_default();
    let spec = &of.spec;
    Item {
        namespace,
        name,
        seed: seed(&uid, &job.id),
        uid,
        item_type: spec.type_.clone(),
        generation: of.metadata.generation.and_then(|number| u64::try_from(number).ok()).unwrap_or(0),
        context: context(of).name.into(),
        target: spec.target.as_ref().map(|target| target.name.clone()).map(String::from),
        job: job.id.clone(),
        config: spec.config.clone().unwrap_or(Value::Null),
        annotations: of.metadata.annotations.clone().unwrap_or_default(),
        // Of the registration, which the component's own side knows.
        configuration: None,
        status: status.cloned(),
        checkpoint: call.checkpoint,
        failed: call.failed,
        now: job.begun.to_string(),
        timeout: job.limit.and_then(|limit| u64::try_from(limit.as_millis()).ok()).unwrap_or(u64::MAX),
    }
}

/// What the component may ask, as far as it is granted.
pub(super) fn reads(host: &Arc<ControllerContext>, of: &Arc<DeployItem>, clusters: &Arc<ClusterSet>) -> Reads {
    Reads {
        clusters: Arc::<ClusterSet>::clone(clusters),
        artifacts: Arc::new(ContextArtifacts::of_item(host, context(of), &of.spec.type_)),
        resources: Arc::new(ItemResources::new(host, of, context(of))),
    }
}
