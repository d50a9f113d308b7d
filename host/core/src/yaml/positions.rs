//! Where the parts of a document stand in its text, and where the lines of a text stand that is a value of a document.

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle, Span};

use super::scalar;

/// The most bytes of the paths of one document whose places are kept. What comes later is placed where the nearest part around
/// it is: a long name with many parts below it would be written once for each of them.
pub const MOST_POSITION_BYTES: usize = 32 << 20;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl SourcePosition {
    /// Where a text begins.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// Where a text stands that is a value of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedded {
    /// Line for line: what is added to places in it.
    Shifted {
        /// To the line.
        lines: usize,
        /// To the column.
        columns: usize,
    },
    /// Folded, or written with escapes: only where it begins.
    At(SourcePosition),
}

impl Embedded {
    /// The text is the whole file.
    pub const WHOLE: Self = Embedded::Shifted { lines: 0, columns: 0 };

    /// The place in the document of a place in the text.
    pub fn outer(self, inner: SourcePosition) -> SourcePosition {
        match self {
            Embedded::Shifted { lines, columns } => {
                SourcePosition { line: inner.line + lines, column: inner.column + columns }
            }
            Embedded::At(place) => place,
        }
    }
}

/// Where the parts of one document stand, by paths such as `spec.imports.data[0].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePositions {
    parts: BTreeMap<String, DocumentPart>,
    duplicates: Vec<(String, SourcePosition)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DocumentPart {
    /// Of the key in an object, of the value itself elsewhere.
    place: SourcePosition,
    embedded: Embedded,
}

impl SourcePositions {
    /// The place of a part: of its key where it has one. Names match whatever their case, as decoding has it; what is not
    /// there is where the nearest part around it is.
    pub fn find(&self, path: &str) -> SourcePosition {
        let mut path = path;
        loop {
            if let Some(part) = self.part(path) {
                return part.place;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = path.get(..end).unwrap_or_default(),
                None => return self.parts.get("").map_or(SourcePosition::START, |part| part.place),
            }
        }
    }

    /// Where the text stands that is the value of a part.
    pub fn text(&self, path: &str) -> Embedded {
        self.part(path).map_or_else(|| Embedded::At(self.find(path)), |part| part.embedded)
    }

    /// The keys that stand twice in their object, in the order of the text: the path, and the place of the later one.
    pub fn duplicates(&self) -> &[(String, SourcePosition)] {
        &self.duplicates
    }

    /// The places of a part, by paths that begin in it.
    pub(super) fn below(&self, path: &str) -> Self {
        let inside = |of: &str| {
            let rest = of.strip_prefix(path)?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then(|| rest.trim_start_matches('.').to_owned())
        };
        let parts = self.parts.iter().filter_map(|(of, part)| Some((inside(of)?, *part))).collect();
        let duplicates = self.duplicates.iter().filter_map(|(of, place)| Some((inside(of)?, *place))).collect();
        Self { parts, duplicates }
    }

    fn part(&self, path: &str) -> Option<&DocumentPart> {
        let folded = || {
            let wanted = path.to_lowercase();
            self.parts.iter().find(|(path, _)| path.to_lowercase() == wanted).map(|(_, part)| part)
        };
        self.parts.get(path).or_else(folded)
    }
}

enum PositionFrame {
    List {
        path: String,
        index: usize,
    },
    /// `entry` is the path of the value that comes next; `None` where a key comes next.
    Object {
        path: String,
        entry: Option<String>,
    },
}

/// Follows the events of a document beside the one who builds its value.
#[derive(Default)]
pub(super) struct Tracker {
    stack: Vec<PositionFrame>,
    positions: SourcePositions,
    /// Of all paths so far.
    bytes: usize,
}

impl Tracker {
    pub(super) fn finish(self) -> SourcePositions {
        self.positions
    }

