use proptest::{collection, prelude::*};
use serde_json::json;

use super::*;

#[test]
fn data_hashes_are_those_recorded_from_the_original() {
    let cases = [
        (json!({"item": null}), "cbd3229133410c4901821cbeb721d40711de60a0"),
        (json!("A"), "094ab35edf662b17bd99d42e7eaf2b41ae82766e"),
        (json!("pre-x"), "c9c6985bda49781ffc66d2f8766ca9ac75bc3019"),
        (json!({"from": "pre-x-suffix"}), "feace104181cdfcd9617d9f4be1a35b2d66d8da0"),
        (json!({"list": [1, 2], "sum": 7}), "398562065302b8b6b68b170efac3c816c2e335c4"),
        (json!({"item-2": null, "item-0": null, "item-1": null}), "36a0b66dff05986ed68244aac04323fe99cc800f"),
    ];
    for (data, hash) in cases {
        assert_eq!(data_hash(&data), hash, "{data}");
    }
}

#[test]
fn target_hashes_are_over_config_or_the_secret_reference() {
    let recorded = json!({"type": "t", "secretRef": {"key": "kubeconfig", "name": "kc"}});
    assert_eq!(target_hash(&recorded), "1dcc87397c76e2ffde33a1cedddad77a0e0fc0d5");
    assert_eq!(target_hash(&json!({"type": "t", "config": {"b": 1, "a": 2}})), sha1(r#"{"a":2,"b":1}"#));
    assert_eq!(target_hash(&json!({"secretRef": {"name": "kc"}})), sha1(r#"{"secretRef":{"name":"kc"}}"#));
    assert_eq!(target_hash(&json!({"type": "t"})), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

#[test]
fn ins_23_import_hashes_are_those_recorded_from_the_original() {
    let map = |entries: &[(&str, &str)]| {
        entries.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<BTreeMap<_, _>>()
    };
    let none = Fingerprints::default();
    assert_eq!(imports_hash(&none), "0f87657555a176d70ad8a275ca4141af0f720a11");
    let target = Fingerprints { targets: map(&[("cluster", "1")]), ..none.clone() };
    assert_eq!(imports_hash(&target), "e33d3b041a7833ac77c1dea46466e2adb9980dd5");
    let annotated =
        Fingerprints { data_objects: map(&[("a", "094ab35edf662b17bd99d42e7eaf2b41ae82766e")]), ..none.clone() };
    assert_eq!(imports_hash(&annotated), "dadedc77cef5ebf876a9ca2d489b3a8c2ba960ba");
    let stored = stored_hash(&json!({"a": "x", "n": 3, "l": [1, 2]}));
    let data = Fingerprints { data_objects: map(&[("cfg", &stored)]), ..none.clone() };
    assert_eq!(imports_hash(&data), "61b2c15b2557b5912ef42f7299d18d635ebd983d");
    let lists = Fingerprints { target_lists: map(&[("clusters", r#"["1","1","1"]"#), ("none", "")]), ..none };
    assert_eq!(imports_hash(&lists), "7ef2e8dca919f47ebd3b8b978844f4b67c1b824b");
}

#[test]
fn canonical_text_is_what_go_writes() {
    let value = json!({"b": [], "a": {"<&>": "\u{2028}\n\u{1}\u{7f}ä\"\\"}, "c": {}});
    assert_eq!(
        compact(&value),
        "{\"a\":{\"\\u003c\\u0026\\u003e\":\"\\u2028\\n\\u0001\u{7f}ä\\\"\\\\\"},\"b\":[],\"c\":{}}"
    );
    assert_eq!(
        indented(&json!({"b": [1, {"x": null}], "a": true})),
        "{\n  \"a\": true,\n  \"b\": [\n    1,\n    {\n      \"x\": null\n    }\n  ]\n}"
    );
}

#[test]
fn canonical_numbers_are_what_go_writes() {
    let cases = [
        (json!(3), "3"),
        (json!(3.0), "3"),
        (json!(-0.5), "-0.5"),
        (json!(0.0), "0"),
        (json!(1e20), "100000000000000000000"),
        (json!(1e21), "1e+21"),
        (json!(1.5e300), "1.5e+300"),
        (json!(1e-6), "0.000001"),
        (json!(1.5e-7), "1.5e-7"),
        (json!(u64::MAX), "18446744073709551615"),
    ];
    for (number, text) in cases {
        assert_eq!(compact(&number), text);
    }
}

#[test]
fn components_are_known_by_sha256() {
    assert_eq!(sha256(b""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/// Values whose numbers JSON and Go write alike.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::String),
        "[<>&\"\\\\\n\u{2028}\u{8}]{0,6}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let entries = collection::btree_map("\\PC{0,6}", inner.clone(), 0..4);
        prop_oneof![
            collection::vec(inner, 0..4).prop_map(Value::Array),
            entries.prop_map(|entries| Value::Object(Map::from_iter(entries))),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_text_reads_back_the_same(value in any_json()) {
        prop_assert_eq!(&serde_json::from_str::<Value>(&compact(&value)).unwrap(), &value);
        prop_assert_eq!(&serde_json::from_str::<Value>(&indented(&value)).unwrap(), &value);
    }

    #[test]
    fn the_order_of_fields_does_not_matter(entries in collection::btree_map("[a-z]{1,3}", any::<i32>(), 0..8)) {
        let there: Map<String, Value> = entries.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let back: Map<String, Value> = entries.iter().rev().map(|(key, value)| (key.clone(), json!(value))).collect();
        prop_assert_eq!(compact(&Value::Object(there)), compact(&Value::Object(back)));
    }

    #[test]
    fn every_float_reads_back_the_same(float in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
        let text = compact(&json!(float));
        prop_assert_eq!(text.parse::<f64>().unwrap(), float);
        // Go never writes a sign or a zero at the front of an exponent that has none.
        prop_assert!(!text.contains("e0") && !text.contains("e-0") && !text.contains("e+0"), "{}", text);
    }
}

#[test]
fn different_content_has_different_hashes() {
    let values = [json!(null), json!(0), json!(""), json!("0"), json!([]), json!({}), json!([null]), json!({"": null})];
    let hashes: std::collections::BTreeSet<String> = values.iter().map(data_hash).collect();
    assert_eq!(hashes.len(), values.len());
    let stored: std::collections::BTreeSet<String> = values.iter().map(stored_hash).collect();
    assert_eq!(stored.len(), values.len());
}
