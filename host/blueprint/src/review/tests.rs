use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    FileSystem,
    rendering::{Findings, InputReference, RenderFailure},
};
use orangery_core::yaml;
use orangery_ocm::Files;

fn reviewed(files: serde_json::Value) -> Review {
    let files: Arc<dyn Files> = Arc::new(FileSystem::parse(&files).unwrap());
    review(&files, &BlueprintOrigin::Files("b/".to_owned()))
}

fn message_of(review: &Review) -> Vec<String> {
    review.findings.iter().map(ToString::to_string).collect()
}

fn blueprint(text: &str) -> Vec<String> {
    message_of(&reviewed(json!({ "blueprint.yaml": text })))
}

#[test]
fn a_sound_blueprint_has_no_findings() {
    let found = blueprint(
        "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Blueprint
jsonSchemaVersion: https://json-schema.org/draft/2019-09/schema
localTypes: {port: {type: integer}}
imports:
- {name: port, schema: {$ref: 'local://port'}, required: false, default: {value: 80}}
- {name: cluster, targetType: kubernetes-cluster}
exports: [{name: url, schema: {type: string}}]
deployExecutions: [{name: d, type: Jinja, template: 'deployItems: []'}]
exportExecutions: [{name: e, type: Jinja, template: 'exports: {url: x}'}]
",
    );
    assert_eq!(found, [""; 0]);
}

#[test]
fn every_fault_of_a_blueprint_has_its_place_and_its_fix() {
    let found = blueprint(
        "\
kind: Blueprint
odd: 1
localTypes:
  bad: {type: nothing}
imports:
- name: a
  type: dat
  schema: {}
- name: b
  schema:
    $ref: local://none
- name: c
  schema: {type: string}
  default: {value: 5}
  required: false
- name: d
  schema: {$ref: 'cd://resources/x'}
exports:
- {name: e, schema: {}}
deployExecutions:
- name: x
  type: Jinja
  file: none.yaml
",
    );
    assert_eq!(
        found,
        [
            "b/blueprint.yaml:7:3: error: imports[0].type \"dat\" does not exist; known types are data, target, targetList, targetMap",
            "b/blueprint.yaml:23:3: error: the blueprint has no file none.yaml; it has blueprint.yaml",
            "b/blueprint.yaml:2:1: warning: nobody knows the field odd, so it is ignored; correct its name or remove it",
            "b/blueprint.yaml:4:3: error: localTypes.bad: the schema in the blueprint is invalid: /type (\"nothing\" is not valid under any of the schemas listed in the 'anyOf' keyword)",
            "b/blueprint.yaml:10:3: error: imports[1].schema: the schema refers to local://none, but localTypes of the blueprint has no \"none\"; known are: bad",
            "b/blueprint.yaml:14:13: error: the default of the import \"c\": the value does not follow the schema: at /: value is not of type \"string\", found number; correct the default or the schema",
            "b/blueprint.yaml:17:3: note: imports[3].schema refers to cd://resources/x, which only the component version has, so it is not checked",
            "b/blueprint.yaml:19:3: warning: nothing in the blueprint gives the export \"e\"; add an exportExecution that does, or remove it",
        ]
    );
}

