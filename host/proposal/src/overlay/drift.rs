//! Where a live object is no longer as it was written (C-55 to C-57). Functions of JSON: no value is told, only where.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fmt,
};

use serde_json::{Map, Value};

use self::managed_entries::{EntryNames, ListEntry};
use super::{
    SERVER_OWNED,
    three_way::{List, MergePosition, ids, indices, place_of},
};
use crate::health::{canonical, same};

mod digests;
mod managed_entries;

/// The longest JSON pointer of a comparison, in bytes: of what lies deeper the field at its end is told, which is ignored or not as
/// a whole (C-145).
const LONGEST_POINTER: usize = 8 << 10;

/// The most bytes of the pointers of one comparison: beyond it fields are counted, and not named (C-145).
const MOST_POINTER_BYTES: usize = 1 << 20;

/// The most entries of `metadata.managedFields` of ignored managers that count (C-295). A server keeps some ten.
const MOST_MANAGED: usize = 64;

/// One field that is not as it was written. Holds no values: they may be secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drift {
    /// The field at a JSON pointer is not there any more.
    Missing(String),
    /// The field at a JSON pointer has another value.
    Different(String),
}

impl Drift {
    /// The JSON pointer.
    pub fn pointer(&self) -> &str {
        match self {
            Drift::Missing(pointer) | Drift::Different(pointer) => pointer,
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Drift::Missing(pointer) => write!(f, "{pointer} is missing"),
            Drift::Different(pointer) => write!(f, "{pointer} is different"),
        }
    }
}

/// Fields whose changes are no drift (C-57).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// JSON pointers (RFC 6901), each with all that lies below it. An index counts in the list as it was written.
    pub pointers: BTreeSet<String>,
    /// Field managers (`metadata.managedFields`): what one of them manages is its own.
    pub managers: BTreeSet<String>,
}

/// What is remembered of a write: the fields that it named, with the values that the server made of them, so that a
/// notation that the server changes (`1000m`, a port as text) is no drift (C-55). Fields that it did not name belong to others.
pub fn baseline(written: &Value, answer: &Value) -> Value {
    let mut kept = restrict(written, answer, place_of(written)).unwrap_or(Value::Null);
    if let Some(fields) = kept.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !SERVER_OWNED.contains(&name.as_str()));
        }
    }
    kept
}

/// What is wanted of a live object where some of it is ignored: there the live values are wanted (C-60).
pub fn spared(wanted: &Value, live: &Value, ignored: &Ignored) -> Value {
    let ignored = with_filled_in(ignored, wanted);
    let mut sparing = Sparing { ignored: &ignored, names: EntryNames::default() };
    sparing.spare(wanted, live, &FieldPosition::root(wanted, live, &ignored)).unwrap_or(Value::Null)
}

struct Sparing<'a> {
    ignored: &'a Ignored,
    names: EntryNames<'a>,
}

impl<'a> Sparing<'a> {
    /// `None` where the field is ignored and the live object has none.
    fn spare(&mut self, wanted: &'a Value, live: &'a Value, position: &FieldPosition<'a>) -> Option<Value> {
        if self.ignored.pointers.contains(&position.pointer) {
            return Some(live.clone());
        }
        let is_managed = !position.managed.is_empty();
        match (wanted, live) {
            (Value::Object(fields), Value::Object(others)) => {
                let spared = fields.iter().filter_map(|(name, value)| {
                    Some((name.clone(), self.member(value, others.get(name), &position.field(name))?))
                });
                Some(Value::Object(spared.collect()))
            }
            (Value::Array(entries), Value::Array(others)) => match partners(entries, others, position.place) {
                Some(partners) => {
                    let spared = entries.iter().zip(partners).enumerate().filter_map(|(index, (entry, partner))| {
                        let position = position.entry(index, partner, &mut self.names);
                        self.member(entry, partner.map(|(_, other)| other), &position)
                    });
                    Some(Value::Array(spared.collect()))
                }
                None => Some(if is_managed { live.clone() } else { wanted.clone() }),
            },
            (wanted, live) if !is_managed || same(wanted, live) => Some(wanted.clone()),
            (_, live) => Some(live.clone()),
        }
    }

