//! Imports: reading them, binding them to what a blueprint asks for, and the copies that an installation keeps
//! (`docs/wire.md` §5.2 … §5.6).

mod bind;
mod copy;
mod read;
mod secret;

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

pub use self::{
    bind::bind,
    copy::copies,
    read::{MOST_IMPORTED_BYTES, Sources, read, read_within},
    secret::secret_data,
};
use crate::{record::UndecryptableData, schema::SchemaError};
use orangery_core::{
    digest::{self, Fingerprints},
    name::{JobId, Kind, ObjectName},
};

/// A DataObject, or what a Secret or ConfigMap gives, as it is found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataValue {
    /// The data.
    pub value: Value,
    /// The hash annotation.
    pub hash: Option<String>,
    /// The Installation that owns the object.
    pub owner: Option<String>,
    /// How much of it is data of Secrets, as far as that is marked.
    pub secret: Option<SecretData>,
}

/// How much of something is data of Secrets (C-41).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretData {
    /// Some of it.
    Partly,
    /// Every text in it is one of a Secret: it is a copy.
    Whole,
}

/// A Target, as it is found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetObject {
    /// The object's name.
    pub name: String,
    /// Its generation.
    pub generation: i64,
    /// `spec.type`
    pub target_type: String,
    /// The Installation that owns the object.
    pub owner: Option<String>,
    /// Its label `index`: the place in a target list.
    pub index: Option<usize>,
    /// Its label `targetmapkey`.
    pub map_key: Option<String>,
    /// Its label `jobid`.
    pub job: Option<JobId>,
    /// What it is a copy of, as far as it is one that an Installation keeps (C-171).
    pub copy_of: Option<ObjectName>,
    /// The whole object as the API has it, for templates.
    pub object: Value,
}

/// An import as it was found, by the import's name in the installation.
#[derive(Clone, Debug, PartialEq)]
pub enum Imported {
    /// Data.
    Data(DataValue),
    /// A Target.
    Target(TargetObject),
    /// Targets in order.
    TargetList(Vec<TargetObject>),
    /// Targets by map key.
    TargetMap(BTreeMap<String, TargetObject>),
}

impl Imported {
    /// What templates see: data as it is, a Target as its object, lists and maps of objects.
    pub fn value(&self) -> Value {
        match self {
            Imported::Data(data) => data.value.clone(),
            Imported::Target(target) => target.object.clone(),
            Imported::TargetList(targets) => targets.iter().map(|target| target.object.clone()).collect(),
            Imported::TargetMap(targets) => {
                Value::Object(targets.iter().map(|(key, target)| (key.clone(), target.object.clone())).collect())
            }
        }
    }

    /// The Targets in it.
    fn targets(&self) -> Vec<&TargetObject> {
        match self {
            Imported::Data(_) => Vec::new(),
            Imported::Target(target) => vec![target],
            Imported::TargetList(targets) => targets.iter().collect(),
            Imported::TargetMap(targets) => targets.values().collect(),
        }
    }

    fn sort(&self) -> &'static str {
        match self {
            Imported::Data(_) => "data",
            Imported::Target(_) => "a target",
            Imported::TargetList(_) => "a target list",
            Imported::TargetMap(_) => "a target map",
        }
    }
}

/// What import mappings are rendered with: every import by its name in the installation.
pub fn values(imported: &BTreeMap<String, Imported>) -> Map<String, Value> {
    imported.iter().map(|(name, import)| (name.clone(), import.value())).collect()
}

/// INS-23: the hash by which a change of the imports is noticed (`docs/wire.md` §5.6).
pub fn imports_hash(imported: &BTreeMap<String, Imported>) -> String {
    let data = |data: &DataValue| data.hash.clone().unwrap_or_else(|| digest::stored_hash(&data.value));
    hash(imported, data, |target| target.generation.to_string())
}

/// ORC-33: the hash by which a change of the imports starts a job. It changes whenever [`imports_hash`] does, and with the
/// content of what was made anew under the generation or the hash annotation of its predecessor.
pub fn content_hash(imported: &BTreeMap<String, Imported>) -> String {
    let data =
        |data: &DataValue| format!("{} {}", data.hash.as_deref().unwrap_or_default(), digest::stored_hash(&data.value));
    let target = |target: &TargetObject| {
        let spec = target.object.get("spec").unwrap_or(&Value::Null);
        format!("{} {}", target.generation, digest::stored_hash(spec))
    };
    hash(imported, data, target)
}

/// The hash over the fingerprints that are given for data and for Targets.
fn hash(
    imported: &BTreeMap<String, Imported>,
    data: impl Fn(&DataValue) -> String,
    target: impl Fn(&TargetObject) -> String,
) -> String {
    let mut fingerprints = Fingerprints::default();
    for (name, import) in imported {
        let name = name.clone();
        match import {
            Imported::Data(found) => {
                fingerprints.data_objects.insert(name, data(found));
            }
            Imported::Target(found) => {
                fingerprints.targets.insert(name, target(found));
            }
            Imported::TargetList(targets) => {
                let elements: Value = targets.iter().map(&target).collect();
                let text = if targets.is_empty() { String::new() } else { digest::compact(&elements) };
                fingerprints.target_lists.insert(name, text);
            }
            Imported::TargetMap(targets) => {
                let entry = |(key, found): (&String, &TargetObject)| (key.clone(), Value::String(target(found)));
                let entries = Value::Object(targets.iter().map(entry).collect());
                let text = if targets.is_empty() { String::new() } else { digest::compact(&entries) };
                fingerprints.target_maps.insert(name, text);
            }
        }
    }
    digest::imports_hash(&fingerprints)
}

