//! From events to a value: keys, anchors, merges, and the limits on what aliases unfold to and on depth.

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle};
use serde_json::{Map, Value};

use super::{
    YamlFault,
    scalar::{self, Scalar},
};
use crate::memory;

/// The most memory, in bytes, that the documents of one text may take as values.
pub const MOST_YAML_BYTES: u64 = 48 << 20;

/// The most memory, in bytes, that the anchors and the aliases of one text may unfold to.
pub const MOST_ALIASED_BYTES: u64 = 12 << 20;

/// How deep values may stand in each other, aliases unfolded.
pub const MOST_YAML_DEPTH: usize = 128;

/// A value with the memory that it takes and its depth: 1 for a scalar.
#[derive(Clone)]
struct CountedValue {
    value: Value,
    bytes: u64,
    depth: usize,
}

impl CountedValue {
    fn scalar(value: Value) -> Self {
        Self { bytes: memory::of(&value), value, depth: 1 }
    }
}

/// What a list or an object that is being read has so far.
#[derive(Clone, Copy)]
struct ContainerSize {
    bytes: u64,
    depth: usize,
}

impl ContainerSize {
    const EMPTY: Self = Self { bytes: memory::of_container() + memory::of_item(), depth: 1 };

    fn add(&mut self, bytes: u64, depth: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.depth = self.depth.max(depth + 1);
    }
}

enum MappingKey {
    Wanted,
    Text(String),
    Merge,
}

enum BuilderFrame {
    List { items: Vec<Value>, size: ContainerSize, anchor: usize },
    Object { entries: Map<String, Value>, merged: Vec<Value>, key: MappingKey, size: ContainerSize, anchor: usize },
}

/// The memory that a text has taken so far, in bytes; it runs over all of its documents.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    /// What the values take that are written out.
    written: u64,
    /// What anchors and aliases unfold to.
    aliased: u64,
}

impl Spent {
    /// All of it but `left` bytes.
    pub(super) fn but(left: u64) -> Self {
        Self { written: MOST_YAML_BYTES.saturating_sub(left), aliased: 0 }
    }
}

#[derive(Default)]
pub(super) struct Builder {
    stack: Vec<BuilderFrame>,
    anchors: BTreeMap<usize, CountedValue>,
    spent: Spent,
    root: Value,
}

impl Builder {
    /// Builds the next document of a text that has taken this much.
    pub(super) fn after(spent: Spent) -> Self {
        Self { spent, ..Self::default() }
    }

    /// The document, null where it is empty, and what the text has taken with it.
    pub(super) fn finish(self) -> (Value, Spent) {
        (self.root, self.spent)
    }

