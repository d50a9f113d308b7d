//! Values that stand for exports which come in the job: whatever is rendered from them shows where they go (C-369).

use orangery_blueprint::{ExportDefinition, ExportKind};
use serde_json::{Map, Value};

/// How deep a schema is followed.
const DEPTH: usize = 8;

/// How many values there are at most; what comes after them is not known.
const MOST_VALUES: usize = 10_000;

/// Values in place of exports. Each is a text that may stand in names, labels and addresses, and that nothing else has.
#[derive(Clone, Debug, Default)]
pub struct OpaqueValues {
    token: String,
    /// What each stands for.
    names: Vec<String>,
}

impl OpaqueValues {
    /// None yet. What they are made from is drawn: whatever is rendered must not know them.
    pub fn new(drawn: &str) -> Self {
        Self { token: format!("known-after-apply-{drawn}"), names: Vec::new() }
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many there are.
    pub(super) fn number(&self) -> usize {
        self.names.len()
    }

    fn text(&self, number: usize) -> String {
        format!("{}-{number}x", self.token)
    }

    /// A value for an export of an installation, as its schema has it; `None` where there is no such value: of a Target, or of data that
    /// is not made of texts.
    pub(super) fn of(&mut self, installation: &str, export: &ExportDefinition) -> Option<Value> {
        let ExportKind::Data { schema } = &export.kind else { return None };
        let made = self.names.len();
        let value = self.of_schema(&format!("{installation}.{}", export.name), schema, DEPTH);
        if value.is_none() {
            self.names.truncate(made);
        }
        value
    }

    fn of_schema(&mut self, name: &str, schema: &Value, depth: usize) -> Option<Value> {
        let is = |kind: &str| schema.get("type").and_then(Value::as_str) == Some(kind);
        if is("string")
            && schema.get("enum").is_none()
            && schema.get("const").is_none()
            && self.names.len() < MOST_VALUES
        {
            self.names.push(name.to_owned());
            return Some(Value::String(self.text(self.names.len() - 1)));
        }
        let properties = schema.get("properties").and_then(Value::as_object).filter(|_| is("object") && depth > 0)?;
        let mut value = Map::new();
        for (property, schema) in properties {
            value.insert(property.clone(), self.of_schema(&format!("{name}.{property}"), schema, depth - 1)?);
        }
        Some(Value::Object(value))
    }

    /// Whether one of them is in a value.
    pub fn are_in(&self, value: &Value) -> bool {
        !self.is_empty() && value.to_string().contains(&self.token)
    }

    /// Of values by name those that have none of them.
    pub(super) fn known_of(&self, values: &Map<String, Value>) -> Map<String, Value> {
        values
            .iter()
            .filter(|(_, value)| !self.are_in(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// A text for people: with what the values stand for.
    pub fn display(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let mut parts = text.split(&self.token);
        let mut display = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.strip_prefix('-').and_then(|part| part.split_once('x'));
            match number.and_then(|(number, rest)| Some((self.names.get(number.parse::<usize>().ok()?)?, rest))) {
                Some((name, rest)) => display.push_str(&format!("(known after apply: {name}){rest}")),
                None => display.extend([self.token.as_str(), part]),
            }
        }
        display
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn export(schema: Value) -> ExportDefinition {
        ExportDefinition { name: "out".to_owned(), kind: ExportKind::Data { schema } }
    }

    #[test]
    fn c_369_an_export_that_is_not_known_is_a_text_that_tells_what_it_stands_for() {
        let mut opaque = OpaqueValues::new("abc");
        assert!(opaque.is_empty() && !opaque.are_in(&json!("known-after-apply-abc-0x")));
        assert_eq!(opaque.of("web/db", &export(json!({"type": "string"}))), Some(json!("known-after-apply-abc-0x")));
        let object = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object", "properties": {}}}});
        let value = json!({"a": "known-after-apply-abc-1x", "b": {}});
        assert_eq!(opaque.of("web", &export(object)), Some(value.clone()));
        assert!(opaque.are_in(&value) && !opaque.are_in(&json!("known")));
        let text =
            opaque.display("https://known-after-apply-abc-1x:80/known-after-apply-abc-0x/known-after-apply-abc-11x");
        assert_eq!(
            text,
            "https://(known after apply: web.out.a):80/(known after apply: web/db.out)/known-after-apply-abc-11x"
        );
        let values = Map::from_iter([("a".to_owned(), value), ("b".to_owned(), json!(1))]);
        assert_eq!(Value::Object(opaque.known_of(&values)), json!({"b": 1}));
    }

    #[test]
    fn c_369_what_is_not_made_of_texts_has_no_value_that_could_stand_for_it() {
        let mut opaque = OpaqueValues::new("abc");
        let none = [
            json!({"type": "integer"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}}),
            json!({}),
        ];
        for schema in none {
            assert_eq!(opaque.of("web", &export(schema.clone())), None, "{schema}");
        }
        let target =
            ExportDefinition { name: "t".to_owned(), kind: ExportKind::Target { target_type: "t".to_owned() } };
        assert_eq!(opaque.of("web", &target), None);
        assert!(opaque.is_empty());
        let deep = (0..9).fold(json!({"type": "string"}), |of, _| json!({"type": "object", "properties": {"a": of}}));
        assert_eq!(opaque.of("web", &export(deep)), None, "as deep as that nobody looks");
    }
}
