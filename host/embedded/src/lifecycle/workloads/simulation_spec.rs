//! What the annotations of a workload wish: how long its work takes, and that it fails.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use serde_json::Value;

use crate::object;

const PREFIX: &str = "simulate.orangery.dev/";
const DELAY: &str = "delay";
const FAIL: &str = "fail";
const FOREVER: &str = "forever";
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest text of an annotation that is shown, in characters.
const SHOWN: usize = 1000;

/// How long the work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delay {
    For(Duration),
    /// It never ends.
    Forever,
}

/// What is wished for a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimulationSpec {
    pub(super) delay: Delay,
    /// Why the work ends badly; none if it ends well.
    pub(super) failure: Option<String>,
}

impl SimulationSpec {
    /// Reads the annotations of an object, and those of its pod template where it has none of its own. What cannot be
    /// read makes the work fail at once, with a sentence that says so.
    pub(super) fn read(object: &Value) -> Self {
        match read(object) {
            Ok(simulation) => simulation,
            Err(why) => Self { delay: Delay::For(Duration::ZERO), failure: Some(why) },
        }
    }
}

fn read(object: &Value) -> Result<SimulationSpec, String> {
    let mut simulation = SimulationSpec { delay: Delay::For(Duration::ZERO), failure: None };
    for (name, text) in annotations(object) {
        match name {
            DELAY => simulation.delay = delay(text)?,
            FAIL if text.is_empty() => simulation.failure = Some(format!("the annotation {PREFIX}{FAIL} wishes it so")),
            FAIL => simulation.failure = Some(display(text)),
            other => {
                let other = display(other);
                return Err(format!(
                    "the annotation {PREFIX}{other} is not known; the simulation of workloads knows {DELAY} and {FAIL}"
                ));
            }
        }
    }
    Ok(simulation)
}

/// The annotations for the simulation, without their prefix.
fn annotations(object: &Value) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for path in [["spec", "template", "metadata", "annotations"].as_slice(), &["metadata", "annotations"]] {
        let annotations = object::at(object, path).and_then(Value::as_object).into_iter().flatten();
        found.extend(annotations.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.as_str()?))));
    }
    found
}

fn delay(text: &str) -> Result<Delay, String> {
    if text == FOREVER {
        return Ok(Delay::Forever);
    }
    let parsed = text.parse::<SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    let parsed = parsed.filter(|parsed| *parsed <= LONGEST).map(Delay::For);
    parsed.ok_or_else(|| {
        let text = display(text);
        format!(
            "the annotation {PREFIX}{DELAY} is {text:?}; write a duration up to 168h, such as 500ms, 5s or 1m30s, or {FOREVER}"
        )
    })
}

fn display(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(annotations: Value, delay: Delay, failure: Option<&str>) {
        let simulation = SimulationSpec::read(&json!({"metadata": {"annotations": annotations}}));
        assert_eq!(simulation, SimulationSpec { delay, failure: failure.map(str::to_owned) });
    }

    const AT_ONCE: Delay = Delay::For(Duration::ZERO);

    #[test]
    fn without_annotations_all_is_well_at_once() {
        check(json!(null), AT_ONCE, None);
        check(json!({"example.org/delay": "1h"}), AT_ONCE, None);
    }

    #[test]
    fn a_delay_is_a_duration_or_forever() {
        let after = |milliseconds| Delay::For(Duration::from_millis(milliseconds));
        check(json!({"simulate.orangery.dev/delay": "500ms"}), after(500), None);
        check(json!({"simulate.orangery.dev/delay": "1m30s"}), after(90_000), None);
        check(json!({"simulate.orangery.dev/delay": "168h"}), Delay::For(LONGEST), None);
        check(json!({"simulate.orangery.dev/delay": "forever"}), Delay::Forever, None);
    }

    #[test]
    fn a_failure_has_the_message_of_its_annotation() {
        let both = json!({"simulate.orangery.dev/delay": "1s", "simulate.orangery.dev/fail": "no disk"});
        check(both, Delay::For(Duration::from_secs(1)), Some("no disk"));
        let unsaid = "the annotation simulate.orangery.dev/fail wishes it so";
        check(json!({"simulate.orangery.dev/fail": ""}), AT_ONCE, Some(unsaid));
    }

    #[test]
    fn what_cannot_be_read_is_a_failure_that_says_so() {
        for delay in ["soon", "5", "-5s", "169h"] {
            let why = format!(
                "the annotation simulate.orangery.dev/delay is {delay:?}; write a duration up to 168h, such as 500ms, 5s or 1m30s, or forever"
            );
            check(json!({"simulate.orangery.dev/delay": delay}), AT_ONCE, Some(&why));
        }
        let why =
            "the annotation simulate.orangery.dev/dealy is not known; the simulation of workloads knows delay and fail";
        check(json!({"simulate.orangery.dev/dealy": "5s"}), AT_ONCE, Some(why));
    }

    #[test]
    fn the_workload_has_the_word_before_its_pod_template() {
        let delays = |delay: &str| json!({"annotations": {"simulate.orangery.dev/delay": delay}});
        let of_template = json!({"spec": {"template": {"metadata": delays("5s")}}});
        assert_eq!(SimulationSpec::read(&of_template).delay, Delay::For(Duration::from_secs(5)));
        let of_both = json!({"metadata": delays("1s"), "spec": {"template": {"metadata": delays("5s")}}});
        assert_eq!(SimulationSpec::read(&of_both).delay, Delay::For(Duration::from_secs(1)));
    }
}
