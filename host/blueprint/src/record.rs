//! DataObjects and Targets as installations and executions write them: imports kept for the blueprint and its
//! sub-installations, and exports (`docs/wire.md` §2.2, §5.4, §5.5).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use orangery_core::{
    digest,
    name::{self, JobId, Namespace, ObjectName},
};

/// One object to be written. What its labels say stands in fields of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The object's name.
    pub name: ObjectName,
    /// The context it lives in; empty for roots' exports, and then not labelled.
    pub context: String,
    /// The writer, `Inst.<name>` or `Exec.<name>`.
    pub source: String,
    /// Why; exports of executions say nothing.
    pub purpose: Option<Purpose>,
    /// The data reference; empty for exports of executions, and then not labelled.
    pub key: String,
    /// Its place in a target list or map.
    pub place: Option<TargetPosition>,
    /// The job that writes it; empty for exports of executions, and then not labelled.
    pub job: JobId,
    /// The hash of its content.
    pub hash: String,
    /// What it holds.
    pub content: RecordContent,
}

/// Why an installation writes an object: its label `sourceType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Kept for the installation's own templates and sub-installations.
    Import,
    /// For its siblings and parent.
    Export,
}

/// The place of a Target in a list or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPosition {
    /// In a list, from 0.
    Index(usize),
    /// In a map.
    Key(String),
}

/// What a record holds.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordContent {
    /// A DataObject's data.
    Data(Value),
    /// A Target.
    Target(TargetContent),
}

/// A Target's spec, and the labels and annotations it has besides those of the record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetContent {
    /// `{type, config | secretRef}`
    pub spec: Value,
    /// Labels of others.
    pub labels: BTreeMap<String, String>,
    /// Annotations of others.
    pub annotations: BTreeMap<String, String>,
    /// The Target that a user or an export keeps, of which it is a copy (C-171).
    pub original: Option<ObjectName>,
}

/// Data of a DataObject that cannot be decrypted (C-81).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "DataObject {name} is encrypted, and this operator cannot decrypt it: it was copied, renamed or edited, or written under \
     another key of the operator; run {} again, which writes it anew", writer(.source_label.as_deref())
)]
pub struct UndecryptableData {
    /// The name of the object.
    pub name: String,
    /// Its label `source`: the writer, `Inst.<name>` or `Exec.<name>`.
    pub source_label: Option<String>,
}

impl UndecryptableData {
    /// A CamelCase word for conditions and `lastError`.
    pub const REASON: &'static str = "DataNotDecrypted";
}

/// The Installation that writes what bears a label `source`: an Execution has the name of its Installation.
fn writer(source_label: Option<&str>) -> String {
    let name = source_label.and_then(|source| source.strip_prefix("Inst.").or_else(|| source.strip_prefix("Exec.")));
    name.map_or_else(|| "the Installation that wrote it".to_owned(), |name| format!("Installation {name}"))
}

/// Labels and annotations with this prefix are the record's own.
const OWN: &str = "data.landscaper.gardener.cloud/";
/// On a Target that an Installation keeps of its imports: what it is a copy of (C-171). Not in the original.
pub const COPY_OF: &str = "orangery.dev/copy-of";
/// What `kubectl apply` remembers belongs to the object it applied, not to copies.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl TargetContent {
    /// The content of a Target object as the API has it, as a copy of nothing.
    pub fn of(object: &Value) -> Self {
        let texts = |field: &str| {
            let map = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
            map.into_iter()
                .flatten()
                .filter(|(key, _)| !key.starts_with(OWN) && ![LAST_APPLIED, COPY_OF].contains(&key.as_str()))
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect()
        };
        let spec = object.get("spec").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        Self { spec, labels: texts("labels"), annotations: texts("annotations"), original: None }
    }
}

/// The writer of records: an installation in a job.
#[derive(Clone, Copy, Debug)]
pub struct RecordWriter<'a> {
    /// The installation's namespace.
    pub namespace: &'a Namespace,
    /// Its name.
    pub installation: &'a str,
    /// Its parent's name; `None` for roots.
    pub parent: Option<&'a str>,
    /// The job.
    pub job: &'a JobId,
}

