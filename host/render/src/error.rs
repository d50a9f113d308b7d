//! Why a blueprint cannot be rendered: which execution, where in its template or output, and how to mend it.

use std::fmt;

use orangery_blueprint::{
    ItemError, OutputError, TemplateError, TemplateExecution,
    export::ExportError,
    import::ImportError,
    rendering::{ExecutionKind, RenderFailure},
};
use orangery_core::{
    error::{Code, Failure, Fault},
    yaml::YamlError,
};

use crate::display::RenderedPlace;

/// Why a blueprint cannot be rendered. Never shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The imports do not fit the blueprint.
    #[error("{0}")]
    Imports(#[from] ImportError),
    /// An execution failed, or its output cannot be used.
    #[error("{0}")]
    Execution(Box<ExecutionError>),
    /// An import execution answered `errors`.
    #[error("import execution {execution:?} refuses the imports: {}", errors.join("; "))]
    Refused {
        /// The execution.
        execution: String,
        /// What it answered.
        errors: Vec<String>,
    },
    /// All sub-installations together break a rule.
    #[error("{0}")]
    Subinstallations(TemplateError),
    /// A sub-installation takes its blueprint from a component version, and there is none.
    #[error(
        "the sub-installation {name:?} takes its blueprint from {reference}, but the blueprint belongs to no component version; give the installation a componentDescriptor, or write the blueprint's files into blueprint.filesystem"
    )]
    NoComponent {
        /// The sub-installation.
        name: String,
        /// Its `blueprint.ref`.
        reference: String,
    },
    /// The component version lacks what is asked of it, or cannot be reached.
    #[error("{0}")]
    Component(Fault),
    /// What executions answer takes more memory than there is for it.
    #[error("{0}")]
    Memory(Fault),
    /// All deploy items together break a rule, or name a target that is no import.
    #[error("{0}")]
    Items(ItemError),
    /// The exports do not fit the blueprint.
    #[error("{0}")]
    Exports(#[from] ExportError),
}

impl From<ExecutionError> for RenderError {
    fn from(error: ExecutionError) -> Self {
        RenderError::Execution(Box::new(error))
    }
}

impl RenderError {
    /// Whether trying again may help without a change of anything.
    pub fn is_transient(&self) -> bool {
        match self {
            RenderError::Execution(error) => error.is_transient(),
            RenderError::Component(fault) | RenderError::Memory(fault) => matches!(fault, Fault::Later(_)),
            _ => false,
        }
    }

    /// What failed, for `lastError.operation`.
    fn operation(&self) -> &'static str {
        match self {
            RenderError::Imports(_) => "ValidateImports",
            RenderError::Execution(_) | RenderError::Memory(_) => "RenderTemplate",
            RenderError::Refused { .. } => "RunImportExecutions",
            RenderError::Subinstallations(_) | RenderError::NoComponent { .. } => "RenderSubinstallations",
            RenderError::Component(_) => "ReadComponent",
            RenderError::Items(_) => "RenderDeployItems",
            RenderError::Exports(_) => "ValidateExport",
        }
    }

    /// A CamelCase word for conditions and `lastError`.
    fn reason(&self) -> &'static str {
        match self {
            RenderError::Imports(error) => error.fault.reason(),
            RenderError::Execution(error) => error.fault.reason(),
            RenderError::Refused { .. } => "ImportsRefused",
            RenderError::Subinstallations(_) | RenderError::NoComponent { .. } => "InvalidSubinstallations",
            RenderError::Component(_) => "ComponentNotUsable",
            RenderError::Memory(_) => "TooMuchMemory",
            RenderError::Items(_) => "InvalidDeployItems",
            RenderError::Exports(error) => error.reason(),
        }
    }

    /// As a status shows it.
    pub fn failure(&self) -> Failure {
        let mut failure = Failure::new(self.operation(), self.reason(), self.to_string());
        if let RenderError::Component(fault) | RenderError::Memory(fault) = self {
            failure.codes.extend(fault.code());
            return failure;
        }
        match self {
            _ if self.is_transient() => failure,
            // Recorded: a template that fails is its author's own affair.
            RenderError::Execution(error) if matches!(error.fault, ExecutionFault::Failed(_)) => {
                failure.with_code(Code::ForInfoOnly)
            }
            _ => failure.with_code(Code::ConfigurationProblem),
        }
    }
}

/// Why one execution cannot be rendered, or its output not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionError {
    /// The list it stands in.
    pub list: ExecutionKind,
    /// Its name; of a mapping, the name of the import or export.
    pub name: String,
    /// Its engine.
    pub engine: String,
    /// The file with its template; `None` for a template written in the blueprint.
    pub file: Option<String>,
    /// What is wrong.
    pub fault: ExecutionFault,
    /// Where it is in the rendered text.
    pub rendered: Option<RenderedPlace>,
    /// What the failing line of the template reads, by path and type.
    pub values: Vec<String>,
}

impl std::error::Error for ExecutionError {}

