use clap::Parser as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    arguments::{Cli, Command},
    command::{
        Tool,
        tests::{Sent, server},
    },
    terminal::{Appearance, tests::display},
};

const API: &str = "/apis/landscaper.gardener.cloud/v1alpha1/namespaces/default";

fn object(kind: &str, name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7",
                     "finalizers": ["finalizer.landscaper.gardener.cloud"]},
    });
    orangery_proposal::overlay::overlay(&mut object, &more);
    object
}

/// An installation `hello` with one item, and an item of somebody else.
fn answers(line: &str) -> (u16, Value) {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
    let deployed = json!([
        {"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "n"}},
        {"policy": "manage", "resource": {"apiVersion": "v1", "kind": "Namespace", "name": "n"}},
    ]);
    let label = |name: &str| json!({"execution.landscaper.gardener.cloud/managed-by": name});
    let item = object(
        "DeployItem",
        "hello-item",
        json!({
            "metadata": {"labels": label("hello"), "ownerReferences": owner("Execution", "hello")},
            "spec": {"type": "t", "target": {"name": "cluster"}}, "status": {"providerStatus": {"managedResources": deployed}},
        }),
    );
    let all = [
        object("Installation", "hello", json!({"spec": {"blueprint": {}}})),
        object(
            "Execution",
            "hello",
            json!({"metadata": {"ownerReferences": owner("Installation", "hello")}, "spec": {}}),
        ),
        item,
        object(
            "DeployItem",
            "other",
            json!({"metadata": {"finalizers": ["finalizer.landscaper.gardener.cloud", "example.org/own"]}, "spec": {"type": "t"}}),
        ),
    ];
    let of = |plural: &str| match plural {
        "installations" => "Installation",
        "executions" => "Execution",
        _ => "DeployItem",
    };
    let path = line.split(' ').nth(1).unwrap().trim_start_matches(API).trim_start_matches('/');
    let mut parts = path.split('?').next().unwrap().split('/');
    let (plural, name) = (parts.next().unwrap(), parts.next());
    let mut found = all.into_iter().filter(|object| object["kind"] == of(plural));
    match name {
        Some(name) => (200, found.find(|object| object["metadata"]["name"] == name).unwrap()),
        None => (200, json!({"metadata": {}, "items": found.collect::<Vec<_>>()})),
    }
}

async fn run(line: &str) -> (Result<Exit, CommandError>, String, Sent) {
    let (client, sent) = server(answers);
    let (mut terminal, out, err) = display(Appearance::PLAIN);
    let cli = Cli::try_parse_from(["orangery", "force-delete"].into_iter().chain(line.split(' '))).unwrap();
    let Command::Tool(Tool::ForceDelete(command)) = cli.command else { panic!("{line}") };
    let end = command.on(&client, &mut terminal).await;
    (end, out.text() + &err.text(), sent)
}

/// The requests that change something, without their bodies.
fn writes(sent: &Sent) -> Vec<String> {
    let sent = sent.lock().unwrap();
    let writes = sent.iter().filter(|line| !line.starts_with("GET"));
    writes.map(|line| line.split(['?', '{']).next().unwrap().trim_end().replace(API, "")).collect()
}

#[tokio::test]
async fn c_378_what_would_be_left_behind_is_told_before_anything_is_changed() {
    let (end, out, sent) = run("hello").await;
    let expected = "\
installation default/hello would be deleted
execution default/hello would be deleted
deployitem default/hello-item would be deleted; left behind (cluster): ConfigMap n/a in the target cluster, Namespace n in the target cluster
nothing was changed; look at these, and say --yes to do it
";
    assert_eq!((end.unwrap(), out.as_str()), (Exit::Ok, expected));
    assert_eq!(writes(&sent), Vec::<String>::new());
}

#[tokio::test]
async fn c_378_a_tree_is_deleted_from_the_top_and_freed_from_the_bottom() {
    let (end, _, sent) = run("hello --yes").await;
    assert_eq!(end.unwrap(), Exit::Ok);
    let expected = [
        "DELETE /installations/hello",
        "DELETE /executions/hello",
        "DELETE /deployitems/hello-item",
        "PATCH /deployitems/hello-item",
        "PATCH /executions/hello",
        "PATCH /installations/hello",
    ];
    assert_eq!(writes(&sent), expected);
    let sent = sent.lock().unwrap();
    let deletes = sent.iter().filter(|line| line.starts_with("DELETE"));
    assert!(
        deletes.clone().count() == 3 && deletes.clone().all(|line| line.contains(r#""uid":"uid-hello"#)),
        "{sent:?}"
    );
    let patch = sent.iter().find(|line| line.starts_with("PATCH")).unwrap();
    assert!(patch.ends_with(r#"{"metadata":{"finalizers":[],"resourceVersion":"7"}}"#), "{patch}");
}

#[tokio::test]
async fn c_378_finalizers_of_others_stay_and_are_told() {
    let (end, out, sent) = run("deployitem/other --yes").await;
    assert_eq!(end.unwrap(), Exit::Failed);
    assert!(out.contains("deployitem default/other is deleted; it has deployed nothing that is known"), "{out}");
    assert!(out.contains("deployitem default/other stays until its finalizers of others go: example.org/own"), "{out}");
    assert_eq!(writes(&sent), ["DELETE /deployitems/other", "PATCH /deployitems/other"]);
}

#[tokio::test]
async fn what_is_not_there_or_no_tree_is_one_sentence() {
    let missing = run("execution/none --yes").await.0.unwrap_err().to_string();
    let expected = "there is no execution none in namespace default; orangery inspect -A shows all there are";
    assert_eq!(missing, expected);
    let used = "target/cluster".parse::<ForcedObject>().unwrap_err().to_string();
    assert!(used.starts_with("only installations, executions and deploy items are deleted by force"), "{used}");
}
