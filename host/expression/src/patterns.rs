//! Regular expressions of an evaluation: one that stands in the expression is compiled once.

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

use crate::types::parts;

/// How many regular expressions of an expression are kept; others are compiled at each call.
pub(crate) const MOST_PATTERNS: usize = 16;

/// The most bytes of a compiled regular expression.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// The most places of a regular expression with its repetitions written out: each may be looked at for each letter of a text.
pub(crate) const MOST_PLACES: u64 = 4096;

/// What a letter's class takes for so many of its ranges is what a place takes.
const RANGES_OF_A_PLACE: u64 = 4;

/// What a place of a compiled regular expression takes at most, in bytes: it is compiled forwards and backwards.
const BYTES_OF_A_PLACE: u64 = 256;

/// Those that stand in an expression, compiled when they are first asked for. What cannot be compiled is told at each call.
#[derive(Clone, Default)]
pub(crate) struct Patterns(Arc<BTreeMap<String, OnceLock<Option<Regex>>>>);

thread_local! {
    /// Of the expression that is being evaluated: a function of the library is given its arguments and nothing else.
    static CURRENT: RefCell<Patterns> = RefCell::default();
}

impl Patterns {
    /// Those of an expression, in the order in which they stand there.
    pub(crate) fn of(expression: &Expr) -> Self {
        let mut found = BTreeMap::new();
        collect(expression, &mut found);
        Self(Arc::new(found))
    }

    /// Why one of them is not used whatever is matched with it; `None` where all may be. What is no pattern is told when it is
    /// asked for: it may never be.
    pub(crate) fn refusal(&self) -> Option<String> {
        let sizes = self.0.keys().filter_map(|pattern| PatternSize::of(pattern));
        let largest = sizes.map(|size| size.places).max().filter(|places| *places > MOST_PLACES)?;
        Some(format!(
            "a regular expression has {largest} places with its repetitions written out, {MOST_PLACES} are allowed; repeat less, \
             or name fewer letters than \\w and \\p do"
        ))
    }

    /// What they take at most when all of them are compiled, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let places = self.0.keys().filter_map(|pattern| PatternSize::of(pattern)).map(|size| size.places);
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
        match self.0.get(pattern) {
            Some(kept) => kept.get_or_init(|| compile(pattern, MOST_PLACES)).as_ref().map(|regex| regex.is_match(text)),
            // What it costs is told by its length, before it is known what it repeats.
            None => compile(pattern, computed_places(pattern.len())).map(|regex| regex.is_match(text)),
        }
    }
}

/// The most places of a pattern of this length that does not stand in the expression.
fn computed_places(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX).saturating_add(200).min(MOST_PLACES)
}

fn compile(pattern: &str, most_places: u64) -> Option<Regex> {
    PatternSize::of(pattern).filter(|size| size.places <= most_places)?;
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
        let parsed = ParserBuilder::new().nest_limit(64).build().parse(pattern).ok()?;
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

fn collect(expression: &Expr, found: &mut BTreeMap<String, OnceLock<Option<Regex>>>) {
    if let Expr::Call(call) = expression
        && call.func_name == "matches"
        && let Some(Expr::Literal(LiteralValue::String(pattern))) = call.args.last().map(|pattern| &pattern.expr)
        && found.len() < MOST_PATTERNS
    {
        found.entry(pattern.inner().to_owned()).or_default();
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
