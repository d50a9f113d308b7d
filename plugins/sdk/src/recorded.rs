//! A host made of recorded answers: deployers and engines run against it on the build machine, and recorded calls again.

mod template;

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ApiResource, Artifact, Artifacts, Cluster, ClusterRef, Fault, INTERNAL_PROBLEM, Level, Log, ObjectKey, Problem,
    Selection,
};
pub use template::{Ask, RecordedAnswer, RecordedFiles, RecordedHost};

/// What a deployer asked a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Read {
    /// One object; the answer is the object or null. Reads of many objects are recorded one by one.
    Get {
        /// Where.
        #[serde(default, skip_serializing_if = "crate::json::is_default")]
        on: ClusterRef,
        /// Which.
        key: ObjectKey,
    },
    /// Objects of a selection; the answer is a list of them.
    List {
        /// Where.
        #[serde(default, skip_serializing_if = "crate::json::is_default")]
        on: ClusterRef,
        /// Which.
        what: Selection,
    },
    /// The server's version; the answer is a string.
    Version {
        /// Where.
        #[serde(default, skip_serializing_if = "crate::json::is_default")]
        on: ClusterRef,
    },
    /// The kinds that the cluster serves; the answer is a list of [`ApiResource`].
    Discover {
        /// Where.
        #[serde(default, skip_serializing_if = "crate::json::is_default")]
        on: ClusterRef,
    },
}

/// A read and what the cluster answered: a document, or a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedRead {
    /// What was asked.
    pub read: Read,
    /// The answer.
    #[serde(default)]
    pub answer: Value,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// Which content a deployer asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// An OCI reference.
    Oci(String),
    /// A URL.
    Url(String),
    /// A chart of a classic Helm repository.
    HelmRepository {
        /// The repository.
        url: String,
        /// The chart's name.
        chart: String,
        /// The chart's version.
        version: String,
    },
    /// The key of a resource of a component version.
    ComponentResource(String),
    /// A component version, as `componentDescriptor` of an installation says it.
    ComponentDescriptors(Value),
}

/// Content that a deployer was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedArtifact {
    /// What was asked.
    pub source: Source,
    /// `sha256:…`
    pub digest: String,
    /// Its media type.
    pub media_type: String,
    /// The file with its content, beside the recording.
    pub file: String,
    /// The content, once the file is read.
    #[serde(skip)]
    pub content: Vec<u8>,
    /// Other layers of the same artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<RecordedArtifact>,
}

/// A cluster, content and a log, all recorded. What was not recorded is a fault that names it.
#[derive(Debug, Default)]
pub struct Recorded {
    reads: Vec<RecordedRead>,
    objects: Option<Vec<Value>>,
    artifacts: Vec<RecordedArtifact>,
    lines: RefCell<Vec<String>>,
}

fn unrecorded(what: &impl Serialize) -> Fault {
    let what = serde_json::to_string(what).unwrap_or_default();
    internal(format!("the recording has no answer to {what}; add one"))
}

/// The labels of a selector that asks for equal ones alone; `None` for another.
fn equalities(selector: &str) -> Option<Vec<(&str, &str)>> {
    selector.split(',').filter(|term| !term.is_empty()).map(equality).collect()
}

fn equality(term: &str) -> Option<(&str, &str)> {
    let is_word = |text: &str| !text.is_empty() && !text.contains([' ', '(', ')', '!', '=']);
    let (name, value) = term.split_once('=')?;
    let value = value.strip_prefix('=').unwrap_or(value);
    (is_word(name) && is_word(value)).then_some((name, value))
}

fn internal(message: String) -> Fault {
    Fault::Invalid(Problem { code: INTERNAL_PROBLEM.to_owned(), message, at: None })
}

impl Recorded {
    /// A host that knows these answers only.
    pub fn new(reads: Vec<RecordedRead>, artifacts: Vec<RecordedArtifact>) -> Self {
        Recorded { reads, objects: None, artifacts, lines: RefCell::default() }
    }

