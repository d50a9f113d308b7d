//! Regular expressions of an evaluation: one that stands in the expression is compiled once.

mod of_schema;
mod reading;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use cel::{
    ExecutionError,
    common::{
        ast::{Expr, LiteralValue},
        types::{CelBool, CelString},
        value::CowVal,
    },
};
use regex::{Regex, RegexBuilder};
use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind},
};

use self::reading::DEEPEST_PATTERN;
pub use self::reading::ReadingBudget;
use self::reading::{STEPS_OF_A_BYTE, check_length};
use crate::types::parts;

/// How many regular expressions of an expression are kept; others are compiled at each call.
pub(crate) const MOST_PATTERNS: usize = 16;

/// The most bytes of a compiled regular expression.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// The most places of a regular expression with its repetitions written out: each may be looked at for each letter of a text.
pub const MOST_PLACES: u64 = 4096;

/// The most steps in which one is read that is computed: that happens at each call.
const MOST_COMPUTED_STEPS: u64 = 200_000;

/// What a letter's class takes for so many of its ranges is what a place takes.
const RANGES_OF_A_PLACE: u64 = 4;

/// What a place of a compiled regular expression takes at most, in bytes: it is compiled forwards and backwards.
const BYTES_OF_A_PLACE: u64 = 256;

/// Those that stand in an expression. What cannot be compiled is told at each call.
#[derive(Clone, Default)]
pub(crate) struct Patterns(Arc<BTreeMap<String, LiteralPattern>>);

/// One that stands in an expression.
struct LiteralPattern {
    /// `None` where it is no regular expression.
    size: Option<PatternSize>,
    /// Steps in which it is read.
    reading: u64,
    /// Compiled when it is first asked for; `None` where it is not kept.
    kept: Option<OnceLock<Option<Regex>>>,
}

thread_local! {
    /// Of the expression that is being evaluated: a function of the library is given its arguments and nothing else.
    static CURRENT: RefCell<Patterns> = RefCell::default();
}

impl Patterns {
    /// Those of an expression, each read once; the first of them are kept when they are compiled. Why one of them is not used
    /// whatever is matched with it, else: what is no pattern is told when it is asked for, since it may never be.
    pub(crate) fn of(expression: &Expr) -> Result<Self, String> {
        let mut literals = Vec::new();
        collect(expression, &mut literals);
        let (mut found, mut budget) = (BTreeMap::new(), ReadingBudget::default());
        for literal in literals {
            if found.contains_key(literal) {
                continue;
            }
            let reading = budget.read(literal)?;
            let size = PatternSize::of(literal);
            if let Some(places) = size.map(|size| size.places).filter(|places| *places > MOST_PLACES) {
                return Err(format!(
                    "a regular expression has {places} places with its repetitions written out, {MOST_PLACES} are allowed; repeat \
                     less, or name fewer letters than \\w and \\p do"
                ));
            }
            let kept = (found.len() < MOST_PATTERNS).then(OnceLock::new);
            found.insert(literal.to_owned(), LiteralPattern { size, reading, kept });
        }
        Ok(Self(Arc::new(found)))
    }

    /// How large one is that stands in the expression; `None` where it is no regular expression.
    pub(crate) fn size(&self, pattern: &str) -> Option<PatternSize> {
        self.0.get(pattern)?.size
    }

    /// Steps in which one is read that stands in the expression.
    pub(crate) fn reading(&self, pattern: &str) -> u64 {
        self.0.get(pattern).map_or(0, |pattern| pattern.reading)
    }

    /// Whether one is compiled once, and not at each call.
    pub(crate) fn keeps(&self, pattern: &str) -> bool {
        self.0.get(pattern).is_some_and(|pattern| pattern.kept.is_some())
    }

