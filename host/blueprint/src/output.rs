//! What template executions answer (`docs/wire.md` §4.3), decoded leniently.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{InstallationTemplate, TemplateError};
use orangery_core::lenient::{self, DecodeError};

/// Why an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// Not the form of the list it stands in.
    #[error("the rendered document has a wrong form: {0}")]
    Form(DecodeError),
    /// A sub-installation is invalid.
    #[error("{0}")]
    Subinstallation(TemplateError),
}

/// The answer of an import execution.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ImportOutput {
    /// They join the imports at once.
    pub bindings: Map<String, Value>,
    /// The first list that is not empty fails the installation.
    pub errors: Vec<String>,
}

/// The answer of an import execution.
pub fn decode_imports(output: &Value) -> Result<ImportOutput, OutputError> {
    lenient::decode(output).map_err(OutputError::Form)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SubinstallationOutput {
    subinstallations: Vec<Value>,
}

/// The templates of a sub-installation execution; each must say its kind.
pub fn decode_subinstallations(output: &Value) -> Result<Vec<InstallationTemplate>, OutputError> {
    let form: SubinstallationOutput = lenient::decode(output).map_err(OutputError::Form)?;
    form.subinstallations
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let template = InstallationTemplate::parse(value, &format!("subinstallations[{index}]"))?;
            let field = |wanted: &str| {
                value
                    .as_object()
                    .and_then(|map| map.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)))
                    .is_some()
            };
            if field("apiVersion") && field("kind") {
                Ok(template)
            } else {
                Err(TemplateError::Kind { name: template.name, found: String::new() })
            }
        })
        .collect::<Result<_, _>>()
        .map_err(OutputError::Subinstallation)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExportOutput {
    exports: Map<String, Value>,
}

/// The exports of an export execution.
pub fn decode_exports(output: &Value) -> Result<Map<String, Value>, OutputError> {
    let form: ExportOutput = lenient::decode(output).map_err(OutputError::Form)?;
    Ok(form.exports)
}

/// Merges the exports of a later execution into those of the earlier ones: objects deeply, all else is replaced.
pub fn merge_exports(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(earlier)), Value::Object(later)) => merge_exports(earlier, later),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// What an execution wants kept for the next job: its `state`, unless empty (`docs/wire.md` §4.7).
pub fn state(output: &Value) -> Option<&Value> {
    let map = output.as_object()?;
    let (_, state) = map.iter().find(|(name, _)| name.eq_ignore_ascii_case("state"))?;
    let empty = match state {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    };
    (!empty).then_some(state)
}
