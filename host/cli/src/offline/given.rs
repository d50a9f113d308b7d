//! What the command line gives of an installation: imports, what its deploy items exported, and what its executions kept.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use orangery_api::target::Target;
use orangery_core::{
    import::{DataValue, Imported, TargetObject},
    lenient::{self, DecodeError},
    yaml::{self, YamlError},
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a file that gives values cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// It cannot be read.
    #[error("{} cannot be read: {cause}; check the path, and that it is UTF-8 text", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// It is no YAML.
    #[error("{}:{}:{}: {}; correct the YAML", path.display(), cause.line, cause.column, cause.reason)]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: YamlError,
    },
    /// It has another form.
    #[error("{}: {cause}; orangery render --help shows the form", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: DecodeError,
    },
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, GivenError> {
    let text = fs::read_to_string(path).map_err(|cause| GivenError::Read { path: path.to_owned(), cause })?;
    let value = yaml::decode(&text).map_err(|cause| GivenError::Yaml { path: path.to_owned(), cause })?;
    lenient::decode(&value).map_err(|cause| GivenError::Form { path: path.to_owned(), cause })
}

/// What is given of one installation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Given {
    /// What the deploy items exported, by item; `None` where that is not known.
    pub deploy_items: Option<Value>,
    /// What executions kept, by list and name.
    pub state: BTreeMap<String, Map<String, Value>>,
    /// What is given of the sub-installations, by their names in the blueprint.
    pub subinstallations: BTreeMap<String, Given>,
}

impl Given {
    /// Reads one of the files.
    ///
    /// # Errors
    /// [`GivenError`]
    pub fn read(path: &Path) -> Result<Self, GivenError> {
        read(path)
    }

    /// Reads a file that gives values of several installations, each under its name.
    ///
    /// # Errors
    /// [`GivenError`]
    pub fn read_named(path: &Path) -> Result<BTreeMap<String, Given>, GivenError> {
        read(path)
    }

    /// Puts what another file gives over this.
    pub fn merge(&mut self, other: Given) {
        if other.deploy_items.is_some() {
            self.deploy_items = other.deploy_items;
        }
        self.state.extend(other.state);
        for (name, more) in other.subinstallations {
            self.subinstallations.entry(name).or_default().merge(more);
        }
    }

    /// What is given of a sub-installation.
    pub fn subinstallation(&self, name: &str) -> Given {
        self.subinstallations.get(name).cloned().unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Imports {
    imports: BTreeMap<String, Value>,
}

/// Reads the imports of a file, each under its name.
///
/// # Errors
/// [`GivenError`]
pub(crate) fn imports(path: &Path) -> Result<BTreeMap<String, Imported>, GivenError> {
    let file: Imports = read(path)?;
    Ok(file.imports.into_iter().map(|(name, value)| (name, imported(value))).collect())
}

/// What a value stands for: a Target object, a list or map of Target objects, or data.
fn imported(value: Value) -> Imported {
    if let Some(target) = target(&value) {
        return Imported::Target(target);
    }
    let targets = match &value {
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(target).collect::<Option<_>>().map(Imported::TargetList)
        }
        Value::Object(entries) if !entries.is_empty() => {
            let entry = |(key, value): (&String, &Value)| Some((key.clone(), target(value)?));
            entries.iter().map(entry).collect::<Option<_>>().map(Imported::TargetMap)
        }
        _ => None,
    };
    targets.unwrap_or_else(|| Imported::Data(DataValue { value, ..DataValue::default() }))
}

fn target(value: &Value) -> Option<TargetObject> {
    let is_target = value.get("kind").and_then(Value::as_str) == Some("Target") && value.get("spec").is_some();
    let object: Target = is_target.then(|| serde_json::from_value(value.clone()).ok()).flatten()?;
    Some(TargetObject { object: value.clone(), ..TargetObject::from(&object) })
}
