//! The normal form of a descriptor, whose digest is what signatures and component references name.
//!
//! The rules are those of the original's library, its oversights included, since every signature in the world depends on
//! them: `jsonNormalisation/v1` is made of the schema as written, v2 and v3 of a model behind both schemas, in which
//! labels of component references are never left out.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
};

use serde_json::{Map, Number, Value, json};

use super::{
    ComponentVersionReference, ComponentVersionSource, Descriptor, DescriptorSchema, Element, Label, Provider, Resource,
};

/// How a normal form is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalisation {
    /// `jsonNormalisation/v1`
    V1,
    /// `jsonNormalisation/v2`
    V2,
    /// `jsonNormalisation/v3`
    V3,
}

impl Normalisation {
    /// The algorithm of a name, as digests write it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "jsonNormalisation/v1" => Some(Normalisation::V1),
            "jsonNormalisation/v2" => Some(Normalisation::V2),
            "jsonNormalisation/v3" => Some(Normalisation::V3),
            _ => None,
        }
    }
}

impl Descriptor {
    /// The normal form, as text.
    pub fn normalised(&self, by: Normalisation) -> String {
        let resources = match by {
            Normalisation::V1 | Normalisation::V2 => told_apart(&self.resources),
            Normalisation::V3 => self.resources.clone(),
        };
        match (by, self.schema) {
            (Normalisation::V1, DescriptorSchema::V2) => entries(&self.v1_of_v2(&resources)),
            (Normalisation::V1, DescriptorSchema::V3Alpha1) => entries(&self.v1_of_v3(&resources)),
            (Normalisation::V2 | Normalisation::V3, _) => canonical(&self.model(&resources)),
        }
    }

    fn v1_of_v2(&self, resources: &[Resource]) -> Value {
        let null = |mut map: Map<String, Value>| {
            map.entry("extraIdentity").or_insert(Value::Null);
            Value::Object(map)
        };
        let mut component = self.head();
        // A provider without labels is a text in this schema.
        let provider = match self.provider.labels.is_empty() {
            true => json!(self.provider.name),
            false => provider(&self.provider),
        };
        component.insert("provider".to_owned(), provider);
        component.insert("resources".to_owned(), resources.iter().map(|item| null(resource(item))).collect());
        let references = self.references.iter().map(|item| null(reference(item, signed(&item.element.labels))));
        component.insert("componentReferences".to_owned(), references.collect());
        json!({ "meta": { "schemaVersion": self.schema.name() }, "component": component })
    }

    fn v1_of_v3(&self, resources: &[Resource]) -> Value {
        let mut metadata = self.head();
        metadata.insert("provider".to_owned(), json!(self.provider));
        let mut spec = Map::new();
        let mut set = |name: &str, items: Vec<Value>| {
            if !items.is_empty() {
                spec.insert(name.to_owned(), Value::Array(items));
            }
        };
        set("sources", self.sources.iter().map(source).collect());
        let references = self.references.iter().map(|item| reference(item, signed(&item.element.labels)).into());
        set("references", references.collect());
        set("resources", resources.iter().map(|item| resource(item).into()).collect());
        json!({ "apiVersion": self.schema.name(), "kind": "ComponentVersion", "metadata": metadata, "spec": spec })
    }

    fn model(&self, resources: &[Resource]) -> Value {
        let mut component = self.head();
        component.insert("provider".to_owned(), provider(&self.provider));
        component.insert("sources".to_owned(), self.sources.iter().map(source).collect());
        let references = self.references.iter().map(|item| {
            let all: Vec<Value> = item.element.labels.iter().map(|label| json!(label)).collect();
            Value::Object(reference(item, all))
        });
        component.insert("componentReferences".to_owned(), references.collect());
        component.insert("resources".to_owned(), resources.iter().map(|item| Value::Object(resource(item))).collect());
        json!({ "component": component })
    }

    /// Name, version, labels and time.
    fn head(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("name".to_owned(), json!(self.name));
        map.insert("version".to_owned(), json!(self.version));
        set_labels(&mut map, signed(&self.labels));
        if let Some(time) = &self.creation_time {
            map.insert("creationTime".to_owned(), json!(time));
        }
        map
    }
}

/// Resources of one name and extra identity get their version as extra identity, as long as another of them is left.
fn told_apart(resources: &[Resource]) -> Vec<Resource> {
    let mut resources = resources.to_vec();
    let identity = |resource: &Resource| (resource.element.name.clone(), resource.element.extra_identity.clone());
    let mut alike: HashMap<(String, BTreeMap<String, String>), usize> = HashMap::new();
    for resource in &resources {
        *alike.entry(identity(resource)).or_default() += 1;
    }
    for resource in &mut resources {
        let Some(count) = alike.get_mut(&identity(resource)).filter(|count| **count > 1) else { continue };
        *count -= 1;
        let version = resource.element.version.clone();
        resource.element.extra_identity.insert("version".to_owned(), version);
        *alike.entry(identity(resource)).or_default() += 1;
    }
    resources
}

/// The labels that signatures cover.
fn signed(labels: &[Label]) -> Vec<Value> {
    let signed = labels.iter().filter(|label| label.signing);
    signed.map(|label| json!(Label { merge: None, ..label.clone() })).collect()
}

fn set_labels(map: &mut Map<String, Value>, labels: Vec<Value>) {
    if !labels.is_empty() {
        map.insert("labels".to_owned(), Value::Array(labels));
    }
}

fn provider(provider: &Provider) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(provider.name));
    set_labels(&mut map, signed(&provider.labels));
    Value::Object(map)
}

