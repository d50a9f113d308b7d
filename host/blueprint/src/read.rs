//! From files to a blueprint.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    BUNDLED_ENGINE, Blueprint, BlueprintFault, FILE, InstallationTemplate, TemplateExecution,
    definition::{self, ExportForm, ImportForm},
    template::TemplateError,
};
use orangery_core::{
    lenient::{self, DecodeError},
    memory,
    name::Kind,
    workflow::FailurePolicy,
    yaml::{self, MOST_YAML_BYTES, YamlError, YamlFault},
};
use orangery_ocm::{ComponentReference, ComponentReferenceError, Files};

/// Why a blueprint cannot be used: the file, the field, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlueprintError {
    /// A file cannot be read.
    #[error("{reason}")]
    File {
        /// The file that names it; the file itself where none does.
        path: String,
        /// The field that names it; empty where none does.
        field: String,
        /// One sentence that names the file that cannot be read.
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
        fault: BlueprintFault,
    },
    /// A static sub-installation is invalid.
    #[error("the blueprint file {path} is invalid: {source}")]
    Subinstallation {
        /// The file.
        path: String,
        /// Where it stands in the file, such as `subinstallations[0]`; empty where it is the file.
        field: String,
        /// Which and why.
        source: Box<TemplateError>,
    },
}

impl BlueprintError {
    /// The file that is at fault.
    pub fn file(&self) -> &str {
        match self {
            BlueprintError::File { path, .. }
            | BlueprintError::NotText { path }
            | BlueprintError::Yaml { path, .. }
            | BlueprintError::Form { path, .. }
            | BlueprintError::Kind { path, .. }
            | BlueprintError::Field { path, .. }
            | BlueprintError::Subinstallation { path, .. } => path,
        }
    }

    /// The field at fault; empty for the file as a whole.
    pub fn field(&self) -> String {
        match self {
            BlueprintError::NotText { .. } | BlueprintError::Yaml { .. } => String::new(),
            BlueprintError::Form { source, .. } => source.path.clone(),
            BlueprintError::Kind { .. } => "kind".to_owned(),
            BlueprintError::File { field, .. } | BlueprintError::Field { field, .. } => field.clone(),
            BlueprintError::Subinstallation { field, source, .. } => source.field(field),
        }
    }

