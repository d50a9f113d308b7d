//! Conditions of items (WF-02 … WF-09): how they are written, what is wrong with them before anything runs, and what they
//! answer.
//!
//! A condition asks an expression, a component, or whether a cluster defines a kind. It may name live objects. Its answer is
//! one of three, and doubt is one of them (C-07).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use orangery_expression::operators;
pub use orangery_expression::{Expression, Type};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ImportDefinition, ImportKind};
use orangery_core::{
    duration::{self, deadline},
    error::{Code, Failure},
    workflow::{Answer, Answers, Point},
};

/// One condition as it is written. `T` is how a target is named: by its Target object, if nothing else is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateExpression<T = String> {
    /// Holds where this expression in CEL does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Holds where a component says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentTest>,
    /// Holds where a cluster defines a kind (WF-06).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crd_present: Option<Definition<T>>,
    /// Live objects, by the names that the expression or the component knows them by.
    #[serde(default = "BTreeMap::new", skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<String, NamedObject<T>>,
}

/// A condition that a component answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComponentTest {
    /// The condition type that a registration claims.
    #[serde(rename = "type")]
    pub type_: String,
    /// What the component is told.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub config: Value,
}

/// A kind that a CustomResourceDefinition defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition<T = String> {
    /// The cluster; the item's own target where it is not said.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
    /// The API group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    #[serde(default)]
    pub kind: String,
    /// A version that has to be served; any where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedObject<T = String> {
    /// The cluster; the item's own target where it is not said.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// The kind.
    #[serde(default)]
    pub kind: String,
    /// The namespace; empty for a kind that has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(default)]
    pub name: String,
}

fn none<T>() -> Option<T> {
    None
}

/// All conditions of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct GateExpressions<T = String> {
    by_point: BTreeMap<Point, GateExpression<T>>,
}

/// What a condition asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test<'a, T> {
    /// An expression.
    Expression(&'a str),
    /// A component.
    Component(&'a ComponentTest),
    /// Whether a cluster defines a kind.
    CrdPresent(&'a Definition<T>),
}

impl<T> GateExpression<T> {
    /// Of an expression over what is known without live objects.
    pub fn expression(source: &str) -> Self {
        Self { expression: Some(source.to_owned()), component: None, crd_present: None, objects: BTreeMap::new() }
    }

    /// What it asks; it has to ask exactly one thing.
    pub fn test(&self) -> Result<Test<'_, T>, String> {
        match (&self.expression, &self.component, &self.crd_present) {
            (Some(source), None, None) => Ok(Test::Expression(source)),
            (None, Some(component), None) => Ok(Test::Component(component)),
            (None, None, Some(definition)) => Ok(Test::CrdPresent(definition)),
            _ => Err("it needs exactly one of expression, component and crdPresent".to_owned()),
        }
    }

    /// Whether its answer can change while nothing of the item's own job does: it looks at a cluster.
    pub fn looks_at_clusters(&self) -> bool {
        self.crd_present.is_some() || !self.objects.is_empty()
    }

    /// The same condition with its targets named otherwise.
    pub fn try_map<U, E>(self, mut name: impl FnMut(T) -> Result<U, E>) -> Result<GateExpression<U>, E> {
        let crd_present = match self.crd_present {
            None => None,
            Some(Definition { target, group, kind, version }) => {
                Some(Definition { target: target.map(&mut name).transpose()?, group, kind, version })
            }
        };
        let mut objects = BTreeMap::new();
        for (key, NamedObject { target, api_version, kind, namespace, name: object }) in self.objects {
            let target = target.map(&mut name).transpose()?;
            objects.insert(key, NamedObject { target, api_version, kind, namespace, name: object });
        }
        Ok(GateExpression { expression: self.expression, component: self.component, crd_present, objects })
    }
}

impl<T> Default for GateExpressions<T> {
    fn default() -> Self {
        Self { by_point: BTreeMap::new() }
    }
}

impl<T> GateExpressions<T> {
    /// Of those that are set.
    pub fn of(set: impl IntoIterator<Item = (Point, Option<GateExpression<T>>)>) -> Self {
        Self { by_point: set.into_iter().filter_map(|(point, condition)| Some((point, condition?))).collect() }
    }

    /// The condition at a point.
    pub fn get(&self, point: Point) -> Option<&GateExpression<T>> {
        self.by_point.get(&point)
    }

    /// All that are set, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = (Point, &GateExpression<T>)> {
        self.by_point.iter().map(|(point, condition)| (*point, condition))
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.by_point.is_empty()
    }

    /// Whether one of them decides if the item is reconciled at all.
    pub fn decide(&self) -> bool {
        self.by_point.contains_key(&Point::Activate) || self.by_point.contains_key(&Point::When)
    }

    /// The same conditions with their targets named otherwise.
    pub fn try_map<U, E>(self, mut name: impl FnMut(T) -> Result<U, E>) -> Result<GateExpressions<U>, E> {
        let mut by_point = BTreeMap::new();
        for (point, condition) in self.by_point {
            by_point.insert(point, condition.try_map(&mut name)?);
        }
        Ok(GateExpressions { by_point })
    }

    /// The targets that they name.
    pub fn targets(&self) -> impl Iterator<Item = &T> {
        self.by_point.values().flat_map(|condition| {
            let objects = condition.objects.values().filter_map(|object| object.target.as_ref());
            objects.chain(condition.crd_present.iter().filter_map(|definition| definition.target.as_ref()))
        })
    }

    /// The paths below the imports that they read, each from its name on; an empty one stands for all of them, as a component
    /// or an expression reads them that does not name what it reads.
    fn import_paths(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for (_, condition) in self.iter() {
            if condition.component.is_some() {
                all.push(Vec::new());
            }
            let Some(Ok(expression)) = condition.expression.as_deref().map(compile) else { continue };
            let paths = expression.reads().into_iter().filter(|path| path.first() == Some(&IMPORTS));
            all.extend(paths.map(|path| path.into_iter().skip(1).map(str::to_owned).collect()));
        }
        all
    }
}

