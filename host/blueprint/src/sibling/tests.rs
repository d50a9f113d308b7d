use serde_json::{Value, json};

use super::*;

mod laws;

fn imports(json: Value) -> ImportBindings {
    serde_json::from_value(json).unwrap()
}

fn exports(json: Value) -> ExportBindings {
    serde_json::from_value(json).unwrap()
}

struct Known {
    name: &'static str,
    imports: ImportBindings,
    exports: ExportBindings,
}

fn known(name: &'static str, imported: Value, exported: Value) -> Known {
    Known { name, imports: imports(imported), exports: exports(exported) }
}

fn siblings(all: &[Known]) -> Vec<Sibling<'_>> {
    all.iter().map(|one| Sibling { name: one.name, imports: &one.imports, exports: &one.exports }).collect()
}

fn data(key: &str) -> Value {
    json!({"data": [{"name": "x", "dataRef": key}]})
}

#[test]
fn every_way_to_import_counts_target_maps_included() {
    let of = imports(json!({
        "data": [{"name": "a", "dataRef": "d"}, {"name": "b", "secretRef": {"name": "s"}}],
        "targets": [
            {"name": "c", "target": "t1"},
            {"name": "d", "targets": ["t2", "t3"]},
            {"name": "e", "targetMap": {"red": "t4"}},
            {"name": "f", "targetListRef": "l"},
            {"name": "g", "targetMapRef": "m"},
        ],
    }));
    let text: Vec<String> = imported(&of).iter().map(SiblingReference::to_string).collect();
    assert_eq!(text, ["data d", "target t1", "target t2", "target t3", "target t4"]);
    let of = exports(json!({"data": [{"name": "a", "dataRef": "d"}], "targets": [{"name": "b", "target": "t"}]}));
    assert_eq!(
        exported(&of),
        BTreeSet::from([SiblingReference::Data("d".to_owned()), SiblingReference::Target("t".to_owned())])
    );
}

#[test]
fn ins_21_ins_43_predecessors_export_what_successors_import() {
    let all = [
        known("base", json!({}), data("k")),
        known("middle", data("k"), json!({"targets": [{"name": "t", "target": "k"}]})),
        known("top", json!({"targets": [{"name": "t", "targetMap": {"a": "k"}}]}), json!({})),
        known("other", data("elsewhere"), json!({})),
    ];
    let all = siblings(&all);
    assert_eq!(predecessors(all[0], &all), Vec::<&str>::new());
    assert_eq!(predecessors(all[1], &all), ["base"]);
    assert_eq!(predecessors(all[2], &all), ["middle"]);
    assert_eq!(successors(all[0], &all), ["middle"]);
    assert_eq!(successors(all[1], &all), ["top"]);
    assert_eq!(successors(all[3], &all), Vec::<&str>::new());
}

#[test]
fn duplicate_exporters_are_all_predecessors() {
    let all =
        [known("one", json!({}), data("k")), known("two", json!({}), data("k")), known("user", data("k"), json!({}))];
    let all = siblings(&all);
    assert_eq!(predecessors(all[2], &all), ["one", "two"]);
    assert_eq!(exporters(&all), BTreeMap::from([(SiblingReference::Data("k".to_owned()), vec!["one", "two"])]));
}

