//! The phases of an Execution: each one gathers, has the core decide, and applies.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_api::{
    annotation,
    deploy_item::DeployItem,
    execution::{DeployItemCache, DeployItemTemplate},
    job::NamePair,
    marks::Marks,
    reference::ObjectReference,
};
use orangery_blueprint::record::execution_exports;
use orangery_core::{
    dag::Direction,
    error::Failure,
    job::interrupted,
    name::Namespace,
    phase::{Phase as _, execution::Execution as Phase, item::Item as ItemPhase},
    plan::execution::{self as plan, ItemKind, ItemState, ObjectState},
    step::{Halt, Step, Verdict},
    workflow::{GateKind, WorkflowPolicy},
};
use orangery_reconcile::Key;
use serde_json::{Value, json};

use super::{
    apply::items::{keys_of, named},
    gather::{by_item, item_name, item_object, states_of_objects},
    reconciliation::ExecutionReconciliation,
};
use crate::{
    controller_context::ControllerContext,
    gates::WorkflowObject,
    job,
    never_begun::was_never_begun,
    object::owner_reference,
    record::{self, RecordOwner},
    tree::check_room_for_items,
    workflow::{ItemObject, RunsWorkflow, Starts, WorkflowState, check_gates, deleting, no_results, progressing},
};

impl job::Run for ExecutionReconciliation<'_> {
    type Phase = Phase;

    async fn phase(&mut self, phase: Phase) -> Step<Verdict> {
        let result = match phase {
            Phase::Init | Phase::InitDelete if self.interrupted() => Ok(self.interrupted_in(phase)),
            Phase::Init => self.init().await,
            Phase::Progressing => self.progressing().await,
            Phase::Completing => self.completing().await,
            Phase::InitDelete => self.init_delete().await,
            Phase::Deleting => self.deleting().await,
            Phase::Succeeded | Phase::Failed | Phase::DeleteFailed => Ok(Verdict::Done),
        };
        let end = || if phase.is_deletion() { None } else { self.end() };
        job::beside(&*self, phase, result, end).await
    }
}

