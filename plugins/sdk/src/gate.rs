//! What the author of a gate expression writes.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::gate::exports::orangery::gate::gate::{Answer, GateQuestion, Guest, Verdict};

/// A gate expression: one function from a question to an answer.
///
/// Exported with [`export_gate!`](crate::export_gate). Same question, same answer: what changes comes with the
/// question, which is asked again when a live object that the expression names has changed.
///
/// ```
/// use orangery_sdk::{Answer, GateEngine, GateQuestion};
///
/// struct Enough;
///
/// impl GateEngine for Enough {
///     fn evaluate(question: GateQuestion) -> Answer {
///         let Ok(inputs) = question.inputs::<serde_json::Value>() else { return Answer::unknown("NoInputs", "") };
///         match inputs["objects"]["counter"]["data"]["count"].as_str().and_then(|count| count.parse::<u32>().ok()) {
///             Some(count) if count > 3 => Answer::met("Enough", format!("there are {count}")),
///             Some(count) => Answer::not_met("TooFew", format!("there are {count}, 4 are wanted")),
///             None => Answer::unknown("NoCount", "nobody has counted yet"),
///         }
///     }
/// }
///
/// orangery_sdk::export_gate!(Enough);
/// ```
pub trait GateEngine {
    /// Whether the gate expression holds.
    fn evaluate(question: GateQuestion) -> Answer;
}

impl GateQuestion {
    /// What the gate expression, or the rule, tells the component.
    ///
    /// # Errors
    ///
    /// Where it has another form: a part of a sentence, which shows no value.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(&self.config)
    }

    /// The values: `imports`, `items`, `item` and `objects`; of a rule of a policy `objects`, `counts`, and `item` or `items` and `job`.
    ///
    /// # Errors
    ///
    /// As [`GateQuestion::config`].
    pub fn inputs<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(&self.inputs)
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let what = if error.is_data() { "has another form than this component reads" } else { "is no JSON" };
        format!("{what} (column {})", error.column())
    })
}

impl Answer {
    /// It holds. `reason` is one CamelCase word, `message` one sentence.
    pub fn met(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Met, reason: reason.into(), message: message.into(), details: None }
    }

    /// It is known not to hold.
    pub fn not_met(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::NotMet, ..Self::met(reason, message) }
    }

    /// It cannot be told now: the item waits.
    pub fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, ..Self::met(reason, message) }
    }

    /// The same answer with more, for programs.
    pub fn with_details(self, details: &Value) -> Self {
        Self { details: Some(details.to_string()), ..self }
    }
}

impl<T: GateEngine> Guest for T {
    fn evaluate(of: GateQuestion) -> Answer {
        T::evaluate(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GateKind;

    #[test]
    fn a_question_is_read_and_its_values_are_not_told() {
        let of = |config: &str| GateQuestion {
            item: "db".to_owned(),
            gate: GateKind::When,
            config: config.to_owned(),
            inputs: "{}".to_owned(),
        };
        assert_eq!(of("3").config::<u32>(), Ok(3));
        let message = of("\"secret\"").config::<u32>();
        assert_eq!(message, Err("has another form than this component reads (column 8)".to_owned()));
        assert!(of("3 3").config::<u32>().unwrap_err().starts_with("is no JSON"));
    }

    #[test]
    fn details_stand_beside_the_answer() {
        let answer = Answer::not_met("TooFew", "there are 3").with_details(&serde_json::json!({"count": 3}));
        let expected = Answer {
            verdict: Verdict::NotMet,
            reason: "TooFew".to_owned(),
            message: "there are 3".to_owned(),
            details: Some("{\"count\":3}".to_owned()),
        };
        assert_eq!(answer, expected);
    }
}
