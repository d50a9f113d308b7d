//! The cases of a template engine.

use std::sync::Arc;

use orangery_blueprint::{
    recorded::{HostQuestion, RecordedHost, RecordedRendering, RenderAnswer},
    rendering::{Findings, Output, RenderRequest},
    template_engine::{Kubeconfigs, TemplateContext},
};
use orangery_core::{error::Fault, port::BoxFuture};
use orangery_ocm::{Components, Files, Identity};
use orangery_plugin::Plugin;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CallLog, Case};

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
            RenderAnswer::Rendered(rendered)
        }
        Err(failure) => {
            log.note("failure");
            RenderAnswer::Failure(failure)
        }
    };
    case.expect(&answer)?;
    let (rendered, failure) = match &answer {
        RenderAnswer::Rendered(rendered) => (json!(rendered), Value::Null),
        RenderAnswer::Failure(failure) => (Value::Null, json!(failure)),
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
    let recorded: RecordedRendering = case.request()?;
    if recorded.host.iter().any(|answer| matches!(answer.ask, HostQuestion::Bytes { .. })) {
        return Err("it records random bytes, which the sandbox makes itself; run it natively, and not here".to_owned());
    }
    let (request, context) = RecordedHost::context(recorded)?;
    let logged = Arc::new(LoggedHost { log: log.clone(), recorded: context.clone() });
    Ok((request, TemplateContext { files: logged.clone(), components: logged.clone(), kubeconfigs: logged, ..context }))
}

/// What is recorded, and which of it was asked for.
struct LoggedHost {
    log: Arc<CallLog>,
    recorded: TemplateContext,
}

impl Files for LoggedHost {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.log.note("files.read");
        self.recorded.files.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        self.log.note("files.list");
        self.recorded.files.list(path)
    }
}

impl Components for LoggedHost {
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        self.log.note("components.component");
        self.recorded.components.component(from, select)
    }

    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        self.log.note("components.resources");
        self.recorded.components.resources(from, select)
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        self.log.note("components.resource-key");
        self.recorded.components.resource_key(reference)
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        self.log.note("components.resource-content");
        self.recorded.components.resource_content(reference)
    }
}

impl Kubeconfigs for LoggedHost {
    fn issue_credential<'a>(
        &'a self,
        credential_kind: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        self.log.note("kubeconfigs.issue-credential");
        self.recorded.kubeconfigs.issue_credential(credential_kind, arguments)
    }
}
