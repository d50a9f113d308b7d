//! The steps that a check of a value may take.
//!
//! A schema that refers to itself twice takes twice as long with each level of the value, or of its own definitions. Each part of
//! a schema therefore carries one more keyword, which counts, and ends the check where the limit is reached.

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use jsonschema::{Keyword, ValidationError, ValidationOptions, Validator};
use orangery_core::memory;
use serde_json::{Map, Value};

use super::SchemaError;

/// The most steps of one check: parts of a schema, each with every entry and every 16 bytes of text of the value that it is
/// held against, with every four names that it has for fields, with every pattern for each of the fields, and with every 4 KiB of
/// memory of the values that it compares.
pub const MOST_SCHEMA_STEPS: u64 = 2_000_000;

/// The keyword that counts. No name of a field is like it by chance.
const KEYWORD: &str = "\u{1}steps";

/// Keywords whose values are data, not schemas.
pub(super) const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords whose values have names of the author's before the schemas.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"];

/// Keywords with names of fields that are looked up in each object.
const LOOKED_UP: [&str; 5] = ["properties", "required", "dependencies", "dependentRequired", "dependentSchemas"];

/// Keywords with values that each value is compared with.
const COMPARED: [&str; 2] = ["const", "enum"];

/// Bytes of memory of what is compared that are a step: of numbers some nanoseconds each.
const COMPARED_IN_A_STEP: u64 = 4096;

/// Names that are looked up in a step.
const LOOKED_UP_IN_A_STEP: u64 = 4;

/// The longest text that is looked at as a regular expression by `format: regex`; a longer one is none.
const LONGEST_EXPRESSION: usize = 1024;

/// The same format without that limit.
static EXPRESSION: LazyLock<Option<Validator>> = LazyLock::new(|| {
    jsonschema::options().should_validate_formats(true).build(&serde_json::json!({"format": "regex"})).ok()
});

/// Counts the steps of one check.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    taken: Arc<AtomicU64>,
    /// Of the part that it stands in, for each value.
    each: u64,
    /// The same, for each field of a value.
    each_field: u64,
}

/// What ends a check from within.
struct OutOfSteps;

impl Steps {
    /// Gives a validator the keyword that counts.
    pub(super) fn counted(&self, options: ValidationOptions<'static>) -> ValidationOptions<'static> {
        let taken = Arc::clone(&self.taken);
        let options = options.with_format("regex", |text: &str| {
            let is_valid = |format: &Validator| format.is_valid(&Value::String(text.to_owned()));
            text.len() <= LONGEST_EXPRESSION && EXPRESSION.as_ref().is_none_or(is_valid)
        });
        options.with_keyword(KEYWORD, move |part: &Map<String, Value>, _: &Value, _| {
            Ok(Box::new(Self::of_part(Arc::clone(&taken), part)))
        })
    }

    /// What a check answers; `None` where it was ended.
    pub(super) fn run<T>(&self, check: impl FnOnce() -> T) -> Option<T> {
        self.taken.store(0, Ordering::Relaxed);
        match panic::catch_unwind(AssertUnwindSafe(check)) {
            Ok(answer) => Some(answer),
            Err(cause) if cause.is::<OutOfSteps>() => None,
            Err(cause) => panic::resume_unwind(cause),
        }
    }

    fn of_part(taken: Arc<AtomicU64>, part: &Map<String, Value>) -> Self {
        let entries = |keyword: &&str| match part.get(*keyword) {
            Some(Value::Array(items)) => items.len() as u64,
            Some(Value::Object(fields)) => fields.len() as u64,
            _ => 0,
        };
        let compared = COMPARED.iter().filter_map(|keyword| part.get(*keyword)).map(memory::of).sum::<u64>();
        let looked_up = LOOKED_UP.iter().map(entries).sum::<u64>();
        let each = looked_up / LOOKED_UP_IN_A_STEP + compared / COMPARED_IN_A_STEP;
        Self { taken, each, each_field: entries(&"patternProperties") }
    }

    fn take(&self, instance: &Value) {
        let looked_at = match instance {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            Value::String(text) => text.len() / 16,
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        let fields = if instance.is_object() { looked_at as u64 } else { 0 };
        let more = 1 + looked_at as u64 + self.each + fields.saturating_mul(self.each_field);
        if self.taken.fetch_add(more, Ordering::Relaxed).saturating_add(more) > MOST_SCHEMA_STEPS {
            // Without the hook of panics: nothing is broken, and nobody is told.
            panic::resume_unwind(Box::new(OutOfSteps));
        }
    }
}

impl<'i> Keyword<'i> for Steps {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.take(instance);
        Ok(())
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.take(instance);
        true
    }
}

/// The schema with the keyword in each of its parts.
pub(super) fn marked(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let part = |(name, value): (&String, &Value)| {
                let value = match value {
                    value if DATA.contains(&name.as_str()) => value.clone(),
                    Value::Object(named) if NAMED.contains(&name.as_str()) => {
                        named.iter().map(|(name, value)| (name.clone(), marked(value))).collect()
                    }
                    value => marked(value),
                };
                (name.clone(), value)
            };
            let mut map: Map<String, Value> = map.iter().map(part).collect();
            map.insert(KEYWORD.to_owned(), Value::Bool(true));
            Value::Object(map)
        }
        Value::Array(items) => items.iter().map(marked).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// A reference of a schema to a part that is data, such as `#/enum/0`, where nothing counts.
pub(super) fn reference_into_data(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str).filter(|reference| leads_into_data(reference));
            own.or_else(|| map.values().find_map(reference_into_data))
        }
        Value::Array(items) => items.iter().find_map(reference_into_data),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn leads_into_data(reference: &str) -> bool {
    let mut is_named = false;
    reference.split('/').skip(1).any(|step| {
        // What is escaped may be a keyword as well.
        let is_data = !is_named && (DATA.contains(&step) || (step.contains('%') && step != "%24defs"));
        is_named = !is_named && (NAMED.contains(&step) || step == "%24defs");
        is_data
    })
}

