//! A component descriptor: one model for the schemas `v2` and `ocm.software/v3alpha1`.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Digest, NestedDigests};
use orangery_core::{
    lenient::{self, DecodeError},
    memory,
    name::ApiVersion,
};

/// How a descriptor is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DescriptorSchema {
    /// `meta.schemaVersion: v2`
    V2,
    /// `apiVersion: ocm.software/v3alpha1`
    V3Alpha1,
}

impl DescriptorSchema {
    /// The schema of a name, as descriptors and the blueprint annotation `ocmSchemaVersion` write it.
    pub fn named(name: &str) -> Option<Self> {
        [DescriptorSchema::V2, DescriptorSchema::V3Alpha1].into_iter().find(|schema| schema.name() == name)
    }

    /// `v2` or `ocm.software/v3alpha1`.
    pub fn name(self) -> &'static str {
        match self {
            DescriptorSchema::V2 => "v2",
            DescriptorSchema::V3Alpha1 => "ocm.software/v3alpha1",
        }
    }
}

impl fmt::Display for DescriptorSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One version of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// How it was written.
    pub schema: DescriptorSchema,
    /// The component's name, such as `example.com/shop`.
    pub name: String,
    /// The component's version.
    pub version: String,
    /// Labels of the component version.
    pub labels: Vec<Label>,
    /// Its maker.
    pub provider: Provider,
    /// When it was made, as written.
    pub creation_time: Option<String>,
    /// The repositories that it has gone through; the last one is the effective one.
    pub repository_contexts: Vec<Value>,
    /// What it was made from.
    pub sources: Vec<ComponentVersionSource>,
    /// The component versions that it needs.
    pub references: Vec<ComponentVersionReference>,
    /// What it brings.
    pub resources: Vec<Resource>,
    /// Its signatures.
    pub signatures: Vec<Signature>,
    /// The digests of component versions below it, where they stand in no other descriptor.
    pub nested_digests: Vec<NestedDigests>,
}

/// The maker of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// The name.
    pub name: String,
    /// Labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

/// A label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// The name.
    pub name: String,
    /// Any JSON.
    pub value: Value,
    /// The version of the value's form.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Whether signatures cover it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub signing: bool,
    /// How values are merged when a component version is transported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Value>,
}

/// What sources, references and resources have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Element {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// What tells elements of one name apart.
    pub extra_identity: BTreeMap<String, String>,
    /// Labels.
    pub labels: Vec<Label>,
}

/// What a component was made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentVersionSource {
    /// Name and identity.
    pub element: Element,
    /// The type, such as `git`.
    pub type_: String,
    /// Where it is.
    pub access: Option<Value>,
}

/// Another component version that this one needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentVersionReference {
    /// Name of the reference, version of the component, identity.
    pub element: Element,
    /// The name of the component.
    pub component: String,
    /// The digest of the component's descriptor.
    pub digest: Option<Digest>,
}

/// What a component brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Name and identity.
    pub element: Element,
    /// The type, such as `landscaper.gardener.cloud/blueprint`.
    pub type_: String,
    /// `local` or `external`.
    pub relation: String,
    /// The sources it was made from, as written.
    pub source_references: Vec<Value>,
    /// Where it is.
    pub access: Option<Value>,
    /// The digest of its content.
    pub digest: Option<Digest>,
}

/// A digest of a descriptor, and its signature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signature {
    /// The name that installations ask for.
    pub name: String,
    /// What is signed.
    pub digest: Digest,
    /// The signature.
    pub signature: SignatureValue,
}

/// A signature as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SignatureValue {
    /// Such as `RSASSA-PKCS1-V1_5`.
    pub algorithm: String,
    /// In the form that the media type says.
    pub value: String,
    /// Such as `application/vnd.ocm.signature.rsa`.
    pub media_type: String,
    /// The distinguished name of the signer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issuer: String,
}

