//! Conditions of deploy items: what they read is gathered, they are asked, and what they answered is remembered for the job
//! (WF-02 … WF-09, C-03, C-07, C-21).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::ResourceExt;
use orangery_api::{deploy_item::DeployItem, execution::DeployItemTemplate, job::Job, marks::Marks};
use orangery_apply::{Sight, Waiter};
use orangery_core::{
    dag::{Dag, Direction},
    duration::Limit,
    error::{Code, Failure, Fault},
    job::interrupted,
    plan::{execution as plan, item::deadline},
    port::Question,
    proposal::{ClusterRef, ObjectKey},
    step::{Halt, Step},
    workflow::{
        Answer,
        condition::{
            self, Answered, Condition, Conditions, Definition, Expression, NamedObject, Point, Record, Surroundings,
            Test,
        },
    },
};
use orangery_reconcile::Key;
use serde_json::{Map, Value, json};

use super::Run;
use crate::deploy_item::USUAL_TIMEOUT;

/// One item of the spec.
pub(super) struct Item {
    pub(super) template: DeployItemTemplate,
    pub(super) conditions: Conditions,
    /// Whether its object is made when it starts and not before.
    pub(super) late: bool,
}

/// The items of the spec, with what follows from the spec alone.
#[derive(Default)]
pub(super) struct Items {
    pub(super) list: Vec<Item>,
    /// Whether any of them has a condition.
    pub(super) conditional: bool,
}

impl Items {
    pub(super) fn of(templates: Vec<DeployItemTemplate>) -> Self {
        let list = templates.into_iter().map(|template| {
            let conditions = template.conditions();
            Item { template, conditions, late: false }
        });
        let mut list: Vec<Item> = list.collect();
        let conditional = list.iter().any(|item| !item.conditions.is_empty());
        if list.iter().any(|item| item.conditions.decide()) {
            let known: Vec<_> =
                list.iter().map(|item| (item.name(), item.depends_on(), item.conditions.decide())).collect();
            let late: BTreeSet<String> = plan::late(&known).into_iter().map(str::to_owned).collect();
            for item in &mut list {
                item.late = late.contains(item.template.name.as_str());
            }
        }
        Self { list, conditional }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Item> {
        self.list.iter().find(|item| item.template.name == name)
    }
}

impl Item {
    pub(super) fn name(&self) -> &str {
        &self.template.name
    }

    pub(super) fn depends_on(&self) -> Vec<&str> {
        self.template.depends_on.iter().map(String::as_str).collect()
    }

    /// How long a condition of it is waited for; `None` for ever.
    fn limit(&self) -> Option<Duration> {
        match self.template.timeout.as_ref().map(orangery_api::duration::Duration::limit) {
            Some(Ok(Limit::Unlimited)) => None,
            Some(Ok(Limit::After(limit))) => Some(limit),
            // The item itself will say so.
            Some(Err(_)) | None => Some(USUAL_TIMEOUT),
        }
    }
}

/// Compiled expressions by their text, for all Executions.
#[derive(Default)]
pub(super) struct Expressions {
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
        let expression = Arc::new(condition::compile(source)?);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= Self::KEPT {
            compiled.clear();
        }
        compiled.insert(source.to_owned(), Arc::clone(&expression));
        Ok(expression)
    }
}

/// What one look at an Execution asked of its conditions.
#[derive(Default)]
pub(super) struct Asked {
    points: BTreeSet<(String, Point)>,
    /// Conditions that are not waited for any longer, by item.
    pub(super) given_up: BTreeMap<String, (Point, Failure)>,
    /// What kept a condition from being asked and may pass by itself.
    pub(super) again: Option<Failure>,
    /// The time until the first of those that are waited for is given up.
    pub(super) left: Option<Duration>,
    /// Exports that were read, by item.
    exports: BTreeMap<String, Value>,
}

/// Why a condition got no answer.
enum Silence {
    /// May pass by itself.
    Passing(Failure),
    /// Nothing of what the condition waits for changes it.
    Lasting(Failure),
}

