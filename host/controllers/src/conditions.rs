//! Conditions of items, whoever runs them: what they read is gathered, they are asked, and what they answered is remembered for
//! the job (WF-02 … WF-09, C-03, C-07, C-21).

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orangery_api::execution::Records;
use orangery_apply::{ClusterPool, ClusterSet, Sight};
use orangery_blueprint::{
    gate::{self, Answered, Condition, Conditions, Definition, Expression, NamedObject, Record, Surroundings, Test},
    plugins::Question,
};
use orangery_core::{
    dag::{Dag, Direction},
    duration::deadline,
    error::{Code, Failure, Fault},
    job::interrupted,
    plan::execution::{self as plan, ItemKind},
    step::{Halt, Step},
    walk::Transition,
    workflow::{Answer, Point},
};
use orangery_proposal::{ClusterRef, ObjectKey};
use orangery_reconcile::{Key, Queue, Store, Watched};
use serde_json::{Map, Value};

use crate::{
    host::{Host, waiter},
    outdated::observing_root,
};

/// The reason of a look at an object whose watch has only begun.
const NOT_KNOWN_YET: &str = "ObjectNotKnownYet";

/// One item, as far as its conditions go.
pub(crate) struct Item<T> {
    /// What else is known of it.
    pub(crate) template: T,
    pub(crate) name: String,
    pub(crate) depends_on: Vec<String>,
    /// The Target object of those that name none.
    pub(crate) target: Option<String>,
    /// How long each of them is waited for; `None` for ever.
    pub(crate) limit: Option<Duration>,
    pub(crate) conditions: Conditions,
    /// Whether its object is made when it starts and not before.
    pub(crate) late: bool,
}

/// The items of a workflow, with what follows from them alone.
pub(crate) struct Items<T> {
    pub(crate) list: Vec<Item<T>>,
    /// Places in the list, by name.
    by_name: BTreeMap<String, usize>,
    /// Whether any of them has a condition.
    pub(crate) conditional: bool,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { list: Vec::new(), by_name: BTreeMap::new(), conditional: false }
    }
}

impl<T> Items<T> {
    /// `decides` says of which items it is still open whether they are to be there: their objects, and those of all that
    /// depends on them, are made late.
    pub(crate) fn of(mut list: Vec<Item<T>>, decides: impl Fn(&Item<T>) -> bool) -> Self {
        let conditional = list.iter().any(|item| !item.conditions.is_empty());
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
        Self { list, by_name, conditional }
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
    /// Protects the map. Held for one lookup or one change.
    compiled: Mutex<BTreeMap<String, Arc<Expression>>>,
}

impl Expressions {
    /// So many are kept; with one more the others go.
    const KEPT: usize = 4096;

    fn get(&self, source: &str) -> Result<Arc<Expression>, String> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(source).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let expression = Arc::new(gate::compile(source)?);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= Self::KEPT {
            compiled.clear();
        }
        compiled.insert(source.to_owned(), Arc::clone(&expression));
        Ok(expression)
    }

    /// Whether imports alone answer a condition.
    pub(crate) fn reads_imports_alone(&self, condition: &Condition) -> bool {
        let expression = condition.expression.as_ref().and_then(|source| self.get(source).ok());
        expression.is_some_and(|expression| gate::reads_imports_alone(condition, &expression))
    }
}

/// What one look asked of conditions.
#[derive(Default)]
pub(crate) struct Asked {
    points: BTreeSet<(String, Point)>,
    /// Conditions that are not waited for any longer, by item.
    pub(crate) given_up: BTreeMap<String, (Point, Failure)>,
    /// What kept a condition from being asked and may pass by itself.
    again: Option<Failure>,
    /// The time until the first of those that are waited for is given up.
    pub(crate) left: Option<Duration>,
    /// Exports and status that were read, by item.
    results: BTreeMap<String, Value>,
}

