//! One execution: the engine is looked up, or read where the blueprint brings it along, the template read, the component
//! called, its text decoded (INS-24).

use orangery_blueprint::{
    TemplateExecution,
    plugins::Plugins,
    rendering::{ExecutionKind, Output, RenderRequest, Rendered},
    template_engine::TemplateContext,
};
use orangery_core::{memory, yaml};
use serde_json::{Map, Value};

use crate::{
    display::{self, RenderedPlace},
    error::{ExecutionError, ExecutionFault},
    state::{StateOutput, States},
};

/// What came of an execution.
pub(crate) struct ExecutionOutput {
    pub(crate) document: Value,
    /// Bytes of memory that it takes, with the state beside it.
    pub(crate) bytes: u64,
    pub(crate) warnings: Vec<String>,
    /// What the document was decoded from, and the template; `None` where the engine answers documents.
    text: Option<(String, String)>,
}

impl ExecutionOutput {
    /// Why the document cannot be used, with the place in the rendered text.
    pub(crate) fn error(
        &self,
        list: ExecutionKind,
        execution: &TemplateExecution,
        fault: ExecutionFault,
    ) -> ExecutionError {
        let rendered = match (&self.text, fault.field()) {
            (Some((text, template)), Some(field)) => RenderedPlace::of_field(&field, text, template),
            (Some(_) | None, _) => None,
        };
        ExecutionError { rendered, ..ExecutionError::new(list, execution, fault) }
    }
}

/// Renders one execution and keeps its state.
pub(crate) async fn render(
    (plugins, context): (&dyn Plugins, &TemplateContext),
    list: ExecutionKind,
    execution: &TemplateExecution,
    inputs: Map<String, Value>,
    states: &mut States,
) -> Result<ExecutionOutput, ExecutionError> {
    let error = |fault| ExecutionError::new(list, execution, fault);
    let engine = match execution.is_own() {
        true => execution.bundled_engine(plugins, context).await.map_err(ExecutionFault::Component),
        false => plugins
            .template_engine(&execution.engine, context.namespace.as_ref())
            .ok_or_else(|| unknown(plugins, list, execution)),
    };
    let engine = engine.map_err(error)?;
    let request = RenderRequest {
        execution: list,
        name: execution.name.clone(),
        file: execution.file.clone(),
        template: template(execution, context).map_err(error)?,
        inputs: Value::Object(inputs),
        state: states.of(list, &execution.name),
    };
    let rendered = engine.render(&request, context).await;
    let Rendered { output, state, warnings } = rendered.map_err(|failure| {
        let values = display::values(&failure.reads, &request.inputs);
        ExecutionError { values, ..error(ExecutionFault::Failed(failure)) }
    })?;
    let (document, text) = match output {
        Output::Document(document) => (document, None),
        Output::Text(text) => {
            let document = yaml::decode(&text).map_err(|fault| {
                let rendered = Some(RenderedPlace::of(fault.line, &text, &request.template));
                ExecutionError { rendered, ..error(ExecutionFault::Yaml(fault)) }
            })?;
            (document, Some((text, request.template)))
        }
    };
    let is_text = text.is_some();
    let bytes = memory::of(&document).saturating_add(state.as_ref().map_or(0, memory::of));
    // Before anything else is made of the output, as in the original: an item with a fault does not undo a state.
    states.keep(list, &execution.name, StateOutput { state: state.as_ref(), is_text, document: &document });
    Ok(ExecutionOutput { document, bytes, warnings, text })
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

fn template(execution: &TemplateExecution, context: &TemplateContext) -> Result<String, ExecutionFault> {
    if execution.is_own() {
        // Such a component is its own template.
        return Ok(String::new());
    }
    let Some(file) = &execution.file else { return Ok(execution.template.clone()) };
    let bytes = context.files.read(file).map_err(ExecutionFault::Template)?;
    String::from_utf8(bytes).map_err(|_| ExecutionFault::NotText(file.clone()))
}
