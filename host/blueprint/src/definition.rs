//! What a blueprint imports and exports (`docs/wire.md` §4.1).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::BlueprintFault;
use orangery_core::memory;

/// One import of a blueprint.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportDefinition {
    /// Unique in the blueprint, conditional imports included.
    pub name: String,
    /// What it takes.
    pub kind: ImportKind,
    /// Whether an installation must give it.
    pub required: bool,
    /// The value where an optional import is not given.
    pub default: Option<Value>,
    /// Imports that count only where this one has a value.
    pub conditional: Vec<ImportDefinition>,
}

impl ImportDefinition {
    /// Bytes of memory of the values that its author wrote in it.
    pub(crate) fn memory(&self) -> u64 {
        let schema = match &self.kind {
            ImportKind::Data { schema } => memory::of(schema),
            _ => 0,
        };
        let conditional: u64 = self.conditional.iter().map(Self::memory).sum();
        schema + self.default.as_ref().map_or(0, memory::of) + conditional
    }
}

/// What an import takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportKind {
    /// Data of a JSON schema.
    Data {
        /// The schema.
        schema: Value,
    },
    /// A Target of a type.
    Target {
        /// The type in full.
        target_type: String,
    },
    /// A list of Targets of a type.
    TargetList {
        /// The type in full.
        target_type: String,
    },
    /// A map of Targets of a type.
    TargetMap {
        /// The type in full.
        target_type: String,
    },
}

/// One export of a blueprint.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportDefinition {
    /// Unique in the blueprint.
    pub name: String,
    /// What it gives.
    pub kind: ExportKind,
}

/// What an export gives.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportKind {
    /// Data of a JSON schema.
    Data {
        /// The schema.
        schema: Value,
    },
    /// A Target of a type.
    Target {
        /// The type in full.
        target_type: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ImportForm {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    schema: Option<Value>,
    target_type: String,
    required: Option<bool>,
    default: Option<Map<String, Value>>,
    imports: Vec<ImportForm>,
}

/// What is written under `value`, also where it is null.
fn given(default: Map<String, Value>) -> Option<Value> {
    default.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("value")).map(|(_, value)| value)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExportForm {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    schema: Option<Value>,
    target_type: String,
}

/// A fault and the field it is in.
type DefinitionResult<T> = Result<T, (String, BlueprintFault)>;

/// Faults, each with the field that it is in.
type Faults = Vec<(String, BlueprintFault)>;

/// The imports of a blueprint; `names` are those seen so far, with their fields. An import with a fault is left out.
pub(super) fn imports(
    forms: Vec<ImportForm>,
    path: &str,
    names: &mut BTreeMap<String, String>,
    faults: &mut Faults,
) -> Vec<ImportDefinition> {
    let mut all = Vec::new();
    for (index, form) in forms.into_iter().enumerate() {
        match import(form, &format!("{path}[{index}]"), names, faults) {
            Ok(import) => all.push(import),
            Err(fault) => faults.push(fault),
        }
    }
    all
}

fn import(
    form: ImportForm,
    path: &str,
    names: &mut BTreeMap<String, String>,
    faults: &mut Faults,
) -> DefinitionResult<ImportDefinition> {
    claim(&form.name, path, names)?;
    let type_ = inferred(&form.type_, form.schema.as_ref(), &form.target_type, path)?;
    let kind = match type_ {
        "data" => ImportKind::Data { schema: schema(form.schema, &form.target_type, path)? },
        "target" => ImportKind::Target { target_type: target_type(&form.target_type, form.schema.as_ref(), path)? },
        "targetList" => {
            ImportKind::TargetList { target_type: target_type(&form.target_type, form.schema.as_ref(), path)? }
        }
        "targetMap" => {
            ImportKind::TargetMap { target_type: target_type(&form.target_type, form.schema.as_ref(), path)? }
        }
        other => {
            let known = "data, target, targetList, targetMap";
            return Err((format!("{path}.type"), BlueprintFault::UnknownType { found: other.to_owned(), known }));
        }
    };
    let required = form.required.unwrap_or(true);
    if required && !form.imports.is_empty() {
        return Err((format!("{path}.imports"), BlueprintFault::ConditionalOnRequired));
    }
    let conditional = imports(form.imports, &format!("{path}.imports"), names, faults);
    Ok(ImportDefinition { name: form.name, kind, required, default: form.default.and_then(given), conditional })
}

/// The exports of a blueprint. An export with a fault is left out.
pub(super) fn exports(
    forms: Vec<ExportForm>,
    names: &mut BTreeMap<String, String>,
    faults: &mut Faults,
) -> Vec<ExportDefinition> {
    let mut all = Vec::new();
    for (index, form) in forms.into_iter().enumerate() {
        match export(form, &format!("exports[{index}]"), names) {
            Ok(export) => all.push(export),
            Err(fault) => faults.push(fault),
        }
    }
    all
}

fn export(form: ExportForm, path: &str, names: &mut BTreeMap<String, String>) -> DefinitionResult<ExportDefinition> {
    claim(&form.name, path, names)?;
    let kind = match inferred(&form.type_, form.schema.as_ref(), &form.target_type, path)? {
        "data" => ExportKind::Data { schema: schema(form.schema, &form.target_type, path)? },
        "target" => ExportKind::Target { target_type: target_type(&form.target_type, form.schema.as_ref(), path)? },
        other => {
            let fault = BlueprintFault::UnknownType { found: other.to_owned(), known: "data, target" };
            return Err((format!("{path}.type"), fault));
        }
    };
    Ok(ExportDefinition { name: form.name, kind })
}

fn claim(name: &str, path: &str, names: &mut BTreeMap<String, String>) -> DefinitionResult<()> {
    if name.is_empty() {
        return Err((format!("{path}.name"), BlueprintFault::Empty));
    }
    if names.contains_key(name) {
        return Err((format!("{path}.name"), BlueprintFault::Duplicate(name.to_owned())));
    }
    names.insert(name.to_owned(), path.to_owned());
    Ok(())
}

fn inferred<'a>(type_: &'a str, schema: Option<&Value>, target_type: &str, path: &str) -> DefinitionResult<&'a str> {
    match (type_, schema.is_some(), !target_type.is_empty()) {
        ("", true, false) => Ok("data"),
        ("", false, true) => Ok("target"),
        ("", _, _) => Err((path.to_owned(), BlueprintFault::SchemaOrTargetType)),
        (type_, _, _) => Ok(type_),
    }
}

fn schema(schema: Option<Value>, target_type: &str, path: &str) -> DefinitionResult<Value> {
    if !target_type.is_empty() {
        return Err((format!("{path}.targetType"), BlueprintFault::OnlyForTargets));
    }
    schema.ok_or_else(|| (format!("{path}.schema"), BlueprintFault::Empty))
}

/// The type in full. The shorthand holds for maps too, which the original forgets (`docs/wire.md` §16).
fn target_type(text: &str, schema: Option<&Value>, path: &str) -> DefinitionResult<String> {
    if schema.is_some() {
        return Err((format!("{path}.schema"), BlueprintFault::OnlyForData));
    }
    if text.is_empty() {
        return Err((format!("{path}.targetType"), BlueprintFault::Empty));
    }
    Ok(if text.contains('/') { text.to_owned() } else { format!("landscaper.gardener.cloud/{text}") })
}
