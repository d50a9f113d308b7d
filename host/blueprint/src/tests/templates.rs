use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use orangery_expression::Type;
use serde_json::json;

use super::*;
use crate::sibling::SiblingReference;
use orangery_core::dag::DagError;

#[test]
fn installation_templates_are_read_from_the_blueprint_and_from_files() {
    let blueprint = Blueprint::parse(&files(json!({
        "blueprint.yaml": "subinstallations: [{file: sub.yaml}, {name: two, blueprint: {ref: 'cd://x'}}]",
        "sub.yaml": concat!(
            "apiVersion: landscaper.gardener.cloud/v1alpha1\n",
            "kind: InstallationTemplate\n",
            "name: sub\n",
            "blueprint: {filesystem: {blueprint.yaml: x}}\n",
            "imports: {data: [{name: a, dataRef: b}]}\n",
            "exports: {targets: [{name: c, target: d}]}\n",
            "importDataMappings: {m: 1}\n",
            "optimization: {hasNoSiblingImports: true}\n",
        ),
    })))
    .unwrap();
    let mut sub = template(json!({
        "name": "sub",
        "imports": {"data": [{"name": "a", "dataRef": "b"}]},
        "exports": {"targets": [{"name": "c", "target": "d"}]},
    }));
    sub.blueprint = TemplateBlueprint::Inline(json!({"blueprint.yaml": "x"}));
    sub.import_data_mappings.insert("m".to_owned(), json!(1));
    sub.optimization = Some(Optimization { has_no_sibling_imports: true, has_no_sibling_exports: false });
    let two = InstallationTemplate {
        name: "two".to_owned(),
        blueprint: TemplateBlueprint::Reference("cd://x".to_owned()),
        ..InstallationTemplate::default()
    };
    assert_eq!(blueprint.subinstallations, [sub, two]);
}

#[test]
fn an_installation_template_follows_its_rules() {
    let message = |json: Value| InstallationTemplate::parse(&json, "subinstallations[1]").unwrap_err().to_string();
    assert_eq!(
        message(json!({"name": 5})),
        "a sub-installation has a wrong form: subinstallations[1].name: expected a text; write it in quotes, found a number"
    );
    assert_eq!(
        message(json!({"name": "A"})),
        "the name \"A\" of a sub-installation is not one of at most 52 lower-case letters, digits and `-`"
    );
    assert_eq!(
        message(json!({"name": "a"})),
        "the sub-installation \"a\" needs exactly one of blueprint.ref and blueprint.filesystem"
    );
    assert_eq!(
        message(json!({"name": "a", "kind": "Installation"})),
        "the sub-installation \"a\" has kind \"Installation\"; write apiVersion: landscaper.gardener.cloud/v1alpha1 and kind: InstallationTemplate"
    );
    assert_eq!(
        message(
            json!({"name": "a", "blueprint": {"filesystem": {}}, "imports": {"data": [{"name": "x", "secretRef": {"name": "s"}}]}})
        ),
        "the sub-installation \"a\": imports.data[0]: installation templates import by dataRef only; import the Secret or ConfigMap in the root installation"
    );
}

#[test]
fn limits_template_the_name_of_a_template_has_a_length() {
    let of = |length: usize| {
        let json = json!({"name": "a".repeat(length), "blueprint": {"filesystem": {}}});
        InstallationTemplate::parse(&json, "subinstallations[0]").map(|template| template.name.len())
    };
    assert_eq!(of(52).map_err(|error| error.to_string()), Ok(52));
    let message = of(53).unwrap_err().to_string();
    assert!(message.ends_with("is not one of at most 52 lower-case letters, digits and `-`"), "{message}");
}

fn importing(name: &str, imports: Value, exports: Value) -> InstallationTemplate {
    template(json!({"name": name, "imports": imports, "exports": exports}))
}

#[test]
fn templates_are_satisfied_by_the_parent_and_by_each_other() {
    let parent = [
        data("p", json!({})),
        ImportDefinition { kind: ImportKind::TargetList { target_type: "t".to_owned() }, ..data("list", Value::Null) },
        ImportDefinition { kind: ImportKind::TargetMap { target_type: "t".to_owned() }, ..data("map", Value::Null) },
    ];
    let targets = json!([
        {"name": "x", "target": "list[0]"},
        {"name": "y", "targetListRef": "list"},
        {"name": "z", "targetMapRef": "map"},
        {"name": "w", "target": "map[red]"},
        {"name": "v", "target": "#global"},
    ]);
    let a = importing(
        "a",
        json!({"data": [{"name": "p", "dataRef": "p"}], "targets": targets}),
        json!({"data": [{"name": "e", "dataRef": "e"}]}),
    );
    let b = importing("b", json!({"data": [{"name": "e", "dataRef": "e"}]}), json!({}));
    assert_eq!(check_templates(&[b, a], &parent), Ok(()));
}

