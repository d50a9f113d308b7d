//! From files to a blueprint.

use std::{collections::BTreeSet, fmt};

use serde::Deserialize;
use serde_json::Value;

use super::{
    Blueprint, FILE, InstallationTemplate, OWN_ENGINE, TemplateExecution,
    definition::{self, ExportForm, ImportForm},
    own::{ComponentReference, ReferenceError},
    template::TemplateError,
};
use crate::{
    lenient::{self, DecodeError},
    port::Files,
    yaml::{self, YamlError},
};

/// Why a blueprint cannot be used: the file, the field, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlueprintError {
    /// A file cannot be read.
    #[error("{reason}")]
    File {
        /// The file.
        path: String,
        /// One sentence that names it.
        reason: String,
    },
    /// A file is no text.
    #[error("the blueprint file {path} is not UTF-8 text")]
    NotText {
        /// The file.
        path: String,
    },
    /// A file is no YAML.
    #[error("the blueprint file {path} is not YAML: {source}")]
    Yaml {
        /// The file.
        path: String,
        /// Where and why.
        source: YamlError,
    },
    /// A field has another form.
    #[error("the blueprint file {path} has a wrong form: {source}")]
    Form {
        /// The file.
        path: String,
        /// Where and why.
        source: DecodeError,
    },
    /// Another kind of document.
    #[error("the blueprint file {path} has kind {found:?}; write kind: {expected}")]
    Kind {
        /// The file.
        path: String,
        /// What is wanted.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A field breaks a rule.
    #[error("the blueprint file {path} is invalid: {field} {fault}")]
    Field {
        /// The file.
        path: String,
        /// The field, such as `imports[0].type`.
        field: String,
        /// The rule.
        fault: Fault,
    },
    /// A static sub-installation is invalid.
    #[error("the blueprint file {path} is invalid: {source}")]
    Subinstallation {
        /// The file.
        path: String,
        /// Which and why.
        source: TemplateError,
    },
}

