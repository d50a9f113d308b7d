//! Puts in place what `$ref`s of our schemes stand for. Fields next to such a `$ref` are dropped, as in the original.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use orangery_core::{listing, memory};
use serde_json::{Map, Value};

use super::{SchemaError, Schemas};
use orangery_ocm::ResourceReference;

/// The most memory, in bytes, that a schema may unfold to.
pub const MOST_UNFOLDED_SCHEMA_BYTES: u64 = 32 << 20;

/// How deep parts of a schema may stand in each other, references unfolded.
pub const MOST_SCHEMA_DEPTH: usize = 128;

/// A schema without references that leave it.
pub(super) fn resolve(schemas: &Schemas<'_>, schema: &Value) -> Result<Value, SchemaError> {
    let left = Cell::new(MOST_UNFOLDED_SCHEMA_BYTES);
    let source = SchemaSource { schemas, component: None, left: &left, depth: 0 };
    walk(&source, schema, &BTreeSet::new())
}

/// Where a part of a schema comes from: its references count from there.
struct SchemaSource<'a> {
    schemas: &'a Schemas<'a>,
    /// The component references that lead to the component version it lies in; `None` for the blueprint.
    component: Option<ReferencePath>,
    /// What is left of [`MOST_UNFOLDED_SCHEMA_BYTES`].
    left: &'a Cell<u64>,
    /// How deep the part stands.
    depth: usize,
}

impl SchemaSource<'_> {
    /// Where the parts of a part come from.
    fn below(&self) -> Result<Self, SchemaError> {
        if self.depth >= MOST_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        Ok(SchemaSource { component: self.component.clone(), depth: self.depth + 1, ..*self })
    }

    /// Takes memory for a part.
    fn spend(&self, bytes: u64) -> Result<(), SchemaError> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(SchemaError::Unfolded),
        }
    }
}

type ReferencePath = Vec<BTreeMap<String, String>>;

/// `above` are the references that this part stands under, each with the place that it counts from.
fn walk(
    place: &SchemaSource<'_>,
    part: &Value,
    above: &BTreeSet<(Option<ReferencePath>, String)>,
) -> Result<Value, SchemaError> {
    match part {
        Value::Object(map) => {
            let below = place.below()?;
            if let Some(Value::String(reference)) = map.get("$ref").filter(|reference| leaves(reference)) {
                return follow(&below, reference, above);
            }
            place.spend(memory::of(&Value::Object(Map::from_iter([(String::new(), Value::Null)]))))?;
            let entry = |(name, value): (&String, &Value)| {
                place.spend(memory::of_text(name.len()))?;
                Ok((name.clone(), walk(&below, value, above)?))
            };
            map.iter().map(entry).collect::<Result<_, _>>().map(Value::Object)
        }
        Value::Array(items) => {
            place.spend(memory::of(&Value::Array(Vec::new())))?;
            let below = place.below()?;
            items.iter().map(|item| walk(&below, item, above)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            place.spend(memory::of(part))?;
            Ok(part.clone())
        }
    }
}

/// Whether a reference leads out of the schema that it stands in.
fn leaves(reference: &Value) -> bool {
    reference.as_str().is_some_and(|reference| !reference.starts_with('#'))
}

fn follow(
    place: &SchemaSource<'_>,
    reference: &str,
    above: &BTreeSet<(Option<ReferencePath>, String)>,
) -> Result<Value, SchemaError> {
    let own = || reference.to_owned();
    let mut above = above.clone();
    if !above.insert((place.component.clone(), own())) {
        return Err(SchemaError::Circle { reference: own() });
    }
    let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let resolved = if let Some(name) = address.strip_prefix("local://") {
        walk(place, local_type(place, reference, name)?, &above)?
    } else if let Some(path) = address.strip_prefix("blueprint://") {
        walk(place, &file(place, reference, path)?, &above)?
    } else if address.starts_with("cd://") {
        let (found, component) = resource(place, reference, address)?;
        walk(&SchemaSource { component: Some(component), ..*place }, found, &above)?
    } else {
        return Err(SchemaError::Scheme { reference: own() });
    };
    let mut part = &resolved;
    for field in fragment.trim_matches('/').split('/').filter(|field| !field.is_empty()) {
        part = part.get(field).ok_or_else(|| SchemaError::Fragment { reference: own(), field: field.to_owned() })?;
    }
    if !fragment.is_empty() {
        place.spend(memory::of(part))?;
    }
    Ok(part.clone())
}

/// A type of `localTypes`; schemas of component versions have none.
fn local_type<'a>(place: &SchemaSource<'a>, reference: &str, name: &str) -> Result<&'a Value, SchemaError> {
    let types = place.schemas.local_types;
    let of_blueprint = place.component.is_none();
    types.get(name).filter(|_| of_blueprint).ok_or_else(|| {
        let known = listing::listed(types.keys().filter(|_| of_blueprint));
        SchemaError::UnknownType { reference: reference.to_owned(), name: name.to_owned(), known }
    })
}

/// A file of the blueprint; schemas of component versions see none.
fn file(place: &SchemaSource<'_>, reference: &str, path: &str) -> Result<Value, SchemaError> {
    let fault = |reason| SchemaError::File { reference: reference.to_owned(), reason };
    if place.component.is_some() {
        return Err(fault("a schema of a component version has no blueprint, use cd:// or `#/…`".to_owned()));
    }
    let bytes = place.schemas.files.read(path).map_err(fault)?;
    place.spend(memory::of_json(&bytes))?;
    serde_json::from_slice(&bytes).map_err(|error| fault(format!("{path} is not JSON: {error}")))
}

/// A schema of a component version, and the component references that lead to where it lies.
fn resource<'a>(
    place: &SchemaSource<'a>,
    reference: &str,
    address: &str,
) -> Result<(&'a Value, ReferencePath), SchemaError> {
    let ResourceReference { resource, reference_path } = ResourceReference::parse(address)
        .map_err(|source| SchemaError::Reference { reference: reference.to_owned(), source: Box::new(source) })?;
    let path: ReferencePath = place.component.iter().flatten().cloned().chain(reference_path).collect();
    let resource = ResourceReference { resource, reference_path: path.clone() };
    match place.schemas.resources.get(&resource) {
        Some(found) => Ok((found, path)),
        None => Err(SchemaError::NotFetched { reference: reference.to_owned(), resource: Box::new(resource) }),
    }
}
