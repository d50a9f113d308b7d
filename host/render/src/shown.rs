//! What messages may show of a rendering: the template's own text, and of values their paths and types, never more.

use orangery_core::{
    template::RenderFailure,
    yaml::{self, Place},
};
use serde_json::{Map, Value};

/// How many lines around the failing one are shown.
const AROUND: usize = 2;
/// How many characters of a line are shown.
const WIDTH: usize = 160;
/// How many values of a line are told.
const MOST_VALUES: usize = 4;
/// How many names are told of an object that lacks one.
const MOST_NAMES: usize = 20;

const HIDDEN: &str = "[...]";

/// Where something is in a rendered text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedPlace {
    /// From 1.
    pub line: usize,
    /// The item or sub-installation that the line belongs to, where one is known.
    pub entry: Option<String>,
    /// Some lines around it. What is not text of the template is hidden.
    pub snippet: String,
}

impl RenderedPlace {
    /// The place of a line.
    pub(crate) fn of(line: usize, rendered: &str, template: &str) -> Self {
        Self { line, entry: entry(rendered, line), snippet: snippet(rendered, line, template) }
    }

    /// The place of a field such as `deployItems[0].name`.
    pub(crate) fn of_field(field: &str, rendered: &str, template: &str) -> Option<Self> {
        let Place { line, .. } = yaml::locate(rendered).ok()?.places.find(field);
        Some(Self::of(line, rendered, template))
    }
}

