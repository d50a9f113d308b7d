//! JSON Schema checks of imports and exports (`docs/wire.md` §4.8).
//!
//! References of the schemes `local://`, `blueprint://` and `cd://` are put in place before; nothing is fetched here.

mod hybrid;
mod patterns;
mod resolve;
mod steps;

use std::collections::BTreeMap;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use orangery_ocm::{Files, ReferenceError, ResourceReference};

use self::steps::Steps;
pub use self::{
    resolve::{MOST_SCHEMA_DEPTH, MOST_UNFOLDED_SCHEMA_BYTES},
    steps::{MOST_PARTS_OF_A_VALUE, MOST_SCHEMA_LEVELS, MOST_SCHEMA_PARTS, MOST_SCHEMA_STEPS},
};

/// What the schemas of one blueprint may refer to.
#[derive(Clone, Copy)]
pub struct Schemas<'a> {
    /// `localTypes` of the blueprint.
    pub local_types: &'a BTreeMap<String, Value>,
    /// Its files.
    pub files: &'a dyn Files,
    /// The schemas of its component version that were fetched so far, by where they are from the component version on.
    pub resources: &'a BTreeMap<ResourceReference, Value>,
}

/// Why a value is refused, or a schema cannot be used. Never shows the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The value does not follow the schema.
    #[error("the value does not follow the schema: {}", faults.join("; "))]
    Value {
        /// Each with its place; at most [`MOST_FAULTS`].
        faults: Vec<String>,
    },
    /// The schema itself is not one.
    #[error("the schema in the blueprint is invalid: {reason}")]
    Schema {
        /// Why.
        reason: String,
    },
    /// A reference to a type that `localTypes` lacks.
    #[error("the schema refers to {reference}, but localTypes of the blueprint has no {name:?}; known are: {known}")]
    UnknownType {
        /// The reference.
        reference: String,
        /// The type.
        name: String,
        /// The types there are.
        known: String,
    },
    /// A reference to a file that cannot be used.
    #[error("the schema refers to {reference}: {reason}")]
    File {
        /// The reference.
        reference: String,
        /// Why.
        reason: String,
    },
    /// A fragment that leads nowhere.
    #[error("the schema refers to {reference}, but there is no field {field:?} on that path")]
    Fragment {
        /// The reference.
        reference: String,
        /// Where the path ends.
        field: String,
    },
    /// References that lead back to themselves.
    #[error(
        "the schema refers to {reference} from within itself; break the circle, or use `#/…` references inside one schema"
    )]
    Circle {
        /// The reference.
        reference: String,
    },
    /// A reference into the component version that is none.
    #[error("the schema refers to {reference}: {source}")]
    Reference {
        /// The reference.
        reference: String,
        /// Why.
        source: Box<ReferenceError>,
    },
    /// A schema of the component version that was not fetched: who checks fetches it and checks again.
    #[error(
        "the schema refers to {reference}, but the blueprint belongs to no component version; give the installation a componentDescriptor"
    )]
    NotFetched {
        /// The reference.
        reference: String,
        /// Where it is, from the component version of the blueprint on.
        resource: Box<ResourceReference>,
    },
    /// References unfold to more than [`MOST_UNFOLDED_SCHEMA_BYTES`].
    #[error(
        "the schema unfolds to more than the {MOST_UNFOLDED_SCHEMA_BYTES} bytes that are allowed; refer to the same part less \
         often, or by `#/…` within one schema"
    )]
    Unfolded,
    /// Parts stand deeper in each other than [`MOST_SCHEMA_DEPTH`].
    #[error("parts of the schema stand more than the {MOST_SCHEMA_DEPTH} levels deep in each other that are allowed")]
    TooDeep,
    /// A check takes more than [`MOST_SCHEMA_STEPS`].
    #[error(
        "checking the value takes more than the {MOST_SCHEMA_STEPS} steps that are allowed; let the schema refer to the same \
         part less often, or make the value smaller"
    )]
    Steps,
    /// More than [`MOST_PATTERNS`].
    #[error("the schema has {count} regular expressions, {MOST_PATTERNS} are allowed")]
    Patterns {
        /// How many.
        count: usize,
    },
    /// Its regular expressions are too long, or take too much to be read.
    #[error("the regular expressions of the schema cannot be used: {reason}")]
    Reading {
        /// Why.
        reason: String,
    },
    /// References within the schema unfold to more than [`MOST_SCHEMA_PARTS`].
    #[error(
        "the schema has {parts} parts with the references within it unfolded, {MOST_SCHEMA_PARTS} are allowed; refer to the same \
         part less often"
    )]
    Parts {
        /// How many.
        parts: u64,
    },
    /// Parts stand deeper in each other, with the references within the schema unfolded, than [`MOST_SCHEMA_LEVELS`].
    #[error(
        "the schema has more than the {MOST_SCHEMA_LEVELS} levels that are allowed with the references within it unfolded; let fewer \
         references lead to each other"
    )]
    Levels,
    /// More parts than [`MOST_PARTS_OF_A_VALUE`] look at one value one after the other.
    #[error(
        "more than {MOST_PARTS_OF_A_VALUE} parts of the schema in a row look at one and the same value, or one leads back to itself; let \
         $ref, allOf, anyOf, oneOf, not and if lead to each other less often"
    )]
    InARow,
    /// A part has a name of its own, from which its references would count.
    #[error(
        "a part of the schema has an $id of its own, which is not supported; remove it, and refer to the part by `#/…`"
    )]
    Named,
    /// A reference to a part that is no schema.
    #[error("the schema refers to {reference}, which is data and no schema; put the schema into definitions")]
    Data {
        /// The reference.
        reference: String,
    },
    /// Any other reference.
    #[error(
        "the schema refers to {reference}; only local://, blueprint:// and `#` references are followed, nothing is fetched"
    )]
    Scheme {
        /// The reference.
        reference: String,
    },
}

