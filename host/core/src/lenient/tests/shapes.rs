//! Every shape that a form can have, read well and read badly.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Shapes {
    flag: bool,
    small: i8,
    short: i16,
    int: i32,
    long: i64,
    byte: u8,
    word: u16,
    wide: u32,
    huge: u64,
    single: f32,
    double: f64,
    text: String,
    #[serde(alias = "otherName")]
    named: Option<String>,
    letter: Option<char>,
    list: Vec<Vec<u8>>,
    map: BTreeMap<String, Inner>,
    wrapped: Wrapped,
    inner: Option<Box<Inner>>,
    sort: Option<Sort>,
    free: Vec<Value>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Inner {
    #[serde(rename = "type")]
    type_: String,
    pair: Option<(u8, u8)>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
struct Wrapped(String);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    One,
    Two,
}

#[test]
fn every_shape_is_read() {
    let document = json!({
        "flag": true,
        "small": -128,
        "short": -32768,
        "int": -2_147_483_648_i64,
        "long": i64::MIN,
        "byte": 255,
        "word": 65535,
        "wide": 4_294_967_295_u64,
        "huge": u64::MAX,
        "single": 0.5,
        "double": 1,
        "text": "t",
        "otherName": "n",
        "letter": "ä",
        "list": [[1], [], null],
        "map": {"Key": {"TYPE": "x", "pair": [1, 2]}, "none": null},
        "wrapped": "w",
        "inner": {"Type": "y"},
        "sort": "two",
        "free": [null, {"A": 1}, "x"],
    });
    let inner = |type_: &str, pair| Inner { type_: type_.to_owned(), pair };
    let expected = Shapes {
        flag: true,
        small: -128,
        short: -32768,
        int: -2_147_483_648,
        long: i64::MIN,
        byte: 255,
        word: 65535,
        wide: 4_294_967_295,
        huge: u64::MAX,
        single: 0.5,
        double: 1.0,
        text: "t".to_owned(),
        named: Some("n".to_owned()),
        letter: Some('ä'),
        list: vec![vec![1], vec![], vec![]],
        map: BTreeMap::from([("Key".to_owned(), inner("x", Some((1, 2)))), ("none".to_owned(), Inner::default())]),
        wrapped: Wrapped("w".to_owned()),
        inner: Some(Box::new(inner("y", None))),
        sort: Some(Sort::Two),
        free: vec![json!(null), json!({"A": 1}), json!("x")],
    };
    assert_eq!(decode::<Shapes>(&document), Ok(expected));
    assert_eq!(decode::<Shapes>(&json!({})), Ok(Shapes::default()));
}

#[test]
fn nulls_are_zero_in_every_shape() {
    let names = [
        "flag", "small", "short", "int", "long", "byte", "word", "wide", "huge", "single", "double", "text", "named",
        "letter", "list", "map", "wrapped", "inner", "sort", "free",
    ];
    let nulls: Value =
        names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(decode::<Shapes>(&nulls), Ok(Shapes::default()));
}

#[test]
fn every_wrong_shape_is_told_with_its_place() {
    let text = "expected a text; write it in quotes";
    let cases = [
        (json!({"flag": "true"}), "flag: expected true or false, found a text"),
        (json!({"flag": 1}), "flag: expected true or false, found a number"),
        (json!({"small": 128}), "small: the number does not fit here"),
        (json!({"byte": -1}), "byte: the number does not fit here"),
        (json!({"int": 1.5}), "int: the number does not fit here"),
        (json!({"long": u64::MAX}), "long: the number does not fit here"),
        (json!({"huge": "1"}), "huge: expected a number, found a text"),
        (json!({"double": true}), "double: expected a number, found true or false"),
        (json!({"text": ["x"]}), &format!("text: {text}, found a list")),
        (json!({"named": {"x": 1}}), &format!("named: {text}, found an object")),
        (json!({"letter": "ab"}), "letter: expected a character"),
        (json!({"list": [[1, "x"]]}), "list[0][1]: expected a number, found a text"),
        (json!({"list": [{}]}), "list[0]: expected a list, found an object"),
        (json!({"map": {"a": {"type": 1}}}), &format!("map.a.type: {text}, found a number")),
        (json!({"map": []}), "map: expected an object, found a list"),
        (json!({"map": {"a": 1}}), "map.a: expected an object, found a number"),
        (json!({"wrapped": 1}), &format!("wrapped: {text}, found a number")),
        (json!({"inner": {"pair": [1]}}), "inner.pair: invalid length 1, expected a tuple of size 2"),
        (json!({"sort": "three"}), "sort: expected one of one, two"),
        (json!({"sort": 3}), "sort: expected a word, found a number"),
        (json!("x"), "expected an object, found a text"),
    ];
    for (document, message) in cases {
        let error = decode::<Shapes>(&document).unwrap_err();
        let display = error.to_string();
        assert!(display.starts_with(message), "{document}: {display}");
    }
}