#[test]
fn circles_of_siblings_name_their_members() {
    let all = [known("a", data("c"), data("a")), known("b", data("a"), data("b")), known("c", data("b"), data("c"))];
    let members = ["a", "c", "b", "a"].map(str::to_owned).to_vec();
    assert_eq!(order(&siblings(&all)), Err(DagError::Cycle { members }));
    let all = [known("b", data("a"), json!({})), known("a", json!({}), data("a"))];
    let dag = order(&siblings(&all)).unwrap();
    assert_eq!(dag.nodes().collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn elements_belong_to_their_list_or_map() {
    let container = |key: &str| SiblingReference::Target(key.to_owned()).container();
    assert_eq!(container("l[0]"), Some(SiblingReference::TargetList("l".to_owned())));
    assert_eq!(container("m[red]"), Some(SiblingReference::TargetMap("m".to_owned())));
    assert_eq!(container("plain"), None);
    assert_eq!(SiblingReference::Data("l[0]".to_owned()).container(), None);
}

#[test]
fn what_a_blueprint_imports_is_there_for_its_children_conditional_imports_too() {
    let definition = |name: &str, kind, conditional| ImportDefinition {
        name: name.to_owned(),
        kind,
        required: conditional == Vec::new(),
        default: None,
        conditional,
    };
    let target_type = || "t".to_owned();
    let inner = definition("inner", ImportKind::TargetMap { target_type: target_type() }, Vec::new());
    let definitions = [
        definition("a", ImportKind::Data { schema: json!({}) }, vec![inner]),
        definition("b", ImportKind::Target { target_type: target_type() }, Vec::new()),
        definition("c", ImportKind::TargetList { target_type: target_type() }, Vec::new()),
    ];
    let text: Vec<String> = defined(&definitions).iter().map(SiblingReference::to_string).collect();
    assert_eq!(text, ["data a", "target b", "target list c", "target map inner"]);
}

#[test]
fn data_and_targets_of_one_key_are_different_things() {
    let all = [
        known("one", json!({}), data("k")),
        known("two", json!({"targets": [{"name": "t", "target": "k"}]}), json!({})),
    ];
    let all = siblings(&all);
    assert_eq!(predecessors(all[1], &all), Vec::<&str>::new());
    assert_eq!(SiblingReference::Data("k".to_owned()).key(), SiblingReference::Target("k".to_owned()).key());
}

#[test]
fn an_installation_is_not_its_own_predecessor_but_its_own_circle() {
    let all = [known("self", data("k"), data("k"))];
    let all = siblings(&all);
    assert_eq!(predecessors(all[0], &all), Vec::<&str>::new());
    assert_eq!(successors(all[0], &all), Vec::<&str>::new());
    let members = ["self", "self"].map(str::to_owned).to_vec();
    assert_eq!(order(&all), Err(DagError::Cycle { members }));
}

#[test]
fn a_chain_is_in_order_whatever_the_order_of_declaration() {
    let all = [known("c", data("b"), json!({})), known("b", data("a"), data("b")), known("a", json!({}), data("a"))];
    let dag = order(&siblings(&all)).unwrap();
    let before =
        |name: &str| dag.before(name, orangery_core::dag::Direction::Forward).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((before("a"), before("b"), before("c")), (vec![], vec!["a".to_owned()], vec!["b".to_owned()]));
    let after =
        |name: &str| dag.before(name, orangery_core::dag::Direction::Backward).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((after("a"), after("b"), after("c")), (vec!["b".to_owned()], vec!["c".to_owned()], vec![]));
}

#[test]
fn c_17_a_circle_of_roots_is_found_by_each_of_its_members_and_by_nobody_else() {
    let before = |name: &str| -> Vec<String> {
        let names: &[&str] = match name {
            "a" => &["b"],
            "b" => &["c", "x"],
            "c" => &["a"],
            "outside" => &["a", "x"],
            _ => &[],
        };
        names.iter().map(|&name| name.to_owned()).collect()
    };
    let circle = |of: &str| circle(of, &ancestors(of, before)).map(|error| error.to_string());
    let message =
        |members: &str| Some(format!("{members} depend on each other in a circle; remove one of these dependencies"));
    assert_eq!(circle("a"), message("a -> b -> c -> a"));
    assert_eq!(circle("c"), message("c -> a -> b -> c"));
    assert_eq!((circle("outside"), circle("x")), (None, None));
    let names: Vec<String> = ancestors("outside", before).into_keys().collect();
    assert_eq!(names, ["a", "b", "c", "x"]);
}
