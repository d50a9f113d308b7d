//! Where an installation's imports come from and where its exports go: the form that installations and installation
//! templates share (`docs/wire.md` §1.1, §4.2), and its rules (§3.8).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

/// Where imports come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImportBindings {
    /// Imports of data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataImport>,
    /// Imports of targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetImport>,
}

/// A data import; exactly one of the three references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataImport {
    /// The import's name in the blueprint or the mappings.
    pub name: String,
    /// The key of a DataObject in the context; `#name` takes a DataObject by its own name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub data_ref: String,
    /// A Secret, or one key of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeyReference>,
    /// A ConfigMap, or one key of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<KeyReference>,
}

/// A Secret or ConfigMap of the same namespace, or one key of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyReference {
    /// The object's name.
    pub name: String,
    /// The key; empty means all keys.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// A target import; exactly one source. An explicit empty list or map is a source, an absent one is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetImport {
    /// The import's name in the blueprint.
    pub name: String,
    /// The key of one Target.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The keys of a list of Targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
    /// The parent's target list import of this name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_list_ref: String,
    /// The keys of Targets by map key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_map: Option<BTreeMap<String, String>>,
    /// The parent's target map import of this name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_map_ref: String,
}

/// Where exports go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExportBindings {
    /// Exports of data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataExport>,
    /// Exports of targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetExport>,
}

/// A data export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataExport {
    /// The export's name in the blueprint or the mappings.
    pub name: String,
    /// The key of the DataObject to write.
    pub data_ref: String,
}

/// A target export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetExport {
    /// The export's name in the blueprint.
    pub name: String,
    /// The key of the Target to write.
    pub target: String,
}

/// The one source of a data import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataSource<'a> {
    /// A DataObject by key.
    DataObject(&'a str),
    /// A Secret.
    Secret(&'a KeyReference),
    /// A ConfigMap.
    ConfigMap(&'a KeyReference),
}

/// The one source of a target import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSource<'a> {
    /// One Target by key.
    Target(&'a str),
    /// Targets by key, in order.
    List(&'a [String]),
    /// The parent's list import.
    ListOf(&'a str),
    /// Targets by key, under map keys.
    Map(&'a BTreeMap<String, String>),
    /// The parent's map import.
    MapOf(&'a str),
}

/// What breaks a rule of `docs/wire.md` §3.8, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {fault}")]
pub struct BindingError {
    /// The field, such as `imports.data[0].name`.
    pub path: String,
    /// What is wrong with it.
    pub fault: BindingFault,
}

/// A rule of `docs/wire.md` §3.8 that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingFault {
    /// A field that must be set is not.
    Empty,
    /// A name stands twice.
    Duplicate(String),
    /// None or several of the fields stand of which one must.
    NotOne(&'static [&'static str]),
    /// A map key has another form than Kubernetes allows in a label.
    MapKey(String),
    /// A source that only roots may use.
    RootsOnly,
}

impl fmt::Display for BindingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindingFault::Empty => f.write_str("is empty; set it"),
            BindingFault::Duplicate(name) => write!(f, "{name:?} stands twice; give every entry its own name"),
            BindingFault::NotOne(fields) => write!(f, "set exactly one of {}", fields.join(", ")),
            BindingFault::MapKey(key) => write!(
                f,
                "{key:?} cannot be a key; use at most 63 lower-case letters, digits, `-` and `.`, with a letter or digit at both ends"
            ),
            BindingFault::RootsOnly => {
                f.write_str("installation templates import by dataRef only; import the Secret or ConfigMap in the root installation")
            }
        }
    }
}

const DATA_SOURCES: &[&str] = &["dataRef", "secretRef", "configMapRef"];
const TARGET_SOURCES: &[&str] = &["target", "targets", "targetListRef", "targetMap", "targetMapRef"];

impl DataImport {
    /// Its source; `None` unless exactly one is set.
    pub fn source(&self) -> Option<DataSource<'_>> {
        let reference = Some(self.data_ref.as_str()).filter(|key| !key.is_empty()).map(DataSource::DataObject);
        let secret = self.secret_ref.as_ref().map(DataSource::Secret);
        let config_map = self.config_map_ref.as_ref().map(DataSource::ConfigMap);
        only([reference, secret, config_map])
    }
}

