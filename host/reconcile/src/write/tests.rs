use std::{collections::VecDeque, sync::Mutex};

use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::{
    apps::v1::ControllerRevision,
    core::v1::{ConfigMap, Pod},
};
use kube::client::Body;
use orangery_core::{error::Failure, step::Halt};

use super::*;

/// A server that answers from a list and writes down what it was asked, as `METHOD path body`.
struct Server {
    answers: Mutex<VecDeque<(u16, Value)>>,
    asked: Mutex<Vec<String>>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = (u16, Value)>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() })
    }

    fn writer<K: Watched>(self: &Arc<Self>) -> Writer<K> {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move {
                let (head, body) = request.into_parts();
                let body = String::from_utf8(body.collect().await?.to_bytes().to_vec()).unwrap();
                let asked = format!("{} {} {body}", head.method, head.uri.path());
                server.asked.lock().unwrap().push(asked.trim_end().to_owned());
                let (status, answer) = server.answers.lock().unwrap().pop_front().unwrap();
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, kube::Error>(Response::builder().status(status).body(answer).unwrap())
            }
        });
        Writer::new(Client::new(service, "default"), Store::new())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn json_of(version: u64, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata":
        {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": version.to_string()}})
}

fn object(version: u64, data: Value) -> ConfigMap {
    serde_json::from_value(json_of(version, &data)).unwrap()
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "as scripted"}))
}

/// What a server says of a webhook that it cannot ask.
fn of_webhook(code: u16) -> (u16, Value) {
    let message =
        "Internal error occurred: failed calling webhook \"a.example.org\": failed to call webhook: connection refused";
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": "InternalError", "message": message}))
}

fn known(writer: &Writer<ConfigMap>) -> Vec<ConfigMap> {
    writer.store().list(None).iter().map(|object| object.as_ref().clone()).collect()
}

const PATH: &str = "/api/v1/namespaces/ns/configmaps/a";

#[tokio::test]
async fn an_update_sends_the_difference_under_the_version_that_was_read_and_is_visible_at_once() {
    let server = Server::new([(200, json_of(2, &json!({"new": "1"})))]);
    let writer = server.writer();
    let answer = writer.update(&object(1, json!({"old": "1"})), &object(1, json!({"new": "1"}))).await.unwrap();
    assert_eq!(*answer, object(2, json!({"new": "1"})));
    assert_eq!(known(&writer), [object(2, json!({"new": "1"}))]);
    let patch = json!({"data": {"new": "1", "old": null}, "metadata": {"resourceVersion": "1"}});
    assert_eq!(server.asked(), [format!("PATCH {PATH} {patch}")]);
}

#[tokio::test]
async fn nothing_is_sent_where_nothing_differs() {
    let server = Server::new([]);
    let same = object(1, json!({"a": "1"}));
    assert_eq!(*server.writer().update(&same, &same).await.unwrap(), same);
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_status_and_the_rest_are_written_apart() {
    let pod = |phase: &str, node: &str| -> Pod {
        serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": "a", "resourceVersion": "1"},
            "spec": {"containers": [], "nodeName": node}, "status": {"phase": phase}}))
        .unwrap()
    };
    let answer = || (200, serde_json::to_value(pod("Running", "n")).unwrap());
    let server = Server::new([answer(), answer()]);
    let writer = server.writer::<Pod>();
    writer.update(&pod("Pending", ""), &pod("Running", "n")).await.unwrap();
    writer.update_status(&pod("Pending", ""), &pod("Running", "n")).await.unwrap();
    let version = json!({"resourceVersion": "1"});
    let [main, status] = [
        json!({"metadata": version, "spec": {"nodeName": "n"}}),
        json!({"metadata": version, "status": {"phase": "Running"}}),
    ];
    let path = "/api/v1/namespaces/ns/pods/a";
    assert_eq!(server.asked(), [format!("PATCH {path} {main}"), format!("PATCH {path}/status {status}")]);
}

