//! Gate expressions of items, whoever runs them: what they read is gathered, they are asked, and what they answered is
//! remembered for the job (WF-02 … WF-09, C-03, C-07, C-21).

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orangery_api::execution::Records;
use orangery_blueprint::gate::{self, Expression, ExpressionScope, GateExpression, GateExpressions};
use orangery_blueprint::plan::gate::{Gate, GateDecision, Unanswered, answers_otherwise, decide, has_answered};
use orangery_cluster::{ClusterPool, ClusterSet};
use orangery_core::{
    dag::{Dag, Direction},
    error::{Code, Failure},
    job::interrupted,
    name::Namespace,
    plan::execution::{self as plan, ItemKind},
    step::{Halt, Step},
    walk::Transition,
    workflow::{Answer, GateKind},
};
use orangery_reconcile::{Key, Queue};
use serde_json::Value;

use crate::{
    controller_context::{ControllerContext, waiter},
    stores::{Stored, StoredKind},
    tree::observing_root,
};

mod answers;
mod recorded;
mod shadow;

pub(crate) use shadow::WorkflowObject;

/// One item, as far as its gate expressions go.
pub(crate) struct Item<T> {
    /// What else is known of it.
    pub(crate) template: T,
    pub(crate) name: String,
    pub(crate) depends_on: Vec<String>,
    /// The Target object of those that name none.
    pub(crate) target: Option<String>,
    /// How long each of them is waited for; `None` for ever.
    pub(crate) limit: Option<Duration>,
    pub(crate) gates: GateExpressions,
    /// Whether its object is made when it starts and not before.
    pub(crate) late: bool,
}

/// The items of a workflow, with what follows from them alone.
pub(crate) struct Items<T> {
    pub(crate) list: Vec<Item<T>>,
    /// Places in the list, by name.
    by_name: BTreeMap<String, usize>,
    /// Whether any of them has a gate expression.
    pub(crate) has_gates: bool,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { list: Vec::new(), by_name: BTreeMap::new(), has_gates: false }
    }
}

impl<T> Items<T> {
    /// `decides` says of which items it is still open whether they are to be there: their objects, and those of all that
    /// depends on them, are made late.
    pub(crate) fn of(mut list: Vec<Item<T>>, decides: impl Fn(&Item<T>) -> bool) -> Self {
        let has_gates = list.iter().any(|item| !item.gates.is_empty());
        if list.iter().any(&decides) {
            let known: Vec<_> =
                list.iter().map(|item| (item.name.as_str(), item.depends_on(), decides(item))).collect();
            let late: BTreeSet<String> = plan::late(&known).into_iter().map(str::to_owned).collect();
            for item in &mut list {
                item.late = late.contains(&item.name);
            }
        }
        let mut by_name = BTreeMap::new();
        for (place, item) in list.iter().enumerate() {
            by_name.entry(item.name.clone()).or_insert(place);
        }
        Self { list, by_name, has_gates }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Item<T>> {
        self.list.get(*self.by_name.get(name)?)
    }
}

impl<T> Item<T> {
    pub(crate) fn depends_on(&self) -> Vec<&str> {
        self.depends_on.iter().map(String::as_str).collect()
    }
}

/// Compiled expressions by their text, for all objects of a controller.
#[derive(Default)]
pub(crate) struct Expressions {
    /// Protects the map and its size. Held for one lookup or one change.
    compiled: Mutex<Compiled>,
}

#[derive(Default)]
struct Compiled {
    by_source: BTreeMap<String, Arc<Expression>>,
    /// What they take in all.
    bytes: u64,
}

impl Expressions {
    /// The most bytes that are kept; with more the others go.
    const MOST_KEPT_BYTES: u64 = 16 << 20;
    /// The most bytes of one that is kept; a larger one is compiled whenever it is asked.
    const MOST_KEPT_BYTES_OF_ONE: u64 = 1 << 20;

