//! The begin of a job: the id is written before any child gets it (INS-12 … INS-14).

use std::sync::Arc;

use orangery_api::{
    annotation,
    context::DEFAULT_CONTEXT,
    installation::{AutomaticReconcileStatus, Installation},
    marks::Marks,
};
use orangery_core::{
    name::JobId,
    phase::{Phase as _, installation::Installation as Phase},
    step::{Halt, Step},
};

use super::{super::apply::requests::remove, changes::ImportWatches};
use crate::{
    controller_context::ControllerContext,
    job::JobStatus,
    object::{add_finalizer, generation_of},
};

/// What a job needs before its first phase, in one write: the finalizer, the default context, and the request removed
/// (INS-14), so that it can be made again.
pub(in crate::installation) async fn adopt(
    host: &ControllerContext,
    before: Arc<Installation>,
    answers_request: bool,
) -> Result<Arc<Installation>, Halt> {
    let mut after = Installation::clone(&before);
    if after.spec.context.is_empty() {
        DEFAULT_CONTEXT.clone_into(&mut after.spec.context);
    }
    add_finalizer(&mut after);
    // A request that came after this job began stays for the next one.
    if answers_request {
        remove(&mut after);
    }
    if after == *before {
        return Ok(before);
    }
    let writer = host.writer(&host.stores.installations);
    writer.update(&before, &after).await.map_err(|error| error.halt("AdoptInstallation"))
}

/// An Installation as it is when a job begins. `record` is that of a job which starts on a schedule; a person's request begins
/// to count anew, as does a change.
pub(in crate::installation) async fn begun(
    (host, imports): (&ControllerContext, &ImportWatches),
    before: &Installation,
    job: &JobId,
    record: Option<AutomaticReconcileStatus>,
) -> Installation {
    let mark = imports.mark(host, before).await;
    let mut after = before.clone();
    let first = if before.is_deleting() { Phase::INIT_DELETE } else { Phase::INIT };
    let status = after.status.get_or_insert_default();
    status.trigger(job, first, generation_of(before), &host.now());
    before.annotation(annotation::TRIGGER).unwrap_or("").clone_into(&mut status.last_handled_trigger);
    status.pending_operation.clear();
    mark.put(status);
    // A program asks once more for what has failed, and not a person.
    let retries = before.annotation(annotation::RECONCILE_REASON) == Some(annotation::RETRY);
    if record.is_some() || !retries {
        status.automatic_reconcile_status = record;
    }
    after
}

/// Writes the id before any child gets it, so that a request is never lost.
pub(in crate::installation) async fn write(
    host: &ControllerContext,
    before: &Installation,
    after: &Installation,
) -> Step<()> {
    let writer = host.writer(&host.stores.installations);
    writer.update_status(before, after).await.map(drop).map_err(|error| error.halt("StartJob"))
}
