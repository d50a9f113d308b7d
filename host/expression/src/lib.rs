//! Expressions in CEL over JSON, with the functions of Kubernetes that policies use: the standard ones, those of strings,
//! and `indexOf` and `lastIndexOf` of lists.
//!
//! [`Expression::holds`] evaluates in a [`ExpressionScope`] that may be used many times, [`Expression::holds_of`] over one
//! document. What an evaluation may cost at most is told before it begins, and one that could cost more than
//! [`SCOPE_COST_LIMIT`] or [`COST_LIMIT`] is refused. [`Expression::check`] finds what is wrong whatever the
//! values are.

mod cost;
mod made;
mod patterns;
mod types;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use cel::{
    Context, DeclarationError, Env, ExecutionError, IdedExpr, Value as CelValue,
    common::{
        types::{CelInt, DYN_TYPE, LIST_TYPE, STRING_TYPE},
        value::CowVal,
    },
    extensions,
};
use serde_json::{Map, Value};

use crate::patterns::Patterns;
pub use crate::{
    cost::{COST_LIMIT, SCOPE_COST_LIMIT},
    patterns::{MOST_PLACES, ReadingBudget},
    types::Type,
};

/// The longest expression, in bytes.
pub const LONGEST_EXPRESSION: usize = 16 << 10;

/// What a level of an expression needs of the stack at most to be parsed, in bytes, where nothing is optimised: the parser calls
/// itself for each rank of operators.
const STACK_TO_PARSE: usize = 320 << 10;

/// The same to be walked.
const STACK_TO_WALK: usize = 64 << 10;

/// What a letter of an expression takes at most in its tree, in bytes: a part of one letter is a node with its type.
const BYTES_OF_A_LETTER: u64 = 256;

/// How many operators a text has at most, brackets and commas among them: each may be a level of the tree that is made of it.
/// What ends in `in` counts as the operator: `0in 0in 0` needs no space before it.
pub fn operators(source: &str) -> usize {
    let signs = source.bytes().filter(|byte| b"+-*/%.[(<>=!&|?:{,".contains(byte)).count();
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    signs + source.match_indices("in").filter(|(place, _)| !goes_on(&source[place + 2..])).count()
}

/// Works on a tree of so many levels, which is walked on the stack: on one of its own where what is left of the thread's might
/// not do.
fn within<T>(levels: usize, of_level: usize, work: impl FnOnce() -> T) -> T {
    let needed = (levels + 1) * of_level;
    stacker::maybe_grow(needed, needed, work)
}

/// What expressions are compiled in and evaluated in.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    declare(&mut env).expect("no function of Kubernetes is declared by the standard library");
    Arc::new(env)
});

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_overload("matches", "matches", vec![STRING_TYPE, STRING_TYPE], patterns::matches)?;
    env.add_member_overload("matches", "matches_string", STRING_TYPE, vec![STRING_TYPE], patterns::matches)?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], index_of)?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], last_index_of)
}

fn index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelInt::from(occurrences(&args, "indexOf")?.first().copied().unwrap_or(-1))))
}

fn last_index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelInt::from(occurrences(&args, "lastIndexOf")?.last().copied().unwrap_or(-1))))
}

/// Where the second argument stands in the first, which is a list.
fn occurrences(args: &[CowVal<'_, '_>], function: &str) -> Result<Vec<i64>, ExecutionError> {
    let [list, wanted] = args else { return Err(ExecutionError::invalid_argument_count(2, args.len())) };
    let list = list.as_ref().as_iterable();
    let list = list.ok_or_else(|| ExecutionError::function_error(function, "it is asked of lists"))?;
    let mut entries = list.iter();
    let entries = std::iter::from_fn(|| entries.next());
    Ok((0..).zip(entries).filter(|(_, entry)| entry.equals(wanted.as_ref())).map(|(index, _)| index).collect())
}

/// One compiled expression.
///
/// The errors of all that is asked of it are parts of a sentence, to be put behind what names the expression.
pub struct Expression {
    source: String,
    tree: IdedExpr,
    /// As many as its tree has at most.
    levels: usize,
    patterns: Patterns,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source)
    }
}

impl Expression {
    /// The expression of a text, or why it is none.
    pub fn compile(source: &str) -> Result<Self, String> {
        Self::compile_tree(source, |tree| Ok(tree.clone()))
    }

    /// The same of one that makes an object or a list of changes: `Object{…}` and `JSONPatch{…}` are maps of their fields.
    pub fn compile_object(source: &str) -> Result<Self, String> {
        Self::compile_tree(source, made::opened)
    }

