//! Which lines of templates were rendered.
//!
//! An engine that makes text renders each template twice: as it is, and with a mark before each line. What the second output has of
//! marks was reached. It counts only where it is, marks and blanks apart, the first.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use orangery_blueprint::{
    plugins::Plugins,
    rendering::{Output, RenderFailure, RenderRequest, Rendered},
    review::ToCheck,
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::port::BoxFuture;
use orangery_proposal::deployer::PluginIdentity;
use serde::Serialize;

use crate::{
    template_marks::{LineMark, TagSyntax, marked, marks, reached},
    wrapped_engines::{WrapEngine, WrappedEngines},
};

/// The engine that computes all of a template whatever the inputs are.
const WHOLE: &str = "Spiff";

/// A template: its type and its text.
type TemplateText = (String, String);

/// The lines of each template that were rendered.
#[derive(Debug, Default)]
pub(crate) struct LineCoverage(Mutex<BTreeMap<TemplateText, BTreeSet<usize>>>);

/// How the lines of a template are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CoverageMeasure {
    /// Each line by itself.
    Lines,
    /// All of them where the template was rendered at all.
    Whole,
    /// Not at all.
    None,
}

/// What was rendered of one template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateCoverage {
    /// The file that has its lines.
    pub(crate) file: String,
    /// Its execution: list and name.
    pub(crate) execution: String,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) template_type: String,
    /// How its lines are counted.
    pub(crate) measured: CoverageMeasure,
    /// How many lines count.
    pub(crate) lines: usize,
    /// How many of them were rendered.
    pub(crate) reached: usize,
    /// The others, by their numbers in the file.
    pub(crate) not_reached: BTreeSet<usize>,
}

impl LineCoverage {
    fn note(&self, template: TemplateText, lines: BTreeSet<usize>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(template).or_default().extend(lines);
    }

    fn of(&self, template: &TemplateText) -> BTreeSet<usize> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(template).cloned().unwrap_or_default()
    }

    /// What was rendered of these templates, each once, in their order.
    pub(crate) fn report(&self, templates: &[ToCheck]) -> Vec<TemplateCoverage> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for template in templates {
            let execution = &template.execution;
            let text = match &execution.file {
                None => execution.template.clone(),
                Some(file) => match template.files.read(file).map(String::from_utf8) {
                    Ok(Ok(text)) => text,
                    // The rendering says so.
                    Ok(Err(_)) | Err(_) => continue,
                },
            };
            if execution.file.is_none() || seen.insert((execution.file.clone(), execution.engine.clone())) {
                all.push(self.of_template(template, text));
            }
        }
        all
    }

    fn of_template(&self, template: &ToCheck, text: String) -> TemplateCoverage {
        let execution = &template.execution;
        let rendered = self.of(&(execution.engine.clone(), text.clone()));
        let (measured, counted): (_, BTreeSet<usize>) = match TagSyntax::of(&execution.engine) {
            Some(syntax) => {
                // What became a value may have been rendered without coming out.
                let counts = |mark: &LineMark| !mark.is_captured || rendered.contains(&mark.line);
                let counted = marks(syntax, &text).into_iter().filter(counts).map(|mark| mark.line).collect();
                (CoverageMeasure::Lines, counted)
            }
            None if execution.engine == WHOLE => (CoverageMeasure::Whole, lines(&text)),
            None => (CoverageMeasure::None, BTreeSet::new()),
        };
        let not_reached: BTreeSet<usize> = counted.difference(&rendered).copied().collect();
        let place = |line: &usize| template.position(u32::try_from(*line).unwrap_or(u32::MAX));
        TemplateCoverage {
            file: place(&1).file,
            execution: format!("{} {:?}", template.list.list(), execution.name),
            template_type: execution.engine.clone(),
            measured,
            lines: counted.len(),
            reached: counted.len() - not_reached.len(),
            not_reached: not_reached.iter().map(|line| place(line).place.line).collect(),
        }
    }
}

/// The lines of a text that are not blank, from 1.
fn lines(text: &str) -> BTreeSet<usize> {
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbered.map(|(index, _)| index + 1).collect()
}

/// Components whose template engines tell which lines they have rendered.
pub(crate) fn counted<'p>(plugins: &'p dyn Plugins, coverage: &Arc<LineCoverage>) -> WrappedEngines<'p> {
    let coverage = Arc::clone(coverage);
    let wrap: WrapEngine = Box::new(move |engine, template_type| {
        Arc::new(CountedEngine { engine, template_type, coverage: Arc::clone(&coverage) })
    });
    WrappedEngines { plugins, wrap }
}

struct CountedEngine {
    engine: Arc<dyn TemplateEngine>,
    template_type: String,
    coverage: Arc<LineCoverage>,
}

impl CountedEngine {
    async fn count(&self, request: &RenderRequest, context: &TemplateContext, unmarked: &Rendered) {
        let template = (self.template_type.clone(), request.template.clone());
        if self.template_type == WHOLE {
            return self.coverage.note(template, lines(&request.template));
        }
        let (Some(syntax), Output::Text(unmarked)) = (TagSyntax::of(&self.template_type), &unmarked.output) else {
            return;
        };
        let all = marks(syntax, &request.template);
        let outside: Vec<LineMark> = all.iter().filter(|mark| !mark.is_captured).copied().collect();
        for wanted in [all, outside] {
            let wanted = wanted.iter();
            let request = RenderRequest { template: marked(&request.template, wanted), ..request.clone() };
            let Ok(Rendered { output: Output::Text(made), .. }) = self.engine.render(&request, context).await else {
                continue;
            };
            if let Some(lines) = reached(&made, unmarked) {
                return self.coverage.note(template, lines);
            }
        }
    }
}

impl TemplateEngine for CountedEngine {
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
            self.count(request, context, &rendered).await;
            Ok(rendered)
        })
    }
}
