//! What the caches of controllers may take.

use orangery_cluster::MOST_OBJECT_BYTES;

/// The most memory, in bytes, that the packed manifests of all watched items take together, where there is enough.
pub(crate) const MOST_MANIFEST_BYTES: u64 = 256 << 20;

/// The most memory, in bytes, that the proposals in the cache take, with all that is in them, where there is enough. What is not in it is
/// read back from its Secrets (C-64).
pub(crate) const MOST_CACHED_BYTES: u64 = 64 << 20;

/// The most bytes of the secret values of all namespaces, and of what refers to them, where there is enough. A namespace that
/// has no room left is withheld, as one that has too many values by itself.
pub(crate) const MOST_KNOWN_BYTES: usize = 8 << 20;

/// What the caches of controllers may take, in bytes (C-88).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMemory {
    /// Objects of all watches and of all lists under way on clusters.
    pub objects: u64,
    /// Packed manifests of items whose drift is looked for.
    pub manifests: u64,
    /// Proposals under way.
    pub proposals: u64,
    /// Values that are masked.
    pub secret_values: usize,
}

impl Default for CacheMemory {
    /// As much as they take anywhere.
    fn default() -> Self {
        Self {
            objects: MOST_OBJECT_BYTES,
            manifests: MOST_MANIFEST_BYTES,
            proposals: MOST_CACHED_BYTES,
            secret_values: MOST_KNOWN_BYTES,
        }
    }
}
