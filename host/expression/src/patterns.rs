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
use regex::Regex;

use crate::types::parts;

/// How many regular expressions of an expression are kept; others are compiled at each call.
pub(crate) const MOST_PATTERNS: usize = 16;

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

    /// Evaluates with them.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(self.clone());
        let made = work();
        CURRENT.set(before);
        made
    }

    fn is_match(&self, text: &str, pattern: &str) -> Option<bool> {
        match self.0.get(pattern) {
            Some(kept) => kept.get_or_init(|| Regex::new(pattern).ok()).as_ref().map(|regex| regex.is_match(text)),
            None => Regex::new(pattern).ok().map(|regex| regex.is_match(text)),
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
    let found = found.ok_or_else(|| ExecutionError::function_error("matches", "this is no regular expression"))?;
    Ok(CowVal::owned(CelBool::from(found)))
}
