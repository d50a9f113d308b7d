//! What stock clients send and read: bodies in protobuf, writes that leave out what the server filled in, forms of answers.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::scaffold::*;

async fn ask(router: &Router, method: Method, path: &str, media: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", media).body(Body::from(body));
    let response = router.clone().oneshot(request.unwrap()).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn send(router: &Router, method: Method, path: &str, media: &str, body: &Value) -> Value {
    let (status, answer) = ask(router, method, path, media, body.to_string().into_bytes()).await;
    assert!(status.is_success(), "{path}: {answer}");
    answer
}

/// What two answers have in common: all but who wrote when.
fn content(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| {
        !matches!(field.as_str(), "managedFields" | "resourceVersion" | "uid" | "creationTimestamp")
    });
    object
}

const JSON: &str = "application/json";

#[tokio::test]
async fn a_definition_in_protobuf_is_served() {
    let (server, _client) = serve().await;
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let names = [field(1, b"things"), field(4, b"Thing")].concat();
    let schema = field(1, &field(5, b"object"));
    let version = [field(1, b"v1"), vec![2 << 3, 1, 3 << 3, 1], field(4, &schema)].concat();
    let spec = [field(1, b"example.com"), field(3, &names), field(4, b"Namespaced"), field(7, &version)].concat();
    let raw = [field(1, &field(1, b"things.example.com")), field(2, &spec)].concat();
    let meta = [field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")].concat();
    let body = [b"k8s\0".to_vec(), field(1, &meta), field(2, &raw)].concat();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let media = "application/vnd.kubernetes.protobuf";
    let (status, answer) = ask(&server.router(), Method::POST, path, media, body).await;
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    assert_eq!((status, &answer["spec"]["names"]), (StatusCode::CREATED, &names));
    let list = send(&server.router(), Method::GET, "/apis/example.com/v1/things", JSON, &Value::Null).await;
    assert_eq!(list["kind"], json!("ThingList"));
    server.stop().await;
}

/// Answers are in JSON alone: a client that would rather have protobuf gets JSON, as of a custom kind of a real server, and one
/// that takes nothing else is refused before anything is written.
#[tokio::test]
async fn a_client_that_takes_protobuf_alone_is_refused_and_changes_nothing() {
    let (server, _client) = serve().await;
    let router = server.router();
    let all = "/api/v1/namespaces/default/configmaps";
    let one = format!("{all}/a");
    let body =
        |data: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": data}});
    let ask = async |method: &Method, path: &str, accept: &str, body: &Value| {
        let media = if *method == Method::PATCH { "application/merge-patch+json" } else { JSON };
        let request =
            Request::builder().method(method).uri(path).header("content-type", media).header("accept", accept);
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let media = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!(media, JSON, "{method} {path}");
        let status = response.status().as_u16();
        let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice::<Value>(&text).unwrap())
    };
    let nothing = Value::Null;
    let requests = [
        (Method::POST, all, body("1"), 201),
        (Method::GET, &one, nothing.clone(), 200),
        (Method::GET, all, nothing.clone(), 200),
        (Method::PUT, &one, body("2"), 200),
        (Method::PATCH, &one, json!({"data": {"k": "3"}}), 200),
        (Method::DELETE, &one, nothing.clone(), 200),
        (Method::DELETE, all, nothing.clone(), 200),
    ];
    let protobuf = "application/vnd.kubernetes.protobuf";
    let why = "only the following media types are accepted: application/json";
    for (method, path, body, expected) in &requests {
        let before = ask(&Method::GET, all, JSON, &nothing).await;
        let (status, refused) = ask(method, path, protobuf, body).await;
        assert_eq!((status, &refused["reason"]), (406, &json!("NotAcceptable")), "{method} {path}: {refused}");
        assert!(refused["message"].as_str().unwrap().starts_with(why), "{refused}");
        assert_eq!(ask(&Method::GET, all, JSON, &nothing).await, before, "{method} {path}");
        // What client-go sends where it is told of protobuf.
        assert_eq!(ask(method, path, &format!("{protobuf}, */*"), body).await.0, *expected, "{method} {path}");
    }
    let watch = format!("{all}?watch=true&timeoutSeconds=1");
    assert_eq!(ask(&Method::GET, &watch, &format!("{protobuf};stream=watch"), &nothing).await.0, 406);
    server.stop().await;
}

