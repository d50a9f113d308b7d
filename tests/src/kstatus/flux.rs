//! The rules of Flux's checker (`github.com/fluxcd/pkg/runtime/conditions/check`): its failures and its warnings, by
//! their numbers. Those that do not hold during a reconcile are asked of objects at rest only, as there.

use serde_json::Value;

use super::{condition, conditions, generation, has_job, is_running, text};

/// The rules that an object breaks, a line each.
///
/// An object that nobody of us has written a status to yet has no conditions; one whose spec was changed since its
/// conditions were written is as busy as one whose job runs.
pub fn broken(object: &Value) -> Vec<String> {
    if conditions(object).is_empty() && !has_job(object) {
        return Vec::new();
    }
    let at_rest = !is_running(object) && conditions(object).iter().all(|one| observed(one) == generation(object));
    let always = ALWAYS.iter();
    let rules = always.chain(if at_rest { AT_REST } else { &[] });
    rules.filter(|rule| (rule.broken)(object)).map(|rule| format!("{}: {}", rule.number, rule.says)).collect()
}

struct Rule {
    number: &'static str,
    says: &'static str,
    broken: fn(&Value) -> bool,
}

const ALWAYS: &[Rule] = &[
    Rule { number: "FAIL0002", says: "Ready is always present", broken: |object| condition(object, "Ready").is_none() },
    Rule {
        number: "FAIL0004",
        says: "Ready is False while Stalled is True",
        broken: |object| is(object, "Stalled", "True") && !is(object, "Ready", "False"),
    },
    Rule {
        number: "FAIL0005",
        says: "Reconciling and Stalled are never both present",
        broken: |object| condition(object, "Reconciling").is_some() && condition(object, "Stalled").is_some(),
    },
    Rule {
        number: "FAIL0006",
        says: "the observed generation is none of the future",
        broken: |object| observed_by_status(object) > generation(object),
    },
    Rule {
        number: "FAIL0011",
        says: "Reconciling is True while Ready is Unknown",
        broken: |object| is(object, "Ready", "Unknown") && !is(object, "Reconciling", "True"),
    },
    Rule {
        number: "WARN0002",
        says: "Ready says what Reconciling or Stalled says",
        broken: |object| {
            let message = |kind: &str| condition(object, kind).map(|one| text(one, "message"));
            message("Reconciling").or(message("Stalled")).is_some_and(|report| {
                // Of a long message they say the begin, and how much more there is (C-144).
                let begin = report.strip_suffix(" more bytes]").and_then(|cut| cut.rsplit_once(" [… "));
                !message("Ready").is_some_and(|ready| {
                    ready == report || begin.is_some_and(|(begin, _)| begin.len() > 1_000 && ready.starts_with(begin))
                })
            })
        },
    },
    Rule {
        number: "WARN0003",
        says: "Reconciling is True or absent",
        broken: |object| condition(object, "Reconciling").is_some() && !is(object, "Reconciling", "True"),
    },
    Rule {
        number: "WARN0004",
        says: "Stalled is True or absent",
        broken: |object| condition(object, "Stalled").is_some() && !is(object, "Stalled", "True"),
    },
    Rule {
        number: "WARN0005",
        says: "every condition says which generation it speaks of",
        broken: |object| conditions(object).iter().any(|one| observed(one) < Some(1)),
    },
];

const AT_REST: &[Rule] = &[
    Rule {
        number: "FAIL0001",
        says: "neither Reconciling nor Stalled is present while Ready is True",
        broken: |object| {
            let abnormal = ["Reconciling", "Stalled"].iter().any(|kind| condition(object, kind).is_some());
            is(object, "Ready", "True") && abnormal
        },
    },
    Rule {
        number: "FAIL0003",
        says: "Ready is False while Reconciling is True",
        broken: |object| is(object, "Reconciling", "True") && !is(object, "Ready", "False"),
    },
    Rule {
        number: "FAIL0007",
        says: "Ready is not True for a generation that was not dealt with",
        broken: |object| is(object, "Ready", "True") && observed_by_status(object) < generation(object),
    },
    Rule {
        number: "FAIL0009",
        says: "conditions speak of the observed generation while Ready is True",
        broken: |object| {
            let other = |one: &Value| observed(one) != observed_by_status(object);
            is(object, "Ready", "True") && conditions(object).iter().any(other)
        },
    },
];

fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|one| text(one, "status") == status)
}

fn observed(condition: &Value) -> Option<i64> {
    condition.get("observedGeneration").and_then(Value::as_i64)
}

fn observed_by_status(object: &Value) -> Option<i64> {
    object.pointer("/status/observedGeneration").and_then(Value::as_i64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::tests::object, *};

    #[track_caller]
    fn check(object: &Value, numbers: &[&str]) {
        let broken = broken(object);
        let found: Vec<&str> = broken.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(found, numbers, "{object}");
    }

    fn ended(observed: i64, conditions: &str) -> Value {
        object(2, json!({"jobID": "a", "jobIDFinished": "a", "observedGeneration": observed}), conditions)
    }

    fn running(conditions: &str) -> Value {
        object(2, json!({"jobID": "b", "jobIDFinished": "a", "observedGeneration": 1}), conditions)
    }

    #[test]
    fn flx_22_ready_is_always_there_and_never_better_than_the_others() {
        check(&ended(2, "Ready=True/2"), &[]);
        check(&ended(2, "Ready=False/2 Stalled=True/2"), &[]);
        check(&ended(2, "Other=True/2"), &["FAIL0002"]);
        check(&ended(2, "Ready=True/2 Stalled=True/2"), &["FAIL0004", "FAIL0001"]);
        check(&ended(2, "Ready=Unknown/2"), &["FAIL0011"]);
    }

    #[test]
    fn flx_15_reconciling_and_stalled_are_true_or_absent_and_never_both() {
        check(&running("Ready=Unknown/2 Reconciling=True/2"), &[]);
        check(&ended(2, "Ready=Unknown/2 Reconciling=True/2"), &["FAIL0003"]);
        check(&running("Ready=False/2 Reconciling=True/2 Stalled=True/2"), &["FAIL0005"]);
        check(&running("Ready=False/2 Reconciling=False/2"), &["WARN0003"]);
        check(&ended(2, "Ready=False/2 Stalled=False/2"), &["WARN0004"]);
    }

    #[test]
    fn flx_20_generations_move_together() {
        check(&ended(3, "Ready=False/2"), &["FAIL0006"]);
        check(&ended(1, "Ready=True/2"), &["FAIL0007", "FAIL0009"]);
        check(&ended(2, "Ready=False/0"), &["WARN0005"]);
        // The spec has changed since the conditions were written: nobody has seen it yet.
        check(&ended(1, "Ready=True/1"), &[]);
    }

    #[test]
    fn ready_tells_what_is_told_of_the_reconcile() {
        let mut message = running("Ready=Unknown/2 Reconciling=True/2");
        message["status"]["conditions"][1]["message"] = json!("waiting for x");
        check(&message, &["WARN0002"]);
        message["status"]["conditions"][0]["message"] = json!("waiting for x");
        check(&message, &[]);
    }

    #[test]
    fn a_status_that_nobody_has_written_breaks_no_rule() {
        check(&json!({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}), &[]);
    }
}
