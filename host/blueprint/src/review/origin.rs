//! Where the files of a blueprint come from, so that what is said of them has a place that the user can open.

use std::{collections::BTreeMap, sync::Arc};

use orangery_core::yaml::{self, Embedded, SourcePosition, SourcePositions};
use orangery_ocm::Files;

/// A place in a file of the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    /// The file, as the user would name it.
    pub file: String,
    /// The place in it.
    pub place: SourcePosition,
}

/// A text of the user: a file, or a value in one.
#[derive(Clone, Debug)]
pub struct Text {
    /// The file.
    pub file: String,
    /// Where the text stands in it.
    pub embedded: Vec<Embedded>,
}

impl Text {
    /// A file as a whole.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), embedded: Vec::new() }
    }

    /// A text that is a value of this one.
    pub fn within(&self, embedded: Embedded) -> Self {
        let embedded = self.embedded.iter().copied().chain([embedded]).collect();
        Self { file: self.file.clone(), embedded }
    }

    /// A place of the text, in the user's file.
    pub fn position(&self, place: SourcePosition) -> FilePosition {
        let place = self.embedded.iter().rev().fold(place, |place, embedded| embedded.outer(place));
        FilePosition { file: self.file.clone(), place }
    }
}

/// Where the files of a blueprint come from.
#[derive(Clone, Debug)]
pub enum BlueprintOrigin {
    /// A folder or an archive; what stands before the names of its files.
    Files(String),
    /// A map in a document.
    Inline {
        /// The document.
        document: Text,
        /// Its places.
        positions: Arc<SourcePositions>,
        /// The field of the map.
        field: String,
    },
}

impl BlueprintOrigin {
    /// The text of a file of the blueprint.
    pub fn text(&self, file: &str) -> Text {
        match self {
            BlueprintOrigin::Files(prefix) => Text::file(format!("{prefix}{file}")),
            BlueprintOrigin::Inline { document, positions, field } => {
                document.within(positions.text(&format!("{field}.{}", file.replace('/', "."))))
            }
        }
    }
}

/// The files of one blueprint with the places in them.
pub(super) struct BlueprintFiles<'a> {
    files: &'a dyn Files,
    origin: &'a BlueprintOrigin,
    known: BTreeMap<String, Arc<SourcePositions>>,
}

impl<'a> BlueprintFiles<'a> {
    pub(super) fn new(files: &'a dyn Files, origin: &'a BlueprintOrigin) -> Self {
        Self { files, origin, known: BTreeMap::new() }
    }

    pub(super) fn origin(&self) -> &BlueprintOrigin {
        self.origin
    }

    pub(super) fn text(&self, file: &str) -> Text {
        self.origin.text(file)
    }

    /// The places of a file; none of one that is no YAML.
    pub(super) fn positions(&mut self, file: &str) -> Arc<SourcePositions> {
        let known = self.known.entry(file.to_owned());
        let read = || {
            let text = self.files.read(file).ok().and_then(|bytes| String::from_utf8(bytes).ok())?;
            yaml::locate(&text).ok().map(|located| located.positions)
        };
        Arc::clone(known.or_insert_with(|| Arc::new(read().unwrap_or_default())))
    }

    /// Where a field of a file stands.
    pub(super) fn position(&mut self, file: &str, field: &str) -> FilePosition {
        let place = self.positions(file).find(field);
        self.text(file).position(place)
    }
}
