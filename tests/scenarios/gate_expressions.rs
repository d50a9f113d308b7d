//! An Execution whose deploy items have gate expressions: the core says which to ask, and they are evaluated over the values of
//! the script.
//!
//! | command | means |
//! |---|---|
//! | `item NAME [after A B …]` | declares an item |
//! | `gate NAME POINT EXPRESSION` | gives it a gate expression |
//! | `gate NAME POINT of OBJECT EXPRESSION` | the same over a live object, `objects.OBJECT` |
//! | `gate NAME POINT defined GROUP KIND` | asks whether the cluster defines a kind |
//! | `keep NAME`, `timeout NAME SECONDS` | what it deployed stays; how long its gates are waited for |
//! | `import NAME JSON`, `object NAME JSON` | an import; a live object, null while it does not exist |
//! | `unreachable`, `reachable` | the cluster of the live objects does not answer, or does again |
//! | `define GROUP KIND`, `undefine GROUP KIND` | CustomResourceDefinitions of the cluster |
//! | `policy …`, `job ID`, `delete ID`, `tick` | as for Executions; `interrupt` ends the running job |
//! | `finish NAME ok [JSON]`, `finish NAME failed MESSAGE` | a deployer's answer, with exports |
//! | `gone NAME`, `clock SECONDS` | an object that vanished; time that passes |

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use orangery_blueprint::gate::{
    self, Definition, ExpressionScope, GateExpression, GateExpressions, GateRecord, GateResult, NamedObject, Test,
};
use orangery_core::{
    dag::{Dag, Direction},
    error::Failure,
    job::{JobIds, interrupted},
    phase::{execution::Execution, item::Item as ItemPhase},
    plan::execution::{self as plan, ItemState, ObjectState},
    step::Halt,
    workflow::{Answer, GateKind, WorkflowPolicy},
};
use serde_json::{Map, Value, json};

use crate::{
    execution::{Job, set_policy},
    player::{Player, Report, check},
};

/// One deploy item of the script.
#[derive(Default)]
struct Item {
    name: String,
    after: Vec<String>,
    gates: BTreeMap<GateKind, GateExpression>,
    keep: bool,
    timeout: Option<Duration>,
    /// The object, and one of it that is being deleted.
    object: Option<ObjectState>,
    going: Option<ObjectState>,
    exports: Value,
    /// What its gate expressions answered in this job.
    records: BTreeMap<GateKind, GateRecord>,
}

impl Item {
    fn gates(&self) -> GateExpressions {
        GateExpressions::of(self.gates.iter().map(|(kind, gate)| (*kind, Some(gate.clone()))))
    }

    fn depends_on(&self) -> Vec<&str> {
        self.after.iter().map(String::as_str).collect()
    }
}

#[derive(Default)]
struct GatedExecution {
    items: Vec<Item>,
    imports: Map<String, Value>,
    objects: BTreeMap<String, Value>,
    unreachable: bool,
    definitions: Vec<Value>,
    now: Timestamp,
    interrupted: bool,
    job: Job,
    policy: WorkflowPolicy,
    /// Gate expressions that are not waited for any longer in this look.
    given_up: BTreeMap<String, (GateKind, Failure)>,
    /// The time until the first one is given up.
    left: Option<Duration>,
    /// A cluster that could not be asked in this look.
    unanswered: Option<Failure>,
}

