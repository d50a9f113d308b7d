//! `orangery blueprint check` as users call it.

use std::fs;

use orangery_tests::{
    binary::{Binary, Ended},
    repository,
};
use serde_json::{Value, json};

fn example(name: &str) -> String {
    repository().join("examples").join(name).to_string_lossy().into_owned()
}

async fn check(paths: &[&str]) -> Ended {
    crate::binary().await.run(&[&["blueprint", "check"], paths].concat()).await
}

/// Writes a file below the folder of the binary, where commands run.
fn write(binary: &Binary, name: &str, text: &str) {
    let path = binary.folder().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    fs::write(path, text).expect("the file can be written");
}

#[tokio::test]
async fn the_examples_that_deploy_have_no_findings() {
    for name in [
        "hello-world",
        "data-flow",
        "sub-installations",
        "dependencies",
        "own-deployer",
        "optional-database",
        "crd-dependent",
        "canary",
        "continue-on-failure",
    ] {
        let ended = check(&[&example(name)]).await;
        assert_eq!(ended.code, Some(0), "{name}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.ends_with(" checked: 0 errors, 0 warnings\n"), "{name}: {}", ended.stdout);
        assert_eq!(ended.stdout.lines().count(), 1, "{name}: {}", ended.stdout);
    }
}

#[tokio::test]
async fn an_undefined_input_is_reported_with_its_place() {
    let path = example("errors/wrong-template");
    let ended = check(&[&path]).await;
    let expected = format!(
        "{path}/installation.yaml:39:34: warning: the blueprint has no import \"nmae\", so `imports.nmae` never has a value; \
         correct the name, or add it to the imports; known are: cluster\n1 blueprint checked: 0 errors, 1 warning\n"
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected.as_str()), "{}", ended.stderr);
}

const BROKEN: &str = "\
imports:
- {name: a, type: dat}
deployExecutions:
- name: items
  type: Jinja
  file: sub/deploy.yaml
- {name: other, type: Brew, template: x}
";

#[tokio::test]
async fn a_folder_is_checked_with_all_its_files() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", BROKEN);
    write(&binary, "b/sub/deploy.yaml", "deployItems:\n- name: {{ imports.a }\n");
    let ended = binary.run(&["blueprint", "check", "b"]).await;
    let known =
        "no component renders the type \"Brew\"; correct `type` or register a component for it; known types are: ";
    let [of_type, of_engine, of_template, summary] = ended.stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("{}{}", ended.stdout, ended.stderr)
    };
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        of_type,
        "b/blueprint.yaml:2:13: error: imports[0].type \"dat\" does not exist; known types are data, target, targetList, targetMap"
    );
    let prefix = format!("b/blueprint.yaml:7:3: error: deployExecutions \"other\" (Brew): {known}");
    assert!(of_engine.starts_with(&prefix), "{of_engine}");
    assert!(of_template.starts_with("b/sub/deploy.yaml:2:22: error: syntax error: "), "{of_template}");
    assert_eq!(summary, "1 blueprint checked: 3 errors, 0 warnings");
}

#[tokio::test]
async fn findings_are_one_document_for_programs() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", "odd: 1\n");
    let ended = binary.run(&["blueprint", "check", "b/blueprint.yaml", "-o", "json"]).await;
    let document: Value = serde_json::from_str(&ended.stdout).expect("the output is JSON");
    let message = "nobody knows the field odd, so it is ignored; correct its name or remove it";
    let finding =
        json!({"file": "b/blueprint.yaml", "line": 1, "column": 1, "severity": "warning", "message": message});
    assert_eq!((ended.code, document), (Some(0), json!({"errors": 0, "warnings": 1, "findings": [finding]})));
}

#[tokio::test]
async fn a_path_without_a_blueprint_is_bad_usage() {
    let binary = crate::binary().await;
    write(&binary, "m/objects.yaml", "kind: ConfigMap\n");
    for (path, message) in [("m", "neither a blueprint.yaml nor an Installation"), ("nowhere", "does not exist")] {
        let ended = binary.run(&["blueprint", "check", path]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(message), "{}", ended.stderr);
    }
}

const GO_ENGINES: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: landscaper.gardener.cloud/v1alpha1
  kind: Installation
  metadata: {name: x}
  spec:
    imports:
      data: [{name: host, dataRef: host}]
    importDataMappings:
      all: {a: (( host )), b: [(( nosuch(host) ))]}
    blueprint:
      inline:
        filesystem:
          lib.tpl: |
            {{ .imports.none }}{{ end
          blueprint.yaml: |
            imports: [{name: all, schema: {}}]
            deployExecutions:
            - name: go
              type: GoTemplate
              template: |
                deployItems:
                - name: {{ nosuch .imports.all }}
            - name: lib
              type: GoTemplate
              template: |
                {{ include \"lib.tpl\" . }}{{ .imports.none }}
            - name: spiff
              type: Spiff
              template:
                deployItems: (( 1 + ))
";

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn the_engines_in_go_look_at_their_templates_and_at_data_mappings() {
    let binary = crate::binary().await;
    write(&binary, "m/list.yaml", GO_ENGINES);
    let ended = binary.run(&["blueprint", "check", "m"]).await;
    let expected = "\
m/list.yaml:11:7: error: importDataMappings \"all\" (Spiff): b[0]: unknown function 'nosuch'; correct its name; a lambda of the template is called as .nosuch(…)
m/list.yaml:17:13: error: unclosed action started at execution:1; correct the template
m/list.yaml:24:28: error: function \"nosuch\" not defined; correct its name; there are the functions of text/template, of sprig, and of Landscaper
m/list.yaml:28:45: warning: the blueprint has no import \"none\", so `imports.none` never has a value; correct the name, or add it to the imports; known are: all
m/list.yaml:29:15: error: deployExecutions \"spiff\" (Spiff): deployItems: (( 1 + )): parse error near symbol 5 - symbol 6: ' '; correct the template
1 blueprint checked: 4 errors, 1 warning
";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), expected), "{}", ended.stderr);
}

#[tokio::test]
async fn unknown_filters_and_tests_of_jinja_are_found() {
    let binary = crate::binary().await;
    let blueprint = "deployExecutions:\n- {name: d, type: Jinja, file: d.yaml}\n";
    write(&binary, "b/blueprint.yaml", blueprint);
    write(&binary, "b/d.yaml", "a: {{ cd | toyalm }}\n{% if cd is loud %}{% endif %}\n");
    let ended = binary.run(&["blueprint", "check", "b"]).await;
    let expected = "\
b/d.yaml:1:12: error: filter toyalm is unknown; correct its name; there are those of Jinja, and toyaml, fromjson, b64encode, b64decode, quote, squote, nindent
b/d.yaml:2:13: error: test loud is unknown; correct its name; there are those of Jinja
1 blueprint checked: 2 errors, 0 warnings
";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), expected), "{}", ended.stderr);
}