/// The most parts of a schema with the references within it unfolded: a validator is built with all of them.
pub const MOST_SCHEMA_PARTS: u64 = 100_000;

/// The most levels of a schema with the references within it unfolded: a validator is built level by level.
pub const MOST_SCHEMA_LEVELS: usize = 512;

/// The most parts of a schema in a row that look at one and the same value: a check calls itself for each of them, for each level
/// of the value.
pub const MOST_PARTS_OF_A_VALUE: usize = 64;

/// The most parts of a schema in a row that look at one value. What it has more of than it may is not looked at.
///
/// # Errors
/// [`SchemaError::Levels`], [`SchemaError::Parts`] and [`SchemaError::InARow`], also of a part that leads back to itself.
pub(super) fn in_a_row(schema: &Value) -> Result<usize, SchemaError> {
    let parts = parts(schema, schema, &mut BTreeMap::new(), MOST_SCHEMA_LEVELS)?;
    if parts > MOST_SCHEMA_PARTS {
        return Err(SchemaError::Parts { parts });
    }
    longest_row(schema, schema, &mut BTreeMap::new())
}

/// How many parts a schema has with the references within it unfolded; one that leads back to where it stands counts once. `known`
/// has the parts behind references; `None` of one that is being counted.
fn parts<'a>(
    root: &'a Value,
    part: &'a Value,
    known: &mut BTreeMap<&'a str, Option<u64>>,
    levels: usize,
) -> Result<u64, SchemaError> {
    let levels = levels.checked_sub(1).ok_or(SchemaError::Levels)?;
    match part {
        Value::Object(map) => {
            let mut sum: u64 = 1;
            for part in map.values() {
                sum = sum.saturating_add(parts(root, part, known, levels)?);
            }
            let Some(reference) = map.get("$ref").and_then(Value::as_str) else { return Ok(sum) };
            let behind = match known.get(reference) {
                Some(count) => count.unwrap_or(1),
                None => {
                    known.insert(reference, None);
                    let count = match target(root, reference) {
                        Some(target) => parts(root, target, known, levels)?,
                        None => 1,
                    };
                    known.insert(reference, Some(count));
                    count
                }
            };
            Ok(sum.saturating_add(behind))
        }
        Value::Array(items) => {
            items.iter().try_fold(1, |sum: u64, part| Ok(sum.saturating_add(parts(root, part, known, levels)?)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(1),
    }
}

/// Rows by the place of the part that they begin with.
type Rows = BTreeMap<*const Value, usize>;

/// The longest row that begins at any part.
fn longest_row<'a>(root: &'a Value, part: &'a Value, known: &mut Rows) -> Result<usize, SchemaError> {
    let parts: Vec<&Value> = match part {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(0),
    };
    let own = row(root, part, known, MOST_PARTS_OF_A_VALUE)?;
    parts.into_iter().try_fold(own, |longest, part| Ok(longest.max(longest_row(root, part, known)?)))
}

/// The longest row that begins at this part. A circle is a row that does not end.
fn row<'a>(root: &'a Value, part: &'a Value, known: &mut Rows, left: usize) -> Result<usize, SchemaError> {
    let Value::Object(map) = part else { return Ok(0) };
    if let Some(known) = known.get(&std::ptr::from_ref(part)) {
        return if *known <= left { Ok(*known) } else { Err(SchemaError::InARow) };
    }
    let left = left.checked_sub(1).ok_or(SchemaError::InARow)?;
    let behind = map.get("$ref").and_then(Value::as_str).and_then(|reference| target(root, reference));
    let one = ["not", "if", "then", "else"].into_iter().filter_map(|keyword| map.get(keyword));
    let many = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| map.get(keyword)?.as_array()).flatten();
    let named = ["dependencies", "dependentSchemas"].into_iter().filter_map(|keyword| map.get(keyword)?.as_object());
    let next = behind.into_iter().chain(one).chain(many).chain(named.flat_map(Map::values));
    let mut longest = 0;
    for part in next {
        longest = longest.max(row(root, part, known, left)?);
    }
    known.insert(std::ptr::from_ref(part), longest + 1);
    Ok(longest + 1)
}

/// How many levels a value has.
pub(super) fn levels(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(levels).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// What a part needs of the stack at most, to be built and to look at a value, in bytes, where nothing is optimised.
const STACK_OF_A_PART: usize = 4 << 10;

/// Works on so many parts in one another: on a stack of its own where what is left of the thread's might not do.
pub(super) fn within<T>(parts: usize, work: impl FnOnce() -> T) -> T {
    let needed = (parts + 16) * STACK_OF_A_PART;
    stacker::maybe_grow(needed, needed, work)
}

/// What a reference leads to, where it is a path from the root.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let path = reference.strip_prefix('#')?;
    root.pointer(path).or_else(|| root.pointer(&path.replace("%20", " ").replace("%24", "$").replace("%25", "%")))
}

/// Whether references of a part would be looked up elsewhere than from the root, because it has a name of its own.
pub(super) fn has_named_part(schema: &Value) -> bool {
    let is_named = |part: &Value| {
        let name = part.get("$id").or_else(|| part.get("id"));
        name.is_some_and(Value::is_string) || has_named_part(part)
    };
    match schema {
        Value::Object(map) => {
            map.iter().filter(|(name, _)| !DATA.contains(&name.as_str())).any(|(_, part)| is_named(part))
        }
        Value::Array(items) => items.iter().any(is_named),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
