//! Kubernetes-style JSONPath (`docs/wire.md` §8.1, §9): without braces, the leading dot optional, keys with dashes, and
//! with dots behind a backslash. Translated to RFC 9535, which judges the rest.

mod budget;
mod cost;

use serde_json::Value;
use serde_json_path::JsonPath;

use self::cost::{QueryOrigin, QueryShape, SegmentShape};
pub use self::{
    budget::{MOST_STEPS_TOGETHER, StepBudget, StepsExceeded},
    cost::MOST_STEPS,
};

/// The longest path, in bytes.
pub const LONGEST_PATH: usize = 1 << 10;

/// How deep brackets may stand in each other. What reads a filter tries several forms for each bracket, so the time grows
/// with a power of this.
pub const MOST_NESTED_BRACKETS: usize = 6;

/// Why a path gives no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is no path.
    #[error("{path:?} is no JSONPath: {reason}; write it as in `kubectl -o jsonpath`, without braces")]
    Syntax {
        /// The text.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A path that must give exactly one value gives none or several.
    #[error("the JSONPath {path:?} has {count} results, but exactly one is needed")]
    Count {
        /// The text.
        path: String,
        /// How many.
        count: usize,
    },
    /// Evaluating it over this document may take more than [`MOST_STEPS`].
    #[error(
        "the JSONPath {path:?} could take {steps} steps over this object, {MOST_STEPS} are allowed; name the fields on the way \
         instead of `..`, and ask for fewer in filters"
    )]
    Steps {
        /// The text.
        path: String,
        /// How many at most.
        steps: u64,
    },
    /// It is one of many, which together would take too many steps.
    #[error("the JSONPath {path:?}: {StepsExceeded}")]
    Together {
        /// The text.
        path: String,
    },
}

/// A path that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPath {
    text: String,
    path: JsonPath,
    shape: QueryShape,
}

impl ParsedPath {
    /// Reads a path.
    ///
    /// # Errors
    /// [`PathError::Syntax`]
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > LONGEST_PATH {
            let path = text.chars().take(80).chain("…".chars()).collect();
            let reason = format!("it has {} bytes, {LONGEST_PATH} are allowed", text.len());
            return Err(PathError::Syntax { path, reason });
        }
        let syntax = |reason: String| PathError::Syntax { path: text.to_owned(), reason };
        nested(text).map_err(syntax)?;
        let (translated, shape) = translate(trimmed(text)).map_err(syntax)?;
        let path = JsonPath::parse(&translated).map_err(|error| syntax(error.message().to_owned()))?;
        Ok(Self { text: text.to_owned(), path, shape })
    }

    /// All results, in document order; a missing key gives none. What they cost at most is taken of what evaluations may together
    /// (C-297).
    ///
    /// # Errors
    /// [`PathError::Steps`], [`PathError::Together`]
    pub fn all<'a>(&self, document: &'a Value, budget: &StepBudget) -> Result<Vec<&'a Value>, PathError> {
        let together = |_: StepsExceeded| PathError::Together { path: self.text.clone() };
        let size = budget.measured(|| cost::DocumentSize::of(document, 0), |size| size.values).map_err(together)?;
        let steps = self.shape.most_steps(size);
        if steps > MOST_STEPS {
            return Err(PathError::Steps { path: self.text.clone(), steps });
        }
        budget.take(steps).map_err(together)?;
        Ok(self.path.query(document).all())
    }

    /// The one result.
    ///
    /// # Errors
    /// [`PathError::Count`] where there is none or more than one, [`PathError::Steps`], [`PathError::Together`]
    pub fn one<'a>(&self, document: &'a Value, budget: &StepBudget) -> Result<&'a Value, PathError> {
        match self.all(document, budget)?.as_slice() {
            [one] => Ok(one),
            other => Err(PathError::Count { path: self.text.clone(), count: other.len() }),
        }
    }
}

/// Where in a path the translation stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonPathPosition {
    /// On the outside: everything up to `.` or `[` belongs to a name.
    Outside,
    /// In a filter: blanks and operators end the path.
    Filter,
}

impl JsonPathPosition {
    fn ends(self, c: char) -> bool {
        self == JsonPathPosition::Filter && (c.is_whitespace() || "()=!<>&|,]~".contains(c))
    }
}

/// Without blanks around it, but for one that an escape makes part of the last name.
fn trimmed(text: &str) -> &str {
    let text = text.trim_start();
    let shorter = text.trim_end();
    if shorter.ends_with('\\') { text } else { shorter }
}

/// Refuses brackets that stand too deep in each other, and the functions that compile a regular expression for each value.
/// What stands in quotes counts as well: better too much than too little.
fn nested(text: &str) -> Result<(), String> {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MOST_NESTED_BRACKETS {
        return Err(format!("its brackets stand {deepest} deep, {MOST_NESTED_BRACKETS} are allowed"));
    }
    Ok(())
}

