//! Exports: what export executions are given, what they may answer, and the objects made from it (`docs/wire.md` §5.5).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    ExportDefinition, ExportKind,
    binding::ExportBindings,
    record::{Purpose, Record, RecordContent, RecordWriter, TargetContent},
    schema::{SchemaError, Schemas},
};
use orangery_core::{
    lenient::{self, DecodeError},
    name::Kind,
};

/// Why exports cannot be written. Never shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// `spec.exports` lists what nothing gives.
    #[error(
        "{sort} export {name:?} of installation {installation} has no value; let an exportExecution of the blueprint answer it under `exports`, or remove it from spec.exports"
    )]
    Missing {
        /// `data` or `target`.
        sort: &'static str,
        /// The export.
        name: String,
        /// `namespace/name` of the installation.
        installation: String,
    },
    /// The value does not follow the blueprint's schema.
    #[error("data export {name:?} of installation {installation}: {source}")]
    Schema {
        /// The export.
        name: String,
        /// `namespace/name` of the installation.
        installation: String,
        /// Why.
        source: SchemaError,
    },
    /// The value is no target.
    #[error(
        "target export {name:?} of installation {installation} is no target: {source}; answer {{type, config}} or {{type, secretRef}}"
    )]
    Target {
        /// The export.
        name: String,
        /// `namespace/name` of the installation.
        installation: String,
        /// Why.
        source: DecodeError,
    },
    /// A target of another type.
    #[error(
        "target export {name:?} of installation {installation} is of type {found:?}, and the blueprint declares {expected}"
    )]
    TargetType {
        /// The export.
        name: String,
        /// `namespace/name` of the installation.
        installation: String,
        /// The type declared.
        expected: String,
        /// The type answered.
        found: String,
    },
    /// Another installation wrote the object.
    #[error(
        "{kind} {object} of installation {installation} belongs to installation {owner}, which exports it too; rename one of the exports"
    )]
    ForeignObject {
        /// `DataObject` or `Target`.
        kind: Kind,
        /// The object's name.
        object: String,
        /// `namespace/name` of the installation.
        installation: String,
        /// The other installation.
        owner: String,
    },
    /// An object of that name exists that no installation has exported.
    #[error(
        "{kind} {object} exists already and was exported by no installation, so installation {installation} does not overwrite it; \
         rename the export, or delete the object"
    )]
    UsersObject {
        /// `DataObject` or `Target`.
        kind: Kind,
        /// The object's name.
        object: String,
        /// `namespace/name` of the installation.
        installation: String,
    },
}

impl ExportError {
    /// What is wrong with a schema or by it.
    pub fn schema(&self) -> Option<&SchemaError> {
        match self {
            ExportError::Schema { source, .. } => Some(source),
            _ => None,
        }
    }

    /// A CamelCase word for conditions and `lastError`.
    pub fn reason(&self) -> &'static str {
        match self {
            ExportError::Missing { .. } => "ExportNotDefined",
            ExportError::Schema { .. } | ExportError::Target { .. } | ExportError::TargetType { .. } => {
                "SchemaValidationFailed"
            }
            ExportError::ForeignObject { .. } | ExportError::UsersObject { .. } => "ExportConflict",
        }
    }
}