    fn get(&self, source: &str) -> Result<Arc<Expression>, String> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).by_source.get(source).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let expression = Arc::new(gate::compile(source)?);
        let bytes = expression.bytes();
        if bytes > Self::MOST_KEPT_BYTES_OF_ONE {
            return Ok(expression);
        }
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.bytes.saturating_add(bytes) > Self::MOST_KEPT_BYTES {
            *compiled = Compiled::default();
        }
        if compiled.by_source.insert(source.to_owned(), Arc::clone(&expression)).is_none() {
            compiled.bytes = compiled.bytes.saturating_add(bytes);
        }
        Ok(expression)
    }

    /// Whether imports alone answer a gate expression.
    pub(crate) fn reads_imports_alone(&self, gate_expression: &GateExpression) -> bool {
        let expression = gate_expression.expression.as_ref().and_then(|source| self.get(source).ok());
        expression.is_some_and(|expression| gate::reads_imports_alone(gate_expression, &expression))
    }
}

/// What one reconciliation asked of gate expressions.
#[derive(Default)]
pub(crate) struct Evaluation {
    gates: BTreeSet<(String, GateKind)>,
    /// Gate expressions that are not waited for any longer, by item.
    pub(crate) given_up: BTreeMap<String, (GateKind, Failure)>,
    /// What kept a gate expression from being asked and may pass by itself.
    retry: Option<Failure>,
    /// The time until the first of those that are waited for is given up.
    pub(crate) left: Option<Duration>,
    /// Exports and status that were read, by item, as far as they take no more than is kept.
    results: BTreeMap<String, Value>,
    /// Bytes of memory that these take.
    result_bytes: u64,
}

impl Evaluation {
    /// What a reconciliation that goes on has to say beside what it waits for: when a gate expression is given up, and what
    /// did not go well.
    pub(crate) fn with<V>(self, outcome: Step<V>) -> Step<V> {
        match (outcome, self.retry) {
            (Err(Halt::Wait(_)), Some(failure)) => Err(Halt::Retry(failure)),
            (Err(Halt::Wait(wait)), None) => Err(Halt::Wait(match self.left {
                Some(left) => wait.within(left),
                None => wait,
            })),
            (outcome, _) => outcome,
        }
    }
}

/// The items of one object, as their gate expressions see them.
pub(crate) trait GateScope: Sync {
    /// The gate expressions that are to be asked now, each with its item.
    fn asks(&self, records: &Records, evaluation: &Evaluation) -> Vec<(String, GateKind)>;

    /// Exports and status of an item: `{exports, status}`, both null where it has no object.
    fn results(&self, item: &str) -> impl Future<Output = Step<Value>> + Send;
}

/// What gate expressions are asked with.
pub(crate) struct Evaluator<'a, T> {
    pub(crate) host: &'a Arc<ControllerContext>,
    /// Whose gate expressions they are.
    pub(crate) object: WorkflowObject,
    pub(crate) namespace: &'a Namespace,
    pub(crate) expressions: &'a Expressions,
    /// The clusters that they look at.
    pub(crate) clusters: &'a ClusterSet,
    pub(crate) kind: ItemKind,
    pub(crate) items: &'a Items<T>,
    pub(crate) imports: &'a BTreeMap<String, Value>,
    /// Whether the job was interrupted: nothing is waited for any longer.
    pub(crate) interrupted: bool,
}

