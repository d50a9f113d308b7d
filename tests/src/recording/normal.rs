//! The objects of a moment as they are compared: whole, with stable names for what is made up in a run, with times and messages
//! told by their presence alone, and with packed content unpacked.

use std::io::Read as _;

use data_encoding::BASE64;
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value, json};

use super::names::{Names, is_hashed, is_uuid};

/// The kinds that are compared, parents before what they own.
pub const KINDS: [(&str, &str); 9] = [
    ("landscaper.gardener.cloud/v1alpha1", "Installation"),
    ("landscaper.gardener.cloud/v1alpha1", "Execution"),
    ("landscaper.gardener.cloud/v1alpha1", "DeployItem"),
    ("landscaper.gardener.cloud/v1alpha1", "Context"),
    ("landscaper.gardener.cloud/v1alpha1", "Target"),
    ("landscaper.gardener.cloud/v1alpha1", "DataObject"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("apps/v1", "Deployment"),
];

/// What stands for a time, a message, a kubeconfig, and which build or process a deployer is.
const TIME: &str = "<time>";
const TEXT: &str = "<text>";
const KUBECONFIG: &str = "<kubeconfig>";
const IDENTITY: &str = "<identity>";
/// The Secret of the credentials that an item used, called after their hash.
const CREDENTIALS: &str = "orangery-cluster-<hash>";
/// `{"` in base64.
const BEGIN_OF_JSON: &str = "eyJ";

/// What a server has in every namespace.
const NOT_OF_THE_CASE: &str = "kube-root-ca.crt";
const HASH: &str = "/metadata/annotations/data.landscaper.gardener.cloud~1hash";

/// The objects of one moment, sorted by kind and name; names are those of earlier moments, and get new ones.
pub fn normalised(mut objects: Vec<Value>, names: &mut Names) -> Vec<Value> {
    objects.retain(|object| name(object) != NOT_OF_THE_CASE);
    objects.iter_mut().for_each(unpack);
    objects.sort_by_cached_key(|object| (rank(object), name(object).to_owned()));
    learn_generated(&objects, names);
    objects.sort_by_cached_key(|object| (rank(object), names.stable(name(object))));
    objects.iter().for_each(|object| learn_hashed(object, names));
    for object in &objects {
        names.add(text(object, "/metadata/uid"), &format!("<uid of {}>", title(object, names)));
    }
    objects.iter().for_each(|object| learn_jobs(object, names));
    objects.iter().for_each(|object| learn_uids(object, names));
    let mut objects: Vec<Value> = objects.iter().map(|object| stable(object, names)).collect();
    objects.sort_by_cached_key(|object| (rank(object), name(object).to_owned()));
    objects
}

/// The kind and the stable name of an object.
pub fn title(object: &Value, names: &Names) -> String {
    format!("{} {}", text(object, "/kind"), names.stable(name(object)))
}

fn rank(object: &Value) -> usize {
    let kind = text(object, "/kind");
    KINDS.iter().position(|(_, known)| *known == kind).unwrap_or(KINDS.len())
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Content that is packed in another way by every writer, as what it contains.
fn unpack(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("x-decoded-deployItems");
    }
    if let Some(list) = object.pointer_mut("/spec/deployItemsCompressed")
        && let Some(unpacked) = list.as_str().and_then(|text| unpacked(text.as_bytes()))
    {
        *list = unpacked;
    }
    let is_secret = text(object, "/kind") == "Secret";
    if let Some(data) = object.pointer_mut("/data").and_then(Value::as_object_mut).filter(|_| is_secret) {
        for value in data.values_mut() {
            if let Some(read) = value.as_str().and_then(secret_value) {
                *value = read;
            }
        }
    }
    if let Some(identity) = object.pointer_mut("/status/deployer/identity") {
        *identity = IDENTITY.into();
    }
    let credentials = object.pointer_mut("/status/providerStatus/orangery/credentials").and_then(Value::as_object_mut);
    credentials.into_iter().flat_map(|of| of.values_mut()).for_each(|secret| *secret = CREDENTIALS.into());
    hide_kubeconfigs(object);
    for part in ["/spec", "/status"] {
        object.pointer_mut(part).into_iter().for_each(unpack_base64);
    }
}

/// JSON that a template has packed by `toJson | b64enc`.
fn unpack_base64(value: &mut Value) {
    match value {
        Value::String(text) => {
            let bytes = text.starts_with(BEGIN_OF_JSON).then(|| BASE64.decode(text.as_bytes()).ok()).flatten();
            if let Some(read) = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
                *value = read;
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(unpack_base64),
        Value::Array(entries) => entries.iter_mut().for_each(unpack_base64),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value of a Secret: text, or the release that Helm has packed into it.
fn secret_value(encoded: &str) -> Option<Value> {
    let bytes = BASE64.decode(encoded.as_bytes()).ok()?;
    unpacked(&bytes).or_else(|| String::from_utf8(bytes).ok().map(Value::String))
}

/// The JSON that is packed by gzip and base64.
fn unpacked(encoded: &[u8]) -> Option<Value> {
    let bytes = BASE64.decode(encoded).ok()?;
    let mut text = String::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn hide_kubeconfigs(value: &mut Value) {
    match value {
        Value::String(text) if is_kubeconfig(text) => KUBECONFIG.clone_into(text),
        Value::Object(fields) => fields.values_mut().for_each(hide_kubeconfigs),
        Value::Array(entries) => entries.iter_mut().for_each(hide_kubeconfigs),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_kubeconfig(text: &str) -> bool {
    text.contains("certificate-authority-data") && text.contains("clusters")
}

/// Generated names, in the order of what the objects have that is not made up.
fn learn_generated(objects: &[Value], names: &mut Names) {
    for (_, kind) in KINDS {
        let of_kind = objects.iter().filter(|object| text(object, "/kind") == kind);
        let generated = of_kind.filter(|object| object.pointer("/metadata/generateName").is_some());
        let mut generated: Vec<(String, &str, &str)> = generated
            .map(|object| {
                let content = ["/metadata/labels", "/spec", "/data"].map(|field| object.pointer(field));
                let content = names.stable(&serde_json::to_string(&content).unwrap_or_default());
                (content, name(object), text(object, "/metadata/generateName"))
            })
            .collect();
        generated.sort();
        generated.into_iter().for_each(|(_, name, generate_name)| names.add_generated(name, generate_name));
    }
}

/// A name that is hashed from one that is made up, and the hash of a configuration that has the kubeconfig of the run.
fn learn_hashed(object: &Value, names: &mut Names) {
    if text(object, "/spec/config/kubeconfig") == KUBECONFIG || text(object, "/spec/config") == KUBECONFIG {
        let hash = text(object, HASH);
        if !hash.is_empty() {
            names.add(hash, "<hash of a configuration with a kubeconfig>");
        }
    }
    if object.pointer("/data/proposal").is_some() {
        let owner = names.stable(text(object, "/metadata/ownerReferences/0/name"));
        names.add(name(object), &format!("{owner}-<hash>"));
    }
    if !is_hashed(name(object)) {
        return;
    }
    let label = |label: &str| text(object, &format!("/metadata/labels/data.landscaper.gardener.cloud~1{label}"));
    let mut hashed = format!("{}/{}", label("context"), label("key"));
    for element in ["index", "targetmapkey"] {
        if !label(element).is_empty() {
            hashed = format!("{hashed}[{}]", label(element));
        }
    }
    if hashed == "/" {
        hashed = format!("something of {}", text(object, "/metadata/ownerReferences/0/name"));
    }
    let stable = names.stable(&hashed);
    if stable != hashed {
        names.add(name(object), &format!("<hash of {stable}>"));
    }
}

/// Job ids are called after the first object that has them.
fn learn_jobs(object: &Value, names: &mut Names) {
    let label = "/metadata/labels/data.landscaper.gardener.cloud~1jobid";
    for field in ["/status/jobID", "/status/jobIDFinished", label] {
        let job = text(object, field);
        if !job.is_empty() {
            names.add(job, &format!("<job of {}>", title(object, names)));
        }
    }
}

/// The names of an object that is in no dump, or in a later one.
pub fn learn(kind: &str, object: &Value, names: &mut Names) {
    names.add_generated_of(object);
    let title = format!("{kind} {}", names.stable(name(object)));
    names.add(text(object, "/metadata/uid"), &format!("<uid of {title}>"));
    learn_uids(object, names);
}

/// An object with the names that were learned since it was normalised.
pub fn named(object: &Value, names: &Names) -> Value {
    renamed(object, names)
}

/// Uids of objects that are somewhere else, and of the cluster.
fn learn_uids(value: &Value, names: &mut Names) {
    match value {
        Value::Object(fields) => {
            if let Some(uid) = fields.get("uid").and_then(Value::as_str).filter(|uid| is_uuid(uid)) {
                let of_object = format!("<uid of {} {}>", text(value, "/kind"), names.stable(text(value, "/name")));
                let is_cluster = fields.contains_key("on");
                names.add(uid, if is_cluster { "<uid of the cluster>" } else { &of_object });
            }
            fields.values().for_each(|value| learn_uids(value, names));
        }
        Value::Array(entries) => entries.iter().for_each(|value| learn_uids(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn stable(object: &Value, names: &Names) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !["managedFields", "resourceVersion", "selfLink"].contains(&field.as_str()));
        // An API server may leave out what is empty, or keep it.
        metadata.retain(|_, value| *value != json!({}));
    }
    let mut object = renamed(&object, names);
    if let Some(status) = object.pointer_mut("/status") {
        hide_messages(status);
    }
    object
}

/// The value with stable names in fields and values, and without times.
fn renamed(value: &Value, names: &Names) -> Value {
    match value {
        Value::String(text) => Value::String(names.stable(text)),
        Value::Array(entries) => Value::Array(entries.iter().map(|entry| renamed(entry, names)).collect()),
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(field, _)| *field);
            let fields = sorted.into_iter().map(|(field, value)| {
                let value = if is_time(field) && value.is_string() { TIME.into() } else { renamed(value, names) };
                (names.stable(field), value)
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn is_time(field: &str) -> bool {
    field.ends_with("Time")
        || field.ends_with("Timestamp")
        || ["landscaper.gardener.cloud/reconcile-time", "modifiedAt", "first_deployed", "last_deployed", "deleted"]
            .contains(&field)
}

fn hide_messages(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                match value {
                    Value::String(text) if field == "message" && !text.is_empty() => TEXT.clone_into(text),
                    _ => hide_messages(value),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(hide_messages),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