/// What is no component descriptor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// Neither schema.
    #[error(
        "the component descriptor has the schema {found:?}; known are meta.schemaVersion: v2 and apiVersion: ocm.software/v3alpha1"
    )]
    Schema {
        /// What it says of its schema.
        found: String,
    },
    /// A field has another form.
    #[error("the component descriptor has a wrong form: {0}")]
    Form(#[from] DecodeError),
    /// A field that must be there.
    #[error("the component descriptor has no {field}; set it")]
    Missing {
        /// The field.
        field: String,
    },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DescriptorHead {
    meta: Meta,
    api_version: ApiVersion,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    schema_version: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct V2Form {
    component: V2Component,
    signatures: Vec<Signature>,
    #[serde(rename = "nestedDigests")]
    nested_digests: Vec<NestedDigests>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct V2Component {
    name: String,
    version: String,
    labels: Vec<Label>,
    provider: String,
    creation_time: Option<String>,
    repository_contexts: Vec<Value>,
    sources: Vec<ElementForm>,
    component_references: Vec<ElementForm>,
    resources: Vec<ElementForm>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct V3Form {
    metadata: V3Metadata,
    repository_contexts: Vec<Value>,
    spec: V3Spec,
    signatures: Vec<Signature>,
    nested_digests: Vec<NestedDigests>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct V3Metadata {
    name: String,
    version: String,
    labels: Vec<Label>,
    provider: Provider,
    creation_time: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct V3Spec {
    sources: Vec<ElementForm>,
    references: Vec<ElementForm>,
    resources: Vec<ElementForm>,
}

/// The fields of all three sorts of elements; each sort has its own.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ElementForm {
    name: String,
    version: String,
    extra_identity: BTreeMap<String, String>,
    labels: Vec<Label>,
    #[serde(rename = "type")]
    type_: String,
    relation: String,
    src_refs: Vec<Value>,
    src_ref: Vec<Value>,
    access: Option<Value>,
    digest: Option<Digest>,
    component_name: String,
}

impl Descriptor {
    /// Reads a descriptor of either schema.
    pub fn parse(document: &Value) -> Result<Self, DescriptorError> {
        let head: DescriptorHead = lenient::decode(document)?;
        let name = if head.api_version.is_empty() { head.meta.schema_version } else { head.api_version.into() };
        let descriptor = match DescriptorSchema::named(&name) {
            Some(DescriptorSchema::V2) => v2(lenient::decode(document)?),
            Some(DescriptorSchema::V3Alpha1) => v3(lenient::decode(document)?),
            None => return Err(DescriptorError::Schema { found: name }),
        };
        descriptor.check()?;
        Ok(descriptor)
    }

    /// What nothing can be resolved without.
    fn check(&self) -> Result<(), DescriptorError> {
        let missing = |field: String| Err(DescriptorError::Missing { field });
        if self.name.is_empty() {
            return missing("component name".to_owned());
        }
        if self.version.is_empty() {
            return missing(format!("version (component {:?})", self.name));
        }
        for (index, resource) in self.resources.iter().enumerate() {
            if resource.element.name.is_empty() {
                return missing(format!("name in resource {index} of {}:{}", self.name, self.version));
            }
        }
        for (index, reference) in self.references.iter().enumerate() {
            if reference.element.name.is_empty() || reference.component.is_empty() {
                return missing(format!(
                    "name or componentName in reference {index} of {}:{}",
                    self.name, self.version
                ));
            }
        }
        Ok(())
    }

    /// The repository it is in: the last of its contexts.
    pub fn repository_context(&self) -> Option<&Value> {
        self.repository_contexts.last()
    }

    /// The reference of this name.
    pub fn reference(&self, name: &str) -> Option<&ComponentVersionReference> {
        self.references.iter().find(|reference| reference.element.name == name)
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.version)
    }
}

fn v2(form: V2Form) -> Descriptor {
    let V2Form { component, signatures, nested_digests } = form;
    Descriptor {
        schema: DescriptorSchema::V2,
        name: component.name,
        version: component.version,
        labels: component.labels,
        provider: provider(component.provider),
        creation_time: component.creation_time,
        repository_contexts: component.repository_contexts,
        sources: component.sources.into_iter().map(ElementForm::source).collect(),
        references: component.component_references.into_iter().map(ElementForm::reference).collect(),
        resources: component.resources.into_iter().map(ElementForm::resource).collect(),
        signatures,
        nested_digests,
    }
}

fn v3(form: V3Form) -> Descriptor {
    let V3Form { metadata, repository_contexts, spec, signatures, nested_digests } = form;
    Descriptor {
        schema: DescriptorSchema::V3Alpha1,
        name: metadata.name,
        version: metadata.version,
        labels: metadata.labels,
        provider: metadata.provider,
        creation_time: metadata.creation_time,
        repository_contexts,
        sources: spec.sources.into_iter().map(ElementForm::source).collect(),
        references: spec.references.into_iter().map(ElementForm::reference).collect(),
        resources: spec.resources.into_iter().map(ElementForm::resource).collect(),
        signatures,
        nested_digests,
    }
}

/// Bytes of memory of a provider with labels in schema v2; a text that would take more is a name.
const MOST_OF_A_PROVIDER: u64 = 64 << 10;

/// Schema v2 has a text; a provider with labels is JSON in it.
fn provider(text: String) -> Provider {
    if memory::of_json(&text) > MOST_OF_A_PROVIDER {
        return Provider { name: text, labels: Vec::new() };
    }
    serde_json::from_str(&text).unwrap_or(Provider { name: text, labels: Vec::new() })
}

impl ElementForm {
    fn element(&mut self) -> Element {
        Element {
            name: std::mem::take(&mut self.name),
            version: std::mem::take(&mut self.version),
            extra_identity: std::mem::take(&mut self.extra_identity),
            labels: std::mem::take(&mut self.labels),
        }
    }

    fn source(mut self) -> ComponentVersionSource {
        ComponentVersionSource { element: self.element(), type_: self.type_, access: self.access }
    }

    fn reference(mut self) -> ComponentVersionReference {
        ComponentVersionReference { element: self.element(), component: self.component_name, digest: self.digest }
    }

    fn resource(mut self) -> Resource {
        let source_references = if self.src_refs.is_empty() { self.src_ref.clone() } else { self.src_refs.clone() };
        Resource {
            element: self.element(),
            type_: self.type_,
            relation: self.relation,
            source_references,
            access: self.access,
            digest: self.digest,
        }
    }
}
