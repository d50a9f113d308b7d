//! The memory that the objects of all clusters share.

use std::sync::Arc;

use orangery_turns::{HeldBytes, SharedBytes};
use serde_json::Value;

/// The most memory, in bytes, that the objects of all watches and of all lists under way take, on all clusters, where there is
/// enough (C-88). Namespaces share it.
pub const MOST_OBJECT_BYTES: u64 = 512 << 20;

/// So many bytes of the values of an answer, or of what a watch is told at once, take nothing of that: most have no more.
pub(crate) const VALUES_HELD_BY_NOBODY: u64 = 128 << 10;

/// An object with what it takes of that memory, which comes back when this is dropped.
pub struct HeldObject {
    object: Arc<Value>,
    held: HeldBytes,
}

impl HeldObject {
    pub(crate) fn new(object: Arc<Value>, held: HeldBytes) -> Self {
        Self { object, held }
    }

    /// The object.
    pub fn object(&self) -> &Arc<Value> {
        &self.object
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }
}

/// Objects that are kept together for longer than until the next answer: what they take of that memory, which comes back when this is
/// dropped.
#[derive(Default)]
pub struct KeptObjects(Option<HeldBytes>);

impl KeptObjects {
    /// Bytes of memory that they take.
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, HeldBytes::bytes)
    }

    /// They take so many bytes from now on; `none` holds none yet for whoever keeps them.
    ///
    /// # Errors
    /// There is no room for them: the limit, as a message says it.
    pub(crate) fn take(&mut self, bytes: u64, none: impl FnOnce() -> HeldBytes) -> Result<(), String> {
        let held = self.0.get_or_insert_with(none);
        if held.set(bytes) { Ok(()) } else { Err(share_of(held.of())) }
    }
}

/// What a namespace may have at most of what all clusters share, as a message says it.
pub(crate) fn share_of(objects: &SharedBytes) -> String {
    format!("{} bytes of memory, shared with other namespaces,", objects.most_of_one())
}