impl RecordWriter<'_> {
    /// The context that its imports are looked up in and its exports are written to (`docs/wire.md` §5.1).
    pub fn context(&self) -> String {
        self.parent.map(name::installation_context).unwrap_or_default()
    }

    /// The context of its own imports and of its sub-installations' exports.
    pub fn own_context(&self) -> String {
        name::installation_context(self.installation)
    }

    /// A record of this installation under `key` of a context.
    pub(crate) fn record(
        &self,
        purpose: Purpose,
        key: &str,
        place: Option<TargetPosition>,
        content: RecordContent,
    ) -> Record {
        let context = match purpose {
            Purpose::Import => self.own_context(),
            Purpose::Export => self.context(),
        };
        let name = match &place {
            None => name::object_name(&context, key),
            Some(TargetPosition::Index(index)) => name::object_name(&context, &name::element_key(key, *index)),
            Some(TargetPosition::Key(map_key)) => name::object_name(&context, &name::entry_key(key, map_key)),
        };
        Record {
            name,
            context,
            source: self.own_context(),
            purpose: Some(purpose),
            // A label cannot hold the mark of a global key.
            key: key.strip_prefix('#').unwrap_or(key).to_owned(),
            place,
            job: self.job.clone(),
            hash: content.hash(),
            content,
        }
    }
}

impl RecordContent {
    fn hash(&self) -> String {
        match self {
            RecordContent::Data(data) => digest::data_hash(data),
            RecordContent::Target(target) => digest::target_hash(&target.spec),
        }
    }
}

/// The DataObject with the exports of an Execution: item name to exports, null for items without (`docs/wire.md` §6.6).
pub fn execution_exports(execution: &str, items: Map<String, Value>) -> Record {
    let content = RecordContent::Data(Value::Object(items));
    Record {
        name: name::execution_export(execution),
        context: name::execution_context(execution),
        source: name::execution_context(execution),
        purpose: None,
        key: String::new(),
        place: None,
        job: JobId::default(),
        hash: content.hash(),
        content,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    mod objects;

    #[test]
    fn the_export_of_an_execution_is_the_one_recorded_from_the_original() {
        let items = json!({"item": null}).as_object().unwrap().clone();
        assert_eq!(
            execution_exports("hello", items),
            Record {
                name: "5gvu6icmp4eiixm73cgfmq7fcyqoszx4".into(),
                context: "Exec.hello".to_owned(),
                source: "Exec.hello".to_owned(),
                purpose: None,
                key: String::new(),
                place: None,
                job: JobId::default(),
                hash: "cbd3229133410c4901821cbeb721d40711de60a0".to_owned(),
                content: RecordContent::Data(json!({"item": null})),
            }
        );
    }

    #[test]
    fn a_target_s_own_labels_and_annotations_are_kept_and_ours_are_not() {
        let object = json!({
            "metadata": {
                "labels": {"team": "a", "data.landscaper.gardener.cloud/key": "k"},
                "annotations": {
                    "note": "b",
                    (COPY_OF): "another",
                    "data.landscaper.gardener.cloud/hash": "h",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                },
            },
            "spec": {"type": "t"},
        });
        let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert_eq!(
            TargetContent::of(&object),
            TargetContent {
                spec: json!({"type": "t"}),
                labels: one("team", "a"),
                annotations: one("note", "b"),
                original: None
            }
        );
    }

    #[test]
    fn roots_export_to_the_empty_context_and_children_to_their_parents() {
        let root = RecordWriter {
            namespace: &Namespace::from_static("ns"),
            installation: "root",
            parent: None,
            job: &JobId::from_static("j"),
        };
        let child = RecordWriter { installation: "sub", parent: Some("root"), ..root };
        let place = |scope: &RecordWriter<'_>| {
            let record = scope.record(Purpose::Export, "out", None, RecordContent::Data(json!(1)));
            (record.name, record.context, record.source)
        };
        assert_eq!(place(&root), ("out".into(), String::new(), "Inst.root".to_owned()));
        let hashed = name::object_name("Inst.root", "out");
        assert_eq!(place(&child), (hashed, "Inst.root".to_owned(), "Inst.sub".to_owned()));
    }
}
