use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::*;

mod shapes;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    deploy_items: Vec<Item>,
    annotations: BTreeMap<String, String>,
    free: Value,
    required: Option<bool>,
    count: u8,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    name: String,
    #[serde(default, rename = "type")]
    type_: Option<Sort>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    weight: f64,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Sort {
    Data,
    TargetList,
}

#[track_caller]
fn check(document: Value, expected: Document) {
    assert_eq!(decode::<Document>(&document), Ok(expected));
}

#[track_caller]
fn fails(document: Value, path: &str, reason: &str) {
    let error = DecodeError { path: path.to_owned(), reason: reason.to_owned() };
    assert_eq!(decode::<Document>(&document), Err(error));
}

fn item(name: &str) -> Item {
    Item { name: name.to_owned(), ..Item::default() }
}

#[test]
fn names_match_whatever_their_case_and_an_exact_match_wins() {
    for name in ["deployItems", "deployitems", "DEPLOYITEMS", "DeployItems"] {
        check(json!({(name): [{"NAME": "a"}]}), Document { deploy_items: vec![item("a")], ..Document::default() });
    }
    let both = json!({"deployitems": [{"name": "no"}], "deployItems": [{"name": "yes"}]});
    check(both, Document { deploy_items: vec![item("yes")], ..Document::default() });
}

#[test]
fn unknown_fields_are_ignored_and_null_means_absent() {
    check(
        json!({"new": {"deep": [1]}, "deployItems": null, "annotations": null, "required": null, "count": null}),
        Document::default(),
    );
    check(json!(null), Document::default());
    let nulls = json!({"deployItems": [{"name": "a", "dependsOn": [null, "b"], "type": null}]});
    let items = vec![Item { depends_on: vec![String::new(), "b".to_owned()], ..item("a") }];
    check(nulls, Document { deploy_items: items, ..Document::default() });
}

#[test]
fn free_parts_and_free_names_keep_their_case() {
    let free = json!({"Deep": {"NULL": null, "n": [1, 2.5]}});
    check(
        json!({"FREE": free, "Annotations": {"Some/Key": "v"}, "Required": true}),
        Document {
            free,
            annotations: BTreeMap::from([("Some/Key".to_owned(), "v".to_owned())]),
            required: Some(true),
            ..Document::default()
        },
    );
}

#[test]
fn words_and_numbers_are_read() {
    let document = json!({"deployItems": [{"name": "a", "type": "targetList", "weight": 2}], "count": 7});
    let items = vec![Item { type_: Some(Sort::TargetList), weight: 2.0, ..item("a") }];
    check(document, Document { deploy_items: items, count: 7, ..Document::default() });
}

#[test]
fn an_error_names_the_place_and_never_the_value() {
    fails(
        json!({"deployItems": [{"name": "a"}, {"name": 5}]}),
        "deployItems[1].name",
        "expected a text; write it in quotes, found a number",
    );
    fails(json!({"deployItems": [{}]}), "deployItems[0]", "`name` is missing");
    fails(json!({"deployItems": {"a": 1}}), "deployItems", "expected a list, found an object");
    fails(json!({"deployItems": ["x"]}), "deployItems[0]", "expected an object, found a text");
    fails(
        json!({"annotations": {"a": true}}),
        "annotations.a",
        "expected a text; write it in quotes, found true or false",
    );
    fails(json!({"required": "secret"}), "required", "expected true or false, found a text");
    fails(json!({"count": 4711}), "count", "the number does not fit here");
    fails(
        json!({"deployItems": [{"name": "a", "type": "secret"}]}),
        "deployItems[0].type",
        "expected one of data, targetList",
    );
    fails(json!([1]), "", "expected an object, found a list");
}

#[test]
fn unknown_fields_are_noted_where_that_is_wanted() {
    let document = json!({"Other": 1, "deployitems": [{"NAME": "a", "odd": {"deep": 1}}], "free": {"any": 1}});
    let (decoded, unknown) = decode_noting::<Document>(&document);
    assert!(decoded.is_ok(), "{decoded:?}");
    assert_eq!(unknown, ["Other", "deployItems[0].odd"]);
}
