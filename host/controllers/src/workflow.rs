//! The one runner of workflows: the deploy items of an Execution, and the sub-installations of an Installation where gate
//! expressions have a say in them (WF-01 … WF-28, C-19, C-21). `orangery_core::plan::execution` decides; this asks gate
//! expressions in between, and has carried out what was decided.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    mem,
    sync::Arc,
    time::Duration,
};

use orangery_api::execution::Records;
use orangery_blueprint::gate;
use orangery_cluster::ClusterSet;
use orangery_core::{
    dag::Direction,
    error::Failure,
    job::interrupted,
    name::{JobId, Namespace},
    plan::execution::{self as plan, ItemKind, ItemState, ObjectState},
    step::{Halt, Step, Verdict, together},
    workflow::{Answer, GateKind, WorkflowPolicy},
};
use orangery_reconcile::Key;
use serde_json::{Value, json};

use crate::{
    controller_context::ControllerContext,
    gates::{Evaluation, Evaluator, Expressions, GateScope, Items, WorkflowObject},
};

/// A workflow in one reconciliation of its object.
pub(crate) struct WorkflowState<T> {
    /// The items, with what is known of each beside its gate expressions.
    pub(crate) items: Arc<Items<T>>,
    /// What gate expressions answered in this job.
    pub(crate) records: Records,
    /// The clusters that gate expressions look at.
    pub(crate) clusters: ClusterSet,
    pub(crate) expressions: Arc<Expressions>,
    /// The imports that gate expressions read, where they are encrypted in the object.
    pub(crate) clear_imports: Option<Result<BTreeMap<String, Value>, Failure>>,
    /// The time until the first gate expression that is waited for is given up.
    pub(crate) left: Option<Duration>,
    /// The id of the job.
    pub(crate) job: JobId,
}

/// An object of an item as far as a workflow is decided by it: the objects themselves may be large, and there may be many (C-289).
pub(crate) struct ItemObject {
    pub(crate) key: Key,
    /// The name of the item that it stands for.
    pub(crate) item: String,
    pub(crate) is_deleting: bool,
    pub(crate) state: ObjectState,
    /// Whether what it deployed stays when it is deleted.
    pub(crate) is_kept: bool,
    /// The names of the items that it depended on when it was written last, with commas between them.
    pub(crate) depends_on: String,
}

/// Objects by the name of their item.
pub(crate) type ByItem<'o> = BTreeMap<&'o str, &'o ItemObject>;

/// The items that start now.
pub(crate) struct Starts<'o> {
    /// The objects that were made in `Init`.
    pub(crate) early: Vec<&'o ItemObject>,
    /// The names of the items whose objects are made now.
    pub(crate) late: Vec<&'o str>,
    /// The objects that are not being deleted.
    pub(crate) live: &'o ByItem<'o>,
}

/// A reconciliation that runs a workflow: what differs between the kinds.
pub(crate) trait RunsWorkflow: Send + Sync {
    /// What is known of an item beside its gate expressions.
    type Template: Send + Sync;
    /// The kind of the items' objects, in the words of the core.
    const ITEM_KIND: ItemKind;

    /// What every controller is given.
    fn host(&self) -> &Arc<ControllerContext>;
    /// The object, as it was read.
    fn object(&self) -> WorkflowObject;
    /// The namespace of the object and of its items.
    fn namespace(&self) -> &Namespace;
    /// The workflow.
    fn workflow(&self) -> &WorkflowState<Self::Template>;
    /// The workflow, to be changed.
    fn workflow_mut(&mut self) -> &mut WorkflowState<Self::Template>;
    /// How it is run.
    fn policy(&self) -> WorkflowPolicy;
    /// The imports that gate expressions read, as the object holds them.
    fn held_imports(&self) -> &BTreeMap<String, Value>;
    /// Whether the job was interrupted: nothing is waited for any longer, and nothing more is made.
    fn is_interrupted(&self) -> bool;
    /// The objects of the items, sorted by name.
    fn objects(&self) -> Vec<ItemObject>;

    /// Whether what the item deployed stays when it is deleted.
    fn keeps(_: &Self::Template) -> bool {
        false
    }
    /// Whether an item has begun in this job: an interrupt leaves it to end by itself.
    fn has_begun(&self, object: &ObjectState) -> bool;
    /// Of a live object and one that is being deleted: the one that stands for the item, and the one that is seen going.
    fn placed(
        direction: Direction,
        late: bool,
        live: Option<ObjectState>,
        going: Option<ObjectState>,
    ) -> (Option<ObjectState>, Option<ObjectState>);
    /// The states of the items of the spec, with those of objects that the spec does not know.
    fn completed<'s>(&'s self, _: Direction, _: &'s [ItemObject], of_spec: Vec<ItemState<'s>>) -> Vec<ItemState<'s>> {
        of_spec
    }

    /// What gate expressions see of an item: `{exports, status}`.
    fn results(&self, object: &ItemObject) -> impl Future<Output = Step<Value>> + Send;
    /// Deletes what an earlier job left, before anything starts. `leaving` are the items that gate expressions of this job
    /// make go.
    fn clear_leftovers(&mut self, leaving: &BTreeSet<String>) -> impl Future<Output = Step<Verdict>> + Send;
    /// Makes what is made late, and hands the job down. Answers why what cannot be made in this job cannot.
    fn start(&mut self, starts: Starts<'_>) -> impl Future<Output = Step<Option<Failure>>> + Send;
    /// Deletes the items that gate expressions do not want (WF-20, WF-21).
    fn delete(&mut self, names: &[String]) -> impl Future<Output = Step<()>> + Send;
    /// Writes what gate expressions have answered so far.
    fn remember(&mut self) -> impl Future<Output = Step<()>> + Send;
    /// Hands the deletion of the whole down to these items, and to what is no item.
    fn hand_down_deletion(&mut self, names: &[String]) -> impl Future<Output = Step<()>> + Send;
    /// What the job waits for beside the items.
    fn beside(&self, _: Direction) -> Step<Verdict> {
        Ok(Verdict::Done)
    }
}

