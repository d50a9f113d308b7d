//! The sub-installations of a blueprint as a workflow, where gate expressions have a say in it. Not in the original
//! (WF-02 … WF-09).

use std::collections::BTreeMap;

use orangery_blueprint::gate::GateExpressions;
use orangery_core::workflow::GateKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    duration::Duration,
    execution::{FailurePolicy, GateSpec, ItemGate, Records, bounded, gate_schema, read_answers, write_answers},
    schema,
};

/// The sub-installations with what their gate expressions ask, and what was answered in the last job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubinstallationWorkflow {
    /// What a failed sub-installation does to the others; absent means `StopTriggering`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Import values that the gate expressions read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::map_of_any")]
    pub imports: BTreeMap<String, Value>,
    /// The names of the Targets that the gate expressions look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_targets: Vec<String>,
    /// All sub-installations of the blueprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subinstallations: Vec<SubinstallationStatus>,
}

/// A sub-installation among its siblings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubinstallationStatus {
    /// Its name in the blueprint.
    pub name: String,
    /// The names of those that it imports from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// How long each of its gate expressions is waited for; absent means 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// What its gate expressions ask, by `activateWhen`, `when`, `readyWhen` and `deletedWhen`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "asks_schema")]
    pub asks: BTreeMap<String, GateSpec>,
    /// What those that were asked answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ItemGate>,
}

impl SubinstallationStatus {
    /// Its gate expressions.
    pub fn asked(&self) -> GateExpressions {
        let of = |gate: GateKind| (gate, self.asks.get(gate.name()).cloned());
        GateExpressions::of(GateKind::ALL.map(of))
    }

    /// Gate expressions as they stand here.
    pub fn asks_of(gates: &GateExpressions) -> BTreeMap<String, GateSpec> {
        gates.iter().map(|(gate, gate_expression)| (gate.name().to_owned(), gate_expression.clone())).collect()
    }
}

impl SubinstallationWorkflow {
    /// What was answered, by sub-installation.
    pub fn records(&self) -> Records {
        self.subinstallations.iter().map(|of| (of.name.clone(), read_answers(&of.conditions))).collect()
    }

    /// Writes down what was answered.
    pub fn write_records(&mut self, records: &Records) {
        let records = bounded(records);
        for of in &mut self.subinstallations {
            of.conditions = records.get(&of.name).map(write_answers).unwrap_or_default();
        }
    }
}

fn asks_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": gate_schema(generator)})
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use orangery_blueprint::gate::{GateRecord, GateResult};
    use orangery_core::workflow::Answer;
    use serde_json::json;

    use super::*;

    #[test]
    fn wf_09_what_sub_installations_ask_and_were_answered_is_read_back_from_the_status() {
        let asks = json!({"when": {"expression": "imports.a"}, "deletedWhen": {"expression": "true"}});
        let mut workflow: SubinstallationWorkflow = serde_json::from_value(json!({"subinstallations": [
            {"name": "db", "asks": asks},
            {"name": "web", "dependsOn": ["db"]},
        ]}))
        .unwrap();
        let gates = workflow.subinstallations[0].asked();
        let kinds: Vec<GateKind> = gates.iter().map(|(gate, _)| gate).collect();
        assert_eq!(kinds, [GateKind::When, GateKind::Deleted]);
        assert_eq!(serde_json::to_value(SubinstallationStatus::asks_of(&gates)).unwrap(), asks);
        let at = Timestamp::from_second(7).unwrap();
        let record = GateRecord { answered: GateResult::new(Answer::NotMet, "R", "m"), since: at, asked: at };
        let records: Records =
            [("db".to_owned(), [(GateKind::When, record)].into()), ("web".to_owned(), BTreeMap::new())].into();
        workflow.write_records(&records);
        assert_eq!(workflow.records(), records);
        workflow.write_records(&Records::new());
        assert_eq!(workflow.subinstallations[0].conditions, []);
    }
}
