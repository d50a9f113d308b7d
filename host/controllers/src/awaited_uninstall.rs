//! What is being deleted on its own, as by a user, and waits for a job of its root says so (C-161).

use kube::ResourceExt;
use orangery_api::{job::Job, marks::Marks};
use orangery_core::{
    phase::{Phase as _, item::Item},
    step::Step,
};
use orangery_reconcile::{Key, Store, Watched};

use crate::{controller_context::ControllerContext, job::JobStatus, object::generation_of, tree::root_of};

/// Tells it of an object without a job. `installation` is the one that it belongs to, or itself. Of what a running job of the root
/// deletes, or its deletion, nothing is told: the job comes to it.
pub(crate) async fn tell<K: Watched + Job + Marks, S: JobStatus>(
    host: &ControllerContext,
    store: &Store<K>,
    object: &K,
    installation: &str,
    status: impl FnOnce(&mut K) -> &mut S,
) -> Step<()> {
    if !object.is_deleting() || !object.job_finished() || Item::parse(object.phase()).is_some_and(Item::is_deletion) {
        return Ok(());
    }
    let key = Key { name: installation.into(), ..Key::of(object) };
    let root = root_of(&host.stores, &key).filter(|root| !root.is_deleting() && root.job_finished());
    let Some(root) = root else { return Ok(()) };
    let mut draft = object.clone();
    status(&mut draft).await_uninstall(&root.name_any(), generation_of(object), &host.now());
    if draft.conditions() == object.conditions() {
        return Ok(());
    }
    host.writer(store).update_status(object, &draft).await.map(drop).map_err(|error| error.halt("UpdateStatus"))
}
