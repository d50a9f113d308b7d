//! What can be said of an expression before it has values: the names it reads, and whether its types go together.

use std::{collections::BTreeMap, sync::Arc};

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};

/// What is known of a value before there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Nothing.
    #[default]
    Any,
    /// `null`
    Null,
    /// A boolean.
    Bool,
    /// A number of either kind.
    Number,
    /// A text.
    Text,
    /// A list of elements.
    List(Box<Type>),
    /// A map of which nothing more is known.
    Map,
    /// A map with these members and no others: shared, as there may be many, and many that look at them (C-291).
    Members(Arc<BTreeMap<String, Type>>),
}

impl Type {
    /// A map with these members and no others.
    pub fn members(members: impl IntoIterator<Item = (String, Type)>) -> Self {
        Type::Members(Arc::new(members.into_iter().collect()))
    }

    fn name(&self) -> &'static str {
        match self {
            Type::Any => "any type",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Number => "number",
            Type::Text => "string",
            Type::List(_) => "list",
            Type::Map | Type::Members(_) => "map",
        }
    }

    /// Whether values of both types may be alike.
    fn meets(&self, other: &Type) -> bool {
        let open = |one: &Type| matches!(one, Type::Any | Type::Null);
        open(self) || open(other) || self.name() == other.name()
    }

    fn or(self, other: Type) -> Type {
        if self == other { self } else { Type::Any }
    }
}

/// Functions that are called by name, of the standard library, of strings and of lists.
const FUNCTIONS: &[(&str, Type)] = &[
    ("bool", Type::Bool),
    ("bytes", Type::Any),
    ("charAt", Type::Text),
    ("contains", Type::Bool),
    ("double", Type::Number),
    ("dyn", Type::Any),
    ("endsWith", Type::Bool),
    ("format", Type::Text),
    ("hasValue", Type::Bool),
    ("indexOf", Type::Number),
    ("int", Type::Number),
    ("join", Type::Text),
    ("lastIndexOf", Type::Number),
    ("lowerAscii", Type::Text),
    ("matches", Type::Bool),
    ("optional.none", Type::Any),
    ("optional.of", Type::Any),
    ("optional.ofNonZeroValue", Type::Any),
    ("or", Type::Any),
    ("orValue", Type::Any),
    ("replace", Type::Text),
    ("reverse", Type::Text),
    ("size", Type::Number),
    ("split", Type::Any),
    ("startsWith", Type::Bool),
    ("string", Type::Text),
    ("strings.quote", Type::Text),
    ("substring", Type::Text),
    ("trim", Type::Text),
    ("type", Type::Any),
    ("uint", Type::Number),
    ("upperAscii", Type::Text),
    ("value", Type::Any),
];

/// Names that CEL gives to types.
const TYPE_NAMES: &[&str] =
    &["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];

/// Names of libraries, which stand before a function as a variable would.
const LIBRARIES: &[&str] = &["optional", "strings"];

/// What an expression reads, as paths from its variables; comprehensions' own variables are none.
pub(crate) fn paths(expression: &Expr) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    read(expression, &mut Vec::new(), &mut found);
    found
}

fn read<'e>(expression: &'e Expr, locals: &mut Vec<&'e str>, found: &mut Vec<Vec<&'e str>>) {
    // A test for presence reads a member that need not be there.
    if let Expr::Select(select) = expression
        && select.test
        && let Some(mut path) = path(&select.operand.expr)
    {
        path.push(&select.field);
        if path.first().is_some_and(|root| !locals.contains(root)) && !found.contains(&path) {
            found.push(path);
        }
        return;
    }
    if let Some(path) = path(expression) {
        if path.first().is_some_and(|root| !locals.contains(root)) && !found.contains(&path) {
            found.push(path);
        }
        return;
    }
    if let Expr::Comprehension(of) = expression {
        read(&of.iter_range.expr, locals, found);
        read(&of.accu_init.expr, locals, found);
        let depth = locals.len();
        locals.extend([of.iter_var.as_str(), of.accu_var.as_str()].into_iter().chain(of.iter_var2.as_deref()));
        for inner in [&of.loop_cond, &of.loop_step, &of.result] {
            read(&inner.expr, locals, found);
        }
        locals.truncate(depth);
        return;
    }
    for part in parts(expression) {
        read(part, locals, found);
    }
}

