//! Components that answer gate expressions: what they say is taken over or refused, and what they do costs themselves only.

use orangery_blueprint::{
    gate::GateResult,
    plugins::{GateQuestion, GateSubject},
};
use orangery_core::workflow::{Answer, GateKind};
use orangery_plugin::{Error, Plugin};
use serde_json::{Value, json};

use super::fixtures::{bytes, deployer, ended, registered, sandbox};

fn judges(limits: Value) -> Plugin {
    let claim = json!({"gate": {"types": ["example.org/judges"]}});
    Plugin::new(registered("judges", bytes("judges"), claim, limits), sandbox())
}

fn question(config: &str) -> GateQuestion {
    let inputs = json!({"imports": {"a": 1}, "items": {}, "objects": {}});
    GateQuestion {
        namespace: None,
        item: "db".to_owned(),
        gate: GateSubject::Expression(GateKind::Ready),
        config: json!(config),
        inputs: inputs.as_object().unwrap().clone(),
        now: "2026-11-21T02:10:49Z".parse().unwrap(),
    }
}

#[tokio::test]
async fn wf_08_a_component_answers_with_reason_message_and_details() {
    let judges = judges(json!({}));
    for (config, answer) in [("met", Answer::Met), ("not-met", Answer::NotMet), ("unknown", Answer::Unknown)] {
        let expected = GateResult {
            answer,
            reason: "AsConfigured".to_owned(),
            message: r#"GateKind::ReadyWhen of db sees {"imports":{"a":1},"items":{},"objects":{}}"#.to_owned(),
            details: Some(json!({"level": 3})),
        };
        assert_eq!(judges.evaluate(&question(config)).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_refused_and_a_long_message_is_cut() {
    let judges = judges(json!({}));
    for (config, text) in [
        ("no-word", "the component's answer makes no sense: reason is no CamelCase word of at most 64 letters"),
        ("no-json", "the component's answer makes no sense: details is not JSON"),
        ("much", "the component's answer makes no sense: details has more than 4096 bytes"),
    ] {
        let error = judges.evaluate(&question(config)).await.unwrap_err();
        assert!(error.to_string().starts_with(text), "{config}: {error}");
    }
    let long = judges.evaluate(&question("long")).await.unwrap().message;
    assert!(long.len() < 1100 && long.lines().count() > 1, "{}", long.len());
}

#[tokio::test]
async fn a_condition_that_misbehaves_costs_itself_only() {
    let judges = judges(json!({"cpuMilliseconds": 50, "memoryMiB": 16}));
    for (config, message) in [
        ("something else", "nobody knows something else"),
        ("loop", "50 ms of processor time; have an administrator raise `limits.cpuMilliseconds`"),
        ("allocate", "16 MiB of memory; have an administrator raise `limits.memoryMiB`"),
    ] {
        let error = ended(judges.evaluate(&question(config)).await);
        assert!(error.to_string().contains(message), "{config}: {error}");
    }
    assert_eq!(judges.evaluate(&question("met")).await.unwrap().answer, Answer::Met);
}

#[tokio::test]
async fn a_component_of_another_world_answers_no_condition() {
    let error = deployer("answers", json!({})).evaluate(&question("met")).await.unwrap_err();
    assert!(matches!(error.as_ref(), Error::Export { interface: "orangery:gate/gate" }), "{error}");
}
