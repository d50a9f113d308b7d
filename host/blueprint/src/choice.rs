//! How blueprints name targets, and how they write gate expressions: alike for deploy items and sub-installations.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    gate::{self, ExpressionScope, GateExpression, GateExpressions},
    import::{Imported, TargetObject},
};
use orangery_core::{lenient, listing, workflow::GateKind};

/// How a target is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// A Target object of the namespace, used as it is.
    Name(String),
    /// A target import.
    Import(String),
    /// An element of a target list import.
    Element(String, i64),
    /// An entry of a target map import.
    Entry(String, String),
}

/// Why a choice names no target: a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// It says nothing.
    #[error("`target` is empty; set target.import or target.name, or leave target out")]
    Empty,
    /// No such import, or of another kind.
    #[error("there is no {import_kind} import {import:?}; known are: {known}")]
    UnknownImport {
        /// `target`, `target list`, `target map`.
        import_kind: &'static str,
        /// The import.
        import: String,
        /// The imports of that kind.
        known: String,
    },
    /// No such element.
    #[error("index {index} is out of bounds; the target list {import:?} has {length} elements, counted from 0")]
    Index {
        /// The import.
        import: String,
        /// The index.
        index: i64,
        /// How many elements there are.
        length: usize,
    },
    /// No such entry.
    #[error("the target map {import:?} has no key {key:?}; its keys are: {known}")]
    Key {
        /// The import.
        import: String,
        /// The key.
        key: String,
        /// The keys there are.
        known: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TargetChoiceFields {
    name: String,
    import: String,
    index: Option<i64>,
    key: Option<String>,
}

pub(super) fn choice(form: TargetChoiceFields) -> Result<TargetChoice, ChoiceError> {
    match form {
        // The index wins over the key, the import over the name.
        TargetChoiceFields { import, index: Some(index), .. } => Ok(TargetChoice::Element(import, index)),
        TargetChoiceFields { import, key: Some(key), .. } => Ok(TargetChoice::Entry(import, key)),
        TargetChoiceFields { import, .. } if !import.is_empty() => Ok(TargetChoice::Import(import)),
        TargetChoiceFields { name, .. } if !name.is_empty() => Ok(TargetChoice::Name(name)),
        TargetChoiceFields { .. } => Err(ChoiceError::Empty),
    }
}

impl TargetChoice {
    /// The name of the Target object that a choice means. An import means the imported object itself, not the copy that the
    /// installation keeps.
    pub fn resolve(&self, imports: &BTreeMap<String, Imported>) -> Result<String, ChoiceError> {
        let unknown = |import_kind: &'static str, import: &str, same: fn(&Imported) -> bool| {
            let known = listing::listed(imports.iter().filter(|(_, import)| same(import)).map(|(name, _)| name));
            ChoiceError::UnknownImport { import_kind, import: import.to_owned(), known }
        };
        let object = |target: &TargetObject| Ok(target.name.clone());
        match self {
            TargetChoice::Name(name) => Ok(name.clone()),
            TargetChoice::Import(import) => match imports.get(import) {
                Some(Imported::Target(target)) => object(target),
                Some(Imported::Data(_) | Imported::TargetList(_) | Imported::TargetMap(_)) | None => {
                    Err(unknown("target", import, |import| matches!(import, Imported::Target(_))))
                }
            },
            TargetChoice::Element(import, index) => match imports.get(import) {
                Some(Imported::TargetList(targets)) => {
                    match usize::try_from(*index).ok().and_then(|index| targets.get(index)) {
                        Some(target) => object(target),
                        None => {
                            let (import, length) = (import.clone(), targets.len());
                            Err(ChoiceError::Index { import, index: *index, length })
                        }
                    }
                }
                Some(Imported::Data(_) | Imported::Target(_) | Imported::TargetMap(_)) | None => {
                    Err(unknown("target list", import, |import| matches!(import, Imported::TargetList(_))))
                }
            },
            TargetChoice::Entry(import, key) => match imports.get(import) {
                Some(Imported::TargetMap(targets)) => match targets.get(key) {
                    Some(target) => object(target),
                    None => {
                        let (import, known) = (import.clone(), listing::joined(targets.keys()));
                        Err(ChoiceError::Key { import, key: key.clone(), known })
                    }
                },
                Some(Imported::Data(_) | Imported::Target(_) | Imported::TargetList(_)) | None => {
                    Err(unknown("target map", import, |import| matches!(import, Imported::TargetMap(_))))
                }
            },
        }
    }
}

/// Gate expressions as templates write them; of the first that cannot be read, why.
pub(super) fn gates(
    written: [(GateKind, Option<Value>); 4],
) -> Result<GateExpressions<TargetChoice>, (GateKind, String)> {
    let mut gates = Vec::new();
    for (gate, written) in written {
        let gate_expression =
            written.map(|written| gate_expression(&written)).transpose().map_err(|why| (gate, why))?;
        gates.push((gate, gate_expression));
    }
    Ok(GateExpressions::of(gates))
}

/// A gate expression as templates write it; a text is an expression.
fn gate_expression(written: &Value) -> Result<GateExpression<TargetChoice>, String> {
    if let Value::String(source) = written {
        return Ok(GateExpression::expression(source));
    }
    let form: GateExpression<TargetChoiceFields> =
        lenient::decode(written).map_err(|error| format!("it has a wrong form: {error}"))?;
    form.try_map(choice).map_err(|error| error.to_string())
}

/// What is wrong with a gate expression as templates write it, if anything is: a part of a sentence.
pub fn check_gate_expression(written: &Value, gate: GateKind, around: &ExpressionScope<'_>) -> Result<(), String> {
    gate::check(&gate_expression(written)?, gate, around)
}
