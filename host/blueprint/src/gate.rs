//! Gate expressions of items (WF-02 … WF-09): how they are written, what is wrong with them before anything runs, and what they
//! answer.
//!
//! A gate expression asks an expression, a component, or whether a cluster defines a kind. It may name live objects. Its
//! answer is one of three, and doubt is one of them (C-07).

mod answer;
mod check;
mod imports;
mod record;

use std::collections::BTreeMap;

pub use orangery_expression::{Expression, Type};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    answer::{GateResult, evaluate, is_defined, reads_imports_alone},
    check::{ExpressionScope, Predecessors, check, check_all, compile},
    imports::{import_types, read_imports, type_by, type_of},
    record::{GateRecord, answers, given_up, is_settled},
};
use orangery_core::{
    name::{ApiVersion, Kind, Namespace, ObjectName},
    workflow::GateKind,
};

/// One gate expression as it is written. `T` is how a target is named: by its Target object, if nothing else is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateExpression<T = String> {
    /// Holds where this expression in CEL does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Holds where a component says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentGate>,
    /// Holds where a cluster defines a kind (WF-06).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crd_present: Option<Definition<T>>,
    /// Live objects, by the names that the expression or the component knows them by.
    #[serde(default = "BTreeMap::new", skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<String, NamedObject<T>>,
}

/// A gate expression that a component answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComponentGate {
    /// The gate type that a registration claims.
    #[serde(rename = "type")]
    pub type_: String,
    /// What the component is told.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub config: Value,
}

/// A kind that a CustomResourceDefinition defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition<T = String> {
    /// The cluster; the item's own target where it is not said.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
    /// The API group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    #[serde(default)]
    pub kind: Kind,
    /// A version that has to be served; any where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedObject<T = String> {
    /// The cluster; the item's own target where it is not said.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub target: Option<T>,
    /// Group and version.
    #[serde(default)]
    pub api_version: ApiVersion,
    /// The kind.
    #[serde(default)]
    pub kind: Kind,
    /// The namespace; empty for a kind that has none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub namespace: Namespace,
    /// The name.
    #[serde(default)]
    pub name: ObjectName,
}

fn none<T>() -> Option<T> {
    None
}

/// All gate expressions of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct GateExpressions<T = String> {
    by_kind: BTreeMap<GateKind, GateExpression<T>>,
}

/// What a gate expression asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test<'a, T> {
    /// An expression.
    Expression(&'a str),
    /// A component.
    Component(&'a ComponentGate),
    /// Whether a cluster defines a kind.
    CrdPresent(&'a Definition<T>),
}

impl<T> GateExpression<T> {
    /// Of an expression over what is known without live objects.
    pub fn expression(source: &str) -> Self {
        Self { expression: Some(source.to_owned()), component: None, crd_present: None, objects: BTreeMap::new() }
    }

    /// What it asks; it has to ask exactly one thing.
    pub fn test(&self) -> Result<Test<'_, T>, String> {
        match (&self.expression, &self.component, &self.crd_present) {
            (Some(source), None, None) => Ok(Test::Expression(source)),
            (None, Some(component), None) => Ok(Test::Component(component)),
            (None, None, Some(definition)) => Ok(Test::CrdPresent(definition)),
            _ => Err("it needs exactly one of expression, component and crdPresent".to_owned()),
        }
    }

    /// Whether its answer can change while nothing of the item's own job does: it looks at a cluster.
    pub fn looks_at_clusters(&self) -> bool {
        self.crd_present.is_some() || !self.objects.is_empty()
    }

    /// The same gate expression with its targets named otherwise.
    pub fn try_map<U, E>(self, mut name: impl FnMut(T) -> Result<U, E>) -> Result<GateExpression<U>, E> {
        let crd_present = match self.crd_present {
            None => None,
            Some(Definition { target, group, kind, version }) => {
                Some(Definition { target: target.map(&mut name).transpose()?, group, kind, version })
            }
        };
        let mut objects = BTreeMap::new();
        for (key, NamedObject { target, api_version, kind, namespace, name: object }) in self.objects {
            let target = target.map(&mut name).transpose()?;
            objects.insert(key, NamedObject { target, api_version, kind, namespace, name: object });
        }
        Ok(GateExpression { expression: self.expression, component: self.component, crd_present, objects })
    }
}

impl<T> Default for GateExpressions<T> {
    fn default() -> Self {
        Self { by_kind: BTreeMap::new() }
    }
}

impl<T> GateExpressions<T> {
    /// Of those that are set.
    pub fn of(set: impl IntoIterator<Item = (GateKind, Option<GateExpression<T>>)>) -> Self {
        Self { by_kind: set.into_iter().filter_map(|(gate, gate_expression)| Some((gate, gate_expression?))).collect() }
    }

    /// The gate expression at a point.
    pub fn get(&self, gate: GateKind) -> Option<&GateExpression<T>> {
        self.by_kind.get(&gate)
    }

    /// All that are set, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = (GateKind, &GateExpression<T>)> {
        self.by_kind.iter().map(|(gate, gate_expression)| (*gate, gate_expression))
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty()
    }

    /// Whether one of them decides if the item is reconciled at all.
    pub fn decide(&self) -> bool {
        self.by_kind.contains_key(&GateKind::Activate) || self.by_kind.contains_key(&GateKind::When)
    }

    /// The same gate expressions with their targets named otherwise.
    pub fn try_map<U, E>(self, mut name: impl FnMut(T) -> Result<U, E>) -> Result<GateExpressions<U>, E> {
        let mut by_kind = BTreeMap::new();
        for (gate, gate_expression) in self.by_kind {
            by_kind.insert(gate, gate_expression.try_map(&mut name)?);
        }
        Ok(GateExpressions { by_kind })
    }

    /// The targets that they name.
    pub fn targets(&self) -> impl Iterator<Item = &T> {
        self.by_kind.values().flat_map(|gate_expression| {
            let objects = gate_expression.objects.values().filter_map(|object| object.target.as_ref());
            objects.chain(gate_expression.crd_present.iter().filter_map(|definition| definition.target.as_ref()))
        })
    }
}

/// The variable with the imports of the blueprint.
pub const IMPORTS: &str = "imports";
/// The variable with what an item depends on: exports and status of each, by name.
pub const ITEMS: &str = "items";
/// The variable with an item's own exports and status.
pub const ITEM: &str = "item";
/// The variable with live objects, by the names of the gate expression.
pub const OBJECTS: &str = "objects";

#[cfg(test)]
mod tests;
