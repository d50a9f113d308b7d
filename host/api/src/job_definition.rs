//! What the job of a root was made from: its spec, and its imports, as `orangery rollback` goes back to them (C-358). It lies in one Secret
//! of the namespace, so that who may not read Secrets reads none of it.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, Read as _, Write},
};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use orangery_blueprint::{
    binding::{DataImport, DataSource, ImportBindings},
    import::{DataValue, Imported, TargetObject},
};
use orangery_core::{
    digest::{sha256, stored_hash},
    name::{Kind, Namespace, object_name},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{installation::InstallationSpec, plan::PlanItem, stored_state::unpacked_memory};

/// The type of a Secret with a definition.
pub const DEFINITION_TYPE: &str = "orangery.dev/job-definition";

/// The key in such a Secret.
pub const DEFINITION: &str = "definition";

/// The label of such a Secret: the uid of its Installation.
pub const DEFINITION_OF: &str = "orangery.dev/job-definition-of";

/// The annotation of such a Secret: since when jobs are made from it, in microseconds.
pub const DEFINED_AT: &str = "orangery.dev/defined-at";

/// The annotation of such a Secret: the signature of the operator, by Ed25519, in base64.
pub const DEFINITION_SEAL: &str = "orangery.dev/job-definition-seal";

/// The most bytes of a definition as it is stored, compressed (C-359).
pub const MOST_DEFINITION_BYTES: usize = 512 << 10;

/// The most bytes of memory that a definition takes when it is read: whoever may write Secrets chooses it (C-359).
pub const MOST_DEFINITION_MEMORY: u64 = 64 << 20;

const DATA_OBJECT: Kind = Kind::from_static("DataObject");
const SECRET: Kind = Kind::from_static("Secret");
const CONFIG_MAP: Kind = Kind::from_static("ConfigMap");
const TARGET: Kind = Kind::from_static("Target");

/// What the job of a root was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobDefinition<'a> {
    /// The root.
    pub installation: PlanItem,
    /// Its spec.
    pub spec: Cow<'a, InstallationSpec>,
    /// What it imported, by the names of the imports.
    pub imports: BTreeMap<String, DefinedImport<'a>>,
}

/// An import as a job found it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedImport<'a> {
    /// `DataObject`, `Secret`, `ConfigMap` or `Target`.
    pub kind: Kind,
    /// The object; the objects where there are several.
    pub name: String,
    /// The key of a Secret or ConfigMap; empty for all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The Installation that exported it; empty where none did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exported_by: String,
    /// By which it is told whether it is another one.
    pub digest: String,
    /// Whether the data is kept: that of DataObjects which users write, and which has nothing of Secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// The data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Cow<'a, Value>>,
}

/// Why a definition is not kept, or cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobDefinitionError {
    /// It has no room.
    #[error(
        "it has more than {MOST_DEFINITION_BYTES} bytes, or takes more than {MOST_DEFINITION_MEMORY} bytes of memory"
    )]
    TooLarge,
    /// It is none.
    #[error("its content is no definition")]
    Damaged,
}

impl<'a> JobDefinition<'a> {
    /// Of a root, with what it imports. `installation` is its name and its uid.
    pub fn of(
        installation: (&str, &str),
        spec: &'a InstallationSpec,
        imported: &'a BTreeMap<String, Imported>,
    ) -> Self {
        let bindings = ImportBindings::from(&spec.imports);
        let data = bindings.data.iter().filter_map(|import| {
            let Imported::Data(found) = imported.get(&import.name)? else { return None };
            Some((import.name.clone(), DefinedImport::of_data(import, found)?))
        });
        let targets = bindings.targets.iter().filter_map(|import| {
            let found: Vec<&TargetObject> = match imported.get(&import.name)? {
                Imported::Data(_) => return None,
                Imported::Target(target) => vec![target],
                Imported::TargetList(targets) => targets.iter().collect(),
                Imported::TargetMap(targets) => targets.values().collect(),
            };
            Some((import.name.clone(), DefinedImport::of_targets(&found)))
        });
        let installation = PlanItem { name: installation.0.to_owned(), uid: installation.1.to_owned() };
        Self { installation, spec: Cow::Borrowed(spec), imports: data.chain(targets).collect() }
    }

