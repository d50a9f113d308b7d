//! Which line of which template made a part of what was rendered.
//!
//! An engine that makes text renders each template twice: as it is, and with a mark before each line. It counts only where both are
//! the same document.

use std::sync::{Arc, Mutex, PoisonError};

use orangery_blueprint::{
    plugins::Plugins,
    rendering::{ExecutionKind, MAPPING_ENGINE, Output, RenderFailure, RenderRequest, Rendered},
    review::{self, BlueprintOrigin},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::{
    port::BoxFuture,
    yaml::{self, SourcePositions},
};
use orangery_ocm::Files;
use orangery_proposal::deployer::PluginIdentity;
use serde::Serialize;
use serde_json::Value;

use crate::{
    template_marks::{LineMark, TagSyntax, Unmarked, marked, marks},
    wrapped_engines::{WrapEngine, WrappedEngines},
};

/// The templates that were rendered, in their order.
#[derive(Debug, Default)]
pub struct TemplateTrace(Mutex<Vec<TracedTemplate>>);

impl TemplateTrace {
    fn note(&self, template: TracedTemplate) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(template);
    }

    /// Takes what was rendered so far.
    pub fn take(&self) -> Vec<TracedTemplate> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A template that was rendered.
#[derive(Clone)]
pub struct TracedTemplate {
    /// Its list.
    pub list: ExecutionKind,
    /// The name of its execution.
    pub name: String,
    /// What it made.
    pub document: Value,
    file: Option<String>,
    files: Arc<dyn Files>,
    lines: DocumentLines,
}

impl std::fmt::Debug for TracedTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TracedTemplate").field("list", &self.list).field("name", &self.name).finish_non_exhaustive()
    }
}

/// How it is known which line made a part of the document.
#[derive(Clone, Debug)]
enum DocumentLines {
    /// By the marks in the text that the document was read from.
    Marked(Unmarked, SourcePositions),
    /// The template is a document of the same form, as those of Spiff are.
    SameForm(SourcePositions),
    /// Not at all.
    Unknown,
}

/// A place in a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplatePlace {
    /// The file of the blueprint.
    pub file: String,
    /// The line, from 1; none where the type of the template does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The execution: list and name.
    pub execution: String,
}

impl TracedTemplate {
    /// Where a part of the document was made, which a path such as `deployItems[0].config` leads to.
    pub fn place(&self, path: &str) -> TemplatePlace {
        let line = match &self.lines {
            DocumentLines::Marked(made, positions) => made.line_at(positions.find(path)),
            DocumentLines::SameForm(positions) => Some(positions.find(path).line),
            DocumentLines::Unknown => None,
        };
        let (file, line) = self.in_file(line);
        TemplatePlace { file, line, execution: format!("{} {:?}", self.list.list(), self.name) }
    }

    /// A line of a template that is written in the blueprint stands elsewhere in its file.
    fn in_file(&self, line: Option<usize>) -> (String, Option<usize>) {
        if let Some(file) = &self.file {
            return (file.clone(), line);
        }
        let reviewed = review::review(&self.files, &BlueprintOrigin::Files(String::new()));
        let mut templates = reviewed.templates.iter();
        let template = templates.find(|of| of.list == self.list && of.execution.name == self.name);
        match template {
            None => (orangery_blueprint::FILE.to_owned(), None),
            Some(template) => {
                let place = template.position(line.and_then(|line| u32::try_from(line).ok()).unwrap_or(1));
                (place.file, line.map(|_| place.place.line))
            }
        }
    }
}

/// Components whose template engines tell a trace what they render.
pub fn traced<'p>(plugins: &'p dyn Plugins, trace: &Arc<TemplateTrace>) -> WrappedEngines<'p> {
    let trace = Arc::clone(trace);
    let wrap: WrapEngine = Box::new(move |engine, template_type| {
        Arc::new(TracedEngine { engine, template_type, trace: Arc::clone(&trace) })
    });
    WrappedEngines { plugins, wrap }
}

struct TracedEngine {
    engine: Arc<dyn TemplateEngine>,
    template_type: String,
    trace: Arc<TemplateTrace>,
}

impl TracedEngine {
    /// What was made, and how its lines are known. Nothing of what cannot be read: rendering says so itself.
    async fn lines(
        &self,
        request: &RenderRequest,
        context: &TemplateContext,
        output: &Output,
    ) -> Option<(Value, DocumentLines)> {
        let text = match output {
            Output::Document(document) => {
                let has_same_form = self.template_type == MAPPING_ENGINE;
                let located = has_same_form.then(|| yaml::locate(&request.template).ok()).flatten();
                let lines = located.map_or(DocumentLines::Unknown, |of| DocumentLines::SameForm(of.positions));
                return Some((document.clone(), lines));
            }
            Output::Text(text) => text,
        };
        let document = yaml::decode(text).ok()?;
        let Some(syntax) = TagSyntax::of(&self.template_type) else { return Some((document, DocumentLines::Unknown)) };
        let all = marks(syntax, &request.template);
        let outside: Vec<LineMark> = all.iter().filter(|mark| !mark.is_captured).copied().collect();
        for wanted in [all, outside] {
            let request = RenderRequest { template: marked(&request.template, wanted.iter()), ..request.clone() };
            let Ok(Rendered { output: Output::Text(made), .. }) = self.engine.render(&request, context).await else {
                continue;
            };
            let Some(made) = Unmarked::of(&made) else { continue };
            match yaml::locate(&made.text) {
                Ok(located) if located.value == document => {
                    return Some((document, DocumentLines::Marked(made, located.positions)));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Some((document, DocumentLines::Unknown))
    }
}

impl TemplateEngine for TracedEngine {
    fn identity(&self) -> &PluginIdentity {
        self.engine.identity()
    }

    fn memory_mib(&self) -> u64 {
        self.engine.memory_mib()
    }

    fn render<'a>(
        &'a self,
        request: &'a RenderRequest,
        context: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        Box::pin(async move {
            let rendered = self.engine.render(request, context).await?;
            if let Some((document, lines)) = self.lines(request, context, &rendered.output).await {
                self.trace.note(TracedTemplate {
                    list: request.execution,
                    name: request.name.clone(),
                    document,
                    file: request.file.clone(),
                    files: Arc::clone(&context.files),
                    lines,
                });
            }
            Ok(rendered)
        })
    }
}
