//! What an evaluation may cost at most, told from the expression and the values it reads before it begins.
//!
//! CEL always ends, but comprehensions within comprehensions multiply, and `replace` makes long texts of short ones. The
//! cost is counted in values and bytes that are touched; a unit takes some ten nanoseconds.

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use serde_json::{Map, Value};

/// What an evaluation over a document may cost at most.
pub const COST_LIMIT: u64 = 1_000_000;

/// What one in a scope may cost at most, as rules of admission have it: they look at whole objects, and compare each part of a
/// list with all others.
pub const SCOPE_COST_LIMIT: u64 = 50_000_000;

/// What compiling a pattern may cost.
const MATCHING: u64 = 50_000;

/// What is known of a value before it is computed.
#[derive(Clone, Copy)]
enum Extent<'a> {
    /// It is this one.
    Known(&'a Value),
    /// It is at most as large.
    Bound(SizeBound),
}

/// How large a value can be.
#[derive(Clone, Copy, Default)]
struct SizeBound {
    /// How many elements or entries it has.
    items: u64,
    /// What its largest element weighs.
    each: u64,
    /// What it weighs: values and bytes in it.
    weight: u64,
}

/// Variables of comprehensions, innermost last.
type Locals<'e, 'a> = Vec<(&'e str, Extent<'a>)>;

impl SizeBound {
    fn scalar(weight: u64) -> Self {
        Self { items: 0, each: 0, weight }
    }

    /// Of anything that is no heavier.
    fn within(weight: u64) -> Self {
        Self { items: weight, each: weight, weight }
    }

    fn of(value: &Value) -> Self {
        let elements = |weights: &mut dyn Iterator<Item = u64>, items: usize| {
            let (each, sum) = weights.fold((0, 1), |(each, sum): (u64, u64), one| (each.max(one), add(sum, one)));
            Self { items: number(items), each, weight: sum }
        };
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::scalar(1),
            Value::String(text) => Self::scalar(add(1, number(text.len()))),
            Value::Array(list) => elements(&mut list.iter().map(|one| Self::of(one).weight), list.len()),
            Value::Object(map) => {
                let entry = |(key, one): (&String, &Value)| add(number(key.len()), Self::of(one).weight);
                elements(&mut map.iter().map(entry), map.len())
            }
        }
    }

    /// The larger of two in every respect.
    fn or(self, other: Self) -> Self {
        Self {
            items: self.items.max(other.items),
            each: self.each.max(other.each),
            weight: self.weight.max(other.weight),
        }
    }
}

impl<'a> Extent<'a> {
    fn bound(self) -> SizeBound {
        match self {
            Extent::Known(value) => SizeBound::of(value),
            Extent::Bound(bound) => bound,
        }
    }

