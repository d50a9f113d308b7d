//! A structural schema: which fields an object keeps, which it is given, and whether it is valid.

mod patterns;
mod validate;

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::refusal::StatusCause;

/// The `openAPIV3Schema` of one version.
#[derive(Debug)]
pub(crate) struct OpenApiSchema {
    root: Value,
    /// Whether it has any default.
    defaulted: bool,
    /// Whether objects may lie within.
    embeds: bool,
    /// Compiled at the first use: a definition that nobody uses costs nothing.
    validator: OnceLock<Result<jsonschema::Validator, String>>,
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

impl OpenApiSchema {
    pub(crate) fn new(root: Value) -> Self {
        let defaulted = any(&root, &|schema| schema.get("default").is_some());
        let embeds = any(&root, &|schema| flag(schema, EMBEDDED));
        Self { root, defaulted, embeds, validator: OnceLock::new() }
    }

    /// Whether it fills in anything.
    pub(crate) fn has_defaults(&self) -> bool {
        self.defaulted
    }

    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    /// What is wrong with the schema itself.
    pub(crate) fn problems(&self, field: &str) -> Vec<StatusCause> {
        let causes = patterns::problems(&self.root, field);
        if !causes.is_empty() {
            return causes;
        }
        self.validator().as_ref().err().map(|why| StatusCause::invalid(field, &self.root, why)).into_iter().collect()
    }

    fn validator(&self) -> &Result<jsonschema::Validator, String> {
        self.validator.get_or_init(|| {
            let plain = plain(&self.root);
            // As in a cluster, the time of a pattern is linear; and what it takes is bounded (C-135).
            let most = patterns::bytes_of_each(patterns::count(&self.root));
            let regex = jsonschema::PatternOptions::regex().size_limit(most).dfa_size_limit(most);
            let options = jsonschema::options().with_draft(jsonschema::Draft::Draft4).with_pattern_options(regex);
            options.build(&plain).map_err(|error| error.to_string())
        })
    }

    /// Removes the fields that the schema does not know, and answers their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        prune(object, &self.root, Root::Yes, "", &mut dropped);
        dropped
    }

    /// Fills in the defaults.
    pub(crate) fn fill_defaults(&self, object: &mut Value) {
        fill(object, &self.root);
    }

    /// All rules that the object breaks, where the object itself is written.
    pub(crate) fn validate(&self, object: &Value) -> Vec<StatusCause> {
        self.causes(object, WriteScope::Whole)
    }

    /// The same where its status is written. What objects within it are called is hardly looked at then: a real server takes a
    /// status with which it then refuses every other write.
    pub(crate) fn validate_status(&self, object: &Value) -> Vec<StatusCause> {
        self.causes(object, WriteScope::Status)
    }

    fn causes(&self, object: &Value, part: WriteScope) -> Vec<StatusCause> {
        let mut causes = match self.validator() {
            Ok(validator) => validate::causes(validator, object),
            // A definition whose schema does not compile is refused when it is created; this one was created by another host.
            Err(why) => vec![StatusCause::invalid(
                "apiVersion",
                object.get("apiVersion").unwrap_or(&Value::Null),
                &format!("its schema: {why}"),
            )],
        };
        if self.embeds {
            validate::embedded(object, &self.root, "", part, &mut causes);
        }
        causes
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// What of an object is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteScope {
    Whole,
    Status,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Yes,
    No,
}

fn prune(value: &mut Value, schema: &Value, root: Root, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let more = schema.get("additionalProperties");
            let whole = root == Root::Yes || flag(schema, EMBEDDED);
            let keep_unknown = flag(schema, PRESERVE) || matches!(more, Some(Value::Bool(true)));
            fields.retain(|name, value| {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                let known = properties.and_then(|known| known.get(name)).or(more.filter(|more| more.is_object()));
                match known {
                    Some(known) => prune(value, known, Root::No, &place, dropped),
                    None if keep_unknown => {}
                    None => dropped.push(place),
                }
                known.is_some() || keep_unknown
            });
        }
        Value::Array(entries) => {
            if let Some(of) = schema.get("items") {
                for (index, entry) in entries.iter_mut().enumerate() {
                    prune(entry, of, Root::No, &format!("{path}[{index}]"), dropped);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a schema, or one within it, is as asked.
fn any(schema: &Value, is: &impl Fn(&Value) -> bool) -> bool {
    let each = |of: &Value| of.as_object().is_some_and(|of| of.values().any(|of| any(of, is)));
    is(schema)
        || schema.get("properties").is_some_and(each)
        || ["items", "additionalProperties"].iter().filter_map(|word| schema.get(word)).any(|of| any(of, is))
}

fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, of) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let nullable = flag(of, "nullable");
                if let Some(default) = of.get("default")
                    && fields.get(name).is_none_or(|value| value.is_null() && !nullable)
                {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(value) = fields.get_mut(name) {
                    fill(value, of);
                }
            }
            if let Some(of) = schema.get("additionalProperties").filter(|of| of.is_object()) {
                fields.values_mut().for_each(|value| fill(value, of));
            }
        }
        Value::Array(entries) => {
            if let Some(of) = schema.get("items") {
                entries.iter_mut().for_each(|entry| fill(entry, of));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema in the words of JSON Schema, draft 4: what Kubernetes adds is spelled out or left out.
fn plain(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        // A list is none of the forms of a schema that a cluster takes, and nobody has looked at the expressions in it (C-135).
        return if schema.is_array() { json!({}) } else { schema.clone() };
    };
    let mut plain = Map::new();
    for (word, value) in fields {
        let value = match word.as_str() {
            "properties" => {
                let each = value.as_object().into_iter().flatten();
                Value::Object(each.map(|(name, of)| (name.clone(), self::plain(of))).collect())
            }
            "items" | "additionalProperties" | "not" => self::plain(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().map(self::plain).collect(),
            "type" if flag(schema, INT_OR_STRING) => continue,
            "type" if flag(schema, "nullable") => json!([value, "null"]),
            // Null is none of the values where it is not listed, whatever `nullable` says.
            "type" | "enum" | "required" | "pattern" | "multipleOf" | "uniqueItems" | "minimum" | "maximum"
            | "exclusiveMinimum" | "exclusiveMaximum" | "minLength" | "maxLength" | "minItems" | "maxItems"
            | "minProperties" | "maxProperties" => value.clone(),
            _ => continue,
        };
        plain.insert(word.clone(), value);
    }
    if flag(schema, INT_OR_STRING) && !fields.contains_key("anyOf") {
        plain.insert("type".to_owned(), json!(["integer", "string"]));
    }
    Value::Object(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> OpenApiSchema {
        OpenApiSchema::new(json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "port": {"x-kubernetes-int-or-string": true},
                "none": {"type": "string", "nullable": true},
                "choice": {"type": "string", "enum": ["a", "b"], "nullable": true},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "within": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer", "default": 7}}}},
            }},
        }}))
    }