#[test]
fn limits_template_so_many_faults_are_told_and_so_many_names_listed() {
    let imports: Vec<Value> =
        (0..150).map(|n| json!({"name": format!("i{n}"), "dataRef": format!("gone{n}")})).collect();
    let parent: Vec<ImportDefinition> = (0..30).map(|n| data(&format!("p{n:02}"), json!({}))).collect();
    let template = importing("a", json!({"data": imports}), json!({}));
    let faults = faults_of_templates(&[template], &parent);
    let known: Vec<String> = (0..20).map(|n| format!("data p{n:02}")).collect();
    let expected = TemplateError::Unsatisfied {
        name: "a".to_owned(),
        reference: SiblingReference::Data("gone0".to_owned()),
        known: format!("{} and 10 more", known.join(", ")),
    };
    assert_eq!((faults.len(), faults.first()), (100, Some(&expected)));
}

#[test]
fn rules_over_all_templates_name_the_template_that_breaks_them() {
    let data_of = |key: &str| json!({"data": [{"name": "x", "dataRef": key}]});
    let none = json!({});
    let check = |templates: &[InstallationTemplate]| check_templates(templates, &[data("p", json!({}))]).unwrap_err();
    let (a, b) = (importing("a", none.clone(), data_of("e")), importing("b", none.clone(), data_of("e")));
    assert_eq!(check(&[a.clone(), a.clone()]), TemplateError::Duplicate { name: "a".to_owned() });
    let exporters = vec!["a".to_owned(), "b".to_owned()];
    let reference = SiblingReference::Data("e".to_owned());
    assert_eq!(check(&[a, b]), TemplateError::SeveralExporters { reference, exporters });
    let reference = SiblingReference::Data("p".to_owned());
    assert_eq!(
        check(&[importing("a", none.clone(), data_of("p"))]),
        TemplateError::ExportIsImport { name: "a".to_owned(), reference }
    );
    // Recorded in `tests/golden/subinst-unsatisfied-import`.
    assert_eq!(
        check(&[importing("a", data_of("gone"), none)]).to_string(),
        "the sub-installation \"a\" imports data gone, which neither the blueprint imports nor a sibling exports; known are: data p"
    );
    let ring = [importing("a", data_of("y"), data_of("x")), importing("b", data_of("x"), data_of("y"))];
    let members = ["a", "b", "a"].map(str::to_owned).to_vec();
    assert_eq!(check(&ring), TemplateError::Order(DagError::Cycle { members }));
}

#[test]
fn imports_of_optional_parent_imports_without_value_are_dropped() {
    let optional = |name: &str, conditional| ImportDefinition { required: false, conditional, ..data(name, json!({})) };
    let parent =
        [data("must", json!({})), optional("may", vec![data("inner", json!({}))]), optional("given", Vec::new())];
    let import = |key: &str| json!({"name": key, "dataRef": key});
    let keys = ["must", "may", "inner", "given", "sibling"].map(import);
    let mut templates = [importing("a", json!({"data": keys}), json!({}))];
    without_unsatisfied(&mut templates, &parent, &BTreeSet::from(["given"]));
    let left: Vec<&str> = templates[0].imports.data.iter().map(|import| import.name.as_str()).collect();
    assert_eq!(left, ["must", "given", "sibling"]);
}

#[test]
fn an_empty_object_is_the_blueprint_of_a_default_template() {
    assert_eq!(
        InstallationTemplate::default().blueprint,
        TemplateBlueprint::Inline(Value::Object(serde_json::Map::new()))
    );
}

/// More than what is looked at once takes, on the slowest machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn c_291_what_templates_export_is_looked_at_once() {
    let exports = |n: usize| (0..10).map(|e| json!({"name": "x", "dataRef": format!("d{n}-{e}")})).collect::<Vec<_>>();
    let imports = |n: usize| json!({"data": [{"name": "x", "dataRef": format!("d{}-9", n - 1)}]});
    let chained = |n: usize| InstallationTemplate {
        name: format!("t{n}"),
        imports: if n == 0 { Default::default() } else { serde_json::from_value(imports(n)).unwrap() },
        exports: serde_json::from_value(json!({"data": exports(n)})).unwrap(),
        ..InstallationTemplate::default()
    };
    let templates: Vec<InstallationTemplate> = (0..4_000).map(chained).collect();
    let began = Instant::now();
    let edges = edges_of_templates(&templates);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!((edges.len(), edges.last()), (4_000, Some(&("t3999", vec!["t3998"]))));
}

#[test]
fn c_291_the_types_of_imports_are_not_copied_for_each_template() {
    let types = Arc::new((0..100_000).map(|n| (format!("i{n}"), Type::Bool)).collect());
    let gated = |n: usize| template(json!({"name": format!("t{n}"), "when": "imports.i0 && imports.i1"}));
    let templates: Vec<InstallationTemplate> = (0..500).map(gated).collect();
    let began = Instant::now();
    assert_eq!(faults_of_gate_expressions(&templates, Some(&types)), []);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}
