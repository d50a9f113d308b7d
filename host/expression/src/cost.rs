//! What an evaluation may cost at most, told from the expression and the values it reads before it begins.
//!
//! CEL always ends, but comprehensions within comprehensions multiply, and `replace` makes long texts of short ones. The
//! cost is counted in values and bytes that are touched; a unit takes some ten nanoseconds.
//!
//! What lies in the document is known: a list of it is walked element by element, and what an element leaves out costs
//! nothing. Only where that itself takes too long, and of values that are computed, sizes alone count.

mod extent;

use std::collections::{BTreeSet, HashMap};

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use serde_json::{Map, Value};

use self::extent::{Extent, SizeBound, add, number};
use crate::patterns::Patterns;

/// What an evaluation over a document may cost at most.
pub const COST_LIMIT: u64 = 1_000_000;

/// What one in a scope may cost at most, as rules of admission have it: they look at whole objects, and compare each part of a
/// list with all others.
pub const SCOPE_COST_LIMIT: u64 = 50_000_000;

/// What compiling a pattern may cost, and what each of its places may beside.
const MATCHING: u64 = 50_000;
const COMPILED_PLACE: u64 = 100;

/// Steps in which a pattern is read that are taken in the time of a unit.
const READING_OF_A_UNIT: u64 = 2;

/// Steps of a pattern that are taken in the time of a unit: most of them are taken together.
const STEPS_OF_A_UNIT: u64 = 8;

/// What a pattern that is computed repeats at most beyond its length.
const COMPUTED_STEPS: u64 = 200;

/// How many parts of an expression are looked at with the very values of the document; beyond it by their sizes.
const MOST_EXACT: u32 = 1_000_000;

/// Variables of comprehensions, innermost last.
type Locals<'e, 'a> = Vec<(&'e str, Extent<'a>)>;

/// Refuses an evaluation that could cost more than the limit. What is looked at ends there, too.
pub(crate) fn within_limit(
    expression: &Expr,
    document: &Map<String, Value>,
    patterns: &Patterns,
    limit: u64,
) -> Result<(), String> {
    let (sizes, counted) = (HashMap::new(), BTreeSet::new());
    let mut estimate = Estimate { document, patterns, limit, cost: 0, seen: 0, sizes, counted, compiled: 0 };
    estimate.extent(expression, &mut Vec::new());
    match add(estimate.cost, estimate.compiled) {
        cost if cost <= limit => Ok(()),
        cost => Err(format!(
            "it could cost {}, {limit} are allowed; look at fewer values, or nest fewer of all, exists, map and filter",
            if cost == u64::MAX { "more than can be counted".to_owned() } else { format!("{cost} or more") }
        )),
    }
}

struct Estimate<'e, 'a> {
    document: &'a Map<String, Value>,
    patterns: &'e Patterns,
    limit: u64,
    cost: u64,
    /// Parts of the expression that were looked at.
    seen: u32,
    /// Of values of the document, by their places.
    sizes: HashMap<*const Value, SizeBound>,
    /// Patterns that are compiled once and were counted.
    counted: BTreeSet<&'e str>,
    /// What compiling these costs: not again where they stand in a comprehension.
    compiled: u64,
}

impl<'e, 'a> Estimate<'e, 'a> {
    fn pay(&mut self, cost: u64) {
        self.cost = add(self.cost, cost);
    }

    /// Whether it costs too much already, whatever else there is.
    fn is_over(&self) -> bool {
        add(self.cost, self.compiled) > self.limit
    }

    fn bound(&mut self, extent: Extent<'a>) -> SizeBound {
        match extent {
            Extent::Known(value) => {
                *self.sizes.entry(std::ptr::from_ref(value)).or_insert_with(|| SizeBound::of(value))
            }
            other => other.bound(),
        }
    }

