//! The sub-installations of a job as the items of a workflow.

use std::collections::BTreeSet;

use orangery_api::{
    execution::Records,
    installation::{SubinstallationStatus, SubinstallationWorkflow},
};
use orangery_blueprint::gate::{GateExpression, GateRecord};
use orangery_core::workflow::{Answer, GateKind};

use crate::{
    gates::{Expressions, Item, Items},
    timeout::{USUAL_TIMEOUT, limit_of},
};

/// The sub-installations of a job, with what their gate expressions answered so far.
pub(super) fn items(workflow: Option<&SubinstallationWorkflow>, records: &Records, with: &Expressions) -> Items<()> {
    let of = workflow.map_or(&[][..], |workflow| &workflow.subinstallations);
    let item = |of: &SubinstallationStatus| Item {
        template: (),
        name: of.name.clone(),
        depends_on: of.depends_on.clone(),
        target: None,
        limit: limit_of(of.timeout.as_ref()).unwrap_or(Some(USUAL_TIMEOUT)),
        gates: of.asked(),
        late: false,
    };
    let list: Vec<Item<()>> = of.iter().map(item).collect();
    let waited_for = list.iter().filter(|item| item.gates.get(GateKind::Ready).is_some());
    let waited_for: BTreeSet<String> = waited_for.map(|item| item.name.clone()).collect();
    Items::of(list, |item| {
        let met = |gate, gate_expression: &GateExpression| {
            let record: Option<&GateRecord> = records.get(&item.name).and_then(|records| records.get(&gate));
            with.reads_imports_alone(gate_expression)
                && record.is_some_and(|record| record.answered.answer == Answer::Met)
        };
        let is_open = |gate| item.gates.get(gate).is_some_and(|gate_expression| !met(gate, gate_expression));
        is_open(GateKind::Activate)
            || is_open(GateKind::When)
            || item.depends_on.iter().any(|before| waited_for.contains(before))
    })
}
