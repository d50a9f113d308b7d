//! Gate expressions of deploy items on the wire: what is asked, and what was answered. Not in the original (WF-02 …
//! WF-09).

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_blueprint::gate::{GateExpression, GateRecord, GateResult};
use orangery_core::{
    error::cut,
    workflow::{Answer, GateKind},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema;

/// What the gate expressions of one deploy item answered in the last job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemStatus {
    /// The item's name in the spec.
    pub name: String,
    /// Those that were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ItemGate>,
}

/// What a gate expression answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemGate {
    /// `activateWhen`, `when`, `readyWhen` or `deletedWhen`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False`, or `Unknown` where nobody can tell: such a gate expression is waited for, and deletes nothing.
    pub status: String,
    /// A CamelCase word.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
    /// More, for programs; only components give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub details: Option<Value>,
    /// When the answer changed last.
    #[schemars(with = "schema::DateTime")]
    pub last_transition_time: Time,
    /// When it was asked first in the job; the item's timeout counts from here.
    #[schemars(with = "schema::DateTime")]
    pub asked_time: Time,
}

impl ItemGate {
    fn of(gate: GateKind, record: &GateRecord) -> Self {
        let GateResult { answer, reason, message, details } = record.answered.clone();
        Self {
            type_: gate.name().to_owned(),
            status: status(answer).to_owned(),
            reason,
            message,
            details,
            last_transition_time: Time(record.since),
            asked_time: Time(record.asked),
        }
    }

    fn record(&self) -> Option<(GateKind, GateRecord)> {
        let answered = GateResult {
            answer: answer(&self.status)?,
            reason: self.reason.clone(),
            message: self.message.clone(),
            details: self.details.clone(),
        };
        let record = GateRecord { answered, since: self.last_transition_time.0, asked: self.asked_time.0 };
        Some((GateKind::named(&self.type_)?, record))
    }
}

/// An answer as gate expressions of Kubernetes have it.
fn status(answer: Answer) -> &'static str {
    match answer {
        Answer::Met => "True",
        Answer::NotMet => "False",
        Answer::Unknown => "Unknown",
    }
}

fn answer(status: &str) -> Option<Answer> {
    [Answer::Met, Answer::NotMet, Answer::Unknown].into_iter().find(|answer| self::status(*answer) == status)
}

/// What is remembered of the gate expressions of each item, by its name.
pub type Records = BTreeMap<String, BTreeMap<GateKind, GateRecord>>;

/// What is remembered, from the status.
pub fn records(items: &[ItemStatus]) -> Records {
    items.iter().map(|item| (item.name.clone(), read_answers(&item.conditions))).collect()
}

/// What is remembered of the gate expressions of one item.
pub(crate) fn read_answers(gates: &[ItemGate]) -> BTreeMap<GateKind, GateRecord> {
    gates.iter().filter_map(ItemGate::record).collect()
}

/// What is remembered of the gate expressions of one item, for a status.
pub(crate) fn write_answers(records: &BTreeMap<GateKind, GateRecord>) -> Vec<ItemGate> {
    records.iter().map(|(gate, record)| ItemGate::of(*gate, record)).collect()
}

/// The least of a message, in bytes, that is shown where answers have shares; with less room there is none.
const LEAST_SHARE: usize = 64;

/// The most bytes of the messages and the details of all answers in a status: beyond it each has an equal share (C-144).
const MOST_ANSWERED_BYTES: usize = 256 << 10;

/// The same records with answers for which a status has room. What an answer is, and since when, stays.
pub(crate) fn bounded(records: &Records) -> Cow<'_, Records> {
    let details_of = |answered: &GateResult| answered.details.as_ref().map_or(0, |details| details.to_string().len());
    let bytes_of = |answered: &GateResult| answered.message.len() + details_of(answered);
    let answers = || records.values().flat_map(BTreeMap::values).map(|record| &record.answered);
    if answers().map(bytes_of).sum::<usize>() <= MOST_ANSWERED_BYTES {
        return Cow::Borrowed(records);
    }
    let share = MOST_ANSWERED_BYTES / 2 / answers().count().max(1);
    let mut records = records.clone();
    for record in records.values_mut().flat_map(BTreeMap::values_mut) {
        let answered = &mut record.answered;
        if share < LEAST_SHARE {
            (answered.message, answered.details) = (String::new(), None);
            continue;
        }
        answered.message = cut(std::mem::take(&mut answered.message), share);
        let bytes = details_of(answered);
        if bytes > share {
            answered.details = Some(json!({"bytesLeftOut": bytes}));
        }
    }
    Cow::Owned(records)
}

/// What is remembered, for the status.
pub fn write_records(records: &Records) -> Vec<ItemStatus> {
    let records = bounded(records);
    let items = records.iter().filter(|(_, records)| !records.is_empty());
    items.map(|(name, records)| ItemStatus { name: name.clone(), conditions: write_answers(records) }).collect()
}

