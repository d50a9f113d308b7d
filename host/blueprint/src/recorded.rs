//! Recorded calls of template engines: what an engine was asked, what it read, what it answered. The form of golden cases
//! (`docs/plugins/testing.md`), which the SDK reads as well (`plugins/sdk/src/recorded/template.rs`).

mod compared;
mod hidden;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{Components, Files, Identity};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    rendering::{RenderFailure, RenderRequest, Rendered},
    template_engine::{Kubeconfigs, TemplateContext},
};

pub use self::{compared::rendering_differences, hidden::hide_places};

/// One call, with all that the engine may learn in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRendering {
    /// What is rendered.
    pub request: RenderRequest,
    /// The files of the blueprint that it may read, by their path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// What else it may ask.
    #[serde(default)]
    pub host: Vec<HostAnswer>,
}

/// What an engine asks besides the content of files, and the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostAnswer {
    /// What is asked.
    pub ask: HostQuestion,
    /// The answer.
    #[serde(default)]
    pub answer: Value,
    /// Why there is none: one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an engine asks besides the content of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostQuestion {
    /// A file of the blueprint that cannot be read.
    File(String),
    /// The names in a folder of the blueprint.
    Folder(String),
    /// A component descriptor.
    Component {
        /// The descriptor that refers to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        /// Names and values that have to match.
        select: BTreeMap<String, String>,
    },
    /// Resources of a component descriptor.
    Resources {
        /// The descriptor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        /// Names and values that have to match.
        select: BTreeMap<String, String>,
    },
    /// The key of a resource.
    ResourceKey(String),
    /// The content of a resource; the answer is a text.
    ResourceContent(String),
    /// A credential.
    IssueCredential {
        /// Its kind.
        #[serde(rename = "kind")]
        credential: String,
        /// What this kind needs.
        arguments: Value,
    },
    /// When the job began.
    Now,
    /// Random bytes.
    Bytes {
        /// What they are for.
        key: String,
        /// How many.
        length: u32,
    },
}

/// What an engine answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RenderAnswer {
    /// It rendered.
    Rendered(Rendered),
    /// It did not.
    Failure(RenderFailure),
}

impl From<Result<Rendered, RenderFailure>> for RenderAnswer {
    fn from(answer: Result<Rendered, RenderFailure>) -> Self {
        match answer {
            Ok(rendered) => RenderAnswer::Rendered(rendered),
            Err(failure) => RenderAnswer::Failure(failure),
        }
    }
}

/// A fault about a question that a recording does not answer.
pub fn unrecorded(what: &impl Serialize) -> Fault {
    let what = serde_json::to_string(what).unwrap_or_default();
    Fault::invalid(Code::InternalProblem, format!("the recording has no answer to {what}; add one"))
}

/// An identity as questions have it.
pub fn selected(identity: &Identity) -> BTreeMap<String, String> {
    identity.iter().cloned().collect()
}

/// What an engine is told of a recorded call. What was not recorded is a fault that names it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedHost {
    /// The files of the blueprint.
    pub files: BTreeMap<String, String>,
    /// The other answers.
    pub answers: Vec<HostAnswer>,
}

impl RecordedHost {
    /// What is recorded of a call, with the time that it has: an engine that is called with it learns nothing else, and what is random
    /// follows from nothing that is secret.
    ///
    /// # Errors
    /// One sentence: the recorded time is none.
    pub fn context(recorded: RecordedRendering) -> Result<(RenderRequest, TemplateContext), String> {
        let RecordedRendering { request, files, host } = recorded;
        let host = Arc::new(Self { files, answers: host });
        let mut context = TemplateContext::of_files(host.clone());
        let now = host.answers.iter().find(|answer| answer.ask == HostQuestion::Now);
        if let Some(now) = now.and_then(|now| now.answer.as_str()) {
            context.rng.now = now.parse().map_err(|error| format!("the recorded time is none: {error}"))?;
        }
        context.components = host.clone();
        context.kubeconfigs = host;
        Ok((request, context))
    }

    fn find(&self, asked: &HostQuestion) -> Option<&HostAnswer> {
        self.answers.iter().find(|recorded| recorded.ask == *asked)
    }

    fn answer<'a, T: DeserializeOwned + Send + 'a>(&self, asked: &HostQuestion) -> BoxFuture<'a, Result<T, Fault>> {
        let answer = match self.find(asked) {
            None => Err(unrecorded(asked)),
            Some(HostAnswer { error: Some(sentence), .. }) => {
                Err(Fault::invalid(Code::ConfigurationProblem, sentence.clone()))
            }
            Some(HostAnswer { answer, .. }) => T::deserialize(answer).map_err(|error| {
                Fault::invalid(Code::InternalProblem, format!("the recorded answer is of another form: {error}"))
            }),
        };
        Box::pin(async move { answer })
    }
}

impl Files for RecordedHost {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if let Some(sentence) = self.find(&HostQuestion::File(path.to_owned())).and_then(|found| found.error.clone()) {
            return Err(sentence);
        }
        let found = self.files.get(path).map(|text| text.clone().into_bytes());
        found.ok_or_else(|| format!("the blueprint has no file {path}"))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        if let Some(HostAnswer { answer, error, .. }) = self.find(&HostQuestion::Folder(path.to_owned())) {
            let names = || Vec::<String>::deserialize(answer).map_err(|error| error.to_string());
            return error.clone().map_or_else(names, Err);
        }
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let inside = self.files.keys().filter_map(|file| file.strip_prefix(&folder));
        let names: BTreeSet<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
        match names.is_empty() {
            true => Err(format!("the blueprint has no folder {path}")),
            false => Ok(names.into_iter().map(str::to_owned).collect()),
        }
    }
}

impl Components for RecordedHost {
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        self.answer(&HostQuestion::Component { from: from.cloned(), select: selected(select) })
    }

    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        self.answer(&HostQuestion::Resources { from: from.cloned(), select: selected(select) })
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        self.answer(&HostQuestion::ResourceKey(reference.to_owned()))
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        let text = self.answer::<String>(&HostQuestion::ResourceContent(reference.to_owned()));
        Box::pin(async move { Ok(text.await?.into_bytes()) })
    }
}

impl Kubeconfigs for RecordedHost {
    fn issue_credential<'a>(
        &'a self,
        credential_kind: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        let (credential, arguments) = (credential_kind.to_owned(), arguments.clone());
        self.answer(&HostQuestion::IssueCredential { credential, arguments })
    }
}

#[cfg(test)]
mod tests;
