use std::collections::BTreeSet;

use serde_json::{Map, json};

use super::*;
use crate::{
    dag::DagError,
    import::{Imported, TargetObject},
    port::Files,
    sibling::Reference,
};

fn files(tree: Value) -> FileSystem {
    FileSystem::parse(&tree).unwrap()
}

fn parse(blueprint: &str) -> Result<Blueprint, BlueprintError> {
    Blueprint::parse(&files(json!({"blueprint.yaml": blueprint, "deploy.tpl": "text"})))
}

#[track_caller]
fn refuses(blueprint: &str, field: &str, fault: Fault) {
    let error = BlueprintError::Field { path: FILE.to_owned(), field: field.to_owned(), fault };
    assert_eq!(parse(blueprint), Err(error), "{blueprint}");
}

fn data(name: &str, schema: Value) -> ImportDefinition {
    ImportDefinition {
        name: name.to_owned(),
        kind: ImportKind::Data { schema },
        required: true,
        default: None,
        conditional: Vec::new(),
    }
}

/// The blueprint of `golden/hello-manifest`, shortened.
#[test]
fn a_recorded_blueprint_is_read() {
    let blueprint = parse(concat!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\n",
        "kind: Blueprint\n",
        "jsonSchema: \"https://json-schema.org/draft/2019-09/schema\"\n",
        "imports:\n",
        "- {name: cluster, type: target, targetType: landscaper.gardener.cloud/kubernetes-cluster}\n",
        "deployExecutions:\n",
        "- name: default\n",
        "  type: GoTemplate\n",
        "  template: |\n",
        "    deployItems: []\n",
    ));
    assert_eq!(
        blueprint,
        Ok(Blueprint {
            imports: vec![ImportDefinition {
                kind: ImportKind::Target { target_type: "landscaper.gardener.cloud/kubernetes-cluster".to_owned() },
                ..data("cluster", Value::Null)
            }],
            deploy_executions: vec![TemplateExecution {
                name: "default".to_owned(),
                engine: "GoTemplate".to_owned(),
                file: None,
                template: "deployItems: []\n".to_owned(),
            }],
            ..Blueprint::default()
        })
    );
}

#[test]
fn types_are_inferred_and_short_target_types_get_their_prefix() {
    let blueprint = parse(concat!(
        "imports:\n",
        "- {name: a, schema: {type: string}}\n",
        "- {name: b, targetType: kubernetes-cluster}\n",
        "- {name: c, type: targetList, targetType: kubernetes-cluster}\n",
        "- {name: d, type: targetMap, targetType: kubernetes-cluster}\n",
        "- name: e\n",
        "  type: data\n",
        "  required: false\n",
        "  schema: true\n",
        "  default: {value: [1]}\n",
        "  imports: [{name: f, type: target, targetType: x/y}]\n",
        "exports: [{name: a, schema: {}}, {name: b, targetType: kubernetes-cluster}]\n",
    ))
    .unwrap();
    let full = || "landscaper.gardener.cloud/kubernetes-cluster".to_owned();
    let target = |name: &str, kind| ImportDefinition { kind, ..data(name, Value::Null) };
    assert_eq!(
        blueprint.imports,
        [
            data("a", json!({"type": "string"})),
            target("b", ImportKind::Target { target_type: full() }),
            target("c", ImportKind::TargetList { target_type: full() }),
            target("d", ImportKind::TargetMap { target_type: full() }),
            ImportDefinition {
                required: false,
                default: Some(json!([1])),
                conditional: vec![target("f", ImportKind::Target { target_type: "x/y".to_owned() })],
                ..data("e", json!(true))
            },
        ]
    );
    assert_eq!(
        blueprint.exports,
        [
            ExportDefinition { name: "a".to_owned(), kind: ExportKind::Data { schema: json!({}) } },
            ExportDefinition { name: "b".to_owned(), kind: ExportKind::Target { target_type: full() } },
        ]
    );
}

