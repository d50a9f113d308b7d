use serde_json::json;

use super::super::*;

#[track_caller]
fn check(text: &str, expected: Value) {
    assert_eq!(decode(text), Ok(expected), "{text}");
}

#[track_caller]
fn fails(text: &str, line: usize, column: usize, reason: YamlFault) {
    assert_eq!(decode(text), Err(YamlError { line, column, reason }), "{text}");
}

#[test]
fn words_of_yaml_1_1_are_booleans_and_null() {
    check("[y, Yes, on, TRUE]", json!([true, true, true, true]));
    check("[n, No, OFF, False]", json!([false, false, false, false]));
    check("[~, null, Null, '']", json!([null, null, null, ""]));
    check("[yEs, oN, tRUE, nil]", json!(["yEs", "oN", "tRUE", "nil"]));
    check("['yes', \"no\"]", json!(["yes", "no"]));
    check("a:\nb:", json!({"a": null, "b": null}));
}

#[test]
fn numbers_are_read_as_go_reads_them() {
    check("[0777, 0o17, 1_000, 0x1F, 0b101, -0b1, +5]", json!([511, 15, 1000, 31, 5, -1, 5]));
    check("[1.5, 1e3, .5, 5., -1.0, 08, 1_0.5]", json!([1.5, 1000, 0.5, 5, -1, 8, 10.5]));
    check("[18446744073709551615, -9223372036854775808]", json!([u64::MAX, i64::MIN]));
    check("123456789012345678901234567890", json!(123_456_789_012_345_678_901_234_567_890_f64));
    check("[0x, 1.2.3, 1e, '1', +, .]", json!(["0x", "1.2.3", "1e", "1", "+", "."]));
}

#[test]
fn times_and_dates_stay_text() {
    check(
        "[12:30, 2001-12-14, 2001-12-14t21:59:43.10-05:00]",
        json!(["12:30", "2001-12-14", "2001-12-14t21:59:43.10-05:00"]),
    );
}

#[test]
fn keys_are_resolved_and_then_written_as_text() {
    check("{yes: 1, off: 2, 0777: 3, 1.5: 4, 'no': 5}", json!({"true": 1, "false": 2, "511": 3, "1.5": 4, "no": 5}));
    check("{a: 1, a: 2}", json!({"a": 2}));
    fails("x: {~: 1}", 1, 5, YamlFault::KeyIsNull);
    fails("? [a]\n: b", 1, 3, YamlFault::KeyIsNoScalar);
}

#[test]
fn tags_decide_over_looks() {
    check(
        "[!!str 12, !!float 3, !!int '0x10', !!null x, !!binary aGk=, !mine 5]",
        json!(["12", 3, 16, null, "hi", "5"]),
    );
    fails("a: !!int x", 1, 10, YamlFault::Tag("!!int".to_owned()));
}

#[test]
fn folded_and_literal_texts_keep_their_form() {
    check("a: |\n  x\n   y\nb: >-\n  x\n  y\n", json!({"a": "x\n y\n", "b": "x y"}));
    // Recorded: what a Secret holds is read as YAML too.
    assert_eq!(decode_or_text("x\ny"), json!("x y"));
    assert_eq!(decode_or_text("42"), json!(42));
    assert_eq!(decode_or_text("a: b: c"), json!("a: b: c"));
}

#[test]
fn anchors_are_copied_and_merged() {
    check(
        "a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}",
        json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 2}, "c": {"p": 1, "q": 3}}),
    );
    check("- &x {p: 1}\n- &y {p: 2, q: 2}\n- {<<: [*x, *y]}", json!([{"p": 1}, {"p": 2, "q": 2}, {"p": 1, "q": 2}]));
    check("{&k a: 1, b: {*k : 2}}", json!({"a": 1, "b": {"a": 2}}));
    check("['<<']", json!(["<<"]));
    fails("{<<: 5}", 1, 7, YamlFault::MergeOfNoObject);
}

#[test]
fn aliases_cannot_unfold_without_end() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = level - 1;
        let list = vec![format!("*a{below}"); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    assert_eq!(decode(&text).unwrap_err().reason, YamlFault::Unfolded);
    assert_eq!(decode("a: &a [*a]").unwrap_err().reason, YamlFault::RecursiveAlias);
}

#[test]
fn what_json_lacks_is_refused() {
    fails("a: .inf", 1, 4, YamlFault::NotANumber);
    fails("a: .nan", 1, 4, YamlFault::NotANumber);
}

#[test]
fn a_syntax_error_names_its_place() {
    let error = decode("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
    assert!(matches!(error, YamlError { reason: YamlFault::Syntax(_), .. }), "{error}");
    assert!(error.line >= 2, "{error}");
    let error = decode("a: b: c").unwrap_err();
    assert_eq!((error.line, error.column), (1, 5), "{error}");
}

#[test]
fn a_snippet_shows_the_place() {
    let error = YamlError { line: 3, column: 4, reason: YamlFault::NotANumber };
    assert_eq!(
        error.snippet("one\ntwo\nthree\nfour\nfive\nsix"),
        "1 | one\n2 | two\n3 | three\n  |    ^\n4 | four\n5 | five\n"
    );
    assert_eq!(snippet("one", 1, 1), "1 | one\n  | ^\n");
}

#[test]
fn only_the_first_document_is_decoded() {
    check("---\na: 1\n---\nb: 2", json!({"a": 1}));
    check("", Value::Null);
    check("# nothing\n", Value::Null);
    check("\u{feff}a: 1", json!({"a": 1}));
}

#[test]
fn a_stream_is_split_with_the_lines_of_its_documents() {
    let stream = documents("# head\na: 1\n---\n---\n# mid\n\nb: 2\n...\n---\n- c\n").unwrap();
    assert_eq!(
        stream,
        [
            YamlDocument { line: 2, value: json!({"a": 1}) },
            YamlDocument { line: 7, value: json!({"b": 2}) },
            YamlDocument { line: 10, value: json!(["c"]) },
        ]
    );
    assert_eq!(documents("a: 1\n---\nb: [").unwrap_err().line, 3);
}

#[test]
fn limits_yaml_of_a_long_line_the_part_around_the_place_is_shown() {
    let line = "a".repeat(99_999) + "?" + &"b".repeat(99_999);
    let shown = format!("1 | {}?{}\n  | {}^\n", "a".repeat(100), "b".repeat(99), " ".repeat(100));
    assert_eq!(snippet(&line, 1, 100_000), shown);
    assert_eq!(snippet(&line, 1, 0).lines().next(), Some(format!("1 | {}", "a".repeat(200)).as_str()));
}
