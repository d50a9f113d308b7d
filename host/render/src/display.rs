//! What messages may show of a rendering: the template's own text, and of values their paths and types, never more.

use std::collections::BTreeSet;

use orangery_blueprint::rendering::InputStep;
use orangery_core::yaml::{self, SourcePosition};
use serde_json::{Map, Value};

/// How many lines around the failing one are shown.
const AROUND: usize = 2;
/// How many characters of a line are shown.
const WIDTH: usize = 160;
/// The inputs whose parts are shown; the others are the installation's own documents.
const ROOTS: [&str; 2] = ["imports", "values"];
/// How many values of a line are told.
const MOST_VALUES: usize = 4;
/// How many items of a list are looked at.
const MOST_ITEMS: usize = 1000;
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
        let SourcePosition { line, .. } = yaml::locate(rendered).ok()?.positions.find(field);
        Some(Self::of(line, rendered, template))
    }
}

fn snippet(rendered: &str, line: usize, template: &str) -> String {
    let first = line.saturating_sub(AROUND).max(1);
    let width = (line + AROUND).to_string().len();
    let display = rendered.lines().enumerate().skip(first - 1).take(line + AROUND + 1 - first).map(|(index, text)| {
        let mark = if index + 1 == line { '>' } else { ' ' };
        format!("{mark} {:>width$} | {}", index + 1, visible(text, template))
    });
    display.collect::<Vec<_>>().join("\n")
}

/// A rendered line as far as the template says it: all of it, or what stands before its value.
fn visible(line: &str, template: &str) -> String {
    let text = line.trim();
    let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
    let display = if text.is_empty() || template.contains(text) {
        text.to_owned()
    } else {
        let key = text.find(": ").map(|end| end + 1).or_else(|| text.ends_with(':').then_some(text.len()));
        match key.and_then(|end| text.get(..end)).filter(|key| template.contains(key)) {
            Some(key) => format!("{key} {HIDDEN}"),
            None => HIDDEN.to_owned(),
        }
    };
    format!("{indent}{display}").chars().take(WIDTH).collect()
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

/// The values at the ends of paths that an engine has named, each with its path and type: `imports.a: [...] (string)`.
/// What is read of the items of a list is shown of the first item of each type.
pub(crate) fn values(reads: &[Vec<InputStep>], inputs: &Value) -> Vec<String> {
    let mut text: Vec<String> = Vec::new();
    for path in reads.iter().filter(|path| is_shown(path)) {
        for value in told_values(path, inputs) {
            if !text.contains(&value) && text.len() < MOST_VALUES {
                text.push(value);
            }
        }
    }
    text
}

fn is_shown(path: &[InputStep]) -> bool {
    matches!(path, [InputStep::Field(root), _, ..] if ROOTS.contains(&root.as_str()))
}

/// What is known of the values at the end of a path, those that are missing first.
fn told_values(path: &[InputStep], inputs: &Value) -> Vec<String> {
    let mut ends: Vec<(String, End<'_>)> = Vec::new();
    walk(inputs, String::new(), path, &mut ends);
    let mut seen = BTreeSet::new();
    ends.retain(|(_, end)| seen.insert(end.sort()));
    ends.sort_by_key(|(_, end)| matches!(end, End::Value(_)));
    ends.into_iter().map(|(at, end)| end.message_of(&at)).collect()
}

/// Where a path ends.
enum End<'a> {
    /// At a value, which may be before its end.
    Value(&'a Value),
    /// At an object that lacks a field.
    Lacks(&'a str, &'a Map<String, Value>),
}

impl<'a> End<'a> {
    /// What tells ends apart.
    fn sort(&self) -> (&'a str, bool) {
        match self {
            End::Value(value) => (sort(value), true),
            End::Lacks(name, _) => (name, false),
        }
    }

    fn message_of(&self, at: &str) -> String {
        match self {
            End::Value(value) => format!("{at}: {HIDDEN} ({})", sort(value)),
            End::Lacks(name, map) => format!("{at} has no {name}; it has {}", names_of(map)),
        }
    }
}

fn walk<'a>(value: &'a Value, at: String, path: &'a [InputStep], ends: &mut Vec<(String, End<'a>)>) {
    let Some((step, rest)) = path.split_first() else { return ends.push((at, End::Value(value))) };
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match (step, value) {
        (InputStep::Field(name), Value::Object(map)) => match map.get(name) {
            Some(value) => walk(value, below(name), rest, ends),
            None => ends.push((at, End::Lacks(name, map))),
        },
        (InputStep::Items | InputStep::Entries, Value::Array(items)) => {
            for (index, item) in items.iter().enumerate().take(MOST_ITEMS) {
                walk(item, format!("{at}[{index}]"), rest, ends);
            }
        }
        (InputStep::Entries, Value::Object(map)) => {
            for (name, value) in map.iter().take(MOST_ITEMS) {
                walk(value, below(name), rest, ends);
            }
        }
        (InputStep::Field(_) | InputStep::Items | InputStep::Entries, other) => ends.push((at, End::Value(other))),
    }
}

fn names_of(map: &Map<String, Value>) -> String {
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

    /// A path such as `imports.list[].name`; `[]` stands for the items of a list, `[*]` for those of an object too.
    fn path(text: &str) -> Vec<InputStep> {
        let step = |part: &str| match part {
            "[]" => InputStep::Items,
            "[*]" => InputStep::Entries,
            name => InputStep::Field(name.to_owned()),
        };
        text.replace('[', ".[").split('.').map(step).collect()
    }

    #[test]
    fn values_are_shown_by_path_and_type() {
        let reads = [
            "imports.name",
            "imports.nmae",
            "imports.deep.list.x",
            "imports.name",
            "imports",
            "cd.meta",
            "other.a",
            "imports.name.below",
            "imports[*]",
        ];
        let inputs =
            json!({"imports": {"name": "canary", "deep": {"list": ["canary"]}}, "cd": {"meta": 1}, "other": {"a": 1}});
        assert_eq!(
            values(&reads.map(path), &inputs),
            [
                "imports.name: [...] (string)",
                "imports has no nmae; it has deep (object), name (string)",
                "imports.deep.list: [...] (list)",
                "imports.deep: [...] (object)",
            ]
        );
        assert_eq!(values(&[Vec::new(), vec![InputStep::Items, InputStep::Items]], &inputs), [""; 0]);
    }

    #[test]
    fn the_items_of_a_list_are_shown_by_the_first_of_each_type() {
        let inputs = json!({"imports": {
            "list": [{"a": "canary"}, {"a": "x"}, {"a": 1}, {"b": 1}, {"c": 1}, "text"],
            "map": {"one": {"a": 1}},
        }});
        let of = |texts: [&str; 2]| values(&texts.map(path), &inputs);
        assert_eq!(
            of(["imports.list", "imports.list[*].a"]),
            [
                "imports.list: [...] (list)",
                "imports.list[3] has no a; it has b (number)",
                "imports.list[0].a: [...] (string)",
                "imports.list[2].a: [...] (number)",
            ]
        );
        assert_eq!(
            of(["imports.map", "imports.map[*].a"]),
            ["imports.map: [...] (object)", "imports.map.one.a: [...] (number)"]
        );
        assert_eq!(of(["imports.map[].a", "imports.list[].b"])[0], "imports.map: [...] (object)");
    }
}
