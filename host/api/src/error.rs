//! `lastError` and its kin (`docs/wire.md` §1, §3.3).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_core::error::{Code, Failure, LONGEST_MESSAGE, cut, shown_codes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A failure with its times, as status fields hold it. Named `Error` in the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// The operation that failed.
    pub operation: String,
    /// When `operation` changed last.
    #[schemars(with = "schema::DateTime")]
    pub last_transition_time: Time,
    /// When any of the content changed last.
    #[schemars(with = "schema::DateTime")]
    pub last_update_time: Time,
    /// A CamelCase word.
    pub reason: String,
    /// One sentence: what, where, why, how to fix.
    pub message: String,
    /// Error codes, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
}

impl LastError {
    /// What is written after `failure` at `now` where `previous` stood, its message within its limit: the update time moves when any content
    /// changes, the transition time only when the operation does (`docs/wire.md` §3.3).
    pub fn following(previous: Option<&Self>, failure: &Failure, now: &Time) -> Self {
        let mut error = Self {
            operation: failure.operation.clone(),
            last_transition_time: now.clone(),
            last_update_time: now.clone(),
            reason: failure.reason.clone(),
            message: cut(failure.message.clone(), LONGEST_MESSAGE),
            codes: shown_codes(&failure.codes).iter().map(Code::to_string).collect(),
        };
        if let Some(previous) = previous
            && previous.operation == error.operation
        {
            error.last_transition_time = previous.last_transition_time.clone();
            if previous.reason == error.reason && previous.message == error.message && previous.codes == error.codes {
                error.last_update_time = previous.last_update_time.clone();
            }
        }
        error
    }

    /// The failure without its times.
    pub fn failure(&self) -> Failure {
        Failure {
            operation: self.operation.clone(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            codes: self.codes.iter().map(|code| Code::from(code.as_str())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn error(operation: &str, message: &str, transition: i64, update: i64) -> LastError {
        LastError {
            operation: operation.to_owned(),
            last_transition_time: at(transition),
            last_update_time: at(update),
            reason: "R".to_owned(),
            message: message.to_owned(),
            codes: vec!["ERR_TIMEOUT".to_owned()],
        }
    }

    #[test]
    fn times_move_only_with_what_they_time() {
        let failure = |operation: &str, message: &str| Failure::new(operation, "R", message).with_code(Code::Timeout);
        let first = LastError::following(None, &failure("A", "m"), &at(1));
        assert_eq!(first, error("A", "m", 1, 1));
        assert_eq!(LastError::following(Some(&first), &failure("A", "m"), &at(2)), error("A", "m", 1, 1));
        assert_eq!(LastError::following(Some(&first), &failure("A", "n"), &at(3)), error("A", "n", 1, 3));
        assert_eq!(LastError::following(Some(&first), &failure("B", "m"), &at(4)), error("B", "m", 4, 4));
        assert_eq!(first.failure(), failure("A", "m"));
    }

    #[test]
    fn a_message_that_no_status_could_hold_is_cut() {
        let failure = Failure::new("A", "R", "x".repeat(2_000_000));
        let error = LastError::following(None, &failure, &at(1));
        let left = 2_000_000 - LONGEST_MESSAGE;
        assert_eq!(error.message, format!("{} [… {left} more bytes]", "x".repeat(LONGEST_MESSAGE)));
    }
}
