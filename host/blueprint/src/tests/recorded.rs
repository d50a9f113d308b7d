//! Blueprints that the original ran, from `tests/golden/`.

use serde_json::json;

use super::*;
use crate::binding::{DataExport, ExportBindings, ImportBindings, TargetImport};

const CLUSTER: &str = "landscaper.gardener.cloud/kubernetes-cluster";

fn cluster() -> ImportDefinition {
    ImportDefinition { kind: ImportKind::Target { target_type: CLUSTER.to_owned() }, ..data("cluster", Value::Null) }
}

fn execution(name: &str, template: &str) -> TemplateExecution {
    TemplateExecution {
        name: name.to_owned(),
        engine: "GoTemplate".to_owned(),
        file: None,
        template: template.to_owned(),
    }
}

/// `tests/golden/subinst-inline`: a static sub-installation with a blueprint of its own.
#[test]
fn sub_installations_written_out() {
    const INNER: &str = concat!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\n",
        "kind: Blueprint\n",
        "imports:\n",
        "- {name: cluster, type: target, targetType: landscaper.gardener.cloud/kubernetes-cluster}\n",
        "exports:\n",
        "- {name: res, type: data, schema: {type: string}}\n",
        "exportExecutions:\n",
        "- name: e\n",
        "  type: GoTemplate\n",
        "  template: |\n",
        "    exports:\n",
        "      res: {{ index .values.deployitems \"item\" \"out\" }}\n",
    );
    let outer = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Blueprint",
        "jsonSchema": "https://json-schema.org/draft/2019-09/schema",
        "imports": [{"name": "cluster", "type": "target", "targetType": CLUSTER}],
        "exports": [{"name": "top", "type": "data", "schema": {"type": "string"}}],
        "exportExecutions": [
            {"name": "e", "type": "GoTemplate", "template": "exports:\n  top: {{ .values.dataobjects.subres }}\n"},
        ],
        "subinstallations": [{
            "apiVersion": "landscaper.gardener.cloud/v1alpha1",
            "kind": "InstallationTemplate",
            "name": "sub",
            "imports": {"targets": [{"name": "cluster", "target": "cluster"}]},
            "exports": {"data": [{"name": "res", "dataRef": "subres"}]},
            "blueprint": {"filesystem": {"blueprint.yaml": INNER}},
        }],
    });
    let string = || ExportKind::Data { schema: json!({"type": "string"}) };
    let blueprint = parse(&outer.to_string()).unwrap();
    assert_eq!(
        blueprint,
        Blueprint {
            imports: vec![cluster()],
            exports: vec![ExportDefinition { name: "top".to_owned(), kind: string() }],
            export_executions: vec![execution("e", "exports:\n  top: {{ .values.dataobjects.subres }}\n")],
            subinstallations: vec![InstallationTemplate {
                name: "sub".to_owned(),
                blueprint: TemplateBlueprint::Inline(json!({"blueprint.yaml": INNER})),
                imports: ImportBindings {
                    targets: vec![TargetImport {
                        name: "cluster".to_owned(),
                        target: "cluster".to_owned(),
                        ..TargetImport::default()
                    }],
                    ..ImportBindings::default()
                },
                exports: ExportBindings {
                    data: vec![DataExport { name: "res".to_owned(), data_ref: "subres".to_owned() }],
                    ..ExportBindings::default()
                },
                ..InstallationTemplate::default()
            }],
            ..Blueprint::default()
        }
    );
    assert_eq!(check_templates(&blueprint.subinstallations, &blueprint.imports), Ok(()));
    let TemplateBlueprint::Inline(files) = &blueprint.subinstallations[0].blueprint else { panic!("it is inline") };
    assert_eq!(
        Blueprint::parse(&FileSystem::parse(files).unwrap()).unwrap(),
        Blueprint {
            imports: vec![cluster()],
            exports: vec![ExportDefinition { name: "res".to_owned(), kind: string() }],
            export_executions: vec![execution(
                "e",
                "exports:\n  res: {{ index .values.deployitems \"item\" \"out\" }}\n"
            )],
            ..Blueprint::default()
        }
    );
}