/// The path that an expression spells.
fn path(expression: &Expr) -> Option<Vec<&str>> {
    match expression {
        Expr::Ident(name) => Some(vec![name]),
        Expr::Select(select) if !select.test => {
            let mut path = path(&select.operand.expr)?;
            path.push(&select.field);
            Some(path)
        }
        _ => None,
    }
}

/// The expressions right within one.
pub(crate) fn parts(expression: &Expr) -> Vec<&Expr> {
    fn entry(entry: &EntryExpr) -> Vec<&Expr> {
        match entry {
            EntryExpr::StructField(field) => vec![&field.value.expr],
            EntryExpr::MapEntry(entry) => vec![&entry.key.expr, &entry.value.expr],
        }
    }
    match expression {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Comprehension(of) => [&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result]
            .into_iter()
            .map(|part| &part.expr)
            .collect(),
        Expr::Call(call) => {
            call.target.iter().map(|target| &target.expr).chain(call.args.iter().map(|arg| &arg.expr)).collect()
        }
        Expr::List(list) => list.elements.iter().map(|element| &element.expr).collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|one| entry(&one.expr)).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(|one| entry(&one.expr)).collect(),
        Expr::Select(select) => vec![&select.operand.expr],
    }
}

/// What is wrong with an expression that has to make a boolean of these variables.
pub(crate) fn check(expression: &Expr, variables: &[(&str, Type)]) -> Result<(), String> {
    let mut scope: Vec<(&str, Type)> = variables.to_vec();
    let declared = scope.len();
    match infer(expression, &mut scope, declared)? {
        Type::Any | Type::Bool => Ok(()),
        other => Err(format!("it is of type {} and not bool", other.name())),
    }
}

type VariableTypes<'e> = Vec<(&'e str, Type)>;

fn infer<'e>(expression: &'e Expr, scope: &mut VariableTypes<'e>, declared: usize) -> Result<Type, String> {
    match expression {
        Expr::Unspecified => Ok(Type::Any),
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Type::Bool,
            LiteralValue::Bytes(_) => Type::Any,
            LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Type::Number,
            LiteralValue::Null => Type::Null,
            LiteralValue::String(_) => Type::Text,
        }),
        Expr::Ident(name) => variable(name, scope, declared),
        Expr::Select(select) => {
            let of = infer(&select.operand.expr, scope, declared)?;
            if select.test { Ok(Type::Bool) } else { member(&of, &select.field, &select.operand.expr) }
        }
        Expr::List(_) => {
            for part in parts(expression) {
                infer(part, scope, declared)?;
            }
            Ok(Type::List(Box::default()))
        }
        Expr::Map(_) | Expr::Struct(_) => {
            for part in parts(expression) {
                infer(part, scope, declared)?;
            }
            Ok(Type::Map)
        }
        Expr::Call(called) => call(called, scope, declared),
        Expr::Comprehension(of) => comprehension(of, scope, declared),
    }
}

fn variable(name: &str, scope: &VariableTypes<'_>, declared: usize) -> Result<Type, String> {
    if let Some((_, of)) = scope.iter().rev().find(|(known, _)| *known == name) {
        return Ok(of.clone());
    }
    if TYPE_NAMES.contains(&name) || LIBRARIES.contains(&name) {
        return Ok(Type::Any);
    }
    let known: Vec<&str> = scope.iter().take(declared).map(|(known, _)| *known).collect();
    Err(format!("there is no {name}; known are: {}", known.join(", ")))
}

fn member(of: &Type, field: &str, operand: &Expr) -> Result<Type, String> {
    match of {
        Type::Any | Type::Map => Ok(Type::Any),
        Type::Members(members) => members.get(field).cloned().ok_or_else(|| {
            let known = members.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "there are none".to_owned() } else { format!("known are: {known}") };
            let owner = path(operand).unwrap_or_default().join(".");
            format!("there is no {field} in {owner}; {known}")
        }),
        Type::Null | Type::Bool | Type::Number | Type::Text | Type::List(_) => {
            Err(format!("{field} is read of a {}, which has no members", of.name()))
        }
    }
}

