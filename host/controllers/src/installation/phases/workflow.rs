//! Sub-installations that gate expressions have a say in: what is wanted is made when it starts, what is not is deleted, and
//! the job is handed down in order (WF-02 … WF-05, C-21). Without gate expressions all of them get the job at once, and wait
//! for each other by themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use kube::ResourceExt;
use orangery_api::{
    annotation,
    duration::Duration,
    execution::FailurePolicy,
    installation::{Installation, InstallationStatus, SubinstallationStatus, SubinstallationWorkflow},
    job::{Job, NamePair},
    marks::Marks,
};
use orangery_blueprint::{Blueprint, edges_of_templates, gate, import::Imported, rendering::ExecutionKind};
use orangery_core::{
    dag::Direction,
    error::Failure,
    job::JobIds,
    name::Namespace,
    phase::{Phase as _, installation::Installation as Phase, item::Item as ItemPhase},
    plan::{
        execution::{ItemKind, ObjectState},
        installation::{self as plan, ChildState, RelatedObject},
    },
    step::{Halt, Step, Until, Verdict},
    workflow::WorkflowPolicy,
};
use orangery_reconcile::Key;
use orangery_render::Subinstallation;
use serde_json::{Map, Value, json};

use super::super::{
    dependencies::{GUARDED_TARGETS, SUBINSTALLATIONS},
    gather::{related::related, rendering::halt as rendering_halt},
    items::items,
    reconciliation::InstallationReconciliation,
};
use crate::{
    controller_context::ControllerContext,
    gates::WorkflowObject,
    job::failure_of,
    stores::StoredKind,
    workflow::{ByItem, ItemObject, RunsWorkflow, Starts, WorkflowState, ask_of_imports, no_results},
};

/// The templates of a job as a workflow; `None` where no gate expression has a say in it.
fn workflow(
    blueprint: &Blueprint,
    wanted: &[Subinstallation],
    imports: &Map<String, Value>,
    failure_policy: Option<FailurePolicy>,
) -> Option<SubinstallationWorkflow> {
    if wanted.iter().all(|sub| sub.gates.is_empty()) {
        return None;
    }
    let edges: BTreeMap<&str, Vec<&str>> =
        edges_of_templates(wanted.iter().map(|sub| &sub.template)).into_iter().collect();
    let targets: BTreeSet<String> = wanted.iter().flat_map(|sub| sub.gates.targets()).cloned().collect();
    let subinstallation = |Subinstallation { template, gates, .. }: &Subinstallation| SubinstallationStatus {
        name: template.name.clone(),
        depends_on: edges.get(template.name.as_str()).into_iter().flatten().map(|name| (*name).to_owned()).collect(),
        timeout: template.timeout.clone().map(Duration),
        asks: SubinstallationStatus::asks_of(gates),
        conditions: Vec::new(),
    };
    Some(SubinstallationWorkflow {
        failure_policy,
        imports: gate::read_imports(wanted.iter().map(|sub| &sub.gates), imports, &blueprint.imports),
        gate_targets: targets.into_iter().collect(),
        subinstallations: wanted.iter().map(subinstallation).collect(),
    })
}

/// The name of the template that a sub-installation was made from.
fn template_of(sub: &Installation) -> &str {
    sub.annotation(annotation::SUBINSTALLATION_NAME).unwrap_or("")
}

fn state(sub: &Installation, ids: JobIds) -> ObjectState {
    let phase = match ChildState::of(Phase::parse(sub.phase())) {
        ChildState::New => None,
        ChildState::Working => Some(ItemPhase::Progressing),
        ChildState::Succeeded => Some(ItemPhase::Succeeded),
        ChildState::Failed => Some(ItemPhase::Failed),
        ChildState::DeleteFailed => Some(ItemPhase::DeleteFailed),
    };
    ObjectState { object_name: sub.name_any().into(), ids, phase, failure: failure_of(sub.last_error()) }
}