    fn member(&mut self, wanted: &'a Value, live: Option<&'a Value>, position: &FieldPosition<'a>) -> Option<Value> {
        match live {
            Some(live) => self.spare(wanted, live, position),
            None if self.ignored.pointers.contains(&position.pointer) => None,
            None => Some(wanted.clone()),
        }
    }
}

/// Where a live object differs from a [`baseline`], in the order of the baseline (C-56). Fields, and entries of lists with
/// keys, that only the live object has belong to others. Where the pointers take too many bytes the rest has empty ones.
pub fn drift(baseline: &Value, live: &Value, ignored: &Ignored) -> Vec<Drift> {
    let ignored = with_filled_in(ignored, baseline);
    let mut search = DriftSearch::new(&ignored);
    search.compare(baseline, live, &FieldPosition::root(baseline, live, &ignored));
    search.found
}

/// With what a server fills in, whatever was written there: the rules of a ClusterRole that others are aggregated into.
fn with_filled_in<'i>(ignored: &'i Ignored, object: &Value) -> Cow<'i, Ignored> {
    let is_aggregated = object.get("kind").and_then(Value::as_str) == Some("ClusterRole")
        && object.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if !is_aggregated {
        return Cow::Borrowed(ignored);
    }
    let mut more = ignored.clone();
    more.pointers.insert("/rules".to_owned());
    Cow::Owned(more)
}

/// The fields of `written` with the values of `answer`; `None` where it has none, as of a `null` that takes a field away.
fn restrict(written: &Value, answer: &Value, place: MergePosition<'_>) -> Option<Value> {
    match (written, answer) {
        (_, Value::Null) => None,
        (Value::Object(written), Value::Object(answer)) => {
            let fields = written.iter().filter_map(|(name, value)| {
                let kept = restrict(value, answer.get(name)?, place.field(name))?;
                Some((name.clone(), kept))
            });
            Some(Value::Object(fields.collect::<Map<_, _>>()))
        }
        (Value::Array(written), Value::Array(answer)) => {
            let partners = partners(written, answer, place);
            let Some(partners) = partners else { return Some(Value::Array(answer.clone())) };
            let entries = written.iter().zip(partners);
            Some(Value::Array(entries.filter_map(|(entry, partner)| restrict(entry, partner?.1, place)).collect()))
        }
        (_, answer) => Some(answer.clone()),
    }
}

/// For each entry of a list the one of another list that means the same, with its index. Lists without keys are compared
/// entry by entry where they are equally long; `None` where that is not so either, for they are one value then.
fn partners<'v>(
    entries: &[Value],
    others: &'v [Value],
    place: MergePosition<'_>,
) -> Option<Vec<Option<(usize, &'v Value)>>> {
    let numbered = || others.iter().enumerate();
    // Looked up: others choose how many there are (C-295).
    if let List::Set = place.list() {
        let mut first = HashMap::new();
        for (at, other) in numbered() {
            first.entry(canonical(other)).or_insert((at, other));
        }
        return Some(entries.iter().map(|entry| first.get(&canonical(entry)).copied()).collect());
    }
    if let List::Keyed(keys) = place.list()
        && let (Some(wanted), Some(there)) = (ids(entries, keys), ids(others, keys))
    {
        let there = indices(&there);
        let partner = |id: &Vec<Value>| there.get(id).and_then(|at| Some((*at, others.get(*at)?)));
        return Some(wanted.iter().map(partner).collect());
    }
    (entries.len() == others.len()).then(|| numbered().map(Some).collect())
}

/// Where in an object a comparison is.
struct FieldPosition<'a> {
    pointer: String,
    /// Whether the pointer ends above it.
    is_below_pointer: bool,
    /// What each ignored manager manages from here on: nodes of `fieldsV1`.
    managed: Vec<&'a Value>,
    place: MergePosition<'a>,
}

