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
    for name in ["hello-world", "data-flow", "sub-installations", "dependencies", "own-deployer"] {
        let ended = check(&[&example(name)]).await;
        assert_eq!(ended.code, Some(0), "{name}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.ends_with(" checked: 0 errors, 0 warnings\n"), "{name}: {}", ended.stdout);
        assert_eq!(ended.stdout.lines().count(), 1, "{name}: {}", ended.stdout);
    }
}

#[tokio::test]
async fn an_input_that_nobody_defines_is_found_at_its_place() {
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
    for (path, told) in [("m", "neither a blueprint.yaml nor an Installation"), ("nowhere", "does not exist")] {
        let ended = binary.run(&["blueprint", "check", path]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(told), "{}", ended.stderr);
    }
}
