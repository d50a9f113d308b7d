//! The Jinja template engine.
use orangery_sdk::{Engine, Files, RenderFailure, RenderRequest, Rendered, Output};
/// The component.
pub struct Jinja;
impl Engine for Jinja {
    fn render(request: RenderRequest, _files: &impl Files) -> Result<Rendered, RenderFailure> {
        let env = minijinja::Environment::new();
        let inputs: serde_json::Value = serde_json::from_str(&request.inputs).unwrap_or_default();
        let text = env.render_str(&request.template, minijinja::value::Serde(&inputs)).map_err(|e| RenderFailure { message: e.to_string(), file: None, line: None, column: None, snippet: None })?;
        Ok(Rendered { output: Output::Text(text), state: None, warnings: vec![] })
    }
}
orangery_sdk::export_template!(Jinja);