#[tokio::test]
async fn a_watch_may_be_asked_for_any_time() {
    let (server, _client) = serve().await;
    for seconds in [u64::MAX.to_string(), i64::MAX.to_string(), "0".to_owned(), "-1".to_owned(), "x".to_owned()] {
        let watch = format!("/api/v1/namespaces?watch=true&timeoutSeconds={seconds}");
        let asked = Request::builder().uri(&watch).body(Body::empty()).unwrap();
        assert_eq!(server.router().oneshot(asked).await.unwrap().status(), StatusCode::OK, "{seconds}");
    }
    server.stop().await;
}

#[tokio::test]
async fn every_way_of_writing_fills_in_the_same() {
    let (server, _client) = serve().await;
    let router = server.router();
    let labels = json!({"app": "w"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}]}});
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod}});
    let all = "/apis/apps/v1/namespaces/default/deployments";
    let one = format!("{all}/w");
    let created = content(send(&router, Method::POST, all, JSON, &body).await);
    assert_eq!(created["spec"]["replicas"], json!(1));
    let put = content(send(&router, Method::PUT, &one, JSON, &body).await);
    assert_eq!(put, created);
    for (media, patch) in [
        ("application/merge-patch+json", json!({"spec": {"replicas": null, "strategy": null}})),
        ("application/strategic-merge-patch+json", json!({"spec": {"template": {"spec": {"dnsPolicy": null}}}})),
        (
            "application/json-patch+json",
            json!([{"op": "remove", "path": "/spec/template/spec/containers/0/terminationMessagePath"}]),
        ),
    ] {
        let patched = content(send(&router, Method::PATCH, &one, media, &patch).await);
        assert_eq!(patched, created, "{media}");
    }
    let path = format!("{all}/applied?fieldManager=m");
    let mut applied = body.clone();
    applied["metadata"]["name"] = json!("applied");
    let mut applied = content(send(&router, Method::PATCH, &path, "application/apply-patch+yaml", &applied).await);
    applied["metadata"]["name"] = json!("w");
    assert_eq!(applied, created);
    server.stop().await;
}

#[tokio::test]
async fn a_put_keeps_what_the_server_chose() {
    let (server, _client) = serve().await;
    let router = server.router();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let all = "/api/v1/namespaces/default/services";
    let created = content(send(&router, Method::POST, all, JSON, &service).await);
    assert_eq!(created["spec"]["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30000}]));
    let put = content(send(&router, Method::PUT, &format!("{all}/s"), JSON, &service).await);
    assert_eq!(put, created);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}});
    let all = "/api/v1/namespaces/default/secrets";
    let created = content(send(&router, Method::POST, all, JSON, &secret).await);
    let put = content(send(&router, Method::PUT, &format!("{all}/s"), JSON, &secret).await);
    assert_eq!((&put, &put["type"]), (&created, &json!("Opaque")));
    server.stop().await;
}

#[tokio::test]
async fn metadata_goes_along_with_the_status_of_a_built_in_kind() {
    let (server, client) = serve().await;
    namespace(&client, "n").await;
    let path = "/api/v1/namespaces/n/status";
    let patch = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"finalizers": []},
        "status": {"conditions": [{"type": "T", "status": "True"}]}});
    let answer = send(&server.router(), Method::PATCH, path, "application/merge-patch+json", &patch).await;
    assert_eq!(
        (&answer["metadata"]["annotations"], &answer["spec"]),
        (&json!({"a": "b"}), &json!({"finalizers": ["kubernetes"]}))
    );
    let apply = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "annotations": {"c": "d"}}});
    let path = format!("{path}?fieldManager=m");
    let answer = send(&server.router(), Method::PATCH, &path, "application/apply-patch+yaml", &apply).await;
    assert_eq!(answer["metadata"]["annotations"], json!({"a": "b", "c": "d"}));
    server.stop().await;
}

