//! The end of deploy items: orphans of an update, and all of them when the Execution is deleted (EXE-39 … EXE-51).

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use orangery_api::{annotation, deploy_item::DeployItem, execution::DeployItemTemplate, marks::Marks};
use orangery_core::{
    dag::Direction,
    phase::{Phase, item::Item as ItemPhase},
    plan::{execution as plan, execution::ItemState},
    step::{Step, Verdict},
    workflow::Point,
};
use orangery_reconcile::Key;

use super::{
    Run,
    items::{WRITES_AT_ONCE, item_name, state, trigger},
};
use crate::{job, object::before_deletion, removed};

impl Run<'_> {
    /// `InitDelete`: the delete call for all items; their finalizers keep them (EXE-42, EXE-43, INS-79).
    pub(super) async fn init_delete(&mut self) -> Step<Verdict> {
        let without_uninstall = self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL);
        self.delete_calls(self.objects(), without_uninstall).await?;
        Ok(Verdict::Done)
    }

    /// The delete call for those of these objects that have none yet.
    pub(super) async fn delete_calls(&self, objects: Vec<Arc<DeployItem>>, without_uninstall: bool) -> Step<()> {
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let deletions: Vec<_> = objects
            .into_iter()
            .map(|object| {
                let writer = &writer;
                async move {
                    let mut current = Arc::clone(&object);
                    if let Some(after) = before_deletion(object.as_ref(), without_uninstall) {
                        current = writer.update(&object, &after).await?;
                    }
                    if current.is_deleting() { Ok(()) } else { writer.delete(&current).await }
                }
            })
            .collect();
        stream::iter(deletions)
            .buffer_unordered(WRITES_AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await
            .map_err(|error| error.halt("DeleteDeployItem"))
    }

    /// `Deleting`: items are triggered in reverse order until none is left.
    pub(super) async fn deleting(&mut self) -> Step<Verdict> {
        // Without a spec that can be read there are no conditions; what was made goes all the same (C-28).
        if self.load_items().is_err() || self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            self.items = Arc::default();
        }
        let objects = self.objects();
        let asked = self.ask_all(Direction::Backward, &objects).await;
        let states = self.states(&objects, Direction::Backward, (&self.records, &asked));
        let outcome = self.carry_out_deletion(&objects, states).await;
        asked.with(outcome)
    }

    /// What a deletion needs to know: the objects there are, and items without one that have to be gone in every respect.
    pub(super) fn states_of_deletion<'s>(
        &'s self,
        objects: &'s [Arc<DeployItem>],
        of_spec: Vec<ItemState<'s>>,
    ) -> Vec<ItemState<'s>> {
        let mut states = states_of_objects(objects);
        let there: BTreeSet<&str> = states.iter().map(|state| state.name).collect();
        let asks = |item: &&ItemState<'_>| {
            let of_spec = self.items.find(item.name);
            let kept = of_spec.is_some_and(|item| item.template.on_delete.as_ref().is_some_and(|it| it.keep));
            let removed = of_spec.is_some_and(|item| self.is_cluster_removed(&item.template));
            of_spec.is_some_and(|item| item.conditions.get(Point::Deleted).is_some()) && !kept && !removed
        };
        let gone: Vec<ItemState<'_>> =
            of_spec.into_iter().filter(|item| asks(&item) && !there.contains(item.name)).collect();
        states.extend(gone.into_iter().map(|item| ItemState { object: None, going: None, ..item }));
        states
    }

    /// Whether an item goes with its cluster, and the cluster counts as removed: nothing there can be asked any more.
    fn is_cluster_removed(&self, item: &DeployItemTemplate) -> bool {
        let skips = item.on_delete.as_ref().is_some_and(|on_delete| on_delete.skip_uninstall_if_cluster_removed);
        let namespace = self.draft.metadata.namespace.as_deref().unwrap_or_default();
        let is_gone = |name: &str| self.host.stores.targets.get(&Key::new(namespace, name)).is_none();
        skips && item.target.as_ref().is_some_and(|target| is_gone(&target.name))
    }

    /// Triggers what may be deleted now.
    pub(super) async fn carry_out_deletion(
        &self,
        objects: &[Arc<DeployItem>],
        states: Vec<ItemState<'_>>,
    ) -> Step<Verdict> {
        let plan = plan::deleting(&states, &self.job, self.draft.spec.policy());
        let chosen = objects.iter().filter(|object| plan.trigger.iter().any(|name| name == item_name(object)));
        self.hand_down_deletion(chosen).await?;
        plan.outcome
    }

    /// Triggers the deletion of objects. Those that are not to be uninstalled are released here: no deployer is asked
    /// (INS-80, C-24, C-28).
    pub(super) async fn hand_down_deletion<'o>(&self, objects: impl Iterator<Item = &'o Arc<DeployItem>>) -> Step<()> {
        let mut triggered: Vec<&Arc<DeployItem>> = Vec::new();
        for object in objects {
            if self.is_left(object).await? {
                job::release(self.host, &self.host.stores.deploy_items, object.as_ref()).await?;
            } else {
                triggered.push(object);
            }
        }
        trigger(self.host, triggered.into_iter(), &self.job, ItemPhase::INIT_DELETE).await
    }

    /// Whether an item goes without being uninstalled. Our own items see to a removed cluster themselves, at each look;
    /// deployers elsewhere know nothing of it (`landscaper.md` §6.3, §6.5).
    async fn is_left(&self, item: &DeployItem) -> Step<bool> {
        if is_kept(item) {
            return Ok(true);
        }
        if !removed::may_skip(item) || self.host.plugins.deployer(&item.spec.type_).is_some() {
            return Ok(false);
        }
        match removed::look(self.host, item).await? {
            Some(Ok(note)) => {
                removed::tell(self.host, item, &note);
                Ok(true)
            }
            // It is for its deployer to say what is missing.
            Some(Err(_)) | None => Ok(false),
        }
    }
}

/// What the deletion of objects needs to know of them alone.
pub(super) fn states_of_objects(objects: &[Arc<DeployItem>]) -> Vec<ItemState<'_>> {
    let of = |object| ItemState {
        keep: is_kept(object),
        ..ItemState::new(item_name(object), depends_on(object), Some(state(object)))
    };
    objects.iter().map(|object| of(object.as_ref())).collect()
}

/// Whether what an item deployed stays: nobody is asked to uninstall it (INS-80, WF-27).
fn is_kept(item: &DeployItem) -> bool {
    item.flag(annotation::DELETE_WITHOUT_UNINSTALL)
        || item.spec.on_delete.as_ref().is_some_and(|on_delete| on_delete.keep)
}

/// What an item depended on when it was written last: the spec may no longer have it (C-19).
fn depends_on(object: &DeployItem) -> Vec<&str> {
    let names = object.annotation(annotation::DEPENDS_ON).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).collect()
}
