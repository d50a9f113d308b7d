use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orangery_expression::Type;
use orangery_proposal::drift_rules::{DriftExemption, DriftPolicy, DriftRules};
use serde_json::json;

use super::*;
use crate::{
    gate::GateExpressions,
    import::{Imported, TargetObject},
};

fn items(json: Value) -> Result<Vec<ItemTemplate>, ItemError> {
    decode_items(&json!({"deployitems": json}))
}

#[test]
fn deploy_items_are_decoded_with_all_their_fields() {
    let full = json!({
        "name": "a",
        "type": "t",
        "config": {"Kept": {"AsIs": 1}},
        "labels": {"l": "v"},
        "dependson": ["b"],
        "timeout": "5m0s",
        "updateOnChangeOnly": true,
        "onDelete": {"skipUninstallIfClusterRemoved": true, "keep": true},
        "drift": {"policy": "Correct", "ignore": [{"kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]},
        "target": {"import": "c"},
    });
    assert_eq!(
        items(json!([full])),
        Ok(vec![ItemTemplate {
            name: "a".to_owned(),
            type_: "t".to_owned(),
            config: json!({"Kept": {"AsIs": 1}}),
            labels: BTreeMap::from([("l".to_owned(), "v".to_owned())]),
            depends_on: vec!["b".to_owned()],
            timeout: Some("5m0s".to_owned()),
            update_on_change_only: true,
            skip_uninstall_if_cluster_removed: true,
            keep: true,
            drift: Some(DriftRules {
                policy: DriftPolicy::Correct,
                ignore: vec![DriftExemption {
                    kind: Some("Deployment".into()),
                    json_pointers: ["/spec/replicas".to_owned()].into(),
                    ..DriftExemption::default()
                }],
            }),
            gates: GateExpressions::default(),
            target: Some(TargetChoice::Import("c".to_owned())),
        }])
    );
    assert_eq!(decode_items(&Value::Null), Ok(Vec::new()));
}

#[test]
fn a_target_is_chosen_by_index_then_key_then_import_then_name() {
    let chosen = |target: Value| {
        let item = json!({"name": "a", "type": "t", "config": {}, "target": target});
        items(json!([item])).map(|items| items[0].target.clone())
    };
    let text = str::to_owned;
    assert_eq!(chosen(json!({"name": "n"})), Ok(Some(TargetChoice::Name(text("n")))));
    assert_eq!(chosen(json!({"name": "n", "import": "i"})), Ok(Some(TargetChoice::Import(text("i")))));
    assert_eq!(chosen(json!({"import": "i", "key": "k"})), Ok(Some(TargetChoice::Entry(text("i"), text("k")))));
    assert_eq!(chosen(json!({"import": "i", "index": 0, "key": "k"})), Ok(Some(TargetChoice::Element(text("i"), 0))));
    assert_eq!(chosen(Value::Null), Ok(None));
    assert_eq!(chosen(json!({})), Err(ItemError::Target { name: text("a"), source: ChoiceError::Empty }));
}

#[test]
fn faults_of_deploy_items_name_the_item() {
    let message = |item: Value| items(json!([item])).unwrap_err().to_string();
    assert_eq!(message(json!({"type": "t", "config": {}})), "deploy item \"\" (number 1) has no name; set it");
    assert_eq!(message(json!({"name": "a", "config": {}})), "deploy item \"a\" (number 1) has no type; set it");
    assert_eq!(message(json!({"name": "a", "type": "t"})), "deploy item \"a\" (number 1) has no config; set it");
    // Recorded in `tests/golden/timeout-invalid`.
    assert_eq!(
        message(json!({"name": "a", "type": "t", "config": {}, "timeout": "abc"})),
        "deploy item \"a\": timeout \"abc\" is no length of time; write a number with a unit (ns, us, ms, s, m, h) such as 90s or 1h30m, or none"
    );
    assert_eq!(
        message(json!({"name": "a", "labels": {"x": 1}})),
        "the rendered deploy items have a wrong form: deployItems[0].labels.x: expected a text; write it in quotes, found a number"
    );
}

#[test]
fn exe_30_circles_and_unknown_dependencies_of_items_are_refused() {
    let item = |name: &str, before: &[&str]| json!({"name": name, "type": "t", "config": {}, "dependsOn": before});
    let check = |list: Value| check_items(&items(list).unwrap(), &Arc::default()).map_err(|error| error.to_string());
    assert_eq!(check(json!([item("a", &[]), item("b", &["a"])])), Ok(()));
    assert!(check(json!([item("a", &["b"]), item("b", &["a"])])).unwrap_err().contains("a -> b -> a"));
    assert!(check(json!([item("a", &["gone"])])).unwrap_err().contains("gone, which does not exist"));
    assert!(check(json!([item("a", &[]), item("a", &[])])).unwrap_err().contains("a is defined twice"));
}

#[test]
fn targets_of_items_are_the_imported_objects_themselves() {
    let target = |name: &str| TargetObject { name: name.to_owned(), ..TargetObject::default() };
    let imports = BTreeMap::from([
        ("one".to_owned(), Imported::Target(target("t-1"))),
        ("list".to_owned(), Imported::TargetList(vec![target("t-b"), target("t-a")])),
        ("map".to_owned(), Imported::TargetMap(BTreeMap::from([("red".to_owned(), target("t-r"))]))),
    ]);
    let resolve = |choice: Option<TargetChoice>| {
        let item = ItemTemplate { name: "i".to_owned(), target: choice, ..ItemTemplate::default() };
        item.resolve_target(&imports).map_err(|error| error.to_string())
    };
    let name = |name: &str| Ok(Some(name.to_owned()));
    let text = str::to_owned;
    assert_eq!(resolve(None), Ok(None));
    assert_eq!(resolve(Some(TargetChoice::Name(text("any")))), name("any"));
    assert_eq!(resolve(Some(TargetChoice::Import(text("one")))), name("t-1"));
    assert_eq!(resolve(Some(TargetChoice::Element(text("list"), 1))), name("t-a"));
    assert_eq!(resolve(Some(TargetChoice::Entry(text("map"), text("red")))), name("t-r"));
    let message = |choice| resolve(Some(choice)).unwrap_err();
    assert_eq!(
        message(TargetChoice::Import(text("list"))),
        "deploy item \"i\": there is no target import \"list\"; known are: one"
    );
    assert_eq!(
        message(TargetChoice::Element(text("one"), 0)),
        "deploy item \"i\": there is no target list import \"one\"; known are: list"
    );
    assert_eq!(
        message(TargetChoice::Entry(text("x"), text("k"))),
        "deploy item \"i\": there is no target map import \"x\"; known are: map"
    );
    for index in [2, -1] {
        assert_eq!(
            message(TargetChoice::Element(text("list"), index)),
            format!(
                "deploy item \"i\": index {index} is out of bounds; the target list \"list\" has 2 elements, counted from 0"
            )
        );
    }
    assert_eq!(
        message(TargetChoice::Entry(text("map"), text("blue"))),
        "deploy item \"i\": the target map \"map\" has no key \"blue\"; its keys are: red"
    );
}

#[test]
fn gate_expressions_of_items_are_read_and_their_targets_found() {
    let item = json!({
        "name": "web", "type": "t", "config": {}, "dependsOn": ["db"],
        "when": "imports.web",
        "activateWhen": {"crdPresent": {"group": "example.org", "kind": "Widget", "target": {"import": "one"}}},
        "readyWhen": {
            "component": {"type": "example.org/metric", "config": {"over": 3}},
            "objects": {"cm": {"target": {"name": "own"}, "apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "x"}},
        },
        "deletedWhen": null,
    });
    let db = json!({"name": "db", "type": "t", "config": {}});
    let items = items(json!([db, item])).unwrap();
    let types = Arc::new(BTreeMap::from([("web".to_owned(), Type::Bool)]));
    assert_eq!(check_items(&items, &types), Ok(()));
    let one = Imported::Target(TargetObject { name: "t-1".to_owned(), ..TargetObject::default() });
    let gates = items[1].resolve_gates(&BTreeMap::from([("one".to_owned(), one)])).unwrap();
    let written: BTreeMap<&str, Value> = gates
        .iter()
        .map(|(gate, gate_expression)| (gate.name(), serde_json::to_value(gate_expression).unwrap()))
        .collect();
    let expected = BTreeMap::from([
        ("when", json!({"expression": "imports.web"})),
        ("activateWhen", json!({"crdPresent": {"group": "example.org", "kind": "Widget", "target": "t-1"}})),
        (
            "readyWhen",
            json!({
                "component": {"type": "example.org/metric", "config": {"over": 3}},
                "objects": {"cm": {"target": "own", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "x"}},
            }),
        ),
    ]);
    assert_eq!(written, expected);
    assert_eq!(
        items[1].resolve_gates(&BTreeMap::new()).unwrap_err().to_string(),
        "deploy item \"web\": there is no target import \"one\"; known are: none"
    );
}

#[test]
fn gate_expressions_that_cannot_be_asked_are_refused_with_item_and_field() {
    let message = |gate_expression: Value| {
        let list = json!([{"name": "web", "type": "t", "config": {}, "when": gate_expression}]);
        let read = items(list).map_err(|error| error.to_string());
        read.and_then(|items| check_items(&items, &Arc::default()).map_err(|error| error.to_string())).unwrap_err()
    };
    assert_eq!(
        message(json!("imports.nothing")),
        "deploy item \"web\": when: the expression `imports.nothing` cannot be used: there is no nothing in imports; there are none"
    );
    assert_eq!(
        message(json!({})),
        "deploy item \"web\": when: it needs exactly one of expression, component and crdPresent"
    );
    assert_eq!(
        message(json!({"expression": 3})),
        "deploy item \"web\": when: it has a wrong form: expression: expected a text; write it in quotes, found a number"
    );
}

/// Shared, they are copied for none of the items: it takes no longer than a hundredth of this.
#[test]
fn c_291_the_types_of_imports_are_not_copied_for_each_item() {
    let types = Arc::new((0..100_000).map(|n| (format!("i{n}"), Type::Bool)).collect());
    let item =
        |n: usize| json!({"name": format!("n{n}"), "type": "t", "config": {}, "when": "imports.i0 && imports.i1"});
    let items = items((0..500).map(item).collect()).unwrap();
    let began = Instant::now();
    assert_eq!(check_items(&items, &types), Ok(()));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