    fn member(self, name: &str) -> Self {
        match self {
            Extent::Known(value) => value.get(name).map_or(Extent::Bound(SizeBound::default()), Extent::Known),
            Extent::Bound(bound) => Extent::Bound(SizeBound::within(bound.each)),
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn add(left: u64, right: u64) -> u64 {
    left.saturating_add(right)
}

/// Refuses an evaluation that could cost more than the limit.
pub(crate) fn within_limit(expression: &Expr, document: &Map<String, Value>, limit: u64) -> Result<(), String> {
    let mut estimate = Estimate { document, cost: 0 };
    estimate.extent(expression, &mut Vec::new());
    match estimate.cost {
        cost if cost <= limit => Ok(()),
        cost => Err(format!(
            "it could cost {}, {limit} are allowed; look at fewer values, or nest fewer of all, exists, map and filter",
            if cost == u64::MAX { "more than can be counted".to_owned() } else { cost.to_string() }
        )),
    }
}

struct Estimate<'a> {
    document: &'a Map<String, Value>,
    cost: u64,
}

impl<'a> Estimate<'a> {
    fn pay(&mut self, cost: u64) {
        self.cost = add(self.cost, cost);
    }

    /// How large the value of an expression can be; what computing it costs is paid.
    fn extent<'e>(&mut self, expression: &'e Expr, locals: &mut Locals<'e, 'a>) -> Extent<'a> {
        self.pay(1);
        match expression {
            Expr::Unspecified => Extent::Bound(SizeBound::default()),
            Expr::Literal(literal) => Extent::Bound(SizeBound::scalar(match literal {
                LiteralValue::String(text) => add(1, number(text.inner().len())),
                LiteralValue::Bytes(bytes) => add(1, number(bytes.inner().len())),
                _ => 1,
            })),
            Expr::Ident(name) => locals
                .iter()
                .rev()
                .find_map(|(local, extent)| (local == name).then_some(*extent))
                .or_else(|| self.document.get(name).map(Extent::Known))
                .unwrap_or(Extent::Bound(SizeBound::default())),
            Expr::Select(select) => {
                let operand = self.extent(&select.operand.expr, locals);
                if select.test { Extent::Bound(SizeBound::scalar(1)) } else { operand.member(&select.field) }
            }
            Expr::List(list) => {
                let elements = list.elements.iter().map(|element| &element.expr);
                self.collection(elements, list.elements.len(), locals)
            }
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr), locals),
            Expr::Struct(made) => self.entries(made.entries.iter().map(|entry| &entry.expr), locals),
            Expr::Call(call) => {
                let target = call.target.iter().map(|target| &target.expr);
                let args: Vec<SizeBound> = target
                    .chain(call.args.iter().map(|arg| &arg.expr))
                    .map(|arg| self.extent(arg, locals).bound())
                    .collect();
                Extent::Bound(self.call(&call.func_name, &args))
            }
            Expr::Comprehension(comprehension) => Extent::Bound(self.comprehension(comprehension, locals)),
        }
    }

    fn collection<'e>(
        &mut self,
        elements: impl Iterator<Item = &'e Expr>,
        items: usize,
        locals: &mut Locals<'e, 'a>,
    ) -> Extent<'a> {
        let mut bound = SizeBound { items: number(items), each: 0, weight: 1 };
        for element in elements {
            let weight = self.extent(element, locals).bound().weight;
            bound.each = bound.each.max(weight);
            bound.weight = add(bound.weight, weight);
        }
        self.pay(bound.weight);
        Extent::Bound(bound)
    }

    fn entries<'e>(&mut self, entries: impl Iterator<Item = &'e EntryExpr>, locals: &mut Locals<'e, 'a>) -> Extent<'a> {
        let parts: Vec<&Expr> = entries
            .flat_map(|entry| match entry {
                EntryExpr::StructField(field) => vec![&field.value.expr],
                EntryExpr::MapEntry(entry) => vec![&entry.key.expr, &entry.value.expr],
            })
            .collect();
        let count = parts.len();
        self.collection(parts.into_iter(), count, locals)
    }

    /// What a function makes of its arguments, the target first.
    fn call(&mut self, name: &str, args: &[SizeBound]) -> SizeBound {
        let sum = args.iter().fold(0, |sum, arg| add(sum, arg.weight));
        let of = |index: usize| args.get(index).copied().unwrap_or_default();
        match name {
            operators::ADD => {
                self.pay(sum);
                let (left, right) = (of(0), of(1));
                SizeBound { items: add(left.items, right.items), each: left.each.max(right.each), weight: sum }
            }
            operators::CONDITIONAL => of(1).or(of(2)),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => SizeBound::within(of(0).each.max(1)),
            // Between any two letters the third one may come to stand.
            "replace" => {
                let weight = of(0).weight.saturating_mul(add(of(2).weight, 1));
                self.pay(weight);
                SizeBound::scalar(weight)
            }
            "join" => {
                let weight = add(of(0).weight, of(0).items.saturating_mul(of(1).weight));
                self.pay(weight);
                SizeBound::scalar(weight)
            }
            // A number is written with at most a thousand digits.
            "format" => {
                let weight = add(sum, of(0).weight.saturating_mul(1000)).saturating_mul(2);
                self.pay(weight);
                SizeBound::scalar(weight)
            }
            // A number has up to 326 letters.
            "string" => {
                let weight = add(sum, 330);
                self.pay(weight);
                SizeBound::scalar(weight)
            }
            // The pattern is compiled at each call.
            "matches" => {
                self.pay(MATCHING);
                self.pay(of(0).weight.saturating_mul(of(1).weight));
                SizeBound::scalar(1)
            }
            operators::IN | "indexOf" | "lastIndexOf" | "contains" => {
                self.pay(add(sum, of(0).weight.saturating_mul(of(1).items.max(1))));
                SizeBound::scalar(1)
            }
            _ => {
                self.pay(sum);
                SizeBound::within(add(1, sum.saturating_mul(2)))
            }
        }
    }

    fn comprehension<'e>(&mut self, of: &'e ComprehensionExpr, locals: &mut Locals<'e, 'a>) -> SizeBound {
        let range = self.extent(&of.iter_range.expr, locals).bound();
        // Its elements are copied.
        self.pay(range.weight);
        let begin = self.extent(&of.accu_init.expr, locals).bound();
        let element = Extent::Bound(SizeBound::within(range.each.max(1)));
        let depth = locals.len();
        locals.push((&of.iter_var, element));
        locals.extend(of.iter_var2.as_deref().map(|name| (name, element)));
        locals.push((&of.accu_var, Extent::Bound(begin)));
        let before = std::mem::take(&mut self.cost);
        self.extent(&of.loop_cond.expr, locals);
        let step = self.extent(&of.loop_step.expr, locals).bound();
        let once = std::mem::replace(&mut self.cost, before);
        // Each round adds as much as the first: macros append, and nobody writes the loop himself.
        let after = |begin: u64, step: u64| add(begin, range.items.saturating_mul(step.saturating_sub(begin)));
        let end = SizeBound {
            items: after(begin.items, step.items),
            each: begin.each.max(step.each),
            weight: after(begin.weight, step.weight),
        };
        self.pay(range.items.saturating_mul(once));
        locals.truncate(depth);
        locals.push((&of.accu_var, Extent::Bound(end)));
        let result = self.extent(&of.result.expr, locals).bound();
        locals.truncate(depth);
        result
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Expression;

    fn holds(source: &str) -> Result<bool, String> {
        let list: Vec<u32> = (0..1000).collect();
        let document = json!({"imports": {"list": list, "text": "x".repeat(1000), "none": []}});
        Expression::compile(source).unwrap().holds_of(document.as_object().unwrap())
    }

    #[test]
    fn what_stays_within_the_limit_is_evaluated() {
        for source in [
            "imports.list.all(n, n >= 0)",
            "imports.list.map(n, n * 2).filter(n, n > 10).size() == 994",
            "imports.text.replace('x', 'yy').size() == 2000",
            "imports.none.all(a, imports.none.all(b, imports.none.all(c, imports.none.all(d, a == b && c == d))))",
            "[1, 2, 3].exists(a, [4, 5, 6].exists(b, [7, 8, 9].exists(c, a + b + c == 18)))",
            "imports.text.matches('^x+$')",
            "'%s-%d'.format([imports.text, 3]).size() == 1002",
            "imports.text.split('').join('--').size() == 2998",
        ] {
            assert_eq!(holds(source), Ok(true), "{source}");
        }
    }

    #[test]
    fn what_could_cost_more_is_not_begun() {
        for source in [
            "imports.list.all(a, imports.list.all(b, imports.list.all(c, imports.list.all(d, true))))",
            "imports.list.map(a, imports.list).map(b, b.map(c, imports.list)).size() > 0",
            "imports.text.replace('x', imports.text).replace('x', imports.text).size() > 0",
            "imports.text.replace('', imports.text).replace('', imports.text).size() > 0",
            "imports.list.all(a, imports.text.matches('(x*)*y'))",
            "imports.text.split('').map(a, imports.text).join('').size() > 0",
            "imports.list.all(a, 'x'.matches('((a{50}){20})?x'))",
            "imports.list.all(a, imports.list.all(b, [imports.text].all(x, true)))",
            "imports.list.map(x, string(1e308)).join('').replace('0', imports.list.map(x, string(1e308)).join('')) != ''",
        ] {
            let message = holds(source).unwrap_err();
            assert!(
                message.starts_with("it could cost ") && message.contains("1000000 are allowed"),
                "{source}: {message}"
            );
        }
    }
}
