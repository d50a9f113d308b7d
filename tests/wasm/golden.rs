//! The golden cases of the built-in components, which run natively in their crates, through the sandbox, as `orangery plugin test`
//! runs them; and cases of hostile guests.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use orangery_cli::authoring::{
    cases::{self, CallLog, CaseKind, CaseReport, Coverage, Expectation},
    loaded::LoadedComponent,
};
use serde_json::{Value, json};

use super::fixtures::{bytes, loaded, loaded_builtin, sandbox};

fn folder_of(plugin: &str, folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(plugin).join(folder)
}

/// Runs the cases of a built-in component. All of them pass.
async fn check(plugin: &str, folder: &str, kind: CaseKind) -> Coverage {
    let component = loaded_builtin(plugin);
    let log = Arc::new(CallLog::default());
    let mut failed = Vec::new();
    for case in cases::folders(&folder_of(plugin, folder)).unwrap() {
        let report = cases::run(&component, &case, kind, Expectation::Holds, &log).await;
        assert_eq!(report.updated, Vec::<String>::new());
        failed.extend(Some(report).filter(|report| !report.problems.is_empty()));
    }
    assert_eq!(failed, []);
    log.coverage(&component.inspection)
}

#[tokio::test]
async fn c_254_the_manifest_deployer_answers_as_it_does_natively() {
    let coverage = check("manifest", "cases", CaseKind::Cases).await;
    assert_eq!(coverage.answered, ["finish", "exports", "afterwards", "status", "invalid"]);
    assert_eq!(coverage.never_answered, ["fail", "continue-with", "again-in", "recover", "later", "denied"]);
}

#[tokio::test]
async fn c_254_the_mock_deployer_answers_as_it_does_natively() {
    let coverage = check("mock", "cases", CaseKind::Cases).await;
    assert_eq!(coverage.answered, ["finish", "fail", "again-in", "exports", "status", "invalid"]);
}

#[tokio::test]
async fn c_254_the_container_deployer_answers_as_it_does_natively() {
    let coverage = check("container", "cases", CaseKind::Cases).await;
    let answered = ["finish", "fail", "continue-with", "again-in", "exports", "status", "invalid", "denied"];
    assert_eq!(coverage.answered, answered);
    assert!(coverage.called.contains(&"uninstall.plan"), "{coverage:?}");
}

#[tokio::test]
async fn c_254_the_jinja_engine_answers_as_it_does_natively() {
    let coverage = check("jinja", "cases", CaseKind::Cases).await;
    assert!(coverage.answered.contains(&"text") && coverage.answered.contains(&"failure"), "{coverage:?}");
}

#[tokio::test]
async fn c_254_the_jinja_engine_checks_as_it_does_natively() {
    let coverage = check("jinja", "checks", CaseKind::Checks).await;
    assert!(coverage.called.contains(&"check.check"), "{coverage:?}");
}

fn item(name: &str, config: Value) -> Value {
    json!({
        "namespace": "default", "name": name, "uid": "u", "itemType": "example.org/guest", "generation": 1,
        "context": "default", "target": "cluster", "job": "j", "config": config, "now": "2026-11-21T02:10:49Z",
        "seed": 7, "timeout": 600_000,
    })
}

/// A case of one folder.
struct OneCase(tempfile::TempDir);

impl OneCase {
    fn new(request: &Value, target: Option<&str>) -> Self {
        let case = Self(tempfile::tempdir().unwrap());
        case.write("request.json", &request.to_string());
        target.into_iter().for_each(|target| case.write("target.yaml", target));
        case
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    async fn run(&self, component: &LoadedComponent, expectation: Expectation) -> (Vec<String>, Vec<String>) {
        let log = Arc::new(CallLog::default());
        let report = cases::run(component, self.0.path(), CaseKind::Cases, expectation, &log).await;
        let CaseReport { name: _, problems, updated } = report;
        (problems, updated)
    }
}

fn guest(name: &str) -> LoadedComponent {
    loaded(&sandbox(), Path::new(name), bytes(name), None)
}

const LIVE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: it\n  namespace: default\ndata:\n  kept: 'yes'\n";

#[tokio::test]
async fn c_254_a_job_is_played_in_a_target_and_its_objects_are_expected() {
    let component = guest("misbehaves");
    let case = OneCase::new(&json!({"item": item("well", json!({"text": "hello"}))}), Some(LIVE));
    let missing = case.run(&component, Expectation::Holds).await.0;
    assert!(
        missing[0].starts_with("there is no response.json") && missing[1].starts_with("after.yaml: /0"),
        "{missing:?}"
    );
    let updated = case.run(&component, Expectation::IsUpdated).await;
    assert_eq!(updated, (vec![], vec!["response.json".to_owned(), "after.yaml".to_owned()]));
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "default"},
        "data": {"kept": "yes", "more": "0", "text": "hello"},
    });
    let after = format!("{object:#}\n");
    assert_eq!(case.read("after.yaml"), after);
    assert_eq!(case.run(&component, Expectation::Holds).await, (vec![], vec![]));
    case.write("after.yaml", &after.replace("hello", "bye"));
    case.write(
        "assertions.yaml",
        "- assert: size(proposals) == 1 && objects[0].data.text == item.config.text\n- {assert: proposal == null, message: no plan}\n",
    );
    let problems = [
        "after.yaml: /0/data/text: expected is \"bye\", answered is \"hello\"",
        "no plan: `proposal == null` does not hold",
    ];
    assert_eq!(case.run(&component, Expectation::Holds).await.0, problems);
}