#[tokio::test]
async fn after_a_conflict_the_store_knows_the_version_that_was_in_the_way() {
    let server = Server::new([refusal(409, "Conflict"), (200, json_of(7, &json!({"theirs": "1"})))]);
    let writer = server.writer();
    let before = writer.store().upsert(object(1, json!({})));
    let refused = writer.update(&before, &object(1, json!({"mine": "1"}))).await;
    assert!(matches!(refused, Err(WriteError::Conflict { .. })), "{refused:?}");
    assert_eq!(known(&writer), [object(7, json!({"theirs": "1"}))]);
    assert_eq!(server.asked().last(), Some(&format!("GET {PATH}")));
}

#[tokio::test]
async fn a_conflict_that_cannot_be_read_again_is_not_tried_at_once() {
    let server = Server::new([refusal(409, "Conflict"), refusal(500, "InternalError")]);
    let refused = server.writer().update(&object(1, json!({})), &object(1, json!({"mine": "1"}))).await;
    assert!(matches!(refused, Err(WriteError::Unreachable { .. })), "{refused:?}");
}

#[tokio::test]
async fn creating_what_exists_makes_it_known() {
    let server = Server::new([refusal(409, "AlreadyExists"), (200, json_of(3, &json!({})))]);
    let writer = server.writer();
    let refused = writer.create(&object(0, json!({}))).await;
    assert!(matches!(refused, Err(WriteError::AlreadyExists { .. })), "{refused:?}");
    assert_eq!(known(&writer), [object(3, json!({}))]);
}

#[tokio::test]
async fn writing_what_is_gone_forgets_it() {
    let server = Server::new([refusal(404, "NotFound")]);
    let writer = server.writer();
    let before = writer.store().upsert(object(1, json!({})));
    let refused = writer.update(&before, &object(1, json!({"mine": "1"}))).await;
    assert!(matches!(refused, Err(WriteError::NotFound { .. })), "{refused:?}");
    assert_eq!(known(&writer), Vec::<ConfigMap>::new());
}

#[tokio::test]
async fn c_23_a_delete_names_uid_and_version_and_forgets_at_once() {
    let server = Server::new([(200, json!({"kind": "Status", "status": "Success"}))]);
    let writer = server.writer();
    let object = writer.store().upsert(object(1, json!({})));
    writer.delete(&object).await.unwrap();
    assert_eq!(known(&writer), Vec::<ConfigMap>::new());
    let options = json!({"propagationPolicy": "Background", "preconditions": {"uid": "u", "resourceVersion": "1"}});
    let asked = server.asked().pop().unwrap();
    let body: Value = serde_json::from_str(asked.strip_prefix(&format!("DELETE {PATH} ")).unwrap()).unwrap();
    assert_eq!(body, options);
}

#[tokio::test]
async fn a_delete_that_finalizers_hold_back_is_absorbed() {
    let mut held = json_of(2, &json!({}));
    held["metadata"]["finalizers"] = json!(["f"]);
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let server = Server::new([(200, held.clone())]);
    let writer = server.writer();
    let object = writer.store().upsert(object(1, json!({})));
    writer.delete(&object).await.unwrap();
    assert_eq!(known(&writer), [serde_json::from_value::<ConfigMap>(held).unwrap()]);
}

#[tokio::test]
async fn deleting_what_is_gone_or_replaced_is_a_success() {
    let mut other = json_of(9, &json!({}));
    other["metadata"]["uid"] = json!("other");
    for (answers, left) in [
        (vec![refusal(404, "NotFound")], vec![]),
        (vec![refusal(409, "Conflict"), (200, other.clone())], vec![serde_json::from_value(other).unwrap()]),
    ] {
        let server = Server::new(answers);
        let writer = server.writer();
        let object = writer.store().upsert(object(1, json!({})));
        writer.delete(&object).await.unwrap();
        assert_eq!(known(&writer), left);
    }
}

#[tokio::test]
async fn a_delete_that_meets_a_conflict_with_the_object_itself_is_tried_again() {
    let server = Server::new([refusal(409, "Conflict"), (200, json_of(9, &json!({})))]);
    let writer = server.writer();
    let before = writer.store().upsert(object(1, json!({})));
    let refused = writer.delete(&before).await;
    assert!(matches!(refused, Err(WriteError::Conflict { .. })), "{refused:?}");
    assert_eq!(known(&writer), [object(9, json!({}))]);
}

