//! A support archive: what goes into it, and what is hidden (C-400, C-401). Pure: objects in, bytes out.
//!
//! What may hold values of others is hidden by its place, whatever it says, and what is left is looked through for the values of Secrets.

use std::io;

use flate2::{Compression, write::GzEncoder};
use orangery_api::{annotation, label::SECRET_DATA};
use orangery_core::{
    masking::{Masker, leaves, secret_texts},
    name::Kind,
    yaml,
};
use serde_json::{Map, Value, json};

/// What stands in the place of a value.
pub(crate) const HIDDEN: &str = "[hidden]";

/// The folder of the archive.
pub(crate) const FOLDER: &str = "orangery-bundle";

/// Bytes that are kept for the file that tells what is in the archive.
const KEPT_FOR_README: usize = 64 << 10;

/// Bytes of what ends a list that was cut.
const LONGEST_END: usize = 100;

/// Fields that hold what others have written or computed, wherever they stand in an object of ours.
const HIDDEN_FIELDS: [&str; 18] = [
    "config",
    "configuration",
    "configurations",
    "content",
    "deployItemsCompressed",
    "details",
    "exportDataMappings",
    "importDataMappings",
    // By a digest short values are found by trying.
    "importsHash",
    "inline",
    "kubeconfig",
    "parameters",
    "seal",
    "stringData",
    "template",
    "token",
    "triggeredImportsHash",
    "values",
];

/// The longest text that is shown, in bytes, but for messages: what is longer is packed, or a document of somebody.
const LONGEST_TEXT: usize = 1024;

/// Fields whose texts are messages, however long they are.
const MESSAGES: [&str; 2] = ["message", "note"];

/// Metadata that is kept. Annotations of others, as of kubectl, hold whole objects; managed fields hold keys of values.
const KEPT_METADATA: [&str; 11] = [
    "name",
    "namespace",
    "generateName",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "labels",
    "ownerReferences",
];

/// An object of a kind of ours as it goes into an archive.
pub(crate) fn redacted(kind: &Kind, mut object: Value, masker: &Masker) -> Value {
    if let Some(values) = values_of(kind).and_then(|place| object.pointer_mut(place)) {
        *values = json!(HIDDEN);
    }
    if let Some(members) = object.as_object_mut() {
        let metadata = members.get("metadata").map(metadata);
        if let Some(provider) = members.get_mut("status").and_then(|status| status.get_mut("providerStatus")) {
            *provider = inventory(provider);
        }
        for (name, member) in members.iter_mut().filter(|(name, _)| *name != "metadata") {
            hide_fields(name, member);
        }
        members.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    }
    masker.mask_value(&mut object);
    object
}

/// Where an object has values under a name that names of values have elsewhere.
fn values_of(kind: &Kind) -> Option<&'static str> {
    match kind.as_str() {
        "DataObject" => Some("/data"),
        // What gate expressions read of imports.
        "Execution" => Some("/spec/imports"),
        "Installation" => Some("/status/workflow/imports"),
        _ => None,
    }
}

fn metadata(metadata: &Value) -> Value {
    let kept = KEPT_METADATA.iter().filter_map(|name| Some(((*name).to_owned(), metadata.get(*name)?.clone())));
    let mut kept: Map<String, Value> = kept.collect();
    let annotations = metadata.get("annotations").and_then(Value::as_object);
    let is_ours = |name: &str| {
        let domain = name.split('/').next().unwrap_or_default();
        name != annotation::HASH && (domain == "orangery.dev" || domain.ends_with("landscaper.gardener.cloud"))
    };
    let shown = annotations.into_iter().flatten().map(|(name, value)| match is_ours(name) {
        true => (name.clone(), value.clone()),
        false => (name.clone(), json!(HIDDEN)),
    });
    let shown: Map<String, Value> = shown.collect();
    if !shown.is_empty() {
        kept.insert("annotations".to_owned(), Value::Object(shown));
    }
    Value::Object(kept)
}

