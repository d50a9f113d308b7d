//! The cases of a component that evaluates gate expressions.

use std::sync::Arc;

use jiff::Timestamp;
use orangery_blueprint::{
    gate::GateResult,
    plugins::{GateQuestion, GateSubject},
};
use orangery_core::workflow::{Answer, GateKind};
use orangery_plugin::Plugin;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CallLog, Case};

/// The request of a case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GateRequest {
    question: RecordedQuestion,
}

/// A question as it is recorded.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedQuestion {
    item: String,
    gate: RecordedGateKind,
    #[serde(default)]
    config: Value,
    inputs: Map<String, Value>,
}

/// The gate expressions of an item by the names of their fields, and rules of policies.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RecordedGateKind {
    ActivateWhen,
    When,
    ReadyWhen,
    DeletedWhen,
    ItemPlan,
    JobPlan,
}

/// The answer of a case.
#[derive(Serialize, Deserialize)]
struct GateAnswer {
    answer: RecordedGateResult,
}

#[derive(Serialize, Deserialize)]
struct RecordedGateResult {
    verdict: RecordedVerdict,
    reason: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RecordedVerdict {
    Met,
    NotMet,
    Unknown,
}

/// Asks, and holds the answer against the expected one.
pub(super) async fn run(case: &mut Case<'_>, plugin: &Plugin, log: &Arc<CallLog>) -> Result<(), String> {
    let GateRequest { question } = case.request()?;
    log.note("gate.evaluate");
    let asked = asked(question.clone());
    let answer = plugin.evaluate(&asked).await.map_err(|error| format!("there is no answer: {error}"))?;
    let answer = recorded(answer);
    log.note(match answer.verdict {
        RecordedVerdict::Met => "met",
        RecordedVerdict::NotMet => "not-met",
        RecordedVerdict::Unknown => "unknown",
    });
    let answer = GateAnswer { answer };
    case.expect(&answer)?;
    case.assert(json!({"question": question, "answer": answer.answer}))
}

fn asked(question: RecordedQuestion) -> GateQuestion {
    let RecordedQuestion { item, gate, config, inputs } = question;
    let gate = match gate {
        RecordedGateKind::ActivateWhen => GateSubject::Expression(GateKind::Activate),
        RecordedGateKind::When => GateSubject::Expression(GateKind::When),
        RecordedGateKind::ReadyWhen => GateSubject::Expression(GateKind::Ready),
        RecordedGateKind::DeletedWhen => GateSubject::Expression(GateKind::Deleted),
        RecordedGateKind::ItemPlan => GateSubject::ItemPlan,
        RecordedGateKind::JobPlan => GateSubject::JobPlan,
    };
    GateQuestion { namespace: None, item, gate, config, inputs, now: Timestamp::UNIX_EPOCH }
}

fn recorded(result: GateResult) -> RecordedGateResult {
    let GateResult { answer, reason, message, details } = result;
    let verdict = match answer {
        Answer::Met => RecordedVerdict::Met,
        Answer::NotMet => RecordedVerdict::NotMet,
        Answer::Unknown => RecordedVerdict::Unknown,
    };
    RecordedGateResult { verdict, reason, message, details }
}