fn element(element: &Element, labels: Vec<Value>) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(element.name));
    map.insert("version".to_owned(), json!(element.version));
    if !element.extra_identity.is_empty() {
        map.insert("extraIdentity".to_owned(), json!(element.extra_identity));
    }
    set_labels(&mut map, labels);
    map
}

fn source(source: &ComponentVersionSource) -> Value {
    let mut map = element(&source.element, signed(&source.element.labels));
    map.insert("type".to_owned(), json!(source.type_));
    Value::Object(map)
}

fn reference(reference: &ComponentVersionReference, labels: Vec<Value>) -> Map<String, Value> {
    let mut map = element(&reference.element, labels);
    map.insert("componentName".to_owned(), json!(reference.component));
    if let Some(digest) = &reference.digest {
        map.insert("digest".to_owned(), json!(digest));
    }
    map
}

fn resource(resource: &Resource) -> Map<String, Value> {
    let mut map = element(&resource.element, signed(&resource.element.labels));
    map.insert("type".to_owned(), json!(resource.type_));
    if !resource.relation.is_empty() {
        map.insert("relation".to_owned(), json!(resource.relation));
    }
    if let Some(digest) = resource.digest.as_ref().filter(|_| !resource.has_no_content()) {
        map.insert("digest".to_owned(), json!(digest));
    }
    map
}

impl Resource {
    /// Whether its access says that there is no content.
    pub fn has_no_content(&self) -> bool {
        let type_ = self.access.as_ref().and_then(|access| access.get("type")).and_then(Value::as_str);
        type_.is_some_and(|type_| type_ == "none" || type_ == "None")
    }
}

/// Objects as lists of single fields, sorted by name.
fn entries(value: &Value) -> String {
    let mut text = String::new();
    write_entries(value, &mut text);
    text
}

fn write_entries(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut names: Vec<_> = map.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            list(text, names, |(name, value), text| {
                text.push('{');
                write_text(name, Escapes::Go, text);
                text.push(':');
                write_entries(value, text);
                text.push('}');
            });
        }
        Value::Array(items) => list(text, items, write_entries),
        Value::String(string) => write_text(string, Escapes::Go, text),
        Value::Number(number) => write_number(number, text),
        Value::Null | Value::Bool(_) => write_plain(value, text),
    }
}

/// RFC 8785.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut names: Vec<_> = map.iter().collect();
            names.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            text.push('{');
            for (index, (name, value)) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_text(name, Escapes::Json, text);
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => list(text, items, write_canonical),
        Value::String(string) => write_text(string, Escapes::Json, text),
        Value::Number(number) => write_number(number, text),
        Value::Null | Value::Bool(_) => write_plain(value, text),
    }
}

fn list<T>(text: &mut String, items: impl IntoIterator<Item = T>, mut write: impl FnMut(T, &mut String)) {
    text.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(']');
}

/// `null`, `true` or `false`.
fn write_plain(value: &Value, text: &mut String) {
    text.push_str(&value.to_string());
}

#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    /// What JSON asks for.
    Json,
    /// What Go escapes beyond that, so that JSON can stand in HTML.
    Go,
}

fn write_text(string: &str, escapes: Escapes, text: &mut String) {
    let quoted = Value::from(string).to_string();
    if escapes == Escapes::Json {
        text.push_str(&quoted);
        return;
    }
    for char in quoted.chars() {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text.push_str(&format!("\\u{:04x}", u32::from(char))),
            other => text.push(other),
        }
    }
}

/// As Go and ECMAScript write a number of double precision: shortest digits, an exponent beyond 1e21 and below 1e-6.
fn write_number(number: &Number, text: &mut String) {
    let Some(number) = number.as_f64() else { return };
    let size = number.abs();
    let written = if size == 0.0 {
        text.push('0');
        Ok(())
    } else if (1e-6..1e21).contains(&size) {
        write!(text, "{number}")
    } else {
        let digits = format!("{number:e}");
        let sign = if digits.contains("e-") { "e" } else { "e+" };
        write!(text, "{}", digits.replacen('e', sign, 1))
    };
    debug_assert!(written.is_ok(), "writing to a text never fails");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, an extra identity and a version.
    type Named<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

    fn identities(resources: &[Named<'_>]) -> Vec<BTreeMap<String, String>> {
        let resources: Vec<Resource> = resources
            .iter()
            .map(|(name, identity, version)| {
                let mut resource = Resource::default();
                resource.element.name = (*name).to_owned();
                resource.element.version = (*version).to_owned();
                resource.element.extra_identity =
                    identity.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
                resource
            })
            .collect();
        told_apart(&resources).into_iter().map(|resource| resource.element.extra_identity).collect()
    }

    #[test]
    fn resources_of_one_identity_are_told_apart_by_their_versions_but_for_the_last() {
        let version = |version: &str| BTreeMap::from([("version".to_owned(), version.to_owned())]);
        let none = BTreeMap::new;
        let alike: &[Named<'_>] = &[("a", &[], "1"), ("b", &[], "1"), ("a", &[], "2"), ("a", &[], "3")];
        assert_eq!(identities(alike), [version("1"), none(), version("2"), none()]);
        // One that is told apart can be alike to another one, which is told apart from it in its turn.
        let again: &[Named<'_>] = &[("a", &[], "1"), ("a", &[], "2"), ("a", &[("version", "1")], "4")];
        assert_eq!(identities(again), [version("1"), none(), version("4")]);
    }
}