impl ExecutionReconciliation<'_> {
    /// What becomes of a job that is interrupted in its first phase. A phase passed is not written, so it may have come to its items
    /// all the same: then they say how it ends (C-32, INS-74).
    fn interrupted_in(&mut self, phase: Phase) -> Verdict {
        if self.has_come_to_items(phase) { Verdict::Done } else { Verdict::Failed(interrupted()) }
    }

    /// Whether the job has ended at each item that is there when its first phase has passed.
    fn has_come_to_items(&mut self, phase: Phase) -> bool {
        let mut ended = self.item_objects();
        if phase.is_deletion() {
            let has_failed = |object: &ItemObject| {
                object.state.ids.has_finished(&self.workflow.job) && object.state.phase == Some(ItemPhase::DeleteFailed)
            };
            return !ended.is_empty() && ended.iter().all(has_failed);
        }
        if self.load_items().is_err() {
            return false;
        }
        ended.retain(|object| !object.is_deleting && object.state.ids.has_finished(&self.workflow.job));
        let has_ended = |name: &str| ended.iter().any(|object| object.item == name);
        let mut early = self.workflow.items.list.iter().filter(|item| !item.late);
        !ended.is_empty() && early.all(|item| has_ended(&item.name))
    }

    /// `Init`: every definition has its object, the others are orphans and are deleted (EXE-11 … EXE-15). Items that
    /// gate expressions decide about are left as they are: `Progressing` makes what is wanted, and deletes what is not.
    async fn init(&mut self) -> Step<Verdict> {
        // Gather.
        self.load_items()?;
        self.check_room()?;
        check_gates(self)?;
        self.guard_targets().await?;
        let (mut retyped, mut objects) = (Vec::new(), Vec::new());
        for object in self.deploy_items() {
            let of = if self.is_retyped(&object) { &mut retyped } else { &mut objects };
            of.push(item_object(&object));
        }
        let keys: BTreeMap<&str, &Key> = objects.iter().map(|object| (object.key.name.as_str(), &object.key)).collect();
        let by_name = |name: &String| keys.get(name.as_str()).copied();
        // Decide.
        let items = &self.workflow.items.list;
        let plan = plan::reconcile(items.iter().map(|item| item.name.as_str()), &by_item(&objects));
        // Apply.
        let now = items.iter().filter(|item| !item.late);
        let active_items =
            self.ensure(now.map(|item| (&item.template, plan.update.get(&item.name).and_then(by_name)))).await?;
        let retyped = retyped.iter().map(|object| &object.key);
        self.delete_orphans(plan.orphans.iter().filter_map(by_name).chain(retyped)).await?;
        let orphaned_items = self.leaving_objects().iter().map(|object| object.key.name.to_string()).collect();
        self.draft.status.get_or_insert_default().deploy_item_cache =
            Some(DeployItemCache { active_items, orphaned_items });
        self.passes_to_items = true;
        Ok(Verdict::Done)
    }

    /// Whether the tree has room for the items that are not there yet (C-197).
    fn check_room(&self) -> Step<()> {
        let items = self.workflow.items.list.len();
        if items <= self.deploy_items().len() {
            return Ok(());
        }
        check_room_for_items(&self.host.stores, &self.key, items).map_err(Halt::Stall)
    }

    /// Whether an object is of another type than its item is now, and nothing is there to be uninstalled: the type of an object never
    /// changes, so another one is made (C-159).
    fn is_retyped(&self, object: &DeployItem) -> bool {
        let item = self.workflow.items.find(item_name(object));
        let is_of_another = item.is_some_and(|item| !item.late && item.template.type_ != object.spec.type_);
        is_of_another && !object.is_deleting() && was_never_begun(self.host, object)
    }

    /// `Progressing`: orphans first, in reverse order (C-19); then the items in theirs.
    async fn progressing(&mut self) -> Step<Verdict> {
        self.load_items()?;
        self.note_made();
        progressing(self).await
    }

    /// Objects that this job has made late and handed its id, and that no status has the names of: the operator was lost in between
    /// (WF-54). They are noted in the order of the spec, in which they start.
    fn note_made(&mut self) {
        let objects = self.item_objects();
        let live: BTreeMap<&str, &ItemObject> = objects
            .iter()
            .rev()
            .filter(|object| !object.is_deleting && object.state.ids.job.as_ref() == Some(&self.workflow.job))
            .map(|object| (object.item.as_str(), object))
            .collect();
        let cache = self.draft.status.as_ref().and_then(|status| status.deploy_item_cache.as_ref());
        let noted: BTreeSet<&str> =
            cache.into_iter().flat_map(|cache| &cache.active_items).map(|pair| pair.spec_name.as_str()).collect();
        let late = self.workflow.items.list.iter().filter(|item| item.late && !noted.contains(item.name.as_str()));
        let lost: Vec<NamePair> = late
            .filter_map(|item| Some((item, live.get(item.name.as_str())?)))
            .map(|(item, object)| NamePair { spec_name: item.name.clone(), object_name: object.key.name.clone() })
            .collect();
        if !lost.is_empty() {
            let cache = self.draft.status.get_or_insert_default().deploy_item_cache.get_or_insert_default();
            cache.active_items.extend(lost);
        }
    }

    /// `Completing`: the exports of all items become one DataObject (EXE-31).
    async fn completing(&mut self) -> Step<Verdict> {
        let record = execution_exports(&self.key.name, self.exports().await?);
        let name = record.name.clone();
        let (reference, imported) = (owner_reference(&self.draft), &BTreeMap::new());
        let owner = RecordOwner { namespace: &self.key.namespace, reference, imported };
        record::write(self.host, &owner, &[record]).await?;
        let status = self.draft.status.get_or_insert_default();
        status.export_ref = Some(ObjectReference { name, namespace: self.key.namespace.clone() });
        if let Some(cache) = &mut status.deploy_item_cache {
            cache.orphaned_items.clear();
        }
        Ok(Verdict::Done)
    }

    /// `InitDelete`: the delete call for all items; their finalizers keep them (EXE-42, EXE-43, INS-79).
    async fn init_delete(&mut self) -> Step<Verdict> {
        let without_uninstall = self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL);
        self.delete_calls(keys_of(&self.item_objects()), without_uninstall).await?;
        Ok(Verdict::Done)
    }

    /// `Deleting`: items are triggered in reverse order until none is left.
    async fn deleting(&mut self) -> Step<Verdict> {
        // Without a spec that can be read there are no gate expressions; what was made goes all the same (C-28).
        if self.load_items().is_err() || self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL) {
            self.workflow.items = Arc::default();
        }
        deleting(self).await
    }

    /// What a deletion needs to know: the objects there are, and items without one that have to be gone in every respect.
    fn states_of_deletion<'s>(&'s self, objects: &'s [ItemObject], of_spec: Vec<ItemState<'s>>) -> Vec<ItemState<'s>> {
        let mut states = states_of_objects(objects);
        let there: BTreeSet<&str> = states.iter().map(|state| state.name).collect();
        let asks = |item: &&ItemState<'_>| {
            let of_spec = self.workflow.items.find(item.name);
            let removed = of_spec.is_some_and(|item| self.is_cluster_removed(&item.template));
            of_spec.is_some_and(|item| item.gates.get(GateKind::Deleted).is_some()) && !item.keep && !removed
        };
        let gone: Vec<ItemState<'_>> =
            of_spec.into_iter().filter(|item| asks(&item) && !there.contains(item.name)).collect();
        states.extend(gone.into_iter().map(|item| ItemState { object: None, going: None, ..item }));
        states
    }
}

