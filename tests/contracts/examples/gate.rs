//! A gate that answers by every word: the configuration is the verdict.

use orangery_contract_guests as _;

wit_bindgen::generate!({ world: "gate-engine", path: "../../wit/gate/0.1.0" });

use exports::orangery::gate::gate::{Answer, GateKind, GateQuestion, Guest as Gate, Verdict};

struct Guest;

impl Gate for Guest {
    fn evaluate(of: GateQuestion) -> Answer {
        let verdict = match of.config.as_str() {
            "\"met\"" => Verdict::Met,
            "\"notMet\"" => Verdict::NotMet,
            _ => Verdict::Unknown,
        };
        let reason = match of.gate {
            GateKind::ActivateWhen => "ActivateWhen",
            GateKind::When => "When",
            GateKind::ReadyWhen => "ReadyWhen",
            GateKind::DeletedWhen => "DeletedWhen",
            GateKind::ItemPlan => "ItemPlan",
            GateKind::JobPlan => "JobPlan",
        };
        let message = [of.item.as_str(), " has ", of.inputs.as_str()].concat();
        Answer { verdict, reason: reason.to_string(), message, details: Some(String::from("{\"level\":3}")) }
    }
}

export!(Guest);
