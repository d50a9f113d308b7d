//! What holds for every path and every document.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use super::*;

/// Keys as they stand in objects of Kubernetes, and worse.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}".prop_map(String::from),
        "[a-z]{1,4}-[a-z]{1,4}".prop_map(String::from),
        "[a-z]{1,4}\\.[a-z]{1,4}/[a-z]{1,4}".prop_map(String::from),
        "[ -~]{1,10}".prop_map(String::from),
        "\\PC{1,5}".prop_map(String::from),
    ]
}

fn dotted(keys: &[String]) -> String {
    keys.iter().fold(String::new(), |path, key| {
        let escaped: String = key.chars().flat_map(|c| ['\\', c]).collect();
        format!("{path}.{escaped}")
    })
}

fn bracketed(keys: &[String]) -> String {
    keys.iter().fold(String::new(), |path, key| {
        let escaped = key.replace('\\', "\\\\").replace('\'', "\\'");
        format!("{path}['{escaped}']")
    })
}

fn nested(keys: &[String], leaf: Value) -> Value {
    keys.iter().rev().fold(leaf, |inner, key| Value::Object(Map::from_iter([(key.clone(), inner)])))
}

proptest! {
    #[test]
    fn every_key_is_found_behind_dots_and_in_brackets(keys in vec(key(), 1..4)) {
        let document = nested(&keys, json!("leaf"));
        for path in [dotted(&keys), bracketed(&keys)] {
            let parsed = ParsedPath::parse(&path).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(parsed.one(&document, &StepBudget::default()), Ok(&json!("leaf")), "{}", path);
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_no_result(keys in vec("[a-z]{1,8}", 1..4), other in "[A-Z]{1,8}") {
        let document = nested(&keys, json!(1));
        let path = format!("{}.{other}", dotted(&keys));
        prop_assert_eq!(ParsedPath::parse(&path).unwrap().all(&document, &StepBudget::default()), Ok(Vec::<&Value>::new()));
    }

    #[test]
    fn every_element_is_found_by_its_index_from_both_ends(length in 1_usize..9, at in 0_usize..9) {
        let list: Vec<usize> = (0..length).collect();
        let document = json!({"list": list});
        let one = |path: String| ParsedPath::parse(&path).unwrap().one(&document, &StepBudget::default()).ok().cloned();
        let expected = (at < length).then(|| json!(at));
        prop_assert_eq!(one(format!(".list[{at}]")), expected);
        if at < length {
            prop_assert_eq!(one(format!(".list[-{}]", length - at)), Some(json!(at)));
        }
    }

    #[test]
    fn a_filter_finds_exactly_the_elements_with_the_value(values in vec("[a-c]", 0..8), wanted in "[a-c]") {
        let elements: Vec<Value> = values.iter().enumerate().map(|(n, value)| json!({"type": value, "n": n})).collect();
        let expected: Vec<Value> =
            values.iter().enumerate().filter(|(_, value)| **value == wanted).map(|(n, _)| json!(n)).collect();
        let document = json!({"conditions": elements});
        let path = ParsedPath::parse(&format!(".conditions[?(@.type==\"{wanted}\")].n")).unwrap();
        let found: Vec<Value> = path.all(&document, &StepBudget::default()).unwrap().into_iter().cloned().collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_hostile_text_is_a_path_or_an_error_and_never_a_panic(text in "\\PC{0,40}") {
        if let Ok(path) = ParsedPath::parse(&text) {
            let _ = path.all(&json!({"a": [1, {"b": null}]}), &StepBudget::default());
        }
    }

    #[test]
    fn text_made_of_the_marks_of_paths_never_panics(text in "[.\\[\\]'\"\\\\?@()*$:,a-c0-9= -]{0,24}") {
        if let Ok(path) = ParsedPath::parse(&text) {
            let _ = path.all(&json!({"a": [1, {"b": null}]}), &StepBudget::default());
        }
    }
}
