//! What an Execution writes: its deploy items, made, triggered and deleted (EXE-11 … EXE-16, EXE-39 … EXE-51).

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use kube::{ResourceExt, core::ObjectMeta};
use orangery_api::{
    FINALIZER, annotation,
    deploy_item::{DeployItem, DeployItemSpec},
    execution::DeployItemTemplate,
    job::NamePair,
    label,
    marks::{Marks, set_name},
};
use orangery_core::{
    error::{Code, Failure},
    name::{self, ObjectName},
    phase::{Phase, item::Item as ItemPhase},
    step::{Halt, Step, Until},
};
use orangery_policy::{Approval, PolicyRequest, PolicySubject};
use orangery_reconcile::{Key, WriteError};

use super::super::{dependencies::DEPLOY_ITEMS, reconciliation::ExecutionReconciliation};
use crate::{
    job::{self, JobTrigger, Subobject as _},
    namespace_policy::refused,
    never_begun::was_never_begun,
    object::{add_finalizer, before_deletion, controller_reference, uid_of},
    removed,
    signed_origin::SignedOrigin,
    workflow::{ByItem, ItemObject},
};

/// How many items of one Execution are written at the same time.
const WRITES_AT_ONCE: usize = 16;

/// Objects that take more bytes of memory than these together are written one after another.
const LARGE_BYTES: u64 = 16 << 20;

/// What the object of an item has of its Execution.
#[derive(Clone, Copy, Debug)]
pub struct ItemOwner<'a> {
    /// Its name, which is that of its Installation.
    pub execution: &'a ObjectName,
    /// `spec.context`
    pub context: &'a str,
    /// Its annotation [`CACHE_HELM_CHARTS`](annotation::CACHE_HELM_CHARTS).
    pub cache_helm_charts: Option<&'a str>,
}

impl ItemOwner<'_> {
    /// The object of an item as a job writes it over the one before, without a mark of where it comes from: that is for whoever
    /// has the key of the operator.
    pub fn specified(&self, item: &DeployItemTemplate, before: &DeployItem) -> DeployItem {
        let mut after = before.clone();
        after.spec = DeployItemSpec {
            type_: item.type_.clone(),
            target: item.target.clone(),
            context: self.context.to_owned(),
            config: item.config.clone(),
            timeout: item.timeout.clone(),
            update_on_change_only: item.update_on_change_only,
            on_delete: item.on_delete.clone(),
            drift: item.drift.clone(),
        };
        let labels = after.metadata.labels.get_or_insert_default();
        labels.extend(item.labels.clone());
        labels.insert(label::MANAGED_BY.to_owned(), self.execution.to_string());
        set_name(&mut after.metadata, (label::ITEM_NAME, annotation::WHOLE_ITEM_NAME), &item.name);
        let target = item.target.as_ref().map_or(annotation::NO_TARGET_NAME, |target| target.name.as_str());
        let annotations = after.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::DEPENDS_ON.to_owned(), item.depends_on.join(","));
        annotations.insert(annotation::DEPLOYER_TYPE.to_owned(), item.type_.clone());
        annotations.insert(annotation::DEPLOYER_TARGET_NAME.to_owned(), target.to_owned());
        if let Some(cached) = self.cache_helm_charts {
            annotations.insert(annotation::CACHE_HELM_CHARTS.to_owned(), cached.to_owned());
        }
        annotations.remove(annotation::SIGNED_ORIGIN);
        after
    }
}