fn snippet(rendered: &str, line: usize, template: &str) -> String {
    let first = line.saturating_sub(AROUND).max(1);
    let width = (line + AROUND).to_string().len();
    let shown = rendered.lines().enumerate().skip(first - 1).take(line + AROUND + 1 - first).map(|(index, text)| {
        let mark = if index + 1 == line { '>' } else { ' ' };
        format!("{mark} {:>width$} | {}", index + 1, visible(text, template))
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// A rendered line as far as the template says it: all of it, or what stands before its value.
fn visible(line: &str, template: &str) -> String {
    let text = line.trim();
    let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
    let shown = if text.is_empty() || template.contains(text) {
        text.to_owned()
    } else {
        let key = text.find(": ").map(|end| end + 1).or_else(|| text.ends_with(':').then_some(text.len()));
        match key.and_then(|end| text.get(..end)).filter(|key| template.contains(key)) {
            Some(key) => format!("{key} {HIDDEN}"),
            None => HIDDEN.to_owned(),
        }
    };
    format!("{indent}{shown}").chars().take(WIDTH).collect()
}

/// The name of the entry of the outermost list that a line belongs to.
fn entry(rendered: &str, line: usize) -> Option<String> {
    let above: Vec<&str> = rendered.lines().take(line).collect();
    let indent = |text: &str| text.len() - text.trim_start().len();
    let dash = above.iter().find(|text| text.trim_start().starts_with("- ")).map(|text| indent(text))?;
    let start = above.iter().rposition(|text| indent(text) == dash && text.trim_start().starts_with("- "))?;
    let lines = rendered.lines().skip(start).enumerate();
    let mut own = lines.take_while(|(index, text)| *index == 0 || text.trim().is_empty() || indent(text) > dash);
    own.find_map(|(index, text)| {
        let text = if index == 0 { text.trim_start().strip_prefix("- ")? } else { text };
        let is_own = index == 0 || indent(text) == dash + 2;
        let name = text.trim_start().strip_prefix("name:").filter(|_| is_own)?;
        Some(name.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
    })
}

/// The values that the failing line of a template reads, each with its path and type: `imports.a: [...] (string)`.
pub(crate) fn values(failure: &RenderFailure, template: &str, inputs: &Value) -> Vec<String> {
    let line = failure.line.and_then(|line| usize::try_from(line).ok()).and_then(|line| line.checked_sub(1));
    let Some(text) = line.and_then(|line| template.lines().nth(line)) else { return Vec::new() };
    let mut told: Vec<String> = Vec::new();
    for path in paths(text) {
        let value = told_value(&path, inputs);
        if !told.contains(&value) && told.len() < MOST_VALUES {
            told.push(value);
        }
    }
    told
}

/// The paths below `imports` and `values` that a line reads.
fn paths(line: &str) -> Vec<Vec<&str>> {
    let is_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut all = Vec::new();
    for root in ["imports", "values"] {
        for (start, _) in line.match_indices(root) {
            let before = line.get(..start).and_then(|text| text.chars().next_back());
            let whole = line.get(start..).unwrap_or_default();
            let end = whole.find(|c: char| !is_of_a_name(c) && c != '.').unwrap_or(whole.len());
            let path: Vec<&str> = whole.get(..end).unwrap_or_default().trim_end_matches('.').split('.').collect();
            if path.first() == Some(&root) && path.len() > 1 && !before.is_some_and(is_of_a_name) {
                all.push(path);
            }
        }
    }
    all
}

fn told_value(path: &[&str], inputs: &Value) -> String {
    let mut value = inputs;
    for (index, name) in path.iter().enumerate() {
        let at = path.get(..index).unwrap_or_default().join(".");
        value = match value {
            Value::Object(map) => match map.get(*name) {
                Some(value) => value,
                None => return format!("{at} has no {name}; it has {}", names(map)),
            },
            other => return format!("{at}: {HIDDEN} ({})", sort(other)),
        };
    }
    format!("{}: {HIDDEN} ({})", path.join("."), sort(value))
}

fn names(map: &Map<String, Value>) -> String {
    let all: Vec<String> =
        map.iter().take(MOST_NAMES).map(|(name, value)| format!("{name} ({})", sort(value))).collect();
    let more = if map.len() > MOST_NAMES { ", …" } else { "" };
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") + more }
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str =
        "deployItems:\n- name: one\n  config:\n    password: {{ imports.password }}\n    open: yes\n";
    const RENDERED: &str = "deployItems:\n- name: one\n  config:\n    password: canary: 4711\n    open: yes\n    canary\n- type: x\n  name: \"two\"\n  config:\n    name: other\n";

    #[test]
    fn what_is_not_text_of_the_template_is_hidden() {
        let place = RenderedPlace::of(4, RENDERED, TEMPLATE);
        assert_eq!(
            place.snippet,
            "  2 | - name: one\n  3 |   config:\n> 4 |     password: [...]\n  5 |     open: yes\n  6 |     [...]"
        );
        assert_eq!((place.line, place.entry.as_deref()), (4, Some("one")));
    }

    #[test]
    fn an_entry_is_that_of_the_outermost_list() {
        assert_eq!(entry(RENDERED, 10).as_deref(), Some("two"));
        assert_eq!(entry(RENDERED, 1), None);
        assert_eq!(entry("a: b\n", 1), None);
    }

    #[test]
    fn a_field_has_its_line() {
        let rendered = "deployItems:\n- name: one\n- name: two\n  config: 5\n";
        let place = RenderedPlace::of_field("deployItems[1].type", rendered, "").unwrap();
        assert_eq!((place.line, place.entry.as_deref()), (3, Some("two")));
        assert_eq!(RenderedPlace::of_field("x", "a: [", ""), None);
    }

    #[test]
    fn values_of_the_failing_line_are_told_by_path_and_type() {
        let failure = |line| RenderFailure {
            message: String::new(),
            file: None,
            line: Some(line),
            column: None,
            snippet: None,
            transient: false,
        };
        let template =
            "a\n{{ imports.name | x(imports.nmae) }} {{ .imports.deep.list.x }} {{ myimports.a }} imports.name\n";
        let inputs = json!({"imports": {"name": "canary", "deep": {"list": ["canary"]}}});
        assert_eq!(
            values(&failure(2), template, &inputs),
            [
                "imports.name: [...] (string)",
                "imports has no nmae; it has deep (object), name (string)",
                "imports.deep.list: [...] (list)",
            ]
        );
        assert_eq!(values(&failure(1), template, &inputs), [""; 0]);
        assert_eq!(values(&failure(9), template, &inputs), [""; 0]);
    }
}