impl Asked {
    /// What a look that goes on has to say beside what it waits for: when a condition is given up, and what did not go well.
    pub(crate) fn with<V>(self, outcome: Step<V>) -> Step<V> {
        match (outcome, self.again) {
            (Err(Halt::Wait(_)), Some(failure)) => Err(Halt::Retry(failure)),
            (Err(Halt::Wait(wait)), None) => Err(Halt::Wait(match self.left {
                Some(left) => wait.within(left),
                None => wait,
            })),
            (outcome, _) => outcome,
        }
    }
}

/// Why a condition got no answer.
enum Silence {
    /// May pass by itself.
    Passing(Failure),
    /// Nothing of what the condition waits for changes it.
    Lasting(Failure),
}

/// Whoever runs the items.
pub(crate) trait Runner: Sync {
    /// The conditions that are to be asked now, each with its item.
    fn asks(&self, records: &Records, asked: &Asked) -> Vec<(String, Point)>;

    /// Exports and status of an item: `{exports, status}`, both null where it has no object.
    fn results(&self, item: &str) -> impl Future<Output = Step<Value>> + Send;
}

/// What conditions are asked with.
pub(crate) struct Inquiry<'a, T> {
    pub(crate) host: &'a Host,
    pub(crate) expressions: &'a Expressions,
    /// The clusters that they look at.
    pub(crate) clusters: &'a ClusterSet,
    pub(crate) kind: ItemKind,
    pub(crate) items: &'a Items<T>,
    pub(crate) imports: &'a BTreeMap<String, Value>,
    /// Whether the job was interrupted: nothing is waited for any longer.
    pub(crate) interrupted: bool,
}