/// What conditions read of import values, and no more: others see where it is kept. Of Targets never the configuration, by
/// which their clusters are reached (C-26).
pub fn read_imports<'c>(
    conditions: impl IntoIterator<Item = &'c GateExpressions>,
    given: &Map<String, Value>,
    definitions: &[ImportDefinition],
) -> BTreeMap<String, Value> {
    let paths: Vec<Vec<String>> = conditions.into_iter().flat_map(GateExpressions::import_paths).collect();
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    let targets = target_imports(definitions);
    let of_targets = |value: &mut Value| {
        if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("config");
        }
    };
    let mut read = BTreeMap::new();
    for (name, value) in given {
        let below = paths.iter().filter(|path| path.first().is_none_or(|first| first == name));
        let below: Vec<&[String]> = below.map(|path| path.get(1..).unwrap_or_default()).collect();
        if below.is_empty() {
            continue;
        }
        let mut kept = only(value, &below);
        match targets.get(name.as_str()) {
            Some(TargetCardinality::One) => of_targets(&mut kept),
            Some(TargetCardinality::Several) => match &mut kept {
                Value::Array(list) => list.iter_mut().for_each(of_targets),
                Value::Object(map) => map.values_mut().for_each(of_targets),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            },
            None => {}
        }
        read.insert(name.clone(), kept);
    }
    read
}

/// The members of a value that paths lead to.
fn only(value: &Value, paths: &[&[String]]) -> Value {
    match value {
        Value::Object(members) if paths.iter().all(|path| !path.is_empty()) => {
            let mut kept = Map::new();
            for (name, value) in members {
                let below: Vec<&[String]> = paths
                    .iter()
                    .filter(|path| path.first() == Some(name))
                    .map(|path| path.get(1..).unwrap_or_default())
                    .collect();
                if !below.is_empty() {
                    kept.insert(name.clone(), only(value, &below));
                }
            }
            Value::Object(kept)
        }
        value => value.clone(),
    }
}

enum TargetCardinality {
    One,
    Several,
}

