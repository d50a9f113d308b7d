//! Calls of gates that are kept, as their cases have them (C-348).

use std::sync::Arc;

use orangery_blueprint::{gate::GateResult, plugins::GateQuestion};
use orangery_core::{memory, name::Namespace, workflow::Answer};
use orangery_proposal::deployer::PluginIdentity;
use orangery_turns::{HeldBytes, off_the_executor};
use serde_json::{Value, json};

use crate::{
    call_records::{CallRecording, CallRecords},
    controller_context::ControllerContext,
    hidden_call::hidden_documents,
};

/// The most bytes of memory of what one gate is asked with which its call is recorded.
const MOST_ASKED_BYTES: u64 = 16 << 20;

/// A call that begins now, and is to be kept.
pub(super) struct GateRecording {
    records: Arc<dyn CallRecords>,
    component: PluginIdentity,
    namespace: Namespace,
    item: String,
    request: Value,
    /// What it holds of what all calls have together that are recorded.
    _held: HeldBytes,
}

impl GateRecording {
    /// What a component is asked, where somebody wants to know it. Why it cannot be kept is logged.
    pub(super) fn of(host: &ControllerContext, component: &PluginIdentity, question: &GateQuestion) -> Option<Self> {
        let namespace = question.namespace.clone()?;
        let records = host.call_records(component, &namespace)?;
        let mut held = host.noted.none_of(&question.namespace);
        if let Err(why) = count_memory(question, &mut held) {
            tracing::warn!(item = %format_args!("{namespace}/{}", question.item), why, "a call is not recorded");
            return None;
        }
        let (component, item, request) = (component.clone(), question.item.clone(), request(question));
        Some(Self { records, component, namespace, item, request, _held: held })
    }

    /// Keeps the call with its answer.
    pub(super) async fn keep(self, host: &ControllerContext, result: &GateResult) {
        let Self { records, component, namespace, item, request, _held } = self;
        match hidden_documents(host, &namespace, (request, answer(result))).await {
            Ok(call) => {
                let (item, at) = (item.into(), host.clock.now());
                let content = Vec::new();
                let record = CallRecording { component, namespace, item, function: "evaluate", at, call, content };
                off_the_executor(|| records.keep(record));
            }
            Err(why) => {
                let why = why.to_string();
                tracing::warn!(item = %format_args!("{namespace}/{item}"), why, "a call is not recorded");
            }
        }
    }
}

/// Has a question count as held. The error is why it cannot be.
pub(super) fn count_memory(question: &GateQuestion, held: &mut HeldBytes) -> Result<(), &'static str> {
    let bytes = question.inputs.values().map(memory::of).fold(0, u64::saturating_add);
    if bytes > MOST_ASKED_BYTES {
        Err("it is asked with more than 16 MiB")
    } else if held.set(bytes) {
        Ok(())
    } else {
        Err("calls that are recorded at once read more than 64 MiB")
    }
}

pub(super) fn request(question: &GateQuestion) -> Value {
    let GateQuestion { item, gate, config, inputs, namespace: _, now: _ } = question;
    json!({"question": {"item": item, "gate": gate.name(), "config": config, "inputs": inputs}})
}

pub(super) fn answer(result: &GateResult) -> Value {
    let GateResult { answer, reason, message, details } = result;
    let verdict = match answer {
        Answer::Met => "met",
        Answer::NotMet => "notMet",
        Answer::Unknown => "unknown",
    };
    let mut written = json!({"verdict": verdict, "reason": reason, "message": message});
    if let (Some(details), Some(written)) = (details, written.as_object_mut()) {
        written.insert("details".to_owned(), details.clone());
    }
    json!({"answer": written})
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::plugins::GateSubject;
    use orangery_core::workflow::GateKind;
    use orangery_turns::SharedBytes;
    use serde_json::Map;

    use super::*;

    #[test]
    fn c_348_a_call_of_a_gate_is_written_as_its_cases_are() {
        let inputs = Map::from_iter([("imports".to_owned(), json!({"a": 1}))]);
        let (namespace, now) = (Some("ns".into()), jiff::Timestamp::UNIX_EPOCH);
        let expressions = [GateKind::Activate, GateKind::When, GateKind::Ready, GateKind::Deleted];
        let rules = [GateSubject::ItemPlan, GateSubject::JobPlan];
        let asked: Vec<Value> = expressions
            .map(GateSubject::Expression)
            .into_iter()
            .chain(rules)
            .map(|gate| {
                let config = json!({"least": 3});
                let (namespace, inputs) = (namespace.clone(), inputs.clone());
                request(&GateQuestion { namespace, item: "db".to_owned(), gate, config, inputs, now })
            })
            .collect();
        let expected = ["activateWhen", "when", "readyWhen", "deletedWhen", "itemPlan", "jobPlan"].map(|gate| {
            json!({"question": {"item": "db", "gate": gate, "config": {"least": 3}, "inputs": {"imports": {"a": 1}}}})
        });
        assert_eq!(asked, expected);
        let result = |answer, details| GateResult { answer, reason: "R".into(), message: "m".into(), details };
        let written = [Answer::Met, Answer::NotMet, Answer::Unknown].map(|one| answer(&result(one, None)));
        let expected = ["met", "notMet", "unknown"]
            .map(|verdict| json!({"answer": {"verdict": verdict, "reason": "R", "message": "m"}}));
        assert_eq!(written, expected);
        let detailed = answer(&result(Answer::Met, Some(json!({"pods": 3}))));
        assert_eq!(detailed["answer"]["details"], json!({"pods": 3}));
    }

    #[test]
    fn c_348_limits_recording_a_gate_that_is_asked_with_more_is_not_recorded_and_all_have_a_sum() {
        let asked = |bytes: u64| {
            // Beside its letters a text takes less than a KiB.
            let text = "x".repeat(usize::try_from(bytes).unwrap());
            let inputs = Map::from_iter([("imports".to_owned(), Value::String(text))]);
            let (namespace, now) = (Some("ns".into()), jiff::Timestamp::UNIX_EPOCH);
            let gate = GateSubject::Expression(GateKind::When);
            GateQuestion { namespace, item: "db".to_owned(), gate, config: Value::Null, inputs, now }
        };
        let together = SharedBytes::new(64 << 20);
        let held = || together.none_of(&Some("ns".into()));
        let mut one = held();
        assert_eq!(count_memory(&asked(MOST_ASKED_BYTES - 1024), &mut one), Ok(()));
        assert_eq!(count_memory(&asked(MOST_ASKED_BYTES), &mut held()), Err("it is asked with more than 16 MiB"));
        let mut second = held();
        assert_eq!(count_memory(&asked(MOST_ASKED_BYTES - 1024), &mut second), Ok(()));
        let why = "calls that are recorded at once read more than 64 MiB";
        assert_eq!(count_memory(&asked(MOST_ASKED_BYTES - 1024), &mut held()), Err(why), "a namespace has half of it");
        drop(one);
        assert_eq!(count_memory(&asked(MOST_ASKED_BYTES - 1024), &mut held()), Ok(()));
    }
}