impl ExecutionReconciliation<'_> {
    /// Brings the objects of items to their templates: `present` has those that there are already. Where each is.
    pub(in crate::execution) async fn ensure(
        &self,
        items: impl Iterator<Item = (&DeployItemTemplate, Option<&Key>)>,
    ) -> Step<Vec<NamePair>> {
        let items: Vec<_> = items.collect();
        let rules = self.host.policies.of(&self.key.namespace)?;
        let mut origin = None;
        // Before any of them is made, also of those that external deployers work on.
        for (item, _) in &items {
            let of = PolicySubject::Item(&item.type_);
            let is_external = self.host.plugins.deployer(&item.type_, &self.key.namespace).is_none();
            if is_external && self.requires_approval() {
                let message = format!(
                    "item {} is of type {}, which an external deployer works on, and what that writes nobody can approve, as spec.approval of \
                     Installation {} requires; leave one of the two out",
                    item.name, item.type_, self.key.name
                );
                let failure = Failure::new("CreateDeployItem", "NotApprovable", message);
                return Err(Halt::Stall(failure.with_code(Code::ConfigurationProblem)));
            }
            // What an external deployer writes cannot be held back (C-49).
            let unapproved = is_external.then_some(PolicyRequest::Unapproved);
            let mut asked = [unapproved, Some(PolicyRequest::ItemType(&item.type_))].into_iter().flatten();
            let checked = asked.try_for_each(|request| rules.check(of, request));
            checked.map_err(|violation| refused(&violation))?;
            origin = SignedOrigin::of(self.host, &rules, of, &self.draft)?;
        }
        let (origin, at_once) = (origin.as_ref(), self.at_once(items.iter().filter_map(|(_, present)| *present)));
        let writes: Vec<_> = items.into_iter().map(|(item, present)| self.ensure_one(item, present, origin)).collect();
        stream::iter(writes).buffered(at_once).try_collect().await
    }

    /// Whether the Installation wants what its items write to be approved.
    fn requires_approval(&self) -> bool {
        let installation = self.host.stores.installations.get(&self.key);
        installation.is_some_and(|installation| installation.spec.approval == Some(Approval::Required))
    }

    async fn ensure_one(
        &self,
        item: &DeployItemTemplate,
        present: Option<&Key>,
        origin: Option<&SignedOrigin>,
    ) -> Step<NamePair> {
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let object_name = match present.and_then(|key| self.host.stores.deploy_items.get(key)) {
            Some(before) => {
                let after = self.updated(item, &before, origin);
                if after != *before {
                    let halt = |error: WriteError| error.halt("UpdateDeployItem");
                    let written = writer.update(&before, &after).await.map_err(halt)?;
                    if let Some(origin) = origin {
                        origin.mark_written(self.host, &writer, &after, written).await.map_err(halt)?;
                    }
                }
                before.name_any()
            }
            None => {
                let object = self.updated(item, &self.skeleton(item), origin);
                let halt = |error: WriteError| error.halt("CreateDeployItem");
                match (writer.create(&object).await, origin) {
                    (Ok(written), Some(origin)) => {
                        origin.mark_written(self.host, &writer, &object, written).await.map_err(halt)?;
                    }
                    (Ok(_), None) => {}
                    // This job made it before a crash: the name is that of this item in this job.
                    (Err(WriteError::AlreadyExists { .. }), None) => {}
                    // And may not have marked it, which the next try does, as it sees the object.
                    (Err(error), _) => return Err(halt(error)),
                }
                object.name_any()
            }
        };
        Ok(NamePair { spec_name: item.name.clone(), object_name: object_name.into() })
    }

    fn skeleton(&self, item: &DeployItemTemplate) -> DeployItem {
        let generate_name = name::deploy_item_prefix(&self.key.name, &item.name);
        let object_name = name::deploy_item(&self.key.name, uid_of(&self.draft), &item.name, &self.workflow.job);
        DeployItem {
            metadata: ObjectMeta {
                name: Some(object_name),
                generate_name: Some(generate_name),
                namespace: Some(self.key.namespace.to_string()),
                finalizers: Some(vec![FINALIZER.to_owned()]),
                owner_references: Some(vec![controller_reference(&self.draft)]),
                ..ObjectMeta::default()
            },
            ..DeployItem::default()
        }
    }

    /// The object as the spec wants it; the same object where nothing differs.
    fn updated(&self, item: &DeployItemTemplate, before: &DeployItem, origin: Option<&SignedOrigin>) -> DeployItem {
        let owner = ItemOwner {
            execution: &self.key.name,
            context: &self.draft.spec.context,
            cache_helm_charts: self.draft.annotation(annotation::CACHE_HELM_CHARTS),
        };
        let mut after = owner.specified(item, before);
        if let Some(origin) = origin {
            origin.mark(self.host, before, &mut after);
        }
        add_finalizer(&mut after);
        if after != *before {
            let now = self.host.now().0.to_string();
            after.metadata.annotations.get_or_insert_default().insert(annotation::RECONCILE_TIME.to_owned(), now);
        }
        after
    }

    /// Makes the objects of items that start now, as the spec wants them.
    pub(in crate::execution) async fn make(&mut self, names: &[&str], live: &ByItem<'_>) -> Step<Vec<Key>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let items = Arc::clone(&self.workflow.items);
        let wanted = names.iter().filter_map(|name| items.find(name));
        let present = |name: &str| live.get(name).map(|object| &object.key);
        let pairs = self.ensure(wanted.map(|item| (&item.template, present(&item.name)))).await?;
        let cache = self.draft.status.get_or_insert_default().deploy_item_cache.get_or_insert_default();
        let mut made = Vec::new();
        for pair in pairs {
            let key = Key::new(&self.key.namespace, &pair.object_name);
            if self.host.stores.deploy_items.version(&key).is_none() {
                // Made before a crash, and not seen yet.
                return Err(DEPLOY_ITEMS.wait(pair.object_name, Until::Exists));
            }
            made.push(key);
            cache.active_items.retain(|known| known.spec_name != pair.spec_name);
            cache.active_items.push(pair);
        }
        Ok(made)
    }

    /// Passes the job to deploy items: the trigger of their deployers (EXE-16). Where the status is written anyway, as the job comes to
    /// its first items, these get it with that (C-216), but those of external deployers, which wait for a write of their own.
    pub(in crate::execution) async fn trigger(&mut self, objects: Vec<Key>, first: ItemPhase) -> Step<()> {
        let token = self.draft.status.as_ref().map(|status| status.last_handled_trigger.clone()).unwrap_or_default();
        let trigger = JobTrigger { job: self.workflow.job.clone(), first, token, now: self.host.now() };
        let (host, mut alone, trigger) = (Arc::clone(self.host), objects, &trigger);
        let (store, writer) = (&host.stores.deploy_items, &host.writer(&host.stores.deploy_items));
        if self.passes_to_items {
            alone.retain(|key| {
                let object = store.get(key).filter(|object| host.deployer_of(object).is_some());
                !object.is_some_and(|object| self.handed_down.take(store, &object, trigger))
            });
        }
        // What gets the job by a write of its own gets it from one that has it.
        if !alone.is_empty() && host.stores.executions.has_deferred(&self.before) {
            self.write_answers().await?;
        }
        let write = |key: Key| async move {
            let Some(object) = store.get(&key) else { return Ok(()) };
            writer.update_status(&object, &object.triggered(trigger)).await.map(drop)
        };
        let at_once = self.at_once(alone.iter());
        stream::iter(alone.into_iter().map(write).collect::<Vec<_>>())
            .buffer_unordered(at_once)
            .try_for_each(|()| async { Ok(()) })
            .await
            .map_err(|error| error.halt("TriggerDeployItem"))
    }

    /// How many of these objects are written at the same time: large ones are whole one after another (C-289).
    fn at_once<'k>(&self, objects: impl Iterator<Item = &'k Key>) -> usize {
        let memory = |key| self.host.stores.deploy_items.memory(key);
        let all = objects.map(memory).fold(0, u64::saturating_add);
        if all > LARGE_BYTES { 1 } else { WRITES_AT_ONCE }
    }

    /// Deletes orphans: objects that no item of the spec stands for.
    pub(in crate::execution) async fn delete_orphans(&self, orphans: impl Iterator<Item = &Key>) -> Result<(), Halt> {
        for orphan in orphans.filter_map(|key| self.host.stores.deploy_items.get(key)) {
            let writer = self.host.writer(&self.host.stores.deploy_items);
            writer.delete(&orphan).await.map_err(|error| error.halt("DeleteOrphan"))?;
        }
        Ok(())
    }

    /// The delete call for those of these objects that have none yet.
    pub(in crate::execution) async fn delete_calls(&self, objects: Vec<Key>, without_uninstall: bool) -> Step<()> {
        let writer = self.host.writer(&self.host.stores.deploy_items);
        let writer = &writer;
        let delete = |key: Key| async move {
            let Some(object) = self.host.stores.deploy_items.get(&key) else { return Ok(()) };
            let mut current = Arc::clone(&object);
            if let Some(after) = before_deletion(object.as_ref(), without_uninstall) {
                current = writer.update(&object, &after).await?;
            }
            if current.is_deleting() { Ok(()) } else { writer.delete(&current).await }
        };
        let at_once = self.at_once(objects.iter());
        stream::iter(objects.into_iter().map(delete).collect::<Vec<_>>())
            .buffer_unordered(at_once)
            .try_for_each(|()| async { Ok(()) })
            .await
            .map_err(|error| error.halt("DeleteDeployItem"))
    }

    /// Triggers the deletion of objects. Those that are not uninstalled are released here: no deployer is asked (INS-80, C-24,
    /// C-28).
    pub(in crate::execution) async fn trigger_deletion(&mut self, objects: Vec<Key>) -> Step<()> {
        let mut triggered = Vec::new();
        for key in objects {
            let Some(object) = self.host.stores.deploy_items.get(&key) else { continue };
            if self.is_left(&object).await? {
                job::release(self.host, &self.host.stores.deploy_items, object.as_ref()).await?;
            } else {
                triggered.push(key);
            }
        }
        self.trigger(triggered, ItemPhase::INIT_DELETE).await
    }

    /// Whether an item goes without being uninstalled. Our own items see to a removed cluster themselves, at each
    /// reconciliation; external deployers know nothing of it.
    async fn is_left(&self, item: &DeployItem) -> Step<bool> {
        if item.is_kept() {
            return Ok(true);
        }
        if was_never_begun(self.host, item) {
            return Ok(true);
        }
        if !removed::may_skip(item) || self.host.deployer_of(item).is_some() {
            return Ok(false);
        }
        match removed::check(self.host, item).await? {
            Some(Ok(note)) => {
                removed::tell(self.host, item, &note);
                Ok(true)
            }
            // It is for its deployer to say what is missing.
            Some(Err(_)) | None => Ok(false),
        }
    }
}

/// The keys of objects.
pub(in crate::execution) fn keys_of(objects: &[ItemObject]) -> Vec<Key> {
    objects.iter().map(|object| object.key.clone()).collect()
}

/// Of objects those of named items.
pub(in crate::execution) fn named(objects: &[ItemObject], names: &[String]) -> Vec<Key> {
    let named = objects.iter().filter(|object| names.contains(&object.item));
    named.map(|object| object.key.clone()).collect()
}