impl Run<'_> {
    /// Conditions of Executions that users write are checked here, those of blueprints were when they were rendered.
    pub(super) fn check_conditions(&self) -> Step<()> {
        if !self.items.conditional {
            return Ok(());
        }
        let edges = self.items.list.iter().map(|item| (item.name(), item.depends_on()));
        let Ok(dag) = Dag::unchecked(edges) else { return Ok(()) };
        let types = self.draft.spec.imports.iter().map(|(name, value)| (name.clone(), condition::type_of(value)));
        let mut around = Surroundings { imports: types.collect(), open: true, predecessors: BTreeSet::new() };
        for item in self.items.list.iter().filter(|item| !item.conditions.is_empty()) {
            around.predecessors = dag.all_before(item.name());
            condition::check_all(&item.conditions, &around).map_err(|(point, why)| {
                let message = format!("deploy item {:?}: {point}: {why}", item.name());
                Halt::Stall(
                    Failure::new("CheckConditions", "InvalidCondition", message).with_code(Code::ConfigurationProblem),
                )
            })?;
        }
        Ok(())
    }

    /// Asks the conditions that decide about items and read imports alone (C-21): what is not wanted begins to go at once.
    pub(super) async fn ask_of_imports(&mut self, asked: &mut Asked) {
        let items = Arc::clone(&self.items);
        for item in items.list.iter().filter(|item| item.conditions.decide()) {
            for point in [Point::Activate, Point::When] {
                let Some(condition) = item.conditions.get(point) else { continue };
                // Whether it takes part comes first.
                let answers =
                    self.records.get(item.name()).map(|records| condition::answers(&item.conditions, records));
                let takes_part = answers
                    .map_or(item.conditions.get(Point::Activate).is_none(), |answers| answers.activate == Answer::Met);
                if point == Point::When && !takes_part {
                    continue;
                }
                if self.reads_imports_alone(condition) {
                    self.ask(item, point, asked).await;
                }
            }
        }
        // What failed here fails its item when it alone holds it up: another condition may leave the item out before.
        asked.given_up.clear();
        asked.points.clear();
    }

    /// Whether the job was interrupted: nothing is waited for any longer, and nothing more is made.
    pub(super) fn is_interrupted(&self) -> bool {
        self.draft.status.as_ref().is_some_and(|status| status.interrupted_job == self.job)
    }

    fn reads_imports_alone(&self, condition: &Condition) -> bool {
        let expression = condition.expression.as_ref().and_then(|source| self.expressions.get(source).ok());
        expression.is_some_and(|expression| condition::reads_imports_alone(condition, &expression))
    }

    /// Asks what holds items up, until nothing more is to be asked. What was settled in this job is not asked again.
    pub(super) async fn ask_all(&mut self, direction: Direction, objects: &[Arc<DeployItem>]) -> Asked {
        let mut asked = Asked::default();
        if !self.items.conditional {
            return asked;
        }
        let items = Arc::clone(&self.items);
        if direction == Direction::Forward {
            self.ask_of_imports(&mut asked).await;
        }
        loop {
            let points: Vec<(String, Point)> = {
                let states = self.states(objects, direction, &asked);
                let asks = plan::asks(&states, &self.job, direction, self.draft.spec.policy());
                asks.into_iter().map(|(name, point)| (name.to_owned(), point)).collect()
            };
            let mut progress = false;
            for (name, point) in points {
                let Some(item) = items.find(&name) else { continue };
                progress |= self.ask(item, point, &mut asked).await;
            }
            if !progress {
                break;
            }
        }
        self.clusters.keep_waiting();
        asked
    }

    /// Asks one condition, once in a look; whether it was asked.
    async fn ask(&mut self, item: &Item, point: Point, asked: &mut Asked) -> bool {
        let Some(condition) = item.conditions.get(point) else { return false };
        let before = self.records.get(item.name()).and_then(|records| records.get(&point));
        if before.is_some_and(|record| condition::is_settled(point, record))
            || !asked.points.insert((item.name().to_owned(), point))
        {
            return false;
        }
        if self.is_interrupted() {
            asked.given_up.insert(item.name().to_owned(), (point, interrupted()));
            return true;
        }
        let (answered, silence) = match self.answer(item, point, condition, asked).await {
            Ok(answered) => (answered, None),
            Err(silence) => {
                let (Silence::Passing(failure) | Silence::Lasting(failure)) = &silence;
                (Answered::unknown(failure.reason.clone(), failure.message.clone()), Some(silence))
            }
        };
        let now = self.host.clock.now();
        let records = self.records.entry(item.name().to_owned()).or_default();
        let record = Record::following(records.get(&point), answered, now);
        let limit = item.limit();
        let may_change = condition.looks_at_clusters() || matches!(silence, Some(Silence::Passing(_)));
        let given_up = match &silence {
            Some(Silence::Lasting(failure)) => {
                let message = format!("{point} of deploy item {} cannot be told: {}", item.name(), failure.message);
                Some(Failure { message, ..failure.clone() })
            }
            Some(Silence::Passing(_)) | None => {
                condition::given_up(item.name(), point, &record, may_change, limit, now)
            }
        };
        if let (Some(Silence::Passing(failure)), None) = (silence, &given_up) {
            asked.again.get_or_insert(failure);
        }
        if let Some(failure) = given_up {
            asked.given_up.insert(item.name().to_owned(), (point, failure));
        } else if !condition::is_settled(point, &record)
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
        item: &Item,
        point: Point,
        condition: &Condition,
        asked: &mut Asked,
    ) -> Result<Answered, Silence> {
        let own = item.template.target.as_ref().map(|target| target.name.as_str());
        match condition.test() {
            Err(why) => Err(Silence::Lasting(Failure::new("AskCondition", "InvalidCondition", why))),
            Ok(Test::CrdPresent(definition)) => self.is_defined(definition, own).await,
            Ok(Test::Expression(source)) => {
                let expression = self
                    .expressions
                    .get(source)
                    .map_err(|why| Silence::Lasting(Failure::new("AskCondition", "InvalidCondition", why)))?;
                let reads = expression.reads();
                let document = match self.document(item, condition, &reads, asked).await? {
                    Ok(document) => document,
                    Err(unknown) => return Ok(unknown),
                };
                Ok(condition::evaluate(&expression, &document))
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
                let paths: Vec<Vec<&str>> = [condition::IMPORTS, condition::ITEM, condition::OBJECTS]
                    .iter()
                    .map(|root| vec![*root])
                    .chain(item.depends_on().into_iter().map(|name| vec![condition::ITEMS, name]))
                    .collect();
                let inputs = match self.document(item, condition, &paths, asked).await? {
                    Ok(document) => document,
                    Err(unknown) => return Ok(unknown),
                };
                let question = Question {
                    item: item.name().to_owned(),
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
        item: &Item,
        condition: &Condition,
        reads: &[Vec<&str>],
        asked: &mut Asked,
    ) -> Result<Result<Map<String, Value>, Answered>, Silence> {
        let imports = self.draft.spec.imports.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut document = Map::new();
        document.insert(condition::IMPORTS.to_owned(), Value::Object(imports));
        let mut items = Map::new();
        for path in reads.iter().filter(|path| path.first() == Some(&condition::ITEMS)) {
            for name in path.get(1).map_or_else(|| item.depends_on(), |name| vec![*name]) {
                if !items.contains_key(name) {
                    items.insert(name.to_owned(), self.results(name, asked).await?);
                }
            }
        }
        document.insert(condition::ITEMS.to_owned(), Value::Object(items));
        if reads.iter().any(|path| path.first() == Some(&condition::ITEM)) {
            document.insert(condition::ITEM.to_owned(), self.results(item.name(), asked).await?);
        }
        let own = item.template.target.as_ref().map(|target| target.name.as_str());
        let mut objects = Map::new();
        for (name, object) in &condition.objects {
            match self.object(object, own).await? {
                Ok(value) => objects.insert(name.clone(), value),
                Err(unknown) => return Ok(Err(unknown)),
            };
        }
        document.insert(condition::OBJECTS.to_owned(), Value::Object(objects));
        Ok(Ok(document))
    }

    /// Exports and status of an item.
    async fn results(&self, name: &str, asked: &mut Asked) -> Result<Value, Silence> {
        let objects = self.objects();
        let object = objects.iter().find(|object| super::items::item_name(object) == name && !object.is_deleting());
        let Some(object) = object else { return Ok(json!({"exports": null, "status": null})) };
        let finished = object.finished_job(&self.job);
        let exports = match asked.exports.get(name) {
            Some(exports) if finished => exports.clone(),
            _ => {
                let namespace = self.draft.namespace().unwrap_or_default();
                let exports = self.exports_of(&namespace, object).await.map_err(silence)?;
                asked.exports.insert(name.to_owned(), exports.clone());
                exports
            }
        };
        Ok(json!({"exports": exports, "status": object.status}))
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
            Sight::Unknown => Err(Answered::unknown("ObjectNotKnownYet", format!("{kind} {shown} is not known yet"))),
            Sight::Blind(why) => {
                let message = format!("{kind} {shown} cannot be watched on {on}: {why}", on = on_name(&on));
                Err(Answered::unknown("ObjectNotVisible", message))
            }
        })
    }

    async fn is_defined(&self, definition: &Definition, own: Option<&str>) -> Result<Answered, Silence> {
        let on = cluster(definition.target.as_deref(), own)?;
        Ok(match self.clusters.definitions(&on).await.map_err(silence)? {
            Ok(known) => condition::is_defined(definition, known.iter().map(AsRef::as_ref)),
            Err(Sight::Blind(why)) => {
                let message = format!("CustomResourceDefinitions cannot be watched on {on}: {why}", on = on_name(&on));
                Answered::unknown("ObjectNotVisible", message)
            }
            Err(Sight::Unknown | Sight::Absent | Sight::Present(_)) => {
                Answered::unknown("ObjectNotKnownYet", "the definitions of the cluster are not known yet")
            }
        })
    }

    /// What a look that goes on has to say beside what it waits for: when a condition is given up, and what did not go well.
    pub(super) fn with_conditions<T>(&mut self, outcome: Step<T>, asked: Asked) -> Step<T> {
        self.left = asked.left;
        match (outcome, asked.again) {
            (Err(Halt::Wait(wait)), again) => {
                let wait = asked.left.into_iter().fold(wait, |wait, left| wait.within(left));
                Err(match again {
                    Some(failure) => Halt::Retry(failure),
                    None => Halt::Wait(wait),
                })
            }
            (outcome, _) => outcome,
        }
    }
}

/// The Execution that waits on its clusters.
pub(super) fn waiter(key: &Key) -> Waiter {
    Waiter { kind: "Execution", namespace: key.namespace.clone(), name: key.name.clone() }
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