fn target_imports(definitions: &[ImportDefinition]) -> BTreeMap<&str, TargetCardinality> {
    let mut targets = BTreeMap::new();
    for ImportDefinition { name, kind, conditional, .. } in definitions {
        match kind {
            ImportKind::Data { .. } => {}
            ImportKind::Target { .. } => drop(targets.insert(name.as_str(), TargetCardinality::One)),
            ImportKind::TargetList { .. } | ImportKind::TargetMap { .. } => {
                targets.insert(name.as_str(), TargetCardinality::Several);
            }
        }
        targets.extend(target_imports(conditional));
    }
    targets
}

/// The variable with the imports of the blueprint.
pub const IMPORTS: &str = "imports";
/// The variable with what an item depends on: exports and status of each, by name.
pub const ITEMS: &str = "items";
/// The variable with an item's own exports and status.
pub const ITEM: &str = "item";
/// The variable with live objects, by the names of the condition.
pub const OBJECTS: &str = "objects";

/// What can be said of the values that conditions of one item read, before there are any.
#[derive(Clone, Debug, Default)]
pub struct ConditionScope<'a> {
    /// The imports with their types; `None` where it is not known which there are.
    pub imports: Option<BTreeMap<String, Type>>,
    /// The names of the items that have to be ready before this one; `None` where it is not known which these are.
    pub predecessors: Option<BTreeSet<&'a str>>,
}

/// The type of a value, as far as another one at its place will have it too: of maps only that they are maps.
pub fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::Text,
        Value::Array(_) => Type::List(Box::default()),
        Value::Object(_) => Type::Map,
    }
}

/// The type that a JSON schema asks for.
pub fn type_by(schema: &Value) -> Type {
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => Type::Bool,
        Some("integer" | "number") => Type::Number,
        Some("string") => Type::Text,
        Some("array") => Type::List(Box::new(schema.get("items").map(type_by).unwrap_or_default())),
        Some("object") => Type::Map,
        Some(_) | None => Type::Any,
    }
}

/// The imports that expressions may name, with their types: those that are defined, and what import executions add.
pub fn import_types(definitions: &[ImportDefinition], values: &Map<String, Value>) -> BTreeMap<String, Type> {
    fn defined(definitions: &[ImportDefinition], types: &mut BTreeMap<String, Type>) {
        for ImportDefinition { name, kind, conditional, .. } in definitions {
            let of = match kind {
                ImportKind::Data { schema } => type_by(schema),
                ImportKind::Target { .. } | ImportKind::TargetMap { .. } => Type::Map,
                ImportKind::TargetList { .. } => Type::List(Box::new(Type::Map)),
            };
            types.insert(name.clone(), of);
            defined(conditional, types);
        }
    }
    let mut types: BTreeMap<String, Type> = values.iter().map(|(name, value)| (name.clone(), type_of(value))).collect();
    defined(definitions, &mut types);
    types
}

/// The most operators of an expression.
const MOST_OPERATORS: usize = 300;

/// An expression, or why it is none, in one sentence.
pub fn compile(source: &str) -> Result<Expression, String> {
    let operators = operators(source);
    if operators > MOST_OPERATORS {
        return Err(format!("it has {operators} operators, {MOST_OPERATORS} are allowed"));
    }
    Expression::compile(source).map_err(|told| {
        // Of several errors the first; `ERROR: <input>:1:5: …`
        let first = told.lines().next().unwrap_or_default();
        let first = first.strip_prefix("compilation failed: ").unwrap_or(first);
        match first.strip_prefix("ERROR: <input>:").and_then(|rest| {
            let (line, rest) = rest.split_once(':')?;
            let (column, why) = rest.split_once(": ")?;
            Some(format!("line {line}, column {column}: {why}"))
        }) {
            Some(placed) => placed,
            None => first.to_owned(),
        }
    })
}

/// What is wrong with a condition whatever the values are: a part of a sentence.
pub fn check<T>(condition: &GateExpression<T>, point: Point, around: &ConditionScope<'_>) -> Result<(), String> {
    for (key, NamedObject { api_version, kind, name, .. }) in &condition.objects {
        let missing = [("apiVersion", api_version), ("kind", kind), ("name", name)];
        if let Some((field, _)) = missing.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("objects.{key} has no {field}; set it"));
        }
    }
    match condition.test()? {
        Test::CrdPresent(definition) => match (definition.group.is_empty(), definition.kind.is_empty()) {
            (true, _) => Err("crdPresent has no group; set it".to_owned()),
            (_, true) => Err("crdPresent has no kind; set it".to_owned()),
            (false, false) => Ok(()),
        },
        Test::Component(component) if component.type_.is_empty() => Err("component has no type; set it".to_owned()),
        Test::Component(_) => Ok(()),
        Test::Expression(source) => {
            let expression = compile(source).map_err(|why| told(source, &why))?;
            expression.check(&variables(condition, point, around)).map_err(|why| told(source, &why))
        }
    }
}

