//! Tests that a deployer answers.

use super::{
    answer::check_object,
    place::{Allowance, AnswerPosition},
};
use crate::{
    bindings::deployer::exports::orangery::deployer::tests, budget::Budget, error::Error, plugin::TestCase,
    transcript::Transcript,
};

/// The longest name of what a test comes from.
const MOST_SOURCE: usize = 1 << 10;

/// The tests, checked: objects are objects with a kind and a name, the whole is within the budget.
pub(crate) fn test_cases(
    of: Vec<tests::Test>,
    budget: &Budget,
    transcript: &Transcript,
) -> Result<Vec<TestCase>, Error> {
    let allowance = Allowance::new(budget);
    AnswerPosition::root("", &allowance).each("tests", of, |at, test| {
        let tests::Test { source, object, delete_before, delete_after_success, delete_after_failure } = test;
        let place = at.field("object");
        let object = place.json(&object)?;
        check_object(&place, &object)?;
        at.spend(source.len())?;
        let source = transcript.message_of(&source, MOST_SOURCE);
        Ok(TestCase { source, object, delete_before, delete_after_success, delete_after_failure })
    })
}

#[cfg(test)]
mod answers {
    use serde_json::json;

    use super::*;

    fn converted(source: &str, object: &str, output_bytes: u64) -> Result<Vec<TestCase>, String> {
        let of = tests::Test {
            source: source.into(),
            object: object.into(),
            delete_before: true,
            delete_after_success: false,
            delete_after_failure: true,
        };
        let budget = Budget { output_bytes, ..Budget::default() };
        let transcript = Transcript::new("test".into(), &budget);
        test_cases(vec![of], &budget, &transcript).map_err(|error| error.to_string())
    }

    const JOB: &str = r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}"#;

    #[test]
    fn a_test_is_taken_over_whole() {
        let expected = TestCase {
            source: "a\\u{1b}.yaml".into(),
            object: json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}),
            delete_before: true,
            delete_after_success: false,
            delete_after_failure: true,
        };
        assert_eq!(converted("a\x1b.yaml", JOB, 1000), Ok(vec![expected]));
    }

    #[test]
    fn what_is_no_object_or_too_large_is_refused() {
        let refused = |source: &str, object: &str, most| converted(source, object, most).unwrap_err();
        let sense = "the component's answer makes no sense: tests[0].object";
        assert_eq!(refused("a", "[]", 1000), format!("{sense} is not a JSON object"));
        assert_eq!(refused("a", r#"{"apiVersion":"v1","kind":"Pod"}"#, 1000), format!("{sense} has no metadata.name"));
        assert!(refused("a", "{", 1000).starts_with(&format!("{sense} is not JSON: ")));
        for (source, most) in [("", 10), ("a long name", 70)] {
            assert!(refused(source, JOB, most).contains(&format!("needs more than {most} bytes of output")));
        }
    }

    #[test]
    fn limits_components_the_source_of_a_test_is_cut() {
        let source = |length| converted(&"a".repeat(length), JOB, 1 << 20).unwrap().remove(0).source;
        let whole = "a".repeat(MOST_SOURCE);
        assert_eq!([source(MOST_SOURCE), source(MOST_SOURCE + 1)], [whole.clone(), whole + "…"]);
    }
}
