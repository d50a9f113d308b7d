//! Every message of this room, as a user reads it.

use std::fmt::Display;

use serde_json::json;

use super::*;
use crate::{
    binding::{BindingError, BindingFault},
    sibling::SiblingReference,
};
use orangery_core::{
    dag::DagError,
    duration::InvalidDuration,
    lenient::DecodeError,
    yaml::{YamlError, YamlFault},
};

#[track_caller]
fn check<E: Display>(cases: Vec<(E, &str)>) {
    for (error, message) in cases {
        assert_eq!(error.to_string(), message);
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn form() -> DecodeError {
    DecodeError { path: text("a[0]"), reason: text("expected a list, found a text") }
}

#[test]
fn faults_of_file_systems() {
    check(vec![
        (
            FileSystemError::NoMap,
            "spec.blueprint.inline.filesystem is not a map from file names to contents; write `blueprint.yaml: |` and the content below it",
        ),
        (
            FileSystemError::List { path: text("a/b") },
            "the blueprint file a/b is a list; write its content as text, with `|` after the name",
        ),
        (
            FileSystemError::Typed { path: text("a"), type_: text("json") },
            "the blueprint file a is of type \"json\", but its `value` does not fit; known types are directory, symlink, yaml and json",
        ),
        (FileSystemError::Base64 { path: text("a") }, "the blueprint file a is not base64 between its binary markers"),
    ]);
}

#[test]
fn faults_of_blueprints() {
    let path = || text("blueprint.yaml");
    let field = |fault| BlueprintError::Field { path: path(), field: text("imports[0]"), fault };
    let invalid = "the blueprint file blueprint.yaml is invalid: imports[0] ";
    check(vec![
        (BlueprintError::File { path: path(), field: text("deployExecutions[0].file"), reason: text("no such file") }, text("no such file")),
        (BlueprintError::NotText { path: path() }, text("the blueprint file blueprint.yaml is not UTF-8 text")),
        (
            BlueprintError::Yaml { path: path(), source: YamlError { line: 3, column: 4, reason: YamlFault::KeyIsNull } },
            text("the blueprint file blueprint.yaml is not YAML: line 3, column 4: an empty value cannot be a key; write the key in quotes"),
        ),
        (
            BlueprintError::Form { path: path(), source: form() },
            text("the blueprint file blueprint.yaml has a wrong form: a[0]: expected a list, found a text"),
        ),
        (
            BlueprintError::Kind { path: path(), expected: "Blueprint", found: text("Pod") },
            text("the blueprint file blueprint.yaml has kind \"Pod\"; write kind: Blueprint"),
        ),
        (field(BlueprintFault::Empty), format!("{invalid}is missing; set it")),
        (field(BlueprintFault::Duplicate(text("x"))), format!("{invalid}\"x\" stands twice; give every entry its own name")),
        (
            field(BlueprintFault::OnlyForTargets),
            format!("{invalid}belongs to targets, but the type is data; remove it or set type: target"),
        ),
        (
            field(BlueprintFault::OnlyForData),
            format!("{invalid}belongs to data, but the type is a target's; remove it or set type: data"),
        ),
        (
            field(BlueprintFault::UnknownType { found: text("x"), known: "data, target" }),
            format!("{invalid}\"x\" does not exist; known types are data, target"),
        ),
        (
            field(BlueprintFault::ConditionalOnRequired),
            format!("{invalid}are conditional imports, which an import has only under required: false"),
        ),
        (
            field(BlueprintFault::UnknownPolicy(text("Sometimes"))),
            format!("{invalid}\"Sometimes\" does not exist; write StopTriggering or ContinueIndependent"),
        ),
        (field(BlueprintFault::NoneParallel), format!("{invalid}has to be 1 or more; leave it out for any number")),
        (field(BlueprintFault::FileOrTemplate), format!("{invalid}needs exactly one of `file` and `template`")),
        (
            field(BlueprintFault::FileOrInline),
            format!("{invalid}needs either `file` alone or an installation template written out"),
        ),
        (
            BlueprintError::Subinstallation {
                path: path(),
                field: text("subinstallations[0]"),
                source: Box::new(TemplateError::Blueprint { name: text("sub") }),
            },
            text("the blueprint file blueprint.yaml is invalid: the sub-installation \"sub\" needs exactly one of blueprint.ref and blueprint.filesystem"),
        ),
    ]
    .iter()
    .map(|(error, message)| (error, message.as_str()))
    .collect());
}

#[test]
fn faults_of_installation_templates() {
    let binding = BindingError { path: text("imports.data[0]"), fault: BindingFault::Empty };
    check(vec![
        (TemplateError::Form(form()), "a sub-installation has a wrong form: a[0]: expected a list, found a text"),
        (
            TemplateError::Binding { name: text("sub"), source: binding },
            "the sub-installation \"sub\": imports.data[0]: is empty; set it",
        ),
        (
            TemplateError::Duplicate { name: text("sub") },
            "two sub-installations are named \"sub\"; give every one its own name",
        ),
        (
            TemplateError::SeveralExporters {
                reference: SiblingReference::Target(text("t")),
                exporters: vec![text("a"), text("b")],
            },
            "target t is exported by several sub-installations: a, b; let one of them export it",
        ),
        (
            TemplateError::ExportIsImport { name: text("sub"), reference: SiblingReference::Data(text("d")) },
            "the sub-installation \"sub\" exports data d, which is already an import of the blueprint; rename the export",
        ),
        (
            TemplateError::Unsatisfied {
                name: text("sub"),
                reference: SiblingReference::TargetMap(text("m")),
                known: text("none"),
            },
            "the sub-installation \"sub\" imports target map m, which neither the blueprint imports nor a sibling exports; known are: none",
        ),
        (
            TemplateError::Order(DagError::Cycle { members: vec![text("a"), text("b"), text("a")] }),
            "the sub-installations import from each other: a -> b -> a depend on each other in a circle; remove one of these dependencies",
        ),
    ]);
}

#[test]
fn faults_of_deploy_items() {
    let name = || text("item");
    check(vec![
        (
            ItemError::Timeout { name: name(), source: InvalidDuration { text: text("1d") } },
            "deploy item \"item\": timeout \"1d\" is no length of time; write a number with a unit (ns, us, ms, s, m, h) such as 90s or 1h30m, or none",
        ),
        (
            ItemError::Order(DagError::Duplicate { name: name() }),
            "deploy items: item is defined twice; give every one its own name",
        ),
        (
            ItemError::Target { name: name(), source: ChoiceError::Empty },
            "deploy item \"item\": `target` is empty; set target.import or target.name, or leave target out",
        ),
        (
            ItemError::Target {
                name: name(),
                source: ChoiceError::UnknownImport {
                    import_kind: "target list",
                    import: text("i"),
                    known: text("none"),
                },
            },
            "deploy item \"item\": there is no target list import \"i\"; known are: none",
        ),
    ]);
}

/// Secrets can be imports, and imports can be rendered: what stands in a wrong field must not be shown.
#[test]
fn no_message_shows_a_value() {
    const CANARY: &str = "canary-4711";
    let wrong = json!([CANARY, {"name": CANARY}, 4711]);
    let text = [
        decode_items(&json!({"deployItems": [{"name": "a", "type": wrong, "config": {}}]})).unwrap_err().to_string(),
        decode_items(&json!({"deployItems": CANARY})).unwrap_err().to_string(),
        decode_imports(&json!({"errors": [4711]})).unwrap_err().to_string(),
        decode_exports(&json!({"exports": CANARY})).unwrap_err().to_string(),
        decode_subinstallations(&json!({"subinstallations": [{"name": wrong}]})).unwrap_err().to_string(),
    ];
    for message in text {
        assert!(!message.contains("4711"), "{message}");
    }
}
