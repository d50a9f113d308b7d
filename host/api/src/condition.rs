//! Conditions, with the fields that Landscaper adds to Kubernetes' own (`docs/wire.md` §1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_core::{
    condition::{self, ConditionInput, DriftReport, PluginReport, ToldCondition},
    error::Code,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, waiting::WaitingFor};

/// One observation about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed, such as `Ready`; unique in its list.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False`, `Unknown`, or Landscaper's `Progressing`.
    pub status: String,
    /// When `status` changed last.
    #[schemars(with = "schema::DateTime")]
    pub last_transition_time: Time,
    /// When anything of the condition changed last.
    #[schemars(with = "schema::DateTime")]
    pub last_update_time: Time,
    /// A CamelCase word.
    pub reason: String,
    /// One sentence for people.
    pub message: String,
    /// Error codes (`docs/wire.md` §3.3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// The generation that the observation belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The condition of a type, if the list has it.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// What a status says of progress: all of it is written at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// `conditions`.
    pub conditions: Vec<Condition>,
    /// `waitingFor`.
    pub waiting_for: Vec<WaitingFor>,
    /// `waitingForMore`.
    pub waiting_for_more: u32,
}

/// What the status of an object in `state` at `generation` says where the conditions `previous` stood: computed by the
/// core, in wire form.
pub fn following(state: &ConditionInput, generation: i64, previous: &[Condition], now: &Time) -> ProgressReport {
    let previous: Vec<condition::Condition> = previous.iter().map(Condition::to_core).collect();
    let observed = condition::observe(state, generation, &previous, now.0);
    ProgressReport {
        conditions: observed.conditions.into_iter().map(Condition::from_core).collect(),
        waiting_for: observed.waiting_for.iter().map(WaitingFor::new).collect(),
        waiting_for_more: u32::try_from(observed.waiting_for_more).unwrap_or(u32::MAX),
    }
}

/// The same list with the condition `ComponentReferenceOverwrite` as it is now ([`condition::with_overwrite`]).
pub fn with_overwrite(
    report: Option<Result<&str, &str>>,
    generation: i64,
    previous: &[Condition],
    now: &Time,
) -> Vec<Condition> {
    let previous: Vec<condition::Condition> = previous.iter().map(Condition::to_core).collect();
    let conditions = condition::with_overwrite(report, generation, &previous, now.0);
    conditions.into_iter().map(Condition::from_core).collect()
}

/// The same list with the condition `Suspended` as it is now ([`condition::with_suspension`]).
pub fn with_suspension(how: Option<&str>, generation: i64, previous: &[Condition], now: &Time) -> Vec<Condition> {
    let previous: Vec<condition::Condition> = previous.iter().map(Condition::to_core).collect();
    let conditions = condition::with_suspension(how, generation, &previous, now.0);
    conditions.into_iter().map(Condition::from_core).collect()
}

/// The same list with the condition `Drifted` as it is now ([`condition::with_drift`]).
pub fn with_drift(report: &DriftReport, generation: i64, previous: &[Condition], now: &Time) -> Vec<Condition> {
    let previous: Vec<condition::Condition> = previous.iter().map(Condition::to_core).collect();
    let conditions = condition::with_drift(report, generation, &previous, now.0);
    conditions.into_iter().map(Condition::from_core).collect()
}

/// The same list with the conditions that a component tells ([`condition::with_told`]).
pub fn with_told(
    told: Vec<ToldCondition>,
    before: &[String],
    generation: i64,
    previous: &[Condition],
    now: &Time,
) -> Vec<Condition> {
    let previous: Vec<condition::Condition> = previous.iter().map(Condition::to_core).collect();
    let conditions = condition::with_told(told, before, generation, &previous, now.0);
    conditions.into_iter().map(Condition::from_core).collect()
}

/// The conditions of a Plugin as they are now ([`condition::of_plugin`]).
pub fn of_plugin(report: &PluginReport, generation: i64, previous: &[Condition], now: &Time) -> Vec<Condition> {
    let previous: Vec<condition::Condition> = previous.iter().map(Condition::to_core).collect();
    let conditions = condition::of_plugin(report, generation, &previous, now.0);
    conditions.into_iter().map(Condition::from_core).collect()
}

impl Condition {
    fn to_core(&self) -> condition::Condition {
        condition::Condition {
            type_: self.type_.clone(),
            status: match self.status.as_str() {
                "True" => condition::Status::True,
                "False" => condition::Status::False,
                "Progressing" => condition::Status::Progressing,
                _ => condition::Status::Unknown,
            },
            last_transition_time: self.last_transition_time.0,
            last_update_time: self.last_update_time.0,
            reason: self.reason.clone(),
            message: self.message.clone(),
            codes: self.codes.iter().map(|code| Code::from(code.as_str())).collect(),
            observed_generation: self.observed_generation,
        }
    }

    fn from_core(condition: condition::Condition) -> Self {
        Self {
            type_: condition.type_,
            status: match condition.status {
                condition::Status::True => "True",
                condition::Status::False => "False",
                condition::Status::Unknown => "Unknown",
                condition::Status::Progressing => "Progressing",
            }
            .to_owned(),
            last_transition_time: Time(condition.last_transition_time),
            last_update_time: Time(condition.last_update_time),
            reason: condition.reason,
            message: condition.message,
            codes: condition.codes.iter().map(Code::to_string).collect(),
            observed_generation: condition.observed_generation,
        }
    }
}