/// The extra inputs of export executions: `values`, and its three parts at the top too (`docs/wire.md` §4.3).
/// `data_objects` and `targets` are what lives in the installation's own context, by key.
pub fn inputs(
    deploy_items: Option<Value>,
    data_objects: BTreeMap<String, Value>,
    targets: BTreeMap<String, Value>,
) -> Map<String, Value> {
    let parts = [
        ("deployitems", deploy_items.unwrap_or_else(|| json!({}))),
        ("dataobjects", Value::Object(data_objects.into_iter().collect())),
        ("targets", Value::Object(targets.into_iter().collect())),
    ];
    let mut inputs: Map<String, Value> = parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let values = inputs.clone();
    inputs.insert("values".to_owned(), Value::Object(values));
    inputs
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TargetFields {
    #[serde(rename = "type")]
    type_: String,
    // The documentation of the original says `configuration`, its code `config`.
    #[serde(alias = "configuration")]
    config: Option<Value>,
    secret_ref: Option<SecretForm>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SecretForm {
    name: String,
    key: String,
}

/// Checks what the export executions answered against the blueprint. What the blueprint does not define is taken out;
/// its names are given back, sorted, to be told.
pub fn check(
    definitions: &[ExportDefinition],
    exports: &mut Map<String, Value>,
    schemas: &Schemas<'_>,
    scope: &RecordWriter<'_>,
) -> Result<Vec<String>, ExportError> {
    let installation = || format!("{}/{}", scope.namespace, scope.installation);
    for definition in definitions {
        let name = definition.name.clone();
        let Some(value) = exports.get(&name) else { continue };
        match &definition.kind {
            ExportKind::Data { schema } => schemas.check(schema, value).map_err(|source| ExportError::Schema {
                name,
                installation: installation(),
                source,
            })?,
            ExportKind::Target { target_type } => {
                let form: TargetFields = lenient::decode(value).map_err(|source| ExportError::Target {
                    name: name.clone(),
                    installation: installation(),
                    source,
                })?;
                if form.type_ != *target_type {
                    let (installation, expected, found) = (installation(), target_type.clone(), form.type_);
                    return Err(ExportError::TargetType { name, installation, expected, found });
                }
            }
        }
    }
    let known: BTreeSet<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
    let defined = |name: &str| known.contains(name);
    let mut dropped: Vec<String> = exports.keys().filter(|name| !defined(name)).cloned().collect();
    dropped.sort();
    exports.retain(|name, _| defined(name));
    Ok(dropped)
}

/// The objects that `spec.exports` lists, in its order. `values` are the checked exports with the results of the export
/// mappings over them. What is listed and has no value fails; what has a value and is not listed is not written.
pub fn records(
    exports: &ExportBindings,
    values: &Map<String, Value>,
    scope: &RecordWriter<'_>,
) -> Result<Vec<Record>, ExportError> {
    let installation = || format!("{}/{}", scope.namespace, scope.installation);
    let value = |sort, name: &str| {
        let missing = || ExportError::Missing { sort, name: name.to_owned(), installation: installation() };
        values.get(name).ok_or_else(missing)
    };
    let mut records = Vec::new();
    for export in &exports.data {
        let data = value("data", &export.name)?.clone();
        records.push(scope.record(Purpose::Export, &export.data_ref, None, RecordContent::Data(data)));
    }
    for export in &exports.targets {
        let form: TargetFields = lenient::decode(value("target", &export.name)?).map_err(|source| {
            ExportError::Target { name: export.name.clone(), installation: installation(), source }
        })?;
        records.push(scope.record(Purpose::Export, &export.target, None, RecordContent::Target(target(form))));
    }
    Ok(records)
}

fn target(form: TargetFields) -> TargetContent {
    let mut spec = Map::new();
    spec.insert("type".to_owned(), Value::String(form.type_));
    if let Some(config) = form.config {
        spec.insert("config".to_owned(), config);
    }
    if let Some(secret) = form.secret_ref {
        let mut reference = json!({"name": secret.name});
        if let (false, Some(map)) = (secret.key.is_empty(), reference.as_object_mut()) {
            map.insert("key".to_owned(), Value::String(secret.key));
        }
        spec.insert("secretRef".to_owned(), reference);
    }
    TargetContent { spec: Value::Object(spec), labels: form.labels, annotations: form.annotations, original: None }
}

/// An object that has the name of an export.
#[derive(Clone, Copy, Debug)]
pub struct ExportOccupant<'a> {
    /// The Installation that owns it, if one does.
    pub owner: Option<&'a str>,
    /// Whether it says that an Installation has exported it.
    pub is_export: bool,
}

/// Exports belong to one installation, and what users made is theirs: whether an object that exists may be overwritten (C-100).
pub fn may_write(
    record: &Record,
    occupant: Option<ExportOccupant<'_>>,
    scope: &RecordWriter<'_>,
) -> Result<(), ExportError> {
    let kind = match record.content {
        RecordContent::Data(_) => Kind::from_static("DataObject"),
        RecordContent::Target(_) => Kind::from_static("Target"),
    };
    let (object, installation) = (record.name.to_string(), format!("{}/{}", scope.namespace, scope.installation));
    match occupant {
        Some(ExportOccupant { owner: Some(owner), .. }) if owner != scope.installation => {
            Err(ExportError::ForeignObject { kind, object, installation, owner: owner.to_owned() })
        }
        Some(ExportOccupant { owner: None, is_export: false }) => {
            Err(ExportError::UsersObject { kind, object, installation })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