impl SchemaError {
    /// The schema that has to be fetched before the check can be made.
    pub fn not_fetched(&self) -> Option<&ResourceReference> {
        match self {
            SchemaError::NotFetched { resource, .. } => Some(resource),
            _ => None,
        }
    }
}

/// How many faults of a value are told.
pub const MOST_FAULTS: usize = 5;

/// The most regular expressions of one schema.
pub const MOST_PATTERNS: usize = 128;

/// The most bytes of a compiled regular expression of a schema, and of all of them together. What is made of one to search with it
/// takes a multiple of that.
pub const MOST_PATTERN_BYTES: usize = 2 << 20;
const MOST_PATTERN_BYTES_IN_ALL: usize = 8 << 20;

impl Schemas<'_> {
    /// Whether a schema can be used: its references lead somewhere, and it is a schema.
    pub fn check_schema(&self, schema: &Value) -> Result<(), SchemaError> {
        compile(&resolve::resolve(self, schema)?, &Steps::default()).map(drop)
    }

    /// Whether a value follows a schema (draft 7, draft 4 where the schema is only valid there).
    pub fn check(&self, schema: &Value, value: &Value) -> Result<(), SchemaError> {
        let schema = resolve::resolve(self, schema)?;
        let steps = Steps::default();
        let (validator, in_a_row) = compile(&schema, &steps)?;
        let faults = || validator.iter_errors(value).take(MOST_FAULTS).map(|error| fault(&error)).collect();
        let depth = in_a_row.saturating_mul(steps::levels(value));
        let faults: Vec<String> = steps::within(depth, || steps.run(faults)).ok_or(SchemaError::Steps)?;
        if faults.is_empty() { Ok(()) } else { Err(SchemaError::Value { faults }) }
    }
}

/// A validator, and how many of its parts in a row look at one value. Patterns are those of the `regex` crate, whose time is
/// linear: no look-around, no back references.
fn compile(schema: &Value, steps: &Steps) -> Result<(Validator, usize), SchemaError> {
    if let Some(reference) = steps::reference_into_data(schema) {
        return Err(SchemaError::Data { reference: reference.to_owned() });
    }
    if steps::has_named_part(schema) {
        return Err(SchemaError::Named);
    }
    let in_a_row = steps::in_a_row(schema)?;
    let count = patterns::count(schema)?;
    let schema = &steps::marked(&hybrid::numbered(schema));
    let build = |draft| {
        let most = MOST_PATTERN_BYTES.min(MOST_PATTERN_BYTES_IN_ALL / count.max(1));
        let patterns = PatternOptions::regex().size_limit(most).dfa_size_limit(most);
        let options = jsonschema::options().with_draft(draft).should_validate_formats(true).offline();
        steps::within(MOST_SCHEMA_LEVELS, || steps.counted(options.with_pattern_options(patterns)).build(schema))
    };
    let validator = build(Draft::Draft7).or_else(|error| {
        build(Draft::Draft4).map_err(|_| SchemaError::Schema { reason: format!("{} ({error})", place(&error)) })
    })?;
    Ok((validator, in_a_row))
}

/// The place of a fault: a JSON pointer, `/` for the value itself.
fn place(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    if path.is_empty() { "/".to_owned() } else { path }
}

fn fault(error: &ValidationError<'_>) -> String {
    let found = match error.kind() {
        ValidationErrorKind::Type { .. } => match error.instance().as_ref() {
            Value::Null => ", found null",
            Value::Bool(_) => ", found boolean",
            Value::Number(_) => ", found number",
            Value::String(_) => ", found string",
            Value::Array(_) => ", found array",
            Value::Object(_) => ", found object",
        },
        _ => "",
    };
    format!("at {}: {}{found}", place(error), error.masked())
}

#[cfg(test)]
mod tests;
