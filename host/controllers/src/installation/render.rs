//! Template executions: the engine is looked up, the template read, the component called, its output decoded
//! (`landscaper.md` §4.3, INS-24).

use kube::ResourceExt;
use orangery_core::{
    blueprint::TemplateExecution,
    error::{Code, Failure},
    port::{Files as _, Surroundings},
    step::{Halt, Step},
    template::{ExecutionKind, Output, RenderFailure, RenderRequest},
    yaml,
};
use serde_json::Value;

use super::{Run, blueprints::Loaded};

/// The list that an execution stands in, as the blueprint names it.
fn list(kind: ExecutionKind) -> &'static str {
    match kind {
        ExecutionKind::Import => "importExecutions",
        ExecutionKind::Deploy => "deployExecutions",
        ExecutionKind::Subinstallation => "subinstallationExecutions",
        ExecutionKind::Export => "exportExecutions",
        ExecutionKind::ImportMapping => "importDataMappings",
        ExecutionKind::ExportMapping => "exportDataMappings",
    }
}

/// `deployExecutions "default" (Jinja, file deploy.yaml)`: what every message about an execution begins with.
fn place(kind: ExecutionKind, execution: &TemplateExecution) -> String {
    let file = execution.file.as_ref().map(|file| format!(", file {file}")).unwrap_or_default();
    format!("{} {:?} ({}{file})", list(kind), execution.name, execution.engine)
}

impl Run<'_> {
    /// Renders one execution; the document that it answered.
    pub(super) async fn render(
        &self,
        loaded: &Loaded,
        kind: ExecutionKind,
        execution: &TemplateExecution,
        inputs: Value,
    ) -> Step<Value> {
        let place = place(kind, execution);
        let stall = |reason: &str, message: String| {
            Halt::Stall(
                Failure::new("RenderTemplate", reason, format!("{place}: {message}"))
                    .with_code(Code::ConfigurationProblem),
            )
        };
        let Some(engine) = self.host.plugins.renderer(&execution.engine) else {
            let known = self.host.plugins.template_types().join(", ");
            return Err(stall(
                "UnknownTemplateType",
                format!(
                    "no component renders the type {:?}; known types are: {known}; correct `type` or register a component for it",
                    execution.engine
                ),
            ));
        };
        let template = match &execution.file {
            Some(file) => {
                let bytes = loaded.files.read(file).map_err(|error| stall("TemplateNotFound", error))?;
                String::from_utf8(bytes)
                    .map_err(|_| stall("TemplateNotText", format!("the file {file} is not UTF-8 text")))?
            }
            None => execution.template.clone(),
        };
        let request = RenderRequest {
            execution: kind,
            name: execution.name.clone(),
            file: execution.file.clone(),
            template,
            inputs,
            state: None,
        };
        let surroundings = Surroundings::of_files(loaded.files.clone());
        let rendered = engine.render(&request, &surroundings).await.map_err(|failure| failed(&place, &failure))?;
        for warning in &rendered.warnings {
            tracing::warn!(installation = %self.draft.name_any(), execution = %place, warning);
        }
        match rendered.output {
            Output::Document(document) => Ok(document),
            Output::Text(text) => yaml::decode(&text)
                .map_err(|error| stall("InvalidTemplateOutput", format!("the rendered text is not YAML: {error}"))),
        }
    }
}

fn failed(place: &str, failure: &RenderFailure) -> Halt {
    let at = match (&failure.file, failure.line, failure.column) {
        (file, Some(line), column) => {
            let file = file.as_ref().map(|file| format!("{file}:")).unwrap_or_default();
            let column = column.map(|column| format!(":{column}")).unwrap_or_default();
            format!(" at {file}{line}{column}")
        }
        (Some(file), None, _) => format!(" in {file}"),
        (None, None, _) => String::new(),
    };
    let snippet = failure.snippet.as_ref().map(|snippet| format!("\n{snippet}")).unwrap_or_default();
    let told = Failure::new("RenderTemplate", "TemplateFailed", format!("{place}{at}: {}{snippet}", failure.message));
    if failure.transient { Halt::Retry(told) } else { Halt::Stall(told.with_code(Code::ConfigurationProblem)) }
}
