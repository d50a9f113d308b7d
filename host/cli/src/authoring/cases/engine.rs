//! The cases of a template engine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_blueprint::{
    rendering::{Findings, Output, RenderFailure, RenderRequest, Rendered},
    template_engine::{Kubeconfigs, TemplateContext},
};
use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{Components, Files, Identity};
use orangery_plugin::Plugin;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{CallLog, Case, recorded_reads::unrecorded};

/// The request of a case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineRequest {
    request: RenderRequest,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    host: Vec<HostAnswer>,
}

/// What the engine asks besides files, and the answer.
#[derive(Clone, Deserialize)]
struct HostAnswer {
    ask: HostQuestion,
    #[serde(default)]
    answer: Value,
    #[serde(default)]
    error: Option<String>,
}

/// What an engine asks besides files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum HostQuestion {
    Component {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        select: BTreeMap<String, String>,
    },
    Resources {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        select: BTreeMap<String, String>,
    },
    ResourceKey(String),
    ResourceContent(String),
    IssueCredential {
        #[serde(rename = "kind")]
        credential: String,
        arguments: Value,
    },
    Now,
    Bytes {
        key: String,
        length: u32,
    },
}

/// The answer of a case.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum EngineAnswer {
    Rendered(Rendered),
    Failure(RenderFailure),
}

/// The answer of a case in which a template is only looked at.
#[derive(Serialize, Deserialize)]
struct CheckAnswer {
    findings: Option<Findings>,
}

/// Renders, and holds the answer against the expected one.
pub(super) async fn render(case: &mut Case<'_>, plugin: &Plugin, log: &Arc<CallLog>) -> Result<(), String> {
    let (request, context) = context(case, log)?;
    log.note("template.render");
    let answer = plugin.render(&request, &context).await.map_err(|error| format!("there is no answer: {error}"))?;
    let answer = match answer {
        Ok(rendered) => {
            log.note(match rendered.output {
                Output::Text(_) => "text",
                Output::Document(_) => "document",
            });
            rendered.state.iter().for_each(|_| log.note("state"));
            rendered.warnings.iter().for_each(|_| log.note("warnings"));
            EngineAnswer::Rendered(rendered)
        }
        Err(failure) => {
            log.note("failure");
            EngineAnswer::Failure(failure)
        }
    };
    case.expect(&answer)?;
    let (rendered, failure) = match &answer {
        EngineAnswer::Rendered(rendered) => (json!(rendered), Value::Null),
        EngineAnswer::Failure(failure) => (Value::Null, json!(failure)),
    };
    case.assert(json!({"request": request, "rendered": rendered, "failure": failure}))
}

/// Looks at a template, and holds what is found against the expected.
pub(super) async fn check(case: &mut Case<'_>, plugin: &Plugin, log: &Arc<CallLog>) -> Result<(), String> {
    let (request, context) = context(case, log)?;
    log.note("check.check");
    let findings = plugin.check(&request, &context).await.map_err(|error| format!("there is no answer: {error}"))?;
    case.expect(&CheckAnswer { findings: findings.clone() })?;
    case.assert(json!({"request": request, "findings": findings}))
}

fn context(case: &Case<'_>, log: &Arc<CallLog>) -> Result<(RenderRequest, TemplateContext), String> {
    let EngineRequest { request, files, host } = case.request()?;
    if host.iter().any(|answer| matches!(answer.ask, HostQuestion::Bytes { .. })) {
        return Err("it records random bytes, which the sandbox makes itself; run it natively, and not here".to_owned());
    }
    let host = Arc::new(RecordedEngineHost { files, answers: host, log: log.clone() });
    let mut context = TemplateContext::of_files(host.clone());
    let now = host.answers.iter().find(|answer| answer.ask == HostQuestion::Now);
    if let Some(now) = now.and_then(|now| now.answer.as_str()) {
        context.rng.now = now.parse().map_err(|error| format!("the recorded time is none: {error}"))?;
    }
    context.components = host.clone();
    context.kubeconfigs = host;
    Ok((request, context))
}

/// The blueprint of a case, and what belongs to it.
struct RecordedEngineHost {
    files: BTreeMap<String, String>,
    answers: Vec<HostAnswer>,
    log: Arc<CallLog>,
}

impl RecordedEngineHost {
    fn answer<'a, T: DeserializeOwned + Send + 'a>(
        &self,
        function: &'static str,
        asked: &HostQuestion,
    ) -> BoxFuture<'a, Result<T, Fault>> {
        self.log.note(function);
        let answer = match self.answers.iter().find(|recorded| recorded.ask == *asked) {
            None => Err(unrecorded(asked)),
            Some(HostAnswer { error: Some(sentence), .. }) => {
                Err(Fault::invalid(Code::ConfigurationProblem, sentence.clone()))
            }
            Some(HostAnswer { answer, .. }) => serde_json::from_value(answer.clone()).map_err(|error| {
                Fault::invalid(Code::InternalProblem, format!("the recorded answer is of another form: {error}"))
            }),
        };
        Box::pin(async move { answer })
    }
}

fn owned(identity: &Identity) -> BTreeMap<String, String> {
    identity.iter().cloned().collect()
}

impl Files for RecordedEngineHost {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.log.note("files.read");
        let found = self.files.get(path).map(|text| text.clone().into_bytes());
        found.ok_or_else(|| format!("the blueprint has no file {path}"))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        self.log.note("files.list");
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let inside = self.files.keys().filter_map(|file| file.strip_prefix(&folder));
        let names: BTreeSet<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
        match names.is_empty() {
            true => Err(format!("the blueprint has no folder {path}")),
            false => Ok(names.into_iter().map(str::to_owned).collect()),
        }
    }
}

impl Components for RecordedEngineHost {
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        let asked = HostQuestion::Component { from: from.cloned(), select: owned(select) };
        self.answer("components.component", &asked)
    }

    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        let asked = HostQuestion::Resources { from: from.cloned(), select: owned(select) };
        self.answer("components.resources", &asked)
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        self.answer("components.resource-key", &HostQuestion::ResourceKey(reference.to_owned()))
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        let text =
            self.answer::<String>("components.resource-content", &HostQuestion::ResourceContent(reference.to_owned()));
        Box::pin(async move { Ok(text.await?.into_bytes()) })
    }
}

impl Kubeconfigs for RecordedEngineHost {
    fn issue_credential<'a>(
        &'a self,
        credential_kind: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        let asked =
            HostQuestion::IssueCredential { credential: credential_kind.to_owned(), arguments: arguments.clone() };
        self.answer("kubeconfigs.issue-credential", &asked)
    }
}
