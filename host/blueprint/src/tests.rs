use serde_json::json;

use super::*;

mod bundled;
mod files;
mod items;
mod messages;
mod outputs;
mod reading;
mod recorded;
mod templates;

fn files(tree: Value) -> FileSystem {
    FileSystem::parse(&tree).unwrap()
}

fn parse(blueprint: &str) -> Result<Blueprint, BlueprintError> {
    Blueprint::parse(&files(json!({"blueprint.yaml": blueprint, "deploy.tpl": "text"})))
}

#[track_caller]
fn refuses(blueprint: &str, field: &str, fault: BlueprintFault) {
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

/// The blueprint of `tests/golden/hello-manifest`, shortened.
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
    refuses("imports: [{schema: {}}]", "imports[0].name", BlueprintFault::Empty);
    refuses("imports: [{name: a}]", "imports[0]", BlueprintFault::SchemaOrTargetType);
    refuses("imports: [{name: a, schema: {}, targetType: t}]", "imports[0]", BlueprintFault::SchemaOrTargetType);
    refuses("imports: [{name: a, type: data}]", "imports[0].schema", BlueprintFault::Empty);
    refuses("imports: [{name: a, type: target}]", "imports[0].targetType", BlueprintFault::Empty);
    refuses(
        "imports: [{name: a, type: data, schema: {}, targetType: t}]",
        "imports[0].targetType",
        BlueprintFault::OnlyForTargets,
    );
    refuses(
        "imports: [{name: a, type: target, schema: {}, targetType: t}]",
        "imports[0].schema",
        BlueprintFault::OnlyForData,
    );
    let unknown = BlueprintFault::UnknownType { found: "secret".to_owned(), known };
    refuses("imports: [{name: a, type: secret}]", "imports[0].type", unknown);
    let conditional = "imports: [{name: a, schema: {}, imports: [{name: b, schema: {}}]}]";
    refuses(conditional, "imports[0].imports", BlueprintFault::ConditionalOnRequired);
    let twice = "imports: [{name: a, required: false, schema: {}, imports: [{name: a, schema: {}}]}]";
    refuses(twice, "imports[0].imports[0].name", BlueprintFault::Duplicate("a".to_owned()));
    let unknown = BlueprintFault::UnknownType { found: "targetList".to_owned(), known: "data, target" };
    refuses("exports: [{name: a, type: targetList}]", "exports[0].type", unknown);
    refuses("exportExecutions: [{name: a, template: x}]", "exportExecutions[0].type", BlueprintFault::Empty);
    refuses("importExecutions: [{name: a, type: Jinja}]", "importExecutions[0]", BlueprintFault::FileOrTemplate);
    let both = "deployExecutions: [{name: a, type: Jinja, file: deploy.tpl, template: x}]";
    refuses(both, "deployExecutions[0]", BlueprintFault::FileOrTemplate);
    refuses("subinstallations: [{file: s.yaml, name: x}]", "subinstallations[0]", BlueprintFault::FileOrInline);
}

#[test]
fn errors_of_a_blueprint_are_one_sentence_with_the_fix() {
    let message = |tree: Value| Blueprint::parse(&files(tree)).unwrap_err().to_string();
    assert_eq!(message(json!({"other.yaml": ""})), "the blueprint has no file blueprint.yaml; it has other.yaml");
    assert_eq!(
        message(json!({"blueprint.yaml": "imports:\n- {name: a"})),
        "the blueprint file blueprint.yaml is not YAML: line 2, column 3: unclosed bracket '{'"
    );
    assert_eq!(
        message(json!({"blueprint.yaml": "imports: {a: 1}"})),
        "the blueprint file blueprint.yaml has a wrong form: imports: expected a list, found an object"
    );
    assert_eq!(
        message(json!({"blueprint.yaml": "kind: Installation"})),
        "the blueprint file blueprint.yaml has kind \"Installation\"; write kind: Blueprint"
    );
    assert_eq!(
        message(json!({"blueprint.yaml": "imports: [{name: a}]"})),
        "the blueprint file blueprint.yaml is invalid: imports[0] has no type: set `schema` for data or `targetType` for targets, or write `type`"
    );
    assert_eq!(
        message(json!({"blueprint.yaml": "deployExecutions: [{name: a, type: Jinja, file: gone.tpl}]"})),
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

fn template(json: Value) -> InstallationTemplate {
    let mut full = json!({"blueprint": {"filesystem": {}}});
    full.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
    InstallationTemplate::parse(&full, "").unwrap()
}
