//! The objects that stand for those of a cluster: what manifests hold, and what installations write.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
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
        let (mut world, mut installations) = (Self::default(), Vec::new());
        for manifest in manifests {
            let name = manifest.name.clone();
            match manifest.kind.as_str() {
                "Installation" => {
                    installations.push(parsed::<Installation>(manifest)?);
                    world.installations.insert(name);
                }
                "DataObject" => drop(world.data_objects.insert(name, readable(manifest)?)),
                "Target" => drop(world.targets.insert(name, parsed(manifest)?)),
                "Context" => drop(world.contexts.insert(name, parsed(manifest)?)),
                "ComponentVersionOverwrites" => drop(world.overwrites.insert(name, parsed(manifest)?)),
                "Secret" => {
                    let secret: Secret = parsed(manifest)?;
                    world.secrets.insert(name, bytes(secret.data).chain(texts(secret.string_data)).collect());
                }
                "ConfigMap" => {
                    let map: ConfigMap = parsed(manifest)?;
                    world.config_maps.insert(name, texts(map.data).chain(bytes(map.binary_data)).collect());
                }
                _ => {}
            }
        }
        Ok((world, installations))
    }

    /// An installation that is not among the manifests: whose exports may be imported.
    pub fn add_installation(&mut self, name: &str) {
        self.installations.insert(name.into());
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
        Ok(self.data_objects.get(name).map(|object| data_value(object, object.spec.data.clone())))
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
