//! One template execution of a blueprint: what an engine is asked, and what it answers (`wit/template/0.1.0/template.wit`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which list of the blueprint an execution stands in (`docs/wire.md` §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionKind {
    /// `importExecutions`
    Import,
    /// `deployExecutions`
    Deploy,
    /// `subinstallationExecutions`
    Subinstallation,
    /// `exportExecutions`
    Export,
    /// `importDataMappings`
    ImportMapping,
    /// `exportDataMappings`
    ExportMapping,
}

/// The template type that data mappings are written in (`docs/wire.md` §4.6).
pub const MAPPING_ENGINE: &str = "Spiff";

impl ExecutionKind {
    /// The list, as the blueprint or the installation names it.
    pub fn list(self) -> &'static str {
        match self {
            ExecutionKind::Import => "importExecutions",
            ExecutionKind::Deploy => "deployExecutions",
            ExecutionKind::Subinstallation => "subinstallationExecutions",
            ExecutionKind::Export => "exportExecutions",
            ExecutionKind::ImportMapping => "importDataMappings",
            ExecutionKind::ExportMapping => "exportDataMappings",
        }
    }
}

/// What an engine is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenderRequest {
    /// The list it stands in.
    pub execution: ExecutionKind,
    /// Its name.
    pub name: String,
    /// The blueprint file that the template comes from; `None` for a template written in the blueprint.
    #[serde(default)]
    pub file: Option<String>,
    /// The template text, or the file's content.
    pub template: String,
    /// `imports`, `cd`, `components`, `blueprint`, `values`, … as the execution receives them: a JSON object.
    pub inputs: Value,
    /// What the execution kept from the last job.
    #[serde(default)]
    pub state: Option<Value>,
}

/// What an engine answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    /// The output: the document's text for text engines (decoded by the host), or JSON.
    pub output: Output,
    /// What is kept for the next job.
    #[serde(default)]
    pub state: Option<Value>,
    /// Told to the user, not fatal.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The form of an engine's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Output {
    /// YAML text, decoded by the host by the YAML 1.1 rules of Landscaper, so that errors can show the rendered line.
    Text(String),
    /// A finished document.
    Document(Value),
}

/// What an engine says of a template that it does not render (`wit/template/0.1.0/check.wit`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// What is wrong whatever the inputs are.
    #[serde(default)]
    pub failures: Vec<RenderFailure>,
    /// What it reads by a fixed name.
    #[serde(default)]
    pub references: Vec<InputReference>,
}

/// A field of the inputs that a template reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputReference {
    /// From the inputs down, such as `imports` and `host`.
    pub path: Vec<String>,
    /// The blueprint file; `None` for a template written in the blueprint.
    #[serde(default)]
    pub file: Option<String>,
    /// From 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// From 1.
    #[serde(default)]
    pub column: Option<u32>,
}

/// One step from a value of the inputs to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputStep {
    /// A field of an object.
    Field(String),
    /// Each item of a list.
    Items,
    /// Each item of a list, or each value of an object.
    Entries,
}

/// Why rendering failed, with its place in the template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct RenderFailure {
    /// One sentence, without the place.
    pub message: String,
    /// The blueprint file; `None` for a template written in the blueprint.
    #[serde(default)]
    pub file: Option<String>,
    /// From 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// From 1.
    #[serde(default)]
    pub column: Option<u32>,
    /// Some lines around the place, with a marker.
    #[serde(default)]
    pub snippet: Option<String>,
    /// What the failing line reads of the inputs, in the order of the text: ways from the inputs down.
    #[serde(default)]
    pub reads: Vec<Vec<InputStep>>,
    /// May pass by itself: the host tries again.
    #[serde(default)]
    pub transient: bool,
}