impl InstallationReconciliation<'_> {
    /// Whether a sub-installation is made, and gets the job, when it starts and not before.
    pub(in crate::installation) fn is_late(&self, sub: &Installation) -> bool {
        self.is_made_late(template_of(sub))
    }

    /// The same of a template.
    pub(in crate::installation) fn is_made_late(&self, template: &str) -> bool {
        self.workflow.items.find(template).is_some_and(|item| item.late)
    }

    fn written_workflow(&self) -> Option<&SubinstallationWorkflow> {
        self.draft.status.as_ref()?.workflow.as_ref()
    }

    /// `Init`: what gate expressions ask is written down, and those that read imports alone are asked (C-21).
    pub(super) async fn begin_workflow(
        &mut self,
        blueprint: &Blueprint,
        wanted: &[Subinstallation],
        (values, imported): (&Map<String, Value>, &BTreeMap<String, Imported>),
    ) -> Step<()> {
        let failure_policy = self.draft.spec.failure_policy.or(blueprint.failure_policy.map(Into::into));
        let mut written = workflow(blueprint, wanted, values, failure_policy);
        self.workflow.clear_imports = None;
        if let Some(workflow) = &mut written {
            let clear = mem::take(&mut workflow.imports);
            workflow.imports = self.hidden(StoredKind::Installation, imported, clear.clone())?;
            self.workflow.clear_imports = Some(Ok(clear));
        }
        self.workflow.records.clear();
        self.workflow.items = Arc::new(items(written.as_ref(), &self.workflow.records, &self.shared.expressions));
        self.draft.status.get_or_insert_default().workflow = written;
        if !self.workflow.items.has_gates {
            return Ok(());
        }
        self.show_gate_targets().await?;
        GUARDED_TARGETS.guard(self.host, &self.draft).await?;
        let records = ask_of_imports(self).await?;
        self.workflow.items = Arc::new(items(self.written_workflow(), &records, &self.shared.expressions));
        self.workflow.records = records;
        Ok(())
    }

    /// Others see which Targets gate expressions look at before these do: a guard is kept for whom a status names (C-122).
    async fn show_gate_targets(&mut self) -> Step<()> {
        let seen: BTreeSet<String> = GUARDED_TARGETS.names(&self.before).into_iter().collect();
        let are_seen = GUARDED_TARGETS.names(&self.draft).iter().all(|target| seen.contains(target));
        if are_seen || !self.host.guards { Ok(()) } else { self.show().await }
    }

    /// The subobjects that the workflow knows nothing of: the Execution, and what is being deleted for another reason.
    fn others(&self) -> Vec<RelatedObject> {
        let mut subs = self.subinstallations();
        subs.retain(|sub| self.workflow.items.find(template_of(sub)).is_none());
        related(subs).into_iter().chain(self.related_execution()).collect()
    }

    /// Makes the objects of sub-installations that start, and hands the job to them.
    async fn make(&mut self, names: &[&str], live: &ByItem<'_>) -> Step<()> {
        if names.is_empty() {
            return Ok(());
        }
        let wanted = self.render_once_more().await?;
        for sub in wanted.iter().filter(|sub| names.contains(&sub.template.name.as_str())) {
            let spec_name = sub.template.name.clone();
            let object_name =
                self.ensure_subinstallation(sub, live.get(spec_name.as_str()).map(|object| &object.key)).await?;
            let key = Key { namespace: self.key.namespace.clone(), name: object_name.clone() };
            let Some(made) = self.host.stores.installations.get(&key) else {
                // Made before a crash, and not seen yet.
                return Err(SUBINSTALLATIONS.wait(object_name, Until::Exists));
            };
            let cache = self.draft.status.get_or_insert_default().sub_inst_cache.get_or_insert_default();
            cache.active_subs.retain(|known| known.spec_name != spec_name);
            cache.active_subs.push(NamePair { spec_name, object_name });
            self.trigger_subinstallation(&made, Phase::INIT).await?;
        }
        Ok(())
    }

    /// The templates of this job once more: nothing that they are made of may have changed since `Init`.
    async fn render_once_more(&mut self) -> Step<Vec<Subinstallation>> {
        let inputs = self.gather_inputs().await?;
        self.check_unchanged(&inputs.imports_hash())?;
        // The states are those that `Init` stored, and stay so, however often this is done.
        let (states, _) = self.read_states(&inputs.loaded.blueprint, &[ExecutionKind::Subinstallation]).await?;
        let mut rendering = self.rendering(&inputs, states);
        let bound = rendering.imports(&inputs.imported, &self.draft.spec.import_data_mappings).await;
        let values = bound.map_err(|error| rendering_halt(&error))?;
        let templates = rendering.subinstallations(&values, &inputs.imported).await;
        templates.map_err(|error| rendering_halt(&error))
    }
}