#[tokio::test]
async fn a_table_of_events_says_when_they_were_seen_last() {
    let (server, client) = serve().await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "eventTime": "2027-01-15T07:59:00.000000Z", "reportingController": "c", "reportingInstance": "i", "action": "A",
        "reason": "R", "type": "Normal", "note": "n", "regarding": {"kind": "Pod", "name": "p"}});
    create(&dynamic(&client, "events.k8s.io", "v1", "Event", Some("default")), event).await.unwrap();
    let request = Request::get("/api/v1/namespaces/default/events")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let response = server.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let table: Value = serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap();
    let titles = table["columnDefinitions"].as_array().unwrap().iter().filter(|column| column["priority"] == 0);
    let titles: Vec<&str> = titles.map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Last Seen", "Type", "Reason", "Object", "Message"]);
    let cells = json!(["60s", "Normal", "R", "pod/p", "", "c", "n", "60s", "1", "e"]);
    assert_eq!(table["rows"][0]["cells"], cells);
    server.stop().await;
}

#[tokio::test]
async fn a_review_has_no_table() {
    let (server, _client) = serve().await;
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}});
    let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Body::from(review.to_string()));
    let response = server.router().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_ACCEPTABLE);
    server.stop().await;
}

#[tokio::test]
async fn every_cluster_has_the_service_kubernetes() {
    let (server, client) = serve().await;
    let service = dynamic(&client, "", "v1", "Service", Some("default")).get("kubernetes").await.unwrap();
    assert_eq!(service.data["spec"]["clusterIP"], json!("10.96.0.1"));
    server.stop().await;
}

/// The refusal of a request, with its code.
async fn refused(router: &Router, method: Method, path: &str, media: &str, body: &str) -> (StatusCode, String) {
    let (status, answer) = ask(router, method, path, media, body.as_bytes().to_vec()).await;
    (status, answer["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_strict_write_tells_of_fields_that_are_unknown_or_there_twice() {
    let (server, _client) = serve_things().await;
    let router = server.router();
    let body = r#"{"metadata": {"name": "c"}, "data": {"a": "1", "a": "2"}, "other": 1}"#;
    let path = "/api/v1/namespaces/ns/configmaps";
    let told = refused(&router, Method::POST, &format!("{path}?fieldValidation=Strict"), JSON, body).await;
    let message = "strict decoding error: unknown field \"other\", duplicate field \"data.a\"";
    assert_eq!(told, (StatusCode::BAD_REQUEST, message.to_owned()));
    let (status, answer) = ask(&router, Method::POST, path, JSON, body.as_bytes().to_vec()).await;
    assert_eq!((status, &answer["data"]), (StatusCode::CREATED, &json!({"a": "2"})));
    let thing = "\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec:\n  size: 1\n  size: 2\n";
    let path = "/apis/example.com/v1/namespaces/ns/things/t?fieldManager=m&fieldValidation=Strict";
    let apply = "application/apply-patch+yaml";
    let told = refused(&router, Method::PATCH, path, apply, thing).await;
    let message = "error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"size\" already set in map";
    assert_eq!(told, (StatusCode::BAD_REQUEST, message.to_owned()));
    let thing = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, other: 1}, spec: {size: 1, other: 1}}";
    let (status, message) = refused(&router, Method::PATCH, path, apply, thing).await;
    let fields =
        "errors:\n  .metadata.other: field not declared in schema\n  .spec.other: field not declared in schema";
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(message.ends_with(fields), "{message}");
    server.stop().await;
}