#[tokio::test]
async fn orc_12_orc_15_orc_16_orc_17_only_an_invalid_write_stalls() {
    for (answer, halt) in [
        (refusal(422, "Invalid"), "Stall Invalid ERR_CONFIGURATION_PROBLEM"),
        (refusal(400, "BadRequest"), "Stall Invalid ERR_CONFIGURATION_PROBLEM"),
        (refusal(401, "Unauthorized"), "Retry Forbidden ERR_UNAUTHORIZED"),
        (refusal(403, "Forbidden"), "Retry Forbidden ERR_UNAUTHORIZED"),
        (refusal(404, "NotFound"), "Retry NotFound "),
        (refusal(500, "InternalError"), "Retry APIServerUnreachable "),
        (refusal(599, "Strange"), "Retry APIServerUnreachable "),
        (refusal(429, "TooManyRequests"), "Retry APIServerUnreachable "),
        (of_webhook(500), "Retry WebhookUnreachable ERR_WEBHOOK"),
        (of_webhook(503), "Retry WebhookUnreachable ERR_WEBHOOK"),
        (of_webhook(401), "Retry Forbidden ERR_UNAUTHORIZED"),
        (of_webhook(403), "Retry Forbidden ERR_UNAUTHORIZED"),
    ] {
        let server = Server::new([answer]);
        let error = server.writer::<ConfigMap>().create(&object(0, json!({}))).await.unwrap_err();
        let message = |sort: &str, failure: &Failure| {
            let codes: Vec<String> = failure.codes.iter().map(ToString::to_string).collect();
            format!("{sort} {} {}", failure.reason, codes.join(","))
        };
        let classified = match error.halt("Create") {
            Halt::Wait(wait) => format!("Wait {wait}"),
            Halt::Retry(failure) => message("Retry", &failure),
            Halt::Stall(failure) => message("Stall", &failure),
        };
        assert_eq!(classified, halt);
    }
}

#[test]
fn a_conflict_is_named_so_that_it_stays_silent() {
    let halt = WriteError::Conflict { object: "ConfigMap ns/a".to_owned() }.halt("Update");
    let message = "ConfigMap ns/a has changed since it was read; it is read again";
    assert_eq!(halt, Halt::Retry(Failure::new("Update", CONFLICT, message)));
}

#[tokio::test]
async fn flx_34_what_is_gone_fails_every_write_but_its_delete() {
    let pod = |phase: &str, node: &str| -> Pod {
        serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": "a", "resourceVersion": "1"},
            "spec": {"containers": [], "nodeName": node}, "status": {"phase": phase}}))
        .unwrap()
    };
    let gone = || Server::new([refusal(404, "NotFound")]).writer::<Pod>();
    let (before, after) = (pod("Pending", ""), pod("Running", "n"));
    let answers = [
        gone().update(&before, &after).await.map(drop),
        gone().update_status(&before, &after).await.map(drop),
        gone().delete(&before).await,
    ];
    let message = "Pod ns/a cannot be written because it, its namespace or its kind does not exist: as scripted";
    let failed = || Err(Halt::Retry(Failure::new("Write", "NotFound", message)));
    let answers = answers.map(|answer| answer.map_err(|error| error.halt("Write")));
    assert_eq!(answers, [failed(), failed(), Ok(())]);
}

/// A value of so many levels.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({"f:a": inner}))
}

/// An answer with a value of so many levels beside, and managed fields of so many.
fn deep_json_of(version: u64, levels: usize, managed: usize) -> Value {
    let mut object = json_of(version, &json!({"new": "1"}));
    object["more"] = deep(levels);
    object["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": deep(managed)}]);
    object
}

