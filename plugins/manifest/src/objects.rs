//! Kubernetes objects as a configuration holds them: identities, and lists of objects.

use std::fmt;

use orangery_sdk::{ObjectKey, Problem, lenient::Place};
use serde_json::{Map, Value, json};

/// An object with an identity, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) value: Value,
    key: ObjectKey,
    at: String,
}

/// What tells objects apart, whatever version of their group they are written in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    group: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// The object at a place, or every object of a list of them, lists in lists included.
pub(crate) fn expand(place: &Place<'_>) -> Result<Vec<Object>, Problem> {
    if !is_list(place)? {
        return Ok(vec![object(place)?]);
    }
    let mut objects = Vec::new();
    for item in place.items_of("items")? {
        objects.extend(expand(&item)?);
    }
    Ok(objects)
}

/// `List`, or the list of one kind as `kubectl get -o yaml` of older versions gave it: no name of its own, but items.
fn is_list(place: &Place<'_>) -> Result<bool, Problem> {
    let object = place.object()?;
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let has_name = place.value().pointer("/metadata/name").is_some_and(|name| name != "");
    Ok(kind == "List" || kind.ends_with("List") && object.get("items").is_some_and(Value::is_array) && !has_name)
}

fn object(place: &Place<'_>) -> Result<Object, Problem> {
    // Fields of Kubernetes objects are case-sensitive: only the configuration around them is read leniently.
    for field in ["apiVersion", "kind"] {
        exact(place.value(), &format!("/{field}"), place, field)?;
    }
    exact(place.value(), "/metadata/name", place, "metadata.name")?;
    let key = ObjectKey::of(place.value()).ok_or_else(|| place.problem("this is no Kubernetes object"))?;
    Ok(Object { value: place.value().clone(), key, at: place.at().to_owned() })
}

fn exact(value: &Value, pointer: &str, place: &Place<'_>, name: &str) -> Result<(), Problem> {
    match value.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Ok(()),
        Some(Value::Null) | None => {
            Err(Problem::configuration(format!("{}{pointer}", place.at()), format!("the object has no {name}; add it")))
        }
        Some(_) => Err(Problem::configuration(
            format!("{}{pointer}", place.at()),
            format!("{name} of the object has to be a string that is not empty"),
        )),
    }
}

impl Object {
    pub(crate) fn identity(&self) -> Identity {
        let (group, _) = self.key.api_version.rsplit_once('/').unwrap_or_default();
        Identity {
            group: group.to_owned(),
            kind: self.key.kind.clone(),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
        }
    }

    /// The fields that name the object.
    pub(crate) fn identifying_fields(&self) -> Map<String, Value> {
        let mut metadata = Map::from_iter([("name".to_owned(), json!(self.key.name))]);
        metadata.extend(self.key.namespace.iter().map(|namespace| ("namespace".to_owned(), json!(namespace))));
        Map::from_iter([
            ("apiVersion".to_owned(), json!(self.key.api_version)),
            ("kind".to_owned(), json!(self.key.kind)),
            ("metadata".to_owned(), Value::Object(metadata)),
        ])
    }

    pub(crate) fn contradicts(&self, earlier: &Object) -> Problem {
        Problem::configuration(
            self.at.clone(),
            format!(
                "{} stands at {} already, with other content or terms; keep one of them",
                self.identity(),
                earlier.at
            ),
        )
    }
}
