//! One object as a store holds it: whole, or folded into its text.

use std::{
    io::{self, Read as _, Write as _},
    sync::Arc,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use kube::core::ObjectMeta;
use orangery_core::memory::{self, JsonMeter};
use orangery_turns::off_the_executor;

use super::index::{IndexEntry, IndexedValues};
use crate::{Key, Watched, watched_object::LONG};

/// The most memory, in bytes, that an object held whole may take; a larger one is folded whatever it is.
const MOST_WHOLE_BYTES: u64 = 256 << 10;

/// The longest text, in bytes, that is not packed.
const LONGEST_PLAIN: usize = 256 << 10;

/// An object, with what is asked of it most.
pub(super) struct StoredObject<K> {
    uid: Box<str>,
    version: Option<u64>,
    form: StoredForm<K>,
    /// Where it stands in the indexes.
    pub(super) entries: Box<[IndexEntry]>,
}

/// The form in which an object is held. Cheap to clone, so that no reader unfolds under the lock.
pub(crate) enum StoredForm<K> {
    Whole(Arc<K>),
    /// As JSON. The many small maps of an object need three times as much memory as its text; one that was written to be
    /// large, a hundred times as much.
    Folded(Arc<[u8]>),
    /// The same of a very long one, packed: manifests, which make objects long, pack to a fraction.
    Packed(Arc<PackedText>),
}

/// A packed text.
pub(crate) struct PackedText {
    pub(super) bytes: Box<[u8]>,
    long: LongObject,
}

impl PackedText {
    /// `None` where a text is not very long, or where packing saves less than a quarter of it.
    fn of(text: &[u8]) -> Option<Self> {
        if text.len() <= LONGEST_PLAIN {
            return None;
        }
        off_the_executor(|| {
            let mut packing = DeflateEncoder::new(Vec::new(), Compression::fast());
            packing.write_all(text).ok()?;
            let packed = packing.finish().ok().filter(|packed| packed.len() < text.len() / 4 * 3)?;
            Some(Self { bytes: packed.into(), long: LongObject::of(text) })
        })
    }

    fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::with_capacity(usize::try_from(self.long.text).unwrap_or_default());
        DeflateDecoder::new(self.bytes.as_ref()).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// How a store holds its objects.
pub(super) struct HowHeld<K> {
    /// Which ones are held folded.
    pub(super) folds: fn(&K) -> bool,
    pub(super) indexed: IndexedValues<K>,
}

impl<K> Clone for HowHeld<K> {
    fn clone(&self) -> Self {
        Self { folds: self.folds, indexed: self.indexed.clone() }
    }
}

/// A version about to be taken in, with the form in which it is held and where it stands in the indexes: making that of a long one
/// takes a while, in which nobody is kept from what is known.
pub(crate) struct NewVersion<K> {
    pub(super) object: Arc<K>,
    pub(super) held: StoredObject<K>,
}

impl<K: Watched> NewVersion<K> {
    /// Held as text where `folds` holds, and where it takes much memory.
    pub(super) fn new(object: K, how: &HowHeld<K>) -> Self {
        let object = Arc::new(object);
        let held = StoredObject::new(&object, how);
        Self { object, held }
    }
}

/// What a long object takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongObject {
    /// As text.
    pub(crate) text: u64,
    /// When it is whole, at most.
    pub(crate) memory: u64,
}

impl<K> Clone for StoredForm<K> {
    fn clone(&self) -> Self {
        match self {
            StoredForm::Whole(object) => StoredForm::Whole(Arc::clone(object)),
            StoredForm::Folded(text) => StoredForm::Folded(Arc::clone(text)),
            StoredForm::Packed(text) => StoredForm::Packed(Arc::clone(text)),
        }
    }
}

impl<K: Watched> StoredForm<K> {
    /// What the object takes where it is long. One held whole is not.
    pub(crate) fn long(&self) -> Option<LongObject> {
        match self {
            StoredForm::Folded(text) if text.len() > LONG => Some(LongObject::of(text)),
            StoredForm::Packed(text) => Some(text.long),
            StoredForm::Whole(_) | StoredForm::Folded(_) => None,
        }
    }

    /// The object; a long one is read off the executor (C-112). What was folded can be unfolded: `None` is a fault of its kind's code,
    /// and logged.
    pub(crate) fn object(&self) -> Option<Arc<K>> {
        match self {
            StoredForm::Whole(object) => Some(Arc::clone(object)),
            StoredForm::Folded(text) if text.len() > LONG => off_the_executor(|| unfolded(text)),
            StoredForm::Folded(text) => unfolded(text),
            StoredForm::Packed(packed) => off_the_executor(|| match packed.text() {
                Ok(text) => unfolded(&text),
                Err(error) => {
                    tracing::error!(kind = %K::kind(&()), %error, "what a store has packed cannot be unpacked");
                    None
                }
            }),
        }
    }
}

fn unfolded<K: Watched>(text: &[u8]) -> Option<Arc<K>> {
    serde_json::from_slice(text)
        .map(Arc::new)
        .inspect_err(|error| {
            tracing::error!(kind = %K::kind(&()), %error, "what a store has folded cannot be unfolded");
        })
        .ok()
}

impl LongObject {
    fn of(text: &[u8]) -> Self {
        Self { text: text.len() as u64, memory: memory::of_json(text) }
    }
}

impl<K: Watched> StoredObject<K> {
    /// An object held whole, or folded: where that is asked for, and where it takes much memory (C-99).
    fn new(object: &Arc<K>, HowHeld { folds, indexed }: &HowHeld<K>) -> Self {
        let fold = folds(object) || memory_of(object.as_ref()) > MOST_WHOLE_BYTES;
        let text = if fold { serde_json::to_vec(object.as_ref()).ok() } else { None };
        let form = match text.map(|text| (PackedText::of(&text), text)) {
            None => StoredForm::Whole(Arc::clone(object)),
            Some((Some(packed), _)) => StoredForm::Packed(Arc::new(packed)),
            Some((None, text)) => StoredForm::Folded(text.into()),
        };
        let meta = object.meta();
        let entries = indexed.entries(&Key::of_meta(meta).namespace, object);
        Self { uid: uid(meta).into(), version: version(meta), form, entries }
    }

    pub(super) fn form(&self) -> StoredForm<K> {
        self.form.clone()
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    /// Its resource version as a number.
    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }
}

/// Bytes that an object takes as a value, at most; nothing is kept of its text.
fn memory_of<K: Watched>(object: &K) -> u64 {
    struct Measured(JsonMeter);
    impl io::Write for Measured {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            self.0.read(piece);
            Ok(piece.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut measured = Measured(JsonMeter::default());
    // What cannot be written cannot be folded either.
    serde_json::to_writer(&mut measured, object).map_or(0, |()| measured.0.bytes())
}

pub(super) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

/// Resource versions of one kind are numbers that grow, on every server that is built on etcd's revisions
/// (Kubernetes KEP-5504 makes it a promise).
pub(super) fn version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}
