//! What is made to harm: one error with its place, within limits.

use super::*;

#[track_caller]
fn refused(text: &str, line: usize, column: usize, message: &str) {
    let error = decode(text).unwrap_err();
    assert_eq!((error.line, error.column, error.reason.to_string().as_str()), (line, column, message));
    assert_eq!(locate(text).unwrap_err(), error, "it is the same with places");
    assert_eq!(locate_all(text).unwrap_err(), error, "and in a stream");
}

#[test]
fn deep_nesting_is_refused_where_it_gets_too_deep() {
    let limit = "recursion limit exceeded";
    for (unit, line) in [("[", 1), ("{a: ", 1), ("- ", 1)] {
        let error = decode(&unit.repeat(100_000)).unwrap_err();
        assert_eq!((error.line, error.reason.to_string().as_str()), (line, limit), "{unit}");
    }
    let nested: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let error = decode(&nested).unwrap_err();
    assert_eq!(error.reason.to_string(), limit);
    assert!(error.line < 300, "it is told where the limit is: {}", error.line);
}

#[test]
fn an_honest_depth_is_read() {
    let deep = "[".repeat(100) + &"]".repeat(100);
    let mut value = &decode(&deep).unwrap();
    let mut depth = 0;
    while let Some(items) = value.as_array() {
        depth += 1;
        match items.first() {
            Some(next) => value = next,
            None => break,
        }
    }
    assert_eq!(depth, 100);
}

#[test]
fn a_bomb_of_anchors_is_refused_before_it_unfolds() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let error = decode(&bomb).unwrap_err();
    assert_eq!((error.line, error.reason), (6, YamlFault::TooManyNodes));
    assert_eq!(locate(&bomb).unwrap_err().line, 6);
}

#[test]
fn an_anchor_within_itself_is_refused() {
    let error = decode("a: &a\n- *a\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 3));
    assert_eq!(error.reason, YamlFault::RecursiveAlias);
}

#[test]
fn numbers_that_json_cannot_hold_are_refused_and_others_are_kept_as_near_as_can_be() {
    let message = "infinite numbers and `.nan` cannot be written as JSON; use quotes for text";
    refused("a: 1e999", 1, 4, message);
    refused(&format!("a:\n- {}", "9".repeat(400)), 2, 3, message);
    refused("a: .inf", 1, 4, message);
    assert_eq!(decode(&"9".repeat(25)).unwrap(), serde_json::json!(1e25));
    assert_eq!(decode(&format!("'{}'", "9".repeat(25))).unwrap(), Value::String("9".repeat(25)));
}

#[test]
fn of_equal_keys_the_last_counts_and_the_place_of_each_is_told() {
    let located = locate("a: {x: 1}\nb: 2\na: {z: 3}\n").unwrap();
    assert_eq!(located.value, serde_json::json!({"a": {"z": 3}, "b": 2}));
    assert_eq!(located.positions.duplicates(), [("a".to_owned(), SourcePosition { line: 3, column: 1 })]);
    assert_eq!(located.positions.find("a.z"), SourcePosition { line: 3, column: 5 });
    assert_eq!(
        located.positions.find("a.x"),
        SourcePosition { line: 3, column: 1 },
        "what does not count has no place"
    );
}

#[test]
fn equal_keys_of_different_objects_are_no_duplicates() {
    for text in ["- {a: 1}\n- {a: 2}\n", "a: {k: 1}\nb: {k: 2}\n", "A: 1\na: 2\n", "a: {<<: {k: 1}, k: 2}\n"] {
        let located = locate(text).unwrap();
        let expected = usize::from(text.contains("<<"));
        assert_eq!(located.positions.duplicates().len(), expected, "{text}");
    }
}
