//! Sub-installations that conditions have a say in: what is wanted is made when it starts, what is not goes, and the job is
//! handed down in order (WF-02 … WF-05, C-21). Without conditions all of them get the job at once, and wait for each other by
//! themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use kube::ResourceExt;
use orangery_api::{
    annotation,
    duration::Duration,
    execution::{FailurePolicy, Records},
    installation::{Installation, InstallationStatus, SubinstallationStatus, SubinstallationWorkflow},
    job::{Job, NamePair},
    marks::Marks,
};
use orangery_blueprint::{
    Blueprint, edges_of_templates,
    gate::{self, Condition, Record},
    import,
    rendering::ExecutionKind,
};
use orangery_core::{
    dag::Direction,
    job::{JobIds, interrupted},
    phase::{Phase as _, installation::Installation as Phase, item::Item as ItemPhase},
    plan::{
        execution::{self as plan, ItemKind, ItemState, ObjectState},
        installation::{self, Peer, Standing},
    },
    step::{Halt, Step, Until, Verdict, together},
    workflow::{Answer, Point, Policy},
};
use orangery_reconcile::Key;
use orangery_render::Subinstallation;
use serde_json::{Map, Value, json};

use super::{Run, children::peer, render::halt as rendering_halt};
use crate::{
    conditions::{Asked, Expressions, Inquiry, Item, Items, Runner},
    deploy_item::{USUAL_TIMEOUT, limit_of},
    guard,
    job::failure_of,
};

/// The sub-installations of a job, with what their conditions answered so far.
pub(super) fn items(workflow: Option<&SubinstallationWorkflow>, records: &Records, with: &Expressions) -> Items<()> {
    let of = workflow.map(|workflow| workflow.subinstallations.as_slice()).unwrap_or_default();
    let item = |of: &SubinstallationStatus| Item {
        template: (),
        name: of.name.clone(),
        depends_on: of.depends_on.clone(),
        target: None,
        limit: limit_of(of.timeout.as_ref()).unwrap_or(Some(USUAL_TIMEOUT)),
        conditions: of.asked(),
        late: false,
    };
    let list: Vec<Item<()>> = of.iter().map(item).collect();
    let waited_for = list.iter().filter(|item| item.conditions.get(Point::Ready).is_some());
    let waited_for: BTreeSet<String> = waited_for.map(|item| item.name.clone()).collect();
    Items::of(list, |item| {
        let met = |point, condition: &Condition| {
            let record: Option<&Record> = records.get(&item.name).and_then(|records| records.get(&point));
            with.reads_imports_alone(condition) && record.is_some_and(|record| record.answered.answer == Answer::Met)
        };
        let is_open = |point| item.conditions.get(point).is_some_and(|condition| !met(point, condition));
        is_open(Point::Activate)
            || is_open(Point::When)
            || item.depends_on.iter().any(|before| waited_for.contains(before))
    })
}

/// The templates of a job as a workflow; `None` where no condition has a say in it.
fn workflow(
    blueprint: &Blueprint,
    wanted: &[Subinstallation],
    imports: &Map<String, Value>,
    failure_policy: Option<FailurePolicy>,
) -> Option<SubinstallationWorkflow> {
    if wanted.iter().all(|sub| sub.conditions.is_empty()) {
        return None;
    }
    let edges: BTreeMap<&str, Vec<&str>> =
        edges_of_templates(wanted.iter().map(|sub| &sub.template)).into_iter().collect();
    let targets: BTreeSet<String> = wanted.iter().flat_map(|sub| sub.conditions.targets()).cloned().collect();
    let subinstallation = |Subinstallation { template, conditions, .. }: &Subinstallation| SubinstallationStatus {
        name: template.name.clone(),
        depends_on: edges.get(template.name.as_str()).into_iter().flatten().map(|name| (*name).to_owned()).collect(),
        timeout: template.timeout.clone().map(Duration),
        asks: SubinstallationStatus::asks_of(conditions),
        conditions: Vec::new(),
    };
    Some(SubinstallationWorkflow {
        failure_policy,
        imports: gate::read_imports(wanted.iter().map(|sub| &sub.conditions), imports, &blueprint.imports),
        condition_targets: targets.into_iter().collect(),
        subinstallations: wanted.iter().map(subinstallation).collect(),
    })
}

/// The name of the template that a sub-installation was made from.
fn template_of(sub: &Installation) -> &str {
    sub.annotation(annotation::SUBINSTALLATION_NAME).unwrap_or_default()
}

