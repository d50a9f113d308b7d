//! The end of deploy items: orphans of an update, and all of them when the Execution is deleted (EXE-39 … EXE-51).

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use orangery_api::{annotation, deploy_item::DeployItem, marks::Marks};
use orangery_core::{
    phase::{Phase, item::Item as ItemPhase},
    plan::execution::{self as plan, ItemState},
    step::{Step, Verdict},
};

use super::{
    Run,
    items::{WRITES_AT_ONCE, item_name, state, trigger},
};
use crate::{job, object::before_deletion, removed};

impl Run<'_> {
    /// `InitDelete`: the delete call for all items; their finalizers keep them (EXE-42, EXE-43, INS-79).
    pub(super) async fn init_delete(&mut self) -> Step<Verdict> {
        let without_uninstall = self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL);
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let deletions: Vec<_> = self
            .objects()
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
            .try_collect::<Vec<()>>()
            .await
            .map_err(|error| error.halt("DeleteDeployItem"))?;
        Ok(Verdict::Done)
    }

    /// `Deleting`: items are triggered in reverse order until none is left.
    pub(super) async fn deleting(&mut self) -> Step<Verdict> {
        self.carry_out_deletion(&self.objects()).await
    }

    /// Triggers what may be deleted now. Items that are not to be uninstalled are released here: no deployer is asked
    /// (INS-80, C-24, C-28).
    pub(super) async fn carry_out_deletion(&self, objects: &[Arc<DeployItem>]) -> Step<Verdict> {
        let names: Vec<String> = objects.iter().map(|object| item_name(object)).collect();
        let dependencies: Vec<Vec<String>> = objects.iter().map(|object| depends_on(object)).collect();
        let states: Vec<ItemState<'_>> = objects
            .iter()
            .zip(&names)
            .zip(&dependencies)
            .map(|((object, name), dependencies)| ItemState {
                keep: is_kept(object),
                ..ItemState::new(name, dependencies.iter().map(String::as_str).collect(), Some(state(object)))
            })
            .collect();
        let plan = plan::deleting(&states, &self.job, self.draft.spec.policy());
        let chosen = objects.iter().zip(&names).filter(|(_, name)| plan.trigger.contains(name));
        let mut triggered: Vec<&Arc<DeployItem>> = Vec::new();
        for (object, _) in chosen {
            if self.is_left(object).await? {
                job::release(self.host, &self.host.stores.deploy_items, object.as_ref()).await?;
            } else {
                triggered.push(object);
            }
        }
        trigger(self.host, triggered.into_iter(), &self.job, ItemPhase::INIT_DELETE).await?;
        plan.outcome
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

/// Whether what an item deployed stays: nobody is asked to uninstall it (INS-80, WF-27).
fn is_kept(item: &DeployItem) -> bool {
    item.flag(annotation::DELETE_WITHOUT_UNINSTALL)
        || item.spec.on_delete.as_ref().is_some_and(|on_delete| on_delete.keep)
}

/// What an item depended on when it was written last: the spec may no longer have it (C-19).
fn depends_on(object: &DeployItem) -> Vec<String> {
    let names = object.annotation(annotation::DEPENDS_ON).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
