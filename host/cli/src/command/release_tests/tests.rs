//! What is sent for the tests of a release, and for those that nobody may have meant.

use clap::Parser as _;
use kube::{Client, ResourceExt as _, api::DynamicObject};
use orangery_plugin::TestCase;
use serde_json::{Value, json};

use super::is_left_by_test;
use crate::{
    arguments::{Cli, Command},
    command::{
        Tool,
        tests::{Sent, server},
    },
    terminal::{Appearance, tests::display},
};

fn kinds(api_version: &str) -> Value {
    let resource = |kind: &str, plural: &str, namespaced: bool| json!({"name": plural, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["create", "delete"]});
    let resources = match api_version {
        "v1" => json!([resource("Secret", "secrets", true), resource("Namespace", "namespaces", false)]),
        _ => {
            json!([resource("ClusterRoleBinding", "clusterrolebindings", false), resource("Role", "roles", true)])
        }
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources})
}

/// A cluster that knows some kinds, and has this object wherever one is asked for.
fn cluster(found: Option<Value>) -> (Client, Sent) {
    server(move |line| match line.split([' ', '?']).collect::<Vec<_>>().as_slice() {
        ["GET", "/api/v1", ..] => (200, kinds("v1")),
        ["GET", "/apis/rbac.authorization.k8s.io/v1", ..] => (200, kinds("rbac.authorization.k8s.io/v1")),
        ["GET", ..] => match &found {
            Some(found) => (200, found.clone()),
            None => absent(),
        },
        ["POST", _, ..] => (201, object("v1", "Secret", json!({"name": "top", "namespace": "evil", "uid": "new"}))),
        _ => absent(),
    })
}

fn absent() -> (u16, Value) {
    (404, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}))
}