impl Player for GatedExecution {
    fn command(&mut self, words: &[&str], report: &mut Report) {
        match words {
            ["item", name, rest @ ..] => {
                let after = rest.iter().skip(1).map(|name| (*name).to_owned()).collect();
                self.items.push(Item { name: (*name).to_owned(), after, ..Item::default() });
            }
            ["gate", name, kind, gate @ ..] => {
                let kind = GateKind::named(kind).expect("a gate of this name");
                let gate = gate_of(gate);
                drop(self.item(name).gates.insert(kind, gate));
            }
            ["keep", name] => self.item(name).keep = true,
            ["timeout", name, seconds] => self.item(name).timeout = Some(Duration::from_secs(number(seconds))),
            ["import", name, value @ ..] => drop(self.imports.insert((*name).to_owned(), value_of(value))),
            ["object", name, value @ ..] => drop(self.objects.insert((*name).to_owned(), value_of(value))),
            ["unreachable"] => self.unreachable = true,
            ["reachable"] => self.unreachable = false,
            ["define", group, kind] => self.definitions.push(definition(group, kind)),
            ["undefine", group, kind] => self.definitions.retain(|known| *known != definition(group, kind)),
            ["policy", policy @ ..] => set_policy(&mut self.policy, policy),
            ["job", id] => self.begin(id, Execution::Init),
            ["delete", id] => self.begin(id, Execution::Deleting),
            ["interrupt"] => self.interrupted = true,
            ["tick"] => self.tick(report),
            ["finish", name, "ok", exports @ ..] => {
                let exports = if exports.is_empty() { Value::Null } else { value_of(exports) };
                self.item(name).exports = exports;
                self.finish(name, None);
            }
            ["finish", name, "failed", message @ ..] => self.finish(name, Some(message.join(" "))),
            ["gone", name] => {
                let item = self.item(name);
                let gone = item.going.take().or_else(|| item.object.take());
                assert!(gone.is_some(), "{name} has no object");
            }
            ["clock", seconds] => {
                let passed = SignedDuration::from_secs(seconds.parse().expect("a number of seconds"));
                self.now = self.now.checked_add(passed).expect("the time is one");
            }
            other => unreachable!("a script has no line {other:?}"),
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn value_of(words: &[&str]) -> Value {
    serde_json::from_str(&words.join(" ")).expect("a JSON value")
}

fn gate_of(words: &[&str]) -> GateExpression {
    match words {
        ["of", object, expression @ ..] => {
            let named = NamedObject {
                target: None,
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: Default::default(),
                name: (*object).into(),
            };
            let objects = [((*object).to_owned(), named)].into();
            GateExpression { objects, ..GateExpression::expression(&expression.join(" ")) }
        }
        ["defined", group, kind] => {
            let definition =
                Definition { target: None, group: (*group).to_owned(), kind: (*kind).into(), version: String::new() };
            GateExpression { expression: None, crd_present: Some(definition), ..GateExpression::expression("") }
        }
        expression => GateExpression::expression(&expression.join(" ")),
    }
}

fn definition(group: &str, kind: &str) -> Value {
    json!({
        "spec": {"group": group, "names": {"kind": kind}, "versions": [{"name": "v1", "served": true}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    })
}

impl GatedExecution {
    fn item(&mut self, name: &str) -> &mut Item {
        self.items.iter_mut().find(|item| item.name == name).expect("an item of this name")
    }

    fn begin(&mut self, id: &str, phase: Execution) {
        self.job.begin(id, phase);
        self.interrupted = false;
        for item in &mut self.items {
            item.records.clear();
        }
        if self.job.is_deleting() {
            return;
        }
        // `Init` makes the objects of those that no gate expression decides about.
        let late = self.late();
        for item in self.items.iter_mut().filter(|item| !late.contains(&item.name) && item.object.is_none()) {
            item.object = Some(new_object(&item.name));
        }
    }

    fn finish(&mut self, name: &str, message: Option<String>) {
        let (deletes, job) = (self.job.is_deleting(), self.job.id.clone());
        let item = self.item(name);
        let backward = deletes || item.going.is_some();
        let object = item.going.as_mut().or(item.object.as_mut()).expect("an object of this name");
        assert_eq!(object.ids.job.as_ref(), Some(&job), "{name} was not triggered");
        object.ids.finished = object.ids.job.clone();
        object.phase = Some(match (&message, backward) {
            (None, _) => ItemPhase::Succeeded,
            (Some(_), true) => ItemPhase::DeleteFailed,
            (Some(_), false) => ItemPhase::Failed,
        });
        object.failure = message.map(|message| Failure::new("Deploy", "Failed", message));
    }

    /// The items whose objects are made when they start.
    fn late(&self) -> Vec<String> {
        let known: Vec<_> =
            self.items.iter().map(|item| (item.name.as_str(), item.depends_on(), item.gates().decide())).collect();
        plan::late(&known).into_iter().map(str::to_owned).collect()
    }

    fn direction(&self) -> Direction {
        if self.job.is_deleting() { Direction::Backward } else { Direction::Forward }
    }

    /// What the plan needs to know of all items.
    fn states(&self) -> Vec<ItemState<'_>> {
        let (late, direction) = (self.late(), self.direction());
        let takes_part = |item: &&Item| {
            let waits = item.gates.contains_key(&GateKind::Deleted) && !item.keep;
            direction == Direction::Forward || item.object.is_some() || waits
        };
        let is_late = |item: &Item| direction == Direction::Forward && late.contains(&item.name);
        self.items.iter().filter(takes_part).map(|item| self.state(item, is_late(item))).collect()
    }

    fn state<'s>(&'s self, item: &'s Item, late: bool) -> ItemState<'s> {
        let mut answers = gate::answers(&item.gates(), &item.records);
        if item.keep {
            // What it deployed stays: nothing waits for that to be gone.
            answers.deleted = Answer::Met;
        }
        let never_made = late && item.object.is_none() && item.going.is_none();
        let stopped = (never_made && self.interrupted).then(|| (GateKind::When, interrupted()));
        ItemState {
            going: item.going.clone(),
            keep: item.keep,
            late,
            answers,
            given_up: self.given_up.get(&item.name).cloned().or(stopped),
            ..ItemState::new(&item.name, item.depends_on(), item.object.clone())
        }
    }

    fn tick(&mut self, report: &mut Report) {
        if self.job.phase().is_none() {
            return report.line("  nothing to do");
        }
        if self.job.phase() == Some(Execution::Init) {
            match self.check() {
                Ok(()) => self.job.enter(Execution::Progressing),
                Err(halt) => return self.job.advance(Err(halt), report),
            }
        }
        self.ask_all(report);
        let (direction, job, policy) = (self.direction(), self.job.id.clone(), self.policy);
        let states = self.states();
        let classes = plan::classify(&states, &job, direction, policy);
        let classes: Vec<String> = classes.iter().map(|(name, class)| format!("{name} {class:?}")).collect();
        let plan = match direction {
            Direction::Forward => plan::progressing(&states, &job, policy),
            Direction::Backward => plan::deleting(&states, &job, policy),
        };
        drop(states);
        report.line(&format!("  classes: {}", classes.join(", ")));
        for name in &plan.trigger {
            report.line(&format!("  trigger {name}"));
            let item = self.item(name);
            let object = item.object.get_or_insert_with(|| new_object(name));
            object.ids = JobIds { job: Some(job.clone()), finished: object.ids.finished.clone() };
        }
        for name in &plan.delete {
            report.line(&format!("  delete {name}"));
            let item = self.item(name);
            let mut object = item.going.take().or_else(|| item.object.take()).expect("an object to delete");
            object.ids = JobIds { job: Some(job.clone()), finished: object.ids.finished.clone() };
            item.going = Some(object);
        }
        let outcome = match (plan.outcome, self.unanswered.take(), self.left.take()) {
            (Err(Halt::Wait(_)), Some(failure), _) => Err(Halt::Retry(failure)),
            (Err(Halt::Wait(wait)), None, Some(left)) => Err(Halt::Wait(wait.within(left))),
            (outcome, _, _) => outcome,
        };
        self.job.advance(outcome, report);
    }

    /// Gate expressions that cannot be asked are refused before anything is triggered.
    fn check(&self) -> Result<(), Halt> {
        let edges = self.items.iter().map(|item| (item.name.as_str(), item.depends_on()));
        let dag = Dag::unchecked(edges).expect("the names of items are unique");
        for item in &self.items {
            let around =
                ExpressionScope { imports: None, predecessors: Some(gate::Predecessors::Of(&dag, &item.name)) };
            gate::check_all(&item.gates(), &around).map_err(|(kind, why)| {
                let message = format!("deploy item {:?}: {kind}: {why}", item.name);
                Halt::Stall(Failure::new("CheckGateExpressions", "InvalidGateExpression", message))
            })?;
        }
        Ok(())
    }

    /// Asks what holds items up, until nothing more is to be asked; each gate expression once in a look.
    fn ask_all(&mut self, report: &mut Report) {
        self.given_up.clear();
        let mut asked: Vec<(String, GateKind)> = Vec::new();
        loop {
            let states = self.states();
            let asks = plan::asks(&states, &self.job.id, self.direction(), self.policy);
            let asks: Vec<(String, GateKind)> = asks.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
            drop(states);
            let open: Vec<(String, GateKind)> = asks.into_iter().filter(|ask| !asked.contains(ask)).collect();
            if open.is_empty() {
                break;
            }
            for (name, kind) in open {
                self.ask(&name, kind, report);
                asked.push((name, kind));
            }
        }
    }

    fn ask(&mut self, name: &str, kind: GateKind, report: &mut Report) {
        if self.interrupted {
            report.line(&format!("  gate {name}/{kind}: interrupted"));
            drop(self.given_up.insert(name.to_owned(), (kind, interrupted())));
            return;
        }
        let gate = self.item(name).gates.get(&kind).cloned().expect("the gate that is asked");
        let answered = self.answer(&gate, name);
        let (now, silent) = (self.now, self.unreachable && gate.looks_at_clusters());
        if silent {
            self.unanswered =
                Some(Failure::new("AskGateExpression", answered.reason.clone(), answered.message.clone()));
        }
        report.line(&format!("  gate {name}/{kind}: {:?} {}: {}", answered.answer, answered.reason, answered.message));
        let item = self.item(name);
        let limit = item.timeout;
        let record = GateRecord::following(item.records.get(&kind), answered, now);
        let whose = format!("deploy item {name}");
        let given_up = gate::given_up(&whose, kind, &record, gate.looks_at_clusters(), limit, now);
        let is_open = !gate::is_settled(kind, &record);
        let asked = record.asked;
        drop(item.records.insert(kind, record));
        match (given_up, limit) {
            (Some(failure), _) => {
                self.unanswered = None;
                drop(self.given_up.insert(name.to_owned(), (kind, failure)));
            }
            (None, Some(limit)) if is_open => {
                let passed = Duration::try_from(now.duration_since(asked)).unwrap_or_default();
                let left = limit.saturating_sub(passed);
                self.left = Some(self.left.map_or(left, |before| before.min(left)));
            }
            (None, _) => {}
        }
    }

    fn answer(&self, gate: &GateExpression, name: &str) -> GateResult {
        if self.unreachable && gate.looks_at_clusters() {
            return GateResult::unknown("ClusterUnreachable", "the cluster does not answer");
        }
        match gate.test().expect("the gate asks one thing") {
            Test::Expression(source) => {
                let expression = gate::compile(source).expect("the gate was checked");
                gate::evaluate(&expression, &self.document(gate, name))
            }
            Test::CrdPresent(definition) => gate::is_defined(definition, &self.definitions),
            Test::Component(component) => unreachable!("no script has the component {component:?}"),
        }
    }

    /// The values that a gate expression reads.
    fn document(&self, gate: &GateExpression, name: &str) -> Map<String, Value> {
        let results = |item: &Item| {
            let phase = item.object.as_ref().and_then(|object| object.phase).map(|phase| phase.to_string());
            json!({"exports": item.exports, "status": {"phase": phase}})
        };
        let known = |name: &str| self.items.iter().find(|item| item.name == name).expect("an item of this name");
        let own = known(name);
        let before: Map<String, Value> = own.after.iter().map(|name| (name.clone(), results(known(name)))).collect();
        let object = |name: &String| (name.clone(), self.objects.get(name).cloned().unwrap_or_default());
        let objects: Map<String, Value> = gate.objects.keys().map(object).collect();
        let document = [
            (gate::IMPORTS, Value::Object(self.imports.clone())),
            (gate::ITEMS, Value::Object(before)),
            (gate::ITEM, results(own)),
            (gate::OBJECTS, Value::Object(objects)),
        ];
        document.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn new_object(name: &str) -> ObjectState {
    ObjectState { object_name: format!("e-{name}-1").into(), ..ObjectState::default() }
}

#[test]
fn gate_expressions_report_what_is_recorded() {
    check::<GatedExecution>("gate_expressions");
}
