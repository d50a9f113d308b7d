//! What the command line gives of an installation: imports, what its deploy items exported, and what its executions kept.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use orangery_api::target::Target;
use orangery_blueprint::import::{DataValue, Imported, TargetObject};
use orangery_core::{
    digest,
    lenient::{self, DecodeError},
    name::ObjectName,
    yaml::{self, YamlError},
};
use serde::{Deserialize, de::DeserializeOwned};
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

/// What a file has to look like.
type FileCheck = fn(&Value) -> Result<(), DecodeError>;

fn read<T: DeserializeOwned>(path: &Path, form: FileCheck) -> Result<T, GivenError> {
    let text = fs::read_to_string(path).map_err(|cause| GivenError::Read { path: path.to_owned(), cause })?;
    let value = yaml::decode(&text).map_err(|cause| GivenError::Yaml { path: path.to_owned(), cause })?;
    let decoded = form(&value).and_then(|()| lenient::decode(&value));
    decoded.map_err(|cause| GivenError::Form { path: path.to_owned(), cause })
}

/// Refuses a field that is not known: one that is spelled wrong would say nothing.
pub(crate) fn fields(of: &Value, known: &[&str]) -> Result<(), DecodeError> {
    let unknown = of.as_object().into_iter().flat_map(Map::keys).find(|name| !known.contains(&name.as_str()));
    let reason = |name: &String| format!("there is no field {name:?}; fields are: {}", known.join(", "));
    unknown.map_or(Ok(()), |name| Err(DecodeError { path: String::new(), reason: reason(name) }))
}

fn below<'a>(place: &str, of: impl Iterator<Item = (&'a String, &'a Value)>) -> Result<(), DecodeError> {
    for (name, value) in of {
        Given::form(value).map_err(|DecodeError { path, reason }| {
            let above = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            DecodeError { path: if path.is_empty() { above } else { format!("{above}.{path}") }, reason }
        })?;
    }
    Ok(())
}

/// What is given of one installation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Given {
    /// The name of its object, where it is a sub-installation; `None` where that is not known, and its name in the
    /// blueprint stands for it.
    pub object_name: Option<ObjectName>,
    /// What the deploy items exported, by item; `None` where that is not known.
    pub deploy_items: Option<Map<String, Value>>,
    /// What executions kept, by list and name.
    pub state: BTreeMap<String, Map<String, Value>>,
    /// What is given of the sub-installations, by their names in the blueprint.
    pub subinstallations: BTreeMap<String, Given>,
    /// Where it comes from.
    #[serde(skip)]
    pub origin: GivenOrigin,
}

/// Where what is given of an installation comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GivenOrigin {
    /// The command line: it names what is there, and of items that it does not name nothing was exported.
    #[default]
    CommandLine,
    /// The cluster, as the last job has left it: it may have what is no longer rendered, and of items that it does not name
    /// nothing is known.
    Cluster,
}

impl Given {
    /// Reads one of the files.
    ///
    /// # Errors
    /// [`GivenError`]
    pub fn read(path: &Path) -> Result<Self, GivenError> {
        read(path, Self::form)
    }

    /// Reads a file that gives values of several installations, each under its name.
    ///
    /// # Errors
    /// [`GivenError`]
    pub fn read_named(path: &Path) -> Result<BTreeMap<String, Given>, GivenError> {
        read(path, |value| below("", value.as_object().into_iter().flatten()))
    }

    /// Whether a value has the form of one of the files.
    ///
    /// # Errors
    /// A field that nobody knows.
    pub(crate) fn form(value: &Value) -> Result<(), DecodeError> {
        fields(value, &["objectName", "deployItems", "state", "subinstallations"])?;
        let subs = value.get("subinstallations").and_then(Value::as_object);
        below("subinstallations", subs.into_iter().flatten())
    }

    /// Puts what another file gives over this.
    pub fn merge(&mut self, other: Given) {
        self.object_name = other.object_name.or(self.object_name.take());
        self.deploy_items = other.deploy_items.or(self.deploy_items.take());
        self.state.extend(other.state);
        for (name, more) in other.subinstallations {
            self.subinstallations.entry(name).or_default().merge(more);
        }
    }

    /// What is given of a sub-installation.
    pub fn subinstallation(&self, name: &str) -> Given {
        let new = || Given { origin: self.origin, ..Given::default() };
        self.subinstallations.get(name).cloned().unwrap_or_else(new)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportFields {
    imports: BTreeMap<String, Value>,
}

/// Reads the imports of a file, each under its name.
///
/// # Errors
/// [`GivenError`]
pub(crate) fn imports(path: &Path) -> Result<BTreeMap<String, Imported>, GivenError> {
    let file: ImportFields = read(path, |value| fields(value, &["imports"]))?;
    Ok(file.imports.into_iter().map(|(name, value)| (name, imported(value))).collect())
}

/// Reads a component descriptor.
///
/// # Errors
/// [`GivenError`]
pub(crate) fn descriptor(path: &Path) -> Result<Value, GivenError> {
    read(path, |_| Ok(()))
}

/// What a value stands for: a Target object, a list or map of Target objects, or data.
pub(crate) fn imported(value: Value) -> Imported {
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

/// The randomness that a text stands for. It is no secret here: the user gives it.
pub(crate) fn seed(text: &str) -> [u8; 32] {
    let digest = digest::sha256(text.as_bytes());
    let mut seed = [0; 32];
    seed.iter_mut().zip(digest.bytes().rev()).for_each(|(to, from)| *to = from);
    seed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_spelled_wrong_is_told_with_its_place() {
        let message = |value: Value| Given::form(&value).unwrap_err().to_string();
        let fields = "fields are: objectName, deployItems, state, subinstallations";
        assert_eq!(message(json!({"values": {}})), format!("there is no field \"values\"; {fields}"));
        let deep = json!({"subinstallations": {"a": {"subinstallations": {"b": {"States": 1}}}}});
        let place = "subinstallations.a.subinstallations.b";
        assert_eq!(message(deep), format!("{place}: there is no field \"States\"; {fields}"));
        assert_eq!(Given::form(&json!({"deployItems": {"any": {}}, "state": null})), Ok(()));
    }

    #[test]
    fn imports_that_are_whole_targets_are_targets() {
        let target = |name: &str| json!({"kind": "Target", "metadata": {"name": name}, "spec": {"type": "x/y"}});
        let sort = |value: Value| match imported(value) {
            Imported::Data(_) => "data".to_owned(),
            Imported::Target(target) => target.name,
            Imported::TargetList(list) => format!("{} of a list", list.len()),
            Imported::TargetMap(map) => format!("{} of a map", map.len()),
        };
        assert_eq!(sort(target("t")), "t");
        assert_eq!(sort(json!([target("t"), target("u")])), "2 of a list");
        assert_eq!(sort(json!({"a": target("t")})), "1 of a map");
        for data in [json!([]), json!({}), json!([target("t"), 1]), json!({"kind": "Target"}), json!({"spec": {}})] {
            assert_eq!(sort(data), "data");
        }
    }
}
