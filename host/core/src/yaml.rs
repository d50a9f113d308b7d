//! The only YAML decoder: YAML 1.1 as Landscaper and kubectl read it (`tests/golden/README.md`, `docs/wire.md` §4.3).
//!
//! `y`, `yes`, `on` are true and `n`, `no`, `off` false, as keys too; `0777` is 511, `0o17` is 15, `1_000` is 1000;
//! dates and `12:30` stay text; `<<` merges; of equal keys the last counts. Keys become text, as JSON wants.

mod build;
mod positions;
mod scalar;

use std::fmt;

use granit_parser::{Event, Marker, Parser};
use serde_json::Value;

pub use self::{
    build::{MOST_ALIASED_BYTES, MOST_YAML_BYTES, MOST_YAML_DEPTH},
    positions::{Embedded, MOST_POSITION_BYTES, SourcePosition, SourcePositions},
};
use crate::memory;

/// Why a text is no YAML, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct YamlError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub reason: YamlFault,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlFault {
    /// The text does not follow the grammar; the parser's own words.
    Syntax(String),
    /// A list or an object stands where a key is wanted.
    KeyIsNoScalar,
    /// A key has no text, such as `null`.
    KeyIsNull,
    /// `<<` stands before something that is neither an object nor a list of objects.
    MergeOfNoObject,
    /// A number that JSON does not have.
    NotANumber,
    /// A tag and the value under it do not fit, such as `!!int x`.
    Tag(String),
    /// Anchors and aliases unfold to more than [`MOST_ALIASED_BYTES`].
    Unfolded,
    /// The documents of the text take more than [`MOST_YAML_BYTES`].
    TooLarge,
    /// Values stand deeper in each other than [`MOST_YAML_DEPTH`].
    TooDeep,
    /// An alias stands inside what it names.
    RecursiveAlias,
}

impl fmt::Display for YamlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            YamlFault::Syntax(words) => f.write_str(words),
            YamlFault::KeyIsNoScalar => f.write_str("a list or an object cannot be a key; write a text"),
            YamlFault::KeyIsNull => f.write_str("an empty value cannot be a key; write the key in quotes"),
            YamlFault::MergeOfNoObject => f.write_str("`<<` can only merge an object or a list of objects"),
            YamlFault::NotANumber => {
                f.write_str("infinite numbers and `.nan` cannot be written as JSON; use quotes for text")
            }
            YamlFault::Tag(tag) => write!(f, "the value does not fit its tag `{tag}`"),
            YamlFault::Unfolded => write!(
                f,
                "the aliases of the text unfold to more than the {MOST_ALIASED_BYTES} bytes that are allowed; write less, \
                 or several texts"
            ),
            YamlFault::TooLarge => write!(
                f,
                "the text has so many values that it takes more than the {MOST_YAML_BYTES} bytes of memory that are \
                 allowed; write several"
            ),
            YamlFault::TooDeep => {
                write!(f, "values stand more than the {MOST_YAML_DEPTH} levels deep in each other that are allowed")
            }
            YamlFault::RecursiveAlias => f.write_str("an alias cannot stand inside what it names"),
        }
    }
}

impl YamlError {
    fn at(marker: Marker, reason: YamlFault) -> Self {
        Self { line: marker.line(), column: marker.col() + 1, reason }
    }

    /// The place in the text: up to two lines before and after, numbered, with a marker under the column. Shows what
    /// the text says: not for texts that hold secrets.
    pub fn snippet(&self, text: &str) -> String {
        snippet(text, self.line, self.column)
    }
}

/// Letters of a line that a snippet shows.
const MOST_SHOWN: usize = 200;

/// Up to two lines before and after a place, numbered, with a marker under the column; both count from 1. Of long lines the part around
/// the column is shown.
pub fn snippet(text: &str, line: usize, column: usize) -> String {
    let first = line.saturating_sub(2).max(1);
    let width = (line + 2).to_string().len();
    let before = column.saturating_sub(1);
    let from = if before < MOST_SHOWN { 0 } else { before - MOST_SHOWN / 2 };
    let mut display = String::new();
    for (index, content) in text.lines().enumerate().skip(first - 1).take(line + 3 - first) {
        let number = index + 1;
        let shown: String = content.chars().skip(from).take(MOST_SHOWN).collect();
        display.push_str(&format!("{number:>width$} | {shown}\n"));
        if number == line {
            display.push_str(&format!("{:>width$} | {}^\n", "", " ".repeat(before - from)));
        }
    }
    display
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlDocument {
    /// The line its content starts at, from 1.
    pub line: usize,
    /// The content.
    pub value: Value,
}

/// One document of a stream, with the places of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct LocatedDocument {
    /// The content.
    pub value: Value,
    /// Where its parts stand.
    pub positions: SourcePositions,
}