impl<T: Sync> Evaluator<'_, T> {
    fn whose(&self, item: &Item<T>) -> String {
        format!("{} {}", self.kind.noun(), item.name)
    }

    /// Gate expressions that users write into objects are checked here, those of blueprints were when they were rendered.
    pub(crate) fn check(&self) -> Step<()> {
        if !self.items.has_gates {
            return Ok(());
        }
        let edges = self.items.list.iter().map(|item| (item.name.as_str(), item.depends_on()));
        let Ok(dag) = Dag::unchecked(edges) else { return Ok(()) };
        // Those that an installation does not give are not here.
        let mut around = ExpressionScope { imports: None, predecessors: None };
        for item in self.items.list.iter().filter(|item| !item.gates.is_empty()) {
            around.predecessors = Some(gate::Predecessors::Of(&dag, &item.name));
            gate::check_all(&item.gates, &around).map_err(|(gate, why)| {
                let message = format!("{} {:?}: {gate}: {why}", self.kind.noun(), item.name);
                Halt::Stall(
                    Failure::new("CheckGateExpressions", "InvalidGateExpression", message)
                        .with_code(Code::ConfigurationProblem),
                )
            })?;
        }
        Ok(())
    }

    /// Asks the gate expressions that decide about items and read imports alone (C-21): what is not wanted begins to go at once.
    pub(crate) async fn ask_of_imports(
        &self,
        scope: &impl GateScope,
        records: &mut Records,
        evaluation: &mut Evaluation,
    ) {
        for item in self.items.list.iter().filter(|item| item.gates.decide()) {
            for gate in [GateKind::Activate, GateKind::When] {
                let Some(gate_expression) = item.gates.get(gate) else { continue };
                // Whether it takes part comes first.
                let answers = records.get(&item.name).map(|records| gate::answers(&item.gates, records));
                let takes_part = answers
                    .map_or(item.gates.get(GateKind::Activate).is_none(), |answers| answers.activate == Answer::Met);
                if gate == GateKind::When && !takes_part {
                    continue;
                }
                if self.expressions.reads_imports_alone(gate_expression) {
                    self.ask(scope, item, gate, records, evaluation).await;
                }
            }
        }
        // What failed here fails its item when it alone holds it up: another gate expression may leave the item out before.
        evaluation.given_up.clear();
        evaluation.gates.clear();
    }

    /// Asks what holds items up, until nothing more is to be asked. What was settled in this job is not asked again.
    pub(crate) async fn ask_all(
        &self,
        scope: &impl GateScope,
        records: &mut Records,
        direction: Direction,
    ) -> Evaluation {
        let mut evaluation = Evaluation::default();
        if !self.items.has_gates {
            return evaluation;
        }
        if direction == Direction::Forward {
            self.ask_of_imports(scope, records, &mut evaluation).await;
        }
        loop {
            let mut progress = false;
            for (name, gate) in scope.asks(records, &evaluation) {
                let Some(item) = self.items.find(&name) else { continue };
                progress |= self.ask(scope, item, gate, records, &mut evaluation).await;
            }
            if !progress {
                break;
            }
        }
        self.clusters.keep_waiting();
        evaluation
    }

    /// The answers of the last job that are others now, of gate expressions that decided about items and look at clusters:
    /// `item/point` with the time at which it was asked in that job and the answer of now. Doubt is no other answer. What they
    /// look at is watched from now on.
    pub(crate) async fn changed(&self, scope: &impl GateScope, records: &Records) -> Step<Vec<String>> {
        let (mut changed, mut evaluation) = (Vec::new(), Evaluation::default());
        for item in &self.items.list {
            for gate in [GateKind::Activate, GateKind::When] {
                let gate_expression =
                    item.gates.get(gate).filter(|gate_expression| gate_expression.looks_at_clusters());
                let before = records.get(&item.name).and_then(|records| records.get(&gate));
                let before = before.filter(|record| has_answered(record));
                let (Some(gate_expression), Some(before)) = (gate_expression, before) else { continue };
                match self.answer(scope, item, gate, gate_expression, &mut evaluation).await {
                    Ok(now) if answers_otherwise(before, &now) => {
                        changed.push(format!("{}/{gate} {} {:?}", item.name, before.asked, now.answer));
                    }
                    Ok(_) => {}
                    Err(Unanswered::Passing(failure)) => evaluation.retry = Some(failure),
                    // The next job says so.
                    Err(Unanswered::Lasting(_)) => {}
                }
            }
        }
        self.clusters.keep_waiting();
        // What is known to have changed need not wait for what is not known.
        match evaluation.retry {
            Some(failure) if changed.is_empty() => Err(Halt::Retry(failure)),
            Some(_) | None => Ok(changed),
        }
    }

    /// Asks one gate expression, once in a reconciliation; whether it was asked.
    async fn ask(
        &self,
        scope: &impl GateScope,
        item: &Item<T>,
        gate: GateKind,
        all: &mut Records,
        evaluation: &mut Evaluation,
    ) -> bool {
        let Some(gate_expression) = item.gates.get(gate) else { return false };
        let before = all.get(&item.name).and_then(|records| records.get(&gate));
        if before.is_some_and(|record| gate::is_settled(gate, record))
            || !evaluation.gates.insert((item.name.clone(), gate))
        {
            return false;
        }
        if self.interrupted {
            evaluation.given_up.insert(item.name.clone(), (gate, interrupted()));
            return true;
        }
        let answer = self.answer(scope, item, gate, gate_expression, evaluation).await;
        let whose = self.whose(item);
        let looks_at_clusters = gate_expression.looks_at_clusters();
        let asked = Gate { item: &whose, kind: gate, limit: item.limit, looks_at_clusters };
        let records = all.entry(item.name.clone()).or_default();
        let GateDecision { record, given_up, retry, left } =
            decide(asked, records.get(&gate), answer, self.host.clock.now());
        if let Some(failure) = retry {
            evaluation.retry.get_or_insert(failure);
        }
        if let Some(failure) = given_up {
            evaluation.given_up.insert(item.name.clone(), (gate, failure));
        }
        evaluation.left = [evaluation.left, left].into_iter().flatten().min();
        records.insert(gate, record);
        true
    }
}

