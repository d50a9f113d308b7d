//! The memory that the objects of all clusters share.

use orangery_turns::SharedBytes;

/// The most memory, in bytes, that the objects of all watches and of all lists under way take, on all clusters, where there is
/// enough (C-88). Namespaces share it.
pub const MOST_OBJECT_BYTES: u64 = 512 << 20;

/// What a namespace may have at most of what all clusters share, as a message says it.
pub(crate) fn share_of(objects: &SharedBytes) -> String {
    format!("{} bytes of memory, shared with other namespaces,", objects.most_of_one())
}
