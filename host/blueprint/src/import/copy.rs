//! The copies of its imports that an installation keeps for its templates and sub-installations (`docs/wire.md` §5.4).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ImportError, ImportFault, Imported, TargetObject, read::error};
use crate::{
    ImportDefinition, ImportKind,
    record::{Purpose, Record, RecordContent, RecordWriter, TargetContent, TargetPosition},
};

/// A copy of every import that the blueprint defines and that has a value. `values` are the bound imports with the
/// bindings of the import executions over them; what is the same as it was `imported` says what it is a copy of (C-171).
pub fn copies(
    definitions: &[ImportDefinition],
    values: &Map<String, Value>,
    imported: &BTreeMap<String, Imported>,
    scope: &RecordWriter<'_>,
) -> Result<Vec<Record>, ImportError> {
    let targets = imported.values().flat_map(Imported::targets);
    copied(definitions, values, &targets.map(|target| (target.name.as_str(), target)).collect(), scope)
}

/// What is written of a Target. One that the blueprint has made, or has changed, is a copy of nothing, whatever it says.
fn content(target: &Value, imported: &BTreeMap<&str, &TargetObject>) -> RecordContent {
    let name = target.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let original = imported.get(name).filter(|imported| imported.object == *target);
    let original = original.map(|target| target.copy_of.clone().unwrap_or_else(|| target.name.as_str().into()));
    RecordContent::Target(TargetContent { original, ..TargetContent::of(target) })
}

fn copied(
    definitions: &[ImportDefinition],
    values: &Map<String, Value>,
    imported: &BTreeMap<&str, &TargetObject>,
    scope: &RecordWriter<'_>,
) -> Result<Vec<Record>, ImportError> {
    let mut records = Vec::new();
    for definition in definitions {
        let Some(value) = values.get(&definition.name) else { continue };
        let wrong =
            |expected| error(scope, &definition.name, ImportFault::WrongSort { expected, found: "something else" });
        let record = |place, content| scope.record(Purpose::Import, &definition.name, place, content);
        let target = |object: &Value| content(object, imported);
        match &definition.kind {
            ImportKind::Data { .. } => records.push(record(None, RecordContent::Data(value.clone()))),
            ImportKind::Target { .. } if value.is_object() => records.push(record(None, target(value))),
            ImportKind::Target { .. } => return Err(wrong("a target")),
            ImportKind::TargetList { .. } => {
                let targets = value.as_array().ok_or_else(|| wrong("a target list"))?;
                let kept = |(index, object)| record(Some(TargetPosition::Index(index)), target(object));
                records.extend(targets.iter().enumerate().map(kept));
            }
            ImportKind::TargetMap { .. } => {
                let targets = value.as_object().ok_or_else(|| wrong("a target map"))?;
                let kept =
                    |(key, object): (&String, &Value)| record(Some(TargetPosition::Key(key.clone())), target(object));
                records.extend(targets.iter().map(kept));
            }
        }
        records.extend(copied(&definition.conditional, values, imported, scope)?);
    }
    Ok(records)
}