/// A rule of a blueprint that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Must be set.
    Empty,
    /// Stands twice.
    Duplicate(String),
    /// Neither or both of `schema` and `targetType`, and no `type`.
    SchemaOrTargetType,
    /// `targetType` on data.
    OnlyForTargets,
    /// `schema` on targets.
    OnlyForData,
    /// A `type` that does not exist.
    UnknownType {
        /// The type.
        found: String,
        /// The types there are.
        known: &'static str,
    },
    /// `imports` under an import that is always there.
    ConditionalOnRequired,
    /// Not exactly one of `file` and `template`, or `file` and an inline template.
    FileOrTemplate,
    /// `file` beside other fields of a sub-installation.
    FileOrInline,
    /// No component stands where an execution of type `Wasm` names one.
    Component(ReferenceError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Empty => f.write_str("is missing; set it"),
            Fault::Duplicate(name) => write!(f, "{name:?} stands twice; give every entry its own name"),
            Fault::SchemaOrTargetType => {
                f.write_str("has no type: set `schema` for data or `targetType` for targets, or write `type`")
            }
            Fault::OnlyForTargets => {
                f.write_str("belongs to targets, but the type is data; remove it or set type: target")
            }
            Fault::OnlyForData => {
                f.write_str("belongs to data, but the type is a target's; remove it or set type: data")
            }
            Fault::UnknownType { found, known } => write!(f, "{found:?} does not exist; known types are {known}"),
            Fault::ConditionalOnRequired => {
                f.write_str("are conditional imports, which an import has only under required: false")
            }
            Fault::FileOrTemplate => f.write_str("needs exactly one of `file` and `template`"),
            Fault::Component(error) => error.fmt(f),
            Fault::FileOrInline => f.write_str("needs either `file` alone or an installation template written out"),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Form {
    kind: String,
    annotations: std::collections::BTreeMap<String, String>,
    local_types: std::collections::BTreeMap<String, Value>,
    imports: Vec<ImportForm>,
    exports: Vec<ExportForm>,
    import_executions: Vec<ExecutionForm>,
    deploy_executions: Vec<ExecutionForm>,
    export_executions: Vec<ExecutionForm>,
    subinstallation_executions: Vec<ExecutionForm>,
    subinstallations: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecutionForm {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    file: String,
    template: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SubinstallationForm {
    file: String,
    name: String,
}

impl Blueprint {
    /// Reads the blueprint of these files; every file it names is looked up.
    pub fn parse(files: &dyn Files) -> Result<Self, BlueprintError> {
        let form: Form = document(files, FILE, "Blueprint", |form: &Form| &form.kind)?;
        let field = |(field, fault): (String, Fault)| BlueprintError::Field { path: FILE.to_owned(), field, fault };
        let list = |name: &str, forms| executions(files, name, forms);
        Ok(Self {
            annotations: form.annotations,
            local_types: form.local_types,
            imports: definition::imports(form.imports, "imports", &mut BTreeSet::new()).map_err(field)?,
            exports: definition::exports(form.exports).map_err(field)?,
            import_executions: list("importExecutions", form.import_executions)?,
            deploy_executions: list("deployExecutions", form.deploy_executions)?,
            export_executions: list("exportExecutions", form.export_executions)?,
            subinstallation_executions: list("subinstallationExecutions", form.subinstallation_executions)?,
            subinstallations: form
                .subinstallations
                .iter()
                .enumerate()
                .map(|(index, value)| subinstallation(files, index, value))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn yaml(files: &dyn Files, path: &str) -> Result<Value, BlueprintError> {
    let bytes = files.read(path).map_err(|reason| BlueprintError::File { path: path.to_owned(), reason })?;
    let text = String::from_utf8(bytes).map_err(|_| BlueprintError::NotText { path: path.to_owned() })?;
    yaml::decode(&text).map_err(|source| BlueprintError::Yaml { path: path.to_owned(), source })
}

/// A file of a kind; a file without a kind is taken for it.
fn document<T: serde::de::DeserializeOwned>(
    files: &dyn Files,
    path: &str,
    expected: &'static str,
    kind: impl Fn(&T) -> &str,
) -> Result<T, BlueprintError> {
    let value = yaml(files, path)?;
    let form = lenient::decode(&value).map_err(|source| BlueprintError::Form { path: path.to_owned(), source })?;
    match kind(&form) {
        "" => Ok(form),
        found if found == expected => Ok(form),
        found => Err(BlueprintError::Kind { path: path.to_owned(), expected, found: found.to_owned() }),
    }
}

fn executions(
    files: &dyn Files,
    list: &str,
    forms: Vec<ExecutionForm>,
) -> Result<Vec<TemplateExecution>, BlueprintError> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for (index, form) in forms.into_iter().enumerate() {
        let fault = |field: &str, fault| {
            let field = if field.is_empty() { format!("{list}[{index}]") } else { format!("{list}[{index}].{field}") };
            Err(BlueprintError::Field { path: FILE.to_owned(), field, fault })
        };
        if form.name.is_empty() {
            return fault("name", Fault::Empty);
        }
        if !names.insert(form.name.clone()) {
            return fault("name", Fault::Duplicate(form.name));
        }
        if form.type_.is_empty() {
            return fault("type", Fault::Empty);
        }
        let own = form.type_ == OWN_ENGINE;
        let (file, template) = match (form.file.as_str(), form.template) {
            ("", Some(template)) if own => match reference(&template) {
                Ok(reference) => (None, reference.to_string()),
                Err(error) => return fault("template", Fault::Component(error)),
            },
            ("", Some(Value::String(text))) => (None, text),
            // Spiff takes a structure; its engine reads YAML, and JSON is YAML.
            ("", Some(structure)) => (None, structure.to_string()),
            ("", None) => return fault("", Fault::FileOrTemplate),
            (path, None) => {
                files.read(path).map_err(|reason| BlueprintError::File { path: path.to_owned(), reason })?;
                (Some(path.to_owned()), String::new())
            }
            (_, Some(_)) => return fault("", Fault::FileOrTemplate),
        };
        all.push(TemplateExecution { name: form.name, engine: form.type_, file, template });
    }
    Ok(all)
}

/// The component that an execution of type `Wasm` refers to: the reference itself, or `component` of a structure.
fn reference(template: &Value) -> Result<ComponentReference, ReferenceError> {
    match template.get("component").unwrap_or(template) {
        Value::String(text) => text.parse(),
        other => Err(ReferenceError::Form(other.to_string().chars().take(300).collect())),
    }
}

fn subinstallation(files: &dyn Files, index: usize, value: &Value) -> Result<InstallationTemplate, BlueprintError> {
    let place = format!("subinstallations[{index}]");
    let form: SubinstallationForm = lenient::decode(value).map_err(|mut source| {
        source.path = if source.path.is_empty() { place.clone() } else { format!("{place}.{}", source.path) };
        BlueprintError::Form { path: FILE.to_owned(), source }
    })?;
    let invalid = |path: &str| {
        let path = path.to_owned();
        move |source| BlueprintError::Subinstallation { path, source }
    };
    if form.file.is_empty() {
        return InstallationTemplate::parse(value, &place).map_err(invalid(FILE));
    }
    if !form.name.is_empty() {
        return Err(BlueprintError::Field { path: FILE.to_owned(), field: place, fault: Fault::FileOrInline });
    }
    InstallationTemplate::parse(&yaml(files, &form.file)?, "").map_err(invalid(&form.file))
}