#[tokio::test]
async fn defaults_of_a_definition_are_read_where_they_are_newer_than_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = serve_folder(folder.path()).await;
    create(&definitions(&client), definition()).await.unwrap();
    create(&things(&client, "default"), thing("t", json!({"size": 3}))).await.unwrap();
    let patch = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/fresh",
        "value": {"type": "string", "default": "x"}}]);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    send(&server.router(), Method::PATCH, path, "application/json-patch+json", &patch).await;
    let whole = json!({"size": 3, "mode": "a", "fresh": "x"});
    let list = "/apis/example.com/v1/things";
    let read = send(&server.router(), Method::GET, list, JSON, &Value::Null).await;
    assert_eq!(read["items"][0]["spec"], whole);
    server.stop().await;
    let (server, _client) = serve_folder(folder.path()).await;
    let read = send(&server.router(), Method::GET, list, JSON, &Value::Null).await;
    assert_eq!(read["items"][0]["spec"], whole, "after a restart as well");
    server.stop().await;
}

#[tokio::test]
async fn the_finalizers_of_a_namespace_are_its_own_to_set() {
    let (server, client) = serve().await;
    namespace(&client, "n").await;
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"},
        "spec": {"finalizers": ["kubernetes", "example.com/wait"]}});
    let path = "/api/v1/namespaces/n/finalize";
    let answer = send(&server.router(), Method::PUT, path, JSON, &body).await;
    assert_eq!(answer["spec"], body["spec"]);
    let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let answer = send(&server.router(), Method::PUT, "/api/v1/namespaces/n", JSON, &plain).await;
    assert_eq!((&answer["spec"], &answer["status"]), (&body["spec"], &json!({"phase": "Active"})));
    server.stop().await;
}

#[tokio::test]
async fn openapi_2_has_the_definitions_of_all_kinds() {
    let (server, _client) = serve_things().await;
    let document = send(&server.router(), Method::GET, "/openapi/v2", JSON, &Value::Null).await;
    let kind = |name: &str| document["definitions"][name]["x-kubernetes-group-version-kind"][0]["kind"].clone();
    assert_eq!((kind("com.example.v1.Thing"), kind("io.k8s.api.core.v1.Pod")), (json!("Thing"), json!("Pod")));
    let thing = &document["definitions"]["com.example.v1.Thing"]["properties"];
    assert_eq!(thing["spec"]["properties"]["size"], json!({"type": "integer", "minimum": 1}));
    let definitions = document["definitions"].as_object().unwrap();
    let text = document.to_string();
    for part in text.split("\"#/definitions/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(definitions.contains_key(name), "{name} is referred to and not there");
    }
    server.stop().await;
}

#[tokio::test]
async fn openapi_2_in_protobuf_bears_the_media_type_that_clients_can_read() {
    let (server, _client) = serve_things().await;
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let request = Request::get("/openapi/v2").header("accept", accept).body(Body::empty()).unwrap();
    let response = server.router().oneshot(request).await.unwrap();
    let media = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert_eq!(media, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    let kind = b"[{\"group\":\"example.com\",\"kind\":\"Thing\",\"version\":\"v1\"}]";
    assert!(body.windows(kind.len()).any(|window| window == kind));
    server.stop().await;
}

#[tokio::test]
async fn objects_of_a_custom_kind_are_selected_by_the_fields_that_its_definition_offers() {
    let (server, client) = serve().await;
    let mut offering = definition();
    offering["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.size"}]);
    create(&definitions(&client), offering).await.unwrap();
    let all = things(&client, "default");
    for (name, size) in [("a", 1), ("b", 2)] {
        create(&all, thing(name, json!({"size": size}))).await.unwrap();
    }
    let named = |list: kube::api::ObjectList<kube::api::DynamicObject>| {
        list.items.into_iter().map(|thing| thing.metadata.name.unwrap()).collect::<Vec<_>>()
    };
    let by = |fields: &str| kube::api::ListParams::default().fields(fields);
    assert_eq!(named(all.list(&by("spec.size=2")).await.unwrap()), ["b"]);
    let refused = refusal(all.list(&by("spec.mode=a")).await);
    assert_eq!(refused, (400, "field label not supported: spec.mode".to_owned()));
    server.stop().await;
}