/// Of a provider status which objects there are; deployers write what they like beside it.
fn inventory(provider: &Value) -> Value {
    let listed = provider.get("managedResources").and_then(Value::as_array);
    let object = |entry: &Value| json!({"resource": entry.get("resource"), "policy": entry.get("policy")});
    json!({"managedResources": listed.into_iter().flatten().map(object).collect::<Vec<_>>(), "others": HIDDEN})
}

fn hide_fields(name: &str, value: &mut Value) {
    if HIDDEN_FIELDS.contains(&name) {
        hide(value);
        return;
    }
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| hide_fields(name, member)),
        Value::Array(elements) => elements.iter_mut().for_each(|element| hide_fields("", element)),
        Value::String(text) if text.len() > LONGEST_TEXT && !MESSAGES.contains(&name) => *value = json!(HIDDEN),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Hides what a value says, and keeps its shape.
fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(hide),
        Value::Array(elements) => elements.iter_mut().for_each(hide),
        Value::Null | Value::Bool(_) => {}
        Value::Number(_) | Value::String(_) => *value = json!(HIDDEN),
    }
}

/// The texts of a Secret, a Target or a DataObject that must be in no message of an archive.
pub(crate) fn secret_values(kind: &Kind, object: &Value, texts: &mut Vec<String>) {
    match kind.as_str() {
        "Secret" => {
            let data = object.get("data").and_then(Value::as_object);
            for encoded in data.into_iter().flatten().filter_map(|(_, value)| value.as_str()) {
                let bytes = data_encoding::BASE64.decode(encoded.as_bytes()).ok();
                match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    Some(text) => texts.extend(secret_texts(&text)),
                    // What is no text is quoted as it is encoded; texts are found in that form as well.
                    None => texts.push(encoded.to_owned()),
                }
            }
        }
        "Target" => {
            let mut config = Vec::new();
            if let Some(value) = object.pointer("/spec/config") {
                leaves(value, &mut config);
            }
            config.iter().for_each(|text| credentials(text, texts));
        }
        _ => {
            let is_secret = object.pointer("/metadata/labels").is_some_and(|labels| labels.get(SECRET_DATA).is_some());
            if let Some(data) = object.get("data").filter(|_| is_secret) {
                leaves(data, texts);
            }
        }
    }
}

/// What a kubeconfig logs in with, and where it is no kubeconfig all of it: names of clusters are words of messages.
fn credentials(text: &str, texts: &mut Vec<String>) {
    texts.push(text.to_owned());
    match yaml::decode(text) {
        Ok(value) if value.get("users").is_some() => {
            let users = value.get("users").and_then(Value::as_array);
            users.into_iter().flatten().filter_map(|user| user.get("user")).for_each(|user| leaves(user, texts));
        }
        Ok(value) => leaves(&value, texts),
        Err(_) => {}
    }
}

/// Of a Secret what may be known: its name, its type, and which entries it has.
pub(crate) fn secret_outline(secret: &Value) -> Value {
    let data = secret.get("data").and_then(Value::as_object);
    let keys: Vec<&String> = data.into_iter().flatten().map(|(name, _)| name).collect();
    json!({
        "name": secret.pointer("/metadata/name"),
        "type": secret.get("type"),
        "entries": keys,
        "finalizers": secret.pointer("/metadata/finalizers"),
    })
}

/// Files that go into an archive, up to so many bytes of them.
#[derive(Debug)]
pub(crate) struct SupportFiles {
    files: Vec<(String, Vec<u8>)>,
    left: usize,
    /// What is not in it, and why.
    notes: Vec<String>,
}