fn object(api_version: &str, kind: &str, metadata: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

fn case(object: Value) -> TestCase {
    TestCase {
        source: "web/templates/test.yaml".to_owned(),
        object,
        delete_before: true,
        delete_after_success: true,
        delete_after_failure: false,
    }
}

/// What the command says, and what it sends beside questions for kinds.
async fn run((client, sent): (Client, Sent), flags: &[&str], cases: Vec<Value>) -> (String, Vec<String>) {
    let line = [&["orangery", "test", "web"], flags].concat();
    let Command::Tool(Tool::Test(test)) = Cli::try_parse_from(line).unwrap().command else { panic!("no test") };
    let (mut terminal, out, err) = display(Appearance::PLAIN);
    let cases = cases.into_iter().map(case).collect();
    let end = test.run(&client, &"evil".into(), cases, &mut terminal).await;
    let said = match end {
        Ok(_) => out.text() + &err.text(),
        Err(error) => error.to_string(),
    };
    let asks_kinds =
        |line: &String| matches!(line.split(' ').nth(1), Some("/api/v1" | "/apis/rbac.authorization.k8s.io/v1"));
    let sent = sent.lock().unwrap().iter().filter(|line| !asks_kinds(line)).cloned().collect();
    (said, sent)
}

#[tokio::test]
async fn c_74_nothing_is_sent_where_one_test_is_out_of_the_namespace_or_gives_rights() {
    let rights = "rbac.authorization.k8s.io/v1";
    let own = || object("v1", "Secret", json!({"name": "own"}));
    let out = [
        (
            object(rights, "ClusterRoleBinding", json!({"name": "owned-by-evil"})),
            "ClusterRoleBinding owned-by-evil",
            "belongs to no namespace",
        ),
        (
            object("v1", "Secret", json!({"name": "top", "namespace": "good"})),
            "Secret good/top",
            "is outside of the namespace evil",
        ),
        (
            object("v1", "Namespace", json!({"name": "good", "namespace": "evil"})),
            "Namespace good",
            "belongs to no namespace",
        ),
        (object(rights, "Role", json!({"name": "all"})), "Role evil/all", "gives rights"),
    ];
    for (out, place, why) in out {
        let said = format!(
            "the test {place} of web/templates/test.yaml {why}, so no test is run: what a release says would be done with \
             your rights; pass --allow-any-object if you have looked at it and want that"
        );
        assert_eq!(run(cluster(None), &[], vec![own(), out.clone()]).await, (said, Vec::new()));
        let (said, sent) = run(cluster(None), &["--allow-any-object"], vec![out]).await;
        assert!(said.starts_with(&format!("{place}: succeeded")), "{said}");
        assert!(sent.iter().any(|line| line.starts_with("POST ")), "{sent:?}");
    }
}

#[tokio::test]
async fn c_74_a_name_that_is_a_path_is_never_asked_for() {
    let paths = [
        (object("v1", "Secret", json!({"name": "../../good/secrets/top"})), "metadata.name is no name of an object"),
        (object("v1", "Secret", json!({"generateName": "top-"})), "metadata.name is no name of an object"),
        (
            object("v1", "Secret", json!({"name": "top", "namespace": "evil/secrets/x?"})),
            "metadata.namespace is no name of a namespace",
        ),
        (object("../v1", "Secret", json!({"name": "top"})), "apiVersion is no group and version"),
    ];
    for (path, why) in paths {
        let said = format!(
            "the test of web/templates/test.yaml cannot be run: {why}; correct it, and deploy the release again"
        );
        for flags in [&[][..], &["--allow-any-object"]] {
            assert_eq!(run(cluster(None), flags, vec![path.clone()]).await, (said.clone(), Vec::new()));
        }
    }
}

#[tokio::test]
async fn c_74_only_what_a_test_of_the_release_has_left_is_deleted_and_only_what_was_looked_at() {
    let at = "/api/v1/namespaces/evil/secrets/top";
    let found = |annotations: Value| {
        object("v1", "Secret", json!({"name": "top", "namespace": "evil", "uid": "old", "annotations": annotations}))
    };
    let asked = || vec![object("v1", "Secret", json!({"name": "top"}))];
    let kept = "Secret evil/top is there and is no test of release web, so it is not deleted; rename it or the test, or \
                delete it yourself";
    let foreign = [json!({}), json!({"helm.sh/hook": "pre-install"}), json!({"orangery.dev/test-of": "other"})];
    for annotations in foreign {
        let answer = run(cluster(Some(found(annotations))), &[], asked()).await;
        assert_eq!(answer, (kept.to_owned(), vec![format!("GET {at}")]));
    }
    let deletion = |uid: &str| {
        format!("DELETE {at}? {{\"propagationPolicy\":\"Background\",\"preconditions\":{{\"uid\":\"{uid}\"}}}}")
    };
    let left = json!({"helm.sh/hook": "pre-install, test"});
    let (said, sent) = run(cluster(Some(found(left))), &["--service-account", "robot"], asked()).await;
    let created = object("v1", "Secret", json!({"annotations": {"orangery.dev/test-of": "web"}, "name": "top"}));
    let lines = [
        format!("GET {at}"),
        deletion("old"),
        format!("POST /api/v1/namespaces/evil/secrets? {created}"),
        deletion("new"),
    ];
    let as_robot = lines.map(|line| format!("{line} as system:serviceaccount:evil:robot"));
    assert_eq!((said.as_str(), sent.as_slice()), ("Secret evil/top: succeeded\n", as_robot.as_slice()));
}

#[test]
fn c_74_a_test_is_known_by_the_mark_of_the_release_before_what_helm_says() {
    let is_left = |annotations: Value| {
        let object = object("v1", "Pod", json!({"name": "a", "annotations": annotations}));
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        assert_eq!(object.name_any(), "a");
        is_left_by_test(&object, "web")
    };
    assert!(is_left(json!({"orangery.dev/test-of": "web"})));
    assert!(is_left(json!({"helm.sh/hook": "test-success"})));
    assert!(!is_left(json!({"orangery.dev/test-of": "other", "helm.sh/hook": "test"})));
    assert!(!is_left(json!({"helm.sh/hook": "test-failure"})));
}
