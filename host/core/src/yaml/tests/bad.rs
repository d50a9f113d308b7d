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
    // The parser has a limit of its own, which it meets first where it looks ahead.
    let limits = [YamlFault::TooDeep, YamlFault::Syntax("recursion limit exceeded".to_owned())];
    for (unit, line) in [("[", 1), ("{a: ", 1), ("- ", 1)] {
        let error = decode(&unit.repeat(100_000)).unwrap_err();
        assert!(error.line == line && limits.contains(&error.reason), "{unit}: {error}");
    }
    let nested: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let error = decode(&nested).unwrap_err();
    assert!(limits.contains(&error.reason), "{error}");
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
    assert_eq!((error.line, error.reason), (5, YamlFault::Unfolded));
    assert_eq!(locate(&bomb).unwrap_err().line, 5);
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

#[test]
fn limits_yaml_a_long_text_that_is_named_often_is_refused_before_it_unfolds() {
    // 100 KB, as a ConfigMap can have: 50 KB of text, and as many aliases of it as fit.
    let bomb = format!("a: &a {}\nb: [{}]\n", "x".repeat(50 << 10), "*a, ".repeat(12_000));
    assert!(bomb.len() < 100 << 10);
    let error = decode(&bomb).unwrap_err();
    assert_eq!((error.line, error.reason), (2, YamlFault::Unfolded));
    assert_eq!(decode_or_text(&bomb), Value::String(bomb.clone()));
    // The same in names of fields, and in anchors around anchors.
    let names = format!("a: &a {{{}: 1}}\nb: [{}]\n", "x".repeat(1000), "*a, ".repeat(20_000));
    assert_eq!(decode(&names).unwrap_err().reason, YamlFault::Unfolded);
    let anchors: String = (0..100).map(|level| format!("&a{level} [")).collect();
    let nested = format!("{anchors}{}{}", "x".repeat(1 << 20), "]".repeat(100));
    assert_eq!(decode(&nested).unwrap_err().reason, YamlFault::Unfolded);
    // What is written once, and a small part that is named often, is none.
    assert!(decode(&format!("a: {}", "x".repeat(40 << 20))).is_ok());
    assert!(decode(&format!("a: &a {{b: c}}\nd: [{}]\n", "*a, ".repeat(10_000))).is_ok());
}

#[test]
fn limits_yaml_depth_is_bounded_with_aliases_unfolded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(&nested(MOST_YAML_DEPTH)).is_ok());
    assert_eq!(decode(&nested(MOST_YAML_DEPTH + 1)).unwrap_err().reason, YamlFault::TooDeep);
    let mut ladder = "a0: &a0 x\n".to_owned();
    for level in 1..=MOST_YAML_DEPTH {
        ladder.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    let error = decode(&ladder).unwrap_err();
    assert_eq!((error.line, error.reason), (MOST_YAML_DEPTH, YamlFault::TooDeep));
}

#[test]
fn limits_yaml_the_places_of_parts_take_no_more_than_their_share() {
    let long = "x".repeat(50 << 10);
    let fields: String = (0..10_000).map(|at| format!("  k{at}: 1\n")).collect();
    let located = locate(&format!("first: 1\n? {long}\n:\n{fields}")).unwrap();
    assert_eq!(located.positions.find("first").line, 1);
    assert_eq!(located.positions.find(&format!("{long}.k1")).line, 5);
    assert_eq!(located.positions.find(&format!("{long}.k9999")).line, 2, "where the object is");
}

#[test]
fn limits_yaml_a_text_is_counted_by_the_memory_of_its_values() {
    // 500 KB, as a ConfigMap can have.
    let bomb = format!("[{}]", "{\"\":0},".repeat(70_000));
    assert_eq!(decode(&bomb).unwrap_err().reason, YamlFault::TooLarge);
    // The same in many documents, each of which is small.
    let stream = "---\n- \"\": 0\n".repeat(70_000);
    assert_eq!(documents(&stream).unwrap_err().reason, YamlFault::TooLarge);
    assert_eq!(documents(&"---\n- \"\": 0\n".repeat(10_000)).map(|all| all.len()), Ok(10_000));
    // The definitions of a large operator: 3 MB.
    let definitions =
        "- description: what the field of the object means, in a sentence or two of sixty letters\n  type: string\n";
    assert!(decode(&definitions.repeat(30_000)).is_ok());
}

#[test]
fn c_99_limits_yaml_a_text_is_decoded_as_far_as_there_is_room() {
    let values = |count: usize| format!("[{}0]", "{\"\": 0}, ".repeat(count));
    let (few, bomb) = (values(100), values(100_000));
    let bytes = memory::of(&decode_or_text(&few));
    assert_eq!(decode_or_text_within(&few, 2 * bytes), Some(decode_or_text(&few)));
    assert_eq!([decode_or_text_within(&few, bytes / 2), decode_or_text_within(&bomb, 2 * bytes)], [None, None]);
    assert_eq!(decode_or_text_within("a: b: c", 1_000), Some(Value::from("a: b: c")));
    assert_eq!(
        decode_or_text_within(&format!("a: b: {}", "c".repeat(2_000)), 1_000),
        None,
        "the text that it stays counts"
    );
    assert_eq!(decode_or_text_within(&bomb, u64::MAX), Some(Value::String(bomb.clone())));
}
