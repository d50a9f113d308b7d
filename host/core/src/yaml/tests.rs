use proptest::{collection, prelude::*};
use serde_json::{Map, Number};

use super::*;

mod bad;
mod go;
mod positions;
mod words;

/// JSON is YAML: what `serde_json` prints reads back the same, whole floats as whole numbers.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_filter_map("has a fraction", |float| {
            Number::from_f64(float).filter(|_| float.fract() != 0.0).map(Value::Number)
        }),
        "[ -~äöü€😀\n\t]{0,12}".prop_map(Value::String),
        prop_oneof!["yes", "no", "on", "~", "0777", "1_000", "12:30", "<<", "2001-12-14", r"\.5"]
            .prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let entries = collection::btree_map("[a-zA-Z0-9_./ -]{0,8}", inner.clone(), 0..4);
        prop_oneof![
            collection::vec(inner, 0..4).prop_map(Value::Array),
            entries.prop_map(|entries| Value::Object(Map::from_iter(entries))),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_yaml(value in any_json()) {
        prop_assert_eq!(decode(&value.to_string()), Ok(value.clone()));
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(decode(&pretty), Ok(value));
    }

    #[test]
    fn no_text_makes_the_decoder_panic(text in "[ -~\n]{0,64}") {
        let read = decode(&text);
        // What several documents say is read one by one, or reported with a position inside the text.
        if let Err(error) = documents(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1, "{error}");
            prop_assert!(error.column >= 1);
        } else {
            prop_assert!(read.is_ok());
        }
    }
}

#[test]
fn reasons_are_sentences_with_the_fix() {
    let cases = [
        (YamlFault::Syntax("unclosed bracket".to_owned()), "unclosed bracket"),
        (YamlFault::KeyIsNoScalar, "a list or an object cannot be a key; write a text"),
        (YamlFault::KeyIsNull, "an empty value cannot be a key; write the key in quotes"),
        (YamlFault::MergeOfNoObject, "`<<` can only merge an object or a list of objects"),
        (YamlFault::NotANumber, "infinite numbers and `.nan` cannot be written as JSON; use quotes for text"),
        (YamlFault::Tag("!!int".to_owned()), "the value does not fit its tag `!!int`"),
        (
            YamlFault::Unfolded,
            "the aliases of the text unfold to more than the 12582912 bytes that are allowed; write less, or several texts",
        ),
        (
            YamlFault::TooLarge,
            "the text has so many values that it takes more than the 50331648 bytes of memory that are allowed; write several",
        ),
        (YamlFault::TooDeep, "values stand more than the 128 levels deep in each other that are allowed"),
        (YamlFault::RecursiveAlias, "an alias cannot stand inside what it names"),
    ];
    for (reason, message) in cases {
        let error = YamlError { line: 7, column: 2, reason };
        assert_eq!(error.to_string(), format!("line 7, column 2: {message}"));
    }
}
