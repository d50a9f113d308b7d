//! Label and field selectors.

use serde_json::Value;

use crate::{
    builtin, object,
    refusal::Refusal,
    resource::Served,
    store::{ObjectName, ObjectVersion},
};

/// What a list, a watch or a deletion of many selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListSelector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelRequirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl ListSelector {
    /// Reads both selectors as they stand in a query.
    pub(crate) fn parse(labels: Option<&str>, fields: Option<&str>) -> Result<Self, Refusal> {
        Ok(Self {
            labels: label_requirements(labels.unwrap_or(""))?,
            fields: field_requirements(fields.unwrap_or(""))?,
        })
    }

    /// Refuses fields that a custom kind does not offer for selection.
    pub(crate) fn check(&self, served: &Served) -> Result<(), Refusal> {
        let offered = |path: &str| {
            matches!(path, "metadata.name" | "metadata.namespace")
                || served.version().selectable.iter().any(|field| field == path)
        };
        let paths = self.fields.iter().map(|field| field.path.join(".")).filter(|_| served.is_custom());
        match paths.into_iter().find(|path| !offered(path)) {
            Some(path) => Err(Refusal::bad_request(format!("field label not supported: {path}"))),
            None => Ok(()),
        }
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The selector narrowed to one name.
    pub(crate) fn and_name(mut self, name: &str) -> Self {
        let path = vec!["metadata".to_owned(), "name".to_owned()];
        self.fields.push(FieldRequirement { path, value: name.to_owned(), equal: true });
        self
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, name: &ObjectName, entry: &ObjectVersion) -> bool {
        let label = |key: &str| entry.head.labels.iter().find(|(name, _)| &**name == key).map(|(_, value)| &**value);
        self.labels.iter().all(|requirement| requirement.holds(label))
            && (self.fields.is_empty() || self.fields_match(name, entry))
    }

    fn fields_match(&self, name: &ObjectName, entry: &ObjectVersion) -> bool {
        // The object is read only where its key does not answer.
        let mut whole: Option<Value> = None;
        self.fields.iter().all(|field| {
            let path: Vec<&str> = field.path.iter().map(String::as_str).collect();
            let found = match path.as_slice() {
                ["metadata", "name"] => name.name.to_string(),
                ["metadata", "namespace"] => name.namespace.to_string(),
                path => field_of(whole.get_or_insert_with(|| entry.value()), path),
            };
            (found == field.value) == field.equal
        })
    }
}

/// A field as selectors compare it.
fn field_of(object: &Value, path: &[&str]) -> String {
    let type_of = |field: &str| object::text(object, &[field]).unwrap_or_default();
    match object::at(object, path) {
        None | Some(Value::Null) => builtin::unset(type_of("apiVersion"), type_of("kind"), path).to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A selector of labels as objects bear it: `matchLabels` and `matchExpressions`. An empty one selects everything.
#[derive(Debug)]
pub(crate) struct LabelSelector(Vec<LabelRequirement>);

impl LabelSelector {
    /// The selector of a field. An expression with a word that does not exist selects nothing.
    pub(crate) fn read(selector: &Value) -> Self {
        let labels = object::at(selector, &["matchLabels"]).and_then(Value::as_object).into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = labels.map(|(key, value)| LabelRequirement::In(key.clone(), vec![text(value)]));
        let expressions = object::items(selector, &["matchExpressions"]).iter().map(|expression| {
            let key = object::text(expression, &["key"]).unwrap_or_default().to_owned();
            let values = object::items(expression, &["values"]).iter().map(text).collect();
            match object::text(expression, &["operator"]) {
                Some("In") => LabelRequirement::In(key, values),
                Some("NotIn") => LabelRequirement::NotIn(key, values),
                Some("Exists") => LabelRequirement::Exists(key),
                Some("DoesNotExist") => LabelRequirement::Missing(key),
                _ => LabelRequirement::In(key, Vec::new()),
            }
        });
        Self(labels.chain(expressions).collect())
    }

    /// Whether an object is selected.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        let label = |key: &str| object::text(object, &["metadata", "labels", key]);
        self.0.iter().all(|requirement| requirement.holds(label))
    }
}

impl LabelRequirement {
    fn holds<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::Exists(key) => label(key).is_some(),
            Self::Missing(key) => label(key).is_none(),
            Self::In(key, values) => label(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Self::NotIn(key, values) => label(key).is_none_or(|value| values.iter().all(|v| v != value)),
        }
    }
}