impl LocatedDocument {
    /// The objects of a document of manifests: those in `items` where it is a list of Kubernetes, else itself.
    pub fn objects(self) -> Vec<Self> {
        let kind = self.value.get("kind").and_then(Value::as_str).unwrap_or_default();
        let items = self.value.get("items").and_then(Value::as_array).filter(|_| kind.ends_with("List"));
        let Some(items) = items else { return vec![self] };
        let item = |(index, value): (usize, &Value)| {
            let positions = self.positions.below(&format!("items[{index}]"));
            Self { value: value.clone(), positions }.objects()
        };
        items.iter().enumerate().flat_map(item).collect()
    }
}

/// The first document of a text, as Go's decoders read it; null for an empty text.
pub fn decode(text: &str) -> Result<Value, YamlError> {
    let mut documents = Documents::new(text);
    Ok(documents.next_document(None)?.map_or(Value::Null, |document| document.value))
}

/// As [`decode`], where the value may take no more than `most` bytes of memory, which is told before it is there.
pub fn decode_within(text: &str, most: u64) -> Result<Value, YamlError> {
    let mut documents = Documents { spent: build::Spent::but(most.min(MOST_YAML_BYTES)), ..Documents::new(text) };
    Ok(documents.next_document(None)?.map_or(Value::Null, |document| document.value))
}

/// As [`decode`], with the places of the parts.
pub fn locate(text: &str) -> Result<LocatedDocument, YamlError> {
    let mut tracker = positions::Tracker::default();
    let document = Documents::new(text).next_document(Some(&mut tracker))?;
    Ok(LocatedDocument { value: document.map_or(Value::Null, |document| document.value), positions: tracker.finish() })
}

/// All documents of a text that are not empty, with the places of their parts.
pub fn locate_all(text: &str) -> Result<Vec<LocatedDocument>, YamlError> {
    let mut documents = Documents::new(text);
    let mut all = Vec::new();
    loop {
        let mut tracker = positions::Tracker::default();
        let Some(document) = documents.next_document(Some(&mut tracker))? else { return Ok(all) };
        if !document.value.is_null() {
            all.push(LocatedDocument { value: document.value, positions: tracker.finish() });
        }
    }
}

/// All documents of a text that are not empty.
pub fn documents(text: &str) -> Result<Vec<YamlDocument>, YamlError> {
    let mut documents = Documents::new(text);
    let mut all = Vec::new();
    while let Some(document) = documents.next_document(None)? {
        if !document.value.is_null() {
            all.push(document);
        }
    }
    Ok(all)
}

/// A value of a Secret or ConfigMap: its YAML, or its text where it is none (`docs/wire.md` §5.2).
pub fn decode_or_text(text: &str) -> Value {
    decode(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// As [`decode_or_text`], where the value takes no more than `most` bytes of memory; `None` where it takes more, which is told
/// before it is there.
pub fn decode_or_text_within(text: &str, most: u64) -> Option<Value> {
    let most = most.min(MOST_YAML_BYTES);
    let mut documents = Documents { spent: build::Spent::but(most), ..Documents::new(text) };
    let value = match documents.next_document(None) {
        Ok(document) => document.map_or(Value::Null, |document| document.value),
        Err(YamlError { reason: YamlFault::TooLarge, .. }) if most < MOST_YAML_BYTES => return None,
        Err(_) => Value::String(text.to_owned()),
    };
    (memory::of(&value) <= most || most == MOST_YAML_BYTES).then_some(value)
}

struct Documents<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    spent: build::Spent,
}

impl<'a> Documents<'a> {
    fn new(text: &'a str) -> Self {
        // Go's decoder skips a byte order mark.
        let parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        Self { parser, spent: build::Spent::default() }
    }

    fn next_document(
        &mut self,
        mut tracker: Option<&mut positions::Tracker>,
    ) -> Result<Option<YamlDocument>, YamlError> {
        let mut builder = build::Builder::after(self.spent);
        let mut line = 0;
        while let Some(next) = self.parser.next_event() {
            let (event, span) =
                next.map_err(|error| YamlError::at(*error.marker(), YamlFault::Syntax(error.kind().to_string())))?;
            match event {
                Event::StreamStart | Event::Comment(..) => {}
                Event::StreamEnd => return Ok(None),
                Event::DocumentStart(..) => line = 0,
                Event::DocumentEnd => {
                    let (value, spent) = builder.finish();
                    self.spent = spent;
                    return Ok(Some(YamlDocument { line, value }));
                }
                node => {
                    if line == 0 {
                        line = span.start.line();
                    }
                    if let Some(tracker) = tracker.as_deref_mut() {
                        tracker.event(&node, span);
                    }
                    builder.event(node).map_err(|reason| YamlError::at(span.start, reason))?;
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