    pub(super) fn event(&mut self, event: &Event<'_>, span: Span) {
        let start = SourcePosition { line: span.start.line(), column: span.start.col() + 1 };
        match event {
            Event::Scalar(text, style, _, tag) => {
                if let Some(path) = self.wanted_key() {
                    let plain = *style == ScalarStyle::Plain;
                    let tag = tag.as_ref().map(|tag| tag.original());
                    let entry = if plain && tag.is_none() && text == "<<" {
                        path
                    } else {
                        let key = scalar::resolve(text, plain, tag.as_deref()).and_then(scalar::Scalar::into_key);
                        self.key(&path, &key.unwrap_or_else(|_| text.to_string()), start)
                    };
                    self.entry(entry);
                } else {
                    self.value(start, embedded(text, *style, span));
                    self.next();
                }
            }
            Event::Alias(_) => match self.wanted_key() {
                // The text of the key is elsewhere.
                Some(path) => self.entry(path),
                None => {
                    self.value(start, Embedded::At(start));
                    self.next();
                }
            },
            Event::SequenceStart(..) => {
                let path = self.value(start, Embedded::At(start));
                self.stack.push(PositionFrame::List { path, index: 0 });
            }
            Event::MappingStart(..) => {
                let path = self.value(start, Embedded::At(start));
                self.stack.push(PositionFrame::Object { path, entry: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.stack.pop();
                self.next();
            }
            _ => {}
        }
    }

    /// The path of the object whose next key comes now.
    fn wanted_key(&self) -> Option<String> {
        match self.stack.last() {
            Some(PositionFrame::Object { path, entry: None }) => Some(path.clone()),
            Some(PositionFrame::Object { .. } | PositionFrame::List { .. }) | None => None,
        }
    }

    fn entry(&mut self, path: String) {
        if let Some(PositionFrame::Object { entry, .. }) = self.stack.last_mut() {
            *entry = Some(path);
        }
    }

    fn key(&mut self, object: &str, name: &str, place: SourcePosition) -> String {
        if !self.has_room(object.len() + name.len()) {
            return String::new();
        }
        let path = if object.is_empty() { name.to_owned() } else { format!("{object}.{name}") };
        if self.positions.parts.insert(path.clone(), DocumentPart { place, embedded: Embedded::At(place) }).is_some() {
            self.positions.duplicates.push((path.clone(), place));
            // The earlier value does not count.
            for separator in ['.', '['] {
                let below = format!("{path}{separator}");
                let parts = self.positions.parts.range(below.clone()..).map(|(part, _)| part);
                let parts: Vec<String> = parts.take_while(|part| part.starts_with(&below)).cloned().collect();
                for part in parts {
                    self.positions.parts.remove(&part);
                }
            }
        }
        path
    }

    /// Whether the place of a path of this length is still kept.
    fn has_room(&mut self, length: usize) -> bool {
        self.bytes = self.bytes.saturating_add(length);
        self.bytes <= MOST_POSITION_BYTES
    }

    /// A value begins; its path.
    fn value(&mut self, place: SourcePosition, embedded: Embedded) -> String {
        let length = match self.stack.last() {
            Some(PositionFrame::List { path, .. } | PositionFrame::Object { path, .. }) => path.len(),
            None => 0,
        };
        // Without room what is below counts as the document itself, whose place stays.
        if !self.has_room(length) {
            return String::new();
        }
        let path = match self.stack.last() {
            None => String::new(),
            Some(PositionFrame::List { path, index }) => format!("{path}[{index}]"),
            Some(PositionFrame::Object { path, entry }) => entry.clone().unwrap_or_else(|| path.clone()),
        };
        self.positions.parts.entry(path.clone()).or_insert(DocumentPart { place, embedded }).embedded = embedded;
        path
    }

    /// A value has ended.
    fn next(&mut self) {
        match self.stack.last_mut() {
            Some(PositionFrame::List { index, .. }) => *index += 1,
            Some(PositionFrame::Object { entry, .. }) => *entry = None,
            None => {}
        }
    }
}

/// Where the lines of a scalar stand. The parser says where the first line that is not blank begins.
fn embedded(text: &str, style: ScalarStyle, span: Span) -> Embedded {
    let (start, end) = (span.start, span.end);
    let one_line = start.line() == end.line();
    let width = end.col().saturating_sub(start.col());
    let characters = text.chars().count();
    match style {
        ScalarStyle::Literal => {
            let blank = text.lines().take_while(|line| line.trim().is_empty()).count();
            Embedded::Shifted { lines: start.line().saturating_sub(blank + 1), columns: start.col() }
        }
        ScalarStyle::Plain if one_line => Embedded::Shifted { lines: start.line() - 1, columns: start.col() },
        // Without escapes, a quoted text is as wide as it is long.
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if one_line && width == characters + 2 => {
            Embedded::Shifted { lines: start.line() - 1, columns: start.col() + 1 }
        }
        _ => Embedded::At(SourcePosition { line: start.line(), column: start.col() + 1 }),
    }
}
