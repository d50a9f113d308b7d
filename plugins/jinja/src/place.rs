//! Where a template failed: file, line, column, a snippet. The template's text is shown, that of the inputs is not.

use std::{error::Error as _, fmt::Write as _, ops::Range};

use minijinja::{Error, ErrorKind};
use orangery_sdk::{RenderFailure, RenderRequest};

use crate::reads::reads;

/// How many instructions a template may run: about a second in the sandbox, so that this sentence comes before the limit
/// of the sandbox does.
pub(crate) const FUEL: u64 = 5_000_000;

/// How many lines a snippet shows before and after the failing one.
const AROUND: usize = 2;

/// How many characters of a line a snippet shows.
const WIDTH: usize = 200;

/// What the host is told of an error. An error in an included file is told at its place in that file, with the places that
/// included it in the message.
pub(crate) fn failure(error: &Error, request: &RenderRequest) -> RenderFailure {
    let chain = chain(error);
    let innermost = chain.last().copied().unwrap_or(error);
    let (line, column) = position(innermost);
    let mut message = sentence(innermost);
    for outer in chain.iter().rev().skip(1) {
        if let (Some(name), Some(line)) = (outer.name(), outer.line()) {
            // Writing to a string cannot fail.
            let _ = write!(message, "; included by {name}:{line}");
        }
    }
    let failure = RenderFailure {
        message,
        file: file(innermost, request),
        line,
        column,
        snippet: snippet(innermost),
        reads: Vec::new(),
    };
    match (innermost.template_source(), line) {
        (Some(source), Some(line)) => failure.reading(reads(source, line)),
        (Some(_) | None, _) => failure,
    }
}

/// The error and the template errors that caused it, the outermost first.
fn chain(error: &Error) -> Vec<&Error> {
    let mut chain = vec![error];
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(template) = cause.downcast_ref::<Error>().filter(|template| template.line().is_some()) {
            chain.push(template);
        }
        source = cause.source();
    }
    chain
}

/// The blueprint file; `None` for a template that is written in the blueprint.
fn file(error: &Error, request: &RenderRequest) -> Option<String> {
    match error.name() {
        Some(name) if request.file.is_some() || name != request.name => Some(name.to_owned()),
        Some(_) | None => request.file.clone(),
    }
}

fn sentence(error: &Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return format!("the template ran more than {FUEL} instructions; look for a loop that does not end");
    }
    let expression = failing(error).map(str::trim).filter(|text| !text.is_empty() && !text.contains('\n'));
    match (error.kind(), expression, error.detail()) {
        (ErrorKind::UndefinedError, Some(expression), _) => {
            format!("undefined value in `{expression}`; correct the name, import it, or add `| default(…)`")
        }
        (kind @ ErrorKind::SyntaxError, _, Some(detail)) => format!("{kind}: {detail}"),
        (ErrorKind::UnknownFunction, _, Some(detail)) => format!("function {detail}"),
        (_, _, Some(detail)) => detail.to_owned(),
        (kind, _, None) => kind.to_string(),
    }
}

/// The text of the failing expression.
fn failing(error: &Error) -> Option<&str> {
    error.template_source()?.get(range(error)?)
}

/// Where the failing expression stands. That of a field's field starts at its dot: what the field is of belongs to it.
fn range(error: &Error) -> Option<Range<usize>> {
    let (range, source) = (error.range()?, error.template_source()?);
    let before =
        source.get(..range.start).filter(|_| source.get(range.clone()).is_some_and(|text| text.starts_with('.')));
    let path = |c: char| c.is_alphanumeric() || ['_', '.', '[', ']'].contains(&c);
    let start = before.map_or(range.start, |before| before.trim_end_matches(path).len());
    Some(start..range.end)
}

/// Line and column of an error, from 1; the column counts characters.
fn position(error: &Error) -> (Option<u32>, Option<u32>) {
    let line = error.line();
    let column = || {
        let start = range(error).filter(|range| !range.is_empty())?.start;
        let before = error.template_source()?.get(..start)?;
        // A range may start in the line that the error does not name: then only the line is sure.
        (Some(before.matches('\n').count() + 1) == line)
            .then(|| before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
    };
    (line.and_then(|line| line.try_into().ok()), column().and_then(|column| column.try_into().ok()))
}

/// Some lines around the failing one, which is marked; the failing expression is underlined.
fn snippet(error: &Error) -> Option<String> {
    let (source, failing_line) = (error.template_source()?, error.line()?);
    let first = failing_line.saturating_sub(AROUND).max(1);
    let mut snippet = String::new();
    for (number, line) in source.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if number < first || number > failing_line + AROUND {
            continue;
        }
        let mark = if number == failing_line { '>' } else { ' ' };
        let text: String = line.chars().take(WIDTH).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(snippet, "{mark} {number:>4} | {}", text.trim_end());
        if number == failing_line
            && let Some(columns) = underlined(error, line)
        {
            let _ = writeln!(snippet, "       | {}{}", " ".repeat(columns.start), "^".repeat(columns.len()));
        }
    }
    Some(snippet.trim_end_matches('\n').to_owned())
}

/// The columns of the failing expression in its first line, from 0.
fn underlined(error: &Error, line: &str) -> Option<Range<usize>> {
    let (_, column) = position(error);
    let start = usize::try_from(column?).ok()?.checked_sub(1)?;
    let length = failing(error)?.lines().next()?.chars().count();
    let end = (start + length).min(line.chars().count()).min(WIDTH);
    (start < end).then_some(start..end)
}