/// The objects in one reconciliation, as gate expressions see them.
struct Scope<'a, W: RunsWorkflow> {
    run: &'a W,
    direction: Direction,
    objects: &'a [ItemObject],
    live: ByItem<'a>,
}

impl<'a, W: RunsWorkflow> Scope<'a, W> {
    fn of(run: &'a W, direction: Direction, objects: &'a [ItemObject]) -> Self {
        Self { run, direction, objects, live: live(objects) }
    }
}

impl<W: RunsWorkflow> GateScope for Scope<'_, W> {
    fn asks(&self, records: &Records, evaluation: &Evaluation) -> Vec<(String, GateKind)> {
        let states = states(self.run, self.objects, self.direction, (records, evaluation));
        let asks = plan::asks(&states, &self.run.workflow().job, self.direction, self.run.policy());
        asks.into_iter().map(|(name, gate)| (name.to_owned(), gate)).collect()
    }

    async fn results(&self, item: &str) -> Step<Value> {
        match self.live.get(item) {
            Some(object) => self.run.results(object).await,
            None => Ok(no_results()),
        }
    }
}

/// What gate expressions see of an item that has no object.
pub(crate) fn no_results() -> Value {
    json!({"exports": null, "status": null})
}

/// The objects that are not being deleted; of two for one item the first.
fn live(objects: &[ItemObject]) -> ByItem<'_> {
    let live = objects.iter().rev().filter(|object| !object.is_deleting);
    live.map(|object| (object.item.as_str(), object)).collect()
}

fn evaluator<W: RunsWorkflow>(run: &W) -> Step<Evaluator<'_, W::Template>> {
    let state = run.workflow();
    let imports = match &state.clear_imports {
        None => run.held_imports(),
        Some(Ok(clear)) => clear,
        Some(Err(failure)) => return Err(Halt::Stall(failure.clone())),
    };
    Ok(Evaluator {
        host: run.host(),
        object: run.object(),
        namespace: run.namespace(),
        expressions: &state.expressions,
        clusters: &state.clusters,
        kind: W::ITEM_KIND,
        items: &state.items,
        imports,
        interrupted: run.is_interrupted(),
    })
}

/// Refuses gate expressions that cannot be asked.
pub(crate) fn check_gates<W: RunsWorkflow>(run: &W) -> Step<()> {
    evaluator(run)?.check()
}

/// What gate expressions answer that read imports alone, before anything is made (C-21).
pub(crate) async fn ask_of_imports<W: RunsWorkflow>(run: &W) -> Step<Records> {
    let (mut records, mut evaluation) = (Records::new(), Evaluation::default());
    let scope = Scope::of(run, Direction::Forward, &[]);
    evaluator(run)?.ask_of_imports(&scope, &mut records, &mut evaluation).await;
    Ok(records)
}

/// The answers of the last job that are others now.
pub(crate) async fn changed_answers<W: RunsWorkflow>(run: &W) -> Step<Vec<String>> {
    let objects = run.objects();
    let scope = Scope::of(run, Direction::Forward, &objects);
    evaluator(run)?.changed(&scope, &run.workflow().records).await
}

/// Asks what holds items up.
async fn evaluate<W: RunsWorkflow>(run: &mut W, direction: Direction) -> Step<Evaluation> {
    if !run.workflow().items.has_gates {
        return Ok(Evaluation::default());
    }
    evaluator(run)?;
    let mut records = mem::take(&mut run.workflow_mut().records);
    let objects = run.objects();
    let scope = Scope::of(run, direction, &objects);
    let evaluation = evaluator(run)?.ask_all(&scope, &mut records, direction).await;
    let state = run.workflow_mut();
    state.records = records;
    state.left = evaluation.left;
    Ok(evaluation)
}