    /// As it is stored.
    ///
    /// # Errors
    /// [`JobDefinitionError::TooLarge`]
    pub fn packed(&self) -> Result<Vec<u8>, JobDefinitionError> {
        let mut text = BoundedText { packed: ZlibEncoder::new(Vec::new(), Compression::default()), bytes: 0 };
        serde_json::to_writer(&mut text, self).map_err(|_| JobDefinitionError::TooLarge)?;
        let packed = text.packed.finish().map_err(|_| JobDefinitionError::TooLarge)?;
        let fits = packed.len() <= MOST_DEFINITION_BYTES && unpacked_memory(&packed) <= MOST_DEFINITION_MEMORY;
        if fits { Ok(packed) } else { Err(JobDefinitionError::TooLarge) }
    }
}

impl JobDefinition<'static> {
    /// Of what is stored.
    ///
    /// # Errors
    /// [`JobDefinitionError`]
    pub fn unpacked(packed: &[u8]) -> Result<Self, JobDefinitionError> {
        if packed.len() > MOST_DEFINITION_BYTES || unpacked_memory(packed) > MOST_DEFINITION_MEMORY {
            return Err(JobDefinitionError::TooLarge);
        }
        let mut text = Vec::new();
        let read = ZlibDecoder::new(packed).take(MOST_DEFINITION_MEMORY).read_to_end(&mut text);
        read.map_err(|_| JobDefinitionError::Damaged)?;
        serde_json::from_slice(&text).map_err(|_| JobDefinitionError::Damaged)
    }
}

impl<'a> DefinedImport<'a> {
    fn of_data(import: &DataImport, found: &'a DataValue) -> Option<Self> {
        let (kind, name, key) = match import.source()? {
            DataSource::DataObject(key) => (DATA_OBJECT, object_name("", key).to_string(), ""),
            DataSource::Secret(reference) => (SECRET, reference.name.clone(), reference.key.as_str()),
            DataSource::ConfigMap(reference) => (CONFIG_MAP, reference.name.clone(), reference.key.as_str()),
        };
        let is_kept = kind == DATA_OBJECT && found.owner.is_none() && found.secret.is_none();
        Some(Self {
            kind,
            name,
            key: key.to_owned(),
            exported_by: found.owner.clone().unwrap_or_default(),
            digest: stored_hash(&found.value),
            is_kept,
            data: is_kept.then_some(Cow::Borrowed(&found.value)),
        })
    }

    fn of_targets(targets: &[&TargetObject]) -> Self {
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let specs: Vec<String> =
            targets.iter().map(|target| stored_hash(target.object.get("spec").unwrap_or(&Value::Null))).collect();
        Self {
            kind: TARGET,
            name: names.join(", "),
            exported_by: targets.iter().find_map(|target| target.owner.clone()).unwrap_or_default(),
            digest: specs.join(" "),
            ..Self::default()
        }
    }

    /// The data, where it is kept.
    pub fn kept(&self) -> Option<Value> {
        self.is_kept.then(|| self.data.as_deref().cloned().unwrap_or_default())
    }
}

/// What is signed of a definition: all of it, and where it is.
pub fn sealed_definition(namespace: &Namespace, secret: &str, packed: &[u8]) -> Option<Vec<u8>> {
    serde_json::to_vec(&("job definition", namespace, secret, sha256(packed))).ok()
}

/// Compresses a text, as long as it has room.
struct BoundedText {
    packed: ZlibEncoder<Vec<u8>>,
    /// Of the text so far.
    bytes: u64,
}

