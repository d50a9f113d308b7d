//! How Go's `yaml.v2` reads, and what `sigs.k8s.io/yaml` makes of it on the way to JSON: one line a case.

use serde_json::json;

use super::super::*;

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (text, expected) in cases {
        assert_eq!(decode(text).as_ref(), Ok(expected), "{text}");
    }
}

#[test]
fn scalars() {
    check(&[
        ("v: hi", json!({"v": "hi"})),
        ("v: true", json!({"v": true})),
        ("v: 10", json!({"v": 10})),
        ("v: 0b10", json!({"v": 2})),
        ("v: 0xA", json!({"v": 10})),
        ("v: 4294967296", json!({"v": 4_294_967_296_i64})),
        ("v: 0.1", json!({"v": 0.1})),
        ("v: .1", json!({"v": 0.1})),
        ("v: -10", json!({"v": -10})),
        ("v: -.1", json!({"v": -0.1})),
        ("123", json!(123)),
        ("canonical: 6.8523e+5", json!({"canonical": 685_230})),
        ("expo: 685.230_15e+03", json!({"expo": 685_230.15})),
        ("fixed: 685_230.15", json!({"fixed": 685_230.15})),
        ("fixed: 685_230", json!({"fixed": 685_230})),
        ("bin_int: 0b1010_0111_0100_1010_1110", json!({"bin_int": 685_230})),
        ("bin_int: -0b101", json!({"bin_int": -5})),
        ("octal: 02472256", json!({"octal": 685_230})),
        ("hex: 0x_0A_74_AE", json!({"hex": 685_230})),
        ("decimal: +685_230", json!({"decimal": 685_230})),
        ("exponent: 1e-7", json!({"exponent": 1e-7})),
        ("exponent: 1E+3", json!({"exponent": 1000})),
        ("negative zero: -0", json!({"negative zero": 0})),
        ("empty:", json!({"empty": null})),
        ("canonical: ~", json!({"canonical": null})),
        ("english: null", json!({"english": null})),
    ]);
}

#[test]
fn texts_that_only_look_like_something_else() {
    check(&[
        ("a: 0_", json!({"a": 0})),
        ("a: 0b", json!({"a": "0b"})),
        ("a: 0x_", json!({"a": "0x_"})),
        ("a: 1.2.3.4", json!({"a": "1.2.3.4"})),
        ("a: v1.2", json!({"a": "v1.2"})),
        ("a: 1m", json!({"a": "1m"})),
        ("a: 100Mi", json!({"a": "100Mi"})),
        ("a: 1e3x", json!({"a": "1e3x"})),
        ("a: 0o8", json!({"a": "0o8"})),
        ("a: 09", json!({"a": 9})),
        ("a: 0987", json!({"a": 987})),
        ("a: 123456e1", json!({"a": 1_234_560})),
        ("a: 123456E1", json!({"a": 1_234_560})),
        ("a: 1:1", json!({"a": "1:1"})),
        ("a: 190:20:30", json!({"a": "190:20:30"})),
        ("a: 2015-01-01", json!({"a": "2015-01-01"})),
        ("a: 2015-02-24T18:19:39Z", json!({"a": "2015-02-24T18:19:39Z"})),
        ("a: 3 apples", json!({"a": "3 apples"})),
        ("a: \"3\"", json!({"a": "3"})),
        ("a: '~'", json!({"a": "~"})),
        ("a: Null", json!({"a": null})),
        ("a: nULL", json!({"a": "nULL"})),
        ("a: yep", json!({"a": "yep"})),
        ("a: .5.", json!({"a": ".5."})),
        ("a: +1.5", json!({"a": 1.5})),
    ]);
}

#[test]
fn lists_and_objects() {
    check(&[
        ("seq: [A,B]", json!({"seq": ["A", "B"]})),
        ("seq: [A,B,C,]", json!({"seq": ["A", "B", "C"]})),
        ("seq: [A,1,C]", json!({"seq": ["A", 1, "C"]})),
        ("seq:\n - A\n - B", json!({"seq": ["A", "B"]})),
        ("seq:\n- A\n- B", json!({"seq": ["A", "B"]})),
        ("seq:\n - A\n - 1\n - C", json!({"seq": ["A", 1, "C"]})),
        ("seq:\n-\n- {}\n- []", json!({"seq": [null, {}, []]})),
        ("- - a\n  - b\n- c", json!([["a", "b"], "c"])),
        ("a: {b: c}", json!({"a": {"b": "c"}})),
        ("a: {b: c, 1: d}", json!({"a": {"b": "c", "1": "d"}})),
        ("a: {b: https://github.com/x}", json!({"a": {"b": "https://github.com/x"}})),
        ("a: [https://github.com/x]", json!({"a": ["https://github.com/x"]})),
        ("a:\n  b:\n    c: d", json!({"a": {"b": {"c": "d"}}})),
        ("{a: 1, b: 2}", json!({"a": 1, "b": 2})),
        ("{\"a\": 1, 'b': 2}", json!({"a": 1, "b": 2})),
        ("? a\n: 1\n? b\n: 2", json!({"a": 1, "b": 2})),
        ("a: 1 # comment\n# more\nb: '#'", json!({"a": 1, "b": "#"})),
        ("1.50: x\n0x10: w\n-7: z", json!({"1.5": "x", "16": "w", "-7": "z"})),
    ]);
}