    fn compile_tree(source: &str, tree_of: fn(&IdedExpr) -> Result<IdedExpr, String>) -> Result<Self, String> {
        if source.len() > LONGEST_EXPRESSION {
            return Err(format!("it has {} bytes, {LONGEST_EXPRESSION} are allowed", source.len()));
        }
        let levels = operators(source);
        let program = within(levels, STACK_TO_PARSE, || ENVIRONMENT.compile(source));
        let program = program.map_err(|errors| format!("compilation failed: {errors}"))?;
        let tree = within(levels, STACK_TO_WALK, || tree_of(program.expression()))?;
        let patterns = within(levels, STACK_TO_WALK, || Patterns::of(&tree.expr))?;
        Ok(Self { source: source.to_owned(), tree, levels, patterns })
    }

    /// What it takes at most to be kept, in bytes: its tree and its regular expressions.
    pub fn bytes(&self) -> u64 {
        let source = u64::try_from(self.source.len()).unwrap_or(u64::MAX);
        source.saturating_mul(BYTES_OF_A_LETTER).saturating_add(self.patterns.bytes())
    }

    /// What was compiled.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it holds.
    pub fn holds(&self, scope: &ExpressionScope) -> Result<bool, String> {
        boolean(self.value(scope)?)
    }

    /// Whether it holds of a document: each member is a variable. What the expression does not name is never looked at.
    ///
    /// An evaluation that could cost more than [`COST_LIMIT`] is not begun.
    pub fn holds_of(&self, document: &Map<String, Value>) -> Result<bool, String> {
        within(self.levels, STACK_TO_WALK, || self.evaluate(document))
    }

    fn evaluate(&self, document: &Map<String, Value>) -> Result<bool, String> {
        cost::within_limit(&self.tree.expr, document, &self.patterns, COST_LIMIT)?;
        let mut scope = ExpressionScope::new();
        scope.name_all(&self.reads(), document);
        // What the library says of an error may have values in it, which may be secrets, of any length.
        let value =
            self.patterns.within(|| CelValue::resolve(&self.tree, &scope.context)).map_err(|error| match error {
                ExecutionError::NoSuchKey(key) if self.source.contains(key.as_str()) => format!("no such key: {key}"),
                ExecutionError::NoSuchKey(_) => "there is no such key".to_owned(),
                ExecutionError::DivisionByZero(_) => "it divides by zero".to_owned(),
                ExecutionError::NoSuchOverload(_) => {
                    "an operator or a function does not take values of these types".to_owned()
                }
                ExecutionError::FunctionError { function, .. } => {
                    format!("{function} cannot be computed of this value")
                }
                _ => "a value is not of the expected type, or out of range".to_owned(),
            })?;
        boolean(value)
    }

    /// What is wrong whatever the values are: unknown variables, members and functions, operators between types that do not
    /// go together, a result that is not a boolean. `variables` are all there are.
    pub fn check(&self, variables: &[(&str, Type)]) -> Result<(), String> {
        within(self.levels, STACK_TO_WALK, || types::check(&self.tree.expr, variables))
    }

    /// The names that it reads, each as a path from a variable: `imports.size > 3` reads `["imports", "size"]`, and so does
    /// `has(imports.size)`. What is computed, such as an index, ends a path. In the order of their first appearance, each
    /// once.
    pub fn reads(&self) -> Vec<Vec<&str>> {
        within(self.levels, STACK_TO_WALK, || types::paths(&self.tree.expr))
    }

    /// The text that it makes.
    pub fn text(&self, scope: &ExpressionScope) -> Result<String, String> {
        match self.value(scope)? {
            CelValue::String(text) => Ok(text.to_string()),
            other => Err(format!("it is of type {} and not string", other.type_of())),
        }
    }

    /// What it makes, as JSON.
    pub fn json(&self, scope: &ExpressionScope) -> Result<Value, String> {
        self.value(scope).map(|value| json(&value))
    }

    /// An evaluation that could cost more than [`SCOPE_COST_LIMIT`] is not begun.
    fn value(&self, scope: &ExpressionScope) -> Result<CelValue, String> {
        within(self.levels, STACK_TO_WALK, || {
            let expression = &self.tree.expr;
            cost::within_limit(expression, &scope.document, &self.patterns, SCOPE_COST_LIMIT)?;
            self.patterns.within(|| CelValue::resolve(&self.tree, &scope.context)).map_err(|error| match error {
                ExecutionError::UndeclaredReference(_) => {
                    scope.broken_of(self).unwrap_or_else(|| lower(&error.to_string()))
                }
                error => lower(&error.to_string()),
            })
        })
    }
}

fn boolean(value: CelValue) -> Result<bool, String> {
    match value {
        CelValue::Bool(holds) => Ok(holds),
        other => Err(format!("it is of type {} and not bool", other.type_of())),
    }
}

/// The API server writes its errors small.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// What expressions can name.
pub struct ExpressionScope {
    context: Context<'static, 'static>,
    /// What has a name, as JSON: the cost of an evaluation is told from it.
    document: Map<String, Value>,
    /// Why what was to have a name in `variables` has none.
    broken: BTreeMap<String, String>,
}

