//! What gate expressions read of the imports, and the types of these.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{GateExpressions, IMPORTS, Type, check::compile};
use crate::{ImportDefinition, ImportKind};

/// What gate expressions read of import values, and no more: others see where it is kept. Of Targets never the configuration, by
/// which their clusters are reached (C-26).
pub fn read_imports<'c>(
    gates: impl IntoIterator<Item = &'c GateExpressions>,
    given: &Map<String, Value>,
    definitions: &[ImportDefinition],
) -> BTreeMap<String, Value> {
    let paths: Vec<Vec<String>> = gates.into_iter().flat_map(import_paths).collect();
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    let targets = target_imports(definitions);
    let of_targets = |value: &mut Value| {
        if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("config");
        }
    };
    let mut read = BTreeMap::new();
    for (name, value) in given {
        let below = paths.iter().filter(|path| path.first().is_none_or(|first| first == name));
        let below: Vec<&[String]> = below.map(|path| path.get(1..).unwrap_or_default()).collect();
        if below.is_empty() {
            continue;
        }
        let mut kept = only(value, &below);
        match targets.get(name.as_str()) {
            Some(TargetCardinality::One) => of_targets(&mut kept),
            Some(TargetCardinality::Several) => match &mut kept {
                Value::Array(list) => list.iter_mut().for_each(of_targets),
                Value::Object(map) => map.values_mut().for_each(of_targets),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            },
            None => {}
        }
        read.insert(name.clone(), kept);
    }
    read
}

/// The members of a value that paths lead to.
fn only(value: &Value, paths: &[&[String]]) -> Value {
    match value {
        Value::Object(members) if paths.iter().all(|path| !path.is_empty()) => {
            let mut kept = Map::new();
            for (name, value) in members {
                let below: Vec<&[String]> = paths
                    .iter()
                    .filter(|path| path.first() == Some(name))
                    .map(|path| path.get(1..).unwrap_or_default())
                    .collect();
                if !below.is_empty() {
                    kept.insert(name.clone(), only(value, &below));
                }
            }
            Value::Object(kept)
        }
        value => value.clone(),
    }
}

enum TargetCardinality {
    One,
    Several,
}

fn target_imports(definitions: &[ImportDefinition]) -> BTreeMap<&str, TargetCardinality> {
    let mut targets = BTreeMap::new();
    for ImportDefinition { name, kind, conditional, .. } in definitions {
        match kind {
            ImportKind::Data { .. } => {}
            ImportKind::Target { .. } => drop(targets.insert(name.as_str(), TargetCardinality::One)),
            ImportKind::TargetList { .. } | ImportKind::TargetMap { .. } => {
                targets.insert(name.as_str(), TargetCardinality::Several);
            }
        }
        targets.extend(target_imports(conditional));
    }
    targets
}

/// The paths below the imports that they read, each from its name on; an empty one stands for all of them, as a component
/// or an expression reads them that does not name what it reads.
fn import_paths(gates: &GateExpressions) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (_, gate_expression) in gates.iter() {
        if gate_expression.component.is_some() {
            all.push(Vec::new());
        }
        let Some(Ok(expression)) = gate_expression.expression.as_deref().map(compile) else { continue };
        let paths = expression.reads().into_iter().filter(|path| path.first() == Some(&IMPORTS));
        all.extend(paths.map(|path| path.into_iter().skip(1).map(str::to_owned).collect()));
    }
    all
}

/// The type of a value, as far as another one at its place will have it too: of maps only that they are maps.
pub fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Any,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::Text,
        Value::Array(_) => Type::List(Box::default()),
        Value::Object(_) => Type::Map,
    }
}

/// The type that a JSON schema asks for.
pub fn type_by(schema: &Value) -> Type {
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => Type::Bool,
        Some("integer" | "number") => Type::Number,
        Some("string") => Type::Text,
        Some("array") => Type::List(Box::new(schema.get("items").map(type_by).unwrap_or_default())),
        Some("object") => Type::Map,
        Some(_) | None => Type::Any,
    }
}

/// The imports that expressions may name, with their types: those that are defined, and what import executions add.
pub fn import_types(definitions: &[ImportDefinition], values: &Map<String, Value>) -> BTreeMap<String, Type> {
    fn defined(definitions: &[ImportDefinition], types: &mut BTreeMap<String, Type>) {
        for ImportDefinition { name, kind, conditional, .. } in definitions {
            let of = match kind {
                ImportKind::Data { schema } => type_by(schema),
                ImportKind::Target { .. } | ImportKind::TargetMap { .. } => Type::Map,
                ImportKind::TargetList { .. } => Type::List(Box::new(Type::Map)),
            };
            types.insert(name.clone(), of);
            defined(conditional, types);
        }
    }
    let mut types: BTreeMap<String, Type> = values.iter().map(|(name, value)| (name.clone(), type_of(value))).collect();
    defined(definitions, &mut types);
    types
}
