//! The objects that stand for those of a cluster: what manifests hold, and what installations write.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt as _;
use orangery_api::{
    context::{Context, DEFAULT_CONTEXT},
    convert::{ContextNames, ContextObjects, data_value, export_occupant, write_data_object, write_target},
    data_object::DataObject,
    installation::Installation,
    label,
    marks::Marks as _,
    overwrites::ComponentVersionOverwrites,
    target::Target,
};
use orangery_blueprint::{
    export::ExportOccupant,
    import::{DataValue, Sources, TargetObject},
    record::{Record, RecordContent, UndecryptableData},
};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde::de::DeserializeOwned;

use crate::folder::{FolderManifest, ObjectOrigin};

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: this {kind} has a wrong form: {cause}; compare it with: orangery crd")]
pub struct WorldError {
    /// Where it stands.
    pub origin: ObjectOrigin,
    /// Its kind.
    pub kind: Kind,
    /// Why.
    pub cause: String,
}

/// All objects of one namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespaceObjects {
    data_objects: BTreeMap<ObjectName, DataObject>,
    targets: BTreeMap<ObjectName, Target>,
    secrets: BTreeMap<ObjectName, BTreeMap<String, Vec<u8>>>,
    config_maps: BTreeMap<ObjectName, BTreeMap<String, Vec<u8>>>,
    contexts: BTreeMap<ObjectName, Context>,
    overwrites: BTreeMap<ObjectName, ComponentVersionOverwrites>,
    installations: BTreeSet<ObjectName>,
}

fn parsed<T: DeserializeOwned>(manifest: &FolderManifest) -> Result<T, WorldError> {
    serde_json::from_value(manifest.object.clone()).map_err(|error| WorldError {
        origin: manifest.origin.clone(),
        kind: manifest.kind.clone(),
        cause: error.to_string(),
    })
}

/// A DataObject, whose data nobody can decrypt here (C-81).
fn readable(manifest: &FolderManifest) -> Result<DataObject, WorldError> {
    let object: DataObject = parsed(manifest)?;
    if object.encrypted().is_none() {
        return Ok(object);
    }
    let cause =
        "its data is encrypted with the key of an operator, which alone can read it; write the value itself there";
    Err(WorldError { origin: manifest.origin.clone(), kind: manifest.kind.clone(), cause: cause.to_owned() })
}

fn bytes(data: Option<BTreeMap<String, ByteString>>) -> impl Iterator<Item = (String, Vec<u8>)> {
    data.into_iter().flatten().map(|(key, ByteString(bytes))| (key, bytes))
}

fn texts(data: Option<BTreeMap<String, String>>) -> impl Iterator<Item = (String, Vec<u8>)> {
    data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()))
}

impl NamespaceObjects {
    /// The objects of manifests, and their Installations in the order read. Other kinds mean nothing here.
    ///
    /// # Errors
    /// [`WorldError`]
    pub fn of(manifests: &[FolderManifest]) -> Result<(Self, Vec<Installation>), WorldError> {
        let mut world = Self::default();
        let installations = world.add(manifests)?;
        Ok((world, installations))
    }

    /// Puts the objects of manifests over those that are known. Their Installations, in the order read.
    ///
    /// # Errors
    /// [`WorldError`]
    pub fn add(&mut self, manifests: &[FolderManifest]) -> Result<Vec<Installation>, WorldError> {
        let mut installations = Vec::new();
        for manifest in manifests {
            let name = manifest.name.clone();
            match manifest.kind.as_str() {
                "Installation" => {
                    installations.push(parsed::<Installation>(manifest)?);
                    self.installations.insert(name);
                }
                "DataObject" => self.add_data_object(readable(manifest)?),
                "Target" => self.add_target(parsed(manifest)?),
                "Context" => self.add_context(parsed(manifest)?),
                "ComponentVersionOverwrites" => self.add_overwrites(parsed(manifest)?),
                "Secret" => self.add_secret(parsed(manifest)?),
                "ConfigMap" => self.add_config_map(parsed(manifest)?),
                _ => {}
            }
        }
        Ok(installations)
    }

    /// An installation that is not among the manifests: whose exports may be imported.
    pub fn add_installation(&mut self, name: &str) {
        self.installations.insert(name.into());
    }

    /// Adds a DataObject.
    pub fn add_data_object(&mut self, object: DataObject) {
        self.data_objects.insert(object.name_any().into(), object);
    }

    /// Adds a Target.
    pub fn add_target(&mut self, target: Target) {
        self.targets.insert(target.name_any().into(), target);
    }

    /// Adds a Context.
    pub fn add_context(&mut self, context: Context) {
        self.contexts.insert(context.name_any().into(), context);
    }

    /// Adds what replaces component versions.
    pub fn add_overwrites(&mut self, overwrites: ComponentVersionOverwrites) {
        self.overwrites.insert(overwrites.name_any().into(), overwrites);
    }

    /// Adds a Secret.
    pub fn add_secret(&mut self, secret: Secret) {
        let name = secret.name_any().into();
        self.secrets.insert(name, bytes(secret.data).chain(texts(secret.string_data)).collect());
    }

    /// Adds a ConfigMap.
    pub fn add_config_map(&mut self, map: ConfigMap) {
        let name = map.name_any().into();
        self.config_maps.insert(name, texts(map.data).chain(bytes(map.binary_data)).collect());
    }

    /// A DataObject.
    pub fn known_data_object(&self, name: &str) -> Option<&DataObject> {
        self.data_objects.get(name)
    }

    /// What a Secret has under a key.
    pub fn secret_key(&self, name: &str, key: &str) -> Option<&[u8]> {
        self.secrets.get(name)?.get(key).map(Vec::as_slice)
    }

