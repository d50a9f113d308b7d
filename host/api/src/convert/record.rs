//! Records as objects, with the labels, the hash and the owner that `docs/wire.md` §2.2 and §5.4 give them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use orangery_blueprint::{
    export::ExportOccupant,
    record::{Purpose, Record, RecordContent, TargetPosition},
};
use serde_json::Value;

use crate::{
    annotation,
    data_object::DataObject,
    label,
    marks::{Marks, set_name},
    reference::LocalSecretReference,
    target::Target,
};

/// Writes a record of data over `object`: its name, content, labels, hash and owner; what others set stays. A record of
/// a target leaves `object` as it is.
pub fn write_data_object(record: &Record, object: &mut DataObject, owner: &OwnerReference) {
    if let RecordContent::Data(data) = &record.content {
        object.spec.data.clone_from(data);
        mark(record, &mut object.metadata, owner);
    }
}

/// Writes a record of a target over `object`: its name, spec, labels, hash and owner; what others set stays. A record of
/// data leaves `object` as it is.
pub fn write_target(record: &Record, object: &mut Target, owner: &OwnerReference) {
    if let RecordContent::Target(target) = &record.content {
        object.spec.type_ = text(&target.spec, "type");
        object.spec.config = target.spec.get("config").filter(|config| !config.is_null()).cloned();
        let reference = target.spec.get("secretRef").filter(|reference| !reference.is_null());
        object.spec.secret_ref =
            reference.map(|secret| LocalSecretReference { name: text(secret, "name"), key: text(secret, "key") });
        // That its source is guarded does not guard the copy; an earlier build has said so of it all the same.
        let is_guarded = object.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == annotation::GUARD);
        if let Some(labels) = object.metadata.labels.as_mut().filter(|_| !is_guarded) {
            labels.remove(annotation::GUARD);
        }
        let labels = target.labels.iter().filter(|(label, _)| *label != annotation::GUARD);
        let labels = labels.map(|(label, value)| (label.clone(), value.clone()));
        object.metadata.labels.get_or_insert_default().extend(labels);
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.extend(target.annotations.clone());
        match &target.original {
            Some(original) => annotations.insert(annotation::COPY_OF.to_owned(), original.to_string()),
            None => annotations.remove(annotation::COPY_OF),
        };
        mark(record, &mut object.metadata, owner);
    }
}

/// The Target that a user or an export keeps and of which this one is a copy, as the Installation says that has written it (C-171).
pub fn original(target: &Target) -> Option<&str> {
    let is_copy = target.label(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_IMPORT);
    target.annotation(annotation::COPY_OF).filter(|_| is_copy)
}

/// What an object is to the Installation that would export to its name. Owners that are gone may stand before one `is_there`: the
/// garbage collector has still to take them away (C-125).
pub fn export_occupant<K: Marks>(object: &K, mut is_there: impl FnMut(&OwnerReference) -> bool) -> ExportOccupant<'_> {
    let is_export = object.label(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_EXPORT);
    let owner = object.owner_installations().find(|owner| is_there(owner)).map(|owner| owner.name.as_str());
    ExportOccupant { owner, is_export }
}

fn text(of: &Value, field: &str) -> String {
    of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn mark(record: &Record, metadata: &mut ObjectMeta, owner: &OwnerReference) {
    metadata.name = Some(record.name.to_string());
    let purpose = match record.purpose {
        Some(Purpose::Import) => label::SOURCE_TYPE_IMPORT,
        Some(Purpose::Export) => label::SOURCE_TYPE_EXPORT,
        None => "",
    };
    let (index, map_key) = match &record.place {
        None => (String::new(), String::new()),
        Some(TargetPosition::Index(index)) => (index.to_string(), String::new()),
        Some(TargetPosition::Key(key)) => (String::new(), key.clone()),
    };
    let labels = metadata.labels.get_or_insert_default();
    for (key, value) in [
        (label::CONTEXT, record.context.as_str()),
        (label::SOURCE_TYPE, purpose),
        (label::SOURCE, &record.source),
        (label::INDEX, &index),
        (label::TARGET_MAP_KEY, &map_key),
        (label::JOB_ID, &record.job),
    ] {
        if value.is_empty() {
            labels.remove(key);
        } else {
            labels.insert(key.to_owned(), value.to_owned());
        }
    }
    set_name(metadata, (label::KEY, annotation::WHOLE_KEY), &record.key);
    metadata.annotations.get_or_insert_default().insert(annotation::HASH.to_owned(), record.hash.clone());
    let owners = metadata.owner_references.get_or_insert_default();
    // It belongs to its last writer: nobody of the same kind who wrote it before holds it (C-125, C-160).
    owners.retain(|known| known.uid == owner.uid || known.kind != owner.kind || known.api_version != owner.api_version);
    match owners.iter_mut().find(|present| present.uid == owner.uid) {
        Some(present) => present.clone_from(owner),
        None => owners.push(owner.clone()),
    }
}
