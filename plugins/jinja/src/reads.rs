//! What a line of a template reads of the inputs, by the syntax tree of the engine: also by way of variables and loops.
//! What is computed, or assigned in more than one place, is not followed.

mod assigned;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{
    machinery::{
        ast::{Call, CallArg, CallType, Expr, ForLoop, Macro, Stmt},
        parse,
    },
    syntax::SyntaxConfig,
};
use orangery_sdk::{InputPath, InputStep};

use self::assigned::{assigned_twice, names};

/// The paths that a line reads, in the order of the text. The line counts from 1. A template with a syntax error reads
/// nothing.
pub(crate) fn reads(source: &str, line: u32) -> Vec<InputPath> {
    let Ok(template) = parse(source, "template", SyntaxConfig::default()) else { return Vec::new() };
    let mut walk = Walk { line, blocks: vec![Block::new()], unsure: assigned_twice(&template), found: Vec::new() };
    walk.statement(&template);
    walk.found
}

/// The names that a block defines. `None` is a value that is not known.
type Block<'a> = BTreeMap<&'a str, Option<InputPath>>;

/// A walk over a syntax tree in the order of its text.
struct Walk<'a> {
    line: u32,
    /// Blocks within blocks.
    blocks: Vec<Block<'a>>,
    /// Names that are assigned in more than one place.
    unsure: BTreeSet<&'a str>,
    found: Vec<InputPath>,
}

/// A variable and the fields of fields that are read of it, such as `imports.a` or `imports["a"]`.
struct Chain<'a> {
    variable: &'a str,
    line: u32,
    fields: Vec<String>,
}

fn chain<'a>(of: &Expr<'a>) -> Option<Chain<'a>> {
    match of {
        Expr::Var(variable) => {
            let line = u32::from(variable.span().start_line);
            Some(Chain { variable: variable.id, line, fields: Vec::new() })
        }
        Expr::GetAttr(attribute) => {
            let mut chain = chain(&attribute.expr)?;
            chain.fields.push(attribute.name.to_owned());
            Some(chain)
        }
        Expr::GetItem(item) => {
            let Expr::Const(name) = &item.subscript_expr else { return None };
            let mut chain = chain(&item.expr)?;
            chain.fields.push(name.value.as_str()?.to_owned());
            Some(chain)
        }
        _ => None,
    }
}

impl<'a> Walk<'a> {
    /// What a variable stands for. One that the template does not define is an input.
    fn variable(&self, name: &str) -> Option<InputPath> {
        if self.unsure.contains(name) {
            return None;
        }
        match self.blocks.iter().rev().find_map(|block| block.get(name)) {
            Some(known) => known.clone(),
            None => Some(vec![InputStep::field(name)]),
        }
    }

    fn resolve(&self, chain: Chain<'_>) -> Option<InputPath> {
        let mut path = self.variable(chain.variable)?;
        path.extend(chain.fields.into_iter().map(InputStep::Field));
        Some(path)
    }

    /// What an expression stands for, where it is nothing but a chain.
    fn path(&self, of: &Expr<'_>) -> Option<InputPath> {
        self.resolve(chain(of)?)
    }

    fn define(&mut self, name: &'a str, path: Option<InputPath>) {
        if let Some(block) = self.blocks.last_mut() {
            block.insert(name, path);
        }
    }

    /// `a = …`; the parts of `a, b = …` are not known.
    fn assign(&mut self, target: &Expr<'a>, path: Option<InputPath>) {
        match target {
            Expr::Var(variable) => self.define(variable.id, path),
            other => names(other).into_iter().for_each(|name| self.define(name, None)),
        }
    }

