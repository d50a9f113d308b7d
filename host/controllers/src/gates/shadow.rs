//! A call of a candidate beside that of the gate in use (C-356).

use std::sync::Arc;

use orangery_api::{execution::Execution, installation::Installation};
use orangery_blueprint::{gate::GateResult, plugins::GateQuestion};
use orangery_core::{error::Fault, name::Namespace};
use orangery_proposal::recorded::RecordedFault;
use serde_json::{Value, json};

use super::recorded::{answer, count_memory, request};
use crate::{
    candidates::{CandidateTurn, DIFFERS, answer_differences},
    controller_context::ControllerContext,
    event,
    hidden_call::hidden_documents,
};

/// Whose gate expressions they are: what differs is told by an event of it.
#[derive(Clone)]
pub(crate) enum WorkflowObject {
    /// Of sub-installations.
    Installation(Arc<Installation>),
    /// Of deploy items.
    Execution(Arc<Execution>),
}

impl WorkflowObject {
    fn tell(&self, host: &ControllerContext, note: &str) {
        match self {
            Self::Installation(installation) => event::tell(host, installation.as_ref(), DIFFERS, note),
            Self::Execution(execution) => event::tell(host, execution.as_ref(), DIFFERS, note),
        }
    }
}

/// A call that has ended, for a candidate to make as well.
pub(super) struct ShadowedGate {
    pub(super) host: Arc<ControllerContext>,
    pub(super) object: WorkflowObject,
    pub(super) question: GateQuestion,
    pub(super) answer: Result<GateResult, Fault>,
}

impl ShadowedGate {
    /// Asks a candidate, and tells the object how the answers differ. Nothing follows from its answer.
    pub(super) async fn make(self, turn: CandidateTurn) {
        let Self { host, object, question, answer: in_use } = self;
        let Some(namespace) = question.namespace.clone() else { return };
        let mut held = host.noted.none_of(&question.namespace);
        let has_room = count_memory(&question, &mut held).is_ok();
        let different = match turn.gate_engine().filter(|_| has_room) {
            Some(candidate) => {
                let found = candidate.evaluate(&question).await;
                differences(&host, &namespace, &question, (&in_use, &found)).await
            }
            None => None,
        };
        if let Some(note) = host.candidates.tell(turn, &namespace, different, host.clock.now()) {
            object.tell(&host, &note);
        }
    }
}

/// How two answers to a question differ, without values of Secrets; `None` where these cannot be hidden.
async fn differences(
    host: &ControllerContext,
    namespace: &Namespace,
    question: &GateQuestion,
    (in_use, found): (&Result<GateResult, Fault>, &Result<GateResult, Fault>),
) -> Option<Vec<String>> {
    let answers = json!([document(in_use), document(found)]);
    let hidden = hidden_documents(host, namespace, (request(question), answers)).await.ok()?;
    let [in_use, found] = hidden.answer.as_array()?.as_slice() else { return None };
    let whose = format!("{} of {}: ", question.gate.name(), question.item);
    let differences = answer_differences(in_use, found, "an answer");
    Some(differences.into_iter().map(|difference| whose.clone() + &difference).collect())
}

fn document(answered: &Result<GateResult, Fault>) -> Value {
    match answered {
        Ok(result) => answer(result),
        Err(fault) => json!({"fault": RecordedFault::from(fault.clone())}),
    }
}