impl Write for BoundedText {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if self.bytes > MOST_DEFINITION_MEMORY || self.packed.get_ref().len() > MOST_DEFINITION_BYTES {
            return Err(io::Error::other(JobDefinitionError::TooLarge));
        }
        self.packed.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.packed.flush()
    }
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::import::SecretData;
    use serde_json::json;

    use super::*;
    use crate::stored_state::pack;

    fn spec() -> InstallationSpec {
        let data = json!([
            {"name": "own", "dataRef": "own"},
            {"name": "theirs", "dataRef": "theirs"},
            {"name": "hush", "dataRef": "#hush"},
            {"name": "password", "secretRef": {"name": "db", "key": "password"}},
            {"name": "map", "configMapRef": {"name": "settings"}},
            {"name": "nothing", "dataRef": "nothing"},
        ]);
        let targets = json!([{"name": "cluster", "target": "cluster"}, {"name": "two", "targets": ["a", "b"]}]);
        serde_json::from_value(json!({"blueprint": {}, "imports": {"data": data, "targets": targets}})).unwrap()
    }

    fn imported() -> BTreeMap<String, Imported> {
        let data = |value: Value, owner: Option<&str>, secret| {
            Imported::Data(DataValue { value, owner: owner.map(str::to_owned), secret, ..DataValue::default() })
        };
        let target = |name: &str| TargetObject {
            name: name.to_owned(),
            object: json!({"spec": {"type": name}}),
            ..TargetObject::default()
        };
        [
            ("own", data(json!({"a": 1}), None, None)),
            ("theirs", data(json!(1), Some("other"), None)),
            ("hush", data(json!("canary"), None, Some(SecretData::Partly))),
            ("password", data(json!("canary"), None, Some(SecretData::Whole))),
            ("map", data(json!({"k": "v"}), None, None)),
            ("nothing", data(Value::Null, None, None)),
            ("cluster", Imported::Target(target("cluster"))),
            ("two", Imported::TargetList(vec![target("a"), target("b")])),
        ]
        .map(|(name, import)| (name.to_owned(), import))
        .into()
    }

    #[test]
    fn c_358_a_definition_has_the_spec_and_the_data_that_users_have_written_and_of_all_else_by_what_it_is_known() {
        let (spec, imported) = (spec(), imported());
        let definition = JobDefinition::of(("web", "u"), &spec, &imported);
        let read = JobDefinition::unpacked(&definition.packed().unwrap()).unwrap();
        assert_eq!((&read.installation.name, &read.installation.uid), (&"web".to_owned(), &"u".to_owned()));
        assert_eq!(*read.spec, spec);
        let kept: BTreeMap<&str, Option<Value>> =
            read.imports.iter().map(|(name, import)| (name.as_str(), import.kept())).collect();
        let expected = [
            ("cluster", None),
            ("hush", None),
            ("map", None),
            ("nothing", Some(Value::Null)),
            ("own", Some(json!({"a": 1}))),
            ("password", None),
            ("theirs", None),
            ("two", None),
        ];
        assert_eq!(kept, expected.into());
        let told: Vec<[&str; 4]> = read
            .imports
            .values()
            .map(|of| [of.kind.as_str(), of.name.as_str(), of.key.as_str(), of.exported_by.as_str()])
            .collect();
        let expected = [
            ["Target", "cluster", "", ""],
            ["DataObject", "hush", "", ""],
            ["ConfigMap", "settings", "", ""],
            ["DataObject", "nothing", "", ""],
            ["DataObject", "own", "", ""],
            ["Secret", "db", "password", ""],
            ["DataObject", "theirs", "", "other"],
            ["Target", "a, b", "", ""],
        ];
        assert_eq!(told, expected);
        assert!(!json!(read).to_string().contains("canary"), "values of Secrets are not kept");
        assert_eq!(
            JobDefinition::of(("web", "u"), &spec, &imported).packed(),
            definition.packed(),
            "the same is stored for the same"
        );
    }

    #[test]
    fn c_359_limits_job_definitions_are_bounded_as_they_are_stored_and_as_they_are_read() {
        let spec = spec();
        let of = |value: Value| {
            let mut imported = imported();
            imported.insert("own".to_owned(), Imported::Data(DataValue { value, ..DataValue::default() }));
            JobDefinition::of(("web", "u"), &spec, &imported).packed().map(|packed| packed.len())
        };
        // Digests do not compress.
        let noise = |count: usize| (0..count).map(|at| json!(sha256(&at.to_be_bytes()))).collect::<Value>();
        assert!(of(noise(10_000)).unwrap() <= MOST_DEFINITION_BYTES);
        assert_eq!(of(noise(20_000)), Err(JobDefinitionError::TooLarge));
        assert!(of(json!("x".repeat(8 << 20))).is_ok());
        assert_eq!(of(json!("x".repeat(40 << 20))), Err(JobDefinitionError::TooLarge), "its text and its value count");
        assert_eq!(of(json!("x".repeat(70 << 20))), Err(JobDefinitionError::TooLarge));
        // What others have written.
        let read = |packed: &[u8]| JobDefinition::unpacked(packed).unwrap_err();
        let bomb = pack(format!("[{}0]", "{},".repeat(4 << 20)).as_bytes()).unwrap();
        assert!(bomb.len() < MOST_DEFINITION_BYTES);
        assert_eq!(read(&bomb), JobDefinitionError::TooLarge);
        assert_eq!(read(&vec![0; MOST_DEFINITION_BYTES + 1]), JobDefinitionError::TooLarge);
        for damaged in [&b"no zlib"[..], &pack(b"{}").unwrap(), &[]] {
            assert_eq!(read(damaged), JobDefinitionError::Damaged);
        }
    }
}