impl<T: Sync> Inquiry<'_, T> {
    fn whose(&self, item: &Item<T>) -> String {
        format!("{} {}", self.kind.noun(), item.name)
    }

    /// Conditions that users write into objects are checked here, those of blueprints were when they were rendered.
    pub(crate) fn check(&self) -> Step<()> {
        if !self.items.conditional {
            return Ok(());
        }
        let edges = self.items.list.iter().map(|item| (item.name.as_str(), item.depends_on()));
        let Ok(dag) = Dag::unchecked(edges) else { return Ok(()) };
        // Those that an installation does not give are not here.
        let mut around = Surroundings { imports: None, predecessors: None };
        for item in self.items.list.iter().filter(|item| !item.conditions.is_empty()) {
            around.predecessors = Some(dag.all_before(&item.name));
            gate::check_all(&item.conditions, &around).map_err(|(point, why)| {
                let message = format!("{} {:?}: {point}: {why}", self.kind.noun(), item.name);
                Halt::Stall(
                    Failure::new("CheckConditions", "InvalidCondition", message).with_code(Code::ConfigurationProblem),
                )
            })?;
        }
        Ok(())
    }

    /// Asks the conditions that decide about items and read imports alone (C-21): what is not wanted begins to go at once.
    pub(crate) async fn ask_of_imports(&self, runner: &impl Runner, records: &mut Records, asked: &mut Asked) {
        for item in self.items.list.iter().filter(|item| item.conditions.decide()) {
            for point in [Point::Activate, Point::When] {
                let Some(condition) = item.conditions.get(point) else { continue };
                // Whether it takes part comes first.
                let answers = records.get(&item.name).map(|records| gate::answers(&item.conditions, records));
                let takes_part = answers
                    .map_or(item.conditions.get(Point::Activate).is_none(), |answers| answers.activate == Answer::Met);
                if point == Point::When && !takes_part {
                    continue;
                }
                if self.expressions.reads_imports_alone(condition) {
                    self.ask(runner, item, point, records, asked).await;
                }
            }
        }
        // What failed here fails its item when it alone holds it up: another condition may leave the item out before.
        asked.given_up.clear();
        asked.points.clear();
    }

    /// Asks what holds items up, until nothing more is to be asked. What was settled in this job is not asked again.
    pub(crate) async fn ask_all(&self, runner: &impl Runner, records: &mut Records, direction: Direction) -> Asked {
        let mut asked = Asked::default();
        if !self.items.conditional {
            return asked;
        }
        if direction == Direction::Forward {
            self.ask_of_imports(runner, records, &mut asked).await;
        }
        loop {
            let mut progress = false;
            for (name, point) in runner.asks(records, &asked) {
                let Some(item) = self.items.find(&name) else { continue };
                progress |= self.ask(runner, item, point, records, &mut asked).await;
            }
            if !progress {
                break;
            }
        }
        self.clusters.keep_waiting();
        asked
    }

    /// The answers of the last job that are others now, of conditions that decided about items and look at clusters: `item/point`
    /// with the time at which it was asked in that job and the answer of now. Doubt is no other answer. What they look at is
    /// watched from now on.
    pub(crate) async fn changed(&self, runner: &impl Runner, records: &Records) -> Step<Vec<String>> {
        let (mut changed, mut asked) = (Vec::new(), Asked::default());
        for item in &self.items.list {
            for point in [Point::Activate, Point::When] {
                let condition = item.conditions.get(point).filter(|condition| condition.looks_at_clusters());
                let before = records.get(&item.name).and_then(|records| records.get(&point));
                // A look that came before its watch has said nothing.
                let before = before.filter(|record| record.answered.reason != NOT_KNOWN_YET);
                let (Some(condition), Some(before)) = (condition, before) else { continue };
                match self.answer(runner, item, point, condition, &mut asked).await {
                    Ok(now) if now.answer != Answer::Unknown && now.answer != before.answered.answer => {
                        changed.push(format!("{}/{point} {} {:?}", item.name, before.asked, now.answer));
                    }
                    Ok(_) => {}
                    Err(Silence::Passing(failure)) => asked.again = Some(failure),
                    // The next job says so.
                    Err(Silence::Lasting(_)) => {}
                }
            }
        }
        self.clusters.keep_waiting();
        // What is known to have changed need not wait for what is not known.
        match asked.again {
            Some(failure) if changed.is_empty() => Err(Halt::Retry(failure)),
            Some(_) | None => Ok(changed),
        }
    }

    /// Asks one condition, once in a look; whether it was asked.
    async fn ask(
        &self,
        runner: &impl Runner,
        item: &Item<T>,
        point: Point,
        all: &mut Records,
        asked: &mut Asked,
    ) -> bool {
        let Some(condition) = item.conditions.get(point) else { return false };
        let before = all.get(&item.name).and_then(|records| records.get(&point));
        if before.is_some_and(|record| gate::is_settled(point, record))
            || !asked.points.insert((item.name.clone(), point))
        {
            return false;
        }
        if self.interrupted {
            asked.given_up.insert(item.name.clone(), (point, interrupted()));
            return true;
        }
        let (answered, silence) = match self.answer(runner, item, point, condition, asked).await {
            Ok(answered) => (answered, None),
            Err(silence) => {
                let (Silence::Passing(failure) | Silence::Lasting(failure)) = &silence;
                (Answered::unknown(failure.reason.clone(), failure.message.clone()), Some(silence))
            }
        };
        let now = self.host.clock.now();
        let records = all.entry(item.name.clone()).or_default();
        let record = Record::following(records.get(&point), answered, now);
        let limit = item.limit;
        let may_change = condition.looks_at_clusters() || matches!(silence, Some(Silence::Passing(_)));
        let given_up = match &silence {
            Some(Silence::Lasting(failure)) => {
                let message = format!("{point} of {} cannot be told: {}", self.whose(item), failure.message);
                Some(Failure { message, ..failure.clone() })
            }
            Some(Silence::Passing(_)) | None => {
                gate::given_up(&self.whose(item), point, &record, may_change, limit, now)
            }
        };
        if let (Some(Silence::Passing(failure)), None) = (silence, &given_up) {
            asked.again.get_or_insert(failure);
        }
        if let Some(failure) = given_up {
            asked.given_up.insert(item.name.clone(), (point, failure));
        } else if !gate::is_settled(point, &record)
            && let Some(end) = deadline(record.asked, limit)
        {
            let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
            asked.left = Some(asked.left.map_or(left, |before| before.min(left)));
        }
        records.insert(point, record);
        true
    }

    async fn answer(
        &self,
        runner: &impl Runner,
        item: &Item<T>,
        point: Point,
        condition: &Condition,
        asked: &mut Asked,
    ) -> Result<Answered, Silence> {
        let own = item.target.as_deref();
        match condition.test() {
            Err(why) => Err(Silence::Lasting(Failure::new("AskCondition", "InvalidCondition", why))),
            Ok(Test::CrdPresent(definition)) => self.is_defined(definition, own).await,
            Ok(Test::Expression(source)) => {
                let expression = self
                    .expressions
                    .get(source)
                    .map_err(|why| Silence::Lasting(Failure::new("AskCondition", "InvalidCondition", why)))?;
                let reads = expression.reads();
                let document = match self.document(runner, item, condition, &reads, asked).await? {
                    Ok(document) => document,
                    Err(unknown) => return Ok(unknown),
                };
                Ok(gate::evaluate(&expression, &document))
            }
            Ok(Test::Component(component)) => {
                let Some(evaluator) = self.host.plugins.evaluator(&component.type_) else {
                    let known = self.host.plugins.condition_types();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    let message = format!(
                        "no component serves the condition type {:?}; known are: {known}; register one or correct the type",
                        component.type_
                    );
                    return Err(Silence::Lasting(Failure::new("AskCondition", "UnknownConditionType", message)));
                };
                let paths: Vec<Vec<&str>> = [gate::IMPORTS, gate::ITEM, gate::OBJECTS]
                    .iter()
                    .map(|root| vec![*root])
                    .chain(item.depends_on().into_iter().map(|name| vec![gate::ITEMS, name]))
                    .collect();
                let inputs = match self.document(runner, item, condition, &paths, asked).await? {
                    Ok(document) => document,
                    Err(unknown) => return Ok(unknown),
                };
                let question = Question {
                    item: item.name.clone(),
                    point,
                    config: component.config.clone(),
                    inputs,
                    now: self.host.clock.now(),
                };
                evaluator.evaluate(&question).await.map_err(|fault| {
                    let problem = fault.problem();
                    let message = format!("component {problem}");
                    let failure =
                        Failure::new("AskCondition", "ComponentFailed", message).with_code(problem.code.clone());
                    if matches!(fault, Fault::Later(_)) { Silence::Passing(failure) } else { Silence::Lasting(failure) }
                })
            }
        }
    }

    /// The values that a condition reads: `Ok(Err(…))` where one of them is not known yet.
    async fn document(
        &self,
        runner: &impl Runner,
        item: &Item<T>,
        condition: &Condition,
        reads: &[Vec<&str>],
        asked: &mut Asked,
    ) -> Result<Result<Map<String, Value>, Answered>, Silence> {
        let imports = self.imports.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut document = Map::new();
        document.insert(gate::IMPORTS.to_owned(), Value::Object(imports));
        let mut items = Map::new();
        for path in reads.iter().filter(|path| path.first() == Some(&gate::ITEMS)) {
            for name in path.get(1).map_or_else(|| item.depends_on(), |name| vec![*name]) {
                if !items.contains_key(name) {
                    items.insert(name.to_owned(), self.results(runner, name, asked).await?);
                }
            }
        }
        document.insert(gate::ITEMS.to_owned(), Value::Object(items));
        if reads.iter().any(|path| path.first() == Some(&gate::ITEM)) {
            document.insert(gate::ITEM.to_owned(), self.results(runner, &item.name, asked).await?);
        }
        let own = item.target.as_deref();
        let mut objects = Map::new();
        for (name, object) in &condition.objects {
            match self.object(object, own).await? {
                Ok(value) => objects.insert(name.clone(), value),
                Err(unknown) => return Ok(Err(unknown)),
            };
        }
        document.insert(gate::OBJECTS.to_owned(), Value::Object(objects));
        Ok(Ok(document))
    }

    async fn results(&self, runner: &impl Runner, name: &str, asked: &mut Asked) -> Result<Value, Silence> {
        if let Some(known) = asked.results.get(name) {
            return Ok(known.clone());
        }
        let results = runner.results(name).await.map_err(silence)?;
        asked.results.insert(name.to_owned(), results.clone());
        Ok(results)
    }

    /// A live object; null where it does not exist.
    async fn object(&self, object: &NamedObject, own: Option<&str>) -> Result<Result<Value, Answered>, Silence> {
        let NamedObject { target, api_version, kind, namespace, name } = object;
        let on = cluster(target.as_deref(), own)?;
        let key = ObjectKey {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: (!namespace.is_empty()).then(|| namespace.clone()),
            name: name.clone(),
        };
        let shown = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        Ok(match self.clusters.look(&on, &key).await.map_err(silence)? {
            Sight::Present(object) => Ok(without_secrets(&object)),
            Sight::Absent => Ok(Value::Null),
            Sight::Unknown => Err(Answered::unknown(NOT_KNOWN_YET, format!("{kind} {shown} is not known yet"))),
            Sight::Blind(why) => {
                let message = format!("{kind} {shown} cannot be watched on {on}: {why}", on = on_name(&on));
                Err(Answered::unknown("ObjectNotVisible", message))
            }
        })
    }

    async fn is_defined(&self, definition: &Definition, own: Option<&str>) -> Result<Answered, Silence> {
        let on = cluster(definition.target.as_deref(), own)?;
        Ok(match self.clusters.definitions(&on).await.map_err(silence)? {
            Ok(known) => gate::is_defined(definition, known.iter().map(AsRef::as_ref)),
            Err(Sight::Blind(why)) => {
                let message = format!("CustomResourceDefinitions cannot be watched on {on}: {why}", on = on_name(&on));
                Answered::unknown("ObjectNotVisible", message)
            }
            Err(Sight::Unknown | Sight::Absent | Sight::Present(_)) => {
                Answered::unknown(NOT_KNOWN_YET, "the definitions of the cluster are not known yet")
            }
        })
    }
}

