//! Content in memory, and the room that it holds there.

use std::{fmt, sync::Arc};

use super::fetch_memory::ReservedMemory;

/// Content that is held once, however many use it. Its room in memory is free for others when nobody has it any more: what waits
/// for its turn to be unpacked or compared counts as well (C-133).
#[derive(Clone, Debug)]
pub struct ReservedContent {
    bytes: Arc<Vec<u8>>,
    room: HeldMemory,
}

/// The room that some content holds; none for what is of this machine.
#[derive(Clone, Default)]
pub struct HeldMemory(Option<Arc<ReservedMemory>>);

impl ReservedContent {
    pub(crate) fn new(bytes: Vec<u8>, room: HeldMemory) -> Self {
        Self { bytes: Arc::new(bytes), room }
    }

    /// The content.
    pub fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.bytes
    }

    /// The content for one who uses it at once: it holds no room any more.
    pub fn into_bytes(self) -> Arc<Vec<u8>> {
        self.bytes
    }

    /// The content and its room, for one who keeps them together.
    pub(crate) fn into_parts(self) -> (Arc<Vec<u8>>, HeldMemory) {
        (self.bytes, self.room)
    }

    /// The same content again.
    pub(crate) fn of_parts(bytes: Arc<Vec<u8>>, room: HeldMemory) -> Self {
        Self { bytes, room }
    }

    /// The content as [`ReservedContent::into_bytes`] gives it, copied where others have it.
    pub fn into_vec(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.bytes)
    }
}

impl From<Vec<u8>> for ReservedContent {
    /// Content of this machine.
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes, HeldMemory::default())
    }
}

impl From<Option<ReservedMemory>> for HeldMemory {
    fn from(reserved: Option<ReservedMemory>) -> Self {
        Self(reserved.map(Arc::new))
    }
}

impl fmt::Debug for HeldMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.as_ref().map_or(0, |reserved| reserved.bytes()))
    }
}
