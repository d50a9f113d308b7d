use proptest::{collection, prelude::*};
use serde_json::json;

use super::*;

#[test]
fn what_is_derived_depends_on_the_key_and_on_where_each_part_ends() {
    let key = [7; 32];
    let of = |parts: &[&[u8]]| derived(&key, parts);
    // `printf '\0\0\0\0\0\0\0\1a\0\0\0\0\0\0\0\2bc' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0707…07`
    assert_eq!(
        HEXLOWER.encode(&of(&[b"a", b"bc"])),
        "430e46797a396e1f14f7243eb7cf5ecf52e33e21022b9fd7fd03663cbea8b9c6"
    );
    let all = [of(&[b"a", b"bc"]), of(&[b"ab", b"c"]), of(&[b"abc"]), of(&[b"abc", b""]), derived(&[8; 32], &[b"abc"])];
    for (index, one) in all.iter().enumerate() {
        assert!(all.iter().skip(index + 1).all(|other| other != one), "{index}");
    }
}

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

#[test]
fn a_target_without_content_hashes_like_one_whose_content_is_null() {
    let nothing = target_hash(&json!({"type": "t"}));
    assert_eq!(target_hash(&json!({"config": null, "secretRef": null})), nothing);
    assert_eq!(
        target_hash(&json!({"config": null, "secretRef": {"name": "kc"}})),
        sha1(r#"{"secretRef":{"name":"kc"}}"#)
    );
    // An empty configuration is one.
    assert_eq!(target_hash(&json!({"config": {}})), "bf21a9e8fbc5a3846fb05b4fa0859e0917b2202f");
    assert_eq!(
        target_hash(&json!({"config": {}, "secretRef": {"name": "kc"}})),
        "bf21a9e8fbc5a3846fb05b4fa0859e0917b2202f"
    );
}

#[test]
fn a_secret_reference_is_hashed_as_its_go_type_writes_it() {
    let hash = |reference: Value| target_hash(&json!({"secretRef": reference}));
    assert_eq!(hash(json!({})), "d31d3ac018982d36b25f72525fbb36bb316daff1");
    assert_eq!(hash(json!({"key": "k", "name": "a<b"})), "2a4c273f60c12f710275e15a897304699ddb7ba7");
    assert_eq!(hash(json!({"name": "kc", "key": ""})), hash(json!({"name": "kc"})));
    assert_eq!(hash(json!({"name": "kc", "unknown": 1})), hash(json!({"name": "kc"})));
}

#[test]
fn data_is_hashed_indented_and_stored_data_compact() {
    let data = json!({"b": [], "a": 1});
    assert_eq!(data_hash(&data), "5d8733a7bffdb6ca823c9f3f0a24b7cee738be9b");
    assert_eq!(stored_hash(&data), "5bd4640b8cea999ffdfb6ce70f676d7b5bf22159");
    assert_eq!(data_hash(&json!("x")), "a81fa20d625fc8e5a04721cdf61f056fc2e22496");
    assert_eq!(stored_hash(&json!("x")), "a81fa20d625fc8e5a04721cdf61f056fc2e22496");
}

#[test]
fn ins_23_the_hash_of_imports_has_all_four_sorts_in_their_order() {
    let map = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let all = Fingerprints {
        data_objects: BTreeMap::from([map("b", "2"), map("a", "1")]),
        targets: BTreeMap::from([map("t", "3")]),
        target_lists: BTreeMap::from([map("l", r#"["1"]"#)]),
        target_maps: BTreeMap::from([map("m", r#"{"k":"1"}"#)]),
    };
    assert_eq!(imports_hash(&all), "b8433c62973cb499a1b1624a1a646b93f2b1c606");
    // The same fingerprint in another place is another import.
    let moved = Fingerprints { targets: BTreeMap::new(), target_lists: BTreeMap::from([map("t", "3")]), ..all.clone() };
    assert_ne!(imports_hash(&moved), imports_hash(&all));
}

#[test]
fn known_digests_are_met() {
    assert_eq!(sha256(b"abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_eq!(name_hash("abc"), "vgmt4nsha2awvor6evyxqugcnsonbwe5");
}

#[test]
fn every_control_character_is_escaped_as_go_escapes_it() {
    for code in 0_u32..0x20 {
        let character = char::from_u32(code).unwrap();
        let expected = match character {
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            _ => format!("\\u{code:04x}"),
        };
        assert_eq!(compact(&json!(character.to_string())), format!("\"{expected}\""), "{code}");
    }
    assert_eq!(compact(&json!("\u{2029}>/'")), "\"\\u2029\\u003e/'\"");
    assert_eq!(compact(&json!({"<": 1})), "{\"\\u003c\":1}");
}

#[test]
fn empty_lists_and_maps_take_no_line_of_their_own() {
    assert_eq!(indented(&json!([])), "[]");
    assert_eq!(indented(&json!({})), "{}");
    assert_eq!(indented(&json!([[], {}])), "[\n  [],\n  {}\n]");
    assert_eq!(compact(&json!([[], {}, null, false])), "[[],{},null,false]");
}

#[test]
fn numbers_at_the_ends_of_their_ranges_are_written_as_go_writes_them() {
    let cases = [
        (json!(i64::MIN), "-9223372036854775808"),
        (json!(-0.0), "-0"),
        (json!(-1e21), "-1e+21"),
        (json!(-1e-7), "-1e-7"),
        (json!(123_456_789.125), "123456789.125"),
        (json!(999_999_999_999_999_900_000.0), "999999999999999900000"),
        (json!(f64::MAX), "1.7976931348623157e+308"),
        (json!(f64::MIN_POSITIVE), "2.2250738585072014e-308"),
    ];
    for (number, text) in cases {
        assert_eq!(compact(&number), text);
    }
}