#[tokio::test]
async fn c_254_what_is_neither_recorded_nor_in_the_target_is_named() {
    let component = guest("misbehaves");
    let case = OneCase::new(&json!({"item": item("well", json!({"text": "hello"}))}), None);
    case.write("assertions.yaml", "- assert: \"fault.invalid.message.contains('has no answer to {\\\"get\\\"')\"\n");
    assert_eq!(case.run(&component, Expectation::Holds).await, (vec![], vec![]));
}

#[tokio::test]
async fn c_254_an_uninstall_is_a_case_where_the_component_exports_it() {
    let request = json!({"call": "uninstall", "item": item("nothing-there", json!({}))});
    let case = OneCase::new(&request, Some(""));
    case.write(
        "response.json",
        r#"{"fault": {"invalid": {"code": "ERR_CONFIGURATION_PROBLEM", "message": "there is nothing to delete"}}}"#,
    );
    assert_eq!(case.run(&guest("misbehaves"), Expectation::Holds).await.0, Vec::<String>::new());
    let problems = case.run(&loaded_builtin("manifest"), Expectation::Holds).await.0;
    assert_eq!(problems, ["the component does not export `uninstall`; leave the case out"]);
}

#[tokio::test]
async fn c_254_a_call_without_an_answer_and_a_job_without_an_end_fail_the_case() {
    let case = OneCase::new(&json!({"item": item("x", json!({}))}), None);
    let problems = case.run(&guest("traps"), Expectation::Holds).await.0;
    assert!(problems[0].starts_with("there is no answer: the component crashed"), "{problems:?}");
    let config = json!({
        "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "phase": "Progressing",
    });
    let case = OneCase::new(&json!({"item": item("x", config)}), Some(""));
    let problems = case.run(&loaded_builtin("mock"), Expectation::IsUpdated).await.0;
    assert_eq!(problems, ["the component still asks to be called again after 32 calls"]);
}

#[tokio::test]
async fn c_254_a_gate_has_cases_as_well() {
    let component = guest("judges");
    let question = json!({"item": "db", "gate": "readyWhen", "config": "not-met", "inputs": {"imports": {}}});
    let case = OneCase::new(&json!({ "question": question }), None);
    assert_eq!(case.run(&component, Expectation::IsUpdated).await, (vec![], vec!["response.json".to_owned()]));
    let answer: Value = serde_json::from_str(&case.read("response.json")).unwrap();
    assert_eq!((&answer["answer"]["verdict"], &answer["answer"]["details"]), (&json!("notMet"), &json!({"level": 3})));
    assert_eq!(case.run(&component, Expectation::Holds).await, (vec![], vec![]));
}

#[tokio::test]
async fn c_253_a_proposal_beyond_the_grants_of_the_registration_fails_the_case() {
    let folder = tempfile::tempdir().unwrap();
    let registration = folder.path().join("plugin.yaml");
    let text = "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {name: mine}\nspec:\n  version: 1.0.0\n  \
                component: {file: mine.wasm}\n  deployer: {itemTypes: [example.org/guest]}\n  grants:\n    clusters: {target: true}\n    \
                reads: [{}]\n";
    fs::write(&registration, text).unwrap();
    let near = loaded(&sandbox(), Path::new("misbehaves"), bytes("misbehaves"), Some(folder.path()));
    assert_eq!(near.types, ["example.org/guest"]);
    let case = OneCase::new(&json!({"item": item("well", json!({"text": "hello"}))}), Some(LIVE));
    let (problems, _) = case.run(&near, Expectation::IsUpdated).await;
    assert!(
        problems[0].starts_with("the host would refuse the proposal: v1 ConfigMap in namespace default"),
        "{problems:?}"
    );
    let component =
        LoadedComponent::in_sandbox(&sandbox(), (Path::new("judges"), bytes("judges")), Some(&registration), &[]);
    let error = component.err().unwrap().to_string();
    assert_eq!(error, "judges exports nothing of a deployer, which its registration claims it is; correct one of them");
}