    /// All Targets, by name.
    pub fn targets(&self) -> impl Iterator<Item = (&ObjectName, &Target)> {
        self.targets.iter()
    }

    /// Writes what an installation keeps or exports, as the controller does.
    pub fn write(&mut self, records: &[Record], namespace: &Namespace, installation: &str) {
        let owner = OwnerReference {
            api_version: orangery_api::API_VERSION.into(),
            kind: "Installation".into(),
            name: installation.to_owned(),
            ..OwnerReference::default()
        };
        let metadata = || ObjectMeta { namespace: Some(namespace.to_string()), ..ObjectMeta::default() };
        for record in records {
            match &record.content {
                RecordContent::Data(_) => {
                    let mut object = DataObject { metadata: metadata(), ..DataObject::default() };
                    write_data_object(record, &mut object, &owner);
                    self.data_objects.insert(record.name.clone(), object);
                }
                RecordContent::Target(_) => {
                    let mut object = Target { metadata: metadata(), ..Target::default() };
                    write_target(record, &mut object, &owner);
                    self.targets.insert(record.name.clone(), object);
                }
            }
        }
    }

    /// What a record would overwrite.
    pub fn occupant(&self, record: &Record) -> Option<ExportOccupant<'_>> {
        match &record.content {
            RecordContent::Data(_) => {
                self.data_objects.get(&record.name).map(|object| export_occupant(object, |_| true))
            }
            RecordContent::Target(_) => self.targets.get(&record.name).map(|object| export_occupant(object, |_| true)),
        }
    }

    /// A Context; the default one is always there.
    pub fn context(&self, name: &str) -> Option<Context> {
        let name = if name.is_empty() { DEFAULT_CONTEXT } else { name };
        let known = self.contexts.get(name).cloned();
        known.or_else(|| (name == DEFAULT_CONTEXT).then(|| Context::new(name, Default::default())))
    }

    /// What of the objects that a Context names is here.
    pub fn context_objects(&self, names: &ContextNames) -> ContextObjects {
        let secret = |of: &(Namespace, ObjectName)| {
            let content = self.secrets.get(&of.1)?.iter();
            let content = content.map(|(key, bytes)| (key.clone(), orangery_ocm::Secret(bytes.clone())));
            Some((of.clone(), content.collect()))
        };
        let text = |(key, bytes): (&String, &Vec<u8>)| (key.clone(), String::from_utf8_lossy(bytes).into_owned());
        let map = names.ocm_config.as_ref().and_then(|name| self.config_maps.get(name.as_str()));
        ContextObjects {
            secrets: names.secrets.iter().filter_map(secret).collect(),
            ocm_config: map.map(|content| content.iter().map(text).collect()),
            overwrites: names.overwrites.as_ref().and_then(|name| self.overwrites.get(name.as_str())).cloned(),
        }
    }

    /// The data that lives in a context, by key.
    pub fn data_of(&self, context: &str) -> BTreeMap<String, serde_json::Value> {
        let within = self.data_objects.values().filter(|object| object.label(label::CONTEXT) == Some(context));
        within.filter_map(|object| Some((object.data_key()?.to_owned(), object.spec.data.clone()))).collect()
    }

    /// The Targets that live in a context, by key, as whole objects.
    pub fn targets_of(&self, context: &str) -> BTreeMap<String, serde_json::Value> {
        let within = self.targets.values().filter(|object| object.label(label::CONTEXT) == Some(context));
        within.filter_map(|object| Some((object.data_key()?.to_owned(), TargetObject::from(object).object))).collect()
    }
}

impl Sources for NamespaceObjects {
    fn data_object(&self, name: &str) -> Result<Option<DataValue>, UndecryptableData> {
        let Some(object) = self.data_objects.get(name) else { return Ok(None) };
        if object.encrypted().is_some() {
            let source_label = object.label(label::SOURCE).map(str::to_owned);
            return Err(UndecryptableData { name: name.to_owned(), source_label });
        }
        Ok(Some(data_value(object, object.spec.data.clone())))
    }

    fn target(&self, name: &str) -> Option<TargetObject> {
        self.targets.get(name).map(TargetObject::from)
    }

    fn kept_targets<'a>(&'a self, context: &'a str, key: &'a str) -> Box<dyn Iterator<Item = TargetObject> + 'a> {
        let kept = self.targets.values().filter(move |target| {
            target.label(label::CONTEXT) == Some(context)
                && target.data_key() == Some(key)
                && target.label(label::SOURCE_TYPE) == Some(label::SOURCE_TYPE_IMPORT)
        });
        Box::new(kept.map(TargetObject::from))
    }

    fn secret(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        self.secrets.get(name).cloned()
    }

    fn config_map(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        self.config_maps.get(name).cloned()
    }

    fn installation_exists(&self, name: &str) -> bool {
        self.installations.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_81_a_data_object_that_an_operator_encrypted_is_told_with_its_place() {
        let manifest = |data: serde_json::Value| FolderManifest {
            origin: ObjectOrigin { file: "d.yaml".into(), line: 3 },
            api_version: orangery_api::API_VERSION.into(),
            kind: Kind::from_static("DataObject"),
            namespace: None,
            name: "d".into(),
            object: json!({"metadata": {"name": "d"}, "data": data}),
        };
        let error = NamespaceObjects::of(&[manifest(json!({"orangery.dev/encrypted": "AA=="}))]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "d.yaml:3: this DataObject has a wrong form: its data is encrypted with the key of an operator, which alone can \
             read it; write the value itself there; compare it with: orangery crd"
        );
        let (world, _) = NamespaceObjects::of(&[manifest(json!({"a": 1}))]).unwrap();
        assert_eq!(world.data_object("d").unwrap().unwrap().value, json!({"a": 1}));
    }
}
