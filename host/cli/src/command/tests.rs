//! The requests that commands send, and what they make of the answers. An API server in process answers as the test
//! says; the suites of `tests/` run the same commands against a real one.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    arguments::{Cli, Command},
    command::Tool,
    command_error::CommandError,
    exit::Exit,
    terminal::{Appearance, tests::display},
};

/// Requests in the order sent: method, path with query, body; of one in the name of another user, that user.
pub(crate) type Sent = Arc<Mutex<Vec<String>>>;

/// A server that answers each request with a status and an object. One line a document in the body is a watch.
pub(crate) fn server(answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static) -> (Client, Sent) {
    let sent = Sent::default();
    let seen = Arc::clone(&sent);
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
        async move {
            let (head, body) = request.into_parts();
            let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
            let line = format!("{} {} {body}", head.method, head.uri).trim_end().to_owned();
            let user = head.headers.get("impersonate-user").map(|user| format!(" as {}", user.to_str().unwrap()));
            seen.lock().unwrap().push(format!("{line}{}", user.unwrap_or_default()));
            let (status, object) = answer(&line);
            Ok::<_, std::convert::Infallible>(
                Response::builder().status(status).body(Body::from(object.to_string().into_bytes())).unwrap(),
            )
        }
    });
    (Client::new(service, "default"), sent)
}

fn refusal(code: u16, message: &str, name: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
        "reason": "x", "details": {"name": name}});
    (code, status)
}

fn installation(version: &str, metadata: Value, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
        "metadata": {"name": "hello", "namespace": "default", "resourceVersion": version},
        "spec": {"blueprint": {}}, "status": status,
    });
    let (Value::Object(fields), Value::Object(more)) = (&mut object["metadata"], metadata) else { unreachable!() };
    fields.extend(more);
    object
}

/// How a command ends, and what it wrote: to stdout, then to stderr.
async fn run(client: &Client, line: &str) -> (Result<Exit, CommandError>, String) {
    use clap::Parser as _;
    let (mut terminal, out, err) = display(Appearance::PLAIN);
    let cli = Cli::try_parse_from(std::iter::once("orangery").chain(line.split(' '))).unwrap();
    let Command::Tool(tool) = cli.command else { panic!("not a tool: {line}") };
    let end = match tool {
        Tool::Inspect(inspect) => inspect.on(client, &mut terminal).await,
        Tool::Reconcile(reconcile) => reconcile.on(client, &mut terminal).await,
        Tool::Interrupt(interrupt) => interrupt.on(client, &mut terminal).await,
        Tool::Suspend(suspend) => suspend.on(client, &mut terminal).await,
        Tool::Resume(resume) => resume.on(client, &mut terminal).await,
        Tool::Uninstall(uninstall) => uninstall.on(client, &mut terminal).await,
        other => panic!("not on a cluster: {other:?}"),
    };
    (end, out.text() + &err.text())
}

const OBJECT: &str = "/apis/landscaper.gardener.cloud/v1alpha1/namespaces/default/installations/hello";

#[tokio::test]
async fn a_request_stands_under_the_version_read_and_is_made_again_after_a_conflict() {
    let versions = Arc::new(Mutex::new(vec!["8", "7"]));
    let (client, sent) = server(move |line| match line.split(' ').next() {
        Some("GET") => (200, installation(versions.lock().unwrap().pop().unwrap(), json!({}), json!({}))),
        _ if line.contains("\"resourceVersion\":\"7\"") => refusal(409, "changed", "hello"),
        _ => (200, installation("9", json!({}), json!({}))),
    });
    let (end, out) = run(&client, "reconcile hello").await;
    assert_eq!((end.unwrap(), out.as_str()), (Exit::Ok, "installation default/hello: reconcile requested\n"));
    let patch = |version: &str| {
        let marks = json!({"landscaper.gardener.cloud/operation": "reconcile", "orangery.dev/trigger": version});
        format!("PATCH {OBJECT}? {}", json!({"metadata": {"resourceVersion": version, "annotations": marks}}))
    };
    let get = format!("GET {OBJECT}");
    assert_eq!(*sent.lock().unwrap(), [get.clone(), patch("7"), get, patch("8")]);
}

#[tokio::test]
async fn ins_18_a_subinstallation_is_not_asked_and_its_parent_is_named() {
    let owner =
        json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation", "name": "up", "uid": "u"}]);
    let (client, sent) = server(move |_| (200, installation("7", json!({"ownerReferences": owner}), json!({}))));
    let (end, _) = run(&client, "reconcile hello").await;
    let error = end.unwrap_err();
    assert_eq!(
        error.to_string(),
        "default/hello is a sub-installation, and jobs begin at roots; reconcile the one above it: orangery reconcile up \
         -n default"
    );
    assert_eq!((error.exit(), sent.lock().unwrap().len()), (Exit::Usage, 1));
}

