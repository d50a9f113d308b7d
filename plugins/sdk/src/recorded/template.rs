//! What engines read, recorded.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Components, Files, Kubeconfigs, Rng};

/// The files of a blueprint by path, for engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedFiles(pub BTreeMap<String, String>);

impl Files for RecordedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.0.get(path).map(|text| text.clone().into_bytes());
        found.ok_or_else(|| format!("the blueprint has no file {path}"))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let inside = self.0.keys().filter_map(|file| file.strip_prefix(&folder));
        let names: BTreeSet<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
        if names.is_empty() {
            return Err(format!("the blueprint has no folder {path}"));
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }
}

/// What an engine asked its host, besides files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    /// A file of the blueprint that cannot be read.
    File(String),
    /// The names in a folder of the blueprint; the answer is a list of them. Without it they are those of the files.
    Folder(String),
    /// A component descriptor; the answer is its document.
    Component {
        /// The descriptor that references it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        /// Names and values that have to match.
        select: BTreeMap<String, String>,
    },
    /// Resources of a component descriptor; the answer is a list of documents.
    Resources {
        /// The descriptor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        /// Names and values that have to match.
        select: BTreeMap<String, String>,
    },
    /// The key of a resource by its reference; the answer is a string.
    ResourceKey(String),
    /// The content of a resource by its reference; the answer is a string.
    ResourceContent(String),
    /// A credential; the answer is its document.
    IssueCredential {
        /// Its kind.
        kind: String,
        /// What this kind needs.
        arguments: Value,
    },
    /// When the job began; the answer is a string.
    Now,
    /// Random bytes; the answer is a list of numbers.
    Bytes {
        /// What they are for.
        key: String,
        /// How many.
        length: u32,
    },
}

/// What was asked, and the answer or the sentence why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedAnswer {
    /// What was asked.
    pub ask: Ask,
    /// The answer.
    #[serde(default)]
    pub answer: Value,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The host of an engine, recorded. What was not recorded is an error that names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedHost {
    /// The blueprint's files.
    pub files: RecordedFiles,
    /// The other answers.
    pub answers: Vec<RecordedAnswer>,
}

impl RecordedHost {
    fn find(&self, ask: &Ask) -> Option<&RecordedAnswer> {
        self.answers.iter().find(|recorded| recorded.ask == *ask)
    }

    fn answer<T: for<'de> Deserialize<'de>>(&self, ask: &Ask) -> Result<T, String> {
        let named = || serde_json::to_string(ask).unwrap_or_default();
        let recorded = self.find(ask).ok_or_else(|| format!("the recording has no answer to {}; add one", named()))?;
        match &recorded.error {
            Some(sentence) => Err(sentence.clone()),
            None => T::deserialize(&recorded.answer)
                .map_err(|error| format!("the recorded answer to {} has another form: {error}", named())),
        }
    }

    /// For what has no errors: an engine cannot ask it, so the recording is wrong.
    #[expect(clippy::panic, reason = "a test whose recording is incomplete fails with the sentence")]
    fn given<T: for<'de> Deserialize<'de>>(&self, ask: &Ask) -> T {
        self.answer(ask).unwrap_or_else(|sentence| panic!("{sentence}"))
    }
}

impl Files for RecordedHost {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let told = self.find(&Ask::File(path.to_owned())).and_then(|told| told.error.clone());
        told.map_or_else(|| self.files.read(path), Err)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let asked = Ask::Folder(path.to_owned());
        if self.find(&asked).is_some() { self.answer(&asked) } else { self.files.list(path) }
    }
}

fn owned(identity: &[(&str, &str)]) -> BTreeMap<String, String> {
    identity.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

impl Components for RecordedHost {
    fn component(&self, from: Option<&Value>, select: &[(&str, &str)]) -> Result<Value, String> {
        self.answer(&Ask::Component { from: from.cloned(), select: owned(select) })
    }

    fn resources(&self, from: Option<&Value>, select: &[(&str, &str)]) -> Result<Vec<Value>, String> {
        self.answer(&Ask::Resources { from: from.cloned(), select: owned(select) })
    }

    fn resource_key(&self, reference: &str) -> Result<String, String> {
        self.answer(&Ask::ResourceKey(reference.to_owned()))
    }

    fn resource_content(&self, reference: &str) -> Result<Vec<u8>, String> {
        self.answer::<String>(&Ask::ResourceContent(reference.to_owned())).map(String::into_bytes)
    }
}

impl Kubeconfigs for RecordedHost {
    fn issue_credential(&self, kind: &str, arguments: &Value) -> Result<Value, String> {
        self.answer(&Ask::IssueCredential { kind: kind.to_owned(), arguments: arguments.clone() })
    }
}

impl Rng for RecordedHost {
    fn now(&self) -> String {
        self.given(&Ask::Now)
    }

    fn bytes(&self, key: &str, length: u32) -> Vec<u8> {
        self.given(&Ask::Bytes { key: key.to_owned(), length })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_folder_is_listed_by_name_once() {
        let files = ["a/b.yaml", "a/c/d.yaml", "a/c/e.yaml", "f.yaml"];
        let files = RecordedFiles(files.map(|path| (path.to_owned(), String::new())).into());
        assert_eq!(files.list("a"), Ok(vec!["b.yaml".to_owned(), "c".to_owned()]));
        assert_eq!(files.list(""), Ok(vec!["a".to_owned(), "f.yaml".to_owned()]));
        assert_eq!(files.list("x"), Err("the blueprint has no folder x".to_owned()));
    }

    #[test]
    fn an_engine_is_answered_by_what_was_recorded_and_by_nothing_else() {
        let answers = json!([
            {"ask": {"component": {"select": {"name": "shop"}}}, "answer": {"meta": {}}},
            {"ask": {"resources": {"from": {"meta": {}}, "select": {}}}, "answer": [{"name": "image"}]},
            {"ask": {"resourceKey": "cd://resources/image"}, "answer": "key"},
            {"ask": {"resourceContent": "cd://resources/text"}, "answer": "content"},
            {"ask": {"issueCredential": {"kind": "serviceAccount", "arguments": {}}}, "error": "not granted"},
            {"ask": "now", "answer": "2026-11-21T02:10:49Z"},
            {"ask": {"bytes": {"key": "a", "length": 2}}, "answer": [1, 2]},
        ]);
        let host = RecordedHost { answers: serde_json::from_value(answers).unwrap(), ..RecordedHost::default() };
        assert_eq!(host.component(None, &[("name", "shop")]), Ok(json!({"meta": {}})));
        assert_eq!(host.resources(Some(&json!({"meta": {}})), &[]), Ok(vec![json!({"name": "image"})]));
        assert_eq!(host.resource_key("cd://resources/image"), Ok("key".to_owned()));
        assert_eq!(host.resource_content("cd://resources/text"), Ok(b"content".to_vec()));
        assert_eq!(host.issue_credential("serviceAccount", &json!({})), Err("not granted".to_owned()));
        assert_eq!((host.now().as_str(), host.bytes("a", 2)), ("2026-11-21T02:10:49Z", vec![1, 2]));
        assert_eq!(
            host.resource_key("cd://resources/other"),
            Err(r#"the recording has no answer to {"resourceKey":"cd://resources/other"}; add one"#.to_owned())
        );
    }
}