impl SupportFiles {
    /// No files, and room for so many bytes.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { files: Vec::new(), left: most_bytes.saturating_sub(KEPT_FOR_README), notes: Vec::new() }
    }

    /// Adds a file. Of one for which there is no room it is the begin, up to the end of a line.
    pub(crate) fn add(&mut self, name: &str, text: &str) {
        let kept = if text.len() <= self.left {
            text
        } else {
            let room = text.get(..text.floor_char_boundary(self.left)).unwrap_or_default();
            let kept = room.get(..room.rfind('\n').map_or(0, |end| end + 1)).unwrap_or_default();
            self.note(format!(
                "{name}: {} of {} bytes are left out, for want of room; raise --size",
                text.len() - kept.len(),
                text.len()
            ));
            kept
        };
        if !kept.is_empty() {
            self.left -= kept.len();
            self.files.push((name.to_owned(), kept.as_bytes().to_vec()));
        }
    }

    /// Notes what is not in the archive, and why.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Masks what was noted: errors of servers are words of others.
    pub(crate) fn mask_notes(&mut self, masker: &Masker) {
        self.notes.iter_mut().for_each(|note| *note = masker.mask(note).into_owned());
    }

    /// What is not in it, and why.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The archive, a tar that gzip has compressed. The first file tells what is in it, and what is not.
    ///
    /// # Errors
    /// As writing to memory has them.
    pub(crate) fn archive(&self) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        let readme = self.readme();
        append(&mut archive, "README.txt", readme.as_bytes())?;
        for (name, bytes) in &self.files {
            append(&mut archive, name, bytes)?;
        }
        archive.into_inner()?.finish()
    }

    fn readme(&self) -> String {
        let mut text = format!(
            "What an operator of Orangery works on, for those who help to find out what is wrong (orangery bundle).\n\n\
             Values of Secrets, DataObjects, Targets and configurations are hidden ({HIDDEN}), and masked in messages. Names of objects, of\n\
             namespaces and of clusters are not. Look through it before you give it to somebody.\n\nNot in it:\n"
        );
        if self.notes.is_empty() {
            text.push_str("  nothing is missing\n");
        }
        list(&mut text, self.notes.iter().cloned(), KEPT_FOR_README / 4 * 3);
        text.push_str("\nFiles:\n");
        list(
            &mut text,
            self.files.iter().map(|(name, bytes)| format!("{name} ({} bytes)", bytes.len())),
            KEPT_FOR_README,
        );
        text
    }
}

/// The lines of a list, as long as the text has no more than so many bytes, and how many there are beside them.
fn list(text: &mut String, lines: impl ExactSizeIterator<Item = String>, most_bytes: usize) {
    let (all, room) = (lines.len(), most_bytes.saturating_sub(LONGEST_END));
    for (listed, line) in lines.enumerate() {
        if text.len() + line.len() > room {
            text.push_str(&format!("  and {} more, for which is no room here\n", all - listed));
            return;
        }
        text.push_str(&format!("  {line}\n"));
    }
}