#[tokio::test]
async fn what_does_not_exist_is_one_sentence() {
    let (client, _) = server(|_| refusal(404, "not found", "hello"));
    for line in ["reconcile hello", "interrupt hello", "suspend hello", "resume hello"] {
        let error = run(&client, line).await.0.unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.exit()),
            (
                "there is no installation hello in namespace default; orangery inspect -A shows all there are",
                Exit::Failed
            )
        );
    }
}

#[tokio::test]
async fn only_a_running_job_is_interrupted() {
    let running = json!({"jobID": "b", "jobIDFinished": "a"});
    let (client, sent) = server(move |_| (200, installation("7", json!({}), running.clone())));
    let (end, out) = run(&client, "interrupt hello").await;
    assert_eq!((end.unwrap(), out.as_str()), (Exit::Ok, "installation default/hello: interrupt requested\n"));
    let mark = json!({"metadata": {"annotations": {"landscaper.gardener.cloud/operation": "interrupt"}}});
    assert_eq!(*sent.lock().unwrap(), [format!("GET {OBJECT}"), format!("PATCH {OBJECT}? {mark}")]);

    let (client, sent) = server(|_| (200, installation("7", json!({}), json!({"jobID": "a", "jobIDFinished": "a"}))));
    let (_, out) = run(&client, "interrupt hello").await;
    assert_eq!(out, "installation default/hello: no job runs, so nothing is interrupted\n");
    assert_eq!(sent.lock().unwrap().len(), 1, "an annotation without a job would hit the next one");
}

#[tokio::test]
async fn c_306_a_root_is_suspended_and_resumed_by_its_annotation_and_not_reconciled_meanwhile() {
    let marked = |value: Value| json!({"metadata": {"annotations": {"orangery.dev/suspend": value}}});
    let ended = json!({"jobID": "a", "jobIDFinished": "a"});
    for (line, metadata, status, says, mark) in [
        ("suspend hello", json!({}), ended.clone(), "suspended", Some(json!("true"))),
        (
            "suspend hello",
            json!({}),
            json!({"jobID": "b", "jobIDFinished": "a"}),
            "suspended; the job that runs goes on, and none begins after it",
            Some(json!("true")),
        ),
        ("suspend hello", marked(json!("true"))["metadata"].clone(), ended.clone(), "it is suspended already", None),
        ("resume hello", json!({}), ended.clone(), "it is not suspended", None),
        ("resume hello", marked(json!("true"))["metadata"].clone(), ended.clone(), "resumed", Some(Value::Null)),
    ] {
        let (client, sent) = server(move |line| match line.starts_with("PATCH") {
            true => (200, installation("8", json!({}), json!({}))),
            false => (200, installation("7", metadata.clone(), status.clone())),
        });
        let (end, out) = run(&client, line).await;
        assert_eq!((end.unwrap(), out), (Exit::Ok, format!("installation default/hello: {says}\n")));
        let patch = mark.map(|value| format!("PATCH {OBJECT}? {}", marked(value)));
        let expected: Vec<String> = [format!("GET {OBJECT}")].into_iter().chain(patch).collect();
        assert_eq!(*sent.lock().unwrap(), expected);
    }
    let suspended = marked(json!("true"))["metadata"].clone();
    let (client, _) = server(move |_| (200, installation("7", suspended.clone(), json!({}))));
    let error = run(&client, "reconcile hello").await.0.unwrap_err();
    let message =
        "installation default/hello is suspended, so no job begins; resume it first: orangery resume hello -n default";
    assert_eq!((error.to_string().as_str(), error.exit()), (message, Exit::Failed));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_takes_too_long_ends_with_3() {
    let (client, _) = server(|line| match line {
        _ if line.starts_with("PATCH") || line == format!("GET {OBJECT}") => {
            (200, installation("7", json!({}), json!({"jobID": "a", "jobIDFinished": "a"})))
        }
        _ => refusal(503, "starting", ""),
    });
    let error = run(&client, "reconcile hello --wait --timeout 5s").await.0.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.exit()),
        (
            "installation default/hello is not final after 5s; it goes on by itself: orangery inspect hello -n default \
             shows where",
            Exit::TimedOut
        )
    );
}

#[tokio::test]
async fn a_wait_that_may_not_watch_ends_at_once() {
    let (client, _) = server(|line| match line {
        _ if line.starts_with("PATCH") || line == format!("GET {OBJECT}") => {
            (200, installation("7", json!({}), json!({})))
        }
        _ => refusal(403, "user x may not list installations", ""),
    });
    let error = run(&client, "reconcile hello --wait").await.0.unwrap_err();
    assert_eq!(error.to_string(), "user x may not list installations; ask for that permission, or choose another user");
}

