//! Rules of policies over what is about to be written: expressions are evaluated, and components are asked (C-318, C-362, C-363).

use orangery_blueprint::{
    gate::GateResult,
    plugins::{GateQuestion, GateSubject},
};
use orangery_core::{error::Fault, listing, name::Namespace, step::Step, workflow::Answer};
use orangery_policy::{BrokenRule, EffectivePolicy, RuleComponent, RuleScope};
use serde_json::{Map, Value};

use crate::{
    controller_context::ControllerContext,
    job_writes::{JobItem, variables},
};

/// Letters of what a component says of a rule that come into messages (C-363).
const LONGEST_ANSWER: usize = 512;

/// The rules of the policies of a namespace over a whole job that do not hold.
///
/// # Errors
/// It is not known which policies count.
pub async fn broken_job_rules(
    host: &ControllerContext,
    namespace: &Namespace,
    installation: &str,
    items: &[JobItem],
) -> Step<Vec<BrokenRule>> {
    let policy = host.policies.of(namespace)?;
    if !policy.has_plan_rules(RuleScope::Job) {
        return Ok(Vec::new());
    }
    let asked = RuleQuestion { host, namespace, scope: RuleScope::Job, item: "" };
    Ok(match variables(namespace, installation, items) {
        Ok(variables) => asked.broken(&policy, &variables).await,
        Err(why) => asked.none_can_be_told(&policy, &why),
    })
}

/// What rules are asked about.
pub(crate) struct RuleQuestion<'a> {
    pub(crate) host: &'a ControllerContext,
    pub(crate) namespace: &'a Namespace,
    pub(crate) scope: RuleScope,
    /// The deploy item; empty where a whole job is asked about.
    pub(crate) item: &'a str,
}

impl RuleQuestion<'_> {
    /// The rules that do not hold of these variables.
    pub(crate) async fn broken(&self, policy: &EffectivePolicy, variables: &Map<String, Value>) -> Vec<BrokenRule> {
        let mut broken = Vec::new();
        for rule in policy.plan_rules(self.scope) {
            broken.extend(match rule.component() {
                None => rule.evaluate(variables),
                Some(component) => match self.ask(component, variables).await {
                    Ok((held, why)) => rule.answered(held, &why),
                    Err(why) => rule.answered(Err(why), ""),
                },
            });
        }
        broken
    }

    /// Each of the rules, where none of them can be told of.
    fn none_can_be_told(&self, policy: &EffectivePolicy, why: &str) -> Vec<BrokenRule> {
        policy.plan_rules(self.scope).filter_map(|rule| rule.answered(Err(why.to_owned()), "")).collect()
    }

    /// Asks a component: whether the rule holds, or why it does not know, and what it says. The error is why there is no answer.
    async fn ask(
        &self,
        component: &RuleComponent,
        variables: &Map<String, Value>,
    ) -> Result<(Result<bool, String>, String), String> {
        let Some(engine) = self.host.plugins.gate_engine(&component.type_, self.namespace) else {
            let known = listing::listed(self.host.plugins.gate_types());
            let type_ = &component.type_;
            return Err(format!(
                "no component serves the gate type {type_:?}; known are: {known}; register one or correct the type"
            ));
        };
        let question = GateQuestion {
            namespace: Some(self.namespace.clone()),
            item: self.item.to_owned(),
            gate: match self.scope {
                RuleScope::Item => GateSubject::ItemPlan,
                RuleScope::Job => GateSubject::JobPlan,
            },
            config: component.config.clone(),
            inputs: variables.clone(),
            now: self.host.clock.now(),
        };
        let answer = engine.evaluate(&question).await;
        let masker = self.host.secrets.masker(self.namespace);
        verdict_of(&component.type_, answer, |text| masker.mask(text).into_owned())
    }
}

/// What a component has answered: whether a rule holds, or why it does not know, and what it says. The error is why there is no answer.
fn verdict_of(
    type_: &str,
    answer: Result<GateResult, Fault>,
    mask: impl Fn(&str) -> String,
) -> Result<(Result<bool, String>, String), String> {
    let masked = |text: &str| mask(text).chars().take(LONGEST_ANSWER).collect();
    let GateResult { answer, message, .. } =
        answer.map_err(|fault| -> String { masked(&format!("component {}", fault.problem())) })?;
    let message: String = masked(&message);
    Ok(match answer {
        Answer::Met => (Ok(true), message),
        Answer::NotMet => (Ok(false), message),
        Answer::Unknown => (Err(format!("{type_} does not know: {message}")), String::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answer: Answer, message: &str) -> Result<(Result<bool, String>, String), String> {
        let result = GateResult { answer, reason: "R".to_owned(), message: message.to_owned(), details: None };
        verdict_of("example.org/rules", Ok(result), |text| text.replace("secret", "***"))
    }

    #[test]
    fn c_363_a_component_says_yes_no_or_that_it_does_not_know_and_shows_no_secret() {
        assert_eq!(answered(Answer::Met, "all is well"), Ok((Ok(true), "all is well".to_owned())));
        assert_eq!(answered(Answer::NotMet, "of a secret"), Ok((Ok(false), "of a ***".to_owned())));
        let unknown = "example.org/rules does not know: too early".to_owned();
        assert_eq!(answered(Answer::Unknown, "too early"), Ok((Err(unknown), String::new())));
        let fault = verdict_of("t", Err(Fault::denied("the secret crashed")), |text| text.replace("secret", "***"));
        assert_eq!(fault, Err("component the *** crashed".to_owned()));
    }

    #[test]
    fn c_363_limits_rules_what_a_component_says_is_cut() {
        let long = "ä".repeat(600);
        let cut = "ä".repeat(512);
        assert_eq!(answered(Answer::NotMet, &long), Ok((Ok(false), cut)));
        let fault = verdict_of("t", Err(Fault::denied(long)), str::to_owned).unwrap_err();
        assert_eq!(fault.chars().count(), 512);
    }
}