fn append(archive: &mut tar::Builder<GzEncoder<Vec<u8>>>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    archive.append_data(&mut header, format!("{FOLDER}/{name}"), bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const SECRET: &str = "s3cr3t-kT9vQ2xW7n";

    #[test]
    fn c_400_what_may_hold_values_is_hidden_by_its_place_and_the_rest_is_kept() {
        let object = json!({
            "metadata": {"name": "x", "managedFields": [{"fieldsV1": {"k:s3": {}}}], "labels": {"a": "b"}, "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": SECRET, "landscaper.gardener.cloud/operation": "reconcile", (annotation::HASH): "abc"}},
            "spec": {"type": "t", "config": {"a": [SECRET, 7, true, null]}, "target": {"name": "cluster"}, "imports": {"data": [{"dataRef": "d"}]}},
            "status": {"phase": "Failed", "lastError": {"message": format!("no {SECRET}!")}, "providerStatus": {
                "managedResources": [{"resource": {"kind": "ConfigMap", "name": "m"}, "policy": "manage", "before": SECRET}], "more": SECRET}},
        });
        let expected = json!({
            "metadata": {"name": "x", "labels": {"a": "b"}, "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": HIDDEN, "landscaper.gardener.cloud/operation": "reconcile", (annotation::HASH): HIDDEN}},
            "spec": {"type": "t", "config": {"a": [HIDDEN, HIDDEN, true, null]}, "target": {"name": "cluster"}, "imports": {"data": [{"dataRef": "d"}]}},
            "status": {"phase": "Failed", "lastError": {"message": "no [masked]!"}, "providerStatus": {
                "managedResources": [{"resource": {"kind": "ConfigMap", "name": "m"}, "policy": "manage"}], "others": HIDDEN}},
        });
        assert_eq!(redacted(&"DeployItem".into(), object, &Masker::of([SECRET])), expected);
        let data =
            redacted(&"DataObject".into(), json!({"metadata": {"name": "d"}, "data": {"a": "b"}}), &Masker::default());
        assert_eq!(data, json!({"metadata": {"name": "d"}, "data": HIDDEN}));
        let execution = json!({"spec": {"context": "c", "imports": {"a": 1}, "deployItemsCompressed": "H4s="}});
        let hidden = json!({"spec": {"context": "c", "imports": HIDDEN, "deployItemsCompressed": HIDDEN}});
        assert_eq!(redacted(&"Execution".into(), execution, &Masker::default()), hidden);
        let long = "x".repeat(LONGEST_TEXT + 1);
        let object = json!({"status": {"message": long.clone(), "packed": [long.clone()], "short": long[1..]}});
        let hidden = json!({"status": {"message": long.clone(), "packed": [HIDDEN], "short": long[1..]}});
        assert_eq!(redacted(&"Installation".into(), object, &Masker::default()), hidden);
        // That something is data of an import does not hide its name.
        let kept = redacted(&"Installation".into(), json!({"spec": {"data": [{"name": "n"}]}}), &Masker::default());
        assert_eq!(kept, json!({"spec": {"data": [{"name": "n"}]}}));
    }

    #[test]
    fn c_400_values_are_those_of_secrets_of_credentials_of_targets_and_of_data_that_is_marked() {
        let of = |kind: &'static str, object: Value| {
            let mut texts = Vec::new();
            secret_values(&Kind::from_static(kind), &object, &mut texts);
            texts
        };
        let encoded = data_encoding::BASE64.encode(SECRET.as_bytes());
        assert_eq!(of("Secret", json!({"data": {"a": encoded.clone(), "b": "/+7dzLu6"}})), [SECRET, "/+7dzLu6"]);
        // The last letter stands for a part of a byte.
        assert_eq!(Masker::of([SECRET]).mask(&format!("is {encoded}!")), "is [masked]4=!");
        let kubeconfig =
            format!("clusters: [{{name: production}}]\nusers: [{{name: admin-user, user: {{token: {SECRET}}}}}]\n");
        let target = json!({"spec": {"config": {"kubeconfig": kubeconfig.clone()}}});
        assert_eq!(of("Target", target), [kubeconfig.as_str(), SECRET]);
        let data = |labels: Value| of("DataObject", json!({"metadata": {"labels": labels}, "data": {"a": SECRET}}));
        assert_eq!(data(json!({SECRET_DATA: "whole"})), [SECRET]);
        assert_eq!(data(json!({})), Vec::<String>::new());
        let outline = secret_outline(&json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"key": encoded}}));
        assert_eq!(outline, json!({"name": "s", "type": "Opaque", "entries": ["key"], "finalizers": null}));
    }

    #[test]
    fn c_401_an_archive_has_so_many_bytes_and_says_what_is_left_out() {
        let mut files = SupportFiles::new(KEPT_FOR_README + 10);
        files.add("a.txt", "123\n567\n");
        files.add("b.txt", "1\n345\n");
        files.add("c.txt", "1");
        assert_eq!(files.left, 0);
        files.note("logs: nobody may read them".to_owned());
        let archive = files.archive().unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((path, text));
        }
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["orangery-bundle/README.txt", "orangery-bundle/a.txt", "orangery-bundle/b.txt"]);
        assert_eq!((found[1].1.as_str(), found[2].1.as_str()), ("123\n567\n", "1\n"));
        let missing = found[0].1.split("Not in it:\n").nth(1).unwrap().split("\n\nFiles:\n").next().unwrap();
        let missing: Vec<&str> = missing.lines().collect();
        assert_eq!(
            missing,
            [
                "  b.txt: 4 of 6 bytes are left out, for want of room; raise --size",
                "  c.txt: 1 of 1 bytes are left out, for want of room; raise --size",
                "  logs: nobody may read them",
            ]
        );
    }

    #[test]
    fn c_401_what_is_missing_is_told_before_the_files_and_what_is_cut_of_either_list_is_counted() {
        let mut files = SupportFiles::new(KEPT_FOR_README + (1 << 20));
        (0..10_000).for_each(|number| files.add(&format!("namespaces/{number}/target.jsonl"), "{}\n"));
        files.note(format!("logs: {SECRET}"));
        files.mask_notes(&Masker::of([SECRET]));
        let readme = files.readme();
        assert!(
            readme.len() <= KEPT_FOR_README && readme.contains("Not in it:\n  logs: [masked]\n\nFiles:\n"),
            "{readme}"
        );
        let listed = readme.lines().filter(|line| line.ends_with(" (3 bytes)")).count();
        let end = format!("  and {} more, for which is no room here\n", 10_000 - listed);
        assert!(listed > 1000 && readme.ends_with(&end), "{listed}");
        (0..10_000).for_each(|number| files.note(format!("targets of namespace {number}: forbidden")));
        let readme = files.readme();
        let noted = readme.lines().filter(|line| line.contains(": ")).count();
        let end = format!("  and {} more, for which is no room here\n\nFiles:\n", 10_001 - noted);
        assert!(readme.len() <= KEPT_FOR_README && noted > 500 && readme.contains(&end), "{noted}");
        assert!(readme.contains("(3 bytes)"), "no file has room beside what is missing");
    }

    /// Free-form fields that are kept: where components lie is what a supporter asks first, and credentials for it are in Secrets.
    const KEPT_FREE_FORM: [&str; 4] = [
        "ComponentVersionOverwrites.overwrites.source.repositoryContext",
        "ComponentVersionOverwrites.overwrites.substitution.repositoryContext",
        "Context.repositoryContext",
        "Installation.spec.componentDescriptor.ref.repositoryContext",
    ];

    /// An object of a schema, whose free-form fields say where they are.
    fn planted(schema: &Value, place: &str, places: &mut Vec<String>) -> Value {
        if schema.get("x-kubernetes-preserve-unknown-fields").is_some() {
            places.push(place.to_owned());
            return json!({"planted": format!("<{place}>")});
        }
        let mut of = |schema: &Value, name: &str| {
            planted(schema, &if name.is_empty() { place.to_owned() } else { format!("{place}.{name}") }, places)
        };
        if let Some(items) = schema.get("items") {
            return json!([of(items, "")]);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten().filter(|(name, _)| *name != "metadata");
        let mut members: Map<String, Value> =
            properties.map(|(name, schema)| (name.clone(), of(schema, name))).collect();
        members.extend(schema.get("additionalProperties").map(|schema| ("key".to_owned(), of(schema, ""))));
        Value::Object(members)
    }

    #[test]
    fn c_400_every_field_without_a_form_is_hidden_but_where_it_says_where_components_lie() {
        let (mut places, mut kept) = (Vec::new(), Vec::new());
        for definition in orangery_api::crds() {
            let kind = definition.spec.names.kind.as_str();
            for version in &definition.spec.versions {
                let schema = json!(version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()));
                let mut of_version = Vec::new();
                let object = planted(&schema, kind, &mut of_version);
                let text = redacted(&kind.into(), object, &Masker::default()).to_string();
                kept.extend(of_version.iter().filter(|place| text.contains(&format!("<{place}>"))).cloned());
                places.extend(of_version);
            }
        }
        kept.sort();
        assert_eq!(kept, KEPT_FREE_FORM);
        assert!(places.len() > 20, "{places:?}");
    }
}
