//! From what was imported to what the blueprint asks for (`docs/wire.md` §5.3).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ImportError, ImportFault, Imported, TargetObject, read::error};
use crate::{ImportDefinition, ImportKind, record::RecordWriter, schema::Schemas};

/// The imports of a blueprint by name. Of data, a mapping's result wins over the import of the same name, and that over
/// the default; conditional imports count only where the import above them has a value. Imports that the blueprint does
/// not define are left out.
pub fn bind(
    definitions: &[ImportDefinition],
    imported: &BTreeMap<String, Imported>,
    mapped: &Map<String, Value>,
    schemas: &Schemas<'_>,
    scope: &RecordWriter<'_>,
) -> Result<Map<String, Value>, ImportError> {
    let mut values = Map::new();
    for definition in definitions {
        let value = bound(definition, imported.get(&definition.name), mapped.get(&definition.name), schemas)
            .map_err(|fault| error(scope, &definition.name, fault))?;
        let Some(value) = value else { continue };
        values.insert(definition.name.clone(), value);
        values.extend(bind(&definition.conditional, imported, mapped, schemas, scope)?);
    }
    Ok(values)
}

fn bound(
    definition: &ImportDefinition,
    imported: Option<&Imported>,
    mapped: Option<&Value>,
    schemas: &Schemas<'_>,
) -> Result<Option<Value>, ImportFault> {
    let expected = expected(&definition.kind);
    let missing = || if definition.required { Err(ImportFault::Unsatisfied { expected }) } else { Ok(None) };
    let wrong = |found: &Imported| Err(ImportFault::WrongSort { expected, found: found.sort() });
    match &definition.kind {
        ImportKind::Data { schema } => {
            let given = match (mapped, imported) {
                (Some(value), _) => Some(value),
                (None, Some(Imported::Data(data))) => Some(&data.value),
                (None, Some(other)) => return wrong(other),
                (None, None) if !definition.required => definition.default.as_ref(),
                (None, None) => None,
            };
            let Some(value) = given else { return missing() };
            schemas.check(schema, value).map_err(ImportFault::Schema)?;
            Ok(Some(value.clone()))
        }
        ImportKind::Target { target_type } => match imported {
            Some(import @ Imported::Target(target)) => {
                of_type(target, target_type, String::new)?;
                Ok(Some(import.value()))
            }
            Some(other) => wrong(other),
            None => missing(),
        },
        ImportKind::TargetList { target_type } => match imported {
            Some(import @ Imported::TargetList(targets)) => {
                for (index, target) in targets.iter().enumerate() {
                    of_type(target, target_type, || format!("at index {index}"))?;
                }
                Ok(Some(import.value()))
            }
            Some(other) => wrong(other),
            None => missing(),
        },
        ImportKind::TargetMap { target_type } => match imported {
            Some(import @ Imported::TargetMap(targets)) => {
                for (key, target) in targets {
                    of_type(target, target_type, || format!("at key {key:?}"))?;
                }
                Ok(Some(import.value()))
            }
            Some(other) => wrong(other),
            None => missing(),
        },
    }
}

fn expected(kind: &ImportKind) -> &'static str {
    match kind {
        ImportKind::Data { .. } => "data",
        ImportKind::Target { .. } => "a target",
        ImportKind::TargetList { .. } => "a target list",
        ImportKind::TargetMap { .. } => "a target map",
    }
}

fn of_type(target: &TargetObject, expected: &str, place: impl FnOnce() -> String) -> Result<(), ImportFault> {
    if target.target_type == expected {
        return Ok(());
    }
    let (expected, found) = (expected.to_owned(), target.target_type.clone());
    Err(ImportFault::TargetType { place: place(), expected, found })
}