/// The first condition of an item that cannot be asked, and why.
pub fn check_all<T>(conditions: &GateExpressions<T>, around: &ConditionScope<'_>) -> Result<(), (Point, String)> {
    conditions.iter().try_for_each(|(point, condition)| check(condition, point, around).map_err(|why| (point, why)))
}

fn told(source: &str, why: &str) -> String {
    format!("the expression `{}` cannot be used: {why}", shown(source))
}

/// As much of an expression as a message has room for.
fn shown(source: &str) -> String {
    const LONGEST: usize = 120;
    let line = source.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn variables<T>(condition: &GateExpression<T>, point: Point, around: &ConditionScope<'_>) -> Vec<(&'static str, Type)> {
    let any = |name: &str| (name.to_owned(), Type::Any);
    let results = || Type::Members([any("exports"), any("status")].into());
    let imports = around.imports.clone().map_or(Type::Map, Type::Members);
    let mut variables = vec![(IMPORTS, imports)];
    // In a deletion nobody's exports are known any more.
    if point != Point::Deleted {
        let items = around.predecessors.as_ref().map_or(Type::Map, |names| {
            Type::Members(names.iter().map(|name| ((*name).to_owned(), results())).collect())
        });
        variables.push((ITEMS, items));
    }
    if point == Point::Ready {
        variables.push((ITEM, results()));
    }
    variables.push((OBJECTS, Type::Members(condition.objects.keys().map(|name| any(name)).collect())));
    variables
}

/// What came of asking a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Why, as one word.
    pub reason: String,
    /// Why, as one sentence.
    pub message: String,
    /// More, for programs (WF-08).
    pub details: Option<Value>,
}

impl Answered {
    /// An answer with its reason.
    pub fn new(answer: Answer, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { answer, reason: reason.into(), message: message.into(), details: None }
    }

    /// Nobody can tell, and why.
    pub fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Answer::Unknown, reason, message)
    }
}

/// Whether an expression is answered by imports alone: whatever happens in a job, it says the same.
pub fn reads_imports_alone<T>(condition: &GateExpression<T>, expression: &Expression) -> bool {
    !condition.looks_at_clusters() && expression.reads().iter().all(|path| path.first() == Some(&IMPORTS))
}

/// What an expression says of a document. An evaluation that fails answers nothing (C-07).
pub fn evaluate(expression: &Expression, document: &Map<String, Value>) -> Answered {
    let source = shown(expression.source());
    match expression.holds_of(document) {
        Ok(true) => Answered::new(Answer::Met, "ExpressionHolds", format!("`{source}` holds")),
        Ok(false) => Answered::new(Answer::NotMet, "ExpressionDoesNotHold", format!("`{source}` does not hold")),
        Err(why) => Answered::unknown("EvaluationFailed", format!("`{source}` cannot be evaluated: {why}")),
    }
}

/// Whether a CustomResourceDefinition among these defines a kind.
pub fn is_defined<'a, T>(definition: &Definition<T>, known: impl IntoIterator<Item = &'a Value>) -> Answered {
    let Definition { group, kind, version, .. } = definition;
    let shown = if version.is_empty() { format!("{kind}.{group}") } else { format!("{kind}.{version}.{group}") };
    fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
    let of_kind = |crd: &&Value| text(crd, "/spec/group") == group && text(crd, "/spec/names/kind") == kind;
    let Some(crd) = known.into_iter().find(of_kind) else {
        return Answered::new(Answer::NotMet, "CrdAbsent", format!("no CustomResourceDefinition defines {shown}"));
    };
    let list = |pointer: &str| crd.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let serves = |one: &Value| one.get("served") != Some(&Value::Bool(false));
    let wanted = |one: &Value| version.is_empty() || one.get("name").and_then(Value::as_str) == Some(version);
    if !list("/spec/versions").any(|one| serves(one) && wanted(one)) {
        return Answered::new(
            Answer::NotMet,
            "CrdVersionAbsent",
            format!("the definition of {kind}.{group} does not serve {version}"),
        );
    }
    let established = |one: &Value| {
        one.get("type").and_then(Value::as_str) == Some("Established")
            && one.get("status").and_then(Value::as_str) == Some("True")
    };
    if list("/status/conditions").any(established) {
        Answered::new(Answer::Met, "CrdPresent", format!("{shown} is defined"))
    } else {
        Answered::unknown("CrdNotEstablished", format!("{shown} is defined, but not served yet"))
    }
}