    /// The same with a target cluster of these objects, which answers what is not recorded. Of label selectors it knows
    /// equality alone, of field selectors none.
    pub fn with_objects(self, objects: Option<Vec<Value>>) -> Self {
        Recorded { objects, ..self }
    }

    /// The objects of a cluster; `None` where it has none that are given.
    fn objects_of(&self, on: &ClusterRef) -> Option<&[Value]> {
        self.objects.as_deref().filter(|_| *on == ClusterRef::Target)
    }

    fn selected(objects: &[Value], what: &Selection) -> Result<Value, Fault> {
        let terms: Option<Vec<(&str, &str)>> = what.labels.as_deref().map_or(Some(Vec::new()), equalities);
        let Some(terms) = terms.filter(|_| what.fields.is_none()) else {
            let selection = serde_json::to_string(what).unwrap_or_default();
            return Err(internal(format!(
                "{selection} selects more than equal labels; run `orangery plugin test`, or record the read"
            )));
        };
        let is_selected = |object: &&Value| {
            let key = ObjectKey::of(object);
            let is_of = |key: ObjectKey| {
                let in_namespace = what.namespace.is_none() || what.namespace == key.namespace;
                let is_named = what.names.is_empty() || what.names.contains(&key.name);
                (&key.api_version, &key.kind) == (&what.api_version, &what.kind) && in_namespace && is_named
            };
            let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
            let label = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
            let has = |(name, value): &(&str, &str)| label(name) == Some(*value);
            key.is_some_and(is_of) && terms.iter().all(has)
        };
        Ok(objects.iter().filter(is_selected).cloned().collect())
    }

    /// The lines logged so far: level, message and fields.
    pub fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    fn answer(&self, asked: &Read) -> Result<Value, Fault> {
        if let Some(recorded) = self.reads.iter().find(|recorded| recorded.read == *asked) {
            return recorded.fault.clone().map_or_else(|| Ok(recorded.answer.clone()), Err);
        }
        let answered = match asked {
            Read::Get { on, key } => self.objects_of(on).map(|objects| {
                let found = objects.iter().find(|object| ObjectKey::of(object).as_ref() == Some(key));
                Ok(found.cloned().unwrap_or_default())
            }),
            Read::List { on, what } => self.objects_of(on).map(|objects| Self::selected(objects, what)),
            Read::Version { .. } | Read::Discover { .. } => None,
        };
        answered.unwrap_or_else(|| Err(unrecorded(asked)))
    }

    fn answer_as<T: for<'de> Deserialize<'de>>(&self, asked: &Read) -> Result<T, Fault> {
        T::deserialize(self.answer(asked)?)
            .map_err(|error| internal(format!("the recorded answer has another form than the read: {error}")))
    }

    fn artifact(&self, asked: &Source) -> Result<RecordedArtifact, Fault> {
        let found = self.artifacts.iter().find(|artifact| artifact.source == *asked);
        found.cloned().ok_or_else(|| unrecorded(asked))
    }
}

impl Cluster for Recorded {
    fn get(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault> {
        self.answer_as(&Read::Get { on: on.clone(), key: key.clone() })
    }

    fn get_many(&self, on: &ClusterRef, keys: &[ObjectKey]) -> Result<Vec<Option<Value>>, Fault> {
        keys.iter().map(|key| self.get(on, key)).collect()
    }

    fn list(&self, on: &ClusterRef, what: &Selection) -> Result<Vec<Value>, Fault> {
        self.answer_as(&Read::List { on: on.clone(), what: what.clone() })
    }

    fn version(&self, on: &ClusterRef) -> Result<String, Fault> {
        self.answer_as(&Read::Version { on: on.clone() })
    }

    fn discover(&self, on: &ClusterRef) -> Result<Vec<ApiResource>, Fault> {
        self.answer_as(&Read::Discover { on: on.clone() })
    }
}

impl Artifact for RecordedArtifact {
    fn digest(&self) -> String {
        self.digest.clone()
    }

    fn media_type(&self) -> String {
        self.media_type.clone()
    }

