//! One execution: the engine is looked up, or read where the blueprint brings it along, the template read, the component
//! called, its text decoded (INS-24).

use orangery_core::{
    blueprint::TemplateExecution,
    port::{Plugins, Surroundings},
    template::{ExecutionKind, Output, RenderRequest, Rendered},
    yaml,
};
use serde_json::{Map, Value};

use crate::{
    error::{ExecutionError, ExecutionFault},
    state::{Answer, States},
};

/// The template type that data mappings are written in (`landscaper.md` §4.6).
pub(crate) const MAPPING_ENGINE: &str = "Spiff";

/// What came of an execution.
pub(crate) struct Document {
    pub(crate) document: Value,
    pub(crate) warnings: Vec<String>,
}

/// Renders one execution and keeps its state.
pub(crate) async fn render(
    (plugins, surroundings): (&dyn Plugins, &Surroundings),
    list: ExecutionKind,
    execution: &TemplateExecution,
    inputs: Map<String, Value>,
    states: &mut States,
) -> Result<Document, ExecutionError> {
    let error = |fault| ExecutionError::new(list, execution, fault);
    let engine = match execution.is_own() {
        true => execution.own_renderer(plugins, surroundings).await.map_err(ExecutionFault::Component),
        false => plugins.renderer(&execution.engine).ok_or_else(|| unknown(plugins, list, execution)),
    };
    let engine = engine.map_err(error)?;
    let request = RenderRequest {
        execution: list,
        name: execution.name.clone(),
        file: execution.file.clone(),
        template: template(execution, surroundings).map_err(error)?,
        inputs: Value::Object(inputs),
        state: states.of(list, &execution.name),
    };
    let rendered = engine.render(&request, surroundings).await;
    let Rendered { output, state, warnings } = rendered.map_err(|failure| error(ExecutionFault::Failed(failure)))?;
    let (document, is_text) = match output {
        Output::Document(document) => (document, false),
        Output::Text(text) => (yaml::decode(&text).map_err(|fault| error(ExecutionFault::Yaml(fault)))?, true),
    };
    // Before anything else is made of the output, as in the original: an item with a fault does not undo a state.
    states.keep(list, &execution.name, Answer { state: state.as_ref(), is_text, document: &document });
    Ok(Document { document, warnings })
}

fn unknown(plugins: &dyn Plugins, list: ExecutionKind, execution: &TemplateExecution) -> ExecutionFault {
    let (engine, known) = (execution.engine.clone(), plugins.template_types().join(", "));
    match list {
        ExecutionKind::ImportMapping | ExecutionKind::ExportMapping => {
            ExecutionFault::NoMappingEngine { engine, known }
        }
        ExecutionKind::Import | ExecutionKind::Deploy | ExecutionKind::Subinstallation | ExecutionKind::Export => {
            ExecutionFault::UnknownEngine { engine, known }
        }
    }
}

fn template(execution: &TemplateExecution, surroundings: &Surroundings) -> Result<String, ExecutionFault> {
    if execution.is_own() {
        // Such a component is its own template.
        return Ok(String::new());
    }
    let Some(file) = &execution.file else { return Ok(execution.template.clone()) };
    let bytes = surroundings.files.read(file).map_err(ExecutionFault::Template)?;
    String::from_utf8(bytes).map_err(|_| ExecutionFault::NotText(file.clone()))
}