/// What is remembered of a condition during a job, and shown (WF-09).
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// What it answered last.
    pub answered: Answered,
    /// Since when it has answered so.
    pub since: Timestamp,
    /// When it was asked first in this job: the time that it is waited for counts from here.
    pub asked: Timestamp,
}

impl GateRecord {
    /// The record after another answer.
    pub fn following(before: Option<&GateRecord>, answered: Answered, now: Timestamp) -> Self {
        match before {
            Some(before) if before.answered.answer == answered.answer => {
                Self { answered, since: before.since, asked: before.asked }
            }
            Some(before) => Self { answered, since: now, asked: before.asked },
            // The status has whole seconds: rounded up, nobody is given up before his time.
            None => Self { answered, since: now, asked: whole_second(now) },
        }
    }
}

fn whole_second(time: Timestamp) -> Timestamp {
    let second = if time.subsec_nanosecond() > 0 { time.as_second() + 1 } else { time.as_second() };
    Timestamp::from_second(second).unwrap_or(time)
}

/// What an item's conditions say in this job: those that are set and were not asked are unknown.
pub fn answers<T>(conditions: &GateExpressions<T>, records: &BTreeMap<Point, GateRecord>) -> Answers {
    let of = |point: Point| match (conditions.get(point), records.get(&point)) {
        (None, _) => Answer::Met,
        (Some(_), None) => Answer::Unknown,
        (Some(_), Some(record)) => record.answered.answer,
    };
    Answers {
        activate: of(Point::Activate),
        when: of(Point::When),
        ready: of(Point::Ready),
        deleted: of(Point::Deleted),
    }
}

/// Whether a condition is not asked again in this job: an item that was decided upon stays with it, one that was ready or
/// gone is not waited for again, however often what the condition looks at changes.
pub fn is_settled(point: Point, record: &GateRecord) -> bool {
    match (point, record.answered.answer) {
        (Point::Activate | Point::When, Answer::Met | Answer::NotMet) => true,
        (Point::Ready | Point::Deleted, Answer::Met) => true,
        (_, Answer::Unknown) | (Point::Ready | Point::Deleted, Answer::NotMet) => false,
    }
}

/// Why a condition that does not let its item go on is not waited for any longer; `None` while it is. `may_change`: whether
/// its answer can become another one without anything of the item's own job. `item` names it, as in `deploy item web`; `limit`
/// is its timeout.
pub fn given_up(
    item: &str,
    point: Point,
    record: &GateRecord,
    may_change: bool,
    limit: Option<Duration>,
    now: Timestamp,
) -> Option<Failure> {
    if is_settled(point, record) {
        return None;
    }
    let said = &record.answered.message;
    let failure =
        |reason: &str, why: String| Failure::new("Progressing", reason, format!("{point} of {item} {why}: {said}"));
    if !may_change {
        let why = match record.answered.answer {
            Answer::Unknown => "cannot be told, and it looks at nothing that could change",
            Answer::Met | Answer::NotMet => "is not met, and it looks at nothing that could change",
        };
        return Some(failure("ConditionFailed", why.to_owned()).with_code(Code::ConfigurationProblem));
    }
    let limit = limit?;
    if now < deadline(record.asked, Some(limit))? {
        return None;
    }
    let why = format!("was not met within its timeout of {}", duration::shown(limit));
    Some(failure("ConditionTimeout", why).with_code(Code::Timeout))
}

#[cfg(test)]
mod tests;