    /// What is wrong, without the file.
    pub fn message_of(&self) -> String {
        match self {
            BlueprintError::File { reason, .. } => reason.clone(),
            BlueprintError::NotText { .. } => "the file is not UTF-8 text; save it as such".to_owned(),
            BlueprintError::Yaml { source, .. } => format!("{}; correct the YAML", source.reason),
            BlueprintError::Form { source, .. } => source.to_string(),
            BlueprintError::Kind { expected, found, .. } => {
                format!("the file has kind {found:?}; write kind: {expected}")
            }
            BlueprintError::Field { field, fault, .. } => format!("{field} {fault}"),
            BlueprintError::Subinstallation { source, .. } => source.to_string(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BlueprintFields {
    // Known, and nothing depends on them.
    #[serde(rename = "apiVersion")]
    _api_version: Value,
    #[serde(rename = "jsonSchemaVersion")]
    _json_schema_version: Value,
    kind: Kind,
    annotations: BTreeMap<String, String>,
    local_types: BTreeMap<String, Value>,
    imports: Vec<ImportForm>,
    exports: Vec<ExportForm>,
    import_executions: Vec<ExecutionForm>,
    deploy_executions: Vec<ExecutionForm>,
    export_executions: Vec<ExecutionForm>,
    subinstallation_executions: Vec<ExecutionForm>,
    subinstallations: Vec<Value>,
    failure_policy: String,
    max_parallel: Option<i64>,
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

/// A blueprint as far as it can be read, and all that is to be said of it.
#[derive(Debug, Default, PartialEq)]
pub struct BlueprintReading {
    /// What can be read of it: entries with a fault are left out.
    pub blueprint: Blueprint,
    /// Where each of the blueprint's static sub-installations stands: file, and field of it; empty for the whole file.
    pub subinstallations: Vec<(String, String)>,
    /// Where its imports stand, conditional ones included, by name: the field of the blueprint's file.
    pub imports: BTreeMap<String, String>,
    /// Where its exports stand.
    pub exports: BTreeMap<String, String>,
    /// Where its executions stand, by list, in the order in which the blueprint has them: the field of its file.
    pub executions: BTreeMap<&'static str, Vec<String>>,
    /// Executions that run and should be named otherwise: field, and what is wrong.
    pub names: Vec<(String, BlueprintFault)>,
    /// Everything that is wrong.
    pub faults: Vec<BlueprintError>,
    /// File and field of what nobody knows, and so is ignored.
    pub unknown: Vec<(String, String)>,
}

impl Blueprint {
    /// Reads the blueprint of these files; every file it names is looked up.
    pub fn parse(files: &dyn Files) -> Result<Self, BlueprintError> {
        let BlueprintReading { blueprint, faults, .. } = BlueprintReading::of(files);
        match faults.into_iter().next() {
            None => Ok(blueprint),
            Some(fault) => Err(fault),
        }
    }
}

impl BlueprintReading {
    /// Reads as much of a blueprint as can be read; every file it names is looked up.
    pub fn of(files: &dyn Files) -> Self {
        let mut reading = Self::default();
        let mut files = YamlFiles { files, left: MOST_YAML_BYTES };
        match reading.document(&mut files) {
            Ok(form) => reading.fill(&mut files, form),
            Err(fault) => reading.faults.push(fault),
        }
        reading
    }

    /// The blueprint's own file; one without a kind is taken for it.
    fn document(&mut self, files: &mut YamlFiles<'_>) -> Result<BlueprintFields, BlueprintError> {
        let value = files.yaml(FILE, (FILE, ""))?;
        let (form, unknown) = lenient::decode_noting::<BlueprintFields>(&value);
        self.unknown.extend(unknown.into_iter().map(|field| (FILE.to_owned(), field)));
        let form = form.map_err(|source| BlueprintError::Form { path: FILE.to_owned(), source })?;
        match form.kind.as_str() {
            "" | "Blueprint" => Ok(form),
            found => {
                let (path, found) = (FILE.to_owned(), found.to_owned());
                Err(BlueprintError::Kind { path, expected: "Blueprint", found })
            }
        }
    }

    fn fill(&mut self, files: &mut YamlFiles<'_>, form: BlueprintFields) {
        let mut faults = Vec::new();
        let imports = definition::imports(form.imports, "imports", &mut self.imports, &mut faults);
        let exports = definition::exports(form.exports, &mut self.exports, &mut faults);
        let failure_policy = failure_policy(&form.failure_policy, &mut faults);
        let max_parallel = max_parallel(form.max_parallel, &mut faults);
        let field = |(field, fault)| BlueprintError::Field { path: FILE.to_owned(), field, fault };
        self.faults.extend(faults.into_iter().map(field));
        self.blueprint = Blueprint {
            annotations: form.annotations,
            local_types: form.local_types,
            imports,
            exports,
            import_executions: self.executions(files.files, "importExecutions", form.import_executions),
            deploy_executions: self.executions(files.files, "deployExecutions", form.deploy_executions),
            export_executions: self.executions(files.files, "exportExecutions", form.export_executions),
            subinstallation_executions: self.executions(
                files.files,
                "subinstallationExecutions",
                form.subinstallation_executions,
            ),
            subinstallations: Vec::new(),
            failure_policy,
            max_parallel,
        };
        for (index, value) in form.subinstallations.iter().enumerate() {
            match self.subinstallation(files, &format!("subinstallations[{index}]"), value) {
                Ok((template, site)) => {
                    self.blueprint.subinstallations.push(template);
                    self.subinstallations.push(site);
                }
                Err(fault) => self.faults.push(fault),
            }
        }
    }

    /// The executions of a list. Names need neither be there nor differ: what needs a name of its own (state, randomness,
    /// errors) takes the index, `[0]` or `name[2]` (`docs/wire.md` §4.1).
    fn executions(
        &mut self,
        files: &dyn Files,
        list: &'static str,
        forms: Vec<ExecutionForm>,
    ) -> Vec<TemplateExecution> {
        let mut names = BTreeSet::new();
        let mut all = Vec::new();
        for (index, mut form) in forms.into_iter().enumerate() {
            let place = format!("{list}[{index}]");
            if form.name.is_empty() {
                self.names.push((place.clone(), BlueprintFault::Empty));
                form.name = format!("[{index}]");
            } else if !names.insert(form.name.clone()) {
                self.names.push((format!("{place}.name"), BlueprintFault::Duplicate(form.name.clone())));
                form.name = format!("{}[{index}]", form.name);
            }
            match execution(files, &place, form) {
                Ok(execution) => {
                    self.executions.entry(list).or_default().push(place);
                    all.push(execution);
                }
                Err(fault) => self.faults.push(fault),
            }
        }
        all
    }

    fn subinstallation(
        &mut self,
        files: &mut YamlFiles<'_>,
        place: &str,
        value: &Value,
    ) -> Result<(InstallationTemplate, (String, String)), BlueprintError> {
        let form: SubinstallationForm = lenient::decode(value).map_err(|mut source| {
            source.path = if source.path.is_empty() { place.to_owned() } else { format!("{place}.{}", source.path) };
            BlueprintError::Form { path: FILE.to_owned(), source }
        })?;
        let outer = value;
        let (path, field, value) = match form.file.as_str() {
            "" => (FILE, place, outer.clone()),
            _ if !form.name.is_empty() => {
                let field = place.to_owned();
                return Err(BlueprintError::Field {
                    path: FILE.to_owned(),
                    field,
                    fault: BlueprintFault::FileOrInline,
                });
            }
            file => (file, "", files.yaml(file, (FILE, &format!("{place}.file")))?),
        };
        let (template, unknown) = InstallationTemplate::parse_noting(&value, field);
        self.unknown.extend(unknown.into_iter().map(|field| (path.to_owned(), field)));
        let site = (path.to_owned(), field.to_owned());
        match template {
            Ok(template) => Ok((template, site)),
            Err(source) => {
                Err(BlueprintError::Subinstallation { path: site.0, field: site.1, source: Box::new(source) })
            }
        }
    }
}

fn failure_policy(name: &str, faults: &mut Vec<(String, BlueprintFault)>) -> Option<FailurePolicy> {
    let policy = FailurePolicy::named(name);
    if policy.is_none() && !name.is_empty() {
        faults.push(("failurePolicy".to_owned(), BlueprintFault::UnknownPolicy(name.to_owned())));
    }
    policy
}

fn max_parallel(most: Option<i64>, faults: &mut Vec<(String, BlueprintFault)>) -> Option<NonZeroU32> {
    // More than can be counted is any number.
    let count = NonZeroU32::new(u32::try_from(most?.max(0)).unwrap_or(u32::MAX));
    if count.is_none() {
        faults.push(("maxParallel".to_owned(), BlueprintFault::NoneParallel));
    }
    count
}

/// The files of a blueprint. What is read of them as YAML has a sum, as a blueprint may name one file any number of times.
struct YamlFiles<'f> {
    files: &'f dyn Files,
    /// Bytes of memory.
    left: u64,
}

impl YamlFiles<'_> {
    /// The content of a file that is named by a field of another one.
    fn yaml(&mut self, path: &str, named_by: (&str, &str)) -> Result<Value, BlueprintError> {
        let unreadable = |reason| {
            let (path, field) = (named_by.0.to_owned(), named_by.1.to_owned());
            BlueprintError::File { path, field, reason }
        };
        let bytes = self.files.read(path).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|_| BlueprintError::NotText { path: path.to_owned() })?;
        let value = yaml::decode_within(&text, self.left).map_err(|source| match source.reason {
            YamlFault::TooLarge if self.left < MOST_YAML_BYTES => unreadable(format!(
                "{path} has no room: what a blueprint names as YAML, each file as often as it is named, may take {MOST_YAML_BYTES} \
                 bytes of memory together; name fewer"
            )),
            _ => BlueprintError::Yaml { path: path.to_owned(), source },
        })?;
        self.left = self.left.saturating_sub(memory::of(&value));
        Ok(value)
    }
}

fn execution(files: &dyn Files, place: &str, form: ExecutionForm) -> Result<TemplateExecution, BlueprintError> {
    let fault = |field: &str, fault| {
        let field = if field.is_empty() { place.to_owned() } else { format!("{place}.{field}") };
        Err(BlueprintError::Field { path: FILE.to_owned(), field, fault })
    };
    if form.type_.is_empty() {
        return fault("type", BlueprintFault::Empty);
    }
    let own = form.type_ == BUNDLED_ENGINE;
    let (file, template) = match (form.file.as_str(), form.template) {
        ("", Some(template)) if own => match reference(&template) {
            Ok(reference) => (None, reference.to_string()),
            Err(error) => return fault("template", BlueprintFault::Component(error)),
        },
        ("", Some(Value::String(text))) => (None, text),
        // Spiff takes a structure; its engine reads YAML, and JSON is YAML.
        ("", Some(structure)) => (None, structure.to_string()),
        ("", None) => return fault("", BlueprintFault::FileOrTemplate),
        (path, None) => {
            files.check(path).map_err(|reason| {
                let (path, field) = (FILE.to_owned(), format!("{place}.file"));
                BlueprintError::File { path, field, reason }
            })?;
            (Some(path.to_owned()), String::new())
        }
        (_, Some(_)) => return fault("", BlueprintFault::FileOrTemplate),
    };
    Ok(TemplateExecution { name: form.name, engine: form.type_, file, template })
}

/// The component that an execution of type `Wasm` refers to: the reference itself, or `component` of a structure.
fn reference(template: &Value) -> Result<ComponentReference, ComponentReferenceError> {
    match template.get("component").unwrap_or(template) {
        Value::String(text) => text.parse(),
        other => Err(ComponentReferenceError::Form(other.to_string().chars().take(300).collect())),
    }
}