#[test]
fn faults_of_a_blueprint_name_the_field() {
    let known = "data, target, targetList, targetMap";
    refuses("imports: [{schema: {}}]", "imports[0].name", Fault::Empty);
    refuses("imports: [{name: a}]", "imports[0]", Fault::SchemaOrTargetType);
    refuses("imports: [{name: a, schema: {}, targetType: t}]", "imports[0]", Fault::SchemaOrTargetType);
    refuses("imports: [{name: a, type: data}]", "imports[0].schema", Fault::Empty);
    refuses("imports: [{name: a, type: target}]", "imports[0].targetType", Fault::Empty);
    refuses(
        "imports: [{name: a, type: data, schema: {}, targetType: t}]",
        "imports[0].targetType",
        Fault::OnlyForTargets,
    );
    refuses("imports: [{name: a, type: target, schema: {}, targetType: t}]", "imports[0].schema", Fault::OnlyForData);
    let unknown = Fault::UnknownType { found: "secret".to_owned(), known };
    refuses("imports: [{name: a, type: secret}]", "imports[0].type", unknown);
    let conditional = "imports: [{name: a, schema: {}, imports: [{name: b, schema: {}}]}]";
    refuses(conditional, "imports[0].imports", Fault::ConditionalOnRequired);
    let twice = "imports: [{name: a, required: false, schema: {}, imports: [{name: a, schema: {}}]}]";
    refuses(twice, "imports[0].imports[0].name", Fault::Duplicate("a".to_owned()));
    let unknown = Fault::UnknownType { found: "targetList".to_owned(), known: "data, target" };
    refuses("exports: [{name: a, type: targetList}]", "exports[0].type", unknown);
    refuses("deployExecutions: [{type: Jinja, template: x}]", "deployExecutions[0].name", Fault::Empty);
    refuses("exportExecutions: [{name: a, template: x}]", "exportExecutions[0].type", Fault::Empty);
    refuses("importExecutions: [{name: a, type: Jinja}]", "importExecutions[0]", Fault::FileOrTemplate);
    let both = "deployExecutions: [{name: a, type: Jinja, file: deploy.tpl, template: x}]";
    refuses(both, "deployExecutions[0]", Fault::FileOrTemplate);
    let twice = "deployExecutions: [{name: a, type: J, template: x}, {name: a, type: J, template: y}]";
    refuses(twice, "deployExecutions[1].name", Fault::Duplicate("a".to_owned()));
    refuses("subinstallations: [{file: s.yaml, name: x}]", "subinstallations[0]", Fault::FileOrInline);
}

#[test]
fn errors_of_a_blueprint_are_one_sentence_with_the_fix() {
    let told = |tree: Value| Blueprint::parse(&files(tree)).unwrap_err().to_string();
    assert_eq!(told(json!({"other.yaml": ""})), "the blueprint has no file blueprint.yaml; it has other.yaml");
    assert_eq!(
        told(json!({"blueprint.yaml": "imports:\n- {name: a"})),
        "the blueprint file blueprint.yaml is not YAML: line 2, column 3: unclosed bracket '{'"
    );
    assert_eq!(
        told(json!({"blueprint.yaml": "imports: {a: 1}"})),
        "the blueprint file blueprint.yaml has a wrong form: imports: expected a list, found an object"
    );
    assert_eq!(
        told(json!({"blueprint.yaml": "kind: Installation"})),
        "the blueprint file blueprint.yaml has kind \"Installation\"; write kind: Blueprint"
    );
    assert_eq!(
        told(json!({"blueprint.yaml": "imports: [{name: a}]"})),
        "the blueprint file blueprint.yaml is invalid: imports[0] has no type: set `schema` for data or `targetType` for targets, or write `type`"
    );
    assert_eq!(
        told(json!({"blueprint.yaml": "deployExecutions: [{name: a, type: Jinja, file: gone.tpl}]"})),
        "the blueprint has no file gone.tpl; it has blueprint.yaml"
    );
}

