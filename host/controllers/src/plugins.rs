//! Plugins: components that are installed while the host runs (C-260 … C-264).
//!
//! Of each Plugin one call at a time is under way: `gather` its object, what is known of it and the items that it serves; decide
//! ([`orangery_core::plan::plugin::step`]); `apply`: it is fetched, compiled and put in the place of the version before; `status`, in one
//! write. A call is made by a change of the Plugin, of the ConfigMap that it names, of the number of its items, and by time only
//! for what no watch can tell: a registry.

use std::sync::Arc;

use orangery_api::{job::Job as _, marks::Marks as _};
use orangery_reconcile::{Key, Queue};

use crate::controller_context::ControllerContext;

mod candidate;
mod candidate_memory;
mod follow;
mod one;
mod source;
mod status;

pub use self::follow::keep_plugins;

/// Items under way have their controller called when another component serves their type.
pub(crate) fn wake_items(host: &Arc<ControllerContext>, queue: Queue) {
    let known = Arc::downgrade(host);
    host.served_types.subscribe(move |types| {
        let Some(host) = known.upgrade() else { return };
        host.stores.deploy_items.for_each(|item| {
            if types.contains(&item.spec.type_) && (!item.job_finished() || item.is_deleting()) {
                queue.wake(Key::of(item));
            }
        });
    });
}