    fn all(&mut self, statements: &[Stmt<'a>]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    /// A block with names of its own. Answers those.
    fn block(&mut self, of: impl FnOnce(&mut Self)) -> Block<'a> {
        self.blocks.push(Block::new());
        of(self);
        self.blocks.pop().unwrap_or_default()
    }

    /// Statements that may not run: what they define is not known behind them.
    fn branch(&mut self, statements: &[Stmt<'a>]) {
        let defined = self.block(|walk| walk.all(statements));
        defined.into_keys().for_each(|name| self.define(name, None));
    }

    fn statement(&mut self, statement: &Stmt<'a>) {
        match statement {
            Stmt::Template(of) => self.all(&of.children),
            Stmt::EmitExpr(of) => self.expression(&of.expr),
            Stmt::ForLoop(of) => self.each(of),
            Stmt::IfCond(of) => {
                self.expression(&of.expr);
                self.branch(&of.true_body);
                self.branch(&of.false_body);
            }
            Stmt::WithBlock(of) => drop(self.block(|walk| {
                for (target, value) in &of.assignments {
                    walk.expression(value);
                    walk.assign(target, walk.path(value));
                }
                walk.all(&of.body);
            })),
            Stmt::Set(of) => {
                self.expression(&of.expr);
                self.assign(&of.target, self.path(&of.expr));
            }
            Stmt::SetBlock(of) => {
                of.filter.iter().for_each(|filter| self.expression(filter));
                self.branch(&of.body);
                names(&of.target).into_iter().for_each(|name| self.define(name, None));
            }
            Stmt::AutoEscape(of) => {
                self.expression(&of.enabled);
                self.branch(&of.body);
            }
            Stmt::FilterBlock(of) => {
                self.expression(&of.filter);
                self.branch(&of.body);
            }
            Stmt::Block(of) => drop(self.block(|walk| walk.all(&of.body))),
            Stmt::Import(of) => {
                self.expression(&of.expr);
                self.assign(&of.name, None);
            }
            Stmt::FromImport(of) => {
                self.expression(&of.expr);
                of.names.iter().for_each(|(name, alias)| self.assign(alias.as_ref().unwrap_or(name), None));
            }
            Stmt::Extends(of) => self.expression(&of.name),
            Stmt::Include(of) => self.expression(&of.name),
            Stmt::Macro(of) => {
                self.define(of.name, None);
                self.body_of_macro(of);
            }
            Stmt::CallBlock(of) => {
                self.call(&of.call);
                self.body_of_macro(&of.macro_decl);
            }
            Stmt::Do(of) => self.call(&of.call),
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
        }
    }

    fn each(&mut self, of: &ForLoop<'a>) {
        self.expression(&of.iter);
        let (name, path) = match (&of.target, &of.iter) {
            (Expr::Var(name), items) => (Some(name.id), below(self.path(items), InputStep::Items)),
            // `key, value in … | items`
            (Expr::List(pair), Expr::Filter(filter)) if filter.name == "items" && filter.args.is_empty() => {
                let value = if let [_, Expr::Var(value)] = pair.items.as_slice() { Some(value.id) } else { None };
                let object = filter.expr.as_ref().and_then(|object| self.path(object));
                (value, below(object, InputStep::Entries))
            }
            _ => (None, None),
        };
        self.block(|walk| {
            walk.define("loop", None);
            names(&of.target).into_iter().for_each(|name| walk.define(name, None));
            name.into_iter().for_each(|name| walk.define(name, path.clone()));
            of.filter_expr.iter().for_each(|filter| walk.expression(filter));
            walk.all(&of.body);
        });
        self.branch(&of.else_body);
    }

    fn body_of_macro(&mut self, of: &Macro<'a>) {
        of.defaults.iter().for_each(|default| self.expression(default));
        self.block(|walk| {
            of.args.iter().for_each(|argument| walk.assign(argument, None));
            walk.all(&of.body);
        });
    }

    fn call(&mut self, of: &Call<'a>) {
        match of.identify_call() {
            CallType::Function(_) | CallType::Block(_) => {}
            CallType::Method(of, _) | CallType::Object(of) => self.expression(of),
        }
        self.arguments(&of.args);
    }

    fn arguments(&mut self, of: &[CallArg<'a>]) {
        for argument in of {
            match argument {
                CallArg::Pos(of) | CallArg::Kwarg(_, of) | CallArg::PosSplat(of) | CallArg::KwargSplat(of) => {
                    self.expression(of);
                }
            }
        }
    }

    fn expression(&mut self, of: &Expr<'a>) {
        if let Some(chain) = chain(of) {
            if chain.line == self.line {
                self.found.extend(self.resolve(chain));
            }
            return;
        }
        match of {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(of) => {
                self.expression(&of.expr);
                [&of.start, &of.stop, &of.step].into_iter().flatten().for_each(|bound| self.expression(bound));
            }
            Expr::UnaryOp(of) => self.expression(&of.expr),
            Expr::BinOp(of) => {
                self.expression(&of.left);
                self.expression(&of.right);
            }
            Expr::Compare(of) => {
                self.expression(&of.expr);
                of.ops.iter().for_each(|operand| self.expression(&operand.expr));
            }
            Expr::IfExpr(of) => {
                self.expression(&of.true_expr);
                self.expression(&of.test_expr);
                of.false_expr.iter().for_each(|otherwise| self.expression(otherwise));
            }
            Expr::Filter(of) => {
                of.expr.iter().for_each(|value| self.expression(value));
                self.arguments(&of.args);
            }
            Expr::Test(of) => {
                self.expression(&of.expr);
                self.arguments(&of.args);
            }
            Expr::GetAttr(of) => self.expression(&of.expr),
            Expr::GetItem(of) => {
                self.expression(&of.expr);
                self.expression(&of.subscript_expr);
            }
            Expr::Call(of) => self.call(of),
            Expr::List(of) => of.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(of) => of.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(of) => of.keys.iter().zip(&of.values).for_each(|(key, value)| {
                self.expression(key);
                self.expression(value);
            }),
        }
    }
}

fn below(path: Option<InputPath>, step: InputStep) -> Option<InputPath> {
    path.map(|mut path| {
        path.push(step);
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths that the line with `!` reads, as `imports.list[].name`; `[*]` stands for the values of an object too.
    fn of(template: &str) -> Vec<String> {
        let line = template.lines().position(|line| line.contains('!')).unwrap() + 1;
        let step = |step: &InputStep| match step {
            InputStep::Field(name) => format!(".{name}"),
            InputStep::Items => "[]".to_owned(),
            InputStep::Entries => "[*]".to_owned(),
        };
        let path = |path: InputPath| path.iter().map(step).collect::<String>().trim_start_matches('.').to_owned();
        reads(template, u32::try_from(line).unwrap()).into_iter().map(path).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn variables_are_followed() {
        assert_eq!(
            of("{% set x = imports.y %}\n! {{ x.z }} {{ x }} {{ values.a }}\n{{ imports.other }}"),
            ["imports.y.z", "imports.y", "values.a"]
        );
        assert_eq!(
            of("{%- with x = imports.y -%}\n! {{ x.z | default(x.w) }}{% endwith %}"),
            ["imports.y.z", "imports.y.w"]
        );
        assert_eq!(of("{% with x = imports.y %}{% endwith %}\n! {{ x.z }}"), ["x.z"]);
        assert_eq!(of("! {{ f(imports=imports.a.items()) }}{{ imports.b(1) }}"), ["imports.a", "imports"]);
        assert_eq!(
            of("! {{ imports['a b'].c if imports.d is defined else [imports.e] }}"),
            ["imports.a b.c", "imports.d", "imports.e"]
        );
        assert_eq!(of("! {{ \"imports.a\" }}{# {{ imports.b }} #}{% raw %}{{ imports.c }}{% endraw %}"), NOTHING);
    }

    #[test]
    fn loops_are_followed() {
        assert_eq!(of("{% for x in imports.l if x.ok %}\n! {{ x.a }} {{ loop.index }}{% endfor %}"), ["imports.l[].a"]);
        assert_eq!(of("{% for k, v in imports.m | items %}\n! {{ v.a }} {{ k.b }}{% endfor %}"), ["imports.m[*].a"]);
        assert_eq!(
            of("{% for x in imports.l %}{% for y in x.m %}\n! {{ y.a }}{% endfor %}{% endfor %}"),
            ["imports.l[].m[].a"]
        );
        assert_eq!(
            of("{% for x in imports.l %}{% else %}\n! {{ imports.a }} {{ x.a }}{% endfor %}"),
            ["imports.a", "x.a"]
        );
        assert_eq!(of("{% for imports in imports.l %}{% endfor %}\n! {{ imports.a }}"), ["imports.a"]);
    }

    #[test]
    fn what_is_computed_or_changes_is_not_followed() {
        assert_eq!(of("{% set x = imports.a | upper %}\n! {{ x.b }}"), NOTHING);
        assert_eq!(of("{% set x = imports.a %}\n! {{ x.b }}\n{% set x = imports.c %}"), NOTHING);
        assert_eq!(of("{% if a %}{% set x = imports.a %}{% endif %}\n! {{ x.b }}"), NOTHING);
        assert_eq!(of("{% set imports %}t{% endset %}\n! {{ imports.b }}"), NOTHING);
        assert_eq!(of("{% macro m(imports, b=1) %}\n! {{ imports.a }}{% endmacro %}"), NOTHING);
        assert_eq!(of("{% set a, imports = imports.b %}\n! {{ a.c }} {{ imports.d }}"), NOTHING);
        assert_eq!(
            of("{% import 'm' as imports %}{% from 'm' import a as values %}\n! {{ imports.d }} {{ values.d }}"),
            NOTHING
        );
        assert_eq!(of("! {{ imports.l[0].x }} {{ (imports.a ~ 'b').c }}"), ["imports.l", "imports.a"]);
    }

    #[test]
    fn a_template_with_a_syntax_error_reads_nothing() {
        assert_eq!(of("! {{ imports.a }}{% if %}"), NOTHING);
    }
}