fn state(sub: &Installation) -> ObjectState {
    let phase = match Standing::of(Phase::parse(sub.phase())) {
        Standing::New => None,
        Standing::Working => Some(ItemPhase::Progressing),
        Standing::Succeeded => Some(ItemPhase::Succeeded),
        Standing::Failed => Some(ItemPhase::Failed),
        Standing::DeleteFailed => Some(ItemPhase::DeleteFailed),
    };
    ObjectState {
        object_name: sub.name_any(),
        ids: JobIds::new(sub.job_id(), sub.job_id_finished()),
        phase,
        failure: failure_of(sub.last_error()),
    }
}

/// An Installation in one look.
struct Look<'a> {
    run: &'a Run<'a>,
    direction: Direction,
    subs: &'a [Arc<Installation>],
}

impl Runner for Look<'_> {
    fn asks(&self, records: &Records, asked: &Asked) -> Vec<(String, Point)> {
        let states = self.run.states(self.subs, self.direction, (records, asked));
        let asks = plan::asks(&states, &self.run.job, self.direction, self.run.policy());
        asks.into_iter().map(|(name, point)| (name.to_owned(), point)).collect()
    }

    async fn results(&self, item: &str) -> Step<Value> {
        let sub = self.subs.iter().find(|sub| template_of(sub) == item && !sub.is_deleting());
        let Some(sub) = sub else { return Ok(json!({"exports": null, "status": null})) };
        let (data, _) = self.run.context_values();
        let exports = sub.spec.exports.data.iter();
        let exports: Map<String, Value> =
            exports.filter_map(|export| Some((export.name.clone(), data.get(&export.data_ref)?.clone()))).collect();
        // What its own conditions read stays with it.
        let status = sub.status.clone().map(|status| InstallationStatus { workflow: None, ..status });
        Ok(json!({"exports": exports, "status": status}))
    }
}