impl Default for ExpressionScope {
    fn default() -> Self {
        Self::new()
    }
}

impl ExpressionScope {
    /// A scope in which nothing has a name yet.
    pub fn new() -> Self {
        Self { context: Context::with_env(Arc::clone(&ENVIRONMENT)), document: Map::new(), broken: BTreeMap::new() }
    }

    /// Gives a value a name.
    pub fn name(&mut self, name: &str, value: &Value) {
        self.add(name, value);
        self.document.insert(name.to_owned(), value.clone());
    }

    fn add(&mut self, name: &str, value: &Value) {
        self.context.add_variable_from_value(name, cel_value(value));
    }

    /// Names the variables of a document, each with no more members than an expression reads.
    fn name_all(&mut self, paths: &[Vec<&str>], document: &Map<String, Value>) {
        for (name, value) in document {
            let read = paths.iter().filter(|path| path.first() == Some(&name.as_str()));
            let mut members = Vec::new();
            let mut whole = false;
            for path in read {
                match path.get(1) {
                    Some(member) => members.push(*member),
                    None => whole = true,
                }
            }
            match value {
                Value::Object(of) if !whole => {
                    let few = of.iter().filter(|(member, _)| members.contains(&member.as_str()));
                    self.add(
                        name,
                        &Value::Object(few.map(|(member, value)| (member.clone(), value.clone())).collect()),
                    );
                }
                value => self.add(name, value),
            }
        }
    }

    /// Gives what an expression makes a name in `variables`. One that fails has none, and an expression that needs it fails
    /// with its error.
    pub fn define(&mut self, name: &str, expression: &Expression) {
        match expression.value(self) {
            Ok(value) => {
                let variables = self.document.entry("variables").or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(variables) = variables {
                    variables.insert(name.to_owned(), json(&value));
                }
                self.context.add_variable_from_value(format!("variables.{name}"), value);
            }
            Err(why) => {
                self.broken.insert(name.to_owned(), why);
            }
        }
    }

    /// Why the first variable that an expression names and that has no value has none, in the words of an API server.
    fn broken_of(&self, expression: &Expression) -> Option<String> {
        let reads = expression.reads();
        let variables = reads.iter().filter(|path| path.first() == Some(&"variables"));
        let mut broken = variables.filter_map(|path| self.broken.get_key_value(*path.get(1)?));
        broken.next().map(|(name, why)| format!("composited variable \"{name}\" fails to evaluate: {why}"))
    }
}

/// A computed value as JSON; what JSON does not have is null.
fn json(value: &CelValue) -> Value {
    match value {
        CelValue::Int(number) => Value::from(*number),
        CelValue::UInt(number) => Value::from(*number),
        CelValue::Float(number) => Value::from(*number),
        CelValue::Bool(truth) => Value::from(*truth),
        CelValue::String(text) => Value::from(text.as_str()),
        CelValue::List(items) => items.iter().map(json).collect(),
        CelValue::Map(map) => map.map.iter().map(|(key, value)| (key.to_string(), json(value))).collect(),
        CelValue::Bytes(bytes) => Value::from("x".repeat(bytes.len())),
        _ => Value::Null,
    }
}