#[tokio::test]
async fn c_153_answers_are_read_however_deep_their_managed_fields_are() {
    let (gone, there) = ((200, deep_json_of(4, 0, 500)), (200, deep_json_of(5, 0, 500)));
    let server = Server::new([(201, deep_json_of(2, 0, 500)), (200, deep_json_of(3, 0, 500)), gone, there]);
    let writer = server.writer();
    let expected = |version: u64| object(version, json!({"new": "1"}));
    let made = writer.create(&object(1, json!({"new": "1"}))).await.unwrap();
    assert_eq!(*made, expected(2));
    let written = writer.update(&made, &object(2, json!({"new": "2"}))).await.unwrap();
    assert_eq!(*written, expected(3));
    writer.delete(&written).await.unwrap();
    assert_eq!(known(&writer), []);
    let client = writer.client.clone();
    let store = Store::<ConfigMap>::new();
    store.read_again(&client, &Key::new("ns", "a")).await.unwrap();
    assert_eq!(*store.get(&Key::new("ns", "a")).unwrap(), expected(5));
}

#[tokio::test]
async fn c_153_limits_objects_what_could_not_be_read_back_is_not_written() {
    let revision = |levels: usize| -> ControllerRevision {
        let metadata = json!({"namespace": "ns", "name": "a", "resourceVersion": "1"});
        serde_json::from_value(json!({"metadata": metadata, "revision": 1, "data": deep(levels)})).unwrap()
    };
    let answer = || (200, serde_json::to_value(revision(119)).unwrap());
    let server = Server::new([answer(), answer()]);
    let writer = server.writer();
    writer.create(&revision(119)).await.unwrap();
    writer.update(&revision(1), &revision(119)).await.unwrap();
    let why = "ControllerRevision ns/a is not worked on as it is: its values stand 121 levels deep in each other, 120 are allowed; \
               make what stands in it less deep, or delete it";
    assert_eq!(writer.create(&revision(120)).await.unwrap_err().to_string(), why);
    assert_eq!(writer.update(&revision(1), &revision(120)).await.unwrap_err().to_string(), why);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn c_153_an_object_that_has_become_too_deep_can_be_deleted_and_not_written() {
    let conflict = || refusal(409, "Conflict");
    let newest = || (200, deep_json_of(7, 200, 200));
    let server = Server::new([conflict(), newest(), conflict(), newest(), newest(), (200, json!({"kind": "Status"}))]);
    let writer = server.writer();
    let before = writer.store().upsert(object(1, json!({})));
    let refused = writer.update(&before, &object(1, json!({"mine": "1"}))).await.unwrap_err();
    let why = "ConfigMap ns/a is not worked on as it is: its values stand 201 levels deep in each other, 120 are allowed; make what \
               stands in it less deep, or delete it";
    assert_eq!(refused.to_string(), why);
    writer.delete(&before).await.unwrap();
    assert_eq!(known(&writer), []);
    let last = server.asked().last().cloned().unwrap();
    assert!(last.starts_with(&format!("DELETE {PATH}")) && last.contains(r#""resourceVersion":"7""#), "{last}");
}

#[tokio::test]
async fn c_153_an_object_that_has_become_too_deep_and_has_another_owner_is_not_deleted() {
    let mut other = deep_json_of(7, 200, 200);
    other["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "o"}]);
    let server = Server::new([refusal(409, "Conflict"), (200, other.clone()), (200, other)]);
    let writer = server.writer();
    let before = writer.store().upsert(object(1, json!({})));
    let refused = writer.delete(&before).await;
    assert!(matches!(refused, Err(WriteError::Unreadable { .. })), "{refused:?}");
}

/// A Pod with a status, of a version, with an annotation that others write.
fn pod(version: u64, uid: &str, note: &str, status: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "status": {"message": status}, "metadata": {"namespace": "ns", "name": "a", "uid": uid,
        "resourceVersion": version.to_string(), "annotations": {"note": note}}})
}

fn read_pod(document: Value) -> Pod {
    serde_json::from_value(document).unwrap()
}

#[tokio::test]
async fn c_364_a_status_is_written_over_what_somebody_has_changed_meanwhile_beside_it() {
    let newest = pod(7, "u", "theirs", "old");
    let server = Server::new([refusal(409, "Conflict"), (200, newest), (200, pod(8, "u", "theirs", "new"))]);
    let writer = server.writer::<Pod>();
    let (before, after) = (read_pod(pod(1, "u", "ours", "old")), read_pod(pod(1, "u", "ours", "new")));
    let answer = writer.update_status(&before, &after).await.unwrap();
    assert_eq!(*answer, read_pod(pod(8, "u", "theirs", "new")));
    let patch = |version: &str| {
        let body = json!({"metadata": {"resourceVersion": version}, "status": {"message": "new"}});
        format!("PATCH /api/v1/namespaces/ns/pods/a/status {body}")
    };
    assert_eq!(server.asked(), [patch("1"), "GET /api/v1/namespaces/ns/pods/a".to_owned(), patch("7")]);
}

#[tokio::test]
async fn c_364_a_status_that_somebody_else_has_written_and_one_of_another_object_stay() {
    for newest in [pod(7, "u", "ours", "theirs"), pod(7, "other", "ours", "old")] {
        let server = Server::new([refusal(409, "Conflict"), (200, newest)]);
        let writer = server.writer::<Pod>();
        let (before, after) = (read_pod(pod(1, "u", "ours", "old")), read_pod(pod(1, "u", "ours", "new")));
        let refused = writer.update_status(&before, &after).await;
        assert!(matches!(refused, Err(WriteError::Conflict { .. })), "{refused:?}");
        assert_eq!(server.asked().len(), 2);
    }
    // It is done once more, and no more often.
    let newest = || (200, pod(7, "u", "theirs", "old"));
    let server = Server::new([refusal(409, "Conflict"), newest(), refusal(409, "Conflict"), newest()]);
    let writer = server.writer::<Pod>();
    let (before, after) = (read_pod(pod(1, "u", "ours", "old")), read_pod(pod(1, "u", "ours", "new")));
    let refused = writer.update_status(&before, &after).await;
    assert!(matches!(refused, Err(WriteError::Conflict { .. })), "{refused:?}");
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn c_216_a_deferred_change_goes_with_the_next_write_of_the_status_and_not_with_another_one() {
    let pod = |version: u64, status: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "status": status, "metadata":
            {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": version.to_string()}})
    };
    let read = |document: Value| serde_json::from_value::<Pod>(document).unwrap();
    let labelled = |mut pod: Value| {
        pod["metadata"]["labels"] = json!({"a": "b"});
        pod
    };
    let answers = [
        (200, labelled(pod(2, json!({"phase": "old", "reason": "kept"})))),
        (200, labelled(pod(3, json!({"phase": "new", "reason": "kept", "message": "more"})))),
    ];
    let server = Server::new(answers);
    let writer = server.writer::<Pod>();
    writer.store().upsert(read(pod(1, json!({"phase": "old", "reason": "kept"}))));
    let key = Key::new("ns", "a");
    writer.store().defer(&key, |pod: &Pod| {
        let mut status = pod.status.clone().filter(|status| status.phase.as_deref() == Some("old"))?;
        status.phase = Some("new".to_owned());
        Some(Pod { status: Some(status), ..pod.clone() })
    });
    let before = writer.store().get(&key).unwrap();
    let mut after = Pod::clone(&before);
    after.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let before = writer.update(&before, &after).await.unwrap();
    let mut after = Pod::clone(&before);
    after.status.as_mut().unwrap().message = Some("more".to_owned());
    let written = writer.update_status(&before, &after).await.unwrap();
    assert_eq!(*written, read(labelled(pod(3, json!({"phase": "new", "reason": "kept", "message": "more"})))));
    let path = "/api/v1/namespaces/ns/pods/a";
    let label = json!({"metadata": {"labels": {"a": "b"}, "resourceVersion": "1"}});
    let status = json!({"metadata": {"resourceVersion": "2"}, "status": {"message": "more", "phase": "new"}});
    assert_eq!(server.asked(), [format!("PATCH {path} {label}"), format!("PATCH {path}/status {status}")]);
}