/// What is wrong with an execution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionFault {
    /// No component renders its type.
    #[error(
        "no component renders the type {engine:?}; known types are: {known}; correct `type` or register a component for it"
    )]
    UnknownEngine {
        /// The type.
        engine: String,
        /// The types there are.
        known: String,
    },
    /// Data mappings need an engine that is not there.
    #[error(
        "data mappings are written in {engine}, and no component renders it; known types are: {known}; register a component for it"
    )]
    NoMappingEngine {
        /// The type.
        engine: String,
        /// The types there are.
        known: String,
    },
    /// Its file cannot be read.
    #[error("{0}")]
    Template(String),
    /// The engine that the blueprint brings along cannot be read.
    #[error("{0}")]
    Component(Fault),
    /// Its file is no text.
    #[error("the file {0} is not UTF-8 text")]
    NotText(String),
    /// The engine failed.
    #[error("{}", .0.message)]
    Failed(RenderFailure),
    /// The rendered text is no YAML.
    #[error("the rendered text is not YAML: {0}")]
    Yaml(YamlError),
    /// The rendered items have a wrong form.
    #[error("{0}")]
    Items(ItemError),
    /// The rendered document has a wrong form.
    #[error("{0}")]
    Output(OutputError),
}

impl ExecutionFault {
    /// The field of the rendered document that is at fault, where one is.
    pub(crate) fn field(&self) -> Option<String> {
        match self {
            ExecutionFault::Items(ItemError::Form(error)) | ExecutionFault::Output(OutputError::Form(error)) => {
                Some(error.path.clone())
            }
            ExecutionFault::Items(ItemError::Missing { number, .. }) => {
                Some(format!("deployItems[{}]", number.saturating_sub(1)))
            }
            ExecutionFault::Output(OutputError::Subinstallation(TemplateError::Form(error))) => {
                Some(error.path.clone())
            }
            _ => None,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            ExecutionFault::UnknownEngine { .. } | ExecutionFault::NoMappingEngine { .. } => "UnknownTemplateType",
            ExecutionFault::Template(_) => "TemplateNotFound",
            ExecutionFault::Component(_) => "ComponentNotRead",
            ExecutionFault::NotText(_) => "TemplateNotText",
            ExecutionFault::Failed(_) => "TemplateFailed",
            ExecutionFault::Yaml(_) | ExecutionFault::Items(_) | ExecutionFault::Output(_) => "InvalidTemplateOutput",
        }
    }
}

impl ExecutionError {
    pub(crate) fn new(list: ExecutionKind, execution: &TemplateExecution, fault: ExecutionFault) -> Self {
        Self {
            list,
            name: execution.name.clone(),
            engine: execution.engine.clone(),
            file: execution.file.clone(),
            fault,
            rendered: None,
            values: Vec::new(),
        }
    }

    /// Whether trying again may help without a change of anything.
    pub fn is_transient(&self) -> bool {
        match &self.fault {
            ExecutionFault::Failed(failure) => failure.transient,
            ExecutionFault::Component(fault) => matches!(fault, Fault::Later(_)),
            ExecutionFault::UnknownEngine { .. }
            | ExecutionFault::NoMappingEngine { .. }
            | ExecutionFault::Template(_)
            | ExecutionFault::NotText(_)
            | ExecutionFault::Yaml(_)
            | ExecutionFault::Items(_)
            | ExecutionFault::Output(_) => false,
        }
    }

    /// `deployExecutions "default" (Jinja, file deploy.yaml)`: what every message about an execution begins with.
    pub(crate) fn place(kind: ExecutionKind, execution: &str, engine: &str, file: Option<&str>) -> String {
        let file = file.map(|file| format!(", file {file}")).unwrap_or_default();
        format!("{} {execution:?} ({engine}{file})", kind.list())
    }
}

/// ` at deploy.yaml:3:14`, as far as it is known.
fn at(failure: &RenderFailure) -> String {
    let file = failure.file.as_deref();
    match (file, failure.line) {
        (file, Some(line)) => {
            let file = file.map(|file| format!("{file}:")).unwrap_or_default();
            let column = failure.column.map(|column| format!(":{column}")).unwrap_or_default();
            format!(" at {file}{line}{column}")
        }
        (Some(file), None) => format!(" in {file}"),
        (None, None) => String::new(),
    }
}

impl fmt::Display for ExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Self::place(self.list, &self.name, &self.engine, self.file.as_deref());
        let (at, snippet) = match &self.fault {
            ExecutionFault::Failed(failure) => (at(failure), failure.snippet.as_deref()),
            _ => (String::new(), None),
        };
        write!(f, "{place}{at}: {}", self.fault)?;
        if let Some(RenderedPlace { line, entry, snippet }) = &self.rendered {
            let entry = entry.as_ref().map(|entry| format!(" of {entry:?}")).unwrap_or_default();
            write!(f, "; it is in line {line}{entry} of the rendered text:\n{snippet}")?;
        }
        snippet.map_or(Ok(()), |snippet| write!(f, "\n{snippet}"))?;
        self.values.iter().try_for_each(|value| write!(f, "\n{value}"))
    }
}