/// The end of a reconciliation: what its gate expressions look at is watched as long as it waits, and at rest where its root
/// starts jobs by changes. `left` is the time until the first gate expression that it waits for is given up.
pub(crate) fn release_at_rest<P>(
    host: &ControllerContext,
    (pool, queue): (&ClusterPool, &Queue),
    (kind, key): (StoredKind, Key),
    transition: &Transition<P>,
    left: Option<Duration>,
) {
    let goes_on = matches!(transition, Transition::Wait(_) | Transition::Retry(_));
    if !goes_on && observing_root(&host.stores, &key).is_none() {
        pool.release(&waiter(kind, &key));
    }
    // What is tried again comes later and later; a deadline does not.
    if let (Transition::Retry(_), Some(left)) = (transition, left) {
        queue.wake_in(key, left);
    }
}

/// What gate expressions of an object look at is watched no longer than there is the object.
pub(crate) fn release_when_gone<K: Stored>(host: &Arc<ControllerContext>, pool: &Arc<ClusterPool>) {
    let (pool, known) = (Arc::clone(pool), Arc::downgrade(host));
    K::store(&host.stores).subscribe(move |change| {
        if let (None, Some(key)) = (change.after, change.key()) {
            pool.release(&waiter(K::KIND, &key));
            if let Some(host) = known.upgrade() {
                host.changed_answers.set(&(K::KIND, key), Vec::new());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_gate_compiled_expressions_are_kept_by_what_they_take() {
        let expressions = Expressions::default();
        let kept = || {
            let compiled = expressions.compiled.lock().unwrap();
            let bytes: u64 = compiled.by_source.values().map(|expression| expression.bytes()).sum();
            assert_eq!(compiled.bytes, bytes);
            (compiled.by_source.len(), bytes)
        };
        let with_places = |number: u64, places: u64| {
            let source = format!("'{number}'.matches('^a{{{places}}}$')");
            expressions.get(&source).map(|expression| expression.bytes()).unwrap()
        };
        let each = with_places(0, 1000);
        assert_eq!((with_places(0, 1000), kept()), (each, (1, each)));
        let mut number = 0;
        while kept().1 + each <= Expressions::MOST_KEPT_BYTES {
            number += 1;
            with_places(number, 1000);
        }
        with_places(number + 1, 1000);
        assert!(kept().0 == 1 && number > 20, "{number} and {:?}", kept());

        let large: Vec<String> = (0..3).map(|of| format!("'x'.matches('^{of}a{{2000}}$')")).collect();
        let large = expressions.get(&large.join(" || ")).unwrap();
        assert!(large.bytes() > Expressions::MOST_KEPT_BYTES_OF_ONE && kept().0 == 1, "{large:?}");
    }
}