impl RunsWorkflow for InstallationReconciliation<'_> {
    type Template = ();
    const ITEM_KIND: ItemKind = ItemKind::Subinstallation;

    fn host(&self) -> &Arc<ControllerContext> {
        self.host
    }

    fn object(&self) -> WorkflowObject {
        WorkflowObject::Installation(Arc::clone(&self.before))
    }

    fn namespace(&self) -> &Namespace {
        &self.key.namespace
    }

    fn workflow(&self) -> &WorkflowState<()> {
        &self.workflow
    }

    fn workflow_mut(&mut self) -> &mut WorkflowState<()> {
        &mut self.workflow
    }

    fn policy(&self) -> WorkflowPolicy {
        let failure = self.written_workflow().and_then(|workflow| workflow.failure_policy).map(Into::into);
        WorkflowPolicy { failure: failure.unwrap_or_default(), max_parallel: None }
    }

    fn held_imports(&self) -> &BTreeMap<String, Value> {
        static NONE: BTreeMap<String, Value> = BTreeMap::new();
        self.written_workflow().map_or(&NONE, |workflow| &workflow.imports)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted()
    }

    fn objects(&self) -> Vec<ItemObject> {
        let outline = |sub: Arc<Installation>| ItemObject {
            key: Key::of(sub.as_ref()),
            item: template_of(&sub).to_owned(),
            is_deleting: sub.is_deleting(),
            state: state(&sub, self.ids_of_subinstallation(&sub)),
            is_kept: false,
            depends_on: String::new(),
        };
        self.subinstallations().into_iter().map(outline).collect()
    }

    fn has_begun(&self, object: &ObjectState) -> bool {
        object.ids.job.as_ref() == Some(&self.workflow.job)
    }

    fn placed(
        direction: Direction,
        late: bool,
        live: Option<ObjectState>,
        going: Option<ObjectState>,
    ) -> (Option<ObjectState>, Option<ObjectState>) {
        if late && direction == Direction::Forward { (live, going) } else { (live.or(going), None) }
    }

    async fn results(&self, sub: &ItemObject) -> Step<Value> {
        let Some(sub) = self.host.stores.installations.get(&sub.key) else { return Ok(no_results()) };
        let exports = self.exported_by(&sub).await?;
        // What its own gate expressions read stays with it.
        let status = sub.status.clone().map(|status| InstallationStatus { workflow: None, ..status });
        Ok(json!({"exports": exports, "status": status}))
    }

    /// What is made when it starts and is being deleted for another reason than this job's gate expressions, as by a user,
    /// goes first.
    async fn clear_leftovers(&mut self, leaving: &BTreeSet<String>) -> Step<Verdict> {
        let mut subs = self.subinstallations();
        subs.retain(|sub| sub.is_deleting() && self.is_late(sub) && !leaving.contains(template_of(sub)));
        let (trigger, outcome) = plan::orphans(&related(subs.iter()), &self.workflow.job);
        for sub in subs.into_iter().filter(|sub| trigger.contains(&sub.name_any())) {
            self.trigger_leaving(&sub).await?;
        }
        outcome
    }

    async fn start(&mut self, starts: Starts<'_>) -> Step<Option<Failure>> {
        for sub in starts.early {
            if let Some(sub) = self.host.stores.installations.get(&sub.key) {
                self.trigger_subinstallation(&sub, Phase::INIT).await?;
            }
        }
        match self.make(&starts.late, starts.live).await {
            Ok(()) => Ok(None),
            Err(Halt::Stall(failure)) => Ok(Some(failure)),
            Err(halt @ (Halt::Wait(_) | Halt::Retry(_))) => Err(halt),
        }
    }

    async fn delete(&mut self, names: &[String]) -> Step<()> {
        let is_named = |sub: &Arc<Installation>| names.iter().any(|name| name == template_of(sub));
        for sub in self.subinstallations().into_iter().filter(|sub| is_named(sub)) {
            self.delete_orphan(&sub.name_any()).await?;
        }
        for sub in self.subinstallations().into_iter().filter(|sub| is_named(sub) && sub.is_deleting()) {
            self.trigger_subinstallation(&sub, Phase::INIT_DELETE).await?;
        }
        Ok(())
    }

    async fn remember(&mut self) -> Step<()> {
        self.show().await
    }

    /// The job goes to what may be deleted now, and to what is no item.
    async fn hand_down_deletion(&mut self, names: &[String]) -> Step<()> {
        for sub in self.subinstallations() {
            let template = template_of(&sub);
            if names.iter().any(|name| name == template) || self.workflow.items.find(template).is_none() {
                self.trigger_subinstallation(&sub, Phase::INIT_DELETE).await?;
            }
        }
        self.delete_by_execution().await
    }

    fn beside(&self, direction: Direction) -> Step<Verdict> {
        match direction {
            Direction::Forward => plan::progressing(&self.others(), &self.missing_execution(), &self.workflow.job),
            Direction::Backward => plan::deleting(&self.others(), &self.workflow.job),
        }
    }
}