    /// What they take at most when all that are kept are compiled, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let kept = self.0.values().filter(|pattern| pattern.kept.is_some());
        let places = kept.filter_map(|pattern| pattern.size).map(|size| size.places);
        places.sum::<u64>().saturating_mul(BYTES_OF_A_PLACE)
    }

    /// Evaluates with them.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(self.clone());
        let made = work();
        CURRENT.set(before);
        made
    }

    fn is_match(&self, text: &str, pattern: &str) -> Option<bool> {
        let compiled = match self.0.get(pattern) {
            Some(LiteralPattern { size: None, .. }) => None,
            Some(LiteralPattern { kept: Some(kept), .. }) => {
                return kept.get_or_init(|| compile(pattern)).as_ref().map(|regex| regex.is_match(text));
            }
            Some(LiteralPattern { kept: None, .. }) => compile(pattern),
            // What it costs is told by its length, before it is known what it repeats.
            None => is_computable(pattern).then(|| compile(pattern)).flatten(),
        };
        compiled.map(|regex| regex.is_match(text))
    }
}

/// Whether a pattern that does not stand in the expression is as small as its length says.
fn is_computable(pattern: &str) -> bool {
    let length = u64::try_from(pattern.len()).unwrap_or(u64::MAX);
    let most_places = length.saturating_add(200).min(MOST_PLACES);
    ReadingBudget::default().read_up_to(pattern, MOST_COMPUTED_STEPS).is_ok()
        && PatternSize::of(pattern).is_some_and(|size| size.places <= most_places)
}

fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(MOST_PATTERN_BYTES).dfa_size_limit(MOST_PATTERN_BYTES).build().ok()
}

/// How large a regular expression is with its repetitions written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PatternSize {
    /// What it takes to be kept: a class of many ranges counts more than once.
    pub(crate) places: u64,
    /// What is looked at for each letter of a text.
    pub(crate) steps: u64,
}

impl PatternSize {
    /// That of a pattern; `None` where it is none.
    pub(crate) fn of(pattern: &str) -> Option<Self> {
        let parsed = ParserBuilder::new().nest_limit(DEEPEST_PATTERN).build().parse(pattern).ok()?;
        Some(Self::of_part(&parsed))
    }

    /// What the parser makes is no deeper than it allows.
    fn of_part(part: &Hir) -> Self {
        let sum = |parts: &[Hir]| {
            parts.iter().map(Self::of_part).fold(Self { places: 1, steps: 1 }, |sum, part| Self {
                places: sum.places.saturating_add(part.places),
                steps: sum.steps.saturating_add(part.steps),
            })
        };
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Self { places: 1, steps: 1 },
            HirKind::Literal(letters) => {
                let length = u64::try_from(letters.0.len()).unwrap_or(u64::MAX);
                Self { places: length, steps: length }
            }
            HirKind::Class(class) => {
                let ranges = match class {
                    Class::Unicode(class) => class.ranges().len(),
                    Class::Bytes(class) => class.ranges().len(),
                };
                let ranges = u64::try_from(ranges).unwrap_or(u64::MAX);
                Self { places: 1 + ranges / RANGES_OF_A_PLACE, steps: 1 }
            }
            HirKind::Repetition(repetition) => {
                let times = u64::from(repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1));
                let part = Self::of_part(&repetition.sub);
                let written_out = |of: u64| of.saturating_add(1).saturating_mul(times);
                Self { places: written_out(part.places), steps: written_out(part.steps) }
            }
            HirKind::Capture(capture) => Self::of_part(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
        }
    }
}

fn collect<'e>(expression: &'e Expr, found: &mut Vec<&'e str>) {
    if let Expr::Call(call) = expression
        && call.func_name == "matches"
        && let Some(Expr::Literal(LiteralValue::String(pattern))) = call.args.last().map(|pattern| &pattern.expr)
    {
        found.push(pattern.inner());
    }
    for part in parts(expression) {
        collect(part, found);
    }
}

/// `text.matches(pattern)`, and `matches(text, pattern)`.
pub(crate) fn matches<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [text, pattern] = args.as_slice() else { return Err(ExecutionError::invalid_argument_count(2, args.len())) };
    let (Some(text), Some(pattern)) = (text.downcast_ref::<CelString<'_>>(), pattern.downcast_ref::<CelString<'_>>())
    else {
        return Err(ExecutionError::function_error("matches", "it is asked of texts"));
    };
    let found = CURRENT.with_borrow(|patterns| patterns.is_match(text.inner(), pattern.inner()));
    let why = "this is no regular expression, or one that repeats too much";
    Ok(CowVal::owned(CelBool::from(found.ok_or_else(|| ExecutionError::function_error("matches", why))?)))
}
