//! The fields of an object, each by its path, and the field managers of each.

use std::collections::BTreeMap;

use orangery_core::levels::DEEPEST_OBJECT;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::overlay::{member, named};

/// The most bytes of the paths of all fields of an object: a long name with many fields below it is written once for each of them (C-244).
pub const MOST_FIELD_BYTES: usize = 32 << 20;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldStep {
    /// A member of an object.
    Member(String),
    /// An element of a list.
    Element(usize),
}

/// A field without fields below it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectField {
    /// Where, as people write it: `spec.template.spec.containers[web].image`. Elements of lists whose elements have names are told
    /// by them.
    pub path: String,
    /// Where, step by step.
    pub steps: Vec<FieldStep>,
    /// What stands there: a scalar, or something empty.
    pub value: Value,
}

impl ObjectField {
    /// Where, with the numbers of elements: `spec.template.spec.containers[0].image`, as places in YAML are found.
    pub fn numbered_path(&self) -> String {
        numbered(&self.steps)
    }

    /// Whether it is, or stands below, what somebody names: by its path, by numbers of elements, or by a JSON pointer.
    pub fn is_within(&self, name: &str) -> bool {
        if name.starts_with('/') {
            let pointer = self.pointer();
            return pointer == name || pointer.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        let begins =
            |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        name.is_empty() || begins(&self.path) || begins(&self.numbered_path())
    }

    /// Where, as a JSON pointer.
    pub fn pointer(&self) -> String {
        let step = |step: &FieldStep| match step {
            FieldStep::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            FieldStep::Element(number) => format!("/{number}"),
        };
        self.steps.iter().map(step).collect()
    }
}

/// Steps as places in YAML are found: `a.b[0]`.
pub fn numbered(steps: &[FieldStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            FieldStep::Member(name) if path.is_empty() => path.push_str(name),
            FieldStep::Member(name) => path.push_str(&format!(".{name}")),
            FieldStep::Element(number) => path.push_str(&format!("[{number}]")),
        }
    }
    path
}

/// The fields of a value in the order of their paths in it; and whether these are all of them (C-244).
pub fn fields(of: &Value) -> (Vec<ObjectField>, bool) {
    let mut reader = FieldReader { fields: Vec::new(), bytes: 0, is_complete: true };
    reader.read(of, String::new(), &mut Vec::new());
    (reader.fields, reader.is_complete)
}

struct FieldReader {
    fields: Vec<ObjectField>,
    bytes: usize,
    is_complete: bool,
}

impl FieldReader {
    fn read(&mut self, value: &Value, path: String, steps: &mut Vec<FieldStep>) {
        self.bytes = self.bytes.saturating_add(path.len());
        if self.bytes > MOST_FIELD_BYTES || steps.len() > DEEPEST_OBJECT {
            self.is_complete = false;
            return;
        }
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    steps.push(FieldStep::Member(name.clone()));
                    self.read(value, member(&path, name), steps);
                    steps.pop();
                }
            }
            Value::Array(elements) if !elements.is_empty() => {
                let has_names = named(elements).is_some();
                for (number, value) in elements.iter().enumerate() {
                    let name = value.get("name").and_then(Value::as_str).filter(|_| has_names);
                    let path = name.map_or_else(|| format!("{path}[{number}]"), |name| format!("{path}[{name}]"));
                    steps.push(FieldStep::Element(number));
                    self.read(value, path, steps);
                    steps.pop();
                }
            }
            value => self.fields.push(ObjectField { path, steps: steps.clone(), value: value.clone() }),
        }
    }
}

/// The part of a value that steps lead to.
pub fn at<'v>(value: &'v Value, steps: &[FieldStep]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        FieldStep::Member(name) => value.get(name),
        FieldStep::Element(number) => value.get(number),
    })
}

/// Puts another value in the place that steps lead to. Nothing where they lead nowhere.
pub fn put(value: &mut Value, steps: &[FieldStep], other: Value) {
    let place = steps.iter().try_fold(value, |value, step| match step {
        FieldStep::Member(name) => value.get_mut(name),
        FieldStep::Element(number) => value.get_mut(number),
    });
    if let Some(place) = place {
        *place = other;
    }
}

/// What manages a field, as `metadata.managedFields` of the live object says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldManager {
    /// Its name, as it has given it itself.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The subresource that it wrote.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// When it last wrote any of its fields.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub time: String,
}

/// Which managers a field of a live object has.
pub fn managers(live: &Value, steps: &[FieldStep]) -> Vec<FieldManager> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut managers: Vec<FieldManager> = entries
        .filter(|entry| entry.get("fieldsV1").is_some_and(|set| manages(set, live, steps)))
        .map(|entry| FieldManager {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            subresource: text(entry, "subresource"),
            time: text(entry, "time"),
        })
        .collect();
    managers.sort();
    managers
}

/// Whether a set of fields (`fieldsV1`) has a field, or something whole that it stands in.
fn manages(set: &Value, value: &Value, steps: &[FieldStep]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return true };
    let Some(members) = set.as_object() else { return false };
    // A set that ends here has all that is below.
    if members.is_empty() {
        return true;
    }
    let below = |key: &str, value: Option<&Value>| {
        members.get(key).is_some_and(|set| manages(set, value.unwrap_or(&Value::Null), rest))
    };
    match step {
        FieldStep::Member(name) => below(&format!("f:{name}"), value.get(name)),
        FieldStep::Element(number) => {
            let Some(element) = value.get(number) else { return false };
            below(&format!("i:{number}"), Some(element))
                || members.keys().any(|key| is_key_of(key, element) && below(key, Some(element)))
        }
    }
}