/// What the plan needs to know of all items.
fn states<'s, W: RunsWorkflow>(
    run: &'s W,
    objects: &'s [ItemObject],
    direction: Direction,
    (records, evaluation): (&Records, &Evaluation),
) -> Vec<ItemState<'s>> {
    let named: BTreeMap<(bool, &str), &ItemObject> =
        objects.iter().rev().map(|object| ((object.is_deleting, object.item.as_str()), object)).collect();
    let none = BTreeMap::new();
    let of_spec = run.workflow().items.list.iter().map(|item| {
        let found = |deleting| named.get(&(deleting, item.name.as_str())).map(|object| object.state.clone());
        let (live, going) = (found(false), found(true));
        let keep = W::keeps(&item.template);
        let mut answers = gate::answers(&item.gates, records.get(&item.name).unwrap_or(&none));
        if keep {
            // What it deployed stays: nobody waits for that to be gone.
            answers.deleted = Answer::Met;
        }
        let begun = live.as_ref().or(going.as_ref()).is_some_and(|object| run.has_begun(object));
        let stopped = (item.late && !begun && run.is_interrupted()).then(|| (GateKind::When, interrupted()));
        let (object, going) = W::placed(direction, item.late, live, going);
        ItemState {
            kind: W::ITEM_KIND,
            going,
            keep,
            late: item.late,
            answers,
            given_up: evaluation.given_up.get(&item.name).cloned().or(stopped),
            ..ItemState::new(&item.name, item.depends_on(), object)
        }
    });
    run.completed(direction, objects, of_spec.collect())
}

/// `Progressing`: what an earlier job left goes first (C-19), then the items start in their order.
pub(crate) async fn progressing<W: RunsWorkflow>(run: &mut W) -> Step<Verdict> {
    let mut evaluation = evaluate(run, Direction::Forward).await?;
    let outcome = progress(run, &mut evaluation).await;
    evaluation.with(outcome)
}

async fn progress<W: RunsWorkflow>(run: &mut W, evaluation: &mut Evaluation) -> Step<Verdict> {
    let objects = run.objects();
    if objects.iter().any(|object| object.is_deleting) {
        let known = (&run.workflow().records, &*evaluation);
        let leaving = plan::leaving(&states(run, &objects, Direction::Forward, known), &run.workflow().job);
        match run.clear_leftovers(&leaving).await? {
            Verdict::Done => {}
            failed @ Verdict::Failed(_) => return Ok(failed),
        }
    }
    let objects = run.objects();
    let plan::ExecutionPlan { trigger, delete, mut outcome } = decide(run, &objects, evaluation);
    let live = live(&objects);
    let items = Arc::clone(&run.workflow().items);
    let (late, early): (Vec<&str>, Vec<&str>) =
        trigger.iter().map(String::as_str).partition(|name| items.find(name).is_some_and(|item| item.late));
    let early = early.into_iter().filter_map(|name| live.get(name).copied()).collect();
    let starts = Starts { early, late: late.clone(), live: &live };
    if let Some(failure) = run.start(starts).await? {
        // Nothing mends that in this job: what could not be made has failed, and the job ends when nothing works any more.
        let now = run.objects();
        let has_begun = |name: &str| {
            now.iter().any(|object| object.state.ids.job.as_ref() == Some(&run.workflow().job) && object.item == name)
        };
        for name in late.into_iter().filter(|name| !has_begun(name)) {
            evaluation.given_up.insert(name.to_owned(), (GateKind::When, failure.clone()));
        }
        outcome = decide(run, &objects, evaluation).outcome;
    }
    run.delete(&delete).await?;
    together([outcome, run.beside(Direction::Forward)])
}

fn decide<W: RunsWorkflow>(run: &W, objects: &[ItemObject], evaluation: &Evaluation) -> plan::ExecutionPlan {
    let state = run.workflow();
    let states = states(run, objects, Direction::Forward, (&state.records, evaluation));
    plan::progressing(&states, &state.job, run.policy())
}

/// `Deleting`: the job is handed down in reverse order until nothing is left (WF-04, WF-28).
pub(crate) async fn deleting<W: RunsWorkflow>(run: &mut W) -> Step<Verdict> {
    if matches!(run.workflow().clear_imports, Some(Err(_))) {
        // What cannot be read holds up no deletion (C-28).
        run.workflow_mut().items = Arc::default();
    }
    let before = run.workflow().records.clone();
    let evaluation = evaluate(run, Direction::Backward).await?;
    let outcome = delete_in_order(run, &evaluation, &before).await;
    evaluation.with(outcome)
}

/// `before` is what gate expressions had answered before this reconciliation.
async fn delete_in_order<W: RunsWorkflow>(run: &mut W, evaluation: &Evaluation, before: &Records) -> Step<Verdict> {
    let plan::ExecutionPlan { trigger, outcome, .. } = {
        let (objects, state) = (run.objects(), run.workflow());
        let states = states(run, &objects, Direction::Backward, (&state.records, evaluation));
        plan::deleting(&states, &state.job, run.policy())
    };
    if !trigger.is_empty() && run.workflow().records != *before {
        // What goes now may be what the answer was read by: it is not there to be asked again (C-126).
        run.remember().await?;
    }
    run.hand_down_deletion(&trigger).await?;
    together([outcome, run.beside(Direction::Backward)])
}