impl<'a> FieldPosition<'a> {
    fn root(object: &Value, live: &'a Value, ignored: &Ignored) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let trusted = entries.into_iter().flatten().filter(|entry| {
            entry.get("manager").and_then(Value::as_str).is_some_and(|manager| ignored.managers.contains(manager))
        });
        let managed = trusted.filter_map(|entry| entry.get("fieldsV1")).take(MOST_MANAGED).collect();
        Self { pointer: String::new(), is_below_pointer: false, managed, place: place_of(object) }
    }

    fn field(&self, name: &'a str) -> Self {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        let own = format!("f:{name}");
        self.below(&escaped, |node| node.get(&own), self.place.field(name))
    }

    fn entry(&self, index: usize, live: Option<(usize, &'a Value)>, names: &mut EntryNames<'a>) -> Self {
        let mut entry = live.map(|(at, live)| ListEntry::new(at, live));
        let managed = |node: &'a Value| names.find(node, entry.as_mut()?);
        self.below(&index.to_string(), managed, self.place)
    }

    fn below(
        &self,
        name: &str,
        mut node: impl FnMut(&'a Value) -> Option<&'a Value>,
        place: MergePosition<'a>,
    ) -> Self {
        // A node with nothing below it stands for all that is there.
        let managed = self.managed.iter().filter_map(|above| if is_leaf(above) { Some(*above) } else { node(above) });
        let is_below_pointer = self.is_below_pointer || self.pointer.len() + name.len() >= LONGEST_POINTER;
        let pointer = if is_below_pointer { self.pointer.clone() } else { format!("{}/{name}", self.pointer) };
        Self { pointer, is_below_pointer, managed: managed.collect(), place }
    }
}

fn is_leaf(node: &Value) -> bool {
    node.as_object().is_some_and(Map::is_empty)
}

struct DriftSearch<'a> {
    ignored: &'a Ignored,
    found: Vec<Drift>,
    /// Bytes of pointers for which there is room.
    left: usize,
    names: EntryNames<'a>,
}

impl<'a> DriftSearch<'a> {
    fn new(ignored: &'a Ignored) -> Self {
        Self { ignored, found: Vec::new(), left: MOST_POINTER_BYTES, names: EntryNames::default() }
    }

    fn compare(&mut self, baseline: &'a Value, live: &'a Value, position: &FieldPosition<'a>) {
        if self.ignored.pointers.contains(&position.pointer) {
            return;
        }
        match (baseline, live) {
            (Value::Object(baseline), Value::Object(live)) => {
                for (name, value) in baseline {
                    self.member(value, live.get(name), &position.field(name));
                }
            }
            (Value::Array(entries), Value::Array(others)) => match partners(entries, others, position.place) {
                Some(partners) => {
                    for (index, (entry, partner)) in entries.iter().zip(partners).enumerate() {
                        let position = position.entry(index, partner, &mut self.names);
                        self.member(entry, partner.map(|(_, other)| other), &position);
                    }
                }
                None => self.tell(Drift::Different, position),
            },
            (baseline, live) if same(baseline, live) => {}
            _ => self.tell(Drift::Different, position),
        }
    }

    fn member(&mut self, baseline: &'a Value, live: Option<&'a Value>, position: &FieldPosition<'a>) {
        match live {
            Some(live) => self.compare(baseline, live, position),
            // An empty map or list is often left out by whoever writes the object next.
            None if is_blank(baseline) || self.ignored.pointers.contains(&position.pointer) => {}
            None => self.tell(Drift::Missing, position),
        }
    }

    fn tell(&mut self, drift: fn(String) -> Drift, position: &FieldPosition<'_>) {
        let is_told = |last: &Drift| position.is_below_pointer && last.pointer() == position.pointer;
        if !position.managed.is_empty() || self.found.last().is_some_and(is_told) {
            return;
        }
        let left = self.left.checked_sub(position.pointer.len());
        self.left = left.unwrap_or(0);
        let pointer = left.map_or_else(String::new, |_| position.pointer.clone());
        // What is missing below a field makes the field another one.
        self.found.push(if position.is_below_pointer { Drift::Different(pointer) } else { drift(pointer) });
    }
}

fn is_blank(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests;