#[tokio::test]
async fn a_wait_ends_with_the_job_asked_for_and_tells_why_it_failed() {
    let now = "2026-11-21T08:00:00Z";
    let failed = json!({"jobID": "b", "jobIDFinished": "b", "phase": "Failed", "lastHandledTrigger": "7", "lastError": {
        "operation": "Init", "reason": "ImportNotFound", "message": "import x is missing", "lastTransitionTime": now, "lastUpdateTime": now,
    }});
    let (client, _) = server(move |line| {
        let list = |items: Value| {
            (
                200,
                json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "InstallationList", "metadata": {"resourceVersion": "9"}, "items": items}),
            )
        };
        match line {
            _ if line.starts_with("PATCH") || line == format!("GET {OBJECT}") => {
                (200, installation("7", json!({}), json!({"jobID": "a", "jobIDFinished": "a"})))
            }
            _ if line.contains("/installations?") => list(json!([installation("9", json!({}), failed.clone())])),
            _ => list(json!([])),
        }
    });
    let (end, out) = run(&client, "reconcile hello --wait").await;
    assert_eq!(
        (end.unwrap(), out.as_str()),
        (
            Exit::Failed,
            "installation default/hello: Failed
error: installation default/hello failed: import x is missing
  reason: ImportNotFound (in Init)
"
        )
    );
}

#[tokio::test]
async fn long_lists_are_read_page_by_page() {
    let named = |name: &str| {
        let mut object = installation("1", json!({}), json!({}));
        object["metadata"]["name"] = json!(name);
        object
    };
    let (client, _) = server(move |line| {
        let (items, more) = match line {
            _ if !line.contains("/installations?") => (json!([]), ""),
            _ if line.contains("continue=next") => (json!([named("a")]), ""),
            _ => (json!([named("b")]), "next"),
        };
        (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {"continue": more}, "items": items}))
    });
    let (end, out) = run(&client, "inspect -A").await;
    assert_eq!(end.unwrap(), Exit::Ok);
    assert_eq!(
        out,
        "default/a  Installation  Idle  awaits a trigger: orangery reconcile a -n default
default/b  Installation  Idle  awaits a trigger: orangery reconcile b -n default
"
    );
}

#[tokio::test]
async fn an_installation_asked_for_by_name_must_be_there() {
    let (client, _) = server(|_| (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []})));
    let error = run(&client, "inspect hello -n demo").await.0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no installation hello in namespace demo; orangery inspect -A shows all there are"
    );
    let (end, out) = run(&client, "inspect").await;
    assert_eq!((end.unwrap(), out.as_str()), (Exit::Ok, "there are no installations in namespace default\n"));
}

#[tokio::test]
async fn the_output_for_programs_is_one_document() {
    let (client, _) = server(|line| {
        let items =
            if line.contains("/installations?") { json!([installation("1", json!({}), json!({}))]) } else { json!([]) };
        (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    });
    let (_, out) = run(&client, "inspect -o json").await;
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        document,
        json!({
            "apiVersion": "orangery.dev/v1alpha1", "kind": "InstallationTrees", "causes": [],
            "installations": [{
                "kind": "Installation", "namespace": "default", "name": "hello", "title": "hello", "phase": "",
                "standing": "idle", "job": "", "children": [],
                "waitsFor": "awaits a trigger: orangery reconcile hello -n default",
            }],
        })
    );
    let (_, yaml) = run(&client, "inspect -o yaml").await;
    assert_eq!(orangery_core::yaml::decode(&yaml).unwrap(), document);
}

/// Lists of what an operator has left: a guarded Target in each of two namespaces, and in the first one an Installation.
fn left(holder: Value, renews: bool) -> impl Fn(&str) -> (u16, Value) + Send + Sync + 'static {
    let looks = std::sync::atomic::AtomicU32::new(0);
    move |request| {
        let second = if renews && request.contains("/leases?") {
            looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        } else {
            0
        };
        let list = |items: Value| (200, json!({"metadata": {"resourceVersion": "1"}, "items": items}));
        let guarded = |namespace: &str| {
            let labels = json!({"orangery.dev/in-use": "true"});
            let finalizers = json!(["somebody.else/keeps", "orangery.dev/in-use"]);
            json!({"metadata": {"name": "cluster", "namespace": namespace, "resourceVersion": "7", "labels": labels,
                "finalizers": finalizers}})
        };
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "orangery", "namespace": "system"},
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": if renews { 15 } else { 0 },
                "renewTime": format!("2026-11-21T08:00:{second:02}.000000Z"),
            },
        });
        match request {
            _ if request.starts_with("PATCH ") => (200, guarded("team-b")),
            _ if request.contains("/leases?") => list(json!([lease])),
            _ if request.contains("/targets?") => list(json!([guarded("team-a"), guarded("team-b")])),
            _ if request.contains("/installations?") => {
                let metadata = json!({"name": "hello", "namespace": "team-a", "finalizers": ["finalizer.landscaper.gardener.cloud"]});
                list(json!([{"metadata": metadata}]))
            }
            _ if request.contains("/secrets/orangery-seed") => {
                let (code, mut status) = refusal(404, "there is none", "orangery-seed");
                status["reason"] = json!("NotFound");
                (code, status)
            }
            _ => list(json!([])),
        }
    }
}

