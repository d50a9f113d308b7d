//! What is wrong with gate expressions before anything runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orangery_expression::operators;

use super::{Expression, GateExpression, GateExpressions, IMPORTS, ITEM, ITEMS, NamedObject, OBJECTS, Test, Type};
use orangery_core::{dag::Dag, workflow::GateKind};

/// What can be said of the values that gate expressions of one item read, before there are any.
#[derive(Clone, Debug, Default)]
pub struct ExpressionScope<'a> {
    /// The imports with their types, shared by all that look at them; `None` where it is not known which there are.
    pub imports: Option<Arc<BTreeMap<String, Type>>>,
    /// The items that have to be ready before this one; `None` where it is not known which these are.
    pub predecessors: Option<Predecessors<'a>>,
}

/// The items that have to be ready before another one.
#[derive(Clone, Debug)]
pub enum Predecessors<'a> {
    /// These.
    Named(BTreeSet<&'a str>),
    /// All that come before this one, looked up only for names that an expression reads: a chain of items has as many pairs as its
    /// square.
    Of(&'a Dag, &'a str),
}

impl Predecessors<'_> {
    /// The type of a map of all of them, as far as an expression that reads these names needs to know it.
    fn members(&self, read: &BTreeSet<&str>, of: impl Fn() -> Type) -> Type {
        let names: BTreeSet<&str> = match self {
            Self::Named(names) => names.clone(),
            Self::Of(..) if read.is_empty() => return Type::Map,
            Self::Of(dag, item) if dag.come_before(read, item) => read.clone(),
            // One of them is wrong, and all are told.
            Self::Of(dag, item) => dag.all_before(item),
        };
        Type::members(names.into_iter().map(|name| (name.to_owned(), of())))
    }
}

/// The most operators of an expression.
const MOST_OPERATORS: usize = 300;

/// An expression, or why it is none, in one sentence.
pub fn compile(source: &str) -> Result<Expression, String> {
    let operators = operators(source);
    if operators > MOST_OPERATORS {
        return Err(format!("it has {operators} operators, {MOST_OPERATORS} are allowed"));
    }
    Expression::compile(source).map_err(|message_of| {
        // Of several errors the first; `ERROR: <input>:1:5: …`
        let first = message_of.lines().next().unwrap_or_default();
        let first = first.strip_prefix("compilation failed: ").unwrap_or(first);
        match first.strip_prefix("ERROR: <input>:").and_then(|rest| {
            let (line, rest) = rest.split_once(':')?;
            let (column, why) = rest.split_once(": ")?;
            Some(format!("line {line}, column {column}: {why}"))
        }) {
            Some(placed) => placed,
            None => first.to_owned(),
        }
    })
}

/// What is wrong with a gate expression whatever the values are: a part of a sentence.
pub fn check<T>(
    gate_expression: &GateExpression<T>,
    gate: GateKind,
    around: &ExpressionScope<'_>,
) -> Result<(), String> {
    for (key, NamedObject { api_version, kind, name, .. }) in &gate_expression.objects {
        let missing = [("apiVersion", api_version.as_str()), ("kind", kind), ("name", name)];
        if let Some((field, _)) = missing.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("objects.{key} has no {field}; set it"));
        }
    }
    match gate_expression.test()? {
        Test::CrdPresent(definition) => match (definition.group.is_empty(), definition.kind.is_empty()) {
            (true, _) => Err("crdPresent has no group; set it".to_owned()),
            (_, true) => Err("crdPresent has no kind; set it".to_owned()),
            (false, false) => Ok(()),
        },
        Test::Component(component) if component.type_.is_empty() => Err("component has no type; set it".to_owned()),
        Test::Component(_) => Ok(()),
        Test::Expression(source) => {
            let expression = compile(source).map_err(|why| message_of(source, &why))?;
            let reads = expression.reads();
            let of_items = reads.iter().filter(|path| path.first() == Some(&ITEMS));
            // Where all of them are read at once no name tells which are meant.
            let read =
                of_items.map(|path| path.get(1).copied()).collect::<Option<BTreeSet<&str>>>().unwrap_or_default();
            expression.check(&variables(gate_expression, gate, around, &read)).map_err(|why| message_of(source, &why))
        }
    }
}

/// The first gate expression of an item that cannot be asked, and why.
pub fn check_all<T>(gates: &GateExpressions<T>, around: &ExpressionScope<'_>) -> Result<(), (GateKind, String)> {
    gates.iter().try_for_each(|(gate, gate_expression)| check(gate_expression, gate, around).map_err(|why| (gate, why)))
}

fn message_of(source: &str, why: &str) -> String {
    format!("the expression `{}` cannot be used: {why}", display(source))
}

/// As much of an expression as a message has room for.
pub(super) fn display(source: &str) -> String {
    const LONGEST: usize = 120;
    let line = source.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn variables<T>(
    gate_expression: &GateExpression<T>,
    gate: GateKind,
    around: &ExpressionScope<'_>,
    read: &BTreeSet<&str>,
) -> Vec<(&'static str, Type)> {
    let any = |name: &str| (name.to_owned(), Type::Any);
    let results = || Type::members([any("exports"), any("status")]);
    let imports = around.imports.clone().map_or(Type::Map, Type::Members);
    let mut variables = vec![(IMPORTS, imports)];
    // In a deletion nobody's exports are known any more.
    if gate != GateKind::Deleted {
        let items = around.predecessors.as_ref().map_or(Type::Map, |before| before.members(read, results));
        variables.push((ITEMS, items));
    }
    if gate == GateKind::Ready {
        variables.push((ITEM, results()));
    }
    variables.push((OBJECTS, Type::members(gate_expression.objects.keys().map(|name| any(name)))));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_291_gate_expressions_share_the_types_of_imports() {
        let types = Arc::new(BTreeMap::from([("a".to_owned(), Type::Bool)]));
        let around = ExpressionScope { imports: Some(Arc::clone(&types)), predecessors: None };
        let gate_expression: GateExpression = GateExpression::expression("imports.a");
        let variables = variables(&gate_expression, GateKind::When, &around, &BTreeSet::new());
        let imports = variables.iter().find(|(name, _)| *name == IMPORTS).map(|(_, of)| of);
        assert!(matches!(imports, Some(Type::Members(members)) if Arc::ptr_eq(members, &types)));
    }
}
