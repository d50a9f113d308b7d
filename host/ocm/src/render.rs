//! Descriptors as templates see them, in either schema (`docs/wire.md` §4.4).
//!
//! The original keeps descriptors in a model older than both schemas, so some fields never reach a template, whatever
//! its schema: `version`, `signing` and `merge` of labels, source references, issuers of signatures. Templates see the
//! same here.

use serde_json::{Map, Value, json};

use super::{
    ComponentVersionReference, ComponentVersionSource, Descriptor, DescriptorSchema, Element, Label, Resource,
    Signature,
};

impl Descriptor {
    /// The descriptor in a schema.
    pub fn render(&self, schema: DescriptorSchema) -> Value {
        match schema {
            DescriptorSchema::V2 => self.v2(),
            DescriptorSchema::V3Alpha1 => self.v3(),
        }
    }

    fn v2(&self) -> Value {
        let mut component = Map::new();
        component.insert("name".to_owned(), json!(self.name));
        component.insert("version".to_owned(), json!(self.version));
        set_labels(&mut component, &self.labels);
        component.insert("repositoryContexts".to_owned(), json!(self.repository_contexts));
        component.insert("provider".to_owned(), json!(self.provider_text()));
        component.insert("sources".to_owned(), self.sources.iter().map(source).collect());
        component.insert("componentReferences".to_owned(), self.references.iter().map(reference).collect());
        component.insert("resources".to_owned(), self.resources.iter().map(resource).collect());
        if let Some(time) = &self.creation_time {
            component.insert("creationTime".to_owned(), json!(time));
        }
        let mut document = Map::new();
        document.insert("meta".to_owned(), json!({ "schemaVersion": DescriptorSchema::V2.name() }));
        document.insert("component".to_owned(), Value::Object(component));
        self.set_signatures(&mut document);
        Value::Object(document)
    }

    fn v3(&self) -> Value {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(self.name));
        metadata.insert("version".to_owned(), json!(self.version));
        set_labels(&mut metadata, &self.labels);
        metadata.insert("provider".to_owned(), json!(self.provider));
        if let Some(time) = &self.creation_time {
            metadata.insert("creationTime".to_owned(), json!(time));
        }
        let mut spec = Map::new();
        let mut set = |name: &str, items: Vec<Value>| {
            if !items.is_empty() {
                spec.insert(name.to_owned(), Value::Array(items));
            }
        };
        set("sources", self.sources.iter().map(source).collect());
        set("references", self.references.iter().map(reference).collect());
        set("resources", self.resources.iter().map(resource).collect());
        let mut document = Map::new();
        document.insert("apiVersion".to_owned(), json!(DescriptorSchema::V3Alpha1.name()));
        document.insert("kind".to_owned(), json!("ComponentVersion"));
        document.insert("metadata".to_owned(), Value::Object(metadata));
        document.insert("repositoryContexts".to_owned(), json!(self.repository_contexts));
        document.insert("spec".to_owned(), Value::Object(spec));
        self.set_signatures(&mut document);
        Value::Object(document)
    }

    /// The provider in schema v2: its name, or JSON where it has labels.
    pub(super) fn provider_text(&self) -> String {
        if self.provider.labels.is_empty() {
            return self.provider.name.clone();
        }
        // From the structure, not from a map: the name stands first. It has no map with other keys than texts.
        serde_json::to_string(&self.provider).unwrap_or_else(|_| self.provider.name.clone())
    }

    fn set_signatures(&self, document: &mut Map<String, Value>) {
        if !self.signatures.is_empty() {
            document.insert("signatures".to_owned(), self.signatures.iter().map(signature).collect());
        }
    }
}

/// The input `components` of templates: all descriptors, in a schema.
pub fn list<'a>(descriptors: impl IntoIterator<Item = &'a Descriptor>, schema: DescriptorSchema) -> Value {
    let all: Vec<Value> = descriptors.into_iter().map(|descriptor| descriptor.render(schema)).collect();
    match schema {
        DescriptorSchema::V2 => json!({ "meta": { "schemaVersion": DescriptorSchema::V2.name() }, "components": all }),
        DescriptorSchema::V3Alpha1 => Value::Array(all),
    }
}

impl Resource {
    /// The resource as templates see it, the same in both schemas.
    pub fn render(&self) -> Value {
        resource(self)
    }
}

fn resource(resource: &Resource) -> Value {
    let mut map = element(&resource.element);
    map.insert("type".to_owned(), json!(resource.type_));
    if let Some(digest) = &resource.digest {
        map.insert("digest".to_owned(), json!(digest));
    }
    if !resource.relation.is_empty() {
        map.insert("relation".to_owned(), json!(resource.relation));
    }
    map.insert("access".to_owned(), json!(resource.access));
    Value::Object(map)
}

fn source(source: &ComponentVersionSource) -> Value {
    let mut map = element(&source.element);
    map.insert("type".to_owned(), json!(source.type_));
    map.insert("access".to_owned(), json!(source.access));
    Value::Object(map)
}

fn reference(reference: &ComponentVersionReference) -> Value {
    let mut map = element(&reference.element);
    map.insert("componentName".to_owned(), json!(reference.component));
    if let Some(digest) = &reference.digest {
        map.insert("digest".to_owned(), json!(digest));
    }
    Value::Object(map)
}

fn signature(signature: &Signature) -> Value {
    json!({
        "name": signature.name,
        "digest": signature.digest,
        "signature": {
            "algorithm": signature.signature.algorithm,
            "value": signature.signature.value,
            "mediaType": signature.signature.media_type,
        },
    })
}

fn element(element: &Element) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(element.name));
    map.insert("version".to_owned(), json!(element.version));
    if !element.extra_identity.is_empty() {
        map.insert("extraIdentity".to_owned(), json!(element.extra_identity));
    }
    set_labels(&mut map, &element.labels);
    map
}

fn set_labels(map: &mut Map<String, Value>, labels: &[Label]) {
    if !labels.is_empty() {
        let labels = labels.iter().map(|label| json!({ "name": label.name, "value": label.value }));
        map.insert("labels".to_owned(), labels.collect());
    }
}
