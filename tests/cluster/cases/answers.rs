//! Objects of all built-in kinds, written in every way: whole answers.
//!
//! `answers/kinds.jsonl` has a line for each object: where it is created, the object, what a kube-apiserver answers to its
//! creation, and for every other way of writing the members of the answer that differ from that, or code and reason of the
//! refusal. `tests/kube/answers.sh` writes the answers.

mod documents;

use std::{collections::BTreeMap, env, fs, path::Path};

use http::Method;
use orangery_tests::world::Ground;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a real server's controllers hold objects back with.
const HELD: [&str; 3] = ["CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim"];
/// Kinds of whose status a controller of a real server writes something at once.
const TOLD: [&str; 4] = ["APIService", "CustomResourceDefinition", "FlowSchema", "PersistentVolume"];

/// Kinds of which one object is not gone at once when it is deleted.
const GOES_LATER: [&str; 2] = ["CustomResourceDefinition", "Namespace"];
/// How often a write is tried that a controller of a real server overtakes.
const ATTEMPTS: usize = 20;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Case {
    #[serde(default)]
    answer: Map<String, Value>,
    object: Value,
    path: String,
    #[serde(default)]
    refused: BTreeMap<String, Refusal>,
    #[serde(default)]
    then: BTreeMap<String, Map<String, Value>>,
}

/// How a server refuses a write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Refusal {
    code: u16,
    reason: String,
}

/// The object, without what is another one every time.
type Answer = Result<Map<String, Value>, Refusal>;

/// What a server answers to every way of writing.
type Answers = BTreeMap<String, Answer>;

const CREATED: &str = "create";

impl Case {
    fn expected(&self) -> Answers {
        let whole = |changes: &Map<String, Value>| self.answer.clone().into_iter().chain(changes.clone()).collect();
        let then = self.then.iter().map(|(way, changes)| (way.clone(), Ok(whole(changes))));
        let refused = self.refused.iter().map(|(way, refusal)| (way.clone(), Err(refusal.clone())));
        let created = (CREATED.to_owned(), Ok(self.answer.clone()));
        then.chain(refused).chain([created]).collect()
    }

    /// The same object with what a server answers now.
    fn with(&self, mut answers: Answers) -> Self {
        let answer = answers.remove(CREATED).expect("an answer").expect("it is created");
        let (mut then, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for (way, found) in answers {
            match found {
                Ok(found) => {
                    assert!(answer.keys().all(|member| found.contains_key(member)), "{way} takes a member away");
                    let differs = |(member, value): &(String, Value)| answer.get(member) != Some(value);
                    then.insert(way, found.into_iter().filter(differs).collect());
                }
                Err(refusal) => {
                    refused.insert(way, refusal);
                }
            }
        }
        Self { answer, object: self.object.clone(), path: self.path.clone(), refused, then }
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
        for condition in answer.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            assert!(condition["lastUpdateTime"].is_string(), "{condition}");
            condition["lastUpdateTime"] = json!("now");
        }
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

fn answer(found: kube::Result<Value>) -> Answer {
    match found.map(lasting) {
        Ok(Value::Object(found)) => Ok(found),
        Ok(other) => panic!("{other} is no object"),
        Err(kube::Error::Api(status)) => Err(Refusal { code: status.code, reason: status.reason.clone() }),
        Err(error) => panic!("{error}"),
    }
}

/// Writes one object in all ways.
async fn play(client: &kube::Client, case: &Case) -> Answers {
    const JSON: &str = "application/json";
    const MERGE: &str = "application/merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    let (kind, name) = (case.object["kind"].as_str().expect("a kind"), case.object["metadata"]["name"].as_str());
    let one = format!("{}/{}", case.path, name.expect("a name"));
    let (applied, status) = (format!("{one}?fieldManager=applier&force=true"), format!("{one}/status"));
    let mark = |value: &str| json!({"metadata": {"annotations": {"w": value}}});
    let added = json!([{"op": "add", "path": "/metadata/annotations/w", "value": "z"}]);
    let condition = json!({"type": "Answered", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut answered = mark("s");
    answered["status"] =
        json!({"conditions": [condition], "observedGeneration": 1, "phase": "Answered", "replicas": 1});

    let mut answers = Answers::new();
    let mut take = |way: &str, found| drop(answers.insert(way.to_owned(), answer(found)));
    take(CREATED, send(client, (Method::POST, &case.path), JSON, &case.object).await);
    let mut whole = case.object.clone();
    for attempt in 1.. {
        let read = send(client, (Method::GET, &one), JSON, &Value::Null).await;
        whole["metadata"]["resourceVersion"] =
            read.map(|object| object["metadata"]["resourceVersion"].clone()).unwrap_or_default();
        let found = send(client, (Method::PUT, &one), JSON, &whole).await;
        let is_overtaken = matches!(&found, Err(kube::Error::Api(status)) if status.reason == "Conflict");
        if !is_overtaken || !TOLD.contains(&kind) || attempt == ATTEMPTS {
            take("put", found);
            break;
        }
    }
    for (way, path, media, body) in [
        ("merge", &one, MERGE, &mark("x")),
        ("strategic", &one, "application/strategic-merge-patch+json", &mark("y")),
        ("json", &one, "application/json-patch+json", &added),
        ("apply", &applied, APPLY, &case.object),
        ("status", &status, MERGE, &answered),
    ] {
        take(way, send(client, (Method::PATCH, path), media, body).await);
    }
    let delete = async || {
        let _gone = send(client, (Method::DELETE, &format!("{one}?gracePeriodSeconds=0")), JSON, &Value::Null).await;
        let free = json!({"metadata": {"finalizers": null}});
        let _free = send(client, (Method::PATCH, &one), MERGE, &free).await;
    };
    delete().await;
    if !GOES_LATER.contains(&kind) {
        take("applynew", send(client, (Method::PATCH, &applied), APPLY, &case.object).await);
        delete().await;
    }
    answers
}

/// Where a server answers otherwise than the file says.
fn differences(case: &Case, found: &Answers) -> Vec<String> {
    let (expected, kind) = (case.expected(), &case.object["kind"]);
    let ways = expected.keys().chain(found.keys().filter(|way| !expected.contains_key(*way)));
    let others = ways.filter(|way| expected.get(*way) != found.get(*way));
    let told = |answer: Option<&Answer>| match answer {
        Some(Ok(object)) => Value::Object(object.clone()).to_string(),
        Some(Err(refusal)) => format!("{refusal:?}"),
        None => "nothing".to_owned(),
    };
    others
        .map(|way| {
            format!("{kind} {way}:\n  expected {}\n  found    {}", told(expected.get(way)), told(found.get(way)))
        })
        .collect()
}

#[tokio::test]
async fn objects_of_all_built_in_kinds_are_answered_as_by_a_real_server_whichever_way_they_are_written() {
    let cluster = crate::cluster().await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/cases/answers/kinds.jsonl");
    let lines = fs::read_to_string(&file).expect("the answers can be read");
    let (mut told, mut written) = (Vec::new(), String::new());
    let is_update = env::var_os("UPDATE").is_some() && matches!(crate::ground(), Ground::Kube(_));
    for line in lines.lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let found = play(cluster.client(), &case).await;
        if is_update {
            written += &format!("{}\n", serde_json::to_string(&case.with(found)).expect("JSON"));
        } else {
            told.extend(differences(&case, &found));
        }
    }
    if is_update {
        fs::write(&file, written).expect("the answers can be written");
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