fn label_requirements(text: &str) -> Result<Vec<LabelRequirement>, Refusal> {
    let refused = |part: &str| Refusal::bad_request(format!("unable to parse requirement: \"{part}\" in \"{text}\""));
    let mut requirements = Vec::new();
    for part in split_outside_parentheses(text) {
        let part = part.trim();
        if part.is_empty() {
            return Err(refused(part));
        }
        requirements.push(label_requirement(part).ok_or_else(|| refused(part))?);
    }
    Ok(requirements)
}

fn label_requirement(part: &str) -> Option<LabelRequirement> {
    if let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let (key, word) = head.trim().rsplit_once(char::is_whitespace)?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        return match word {
            "in" => Some(LabelRequirement::In(name(key)?, values)),
            "notin" => Some(LabelRequirement::NotIn(name(key)?, values)),
            _ => None,
        };
    }
    let value = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, wanted)) = part.split_once("!=") {
        return Some(LabelRequirement::NotIn(name(key)?, value(wanted)));
    }
    if let Some((key, wanted)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(LabelRequirement::In(name(key)?, value(wanted)));
    }
    match part.strip_prefix('!') {
        Some(key) => Some(LabelRequirement::Missing(name(key)?)),
        None => Some(LabelRequirement::Exists(name(part)?)),
    }
}

/// A label's name: letters, digits, `-_./`.
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let valid = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    valid.then(|| text.to_owned())
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut depth = 0_i32;
    let split = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(split).collect()
}

fn field_requirements(text: &str) -> Result<Vec<FieldRequirement>, Refusal> {
    let parse = |part: &str| {
        let (path, equal, value) = match part.split_once("!=") {
            Some((path, value)) => (path, false, value),
            None => {
                let (path, value) = part.split_once("==").or_else(|| part.split_once('='))?;
                (path, true, value)
            }
        };
        let path = path.trim().split('.').map(str::to_owned).collect();
        Some(FieldRequirement { path, value: value.trim().to_owned(), equal })
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let refused =
        |part: &str| Refusal::bad_request(format!("invalid selector: \"{text}\"; can't understand \"{part}\""));
    parts.map(|part| parse(part).ok_or_else(|| refused(part))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(labels: &str, fields: &str, expected: bool) {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}, "status": {"phase": "Running"}});
        let entry = ObjectVersion::encode(object, 1);
        let selector = ListSelector::parse(Some(labels), Some(fields)).unwrap();
        assert_eq!(selector.matches(&ObjectName::new("ns", "n"), &entry), expected, "{labels} {fields}");
    }

    #[test]
    fn labels_and_fields_select_as_in_kubernetes() {
        check("", "", true);
        check("app=web,tier in (front, back)", "", true);
        check("app==web", "metadata.name=n,metadata.namespace=ns", true);
        check("app!=web", "", false);
        check("other!=x,!missing,tier", "", true);
        check("tier notin (front)", "", false);
        check("other notin (front)", "", true);
        check("", "status.phase=Running", true);
        check("", "status.phase!=Running", false);
        check("", "spec.none=", true);
    }

    #[test]
    fn a_field_that_is_not_set_is_the_empty_value_of_its_type() {
        let node = ObjectVersion::encode(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}), 1);
        let finds = |fields: &str| {
            let selector = ListSelector::parse(None, Some(fields)).unwrap();
            selector.matches(&ObjectName::new("", "n"), &node)
        };
        assert!(finds("spec.unschedulable=false") && finds("spec.unschedulable!=true") && finds("spec.podCIDR="));
    }

    #[test]
    fn a_selector_in_an_object_selects_by_labels_and_expressions() {
        let object = json!({"metadata": {"labels": {"app": "web"}}});
        let selects = |selector: Value| LabelSelector::read(&selector).selects(&object);
        assert!(selects(Value::Null) && selects(json!({})));
        assert!(selects(json!({"matchLabels": {"app": "web"}})));
        let expression =
            |operator: &str| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": ["web"]}]});
        let found = ["In", "NotIn", "Exists", "DoesNotExist", "Unheard"].map(|operator| selects(expression(operator)));
        assert_eq!(found, [true, false, true, false, false]);
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_refused() {
        assert!(ListSelector::parse(Some("a b"), None).is_err());
        assert!(ListSelector::parse(Some("a=b,"), None).is_err());
        assert!(ListSelector::parse(None, Some("metadata.name")).is_err());
    }
}