#[test]
fn executions_that_have_no_name_of_their_own_are_warned_of() {
    let found = message_of(&reviewed(json!({"blueprint.yaml": "\
deployExecutions:
- type: Jinja
  template: 'deployItems: []'
- {name: a, type: Jinja, template: 'deployItems: []'}
- {name: a, type: Jinja, template: 'deployItems: []'}
"})));
    assert_eq!(
        found,
        [
            "b/blueprint.yaml:2:3: warning: deployExecutions[0] has no name, so its state is kept by its index and is lost when the list changes; give it one",
            "b/blueprint.yaml:5:4: warning: two executions of this list are named \"a\", so what keeps state and errors apart is their index; rename one",
        ]
    );
}

#[test]
fn sub_installations_are_held_against_each_other_and_against_their_blueprints() {
    let found = message_of(&reviewed(json!({
        "blueprint.yaml": "\
imports: [{name: host, schema: {}}]
subinstallations:
- file: one.yaml
- name: two
  imports:
    data:
    - {name: a, dataRef: from-one}
    - {name: b, dataRef: nowhere}
  blueprint:
    filesystem:
      blueprint.yaml: |
        imports:
        - {name: a, targetType: t}
        - {name: c, schema: {}}
        exports: [{nmae: x}]
",
        "one.yaml": "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: InstallationTemplate
name: one
blueprint: {ref: 'cd://x'}
exports:
  data:
  - {name: x, dataRef: from-one}
  - {name: z, dataRef: host}
",
    })));
    assert_eq!(
        found,
        [
            "b/one.yaml:5:1: error: the sub-installation \"one\" exports data host, which is already an import of the blueprint; rename the export",
            "b/blueprint.yaml:5:3: error: the sub-installation \"two\" imports data nowhere, which neither the blueprint imports nor a sibling exports; known are: data from-one, data host",
            "b/blueprint.yaml:15:19: error: exports[0].name is missing; set it",
            "b/blueprint.yaml:15:20: warning: nobody knows the field exports[0].nmae, so it is ignored; correct its name or remove it",
            "b/blueprint.yaml:7:8: error: the blueprint asks for a target as import \"a\", and data is given; correct one of them",
            "b/blueprint.yaml:8:8: warning: the blueprint has no import \"b\", so it is ignored; correct the name, or remove it; known are: a, c",
            "b/blueprint.yaml:5:3: error: the blueprint asks for data as import \"c\", and nothing is given; add it to the imports, or make it optional by required: false",
        ]
    );
}

#[test]
fn wf_16_a_circle_is_found_where_everything_else_is_right() {
    let sub = |name: &str, from: &str, to: &str| {
        format!(
            "- {{name: {name}, blueprint: {{ref: 'cd://x'}}, imports: {{data: [{{name: i, dataRef: {from}}}]}}, exports: {{data: [{{name: e, dataRef: {to}}}]}}}}\n"
        )
    };
    let found = blueprint(&format!("subinstallations:\n{}{}", sub("one", "a", "b"), sub("two", "b", "a")));
    assert_eq!(
        found,
        [
            "b/blueprint.yaml:2:43: error: the sub-installations import from each other: one -> two -> one depend on each other in a circle; remove one of these dependencies"
        ]
    );
}

const INSTALLATION: &str = "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata: {name: x}
spec:
  imports:
    data:
    - {name: a, dataRef: b, secret: x}
    - {name: a, dataRef: c}
  exports:
    data: [{name: none, dataRef: none}]
    data: [{name: none, dataRef: none}]
  blueprint:
    inline:
      filesystem:
        sub:
          deploy.yaml: |-
            first
            {{ imports.c }}
        blueprint.yaml: |
          imports: [{name: a, schema: {}}]
          deployExecutions:
          - name: here
            type: Jinja
            template: |

              {{ unheard }}
          - {name: there, type: Jinja, file: sub/deploy.yaml}
";

fn installation(text: &str) -> Review {
    let located = yaml::locate(text).unwrap();
    assert!(is_installation(&located.value));
    review_installation(&located, &Text::file("i.yaml"))
}

#[test]
fn an_installation_is_held_against_the_blueprint_in_it() {
    assert_eq!(
        message_of(&installation(INSTALLATION)),
        [
            "i.yaml:7:29: warning: nobody knows the field spec.imports.data[0].secret, so it is ignored; correct its name or remove it",
            "i.yaml:11:5: warning: spec.exports.data stands twice in its object, and only the last one counts; remove the other",
            "i.yaml:8:8: error: imports.data[1].name: \"a\" stands twice; give every entry its own name",
            "i.yaml:11:13: error: the blueprint has no data export \"none\"; correct the name, or define it in the blueprint; known are: none",
        ]
    );
    let without = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Installation\nspec: {imports: {}}\n";
    assert_eq!(
        message_of(&installation(without)),
        [
            "i.yaml:3:1: error: the installation has no blueprint; set spec.blueprint.ref or spec.blueprint.inline.filesystem"
        ]
    );
}

#[test]
fn what_an_engine_finds_is_placed_in_the_file_of_the_user() {
    let review = installation(INSTALLATION);
    let [here, there] = review.templates.as_slice() else { panic!("{:?}", review.templates) };
    let reference = |path: &[&str], line| InputReference {
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        file: None,
        line: Some(line),
        column: Some(4),
    };
    let failure = RenderFailure {
        message: "syntax".to_owned(),
        file: Some("sub/deploy.yaml".to_owned()),
        line: Some(2),
        column: Some(1),
        snippet: None,
        reads: Vec::new(),
        transient: false,
    };
    let findings =
        Findings { failures: vec![], references: vec![reference(&["unheard"], 2), reference(&["imports", "a"], 2)] };
    assert_eq!(
        message_of(&classify(here, findings)),
        [
            "i.yaml:26:18: warning: there is no input \"unheard\"; correct the name; inputs are: imports, cd, components, blueprint, blueprintDef, componentDescriptorDef, state"
        ]
    );
    let findings = Findings { failures: vec![failure], references: vec![reference(&["imports", "c", "d"], 2)] };
    assert_eq!(
        message_of(&classify(there, findings)),
        [
            "i.yaml:18:13: error: syntax; correct the template",
            "i.yaml:18:16: warning: the blueprint has no import \"c\", so `imports.c` never has a value; correct the name, or add it to the imports; known are: a",
        ]
    );
    assert_eq!(
        there.finding(Severity::Note, "not looked at").to_string(),
        "i.yaml:27:13: note: deployExecutions \"there\" (Jinja): not looked at"
    );
}

const MAPPINGS: &str = "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
spec:
  importDataMappings:
    a: {b: [(( x ))]}
  exportDataMappings:
    c: (( y ))
  blueprint:
    inline:
      filesystem:
        blueprint.yaml: |
          subinstallations:
          - file: sub.yaml
        sub.yaml: |
          name: sub
          blueprint: {ref: 'cd://x'}

          exportDataMappings: {d: 1}
";

#[test]
fn data_mappings_are_templates_of_spiff_at_the_place_of_their_name() {
    let review = installation(MAPPINGS);
    let templates: Vec<_> = review
        .templates
        .iter()
        .map(|of| {
            (of.execution.engine.as_str(), of.execution.template.as_str(), of.finding(Severity::Error, "x").to_string())
        })
        .collect();
    assert_eq!(
        templates,
        [
            ("Spiff", r#"{"b":["(( x ))"]}"#, "i.yaml:5:5: error: importDataMappings \"a\" (Spiff): x".to_owned()),
            ("Spiff", r#""(( y ))""#, "i.yaml:7:5: error: exportDataMappings \"c\" (Spiff): x".to_owned()),
            ("Spiff", "1", "i.yaml:18:32: error: exportDataMappings \"d\" (Spiff): x".to_owned()),
        ]
    );
    let failure = |message: &str| RenderFailure {
        message: message.to_owned(),
        file: None,
        line: None,
        column: None,
        snippet: None,
        reads: Vec::new(),
        transient: false,
    };
    let findings = Findings { failures: vec![failure("bad"), failure("worse; mend it")], references: vec![] };
    assert_eq!(
        message_of(&classify(&review.templates[1], findings)),
        [
            "i.yaml:7:5: error: exportDataMappings \"c\" (Spiff): bad; correct the template",
            "i.yaml:7:5: error: exportDataMappings \"c\" (Spiff): worse; mend it",
        ]
    );
}

#[test]
fn import_executions_may_add_imports_so_none_is_unknown_after_them() {
    let review = reviewed(json!({"blueprint.yaml": "\
importExecutions: [{name: i, type: Jinja, template: x}]
deployExecutions: [{name: d, type: Jinja, template: x}]
exportExecutions: [{name: e, type: Jinja, template: x}]
"}));
    let findings = || Findings {
        failures: vec![],
        references: [["imports", "x"], ["values", "x"]]
            .map(|path| InputReference { path: path.map(str::to_owned).to_vec(), file: None, line: None, column: None })
            .to_vec(),
    };
    let message_of: Vec<usize> =
        review.templates.iter().map(|template| classify(template, findings()).findings.len()).collect();
    assert_eq!(message_of, [2, 1, 0]);
}

#[test]
fn gate_expressions_that_stand_there_as_they_will_be_rendered_are_checked_at_their_place() {
    let review = reviewed(json!({"blueprint.yaml": "\
imports: [{name: size, schema: {type: integer}}]
deployExecutions:
- name: d
  type: Jinja
  template: |
    deployItems:
    - name: db
      when: imports.size > 3
    - name: app
      dependsOn: [db]
      when: imports.size == 'large'
      readyWhen: {expression: items.other.exports.x == 1}
    - name: computed
      dependsOn: ['{{ imports.size }}']
      when: items.anything.exports.x == 1
      activateWhen: imports.{{ imports.size }}
- {name: loop, type: Jinja, template: '{% for x in [] %}'}
"}));
    let message_of: Vec<String> =
        review.templates.iter().flat_map(ToCheck::gates).map(|finding| finding.to_string()).collect();
    assert_eq!(
        message_of,
        [
            "b/blueprint.yaml:11:7: error: deploy item \"app\": when: the expression `imports.size == 'large'` cannot be used: == stands between a number and a string",
            "b/blueprint.yaml:12:7: error: deploy item \"app\": readyWhen: the expression `items.other.exports.x == 1` cannot be used: there is no other in items; known are: db",
        ]
    );
}

#[test]
fn gate_expressions_of_sub_installations_are_checked_at_their_place() {
    let review = reviewed(json!({"blueprint.yaml": "\
imports: [{name: size, schema: {type: integer}}]
subinstallations:
- apiVersion: landscaper.gardener.cloud/v1alpha1
  kind: InstallationTemplate
  name: db
  blueprint: {filesystem: {blueprint.yaml: 'deployExecutions: []'}}
  when: imports.size == 'large'
- apiVersion: landscaper.gardener.cloud/v1alpha1
  kind: InstallationTemplate
  name: app
  blueprint: {filesystem: {blueprint.yaml: 'deployExecutions: []'}}
  readyWhen: {expression: objects.one != null, objects: {one: {apiVersion: v1, kind: Secret, name: one}}}
"}));
    let message_of: Vec<String> = review.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        message_of,
        [
            "b/blueprint.yaml:7:3: error: the sub-installation \"db\": when: the expression `imports.size == 'large'` cannot be used: == stands between a number and a string",
            "b/blueprint.yaml:12:3: error: the sub-installation \"app\": readyWhen: objects.one names no target, and a sub-installation has none of its own; set target",
        ]
    );
}

#[test]
fn gate_expressions_of_rendered_sub_installations_are_checked_as_far_as_they_stand_there() {
    let review = reviewed(json!({"blueprint.yaml": "\
imports: [{name: size, schema: {type: integer}}]
subinstallationExecutions:
- name: s
  type: Jinja
  template: |
    subinstallations:
    - name: db
      when: imports.big
    - name: app
      when: items.db.exports.x == 1 && items.other.exports.x == 1
"}));
    let message_of: Vec<String> =
        review.templates.iter().flat_map(ToCheck::gates).map(|finding| finding.to_string()).collect();
    assert_eq!(
        message_of,
        [
            "b/blueprint.yaml:8:7: error: the sub-installation \"db\": when: the expression `imports.big` cannot be used: there is no big in imports; known are: size",
        ]
    );
}

/// What is said of an Installation with these imports and exports and this blueprint.
fn bound(spec: &str, blueprint: &str) -> Vec<String> {
    let indented: String = blueprint.lines().map(|line| format!("          {line}\n")).collect();
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Installation\nspec:\n{spec}  blueprint:\n    inline:\n      filesystem:\n        blueprint.yaml: |\n{indented}"
    );
    message_of(&installation(&text))
}

#[test]
fn every_sort_of_import_is_held_against_what_is_given() {
    let blueprint = "\
imports:
- {name: data, schema: {}}
- {name: target, targetType: t}
- {name: list, type: targetList, targetType: t}
- {name: map, type: targetMap, targetType: t}
";
    let right = "\
imports:
  data: [{name: data, dataRef: x}]
  targets: [{name: target, target: x}, {name: list, targets: []}, {name: map, targetMap: {}}]
";
    assert_eq!(bound(right, blueprint), [""; 0]);
    let references = "\
imports:
  data: [{name: data, configMapRef: {name: x}}]
  targets: [{name: target, target: x}, {name: list, targetListRef: x}, {name: map, targetMapRef: x}]
";
    assert_eq!(bound(references, blueprint), [""; 0]);
    let wrong = "\
imports:
  data: [{name: target, dataRef: x}]
  targets: [{name: data, target: x}, {name: list, targetMap: {}}, {name: map, targets: []}]
";
    let fix = "is given; correct one of them";
    assert_eq!(
        bound(wrong, blueprint),
        [
            format!("i.yaml:5:13: error: the blueprint asks for a target as import \"target\", and data {fix}"),
            format!("i.yaml:6:16: error: the blueprint asks for data as import \"data\", and a target {fix}"),
            format!(
                "i.yaml:6:41: error: the blueprint asks for a target list as import \"list\", and a target map {fix}"
            ),
            format!(
                "i.yaml:6:70: error: the blueprint asks for a target map as import \"map\", and a target list {fix}"
            ),
        ]
    );
}

#[test]
fn optional_and_mapped_imports_need_not_be_given_and_conditional_ones_may_be() {
    let blueprint = "\
imports:
- {name: optional, schema: {}, required: false, imports: [{name: conditional, schema: {}}]}
- {name: mapped, schema: {}}
";
    let mapped = "importDataMappings: {mapped: 1}\nimports: {data: [{name: raw, dataRef: x}]}\n";
    assert_eq!(bound(mapped, blueprint), [""; 0]);
    let conditional = "importDataMappings: {mapped: 1}\nimports: {data: [{name: conditional, dataRef: x}]}\n";
    assert_eq!(bound(conditional, blueprint), [""; 0]);
    let nothing = "i.yaml:3:1: error: the blueprint asks for data as import \"mapped\", and nothing is given; add it to the imports, or make it optional by required: false";
    assert_eq!(bound("", blueprint), [nothing]);
}

#[test]
fn exports_are_those_of_the_blueprint_or_of_a_mapping() {
    let blueprint = "\
exports: [{name: data, schema: {}}, {name: target, targetType: t}]
exportExecutions: [{name: e, type: Jinja, template: x}]
";
    let right = "\
exportDataMappings: {mapped: 1}
exports:
  data: [{name: data, dataRef: x}, {name: mapped, dataRef: z}]
  targets: [{name: target, target: t}]
";
    assert_eq!(bound(right, blueprint), [""; 0]);
    let swapped = "exports:\n  data: [{name: target, dataRef: x}]\n  targets: [{name: data, target: t}]\n";
    let fix = "correct the name, or define it in the blueprint; known are:";
    assert_eq!(
        bound(swapped, blueprint),
        [
            format!("i.yaml:5:13: error: the blueprint has no data export \"target\"; {fix} data"),
            format!("i.yaml:6:16: error: the blueprint has no target export \"data\"; {fix} target"),
        ]
    );
}

#[test]
fn a_document_that_cannot_be_read_ends_with_one_error() {
    assert_eq!(bound("imports: 5\n", ""), ["i.yaml:4:3: error: spec.imports: expected an object, found a number"]);
    assert_eq!(bound("", "kind: Pod"), ["i.yaml:8:11: error: the file has kind \"Pod\"; write kind: Blueprint"]);
    let broken = bound("", "imports: [");
    assert!(broken[0].starts_with("i.yaml:8:") && broken[0].ends_with("; correct the YAML"), "{broken:?}");
    let listed = INSTALLATION
        .replace("sub:\n          deploy.yaml: |-\n            first\n            {{ imports.c }}", "sub: [1]");
    let found = message_of(&installation(&listed));
    assert!(
        found.iter().any(|message_of| message_of.starts_with("i.yaml:14:7: error: the blueprint file sub is a list")),
        "{found:?}"
    );
    let reference = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Installation\nspec: {blueprint: {ref: {resourceName: x}}}\n";
    assert_eq!(
        message_of(&installation(reference)),
        ["i.yaml:3:8: note: the blueprint comes from a component version, so it is not checked; check its own folder"]
    );
}