impl TargetImport {
    /// Its source; `None` unless exactly one is set.
    pub fn source(&self) -> Option<TargetSource<'_>> {
        fn text(text: &str) -> Option<&str> {
            Some(text).filter(|text| !text.is_empty())
        }
        only([
            text(&self.target).map(TargetSource::Target),
            self.targets.as_deref().map(TargetSource::List),
            text(&self.target_list_ref).map(TargetSource::ListOf),
            self.target_map.as_ref().map(TargetSource::Map),
            text(&self.target_map_ref).map(TargetSource::MapOf),
        ])
    }
}

fn only<T>(sources: impl IntoIterator<Item = Option<T>>) -> Option<T> {
    let mut set = sources.into_iter().flatten();
    set.next().filter(|_| set.next().is_none())
}

/// The first rule of `docs/wire.md` §3.8 that imports and exports break.
pub fn check(imports: &ImportBindings, exports: &ExportBindings) -> Result<(), BindingError> {
    let mut names = BTreeSet::new();
    for (index, import) in imports.data.iter().enumerate() {
        let path = format!("imports.data[{index}]");
        unique(&mut names, &import.name, &path)?;
        match import.source() {
            None => return Err(fault(path, BindingFault::NotOne(DATA_SOURCES))),
            Some(DataSource::DataObject(_)) => {}
            Some(DataSource::Secret(reference)) => filled(&reference.name, || format!("{path}.secretRef.name"))?,
            Some(DataSource::ConfigMap(reference)) => filled(&reference.name, || format!("{path}.configMapRef.name"))?,
        }
    }
    for (index, import) in imports.targets.iter().enumerate() {
        let path = format!("imports.targets[{index}]");
        unique(&mut names, &import.name, &path)?;
        match import.source() {
            None => return Err(fault(path, BindingFault::NotOne(TARGET_SOURCES))),
            Some(TargetSource::Target(_) | TargetSource::ListOf(_) | TargetSource::MapOf(_)) => {}
            Some(TargetSource::List(keys)) => {
                for (element, key) in keys.iter().enumerate() {
                    filled(key, || format!("{path}.targets[{element}]"))?;
                }
            }
            Some(TargetSource::Map(keys)) => check_map(keys, &path)?,
        }
    }
    check_exports(exports)
}

fn check_map(keys: &BTreeMap<String, String>, path: &str) -> Result<(), BindingError> {
    for (map_key, key) in keys {
        let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let sound = map_key.len() <= 63
            && map_key.starts_with(ends)
            && map_key.ends_with(ends)
            && map_key.chars().all(|c| ends(c) || c == '.' || c == '-');
        if !sound {
            return Err(fault(format!("{path}.targetMap"), BindingFault::MapKey(map_key.clone())));
        }
        filled(key, || format!("{path}.targetMap.{map_key}"))?;
    }
    Ok(())
}

fn check_exports(exports: &ExportBindings) -> Result<(), BindingError> {
    let mut names = BTreeSet::new();
    for (index, export) in exports.data.iter().enumerate() {
        let path = format!("exports.data[{index}]");
        unique(&mut names, &export.name, &path)?;
        filled(&export.data_ref, || format!("{path}.dataRef"))?;
    }
    let mut names = BTreeSet::new();
    for (index, export) in exports.targets.iter().enumerate() {
        let path = format!("exports.targets[{index}]");
        unique(&mut names, &export.name, &path)?;
        filled(&export.target, || format!("{path}.target"))?;
    }
    Ok(())
}

fn fault(path: String, fault: BindingFault) -> BindingError {
    BindingError { path, fault }
}

fn filled(text: &str, path: impl FnOnce() -> String) -> Result<(), BindingError> {
    if text.is_empty() { Err(fault(path(), BindingFault::Empty)) } else { Ok(()) }
}

fn unique<'a>(names: &mut BTreeSet<&'a str>, name: &'a str, path: &str) -> Result<(), BindingError> {
    filled(name, || format!("{path}.name"))?;
    if names.insert(name) {
        Ok(())
    } else {
        Err(fault(format!("{path}.name"), BindingFault::Duplicate(name.to_owned())))
    }
}

#[cfg(test)]
mod tests;