#[test]
fn block_texts() {
    check(&[
        ("scalar: | # Comment\n\n literal\n\n \ttext\n\n", json!({"scalar": "\nliteral\n\n\ttext\n"})),
        (
            "scalar: > # Comment\n\n folded\n line\n \n next\n line\n  * one\n  * two\n\n last\n line\n\n",
            json!({"scalar": "\nfolded line\nnext line\n * one\n * two\n\nlast line\n"}),
        ),
        ("a: |+\n  keep\n\nb: |-\n  strip\n\n", json!({"a": "keep\n\n", "b": "strip"})),
        ("a: |2\n    two\n  one\n", json!({"a": "  two\none\n"})),
        ("a: 'it''s'", json!({"a": "it's"})),
        ("a: \"\\u00e4\\n\\x41\\\\\"", json!({"a": "ä\nA\\"})),
        ("a: plain\n  over lines\n  of text", json!({"a": "plain over lines of text"})),
        ("a: \"double\n  over\n\n  lines\"", json!({"a": "double over\nlines"})),
    ]);
}

#[test]
fn anchors_and_merges() {
    check(&[
        ("a: &x 1\nb: &y 2\nc: *x\nd: *y\n", json!({"a": 1, "b": 2, "c": 1, "d": 2})),
        ("a: &a {c: 1}\nb: *a", json!({"a": {"c": 1}, "b": {"c": 1}})),
        ("a: &a [1, 2]\nb: *a", json!({"a": [1, 2], "b": [1, 2]})),
        ("a: &x 1\nb: &x 2\nc: *x", json!({"a": 1, "b": 2, "c": 2})),
        ("d: &d {x: 1, z: 2}\ne: {z: 3, <<: *d}", json!({"d": {"x": 1, "z": 2}, "e": {"x": 1, "z": 3}})),
        ("d: &d {x: 1}\ne: {<<: {z: 5}, <<: *d}", json!({"d": {"x": 1}, "e": {"x": 1, "z": 5}})),
        (
            "a: &a {b: &b {c: 1}}\nd: {<<: *b, e: *a}",
            json!({"a": {"b": {"c": 1}}, "d": {"c": 1, "e": {"b": {"c": 1}}}}),
        ),
    ]);
}

#[test]
fn tags() {
    check(&[
        ("v: !!float '1.1'", json!({"v": 1.1})),
        ("v: !!float 0", json!({"v": 0})),
        ("v: !!float -1", json!({"v": -1})),
        ("v: !!null ''", json!({"v": null})),
        ("v: !!str true", json!({"v": "true"})),
        ("v: !!str 0777", json!({"v": "0777"})),
        ("v: !!bool yes", json!({"v": true})),
        ("v: !!timestamp 2001-12-14", json!({"v": "2001-12-14"})),
        ("v: !mine {a: 1}", json!({"v": {"a": 1}})),
        ("v: !!map {a: 1}", json!({"v": {"a": 1}})),
        ("v: !!seq [1]", json!({"v": [1]})),
        ("a: !!binary gIGC\n", json!({"a": "\u{fffd}\u{fffd}\u{fffd}"})),
        ("a: !!binary |\n  aGVs\n  bG8=\n", json!({"a": "hello"})),
    ]);
}

#[test]
fn what_go_refuses() {
    let refused = [
        "a: b: c",
        "b: *unknown",
        "a: [1, 2",
        "a: {b: 1",
        "a: 'open",
        "a: \"open",
        "a: &x\nb: *y",
        "- a\nb: c",
        "a: 1\n b: 2",
        "a: @x",
        "a: `x`",
        "a: %x",
        "v: !!float 'error'",
        "v: !!int 'error'",
        "v: !!bool 12",
        "v: [!!binary '$']",
    ];
    for text in refused {
        assert!(decode(text).is_err(), "{text}: {:?}", decode(text));
    }
}