/// The end of a walk over an object: what its conditions look at is watched as long as it waits, and at rest where its root starts
/// jobs by changes. `left` is the time until the first condition that it waits for is given up.
pub(crate) fn after_walk<P>(
    host: &Host,
    (pool, queue): (&ClusterPool, &Queue),
    (kind, key): (&'static str, Key),
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

/// What conditions of an object look at is watched no longer than there is the object.
pub(crate) fn release_with<K: Watched>(
    host: &Arc<Host>,
    store: &Store<K>,
    kind: &'static str,
    pool: &Arc<ClusterPool>,
) {
    let (pool, known) = (Arc::clone(pool), Arc::downgrade(host));
    store.subscribe(move |change| {
        if let (None, Some(key)) = (change.after, change.key()) {
            pool.release(&waiter(kind, &key));
            if let Some(host) = known.upgrade() {
                host.outdated.set(&(kind, key), Vec::new());
            }
        }
    });
}

fn silence(halt: Halt) -> Silence {
    match halt {
        Halt::Retry(failure) => Silence::Passing(failure),
        Halt::Stall(failure) => Silence::Lasting(failure),
        Halt::Wait(wait) => Silence::Passing(Failure::new("AskCondition", "Waiting", wait.to_string())),
    }
}

/// The cluster of an object: the named target, or the item's own.
fn cluster(target: Option<&str>, own: Option<&str>) -> Result<ClusterRef, Silence> {
    match target.or(own) {
        Some(name) => Ok(ClusterRef::Named(name.to_owned())),
        None => Err(Silence::Lasting(Failure::new(
            "AskCondition",
            "NoTargetDefined",
            "it looks at a cluster, but neither it nor the item names a target; set `target`",
        ))),
    }
}

fn on_name(on: &ClusterRef) -> String {
    match on {
        ClusterRef::Named(name) => format!("Target {name}"),
        ClusterRef::Target => "the item's target".to_owned(),
        ClusterRef::Host => "the host cluster".to_owned(),
    }
}

/// Of a Secret nobody needs the data to know that it is there, and whoever has it may show it.
fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && let Some(members) = object.as_object_mut()
    {
        members.remove("data");
        members.remove("stringData");
        let annotations = members.get_mut("metadata").and_then(|meta| meta.get_mut("annotations"));
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}