#[test]
fn templates_come_from_files_texts_and_structures() {
    let blueprint = parse(concat!(
        "deployExecutions:\n",
        "- {name: a, type: Jinja, file: deploy.tpl}\n",
        "- {name: b, type: Spiff, template: {deployItems: [1]}}\n",
    ))
    .unwrap();
    let execution = |name: &str, engine: &str, file: Option<&str>, template: &str| TemplateExecution {
        name: name.to_owned(),
        engine: engine.to_owned(),
        file: file.map(str::to_owned),
        template: template.to_owned(),
    };
    assert_eq!(
        blueprint.deploy_executions,
        [execution("a", "Jinja", Some("deploy.tpl"), ""), execution("b", "Spiff", None, r#"{"deployItems":[1]}"#)]
    );
    assert!(!blueprint.deploys_nothing());
    assert!(parse("importExecutions: [{name: a, type: J, template: x}]").unwrap().deploys_nothing());
}

#[test]
fn files_are_nested_maps_with_typed_entries() {
    let files = files(json!({
        "a.txt": "text",
        "empty": null,
        "n": 5,
        "folder": {"inner": {"b.txt": "deep"}},
        "typed": {"$type": "directory", "value": {"c": "in"}},
        "link": {"$type": "symlink", "value": "folder/inner"},
        "up": {"back": {"$type": "symlink", "value": "../a.txt"}, "root": {"$type": "symlink", "value": "/n"}},
        "y.yaml": {"$type": "yaml", "value": {"k": [1]}},
        "bin": "---Start Binary---\naGkA\n---End Binary---\n",
        "loop": {"$type": "symlink", "value": "loop"},
    }));
    let text = |path: &str| files.read(path).map(|bytes| String::from_utf8(bytes).unwrap());
    for (path, content) in [
        ("a.txt", "text"),
        ("/a.txt", "text"),
        ("./a.txt", "text"),
        ("empty", ""),
        ("n", "5"),
        ("folder/inner/b.txt", "deep"),
        ("folder/../a.txt", "text"),
        ("../../a.txt", "text"),
        ("typed/c", "in"),
        ("link/b.txt", "deep"),
        ("up/back", "text"),
        ("up/root", "5"),
        ("y.yaml", r#"{"k":[1]}"#),
        ("bin", "hi\0"),
    ] {
        assert_eq!(text(path), Ok(content.to_owned()), "{path}");
    }
    assert_eq!(
        files.list(""),
        Ok(["a.txt", "bin", "empty", "folder", "link", "loop", "n", "typed", "up", "y.yaml"]
            .map(str::to_owned)
            .to_vec())
    );
    assert_eq!(files.list("link"), Ok(vec!["b.txt".to_owned()]));
    assert_eq!(text("folder"), Err("folder is a folder of the blueprint, not a file".to_owned()));
    assert_eq!(files.list("a.txt"), Err("a.txt is a file of the blueprint, not a folder".to_owned()));
    assert_eq!(text("loop"), Err("the links of the blueprint file loop lead nowhere".to_owned()));
    assert!(text("a.txt/b").is_err() && text("gone").is_err());
}

#[test]
fn what_is_no_file_is_told_apart() {
    let refused = |tree: Value| FileSystem::parse(&tree).unwrap_err();
    assert_eq!(refused(json!("text")), FileSystemError::NoMap);
    assert_eq!(refused(json!({"a": {"b": []}})), FileSystemError::List { path: "a/b".to_owned() });
    let typed = FileSystemError::Typed { path: "a".to_owned(), type_: "symlink".to_owned() };
    assert_eq!(refused(json!({"a": {"$type": "symlink", "value": 1}})), typed);
    let base64 = json!({"a": "---Start Binary---\n!\n---End Binary---"});
    assert_eq!(refused(base64), FileSystemError::Base64 { path: "a".to_owned() });
}

fn template(json: Value) -> InstallationTemplate {
    let mut full = json!({"blueprint": {"filesystem": {}}});
    full.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
    InstallationTemplate::parse(&full, "").unwrap()
}

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
    let told = |json: Value| InstallationTemplate::parse(&json, "subinstallations[1]").unwrap_err().to_string();
    assert_eq!(
        told(json!({"name": 5})),
        "a sub-installation has a wrong form: subinstallations[1].name: expected a text; write it in quotes, found a number"
    );
    assert_eq!(
        told(json!({"name": "A"})),
        "the name \"A\" of a sub-installation is not one of at most 52 lower-case letters, digits and `-`"
    );
    assert_eq!(
        told(json!({"name": "a"})),
        "the sub-installation \"a\" needs exactly one of blueprint.ref and blueprint.filesystem"
    );
    assert_eq!(
        told(json!({"name": "a", "kind": "Installation"})),
        "the sub-installation \"a\" has kind \"Installation\"; write apiVersion: landscaper.gardener.cloud/v1alpha1 and kind: InstallationTemplate"
    );
    assert_eq!(
        told(
            json!({"name": "a", "blueprint": {"filesystem": {}}, "imports": {"data": [{"name": "x", "secretRef": {"name": "s"}}]}})
        ),
        "the sub-installation \"a\": imports.data[0]: installation templates import by dataRef only; import the Secret or ConfigMap in the root installation"
    );
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
fn rules_over_all_templates_name_who_breaks_them() {
    let data_of = |key: &str| json!({"data": [{"name": "x", "dataRef": key}]});
    let none = json!({});
    let check = |templates: &[InstallationTemplate]| check_templates(templates, &[data("p", json!({}))]).unwrap_err();
    let (a, b) = (importing("a", none.clone(), data_of("e")), importing("b", none.clone(), data_of("e")));
    assert_eq!(check(&[a.clone(), a.clone()]), TemplateError::Duplicate { name: "a".to_owned() });
    let exporters = vec!["a".to_owned(), "b".to_owned()];
    let reference = Reference::Data("e".to_owned());
    assert_eq!(check(&[a, b]), TemplateError::SeveralExporters { reference, exporters });
    let reference = Reference::Data("p".to_owned());
    assert_eq!(
        check(&[importing("a", none.clone(), data_of("p"))]),
        TemplateError::ExportIsImport { name: "a".to_owned(), reference }
    );
    // Recorded in `golden/subinst-unsatisfied-import`.
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
fn outputs_are_decoded_leniently() {
    let imports = decode_imports(&json!({"Bindings": {"A": 1}, "errors": null})).unwrap();
    assert_eq!(imports, ImportOutput { bindings: json!({"A": 1}).as_object().unwrap().clone(), errors: Vec::new() });
    assert_eq!(decode_imports(&json!({"errors": ["x"]})).unwrap().errors, ["x"]);
    assert_eq!(decode_imports(&Value::Null), Ok(ImportOutput::default()));
    assert_eq!(
        decode_exports(&json!([])).unwrap_err().to_string(),
        "the rendered document has a wrong form: expected an object, found a list"
    );
    let sub = json!({"apiversion": "v", "kind": "InstallationTemplate", "name": "a", "blueprint": {"filesystem": {}}});
    assert_eq!(decode_subinstallations(&json!({"subInstallations": [sub]})), Ok(vec![template(json!({"name": "a"}))]));
    let bare = json!({"subinstallations": [{"name": "a", "blueprint": {"filesystem": {}}}]});
    let kind = TemplateError::Kind { name: "a".to_owned(), found: String::new() };
    assert_eq!(decode_subinstallations(&bare), Err(OutputError::Subinstallation(kind)));
}

#[test]
fn exports_of_several_executions_are_merged_deeply() {
    let mut exports = decode_exports(&json!({"exports": {"a": {"x": 1, "y": {"p": 1}}, "b": [1]}})).unwrap();
    merge_exports(&mut exports, json!({"a": {"y": {"q": 2}}, "b": [2], "c": null}).as_object().unwrap().clone());
    assert_eq!(Value::Object(exports), json!({"a": {"x": 1, "y": {"p": 1, "q": 2}}, "b": [2], "c": null}));
}

#[test]
fn state_is_kept_unless_it_is_empty() {
    assert_eq!(state(&json!({"state": {"a": 1}})), Some(&json!({"a": 1})));
    assert_eq!(state(&json!({"State": [0]})), Some(&json!([0])));
    for output in [json!({}), json!({"state": {}}), json!({"state": null}), json!([])] {
        assert_eq!(state(&output), None, "{output}");
    }
}

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
        "onDelete": {"skipUninstallIfClusterRemoved": true},
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
    assert_eq!(chosen(json!({})), Err(ItemError::EmptyTarget { name: text("a") }));
}

#[test]
fn faults_of_deploy_items_name_the_item() {
    let told = |item: Value| items(json!([item])).unwrap_err().to_string();
    assert_eq!(told(json!({"type": "t", "config": {}})), "deploy item \"\" (number 1) has no name; set it");
    assert_eq!(told(json!({"name": "a", "config": {}})), "deploy item \"a\" (number 1) has no type; set it");
    assert_eq!(told(json!({"name": "a", "type": "t"})), "deploy item \"a\" (number 1) has no config; set it");
    // Recorded in `golden/timeout-invalid`.
    assert_eq!(
        told(json!({"name": "a", "type": "t", "config": {}, "timeout": "abc"})),
        "deploy item \"a\": timeout \"abc\" is no length of time; write a number with a unit (ns, us, ms, s, m, h) such as 90s or 1h30m, or none"
    );
    assert_eq!(
        told(json!({"name": "a", "labels": {"x": 1}})),
        "the rendered deploy items have a wrong form: deployItems[0].labels.x: expected a text; write it in quotes, found a number"
    );
}

#[test]
fn exe_30_circles_and_unknown_dependencies_of_items_are_refused() {
    let item = |name: &str, before: &[&str]| json!({"name": name, "type": "t", "config": {}, "dependsOn": before});
    let check = |list: Value| check_items(&items(list).unwrap()).map_err(|error| error.to_string());
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
    let told = |choice| resolve(Some(choice)).unwrap_err();
    assert_eq!(
        told(TargetChoice::Import(text("list"))),
        "deploy item \"i\": there is no target import \"list\"; known are: one"
    );
    assert_eq!(
        told(TargetChoice::Element(text("one"), 0)),
        "deploy item \"i\": there is no target list import \"one\"; known are: list"
    );
    assert_eq!(
        told(TargetChoice::Entry(text("x"), text("k"))),
        "deploy item \"i\": there is no target map import \"x\"; known are: map"
    );
    for index in [2, -1] {
        assert_eq!(
            told(TargetChoice::Element(text("list"), index)),
            format!(
                "deploy item \"i\": index {index} is out of bounds; the target list \"list\" has 2 elements, counted from 0"
            )
        );
    }
    assert_eq!(
        told(TargetChoice::Entry(text("map"), text("blue"))),
        "deploy item \"i\": the target map \"map\" has no key \"blue\"; its keys are: red"
    );
}

#[test]
fn an_empty_object_is_the_blueprint_of_a_default_template() {
    assert_eq!(InstallationTemplate::default().blueprint, TemplateBlueprint::Inline(Value::Object(Map::new())));
}
