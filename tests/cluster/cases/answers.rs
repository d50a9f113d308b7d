//! Objects of all built-in kinds, written in every way: whole answers.
//!
//! `answers/kinds.jsonl` has a line for each object: where it is created, the object, what a kube-apiserver answers to its
//! creation, and for every other way of writing the members of the answer that differ from that. A way that is not there is one
//! that the kube-apiserver refuses.

mod documents;

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What a real server's controllers hold objects back with.
const HELD: [&str; 3] = ["CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim"];
/// Kinds of whose status a controller of a real server writes something at once.
const TOLD: [&str; 4] = ["APIService", "CustomResourceDefinition", "FlowSchema", "PersistentVolume"];

/// A line of the file.
#[derive(Deserialize)]
struct Case {
    path: String,
    object: Value,
    answer: Map<String, Value>,
    then: Map<String, Value>,
}

impl Case {
    fn expected(&self, way: &str) -> Option<Value> {
        let changes = self.then.get(way)?.as_object()?.clone();
        Some(Value::Object(self.answer.clone().into_iter().chain(changes).collect()))
    }
}

async fn send(client: &kube::Client, (method, path): (Method, &str), media: &str, body: &Value) -> kube::Result<Value> {
    let request = http::Request::builder().method(method).uri(path).header("content-type", media);
    client.request(request.body(body.to_string().into_bytes()).expect("a request")).await
}

/// An answer without what is another one every time: revisions, times, uids, addresses.
fn lasting(mut answer: Value) -> Value {
    let kind = answer["kind"].as_str().unwrap_or_default().to_owned();
    let metadata = answer["metadata"].as_object_mut().expect("an object");
    let uid = metadata.remove("uid").and_then(|uid| uid.as_str().map(str::to_owned)).unwrap_or_default();
    metadata.retain(|field, _| !matches!(field.as_str(), "creationTimestamp" | "managedFields" | "resourceVersion"));
    if HELD.contains(&kind.as_str()) {
        metadata.remove("finalizers");
    }
    if TOLD.contains(&kind.as_str()) {
        answer.as_object_mut().expect("an object").remove("status");
    }
    if kind == "CertificateSigningRequest" {
        let spec = answer["spec"].as_object_mut().expect("a spec");
        let asker = ["username", "groups"].map(|field| spec.remove(field));
        assert!(asker.iter().all(Option::is_some), "it says who asks: {spec:?}");
        spec.retain(|field, _| !matches!(field.as_str(), "uid" | "extra"));
    }
    if kind == "Service" {
        let spec = answer["spec"].as_object_mut().expect("a spec");
        if spec.get("clusterIP").is_some_and(|address| address != "None") {
            spec.insert("clusterIP".to_owned(), json!("IP"));
            spec.insert("clusterIPs".to_owned(), json!(["IP"]));
        }
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.get("nodePort").is_some() {
                port["nodePort"] = json!(1);
            }
        }
    }
    serde_json::from_str(&answer.to_string().replace(&uid, "UID")).expect("JSON")
}

/// Plays all ways of writing one object, and tells where an answer is another one.
async fn play(client: &kube::Client, case: &Case, differences: &mut Vec<String>) {
    const JSON: &str = "application/json";
    const APPLY: &str = "application/apply-patch+yaml";
    let (kind, name) = (case.object["kind"].as_str().expect("a kind"), case.object["metadata"]["name"].as_str());
    let one = format!("{}/{}", case.path, name.expect("a name"));
    let applied = format!("{one}?fieldManager=applier&force=true");
    let mark = |value: &str| json!({"metadata": {"annotations": {"w": value}}});
    let added = json!([{"op": "add", "path": "/metadata/annotations/w", "value": "z"}]);
    let mut compare = |way: &str, expected: Option<Value>, found: kube::Result<Value>| {
        let Some(expected) = expected else { return };
        match found.map(lasting) {
            Ok(found) if found == expected => {}
            Ok(found) => differences.push(format!("{kind} {way}:\n  expected {expected}\n  found    {found}")),
            Err(error) => differences.push(format!("{kind} {way}: {error}")),
        }
    };
    let created = send(client, (Method::POST, &case.path), JSON, &case.object).await;
    compare("create", Some(Value::Object(case.answer.clone())), created);
    let mut whole = case.object.clone();
    let version = send(client, (Method::GET, &one), JSON, &Value::Null).await;
    whole["metadata"]["resourceVersion"] =
        version.map(|object| object["metadata"]["resourceVersion"].clone()).unwrap_or_default();
    for (way, method, path, media, body) in [
        ("put", Method::PUT, &one, JSON, &whole),
        ("merge", Method::PATCH, &one, "application/merge-patch+json", &mark("x")),
        ("strategic", Method::PATCH, &one, "application/strategic-merge-patch+json", &mark("y")),
        ("json", Method::PATCH, &one, "application/json-patch+json", &added),
        ("apply", Method::PATCH, &applied, APPLY, &case.object),
    ] {
        let expected = case.expected(way);
        let found = match (expected.is_some(), kind, way) {
            // What watches its own definition changes it meanwhile.
            (true, "CustomResourceDefinition" | "FlowSchema" | "APIService", "put") => continue,
            (true, _, _) => send(client, (method, path), media, body).await,
            (false, _, _) => continue,
        };
        compare(way, expected, found);
    }
    let delete = async || {
        let _gone = send(client, (Method::DELETE, &format!("{one}?gracePeriodSeconds=0")), JSON, &Value::Null).await;
        let free = json!({"metadata": {"finalizers": null}});
        let _free = send(client, (Method::PATCH, &one), "application/merge-patch+json", &free).await;
    };
    delete().await;
    if let Some(expected) = case.expected("applynew") {
        compare(
            "apply of a new object",
            Some(expected),
            send(client, (Method::PATCH, &applied), APPLY, &case.object).await,
        );
        delete().await;
    }
}

#[tokio::test]
async fn objects_of_all_built_in_kinds_are_answered_as_by_a_real_server_whichever_way_they_are_written() {
    let cluster = crate::cluster().await;
    let cases = include_str!("answers/kinds.jsonl").lines().map(|line| serde_json::from_str(line).expect("a case"));
    let mut differences = Vec::new();
    for case in cases {
        play(cluster.client(), &case, &mut differences).await;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