impl RunsWorkflow for ExecutionReconciliation<'_> {
    type Template = DeployItemTemplate;
    const ITEM_KIND: ItemKind = ItemKind::DeployItem;

    fn host(&self) -> &Arc<ControllerContext> {
        self.host
    }

    fn object(&self) -> WorkflowObject {
        WorkflowObject::Execution(Arc::clone(&self.before))
    }

    fn namespace(&self) -> &Namespace {
        &self.key.namespace
    }

    fn workflow(&self) -> &WorkflowState<DeployItemTemplate> {
        &self.workflow
    }

    fn workflow_mut(&mut self) -> &mut WorkflowState<DeployItemTemplate> {
        &mut self.workflow
    }

    fn policy(&self) -> WorkflowPolicy {
        self.draft.spec.policy()
    }

    fn held_imports(&self) -> &BTreeMap<String, Value> {
        &self.draft.spec.imports
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted()
    }

    fn objects(&self) -> Vec<ItemObject> {
        self.item_objects()
    }

    fn keeps(item: &DeployItemTemplate) -> bool {
        item.on_delete.as_ref().is_some_and(|on_delete| on_delete.keep)
    }

    /// An item that was made is for its deployer to end.
    fn has_begun(&self, _: &ObjectState) -> bool {
        true
    }

    fn placed(
        _: Direction,
        late: bool,
        live: Option<ObjectState>,
        going: Option<ObjectState>,
    ) -> (Option<ObjectState>, Option<ObjectState>) {
        (live, going.filter(|_| late))
    }

    /// Forward, an item that the spec lost counts as long as it works for this job (INS-08).
    fn completed<'s>(
        &'s self,
        direction: Direction,
        objects: &'s [ItemObject],
        mut of_spec: Vec<ItemState<'s>>,
    ) -> Vec<ItemState<'s>> {
        match direction {
            Direction::Forward => {
                let live = objects.iter().rev().filter(|object| !object.is_deleting);
                let live: BTreeMap<&str, &ItemObject> = live.map(|object| (object.item.as_str(), object)).collect();
                let lost = live.into_iter().filter(|(name, _)| self.workflow.items.find(name).is_none());
                let lost = lost.map(|(name, object)| ItemState::new(name, Vec::new(), Some(object.state.clone())));
                of_spec.extend(lost.filter(|item| item.is_running(&self.workflow.job)));
                of_spec
            }
            Direction::Backward => self.states_of_deletion(objects, of_spec),
        }
    }

    async fn results(&self, object: &ItemObject) -> Step<Value> {
        let Some(object) = self.host.stores.deploy_items.get(&object.key) else { return Ok(no_results()) };
        let exports = self.exports_of(&object).await?;
        Ok(json!({"exports": exports, "status": object.status}))
    }

    async fn clear_leftovers(&mut self, leaving: &BTreeSet<String>) -> Step<Verdict> {
        let mut orphans = self.leaving_objects();
        orphans.retain(|object| !leaving.contains(&object.item));
        if orphans.is_empty() {
            return Ok(Verdict::Done);
        }
        let plan::ExecutionPlan { trigger, outcome, .. } =
            plan::deleting(&states_of_objects(&orphans), &self.workflow.job, self.policy());
        self.trigger_deletion(named(&orphans, &trigger)).await?;
        outcome
    }

    async fn start(&mut self, starts: Starts<'_>) -> Step<Option<Failure>> {
        let made = self.make(&starts.late, starts.live).await?;
        let early = starts.early.into_iter().map(|object| object.key.clone());
        self.trigger(early.chain(made).collect(), ItemPhase::INIT).await?;
        Ok(None)
    }

    async fn delete(&mut self, names: &[String]) -> Step<()> {
        if names.is_empty() {
            return Ok(());
        }
        self.delete_calls(named(&self.item_objects(), names), false).await?;
        let leaving = self.leaving_objects();
        self.trigger_deletion(named(&leaving, names)).await
    }

    async fn remember(&mut self) -> Step<()> {
        self.write_answers().await
    }

    async fn hand_down_deletion(&mut self, names: &[String]) -> Step<()> {
        self.trigger_deletion(named(&self.item_objects(), names)).await
    }
}