#[tokio::test]
async fn c_237_guards_go_where_nothing_is_left_that_needs_what_they_keep_and_where_that_is_confirmed() {
    const NEEDED: &str =
        "warning: Target team-a/cluster keeps its guard: Installation team-a/hello is left in its namespace\n";
    let patches = |sent: &Sent| -> Vec<String> {
        sent.lock().unwrap().iter().filter(|line| line.starts_with("PATCH")).cloned().collect()
    };
    let (client, sent) = server(left(json!(""), false));
    let (end, written) = run(&client, "uninstall --release-guards").await;
    assert_eq!(end.unwrap(), Exit::Failed);
    let told = "Target team-b/cluster would have no guard any more\n";
    let unchanged = "nothing was changed; look at these, and say --yes to do it\n";
    assert_eq!(written, format!("{told}{NEEDED}{unchanged}"));
    assert_eq!(patches(&sent), [""; 0]);

    let (end, written) = run(&client, "uninstall --release-guards --yes").await;
    assert_eq!(end.unwrap(), Exit::Failed);
    assert_eq!(written, format!("Target team-b/cluster has no guard any more\n{NEEDED}"));
    let path = "/apis/landscaper.gardener.cloud/v1alpha1/namespaces/team-b/targets/cluster?";
    let body = r#"{"metadata":{"finalizers":["somebody.else/keeps"],"labels":{"orangery.dev/in-use":null},"resourceVersion":"7"}}"#;
    assert_eq!(patches(&sent), [format!("PATCH {path} {body}")]);

    let (end, written) = run(&client, "uninstall --release-guards --in-use --yes").await;
    assert_eq!(end.unwrap(), Exit::Ok);
    let needed = "Target team-a/cluster has no guard any more; Installation team-a/hello may need it to remove what was deployed\n";
    assert_eq!(written, format!("{needed}Target team-b/cluster has no guard any more\n"));
    assert_eq!(patches(&sent).len(), 3);
}

#[tokio::test]
async fn c_237_an_operator_that_runs_keeps_its_guards() {
    let (client, sent) = server(left(json!("pod_1"), true));
    let (end, _) = run(&client, "uninstall --release-guards --in-use --yes").await;
    assert_eq!(
        end.unwrap_err().to_string(),
        "the operator pod_1 holds the Lease system/orangery, renewed last at 2026-11-21T08:00:00Z, and would put guards back; \
         uninstall it first, or name the Lease of your operator by --lease where that one is somebody else's"
    );
    let (end, written) = run(&client, "uninstall --release-guards --in-use --lease orangery/orangery").await;
    assert_eq!(end.unwrap(), Exit::Ok, "{written}");
    // It has ended without giving the Lease back, as where its rights went first.
    let (client, _) = server(left(json!("pod_1"), false));
    let (end, written) = run(&client, "uninstall --release-guards --in-use").await;
    assert_eq!(end.unwrap(), Exit::Ok, "{written}");
    assert!(sent.lock().unwrap().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn c_236_what_would_hang_fails_the_check_and_nothing_is_changed() {
    let (client, sent) = server(left(json!(""), false));
    let (end, written) = run(&client, "uninstall --check").await;
    assert_eq!(end.unwrap(), Exit::Failed);
    for told in [
        "1 × Installation (Installation hello)",
        "Target team-b/cluster would hang",
        "Lease system/orangery would be left",
    ] {
        assert!(written.contains(told), "{written}");
    }
    assert!(sent.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    let (client, _) = server(|request| match request {
        _ if request.contains("/apis/landscaper.gardener.cloud/") => refusal(404, "the server could not find it", ""),
        _ => (200, json!({"metadata": {}, "items": []})),
    });
    let (end, written) = run(&client, "uninstall --check").await;
    assert_eq!((end.unwrap(), written.as_str()), (Exit::Ok, "nothing would hang\n"));
}