impl Run<'_> {
    /// Whether conditions have a say in the sub-installations.
    pub(super) fn is_conditional(&self) -> bool {
        self.items.conditional
    }

    /// Whether the deletion has to wait for more than objects that are gone.
    pub(super) fn is_deletion_conditional(&self) -> bool {
        let asks = self.items.list.iter().any(|item| item.conditions.get(Point::Deleted).is_some());
        asks && !self.draft.flag(annotation::DELETE_WITHOUT_UNINSTALL)
    }

    /// Whether a sub-installation is made, and gets the job, when it starts and not before.
    pub(super) fn is_late(&self, sub: &Installation) -> bool {
        self.is_made_late(template_of(sub))
    }

    /// The same of a template.
    pub(super) fn is_made_late(&self, template: &str) -> bool {
        self.items.find(template).is_some_and(|item| item.late)
    }

    fn policy(&self) -> Policy {
        let failure = self.workflow().and_then(|workflow| workflow.failure_policy).map(Into::into).unwrap_or_default();
        Policy { failure, max_parallel: None }
    }

    fn inquiry(&self) -> Inquiry<'_, ()> {
        static NONE: BTreeMap<String, Value> = BTreeMap::new();
        Inquiry {
            host: self.host,
            expressions: self.expressions,
            clusters: &self.clusters,
            kind: ItemKind::Subinstallation,
            items: &self.items,
            imports: self.workflow().map_or(&NONE, |workflow| &workflow.imports),
            interrupted: self.is_interrupted(),
        }
    }

    fn workflow(&self) -> Option<&SubinstallationWorkflow> {
        self.draft.status.as_ref()?.workflow.as_ref()
    }

    /// `Init`: what conditions ask is written down, and those that read imports alone are asked (C-21).
    pub(super) async fn begin_workflow(
        &mut self,
        blueprint: &Blueprint,
        wanted: &[Subinstallation],
        values: &Map<String, Value>,
    ) -> Step<()> {
        let failure_policy = self.draft.spec.failure_policy.or(blueprint.failure_policy.map(Into::into));
        let workflow = workflow(blueprint, wanted, values, failure_policy);
        self.records.clear();
        self.items = Arc::new(items(workflow.as_ref(), &self.records, self.expressions));
        self.draft.status.get_or_insert_default().workflow = workflow;
        if !self.is_conditional() {
            return Ok(());
        }
        let targets = guard::looked_at_by_installation(&self.draft);
        guard::before_asking(self.host, &self.namespace(), &targets).await?;
        let (mut records, mut asked) = (Records::new(), Asked::default());
        let look = Look { run: self, direction: Direction::Forward, subs: &[] };
        self.inquiry().ask_of_imports(&look, &mut records, &mut asked).await;
        let items = items(self.workflow(), &records, self.expressions);
        (self.items, self.records) = (Arc::new(items), records);
        Ok(())
    }

    /// The answers of the last job that are others now.
    pub(super) async fn changed(&self) -> Step<Vec<String>> {
        let subs = self.subinstallations();
        let look = Look { run: self, direction: Direction::Forward, subs: &subs };
        self.inquiry().changed(&look, &self.records).await
    }

    /// Asks what holds sub-installations up.
    async fn ask_all(&mut self, direction: Direction) -> Asked {
        let mut records = mem::take(&mut self.records);
        let subs = self.subinstallations();
        let look = Look { run: self, direction, subs: &subs };
        let asked = self.inquiry().ask_all(&look, &mut records, direction).await;
        self.records = records;
        self.left = asked.left;
        asked
    }

    /// What the plan needs to know of all sub-installations.
    fn states<'s>(
        &'s self,
        subs: &'s [Arc<Installation>],
        direction: Direction,
        (records, asked): (&Records, &Asked),
    ) -> Vec<ItemState<'s>> {
        let named: BTreeMap<(bool, &str), &Arc<Installation>> =
            subs.iter().rev().map(|sub| ((sub.is_deleting(), template_of(sub)), sub)).collect();
        let none = BTreeMap::new();
        let of_items = self.items.list.iter().map(|item| {
            let found = |deleting| named.get(&(deleting, item.name.as_str())).map(|sub| state(sub));
            let (live, going) = (found(false), found(true));
            let triggered = live.as_ref().or(going.as_ref()).is_some_and(|sub| sub.ids.job.as_ref() == Some(&self.job));
            let stopped = item.late && !triggered && self.is_interrupted();
            let interrupted = stopped.then(|| (Point::When, interrupted()));
            let follows = item.late && direction == Direction::Forward;
            let (object, going) = if follows { (live, going) } else { (live.or(going), None) };
            ItemState {
                kind: ItemKind::Subinstallation,
                going,
                late: item.late,
                answers: gate::answers(&item.conditions, records.get(&item.name).unwrap_or(&none)),
                given_up: asked.given_up.get(&item.name).cloned().or(interrupted),
                ..ItemState::new(&item.name, item.depends_on(), object)
            }
        });
        of_items.collect()
    }

    /// The subobjects that the workflow knows nothing of: the Execution, and what is being deleted for another reason.
    fn others(&self) -> Vec<Peer> {
        let mut subs = self.subinstallations();
        subs.retain(|sub| self.items.find(template_of(sub)).is_none());
        subs.iter().map(|sub| peer(sub)).chain(self.execution_peer()).collect()
    }

    /// `Progressing`, where conditions have a say.
    pub(super) async fn progressing_by_conditions(&mut self) -> Step<Verdict> {
        let mut asked = self.ask_all(Direction::Forward).await;
        let outcome = self.progress(&mut asked).await;
        asked.with(outcome)
    }

    async fn progress(&mut self, asked: &mut Asked) -> Step<Verdict> {
        match self.clear_away(asked).await? {
            Verdict::Done => {}
            failed @ Verdict::Failed(_) => return Ok(failed),
        }
        let subs = self.subinstallations();
        let states = self.states(&subs, Direction::Forward, (&self.records, asked));
        let plan::Plan { trigger, delete, mut outcome } = plan::progressing(&states, &self.job, self.policy());
        drop(states);
        let live = subs.iter().filter(|sub| !sub.is_deleting());
        let live: BTreeMap<&str, &Arc<Installation>> = live.map(|sub| (template_of(sub), sub)).collect();
        let (late, early): (Vec<&String>, Vec<&String>) = trigger.iter().partition(|name| self.is_made_late(name));
        for sub in early.into_iter().filter_map(|name| live.get(name.as_str())) {
            self.trigger_subinstallation(sub, Phase::INIT).await?;
        }
        match self.make(&late, &live).await {
            // Nothing mends that in this job: what could not be made has failed, and the job ends when nothing works any more.
            Err(Halt::Stall(failure)) => {
                let begun: Vec<Arc<Installation>> = self.subinstallations();
                let has_begun = |name: &&String| {
                    begun.iter().any(|sub| sub.job_id() == self.job && template_of(sub) == name.as_str())
                };
                for name in late.into_iter().filter(|name| !has_begun(name)) {
                    asked.given_up.insert(name.clone(), (Point::When, failure.clone()));
                }
                let states = self.states(&subs, Direction::Forward, (&self.records, asked));
                outcome = plan::progressing(&states, &self.job, self.policy()).outcome;
            }
            made => made?,
        }
        self.take_away(&delete).await?;
        let others = installation::progressing(&self.others(), &self.missing_execution(), &self.job);
        together([outcome, others])
    }

    /// What is made when it starts and is being deleted for another reason than this job's conditions, as by a user, goes first.
    async fn clear_away(&self, asked: &Asked) -> Step<Verdict> {
        let mut subs = self.subinstallations();
        let leaving = plan::leaving(&self.states(&subs, Direction::Forward, (&self.records, asked)), &self.job);
        subs.retain(|sub| sub.is_deleting() && self.is_late(sub) && !leaving.contains(template_of(sub)));
        let peers: Vec<Peer> = subs.iter().map(|sub| peer(sub)).collect();
        let (trigger, outcome) = installation::orphans(&peers, &self.job);
        for sub in subs.iter().filter(|sub| trigger.contains(&sub.name_any())) {
            self.trigger_subinstallation(sub, Phase::INIT_DELETE).await?;
        }
        outcome
    }

    /// Makes the objects of sub-installations that start, and hands the job to them.
    async fn make(&mut self, names: &[&String], live: &BTreeMap<&str, &Arc<Installation>>) -> Step<()> {
        if names.is_empty() {
            return Ok(());
        }
        let wanted = self.render_again().await?;
        for sub in wanted.iter().filter(|sub| names.contains(&&sub.template.name)) {
            let spec_name = sub.template.name.clone();
            let object_name = self.ensure_subinstallation(sub, live.get(spec_name.as_str()).copied()).await?;
            let key = Key { namespace: self.namespace(), name: object_name.clone() };
            let Some(made) = self.host.stores.installations.get(&key) else {
                // Made before a crash, and not seen yet.
                return Err(Halt::wait("Installation", object_name, Until::Exists));
            };
            let cache = self.draft.status.get_or_insert_default().sub_inst_cache.get_or_insert_default();
            cache.active_subs.retain(|known| known.spec_name != spec_name);
            cache.active_subs.push(NamePair { spec_name, object_name });
            self.trigger_subinstallation(&made, Phase::INIT).await?;
        }
        Ok(())
    }

    /// The templates of this job once more: nothing that they are made of may have changed since `Init`.
    async fn render_again(&mut self) -> Step<Vec<Subinstallation>> {
        let loaded = self.blueprints.load(self.host, &self.draft, &self.job).await?;
        let imported = self.read_imports().await?;
        self.check_unchanged(&import::imports_hash(&imported))?;
        let names = self.names();
        // The states are those that `Init` stored, and stay so, however often this is done.
        let (states, _) = self.read_states(&loaded.blueprint, &[ExecutionKind::Subinstallation]).await?;
        let mut rendering = self.rendering(&loaded, &names, states);
        let bound = rendering.imports(&imported, &self.draft.spec.import_data_mappings).await;
        let values = bound.map_err(|error| rendering_halt(&error))?;
        let templates = rendering.subinstallations(&values, &imported).await;
        templates.map_err(|error| rendering_halt(&error))
    }

    /// Deletes what conditions do not want (WF-20, WF-21): the workflow says in which order.
    async fn take_away(&self, names: &[String]) -> Step<()> {
        let is_named = |sub: &Arc<Installation>| names.iter().any(|name| name == template_of(sub));
        for sub in self.subinstallations().iter().filter(|sub| is_named(sub)) {
            self.delete_orphan(&sub.name_any()).await?;
        }
        for sub in self.subinstallations().iter().filter(|sub| is_named(sub) && sub.is_deleting()) {
            self.trigger_subinstallation(sub, Phase::INIT_DELETE).await?;
        }
        Ok(())
    }

    /// `Deleting`, where a condition says when something is gone: the job goes to what may be deleted now (WF-04, WF-28).
    pub(super) async fn deleting_by_conditions(&mut self) -> Step<Verdict> {
        let asked = self.ask_all(Direction::Backward).await;
        let subs = self.subinstallations();
        let states = self.states(&subs, Direction::Backward, (&self.records, &asked));
        let plan::Plan { trigger, outcome, .. } = plan::deleting(&states, &self.job, self.policy());
        drop(states);
        for sub in &subs {
            let template = template_of(sub);
            if trigger.iter().any(|name| name == template) || self.items.find(template).is_none() {
                self.trigger_subinstallation(sub, Phase::INIT_DELETE).await?;
            }
        }
        self.delete_by_execution().await?;
        let others = installation::deleting(&self.others(), &self.job);
        asked.with(together([outcome, others]))
    }
}