/// `tests/golden/import-executions`: three executions in their order.
#[test]
fn import_executions() {
    let blueprint = parse(concat!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\n",
        "kind: Blueprint\n",
        "imports:\n",
        "- {name: a, type: data, schema: {type: string}}\n",
        "importExecutions:\n",
        "- name: one\n",
        "  type: GoTemplate\n",
        "  template: |\n",
        "    bindings:\n",
        "      b: {{ .imports.a }}-bound\n",
        "- name: two\n",
        "  type: GoTemplate\n",
        "  template: |\n",
        "    bindings:\n",
        "      c: {{ .imports.b }}-again\n",
        "- name: three\n",
        "  type: GoTemplate\n",
        "  template: |\n",
        "    errors:\n",
        "    - first problem\n",
        "    - second problem\n",
    ))
    .unwrap();
    assert_eq!(
        blueprint,
        Blueprint {
            imports: vec![data("a", json!({"type": "string"}))],
            import_executions: vec![
                execution("one", "bindings:\n  b: {{ .imports.a }}-bound\n"),
                execution("two", "bindings:\n  c: {{ .imports.b }}-again\n"),
                execution("three", "errors:\n- first problem\n- second problem\n"),
            ],
            ..Blueprint::default()
        }
    );
    // What `two` and `three` render to.
    let rendered = |text: &str| decode_imports(&orangery_core::yaml::decode(text).unwrap()).unwrap();
    let two = ImportOutput { bindings: json!({"c": "A-bound-again"}).as_object().unwrap().clone(), errors: Vec::new() };
    assert_eq!(rendered("bindings:\n  c: A-bound-again\n"), two);
    let three = ImportOutput {
        errors: vec!["first problem".to_owned(), "second problem".to_owned()],
        ..ImportOutput::default()
    };
    assert_eq!(rendered("errors:\n- first problem\n- second problem\n"), three);
}

/// `tests/golden/deployitem-chain` and `tests/golden/timeout-none`: items as their templates rendered them.
#[test]
fn rendered_deploy_items() {
    let rendered = orangery_core::yaml::decode(concat!(
        "deployItems:\n",
        "- name: a\n",
        "  type: landscaper.gardener.cloud/mock\n",
        "  config: &config\n",
        "    apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1\n",
        "    kind: ProviderConfiguration\n",
        "- name: b\n",
        "  type: landscaper.gardener.cloud/mock\n",
        "  dependsOn: [a]\n",
        "  timeout: none\n",
        "  config: *config\n",
    ))
    .unwrap();
    let config = json!({
        "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1",
        "kind": "ProviderConfiguration",
    });
    let a = ItemTemplate {
        name: "a".to_owned(),
        type_: "landscaper.gardener.cloud/mock".to_owned(),
        config,
        ..ItemTemplate::default()
    };
    let b = ItemTemplate {
        name: "b".to_owned(),
        depends_on: vec!["a".to_owned()],
        timeout: Some("none".to_owned()),
        ..a.clone()
    };
    let items = decode_items(&rendered).unwrap();
    assert_eq!(items, [a, b]);
    assert_eq!(check_items(&items, &std::sync::Arc::default()), Ok(()));
}

/// `tests/golden/target-list`: a list with the type in full, another with the shorthand.
#[test]
fn target_lists() {
    let list = |name: &str| ImportDefinition {
        kind: ImportKind::TargetList { target_type: CLUSTER.to_owned() },
        ..data(name, Value::Null)
    };
    let blueprint = parse(concat!(
        "imports:\n",
        "- {name: clusters, type: targetList, targetType: landscaper.gardener.cloud/kubernetes-cluster}\n",
        "- {name: none, type: targetList, targetType: kubernetes-cluster}\n",
    ));
    assert_eq!(blueprint.map(|blueprint| blueprint.imports), Ok(vec![list("clusters"), list("none")]));
}

/// Better than `tests/golden/target-map-shorthand`, where a map does not get the prefix.
#[test]
fn target_maps_by_shorthand() {
    let blueprint = parse("imports: [{name: clusters, type: targetMap, targetType: kubernetes-cluster}]");
    let map = ImportDefinition {
        kind: ImportKind::TargetMap { target_type: CLUSTER.to_owned() },
        ..data("clusters", Value::Null)
    };
    assert_eq!(blueprint.map(|blueprint| blueprint.imports), Ok(vec![map]));
}
