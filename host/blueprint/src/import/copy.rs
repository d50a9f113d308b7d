//! The copies of its imports that an installation keeps for its templates and sub-installations (`docs/wire.md` §5.4).

use serde_json::{Map, Value};

use super::{ImportError, ImportFault, read::error};
use crate::{
    ImportDefinition, ImportKind,
    record::{Purpose, Record, RecordContent, RecordWriter, TargetContent, TargetPosition},
};

/// A copy of every import that the blueprint defines and that has a value. `values` are the bound imports with the
/// bindings of the import executions over them.
pub fn copies(
    definitions: &[ImportDefinition],
    values: &Map<String, Value>,
    scope: &RecordWriter<'_>,
) -> Result<Vec<Record>, ImportError> {
    let mut records = Vec::new();
    for definition in definitions {
        let Some(value) = values.get(&definition.name) else { continue };
        let wrong =
            |expected| error(scope, &definition.name, ImportFault::WrongSort { expected, found: "something else" });
        let record = |place, content| scope.record(Purpose::Import, &definition.name, place, content);
        let target = |object: &Value| RecordContent::Target(TargetContent::of(object));
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
        records.extend(copies(&definition.conditional, values, scope)?);
    }
    Ok(records)
}