fn call<'e>(called: &'e CallExpr, scope: &mut VariableTypes<'e>, declared: usize) -> Result<Type, String> {
    let name = called.func_name.as_str();
    let library = called.target.as_ref().and_then(|target| match &target.expr {
        Expr::Ident(root) if LIBRARIES.contains(&root.as_str()) => Some(format!("{root}.{name}")),
        _ => None,
    });
    let named = library.as_deref().unwrap_or(name);
    let mut args = Vec::new();
    for arg in called.target.iter().map(|target| &target.expr).chain(called.args.iter().map(|arg| &arg.expr)) {
        args.push(infer(arg, scope, declared)?);
    }
    let both = |sign: &str, made: Type| match args.as_slice() {
        [left, right] if !left.meets(right) => {
            Err(format!("{sign} stands between a {} and a {}", left.name(), right.name()))
        }
        _ => Ok(made),
    };
    let truths = |sign: &str| match args.iter().find(|arg| !arg.meets(&Type::Bool)) {
        Some(arg) => Err(format!("{sign} is asked of a {}", arg.name())),
        None => Ok(Type::Bool),
    };
    let of = |index: usize| args.get(index).cloned().unwrap_or_default();
    match name {
        operators::LOGICAL_AND => truths("&&"),
        operators::LOGICAL_OR => truths("||"),
        operators::LOGICAL_NOT => truths("!"),
        operators::EQUALS => both("==", Type::Bool),
        operators::NOT_EQUALS => both("!=", Type::Bool),
        operators::LESS => both("<", Type::Bool),
        operators::LESS_EQUALS => both("<=", Type::Bool),
        operators::GREATER => both(">", Type::Bool),
        operators::GREATER_EQUALS => both(">=", Type::Bool),
        operators::ADD => both("+", of(0).or(of(1))),
        operators::SUBSTRACT => both("-", Type::Any),
        operators::MULTIPLY => both("*", Type::Number),
        operators::DIVIDE => both("/", Type::Number),
        operators::MODULO => both("%", Type::Number),
        operators::NEGATE => Ok(Type::Number),
        operators::IN | operators::NOT_STRICTLY_FALSE => Ok(Type::Bool),
        operators::CONDITIONAL => Ok(of(1).or(of(2))),
        operators::INDEX => match (of(0), called.args.last().map(|arg| &arg.expr)) {
            (Type::List(each), _) => Ok(*each),
            (members @ Type::Members(_), Some(Expr::Literal(LiteralValue::String(key)))) => {
                let operand = called.target.as_deref().or(called.args.first()).map(|of| &of.expr);
                member(&members, key.inner(), operand.unwrap_or(&Expr::Unspecified))
            }
            _ => Ok(Type::Any),
        },
        operators::OPT_INDEX | operators::OPT_SELECT => Ok(Type::Any),
        _ => match FUNCTIONS.iter().find(|(known, _)| *known == named) {
            Some((_, made)) => Ok(made.clone()),
            None => Err(format!("there is no function {named}")),
        },
    }
}

