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