    fn size(&self) -> u64 {
        self.content.len().try_into().unwrap_or(u64::MAX)
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Fault> {
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let taken = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(self.content.iter().skip(skipped).take(taken).copied().collect())
    }

    fn layer(&self, media_type: &str) -> Result<Option<Self>, Fault> {
        Ok(self.layers.iter().find(|layer| layer.media_type == media_type).cloned())
    }
}

impl Artifacts for Recorded {
    type Artifact = RecordedArtifact;

    fn oci(&self, reference: &str) -> Result<RecordedArtifact, Fault> {
        self.artifact(&Source::Oci(reference.to_owned()))
    }

    fn url(&self, url: &str) -> Result<RecordedArtifact, Fault> {
        self.artifact(&Source::Url(url.to_owned()))
    }

    fn helm_repository(&self, url: &str, chart: &str, version: &str) -> Result<RecordedArtifact, Fault> {
        self.artifact(&Source::HelmRepository {
            url: url.to_owned(),
            chart: chart.to_owned(),
            version: version.to_owned(),
        })
    }

    fn component_resource(&self, key: &str) -> Result<RecordedArtifact, Fault> {
        self.artifact(&Source::ComponentResource(key.to_owned()))
    }

    fn component_descriptors(&self, of: &Value) -> Result<RecordedArtifact, Fault> {
        self.artifact(&Source::ComponentDescriptors(of.clone()))
    }
}

impl Log for Recorded {
    fn log(&self, at: Level, message: &str, fields: &[(&str, &str)]) {
        let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        self.lines.borrow_mut().push(format!("{at:?} {message}{fields}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("ns".into()),
            name: name.into(),
        }
    }

    fn recorded(reads: Value) -> Recorded {
        Recorded::new(serde_json::from_value(reads).unwrap(), Vec::new())
    }

    #[test]
    fn a_read_is_answered_by_what_was_recorded_and_by_nothing_else() {
        let named = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "a"});
        let absent = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "b"});
        let host = recorded(json!([
            {"read": {"get": {"key": named}}, "answer": {"data": {"x": "y"}}},
            {"read": {"get": {"key": absent}}, "answer": null},
            {"read": {"version": {"on": "host"}}, "fault": {"denied": {"code": "ERR_FORBIDDEN", "message": "no"}}},
        ]));
        let both = host.get_many(&ClusterRef::Target, &[key("b"), key("a")]);
        assert_eq!(both, Ok(vec![None, Some(json!({"data": {"x": "y"}}))]));
        let no = Problem { code: "ERR_FORBIDDEN".into(), message: "no".into(), at: None };
        assert_eq!(host.version(&ClusterRef::Host), Err(Fault::Denied(no)));
        let Err(Fault::Invalid(problem)) = host.get(&ClusterRef::Host, &key("a")) else { panic!("nothing recorded") };
        assert_eq!(
            problem.message,
            r#"the recording has no answer to {"get":{"on":"host","key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"ns","name":"a"}}}; add one"#
        );
    }

    #[test]
    fn an_artifact_is_read_in_parts_and_ends_where_its_content_ends() {
        let source = Source::Oci("ghcr.io/acme/chart:1".into());
        let chart = RecordedArtifact {
            source,
            digest: "sha256:0".into(),
            media_type: "chart".into(),
            file: "chart.tgz".into(),
            content: b"0123456789".to_vec(),
            layers: Vec::new(),
        };
        let host = Recorded::new(Vec::new(), vec![chart]);
        let chart = host.oci("ghcr.io/acme/chart:1").unwrap();
        assert_eq!(chart.read(2, 3), Ok(b"234".to_vec()));
        assert_eq!(chart.read(8, 100), Ok(b"89".to_vec()));
        assert_eq!(chart.read(u64::MAX, u32::MAX), Ok(Vec::new()));
        assert!(host.oci("ghcr.io/acme/other:1").is_err());
    }

    #[test]
    fn lines_are_kept_with_level_and_fields() {
        let host = Recorded::default();
        host.log(Level::Warn, "odd", &[("a", "b"), ("c", "d")]);
        assert_eq!(host.lines(), ["Level::Warn odd a=b c=d"]);
    }
}