/// Why imports cannot be used: which one, of which installation, and how to mend it. Never shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("import {import:?} of installation {installation}: {fault}")]
pub struct ImportError {
    /// The import.
    pub import: String,
    /// `namespace/name` of the installation.
    pub installation: String,
    /// What is wrong.
    pub fault: Box<ImportFault>,
}

/// What is wrong with an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportFault {
    /// Not exactly one source.
    NoSource,
    /// An object does not exist.
    NotFound {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// The key it was looked up by.
        key: String,
    },
    /// A Secret or ConfigMap lacks the key.
    NoKey {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// The key.
        key: String,
        /// The keys it has.
        known: String,
    },
    /// The object belongs to an installation that is gone.
    OwnerGone {
        /// The object's kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// The installation.
        owner: String,
    },
    /// `targetListRef` or `targetMapRef` in a root.
    NoParent,
    /// The blueprint asks for it and nothing gives it.
    Unsatisfied {
        /// What it asks for.
        expected: &'static str,
    },
    /// The blueprint asks for something else.
    WrongSort {
        /// What it asks for.
        expected: &'static str,
        /// What is given.
        found: &'static str,
    },
    /// A Target of another type.
    TargetType {
        /// Which element, such as `[0]`; empty for a single target.
        place: String,
        /// The type asked for.
        expected: String,
        /// The type given.
        found: String,
    },
    /// The data does not follow the schema.
    Schema(SchemaError),
    /// The object is encrypted, and not to be read (C-81).
    Undecryptable(UndecryptableData),
    /// With this one, the imports take more memory than they may (C-99).
    TooLarge {
        /// The bytes that they may take.
        most: u64,
    },
}

impl ImportError {
    /// What is wrong with a schema or by it.
    pub fn schema(&self) -> Option<&SchemaError> {
        match self.fault.as_ref() {
            ImportFault::Schema(error) => Some(error),
            _ => None,
        }
    }
}

impl ImportFault {
    /// A CamelCase word for conditions and `lastError`.
    pub fn reason(&self) -> &'static str {
        match self {
            ImportFault::NoSource => "InvalidImport",
            ImportFault::NotFound { .. }
            | ImportFault::NoKey { .. }
            | ImportFault::OwnerGone { .. }
            | ImportFault::NoParent => "ImportNotFound",
            ImportFault::Unsatisfied { .. } => "ImportNotSatisfied",
            ImportFault::Undecryptable(_) => UndecryptableData::REASON,
            ImportFault::TooLarge { .. } => "ImportsTooLarge",
            ImportFault::WrongSort { .. } | ImportFault::TargetType { .. } | ImportFault::Schema(_) => {
                "SchemaValidationFailed"
            }
        }
    }
}

impl fmt::Display for ImportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportFault::NoSource => f.write_str(
                "set exactly one of dataRef, secretRef, configMapRef, or of target, targets, targetListRef, targetMap, targetMapRef",
            ),
            ImportFault::NotFound { kind, name, key } if name == key => write!(
                f,
                "{kind} {name} does not exist; create it, or let another installation export it"
            ),
            ImportFault::NotFound { kind, name, key } => write!(
                f,
                "{kind} {name}, which stands for the key {key:?}, does not exist; let the parent import {key:?} or a sibling export it"
            ),
            ImportFault::NoKey { kind, name, key, known } => {
                write!(f, "{kind} {name} has no key {key:?}; its keys are: {known}")
            }
            ImportFault::OwnerGone { kind, name, owner } => write!(
                f,
                "{kind} {name} was exported by installation {owner}, which does not exist any more; delete the {kind} or install {owner} again"
            ),
            ImportFault::NoParent => f.write_str(
                "targetListRef and targetMapRef name an import of the parent, and a root installation has none; use targets or targetMap",
            ),
            ImportFault::Unsatisfied { expected } => write!(
                f,
                "the blueprint asks for {expected}, and the installation gives nothing; add it to spec.imports, or make it optional by required: false"
            ),
            ImportFault::WrongSort { expected, found } => {
                write!(f, "the blueprint asks for {expected}, and the installation gives {found}")
            }
            ImportFault::TargetType { place, expected, found } => {
                let place = if place.is_empty() { String::new() } else { format!(" {place}") };
                write!(f, "the target{place} is of type {found}, and the blueprint asks for {expected}")
            }
            ImportFault::Schema(error) => write!(f, "{error}"),
            ImportFault::Undecryptable(data) => write!(f, "{data}"),
            ImportFault::TooLarge { most } => write!(
                f,
                "with it, the imports have so many values that they take more than the {most} bytes of memory that those of one \
                 installation may take; import less, or split it into several installations"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
