//! Rules of policies over what is about to be written: expressions are evaluated, and components are asked (C-318, C-362, C-363).

use orangery_blueprint::{
    gate::GateResult,
    plugins::{GateQuestion, GateSubject},
};
use orangery_core::{listing, name::Namespace, step::Step, workflow::Answer};
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
        let masked =
            |text: &str| self.host.secrets.masker(self.namespace).mask(text).chars().take(LONGEST_ANSWER).collect();
        let GateResult { answer, message, .. } =
            answer.map_err(|fault| masked(&format!("component {}", fault.problem())))?;
        let message: String = masked(&message);
        Ok(match answer {
            Answer::Met => (Ok(true), message),
            Answer::NotMet => (Ok(false), message),
            Answer::Unknown => (Err(format!("{} does not know: {message}", component.type_)), String::new()),
        })
    }
}