/// The schema of a [`GateExpression`]: exactly one of three.
pub(crate) fn gate_schema(_: &mut SchemaGenerator) -> Schema {
    let text = |description: &str| json!({"type": "string", "description": description});
    let target = text("The Target object of the cluster; the item's own target where it is not said.");
    json_schema!({
        "type": "object",
        "description": "A gate expression: exactly one of expression, component and crdPresent. Its answer is yes, no or unknown; unknown waits, and never deletes.",
        "properties": {
            "expression": text("Holds where this expression in CEL does. It may name imports, items (what the item depends on), item (its own exports and status, in readyWhen) and objects."),
            "component": {
                "type": "object",
                "description": "Holds where a component says so.",
                "properties": {
                    "type": text("The gate type that a registration claims."),
                    "config": {"description": "What the component is told.", "x-kubernetes-preserve-unknown-fields": true},
                },
                "required": ["type"],
            },
            "crdPresent": {
                "type": "object",
                "description": "Holds where a cluster defines a kind.",
                "properties": {
                    "target": target.clone(),
                    "group": text("The API group."),
                    "kind": text("The kind."),
                    "version": text("A version that has to be served; any where it is empty."),
                },
                "required": ["group", "kind"],
            },
            "objects": {
                "type": "object",
                "description": "Live objects, by the names that the expression or the component knows them by. One that does not exist is null. Secrets come without their data.",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "target": target,
                        "apiVersion": text("Group and version."),
                        "kind": text("The kind."),
                        "namespace": text("The namespace; empty for a kind that has none."),
                        "name": text("The name."),
                    },
                    "required": ["apiVersion", "kind", "name"],
                },
            },
        },
    })
}

/// A gate expression on the wire.
pub type GateSpec = GateExpression<String>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::DeployItemTemplate;

    #[test]
    fn c_144_limits_status_the_answers_of_many_expressions_share_their_bytes() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let record = |message: usize, details: Option<Value>| {
            let answered = GateResult { details, ..GateResult::new(Answer::NotMet, "R", "m".repeat(message)) };
            GateRecord { answered, since: at, asked: at }
        };
        let of = |count: usize, record: &GateRecord| -> Records {
            (0..count).map(|number| (format!("{number:04}"), [(GateKind::Ready, record.clone())].into())).collect()
        };
        let few = of(256, &record(1 << 10, None));
        assert_eq!(self::records(&write_records(&few)), few, "so many have room");
        let many = of(1_024, &record(1 << 10, Some(json!("d".repeat(4 << 10)))));
        let expected = GateResult {
            details: Some(json!({"bytesLeftOut": (4 << 10) + 2})),
            ..GateResult::new(Answer::NotMet, "R", format!("{} [… 896 more bytes]", "m".repeat(128)))
        };
        let written = write_records(&many);
        assert_eq!(self::records(&written), of(1_024, &GateRecord { answered: expected, since: at, asked: at }));
        assert_eq!(write_records(&self::records(&written)), written, "what was read back stays as it is");
        let very_many = of(4_096, &record(1 << 10, Some(json!("d"))));
        assert_eq!(self::records(&write_records(&very_many)), of(4_096, &record(0, None)));
    }

    #[test]
    fn wf_09_what_was_answered_is_read_back_from_the_status() {
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        let answered = GateResult {
            details: Some(json!({"value": 3})),
            ..GateResult::new(Answer::Unknown, "TooEarly", "the metric has no value yet")
        };
        let record = GateRecord { answered, since: at(2), asked: at(1) };
        let other = GateRecord { answered: GateResult::new(Answer::Met, "R", "m"), since: at(3), asked: at(3) };
        let records: Records = [
            ("db".to_owned(), [(GateKind::Ready, record), (GateKind::When, other)].into()),
            ("web".to_owned(), BTreeMap::new()),
        ]
        .into();
        let written = write_records(&records);
        let expected = json!([{"name": "db", "conditions": [
            {
                "type": "when", "status": "True", "reason": "R", "message": "m",
                "lastTransitionTime": "1970-01-01T00:00:03Z", "askedTime": "1970-01-01T00:00:03Z",
            },
            {
                "type": "readyWhen", "status": "Unknown", "reason": "TooEarly", "message": "the metric has no value yet",
                "details": {"value": 3},
                "lastTransitionTime": "1970-01-01T00:00:02Z", "askedTime": "1970-01-01T00:00:01Z",
            },
        ]}]);
        assert_eq!(serde_json::to_value(&written).unwrap(), expected);
        let mut read = self::records(&written);
        read.insert("web".to_owned(), BTreeMap::new());
        assert_eq!(read, records);
    }

    #[test]
    fn an_item_has_its_gate_expressions_on_the_wire() {
        let json = json!({
            "name": "a", "type": "t",
            "activateWhen": {"crdPresent": {"group": "g", "kind": "K"}},
            "when": {"expression": "imports.a"},
            "readyWhen": {
                "component": {"type": "c", "config": {"x": 1}},
                "objects": {"o": {"target": "t", "apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "s"}},
            },
        });
        let item: DeployItemTemplate = serde_json::from_value(json.clone()).unwrap();
        let plain: DeployItemTemplate = serde_json::from_value(json!({"name": "a", "type": "t"})).unwrap();
        assert_eq!(serde_json::to_value(plain.with_gates(&item.gates())).unwrap(), json);
    }
}