    /// How large the value of an expression can be; what computing it costs is paid.
    fn extent(&mut self, expression: &'e Expr, locals: &mut Locals<'e, 'a>) -> Extent<'a> {
        self.pay(1);
        self.seen = self.seen.saturating_add(1);
        if self.is_over() {
            return Extent::Bound(SizeBound::default());
        }
        match expression {
            Expr::Unspecified => Extent::Bound(SizeBound::default()),
            Expr::Literal(literal) => extent::literal(literal),
            Expr::Ident(name) => locals
                .iter()
                .rev()
                .find_map(|(local, extent)| (local == name).then_some(*extent))
                .or_else(|| self.document.get(name).map(Extent::Known))
                .unwrap_or(Extent::Bound(SizeBound::default())),
            Expr::Select(select) => {
                let operand = self.extent(&select.operand.expr, locals);
                if select.test { operand.has(&select.field) } else { operand.member(&select.field) }
            }
            Expr::List(list) => {
                let elements = list.elements.iter().map(|element| &element.expr);
                self.collection(elements, list.elements.len(), locals)
            }
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr), locals),
            Expr::Struct(made) => self.entries(made.entries.iter().map(|entry| &entry.expr), locals),
            Expr::Call(call) => self.call(call, locals),
            Expr::Comprehension(comprehension) => Extent::Bound(self.comprehension(comprehension, locals)),
        }
    }

    fn collection(
        &mut self,
        elements: impl Iterator<Item = &'e Expr>,
        items: usize,
        locals: &mut Locals<'e, 'a>,
    ) -> Extent<'a> {
        let mut bound = SizeBound { items: number(items), each: 0, weight: 1 };
        for element in elements {
            let element = self.extent(element, locals);
            let weight = self.bound(element).weight;
            bound.each = bound.each.max(weight);
            bound.weight = add(bound.weight, weight);
        }
        self.pay(bound.weight);
        Extent::Bound(bound)
    }

    fn entries(&mut self, entries: impl Iterator<Item = &'e EntryExpr>, locals: &mut Locals<'e, 'a>) -> Extent<'a> {
        let parts: Vec<&Expr> = entries
            .flat_map(|entry| match entry {
                EntryExpr::StructField(field) => vec![&field.value.expr],
                EntryExpr::MapEntry(entry) => vec![&entry.key.expr, &entry.value.expr],
            })
            .collect();
        let count = parts.len();
        self.collection(parts.into_iter(), count, locals)
    }

    fn call(&mut self, call: &'e CallExpr, locals: &mut Locals<'e, 'a>) -> Extent<'a> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, yes, no]) => match self.extent(&condition.expr, locals) {
                Extent::Truth(true) => self.extent(&yes.expr, locals),
                Extent::Truth(false) => self.extent(&no.expr, locals),
                _ => {
                    let (yes, no) = (self.extent(&yes.expr, locals), self.extent(&no.expr, locals));
                    Extent::Bound(self.bound(yes).or(self.bound(no)))
                }
            },
            // One that decides ends them; the other is computed where the first has failed, too.
            (name @ (operators::LOGICAL_AND | operators::LOGICAL_OR), [left, right]) => {
                let decides = name == operators::LOGICAL_OR;
                match self.extent(&left.expr, locals) {
                    Extent::Truth(left) if left == decides => Extent::Truth(decides),
                    left => match (left, self.extent(&right.expr, locals)) {
                        (Extent::Truth(_), right @ Extent::Truth(_)) => right,
                        _ => Extent::Bound(SizeBound::scalar(1)),
                    },
                }
            }
            (name, args) => {
                let of = call.target.iter().map(|target| &target.expr).chain(args.iter().map(|arg| &arg.expr));
                let extents: Vec<Extent<'a>> = of.map(|arg| self.extent(arg, locals)).collect();
                if let Some(known) = extent::known(name, &extents) {
                    return known;
                }
                let pattern_arg = args.last().map(|pattern| &pattern.expr);
                let mut bounds: Vec<SizeBound> = extents.into_iter().map(|arg| self.bound(arg)).collect();
                if let ("matches", Some(pattern)) = (name, bounds.last_mut()) {
                    let steps = self.pattern(pattern_arg, pattern.weight);
                    pattern.weight = pattern.weight.max(steps);
                }
                Extent::Bound(self.called(name, &bounds))
            }
        }
    }

    /// How many steps a pattern of this length takes for each letter of a text. One that stands in the expression is compiled
    /// once, and others at each call.
    fn pattern(&mut self, pattern: Option<&'e Expr>, length: u64) -> u64 {
        let Some(Expr::Literal(LiteralValue::String(text))) = pattern else {
            self.pay(MATCHING);
            return add(length, COMPUTED_STEPS);
        };
        let size = self.patterns.size(text.inner());
        let compiling = add(MATCHING, self.patterns.reading(text.inner()) / READING_OF_A_UNIT);
        if !self.patterns.keeps(text.inner()) {
            self.pay(compiling);
        } else if self.counted.insert(text.inner()) {
            let places = size.map_or(0, |size| size.places.saturating_mul(COMPILED_PLACE));
            self.compiled = add(self.compiled, add(compiling, places));
        }
        size.map_or(0, |size| size.steps / STEPS_OF_A_UNIT)
    }

    /// What a function makes of its arguments, the target first.
    fn called(&mut self, name: &str, args: &[SizeBound]) -> SizeBound {
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
            "matches" => {
                self.pay(of(0).weight.saturating_mul(of(1).weight));
                SizeBound::scalar(1)
            }
            // Of a list; texts are compared by words of several bytes.
            operators::IN | "indexOf" | "lastIndexOf" if of(0).items > 0 || name == operators::IN => {
                self.pay(add(add(of(0).items, of(1).items), sum / 4));
                SizeBound::scalar(1)
            }
            "indexOf" | "lastIndexOf" | "contains" => {
                self.pay(add(sum, of(0).weight.saturating_mul(of(1).items.max(1))));
                SizeBound::scalar(1)
            }
            _ => {
                self.pay(sum);
                SizeBound::within(add(1, sum.saturating_mul(2)))
            }
        }
    }

    fn comprehension(&mut self, of: &'e ComprehensionExpr, locals: &mut Locals<'e, 'a>) -> SizeBound {
        let range = self.extent(&of.iter_range.expr, locals);
        let size = self.bound(range);
        // Its elements are copied.
        self.pay(size.weight);
        let begin = self.extent(&of.accu_init.expr, locals);
        let begin = self.bound(begin);
        let depth = locals.len();
        let elements = range.elements().filter(|_| of.iter_var2.is_none() && self.seen < MOST_EXACT);
        let end = match elements {
            Some(elements) => {
                let mut end = begin;
                for element in elements {
                    if self.is_over() {
                        break;
                    }
                    let step = self.round(of, element, begin, locals);
                    end = SizeBound {
                        items: add(end.items, step.items.saturating_sub(begin.items)),
                        each: end.each.max(step.each),
                        weight: add(end.weight, step.weight.saturating_sub(begin.weight)),
                    };
                }
                end
            }
            // What is counted here and costs nothing would be counted for each element of others.
            None if size.items == 0 => begin,
            None => {
                let before = std::mem::take(&mut self.cost);
                let step = self.round(of, Extent::Bound(SizeBound::within(size.each.max(1))), begin, locals);
                let once = std::mem::replace(&mut self.cost, before);
                self.pay(size.items.saturating_mul(once));
                let after = |begin: u64, step: u64| add(begin, size.items.saturating_mul(step.saturating_sub(begin)));
                SizeBound {
                    items: after(begin.items, step.items),
                    each: begin.each.max(step.each),
                    weight: after(begin.weight, step.weight),
                }
            }
        };
        locals.push((&of.accu_var, Extent::Bound(end)));
        let result = self.extent(&of.result.expr, locals);
        locals.truncate(depth);
        self.bound(result)
    }

    /// What one round makes of the value that it begins with. Each adds as much as it would as the first: macros append, and
    /// nobody writes the loop himself.
    fn round(
        &mut self,
        of: &'e ComprehensionExpr,
        element: Extent<'a>,
        begin: SizeBound,
        locals: &mut Locals<'e, 'a>,
    ) -> SizeBound {
        let depth = locals.len();
        locals.push((&of.iter_var, element));
        locals.extend(of.iter_var2.as_deref().map(|name| (name, element)));
        locals.push((&of.accu_var, Extent::Bound(begin)));
        self.extent(&of.loop_cond.expr, locals);
        let step = self.extent(&of.loop_step.expr, locals);
        locals.truncate(depth);
        self.bound(step)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Expression;

    fn holds(source: &str) -> Result<bool, String> {
        let list: Vec<u32> = (0..1000).collect();
        let document = json!({"imports": {"list": list, "text": "x".repeat(1000), "none": [],
            "few": (0..20).collect::<Vec<u32>>()}});
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
            "imports.list.all(a, 'x'.matches('((a{50}){20})?x'))",
            "imports.none == null || imports.list.filter(a, has(imports.text)).size() == 1000",
            "size(imports.list) > 999 ? true : imports.list.all(a, imports.list.all(b, imports.list.all(c, a == b + c)))",
        ] {
            assert_eq!(holds(source), Ok(true), "{source}");
        }
    }

    /// So many conditions over a list of 1,000, each with a pattern of its own.
    fn with_patterns(count: usize) -> Result<bool, String> {
        let each: Vec<String> = (0..count).map(|number| format!("!'x'.matches('{number}')")).collect();
        holds(&format!("imports.few.all(n, {})", each.join(" && ")))
    }

    #[test]
    fn limits_expression_a_pattern_that_stands_in_an_expression_is_compiled_once() {
        assert_eq!(with_patterns(16), Ok(true));
        assert!(with_patterns(17).unwrap_err().contains("1000000 are allowed"));
        assert!(holds("imports.few.all(n, 'x'.matches('x' + string(n)))").unwrap_err().contains("1000000 are allowed"));
        assert_eq!(holds("'x'.matches('(') || true"), Ok(true));
        assert_eq!(holds("'x'.matches('(')"), Err("matches cannot be computed of this value".to_owned()));
        assert_eq!(holds("matches('ab', '^a.$')"), Ok(true));
    }

    #[test]
    fn limits_expression_a_pattern_pays_for_what_it_repeats() {
        // A place is looked at for each letter of the text, in whatever few letters it is written.
        assert_eq!(holds("!imports.text.matches('^(y?){500}$')"), Ok(true));
        assert_eq!(
            holds("imports.list.all(a, !imports.text.matches('^(y?){500}$'))"),
            Err("it could cost 1137343 or more, 1000000 are allowed; look at fewer values, or nest fewer of all, exists, map and filter".to_owned())
        );
        // One that is computed is not known before: it may repeat no more than its length allows.
        assert_eq!(holds("'y'.matches('^(y?){' + '40' + '}$')"), Ok(true));
        assert_eq!(
            holds("'y'.matches('^(y?){' + '900' + '}$')"),
            Err("matches cannot be computed of this value".to_owned())
        );
    }

    #[test]
    fn a_pattern_is_read_once_and_not_for_each_element() {
        // Four thousand classes, each letter by letter: half a second, for each of a thousand elements.
        let source = format!("imports.list.all(x, !'a'.matches('(?i)[{}&&1]'))", r"\\pL".repeat(4000));
        let long = "a regular expression has 12009 bytes, 4096 are allowed; write a shorter one";
        assert_eq!(Expression::compile(&source).map(drop), Err(long.to_owned()));
        let source = format!("imports.list.all(x, !'a'.matches('(?i)[{}&&1]'))", r"\\pL".repeat(1000));
        assert!(
            Expression::compile(&source).unwrap_err().starts_with("reading its regular expressions takes more than ")
        );
        // Many that are each within it count together.
        let each: Vec<String> = (0..10).map(|at| format!("'a'.matches('(?i)[[^b]{at}]')")).collect();
        assert!(Expression::compile(&each.join(" || ")).unwrap_err().starts_with("reading its regular expressions "));
        // One that is computed is read at each call.
        assert_eq!(holds("'a'.matches('(?i)' + '[a-z]')"), Ok(true));
        let computed = "matches cannot be computed of this value";
        assert_eq!(holds("'a'.matches('(?i)' + '[[^b]]')"), Err(computed.to_owned()));
    }

    #[test]
    fn limits_expression_a_pattern_has_so_many_places() {
        let of = |pattern: &str| Expression::compile(&format!("'x'.matches('{pattern}')")).map(|made| made.bytes());
        assert_eq!(of("(a?){4094}").map_err(|_| ()), Err(()));
        let refused = "a regular expression has 4101 places with its repetitions written out, 4096 are allowed; repeat less, or name fewer \
                       letters than \\w and \\p do";
        assert_eq!(of("^a{2049}$"), Err(refused.to_owned()));
        assert!(of("^a{2040}$").is_ok());
        assert!(of(r"\\w{100}").unwrap_err().contains("repeat less"));
        assert!(of(r"^\\w+@\\w+[.]\\w+$").is_ok_and(|bytes| bytes < 1 << 20));
    }

    #[test]
    fn limits_expression_beyond_a_million_parts_sizes_count_and_no_values() {
        let rows: Vec<_> = (0..60_000).map(|_| json!({"name": "x"})).collect();
        let document = json!({"imports": {"rows": rows}});
        let holds = |source: &str| Expression::compile(source).unwrap().holds_of(document.as_object().unwrap());
        // Sixty thousand times has(…), which is known to be false, and behind it what would cost too much.
        let few = holds("imports.rows.all(r, !has(r.list) || imports.rows.all(s, s == r))");
        assert_eq!(few, Ok(true));
        let many = "imports.rows.all(r, !has(r.a) && !has(r.b) && !has(r.c) && !has(r.d) && !has(r.e))";
        let many = format!("{many} && imports.rows.all(r, !has(r.list) || imports.rows.all(s, s == r))");
        assert!(holds(&many).unwrap_err().starts_with("it could cost "));
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
            "imports.list.all(a, 'x'.matches('((a{50}){20})?x' + imports.text))",
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