fn cel_value(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(truth) => CelValue::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => CelValue::Int(whole),
            None => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => CelValue::from(text.as_str()),
        Value::Array(entries) => CelValue::from(entries.iter().map(cel_value).collect::<Vec<_>>()),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.as_str(), cel_value(value)));
            CelValue::from(fields.collect::<std::collections::HashMap<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Result<bool, &str>) {
        let mut scope = ExpressionScope::new();
        scope.name("object", &json!({"list": ["a", "b", "a"], "text": "Ab-1", "nested": {"n": 1, "none": null}}));
        scope.name("oldObject", &Value::Null);
        scope.define("names", &Expression::compile("object.list.map(entry, entry + 'x')").unwrap());
        scope.define("broken", &Expression::compile("object.absent").unwrap());
        let found = Expression::compile(source).unwrap().holds(&scope);
        assert_eq!(found, expected.map_err(str::to_owned), "{source}");
    }

    /// What came of an expression on a thread with the stack of a worker, half of which is in use.
    fn on_a_worker(source: String) -> Result<bool, String> {
        let work = move || {
            let expression = Expression::compile(&source)?;
            let document = json!({"a": true, "list": [1]});
            expression.check(&[("a", Type::Bool), ("list", Type::List(Box::new(Type::Any)))])?;
            expression.holds_of(document.as_object().unwrap())
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap()
    }

    #[test]
    fn deep_expressions_have_a_stack_that_bears_them() {
        // The parser itself bears no more than 96 levels of brackets.
        for (source, expected) in [
            (format!("1{} == 301", "+1".repeat(300)), Ok(true)),
            (format!("{}a{}", "(".repeat(90), ")".repeat(90)), Ok(true)),
            (format!("{}a", "!".repeat(300)), Ok(true)),
            (format!("{}a", "a && ".repeat(300)), Ok(true)),
            (format!("{}a", "a ? a : ".repeat(40)), Ok(true)),
            (format!("{}1{} == []", "[".repeat(90), "]".repeat(90)), Ok(false)),
            (format!("size([{}1]) == 301", "1,".repeat(300)), Ok(true)),
            (format!("{}a{}", "list.all(x, ".repeat(15), ")".repeat(15)), Ok(true)),
            (
                format!("{}a ? a : a", "0in ".repeat(300)),
                Err("an operator or a function does not take values of these types"),
            ),
        ] {
            let text: String = source.chars().take(40).collect();
            assert_eq!(on_a_worker(source), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn expressions_read_objects_as_those_of_kubernetes_do() {
        check("has(object.nested) && !has(object.other)", Ok(true));
        check("oldObject == null", Ok(true));
        check("object.nested == {'n': 1, 'none': null}", Ok(true));
        check("object.text.matches('^[A-Z][a-z]-[0-9]$')", Ok(true));
        check("object.list.all(e, object.list.indexOf(e) == object.list.lastIndexOf(e))", Ok(false));
        check("object.list.indexOf('c') == -1 && object.list.lastIndexOf('a') == 2", Ok(true));
        check("object.list.join(', ') == 'a, b, a'", Ok(true));
        check("variables.names == ['ax', 'bx', 'ax']", Ok(true));
        check("[true, false].exists_one(b, b)", Ok(true));
        check("'b' in object.list", Ok(true));
        check("size(object.list) == 3", Ok(true));
    }

    #[test]
    fn an_expression_that_fails_shows_no_value() {
        let document = json!({"items": {"password": "hunter2", "map": {"a": 1}, "zero": 0}});
        for source in [
            "items.password + 1 == 2",
            "items.map[items.password] == 1",
            "'a'.matches(items.password + '(')",
            "int(items.password) == 1",
            "1 / items.zero == 1",
            "items.password < 3",
        ] {
            let message = Expression::compile(source).unwrap().holds_of(document.as_object().unwrap()).unwrap_err();
            assert!(!message.contains("hunter2") && message.len() < 100, "{source}: {message}");
        }
    }

    #[test]
    fn limits_expression_in_a_scope_what_could_cost_too_much_is_not_begun() {
        let mut scope = ExpressionScope::new();
        scope.name("object", &json!({"list": (0..1000).collect::<Vec<u32>>(), "text": "x".repeat(1000)}));
        scope.define("names", &Expression::compile("object.list.map(n, object.text)").unwrap());
        for source in [
            "object.list.all(a, object.list.all(b, object.list.all(c, object.list.all(d, true))))",
            "object.text.replace('x', object.text).replace('x', object.text).size() > 0",
            "object.list.all(a, object.text.matches('(x*)*y' + object.text))",
            "variables.names.all(a, variables.names.all(b, a == b))",
        ] {
            let message = Expression::compile(source).unwrap().holds(&scope).unwrap_err();
            assert!(
                message.starts_with("it could cost ") && message.contains("50000000 are allowed"),
                "{source}: {message}"
            );
        }
        let unique = "object.list.all(e, object.list.indexOf(e) == object.list.lastIndexOf(e))";
        assert_eq!(Expression::compile(unique).unwrap().holds(&scope), Ok(true));
        assert_eq!(Expression::compile("variables.names.all(a, a == object.text)").unwrap().holds(&scope), Ok(true));
    }

    #[test]
    fn an_expression_that_fails_says_why() {
        check("object.absent == 1", Err("no such key: absent"));
        let broken = "composited variable \"broken\" fails to evaluate: no such key: absent";
        check("variables.broken == 1", Err(broken));
        check("variables.names == [] || variables.broken == 1", Err(broken));
        check("variables.names != [] || variables.broken == 1", Ok(true));
        check("object.nested.n", Err("it is of type int and not bool"));
        assert!(Expression::compile("object.(").unwrap_err().starts_with("compilation failed: "));
        let undefined = Expression::compile("variables.broken == 1").unwrap().holds(&ExpressionScope::new());
        assert_eq!(undefined, Err("undeclared reference to 'variables'".to_owned()));
    }

    #[test]
    fn limits_expression_an_expression_has_a_length() {
        let of = |length: usize| Expression::compile(&format!("{:<length$}", "true")).map(|made| made.source().len());
        assert_eq!(of(LONGEST_EXPRESSION), Ok(LONGEST_EXPRESSION));
        assert_eq!(of(LONGEST_EXPRESSION + 1), Err("it has 16385 bytes, 16384 are allowed".to_owned()));
    }
}
