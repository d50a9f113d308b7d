//! Items whose calls panic or end the process: it is told, and their jobs end at their timeout all the same (C-157).

use std::sync::Arc;

use orangery_api::{deploy_item::DeployItem, marks::Marks};
use orangery_core::phase::item::Item as Phase;
use orangery_reconcile::{Crash, Key, Queue};

use super::timeout;
use crate::{controller_context::ControllerContext, refusal};

/// Tells what has ended the last calls, and ends the job where its time is up.
pub(super) async fn tell(host: &ControllerContext, queue: &Queue, item: &Arc<DeployItem>, crash: Crash) {
    let of = (host, &host.stores.deploy_items);
    let left = timeout::left_of_job(item, host.now().0);
    if left.is_some_and(|left| left.is_zero()) {
        let phase = if item.is_deleting() { Phase::DeleteFailed } else { Phase::Failed };
        refusal::end_crashed(of, item.as_ref(), (crash, phase), |draft| draft.status.get_or_insert_default()).await;
        return;
    }
    refusal::publish_crash(of, item.as_ref(), crash, |draft| draft.status.get_or_insert_default()).await;
    if let Some(left) = left {
        queue.wake_in(Key::of(item.as_ref()), left);
    }
}
