//! What a component is called with, and what it may ask then.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt;
use orangery_api::deploy_item::DeployItem;
use orangery_apply::ClusterSet;
use orangery_proposal::{Item, StageFailure, deployer::Reads, item::seed};
use orangery_reconcile::Key;
use serde_json::Value;

use super::resources::ItemResources;
use crate::{artifacts::ContextArtifacts, controller_context::ControllerContext};

/// The Context of an item that names none.
const USUAL_CONTEXT: &str = "default";

/// The job that asks.
pub(super) struct Begin<'a> {
    /// Its id.
    pub(super) job: &'a str,
    /// When it began.
    pub(super) now: Timestamp,
    /// How long it may take; `None` for ever.
    pub(super) limit: Option<Duration>,
}

/// What came before the call.
#[derive(Default)]
pub(super) struct Call {
    pub(super) checkpoint: Option<Vec<u8>>,
    pub(super) failed: Option<StageFailure>,
}

/// The Context of an item.
pub(super) fn context(of: &DeployItem) -> Key {
    let named = &of.spec.context;
    let name = if named.is_empty() { USUAL_CONTEXT.to_owned() } else { named.clone() };
    Key { namespace: of.namespace().unwrap_or_default(), name }
}

/// The item as the component sees it; `status` is what the component keeps.
pub(super) fn item(of: &DeployItem, begin: &Begin<'_>, call: Call, status: Option<&Value>) -> Item {
    let uid = of.uid().unwrap_or_default();
    let spec = &of.spec;
    let timeout = begin.limit.and_then(|limit| u64::try_from(limit.as_millis()).ok()).unwrap_or(u64::MAX);
    Item {
        namespace: of.namespace().unwrap_or_default(),
        name: of.name_any(),
        seed: seed(&uid, begin.job),
        uid,
        item_type: spec.type_.clone(),
        generation: of.metadata.generation.and_then(|number| u64::try_from(number).ok()).unwrap_or_default(),
        context: context(of).name,
        target: spec.target.as_ref().map(|target| target.name.clone()),
        job: begin.job.to_owned(),
        config: spec.config.clone().unwrap_or_default(),
        status: status.cloned(),
        checkpoint: call.checkpoint,
        failed: call.failed,
        now: begin.now.to_string(),
        timeout,
    }
}

/// What the component may ask, as far as it is granted.
pub(super) fn reads(host: &Arc<ControllerContext>, of: &Arc<DeployItem>, clusters: &Arc<ClusterSet>) -> Reads {
    Reads {
        clusters: Arc::<ClusterSet>::clone(clusters),
        artifacts: Arc::new(ContextArtifacts::new(host, context(of))),
        resources: Arc::new(ItemResources::new(host, of, context(of))),
    }
}