    #[track_caller]
    fn check(spec: Value, expected: &[&str]) {
        let causes = schema().validate(&json!({"spec": spec}));
        let report: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        assert_eq!(report, expected);
    }

    #[test]
    fn broken_rules_are_told_in_the_sentences_of_kubernetes() {
        check(json!({"size": 1, "port": "http", "none": null}), &[]);
        check(json!({}), &["spec.size: Required value"]);
        check(
            json!({"size": 1, "choice": null}),
            &["spec.choice: Unsupported value: null: supported values: \"a\", \"b\""],
        );
        check(
            json!({"size": "many"}),
            &["spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\""],
        );
        check(
            json!({"size": 0}),
            &["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
        );
        check(
            json!({"size": 1, "mode": "c"}),
            &["spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        );
        check(
            json!({"size": 1, "list": [{"x": "y"}]}),
            &["spec.list[0].x: Invalid value: \"string\": spec.list[0].x in body must be of type integer: \"string\""],
        );
    }

    #[test]
    fn an_object_within_an_object_has_a_version_and_a_kind() {
        let within = |within: Value| json!({"size": 1, "within": within});
        check(within(json!({"apiVersion": "example.org/v1", "kind": "Any", "metadata": {"name": "x"}})), &[]);
        check(within(json!({"a": 1})), &["spec.within.apiVersion: Required value", "spec.within.kind: Required value"]);
        check(
            within(json!({"apiVersion": "a/b/c", "kind": "", "metadata": 1})),
            &[
                "spec.within.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.within.kind: Invalid value: \"\": must not be empty",
                "spec.within.metadata: Invalid value: 1: must be an object",
            ],
        );
        let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                     character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        let of_kind = "spec.within.kind: Invalid value: \"A b\": may have mixed case, but should otherwise match: ";
        check(within(json!({"apiVersion": "v1", "kind": "A b"})), &[&format!("{of_kind}{label}")]);
    }

    #[test]
    fn an_object_within_a_status_has_words_that_are_texts() {
        let told = |within: Value| -> Vec<String> {
            let status = json!({"spec": {"size": 1, "within": within}});
            schema().validate_status(&status).into_iter().map(|cause| cause.message).collect()
        };
        assert_eq!(told(json!({"apiVersion": "", "kind": "A b"})), [""; 0]);
        assert_eq!(told(json!({})), [""; 0]);
        assert_eq!(
            told(json!({"apiVersion": 1, "kind": {}, "metadata": []})),
            [
                "Invalid value: 1: must be a string",
                "Invalid value: \"object\": must be a string",
                "Invalid value: \"array\": must be an object"
            ]
        );
    }

    #[test]
    fn unknown_fields_are_pruned_unless_preserved() {
        let mut object = json!({"kind": "K", "metadata": {"name": "n"}, "other": 1,
            "spec": {"size": 1, "more": 2, "free": {"a": {"b": 1}}, "map": {"k": "v"}, "list": [{"x": 1, "y": 2}]}});
        let dropped = schema().prune(&mut object);
        assert_eq!(
            object,
            json!({"kind": "K", "metadata": {"name": "n"},
                "spec": {"size": 1, "free": {"a": {"b": 1}}, "map": {"k": "v"}, "list": [{"x": 1}]}})
        );
        assert_eq!(dropped.len(), 3, "{dropped:?}");
    }

    #[test]
    fn defaults_fill_what_is_missing() {
        let mut object = json!({"spec": {"size": 1, "list": [{}], "none": null}});
        schema().fill_defaults(&mut object);
        assert_eq!(object, json!({"spec": {"size": 1, "mode": "a", "list": [{"x": 7}], "none": null}}));
    }
}