fn comprehension<'e>(
    of: &'e ComprehensionExpr,
    scope: &mut VariableTypes<'e>,
    declared: usize,
) -> Result<Type, String> {
    let range = infer(&of.iter_range.expr, scope, declared)?;
    let each = match range {
        Type::List(each) => *each,
        Type::Members(_) => Type::Text,
        Type::Any | Type::Map => Type::Any,
        other => return Err(format!("all, exists, map and filter are asked of a {}", other.name())),
    };
    for name in [Some(of.iter_var.as_str()), of.iter_var2.as_deref()].into_iter().flatten() {
        if scope.iter().take(declared).any(|(known, _)| *known == name) {
            return Err(format!("{name} is a variable already; give that of the comprehension another name"));
        }
    }
    let begin = infer(&of.accu_init.expr, scope, declared)?;
    let depth = scope.len();
    scope.push((&of.iter_var, each));
    scope.extend(of.iter_var2.as_deref().map(|name| (name, Type::Any)));
    scope.push((&of.accu_var, begin.clone()));
    infer(&of.loop_cond.expr, scope, declared)?;
    infer(&of.loop_step.expr, scope, declared)?;
    let result = infer(&of.result.expr, scope, declared);
    scope.truncate(depth);
    // Of a list that grows nothing is known of the elements.
    result.map(|made| if matches!(made, Type::List(_)) { Type::List(Box::default()) } else { made })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expression;

    fn variables() -> Vec<(&'static str, Type)> {
        let imports = [
            ("replicas", Type::Number),
            ("enabled", Type::Bool),
            ("zone", Type::Text),
            ("zones", Type::List(Box::new(Type::Text))),
            ("free", Type::Any),
        ];
        let members = imports.into_iter().map(|(name, of)| (name.to_owned(), of));
        vec![("imports", Type::members(members)), ("objects", Type::members([]))]
    }

    fn check(source: &str) -> Result<(), String> {
        Expression::compile(source)?.check(&variables())
    }

    #[test]
    fn what_may_be_a_boolean_passes() {
        for source in [
            "imports.enabled",
            "imports.free",
            "imports.free.deep.er == null",
            "imports.replicas > 1 && imports.zone.startsWith('eu')",
            "imports.zones.all(z, z.size() > 2) || !imports.enabled",
            "imports.zones.filter(z, z != '').size() == 3",
            "imports.zones.map(z, z + '-a').exists(z, z == imports.zone)",
            "has(imports.zone) ? imports.enabled : false",
            "imports['zone'] == 'x' && 'a' in imports.zones && imports.zones[0] == 'b'",
            "type(imports.free) == string && int(imports.zone) + 1 == imports.replicas",
            "strings.quote(imports.zone) == ''",
            "{'a': imports.replicas}.a == 1 && [1, 2].exists_one(n, n == imports.replicas)",
        ] {
            assert_eq!(check(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn what_can_never_work_is_told() {
        for (source, message) in [
            ("inputs.zone == 'x'", "there is no inputs; known are: imports, objects"),
            ("imports.zoan == 'x'", "there is no zoan in imports; known are: enabled, free, replicas, zone, zones"),
            ("imports['zoan'] == 'x'", "there is no zoan in imports; known are: enabled, free, replicas, zone, zones"),
            ("objects.db.status == 1", "there is no db in objects; there are none"),
            ("imports.replicas", "it is of type number and not bool"),
            ("imports.zone + 'x'", "it is of type string and not bool"),
            ("imports.replicas == '3'", "== stands between a number and a string"),
            ("imports.replicas > imports.zone", "> stands between a number and a string"),
            ("imports.zone && true", "&& is asked of a string"),
            ("!imports.replicas", "! is asked of a number"),
            ("imports.zone.name == 'x'", "name is read of a string, which has no members"),
            ("imports.zone.beginsWith('x')", "there is no function beginsWith"),
            ("imports.zone.all(z, true)", "all, exists, map and filter are asked of a string"),
            (
                "imports.zones.all(imports, true)",
                "imports is a variable already; give that of the comprehension another name",
            ),
        ] {
            assert_eq!(check(source), Err(message.to_owned()), "{source}");
        }
        assert!(check("imports.(").unwrap_err().starts_with("compilation failed: "));
        assert_eq!(check(&"(".repeat(20_000)), Err("it has 20000 bytes, 16384 are allowed".to_owned()));
    }

    #[test]
    fn the_paths_that_are_read_are_those_of_variables() {
        let expression = Expression::compile(
            "imports.a.b > 1 && imports.list.exists(x, x.y == objects.o.status.z) && has(items.c.exports.d) && imports.a.b < 3",
        );
        let expression = expression.unwrap();
        let found: Vec<String> = expression.reads().iter().map(|path| path.join(".")).collect();
        assert_eq!(found, ["imports.a.b", "imports.list", "objects.o.status.z", "items.c.exports.d"]);
    }

    /// Were one of them unknown to the library, it would say so instead of finding no overload.
    #[test]
    fn every_function_that_is_known_here_is_one_of_the_library() {
        for (name, _) in FUNCTIONS {
            let call = match *name {
                "optional.none" => "optional.none()".to_owned(),
                dotted if dotted.contains('.') => format!("{dotted}('')"),
                "bool" | "bytes" | "double" | "dyn" | "int" | "string" | "type" | "uint" | "size" => {
                    format!("{name}(null)")
                }
                member => format!("(null).{member}(null, null, null, null)"),
            };
            let message = Expression::compile(&call).unwrap().holds(&crate::ExpressionScope::new());
            assert!(!message.clone().is_err_and(|message| message.contains("ndeclared")), "{call}: {message:?}");
        }
    }
}
