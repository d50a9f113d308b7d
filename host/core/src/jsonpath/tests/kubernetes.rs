//! What is written in the field, and what of it is refused.

use super::*;

#[track_caller]
fn check_in(document: Value, path: &str, expected: Value) {
    let found: Vec<Value> =
        ParsedPath::parse(path).unwrap().all(&document, &StepBudget::default()).unwrap().into_iter().cloned().collect();
    assert_eq!(Value::Array(found), expected, "{path}");
}

#[test]
fn blanks_around_a_path_do_not_matter() {
    check("  .data.key\n", json!(["value"]));
    check(" ", json!([document()]));
    check(".list[ 1 , 3 ]", json!([1, 3]));
    check(".data[ 'key' ]", json!(["value"]));
}

#[test]
fn the_document_may_be_written_as_dollar_or_dot() {
    for path in ["$", "$.", "."] {
        check(path, json!([document()]));
    }
    check("$['data']['key']", json!(["value"]));
    check("['data'].key", json!(["value"]));
    check(".data.['key']", json!(["value"]));
}

#[test]
fn any_character_can_be_part_of_a_name() {
    let document = json!({"a b": 1, "ä": 2, "a\\b": 3, "a\"b": 4, "a\tb": 5, "[0]": 6, "a,b": 7, "$x": 8, "@x": 9});
    let cases = [
        (".a b", 1),
        (".ä", 2),
        (r".a\\b", 3),
        (r#".['a"b']"#, 4),
        (r#".["a\"b"]"#, 4),
        (".a\tb", 5),
        (r".\[0\]", 6),
        ("['a,b']", 7),
        (".$x", 8),
        ("['@x']", 9),
    ];
    for (path, value) in cases {
        check_in(document.clone(), path, json!([value]));
    }
    check_in(document, "['a,b','ä']", json!([7, 2]));
}

#[test]
fn slices_may_lack_a_bound_and_may_step() {
    check(".list[:2]", json!([0, 1]));
    check(".list[2:]", json!([2, 3]));
    check(".list[-2:]", json!([2, 3]));
    check(".list[::2]", json!([0, 2]));
    check(".list[9]", json!([]));
    check(".list[1:1]", json!([]));
    check(".list[0,0]", json!([0, 0]));
}

#[test]
fn what_does_not_fit_the_document_gives_no_result() {
    for path in [".data[0]", ".list.key", ".data.key.deeper", ".status.conditions.type", ".data.key[*]"] {
        check(path, json!([]));
    }
}

#[test]
fn descending_finds_all_depths() {
    let tree = json!({"x": {"n": 1, "l": [{"n": 2}]}});
    check_in(tree.clone(), "..n", json!([1, 2]));
    check_in(tree.clone(), ".x..n", json!([1, 2]));
    check_in(tree.clone(), "..l[0].n", json!([2]));
    check_in(tree.clone(), "..['n']", json!([1, 2]));
    check_in(tree, ".x.l.*", json!([{"n": 2}]));
}

#[test]
fn filters_may_combine_compare_and_look_at_the_whole_document() {
    let document = json!({"wanted": "b", "items": [
        {"name": "a", "tags": ["x"], "n": 1, "my.key": true},
        {"name": "b", "tags": ["y", "z"], "n": 2},
    ]});
    let cases = [
        (".items[?(@.n >= 1 && @.n < 2)].name", json!(["a"])),
        (".items[?(@.n==2 || @.name=='a')].name", json!(["a", "b"])),
        (".items[?(!@.my\\.key)].name", json!(["b"])),
        (".items[?(@.tags[0] == 'y')].name", json!(["b"])),
        (".items[?(@['name'] != \"a\")].name", json!(["b"])),
        (".items[?(@.name == $.wanted)].n", json!([2])),
        (".items[?(length(@.tags) > 1)].name", json!(["b"])),
        (".items[?@.n==1].name", json!(["a"])),
        (".items[?(@.tags[?(@ == 'z')])].name", json!(["b"])),
    ];
    for (path, expected) in cases {
        check_in(document.clone(), path, expected);
    }
    check_in(json!(["a", "b"]), "[?(@ == 'b')]", json!(["b"]));
}

#[test]
fn quotes_in_a_filter_keep_brackets_and_operators_together() {
    let document = json!([{"t": "a]b"}, {"t": "c && d"}, {"t": "it's"}]);
    check_in(document.clone(), "[?(@.t=='a]b')].t", json!(["a]b"]));
    check_in(document.clone(), "[?(@.t==\"c && d\")].t", json!(["c && d"]));
    check_in(document, "[?(@.t==\"it's\")].t", json!(["it's"]));
}

#[test]
fn errors_are_sentences_that_quote_the_path_as_it_was_written() {
    let message = |path: &str| ParsedPath::parse(path).unwrap_err().to_string();
    let syntax = |path: &str, reason: &str| {
        format!("{path:?} is no JSONPath: {reason}; write it as in `kubectl -o jsonpath`, without braces")
    };
    for (path, reason) in [
        (" .a[0 ", "a bracket is not closed"),
        (".a['b]", "\"'b\" in brackets is neither a number, a range, a star nor a name in quotes"),
        (".a..", "a name is missing after a dot"),
        (".a[]", "\"\" in brackets is neither a number, a range, a star nor a name in quotes"),
        (".a[0,]", "\"\" in brackets is neither a number, a range, a star nor a name in quotes"),
        (".a['b'c]", "\"'b'c\" in brackets is neither a number, a range, a star nor a name in quotes"),
        (".a[0]]", "\"]\" is not expected here"),
    ] {
        assert_eq!(message(path), syntax(path, reason));
    }
    let several = ParsedPath::parse(" .list[*]").unwrap().one(&document(), &StepBudget::default()).unwrap_err();
    assert_eq!(several.to_string(), "the JSONPath \" .list[*]\" has 4 results, but exactly one is needed");
}