/// Whether a key of `fieldsV1` names this element of a list: `k:{"name":"web"}` by members, `v:"x"` by value.
fn is_key_of(key: &str, element: &Value) -> bool {
    if let Some(text) = key.strip_prefix("k:") {
        let wanted: Option<Map<String, Value>> = serde_json::from_str(text).ok();
        return wanted.is_some_and(|wanted| wanted.iter().all(|(name, value)| element.get(name) == Some(value)));
    }
    let value: Option<Value> = key.strip_prefix("v:").and_then(|text| serde_json::from_str(text).ok());
    value.is_some_and(|value| value == *element)
}

/// The values of fields by their paths.
pub fn by_path(fields: &[ObjectField]) -> BTreeMap<String, Value> {
    fields.iter().map(|field| (field.path.clone(), field.value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(object: &Value, path: &str) -> ObjectField {
        fields(object).0.into_iter().find(|field| field.path == path).unwrap()
    }

    #[test]
    fn c_243_fields_are_named_as_plans_name_them_by_numbers_and_by_pointers() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"containers": [{"name": "web", "args": ["-v"], "env": []}], "ports": [{"port": 1}]}
        });
        let paths: Vec<String> = fields(&object).0.into_iter().map(|field| field.path).collect();
        let expected = [
            "metadata.labels[\"a.b/c\"]",
            "spec.containers[web].args[0]",
            "spec.containers[web].env",
            "spec.containers[web].name",
            "spec.ports[0].port",
        ];
        assert_eq!(paths, expected);
        let within = |path: &str, name: &str| field(&object, path).is_within(name);
        let argument = expected[1];
        for name in [
            "spec",
            ".spec",
            "spec.containers",
            "spec.containers[web]",
            "spec.containers[0].args",
            "spec.containers[0].args[0]",
            "/spec/containers/0",
            "/spec/containers/0/args/0",
            "",
            argument,
        ] {
            assert!(within(argument, name), "{name}");
        }
        for name in ["spec.cont", "spec.containers[w", "/spec/c", "spec.containers[web].args[0].x", "metadata"] {
            assert!(!within(argument, name), "{name}");
        }
        assert!(within(expected[0], "/metadata/labels/a.b~1c") && within(expected[0], "metadata.labels.a.b/c"));
    }

    #[test]
    fn c_243_a_field_has_the_managers_that_its_object_says() {
        let entry = |manager: &str, set: Value| json!({"manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": set});
        let container = json!({"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}});
        let live = json!({
            "metadata": {
                "managedFields": [
                    entry("image", json!({"f:spec": container})),
                    entry("whole", json!({"f:spec": {"f:template": {}}})),
                    entry("value", json!({"f:finalizers": {"v:\"x\"": {}}, "f:list": {"i:1": {}}})),
                    entry("status", json!({"f:status": {}})),
                    {"manager": "broken", "fieldsV1": 7},
                ],
            },
            "spec": {"containers": [{"name": "other", "image": "a"}, {"name": "web", "image": "b"}], "template": {"deep": 1}},
            "finalizers": ["y", "x"],
            "list": [1, 2],
        });
        let names = |path: &str| -> Vec<String> {
            managers(&live, &field(&live, path).steps).into_iter().map(|of| of.manager).collect()
        };
        assert_eq!(names("spec.containers[web].image"), ["image"]);
        assert_eq!(names("spec.containers[other].image"), [""; 0]);
        assert_eq!(names("spec.template.deep"), ["whole"]);
        assert_eq!((names("finalizers[1]"), names("finalizers[0]")), (vec!["value".to_owned()], Vec::new()));
        assert_eq!((names("list[1]"), names("list[0]")), (vec!["value".to_owned()], Vec::new()));
    }

    #[test]
    fn c_244_limits_the_paths_of_fields_have_a_number_of_bytes() {
        let below: Map<String, Value> = (0..100).map(|number| (number.to_string(), json!(1))).collect();
        let long = json!({"x".repeat(MOST_FIELD_BYTES / 50): below, "z": 1});
        let (read, is_complete) = fields(&long);
        assert!(!is_complete && read.len() < 60, "{}", read.len());
        assert!(fields(&json!({"a": {"b": 1}})).1);
    }

    #[test]
    fn c_243_a_field_is_read_and_written_in_its_place() {
        let mut object = json!({"a": [{"b": 1}]});
        let steps = field(&object, "a[0].b").steps;
        assert_eq!(at(&object, &steps), Some(&json!(1)));
        put(&mut object, &steps, json!("x"));
        put(&mut object, &[FieldStep::Member("no".to_owned()), FieldStep::Element(0)], json!(2));
        assert_eq!(object, json!({"a": [{"b": "x"}]}));
        assert_eq!(by_path(&fields(&object).0), BTreeMap::from([("a[0].b".to_owned(), json!("x"))]));
    }
}