/// What a path is written as, and the form of the query that is being written.
#[derive(Default)]
struct Translation {
    text: String,
    shape: QueryShape,
}

impl Translation {
    /// Begins a segment that takes one value of each.
    fn segment(&mut self, descends: bool) {
        self.shape.segments.push(SegmentShape { descends, selectors: 1, ..SegmentShape::default() });
    }

    /// Changes the segment that was begun last.
    fn last(&mut self, change: impl FnOnce(&mut SegmentShape)) {
        if let Some(segment) = self.shape.segments.last_mut() {
            change(segment);
        }
    }
}

fn translate(text: &str) -> Result<(String, QueryShape), String> {
    let mut out = Translation { text: "$".to_owned(), shape: QueryShape::default() };
    let mut rest = text.strip_prefix('$').unwrap_or(text);
    if !rest.is_empty() && !rest.starts_with(['.', '[']) {
        out.segment(false);
        rest = name(rest, JsonPathPosition::Outside, &mut out.text)?;
    }
    let left = steps(rest, JsonPathPosition::Outside, &mut out)?;
    if left.is_empty() { Ok((out.text, out.shape)) } else { Err(format!("{left:?} is not expected here")) }
}

fn steps<'a>(mut rest: &'a str, place: JsonPathPosition, out: &mut Translation) -> Result<&'a str, String> {
    loop {
        rest = if let Some(after) = rest.strip_prefix("..") {
            out.segment(true);
            out.text.push_str("..");
            selected(after, place, out)?
        } else if let Some(after) = rest.strip_prefix('.') {
            // A dot alone is the document itself.
            if after.is_empty() {
                return Ok(after);
            }
            out.segment(false);
            selected(after, place, out)?
        } else if let Some(after) = rest.strip_prefix('[') {
            out.segment(false);
            brackets(after, out)?
        } else {
            return Ok(rest);
        };
    }
}

/// What follows a dot: a name, a star, or brackets.
fn selected<'a>(rest: &'a str, place: JsonPathPosition, out: &mut Translation) -> Result<&'a str, String> {
    if let Some(after) = rest.strip_prefix('*') {
        out.last(|segment| segment.spreads = true);
        out.text.push_str("[*]");
        return Ok(after);
    }
    if let Some(after) = rest.strip_prefix('[') {
        return brackets(after, out);
    }
    name(rest, place, &mut out.text)
}

fn name<'a>(rest: &'a str, place: JsonPathPosition, out: &mut String) -> Result<&'a str, String> {
    let mut key = String::new();
    let mut chars = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => key.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                end = at;
                break;
            }
            c if place.ends(c) => {
                end = at;
                break;
            }
            c => key.push(c),
        }
    }
    if key.is_empty() {
        return Err("a name is missing after a dot".to_owned());
    }
    out.push('[');
    quote(&key, out);
    out.push(']');
    Ok(rest.get(end..).unwrap_or_default())
}

fn brackets<'a>(rest: &'a str, out: &mut Translation) -> Result<&'a str, String> {
    let (inside, after) = enclosed(rest)?;
    let inside = inside.trim();
    out.text.push('[');
    if let Some(condition) = inside.strip_prefix('?') {
        out.text.push('?');
        filter(condition, out)?;
    } else {
        let parts = split(inside);
        out.last(|segment| {
            segment.selectors = parts.len() as u64;
            segment.spreads = parts.iter().any(|part| part.contains(['*', ':']));
        });
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                out.text.push(',');
            }
            element(part.trim(), &mut out.text)?;
        }
    }
    out.text.push(']');
    Ok(after)
}

fn element(part: &str, out: &mut String) -> Result<(), String> {
    if let Some((text, "")) = quoted(part) {
        quote(&text, out);
        return Ok(());
    }
    let numeric = !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || "-: ".contains(c));
    if part == "*" || numeric {
        out.push_str(part);
        return Ok(());
    }
    Err(format!("{part:?} in brackets is neither a number, a range, a star nor a name in quotes"))
}

/// A filter, and the selectors that may follow it.
fn filter(mut rest: &str, out: &mut Translation) -> Result<(), String> {
    let selectors = 1 + rest.chars().filter(|c| *c == ',').count() as u64;
    out.last(|segment| (segment.selectors, segment.spreads) = (selectors, true));
    while let Some(c) = rest.chars().next() {
        if let Some((text, after)) = quoted(rest) {
            quote(&text, &mut out.text);
            rest = after;
            continue;
        }
        if rest.starts_with("match") || rest.starts_with("search") {
            return Err("regular expressions are not supported; compare with `==`".to_owned());
        }
        out.text.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let origin = match c {
            '@' => QueryOrigin::Current,
            '$' => QueryOrigin::Root,
            _ => continue,
        };
        let outer = std::mem::take(&mut out.shape);
        rest = steps(rest, JsonPathPosition::Filter, out)?;
        let asked = std::mem::replace(&mut out.shape, outer);
        out.last(|segment| segment.asked.push((origin, asked)));
    }
    Ok(())
}

