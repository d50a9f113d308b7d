//! Paths that are short and would take for ever.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

/// More than any of these takes, on the slowest machine.
const SOON: Duration = Duration::from_secs(20);

fn refused(path: &str) -> String {
    match ParsedPath::parse(path) {
        Err(PathError::Syntax { reason, .. }) => reason,
        other => panic!("{path}: {other:?}"),
    }
}

/// A document of `branches` branches at each of `levels` levels.
fn tree(branches: usize, levels: usize) -> Value {
    if levels == 0 { json!({"a": 1}) } else { Value::Array(vec![tree(branches, levels - 1); branches]) }
}

#[test]
fn limits_jsonpath_filters_within_filters_are_refused() {
    let nested = |depth: usize| format!("{}{}", "[?@".repeat(depth), "]".repeat(depth));
    let expected = format!("its brackets stand 24 deep, {MOST_NESTED_BRACKETS} are allowed");
    assert_eq!(refused(&nested(24)), expected);
    let parens = format!(".a[?{}@.b{}]", "(".repeat(MOST_NESTED_BRACKETS), ")".repeat(MOST_NESTED_BRACKETS));
    assert_eq!(
        refused(&parens),
        format!("its brackets stand {} deep, {MOST_NESTED_BRACKETS} are allowed", MOST_NESTED_BRACKETS + 1)
    );
}

#[test]
fn limits_jsonpath_what_is_as_deep_and_as_long_as_allowed_is_read_soon() {
    let began = Instant::now();
    for (open, inner, close) in [
        ("[?@", "", "]"),
        ("[?(", "@.a", ")]"),
        ("[?!(", "@.a", ")]"),
        ("[?count(@", "", ")>0]"),
        ("[?@.a==$", ".b", "]"),
        ("[?length(@.b)==count(@", "", ")]"),
    ] {
        let brackets = open.matches(['[', '(']).count();
        let each = open.matches("[").count().max(1);
        let deep = MOST_NESTED_BRACKETS / brackets.max(each);
        let one = format!("{}{inner}{}", open.repeat(deep), close.repeat(deep));
        let many = LONGEST_PATH / one.len();
        let _ = ParsedPath::parse(&one);
        let _ = ParsedPath::parse(&one.repeat(many));
        let alternatives = one.replacen("[?", &format!("[?{}", "@.a||@.b&&".repeat(40)), 1);
        let _ = ParsedPath::parse(&alternatives);
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn limits_jsonpath_a_long_path_is_refused() {
    let path = ".a".repeat(LONGEST_PATH / 2 + 1);
    assert_eq!(refused(&path), format!("it has {} bytes, {LONGEST_PATH} are allowed", LONGEST_PATH + 2));
    assert!(ParsedPath::parse(&".a".repeat(LONGEST_PATH / 2)).is_ok());
}

#[test]
fn limits_jsonpath_what_could_take_too_many_steps_is_not_begun() {
    let document = tree(3, 8);
    for path in [
        "..*..*..*..*..*..*..*".to_owned(),
        "[*,*,*,*,*,*,*,*][*,*,*,*,*,*,*,*][*,*,*,*,*,*,*,*][*,*,*,*,*,*,*,*]".to_owned(),
        "..[?count(@..*)>count($..*)]".to_owned(),
        "..[?@..[?@..[?@..a]]]..*".to_owned(),
    ] {
        let began = Instant::now();
        let parsed = ParsedPath::parse(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = parsed.all(&document, &StepBudget::default());
        let Err(PathError::Steps { steps, .. }) = &found else {
            panic!("{path}: {:?}", found.map(|found| found.len()))
        };
        assert!(*steps > MOST_STEPS && began.elapsed() < SOON, "{path}");
    }
    let message =
        ParsedPath::parse("..*..*..*..*").unwrap().one(&tree(4, 9), &StepBudget::default()).unwrap_err().to_string();
    assert!(message.starts_with("the JSONPath \"..*..*..*..*\" could take "), "{message}");
    assert!(
        message.ends_with(
            "steps over this object, 10000000 are allowed; name the fields on the way instead of `..`, and ask for fewer in filters"
        ),
        "{message}"
    );
}

#[test]
fn limits_jsonpath_regular_expressions_are_refused() {
    let expected = "regular expressions are not supported; compare with `==`";
    assert_eq!(refused(".a[?match(@.b, '(a{1000}){1000}')]"), expected);
    assert_eq!(refused(".a[?search(@.b, 'x')]"), expected);
}

#[test]
fn limits_jsonpath_what_objects_of_kubernetes_need_is_within_the_limits() {
    // As large as an object in a cluster can be: 1.5 MB.
    let conditions: Vec<Value> =
        (0..20_000).map(|at| json!({"type": format!("T{at}"), "status": "True", "reason": "Because"})).collect();
    let document = json!({"status": {"conditions": conditions}});
    let path = ParsedPath::parse(r#".status.conditions[?(@.type=="T7")].status"#).unwrap();
    assert_eq!(path.one(&document, &StepBudget::default()), Ok(&json!("True")));
    assert_eq!(ParsedPath::parse("..status").unwrap().all(&document, &StepBudget::default()).unwrap().len(), 20_001);
    assert_eq!(
        ParsedPath::parse(r#"..[?(@.type=="T7")].reason"#).unwrap().one(&document, &StepBudget::default()),
        Ok(&json!("Because"))
    );
}
