//! The objects of a dump, made anew on a server as the original left them: in mid-job, with statuses, where nobody works on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
};

use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use orangery_core::port::Clock as _;
use orangery_runtime::machine::SystemClock;
use serde_json::{Map, Value, json};

use super::steps::Recording;
use crate::objects::Objects;

/// What an API server puts behind `generateName`.
const GENERATED: &str = "x8mv6";

/// Fields of metadata that a server fills in.
const OF_THE_SERVER: [&str; 5] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "uid"];

/// What is in the place of the stable names of a dump.
struct Values {
    kubeconfig: String,
    now: String,
    /// The uids of what has been made, by kind and name.
    uids: BTreeMap<String, String>,
    /// The ids of the jobs, by what stands for them.
    jobs: BTreeMap<String, String>,
}

impl Values {
    fn of(dump: &[Value], kubeconfig: &str) -> Values {
        let mut jobs = BTreeSet::new();
        for status in dump.iter().filter_map(|object| object.get("status")) {
            let ids = ["jobID", "jobIDFinished"].iter().filter_map(|field| status.get(field)?.as_str());
            jobs.extend(ids.map(str::to_owned));
        }
        let id = |(number, job): (usize, String)| (job, format!("{:08}-0000-4000-8000-000000000000", number + 1));
        Values {
            kubeconfig: kubeconfig.to_owned(),
            now: SystemClock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            uids: BTreeMap::new(),
            jobs: jobs.into_iter().enumerate().map(id).collect(),
        }
    }

    fn text(&self, stable: &str) -> String {
        let text = stable.replace("<generated>", GENERATED);
        if let Some(job) = self.jobs.get(stable) {
            return job.clone();
        }
        if let Some(title) = text.strip_prefix("<uid of ").and_then(|text| text.strip_suffix('>')) {
            let uid = self.uids.get(title);
            assert!(uid.is_some(), "{title} is made after what names it");
            return uid.cloned().unwrap_or_default();
        }
        match text.as_str() {
            "<time>" => self.now.clone(),
            "<text>" => "said by the original".to_owned(),
            "<identity>" => "manifest.deployer.landscaper.gardener.cloud-1".to_owned(),
            "<kubeconfig>" => self.kubeconfig.clone(),
            "<hash of a configuration with a kubeconfig>" => "7b1d178464dfdabdb58ba6c814f9d3a6a5294c02".to_owned(),
            _ => {
                assert!(!text.starts_with('<'), "nothing is known to stand for {stable}");
                text
            }
        }
    }

    fn filled_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(entries) => entries.iter().map(|entry| self.filled_in(entry)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(field, value)| (field.clone(), self.filled_in(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// An object as it is created.
    fn created(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
            if fields.get("kind").is_some_and(|kind| kind == "Secret")
                && let Some(data) = fields.remove("data")
            {
                fields.insert("stringData".to_owned(), data);
            }
        }
        if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !OF_THE_SERVER.contains(&field.as_str()));
        }
        let mut object = self.filled_in(&object);
        if let Some(list) = object.pointer_mut("/spec/deployItemsCompressed") {
            *list = json!(packed(list));
        }
        object
    }

    /// Its status. Generations are those of the server, as far apart as they were.
    fn status(&self, recorded: &Value, generation: i64) -> Option<Value> {
        let mut status = self.filled_in(recorded.get("status")?);
        let number = |pointer| recorded.pointer(pointer).and_then(Value::as_i64);
        let fields = status.as_object_mut().filter(|fields| !fields.is_empty())?;
        if let (Some(observed), Some(recorded)) = (number("/status/observedGeneration"), number("/metadata/generation"))
        {
            let behind = recorded.saturating_sub(observed);
            fields.insert("observedGeneration".to_owned(), json!(generation.saturating_sub(behind).max(0)));
        }
        Some(status)
    }
}

/// JSON as the original packs it: by gzip and base64.
fn packed(value: &Value) -> String {
    let mut bytes = GzEncoder::new(Vec::new(), Compression::default());
    let written = bytes.write_all(value.to_string().as_bytes()).and_then(|()| bytes.finish());
    BASE64.encode(&written.expect("memory takes all"))
}

/// Makes the objects of the dump in the namespace of the recording, owners before what they own, deletes what was being deleted,
/// and writes the statuses. Times are now. Answers the objects as they are then.
///
/// # Panics
/// The server does not take something of it.
pub async fn restore(recording: &Recording, label: &str, objects: &Objects) -> Vec<Value> {
    let dump = recording.dumps.get(label).cloned().unwrap_or_default();
    assert!(!dump.is_empty(), "{} has no dump {label}", recording.case);
    let mut values = Values::of(&dump, objects.kubeconfig());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": recording.namespace}});
    objects.apply(&namespace).await;
    for object in &dump {
        let created = objects.create(&values.created(object)).await;
        let text = |pointer| created.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let title = format!("{} {}", text("/kind"), text("/metadata/name"));
        values.uids.insert(title, text("/metadata/uid").to_owned());
    }
    let mut restored = Vec::new();
    for object in &dump {
        let named = values.created(object);
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            objects.delete(&named).await;
        }
        let present = objects.expect(&identity(&named)).await;
        let generation = present.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        restored.push(match values.status(object, generation) {
            Some(status) => {
                objects.patch_status(&named, status).await;
                objects.expect(&identity(&named)).await
            }
            None => present,
        });
    }
    restored
}

/// What an object is called.
pub fn identity(object: &Value) -> Value {
    let metadata = |field: &str| object.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
    let metadata = json!({"name": metadata("name"), "namespace": metadata("namespace")});
    let field = |field: &str| object.get(field).cloned().unwrap_or_default();
    json!({"apiVersion": field("apiVersion"), "kind": field("kind"), "metadata": metadata})
}