    pub(super) fn event(&mut self, event: Event<'_>) -> Result<(), YamlFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let tag = tag.map(|tag| tag.original());
                if plain && tag.is_none() && text == "<<" && self.take_merge_key() {
                    return Ok(());
                }
                self.write(memory::of_item() + memory::of_text(text.len()))?;
                let scalar = scalar::resolve(&text, plain, tag.as_deref())?;
                self.scalar(scalar, anchor)
            }
            Event::Alias(anchor) => {
                let bytes = self.anchors.get(&anchor).ok_or(YamlFault::RecursiveAlias)?.bytes;
                self.spend(bytes)?;
                let counted = self.anchors.get(&anchor).cloned().ok_or(YamlFault::RecursiveAlias)?;
                self.node(counted, 0)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.container_is_no_key()?;
                self.stack.push(BuilderFrame::List { items: Vec::new(), size: ContainerSize::EMPTY, anchor });
                self.within_depth(0)
            }
            Event::MappingStart(_, anchor, _) => {
                self.container_is_no_key()?;
                let (entries, merged) = (Map::new(), Vec::new());
                let (key, size) = (MappingKey::Wanted, ContainerSize::EMPTY);
                self.stack.push(BuilderFrame::Object { entries, merged, key, size, anchor });
                self.within_depth(0)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            // Comments and names of anchors are not emitted, unknown aliases are errors of the parser.
            _ => Ok(()),
        }
    }

    /// Takes memory for what is written out.
    fn write(&mut self, bytes: u64) -> Result<(), YamlFault> {
        self.spent.written = self.spent.written.saturating_add(bytes);
        if self.spent.written > MOST_YAML_BYTES { Err(YamlFault::TooLarge) } else { Ok(()) }
    }

    /// Takes memory for a copy.
    fn spend(&mut self, bytes: u64) -> Result<(), YamlFault> {
        self.spent.aliased = self.spent.aliased.saturating_add(bytes);
        if self.spent.aliased > MOST_ALIASED_BYTES { Err(YamlFault::Unfolded) } else { Ok(()) }
    }

    /// Refuses a value of this depth where it would stand.
    fn within_depth(&self, depth: usize) -> Result<(), YamlFault> {
        if self.stack.len() + depth > MOST_YAML_DEPTH { Err(YamlFault::TooDeep) } else { Ok(()) }
    }

    /// Whether `<<` stands where a key is wanted.
    fn take_merge_key(&mut self) -> bool {
        match self.stack.last_mut() {
            Some(BuilderFrame::Object { key: key @ MappingKey::Wanted, .. }) => {
                *key = MappingKey::Merge;
                true
            }
            Some(BuilderFrame::Object { .. } | BuilderFrame::List { .. }) | None => false,
        }
    }

    fn container_is_no_key(&mut self) -> Result<(), YamlFault> {
        self.write(memory::of_container())?;
        match self.stack.last() {
            Some(BuilderFrame::Object { key: MappingKey::Wanted, .. }) => Err(YamlFault::KeyIsNoScalar),
            Some(BuilderFrame::Object { .. } | BuilderFrame::List { .. }) | None => Ok(()),
        }
    }

    fn scalar(&mut self, scalar: Scalar, anchor: usize) -> Result<(), YamlFault> {
        let Some(BuilderFrame::Object { key: MappingKey::Wanted, .. }) = self.stack.last() else {
            return self.node(CountedValue::scalar(scalar.into_value()?), anchor);
        };
        let text = scalar.into_key()?;
        if anchor != 0 {
            let counted = CountedValue::scalar(Value::String(text.clone()));
            self.spend(counted.bytes)?;
            self.anchors.insert(anchor, counted);
        }
        if let Some(BuilderFrame::Object { key, .. }) = self.stack.last_mut() {
            *key = MappingKey::Text(text);
        }
        Ok(())
    }

    fn node(&mut self, counted: CountedValue, anchor: usize) -> Result<(), YamlFault> {
        self.within_depth(counted.depth)?;
        if anchor != 0 {
            self.spend(counted.bytes)?;
            self.anchors.insert(anchor, counted.clone());
        }
        let CountedValue { value, bytes, depth } = counted;
        match self.stack.last_mut() {
            None => self.root = value,
            Some(BuilderFrame::List { items, size, .. }) => {
                items.push(value);
                size.add(bytes, depth);
            }
            Some(BuilderFrame::Object { entries, merged, key, size, .. }) => {
                size.add(bytes, depth);
                match std::mem::replace(key, MappingKey::Wanted) {
                    // An alias of a scalar may be a key.
                    MappingKey::Wanted => *key = MappingKey::Text(Scalar::of(value)?.into_key()?),
                    MappingKey::Text(text) => {
                        size.add(memory::of_field(text.len()), 0);
                        entries.insert(text, value);
                    }
                    MappingKey::Merge => merged.push(value),
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlFault> {
        match self.stack.pop() {
            Some(BuilderFrame::List { items, size: ContainerSize { bytes, depth }, anchor }) => {
                self.node(CountedValue { value: Value::Array(items), bytes, depth }, anchor)
            }
            Some(BuilderFrame::Object { mut entries, merged, size, anchor, .. }) => {
                for value in merged {
                    merge(&mut entries, value)?;
                }
                let ContainerSize { bytes, depth } = size;
                self.node(CountedValue { value: Value::Object(entries), bytes, depth }, anchor)
            }
            None => Ok(()),
        }
    }
}

/// Puts in what is not there yet; of a list the first object that has a key counts.
fn merge(entries: &mut Map<String, Value>, value: Value) -> Result<(), YamlFault> {
    match value {
        Value::Object(more) => {
            for (key, value) in more {
                entries.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            items.into_iter().try_for_each(|item| merge(entries, item))
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(YamlFault::MergeOfNoObject)
        }
    }
}