/// A text in quotes at the start, without them, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mark = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => content.extend(chars.next().map(|(_, escaped)| escaped)),
            c if c == mark => return Some((content, text.get(at + 1..).unwrap_or_default())),
            c => content.push(c),
        }
    }
    None
}

/// Splits at the bracket that closes the one before `text`.
fn enclosed(text: &str) -> Result<(&str, &str), String> {
    let mut depth = 1_u32;
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(c) = rest.chars().next()
    {
        if let Some((_, after)) = quoted(rest) {
            at = text.len() - after.len();
            continue;
        }
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok((text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()));
        }
        at += c.len_utf8();
    }
    Err("a bracket is not closed".to_owned())
}

/// Splits at commas that stand in no quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = text.get(at..)
        && let Some(c) = rest.chars().next()
    {
        if let Some((_, after)) = quoted(rest) {
            at = text.len() - after.len();
            continue;
        }
        if c == ',' {
            parts.push(text.get(from..at).unwrap_or_default());
            from = at + 1;
        }
        at += c.len_utf8();
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}

fn quote(text: &str, out: &mut String) {
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    mod kubernetes;

    fn document() -> Value {
        json!({
            "data": {"key": "value", "my-key": 1, "a.b/c": 2, "it's": 3},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "last-seen": 5},
                {"type": "A]B", "status": "False", "last-seen": 9},
            ]},
            "list": [0, 1, 2, 3],
        })
    }

    #[track_caller]
    fn check(path: &str, expected: Value) {
        let document = document();
        let found: Vec<Value> = ParsedPath::parse(path)
            .unwrap()
            .all(&document, &StepBudget::default())
            .unwrap()
            .into_iter()
            .cloned()
            .collect();
        assert_eq!(Value::Array(found), expected, "{path}");
    }

    #[test]
    fn the_leading_dot_is_optional() {
        check(".data.key", json!(["value"]));
        check("data.key", json!(["value"]));
        check("$.data.key", json!(["value"]));
        check(".", json!([document()]));
        check("", json!([document()]));
    }

    #[test]
    fn names_may_have_dashes_and_escaped_dots() {
        check(".data.my-key", json!([1]));
        check(r".data.a\.b/c", json!([2]));
        check(".data['a.b/c']", json!([2]));
        check(r#".data["a.b/c"]"#, json!([2]));
        check(r".data['it\'s']", json!([3]));
    }

    #[test]
    fn lists_are_indexed_sliced_and_spread() {
        check(".list[0]", json!([0]));
        check(".list[-1]", json!([3]));
        check(".list[1:3]", json!([1, 2]));
        check(".list[0,3]", json!([0, 3]));
        check(".list[*]", json!([0, 1, 2, 3]));
        check(".status.conditions[*].status", json!(["True", "False"]));
        check(".data['key','my-key']", json!(["value", 1]));
        check("..status", json!([document()["status"], "True", "False"]));
        check(".status.*[0].type", json!(["Ready"]));
    }

    #[test]
    fn filters_select_list_elements() {
        check(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]));
        check(".status.conditions[?(@.type == 'A]B')].status", json!(["False"]));
        check(".status.conditions[?(@.last-seen>6)].status", json!(["False"]));
        check(".status.conditions[?(@.absent)].status", json!([]));
    }

    #[test]
    fn exactly_one_result_is_needed() {
        let document = document();
        let one = |path: &str| ParsedPath::parse(path).unwrap().one(&document, &StepBudget::default()).cloned();
        assert_eq!(one(".data.key"), Ok(json!("value")));
        assert_eq!(one(".data.absent"), Err(PathError::Count { path: ".data.absent".into(), count: 0 }));
        assert_eq!(one(".list[*]"), Err(PathError::Count { path: ".list[*]".into(), count: 4 }));
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_reason() {
        let refused = |path: &str| match ParsedPath::parse(path) {
            Err(PathError::Syntax { reason, .. }) => reason,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(refused(".data..."), "a name is missing after a dot");
        assert_eq!(refused(".data[0"), "a bracket is not closed");
        assert_eq!(refused(".data[x]"), "\"x\" in brackets is neither a number, a range, a star nor a name in quotes");
        assert_eq!(refused(".a[0]b"), "\"b\" is not expected here");
        assert!(ParsedPath::parse(".a[?(@.b==)]").is_err());
    }
}
