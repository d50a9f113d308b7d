//! What a JSON Schema validator found, in the sentences of the real API server.

use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use crate::refusal::StatusCause;

/// All rules that an object breaks.
pub(super) fn causes(validator: &Validator, object: &Value) -> Vec<StatusCause> {
    validator.iter_errors(object).map(|error| cause(&error, object)).collect()
}

/// What is wrong with the objects within an object, as `x-kubernetes-embedded-resource` has them. Their words are texts and
/// their metadata is an object, however they are written. Where the object itself is written, and not its status, each has an
/// apiVersion and a kind that a resource may have; it need not be served.
pub(super) fn embedded(
    value: &Value,
    schema: &Value,
    path: &str,
    part: super::WriteScope,
    causes: &mut Vec<StatusCause>,
) {
    match value {
        Value::Object(fields) => {
            if super::flag(schema, super::EMBEDDED) {
                causes.extend(
                    ["apiVersion", "kind"].iter().filter_map(|word| type_word(fields.get(*word), path, word, part)),
                );
                if let Some(metadata) = fields.get("metadata").filter(|metadata| !metadata.is_object()) {
                    causes.push(StatusCause::invalid(below(path, "metadata"), metadata, "must be an object"));
                }
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            let more = schema.get("additionalProperties").filter(|more| more.is_object());
            for (name, value) in fields {
                if let Some(of) = properties.and_then(|known| known.get(name)).or(more) {
                    embedded(value, of, &below(path, name), part, causes);
                }
            }
        }
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                if let Some(of) = schema.get("items") {
                    embedded(entry, of, &format!("{path}[{index}]"), part, causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What is wrong with the apiVersion or the kind of an object within another.
fn type_word(value: Option<&Value>, path: &str, word: &str, part: super::WriteScope) -> Option<StatusCause> {
    let field = below(path, word);
    let is_status = part == super::WriteScope::Status;
    let Some(value) = value else { return (!is_status).then(|| StatusCause::required(field, "")) };
    let why = match value.as_str() {
        None => "must be a string".to_owned(),
        Some(_) if is_status => return None,
        Some("") => "must not be empty".to_owned(),
        Some(version) if word == "apiVersion" && version.matches('/').count() > 1 => {
            format!("unexpected GroupVersion string: {version}")
        }
        Some(kind) if word == "kind" && !is_label(kind) => format!("{KIND_RULE}{LABEL_RULE}"),
        Some(_) => return None,
    };
    Some(StatusCause::invalid(field, value, &why))
}

const KIND_RULE: &str = "may have mixed case, but should otherwise match: ";
const LABEL_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                          character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                          validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Whether a text is a label of the DNS, but for its case.
fn is_label(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    text.len() <= 63
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(inner)
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn cause(error: &ValidationError<'_>, object: &Value) -> StatusCause {
    let field = field(object, error.instance_path().as_str());
    let value = error.instance();
    let invalid = |more: String| StatusCause::invalid(field.clone(), value, &more);
    let body = format!("{field} in body");
    match error.kind() {
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            let place = if field.is_empty() { property.to_owned() } else { format!("{field}.{property}") };
            StatusCause::required(place, "")
        }
        Kind::Type { kind } => {
            let found = type_of(value);
            let message =
                format!("Invalid value: \"{found}\": {body} must be of type {}: \"{found}\"", expected_type(kind));
            StatusCause { reason: "FieldValueTypeInvalid", message, field }
        }
        Kind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let options: Vec<String> = options.iter().filter(|o| !o.is_null()).map(Value::to_string).collect();
            let message = format!("Unsupported value: {value}: supported values: {}", options.join(", "));
            StatusCause { reason: "FieldValueNotSupported", message, field }
        }
        Kind::MaxLength { limit } => {
            let message = format!("Too long: may not be more than {limit} bytes");
            StatusCause { reason: "FieldValueTooLong", message, field }
        }
        Kind::MaxItems { limit } => {
            let found = value.as_array().map_or(0, Vec::len);
            let message = format!("Too many: {found}: must have at most {limit} items");
            StatusCause { reason: "FieldValueTooMany", message, field }
        }
        Kind::Pattern { pattern } => invalid(format!("{body} should match '{pattern}'")),
        Kind::Minimum { limit } => invalid(format!("{body} should be greater than or equal to {limit}")),
        Kind::ExclusiveMinimum { limit } => invalid(format!("{body} should be greater than {limit}")),
        Kind::Maximum { limit } => invalid(format!("{body} should be less than or equal to {limit}")),
        Kind::ExclusiveMaximum { limit } => invalid(format!("{body} should be less than {limit}")),
        Kind::MinLength { limit } => invalid(format!("{body} should be at least {limit} chars long")),
        Kind::MinItems { limit } => invalid(format!("{body} should have at least {limit} items")),
        Kind::MinProperties { limit } => invalid(format!("{body} should have at least {limit} properties")),
        Kind::MaxProperties { limit } => invalid(format!("{body} should have at most {limit} properties")),
        Kind::MultipleOf { multiple_of } => invalid(format!("{body} should be a multiple of {multiple_of}")),
        Kind::UniqueItems => invalid(format!("{body} shouldn't contain duplicates")),
        Kind::AnyOf { .. } => invalid(format!("{body} must validate at least one schema (anyOf)")),
        Kind::OneOfNotValid { .. } => {
            invalid(format!("{body} must validate one and only one schema (oneOf). Found none valid"))
        }
        Kind::OneOfMultipleValid { .. } => {
            invalid(format!("{body} must validate one and only one schema (oneOf). Found more than one valid"))
        }
        Kind::Not { .. } => invalid(format!("{body} must not validate the schema (not)")),
        // The crate's other kinds come from keywords that structural schemas do not have.
        _ => invalid(error.to_string()),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type a schema wants; of a nullable one the other than null.
fn expected_type(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(of) => of.to_string(),
        TypeKind::Multiple(set) => {
            let types: Vec<String> = set.iter().map(|of| of.to_string()).filter(|of| of != "null").collect();
            types.join(" or ")
        }
    }
}

/// A JSON pointer as a field path: `/spec/list/0/x` is `spec.list[0].x`.
fn field(object: &Value, pointer: &str) -> String {
    let mut path = String::new();
    let mut place = Some(object);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        place = match place {
            Some(Value::Array(entries)) => {
                path.push_str(&format!("[{step}]"));
                step.parse::<usize>().ok().and_then(|index| entries.get(index))
            }
            other => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&step);
                other.and_then(|value| value.get(&step))
            }
        };
    }
    path
}
