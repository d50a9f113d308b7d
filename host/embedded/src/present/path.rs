//! The simple JSONPaths of printer columns and scale subresources: fields, indexes, `[*]` and one-comparison filters.

use serde_json::Value;

/// A parsed path. `.status.conditions[?(@.type=="Ready")].status` is the hardest that CRDs use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath {
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Field(String),
    Index(usize),
    Each,
    /// Entries whose field (a path) equals a text.
    Where(JsonPath, String),
}

impl JsonPath {
    /// Reads a path; none if it is not of the simple form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, tail) = if let Some(inside) = rest.strip_prefix('[') { bracket(inside)? } else { field(rest)? };
            steps.extend(step);
            rest = tail;
        }
        Some(Self { steps })
    }

    /// A path of plain fields.
    pub(crate) fn of_fields(fields: &[String]) -> Self {
        Self { steps: fields.iter().cloned().map(PathStep::Field).collect() }
    }

    /// All values the path leads to.
    pub(crate) fn select<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.steps.iter().fold(vec![value], |found, step| found.into_iter().flat_map(|v| step.follow(v)).collect())
    }

    /// The path as field names, if it is made of such alone.
    pub(crate) fn fields(&self) -> Option<Vec<&str>> {
        let name = |step: &'_ PathStep| matches!(step, PathStep::Field(_));
        if !self.steps.iter().all(name) {
            return None;
        }
        Some(self.steps.iter().filter_map(PathStep::name).collect())
    }
}

impl PathStep {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            Self::Index(_) | Self::Each | Self::Where(..) => None,
        }
    }

    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => value.get(index).into_iter().collect(),
            Self::Each => match value {
                Value::Array(entries) => entries.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            },
            Self::Where(path, wanted) => {
                let fits =
                    |found: &&Value| found.as_str().map_or_else(|| found.to_string() == *wanted, |t| t == wanted);
                let entries = value.as_array().map(Vec::as_slice).unwrap_or_default();
                entries.iter().filter(|entry| path.select(entry).iter().any(fits)).collect()
            }
        }
    }
}

/// `.name`, with `\.` for a dot inside of it; a lone dot is the value itself.
fn field(text: &str) -> Option<(Option<PathStep>, &str)> {
    let text = text.strip_prefix('.').unwrap_or(text);
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return Some(((!name.is_empty()).then_some(PathStep::Field(name)), text.get(at..)?)),
            _ => name.push(letter),
        }
    }
    Some(((!name.is_empty()).then_some(PathStep::Field(name)), ""))
}

/// What stands between brackets.
fn bracket(text: &str) -> Option<(Option<PathStep>, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        let (condition, tail) = filter.split_once(")]")?;
        let (path, wanted) = condition.split_once("==")?;
        let path = JsonPath::parse(path.trim().strip_prefix('@')?)?;
        let wanted = wanted.trim().trim_matches(['"', '\'']).to_owned();
        return Some((Some(PathStep::Where(path, wanted)), tail));
    }
    if let Some(quote @ ('\'' | '"')) = text.chars().next() {
        let (name, tail) = text.get(1..)?.split_once(quote)?;
        return Some((Some(PathStep::Field(name.replace('\\', ""))), tail.strip_prefix(']')?));
    }
    let (inside, tail) = text.split_once(']')?;
    let step = if inside == "*" { PathStep::Each } else { PathStep::Index(inside.parse().ok()?) };
    Some((Some(step), tail))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &[Value]) {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        });
        let found: Vec<Value> = JsonPath::parse(path).unwrap().select(&object).into_iter().cloned().collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn a_path_leads_through_fields_lists_and_filters() {
        check(".status.conditions[?(@.type==\"Ready\")].status", &[json!("True")]);
        check(".status.conditions[?(@.type=='Other')].status", &[json!("False")]);
        check(".status.conditions[*].type", &[json!("Ready"), json!("Other")]);
        check(".status.conditions[1].type", &[json!("Other")]);
        check(".metadata.annotations.a\\.b/c", &[json!("x")]);
        check(".metadata.annotations['a\\.b/c']", &[json!("x")]);
        check("{.status.missing}", &[]);
    }

    #[test]
    fn a_path_that_is_not_simple_is_refused() {
        assert_eq!(JsonPath::parse(".a[?(@.b>1)]"), None);
        assert_eq!(JsonPath::parse(".a[x"), None);
    }
}
