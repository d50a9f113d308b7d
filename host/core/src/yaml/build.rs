//! From events to a value: keys, anchors, merges and the limit on what aliases unfold to.

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle};
use serde_json::{Map, Value};

use super::{
    YamlFault,
    scalar::{self, Scalar},
};

/// How many values the aliases of one document may unfold to.
const MOST_ALIASED: usize = 1_000_000;

/// A value with the number of values in it.
#[derive(Clone)]
struct CountedValue {
    value: Value,
    nodes: usize,
}

enum MappingKey {
    Wanted,
    Text(String),
    Merge,
}

enum BuilderFrame {
    List { items: Vec<Value>, nodes: usize, anchor: usize },
    Object { entries: Map<String, Value>, merged: Vec<Value>, key: MappingKey, nodes: usize, anchor: usize },
}

#[derive(Default)]
pub(super) struct Builder {
    stack: Vec<BuilderFrame>,
    anchors: BTreeMap<usize, CountedValue>,
    aliased: usize,
    root: Value,
}

impl Builder {
    /// The document; null where it is empty.
    pub(super) fn finish(self) -> Value {
        self.root
    }

    pub(super) fn event(&mut self, event: Event<'_>) -> Result<(), YamlFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let tag = tag.map(|tag| tag.original());
                if plain && tag.is_none() && text == "<<" && self.take_merge_key() {
                    return Ok(());
                }
                let scalar = scalar::resolve(&text, plain, tag.as_deref())?;
                self.scalar(scalar, anchor)
            }
            Event::Alias(anchor) => {
                let counted = self.anchors.get(&anchor).cloned().ok_or(YamlFault::RecursiveAlias)?;
                self.aliased = self.aliased.saturating_add(counted.nodes);
                if self.aliased > MOST_ALIASED {
                    return Err(YamlFault::TooManyNodes);
                }
                self.node(counted, 0)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.container_is_no_key()?;
                self.stack.push(BuilderFrame::List { items: Vec::new(), nodes: 1, anchor });
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.container_is_no_key()?;
                let (entries, merged) = (Map::new(), Vec::new());
                self.stack.push(BuilderFrame::Object { entries, merged, key: MappingKey::Wanted, nodes: 1, anchor });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            // Comments and names of anchors are not emitted, unknown aliases are errors of the parser.
            _ => Ok(()),
        }
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

    fn container_is_no_key(&self) -> Result<(), YamlFault> {
        match self.stack.last() {
            Some(BuilderFrame::Object { key: MappingKey::Wanted, .. }) => Err(YamlFault::KeyIsNoScalar),
            Some(BuilderFrame::Object { .. } | BuilderFrame::List { .. }) | None => Ok(()),
        }
    }

    fn scalar(&mut self, scalar: Scalar, anchor: usize) -> Result<(), YamlFault> {
        if let Some(BuilderFrame::Object { key: key @ MappingKey::Wanted, .. }) = self.stack.last_mut() {
            let text = scalar.into_key()?;
            if anchor != 0 {
                self.anchors.insert(anchor, CountedValue { value: Value::String(text.clone()), nodes: 1 });
            }
            *key = MappingKey::Text(text);
            return Ok(());
        }
        self.node(CountedValue { value: scalar.into_value()?, nodes: 1 }, anchor)
    }

    fn node(&mut self, counted: CountedValue, anchor: usize) -> Result<(), YamlFault> {
        if anchor != 0 {
            self.anchors.insert(anchor, counted.clone());
        }
        let CountedValue { value, nodes: more } = counted;
        match self.stack.last_mut() {
            None => self.root = value,
            Some(BuilderFrame::List { items, nodes, .. }) => {
                items.push(value);
                *nodes += more;
            }
            Some(BuilderFrame::Object { entries, merged, key, nodes, .. }) => {
                *nodes += more;
                match std::mem::replace(key, MappingKey::Wanted) {
                    // An alias of a scalar may be a key.
                    MappingKey::Wanted => *key = MappingKey::Text(Scalar::of(value)?.into_key()?),
                    MappingKey::Text(text) => {
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
            Some(BuilderFrame::List { items, nodes, anchor }) => {
                self.node(CountedValue { value: Value::Array(items), nodes }, anchor)
            }
            Some(BuilderFrame::Object { mut entries, merged, nodes, anchor, .. }) => {
                for value in merged {
                    merge(&mut entries, value)?;
                }
                self.node(CountedValue { value: Value::Object(entries), nodes }, anchor)
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
