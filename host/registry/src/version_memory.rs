//! The memory of component versions (C-320): a short descriptor can be a large value, a component version may need thousands of
//! others, and a small archive is unpacked into a large blueprint.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_core::{
    digest::content::ContentDigest,
    error::{Code, Fault},
};
use orangery_turns::{HeldBytes, SharedBytes, Tenant, Turns};

/// Descriptors, indexes of charts and blueprints that are read at once: each may take what a text of YAML or an archive may.
const MOST_READ_AT_ONCE: usize = 2;

/// What all component versions that are open take.
pub(crate) struct VersionMemory {
    shared: Arc<SharedBytes>,
    /// Of those that read what a server has sent.
    pub(crate) turns: Arc<Turns>,
}

/// What one open component version takes, with those that it refers to.
pub(crate) struct HeldVersionMemory {
    /// Held for one addition.
    held: Mutex<HeldContents>,
}

struct HeldContents {
    bytes: HeldBytes,
    /// What was added by its digest.
    counted: BTreeSet<ContentDigest>,
}

impl VersionMemory {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { shared: SharedBytes::new(bytes), turns: Turns::new(MOST_READ_AT_ONCE) }
    }

    /// Nothing yet, for what a namespace opens.
    pub(crate) fn none_of(&self, tenant: &Tenant) -> Arc<HeldVersionMemory> {
        let held = HeldContents { bytes: self.shared.none_of(tenant), counted: BTreeSet::new() };
        Arc::new(HeldVersionMemory { held: Mutex::new(held) })
    }
}

impl fmt::Debug for HeldVersionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.lock().bytes.bytes())
    }
}

impl HeldVersionMemory {
    /// Holds so many bytes more.
    ///
    /// # Errors
    /// There is no room for them: for as long as others have it, or at all.
    pub(crate) fn add(&self, bytes: u64) -> Result<(), Fault> {
        self.lock().add(bytes)
    }

    /// The same for content of this digest, which counts once.
    pub(crate) fn add_once(&self, digest: ContentDigest, bytes: usize) -> Result<(), Fault> {
        let mut held = self.lock();
        if !held.counted.contains(&digest) {
            held.add(bytes as u64)?;
            held.counted.insert(digest);
        }
        Ok(())
    }

    /// What it holds, once more: copies of the descriptors.
    pub(crate) fn double(&self) -> Result<(), Fault> {
        let mut held = self.lock();
        let bytes = held.bytes.bytes();
        held.add(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, HeldContents> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldContents {
    fn add(&mut self, bytes: u64) -> Result<(), Fault> {
        let (sum, most) = (self.bytes.bytes().saturating_add(bytes), self.bytes.of().most_of_one());
        if sum > most {
            let message = format!(
                "the component version, with what is read of it, takes more than the {most} bytes of memory \
                 that are allowed; refer to fewer or smaller ones, or give the operator more memory"
            );
            return Err(Fault::invalid(Code::LimitExceeded, message));
        }
        if self.bytes.set(sum) {
            return Ok(());
        }
        let message = format!(
            "the component version takes {sum} bytes of memory with what is read of it, and others have \
             what is left; it is tried again"
        );
        Err(Fault::later(Code::LimitExceeded, message))
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::digest::content::Algorithm;

    use super::*;

    #[test]
    fn c_320_limits_registry_component_versions_that_are_open_share_a_memory() {
        let memory = VersionMemory::new(800);
        let (one, other) = (memory.none_of(&Some("a".into())), memory.none_of(&Some("b".into())));
        let told = |held: &HeldVersionMemory, bytes| held.add(bytes).map_err(|fault| fault.to_string());
        assert_eq!(told(&one, 300), Ok(()));
        let never = "the component version, with what is read of it, takes more than the 400 bytes of \
                     memory that are allowed; refer to fewer or smaller ones, or give the operator more memory";
        assert_eq!(told(&one, 101), Err(never.to_owned()));
        assert!(matches!(one.double(), Err(Fault::Invalid(_))));
        let digest = ContentDigest::of(Algorithm::Sha256, b"a");
        for _ in 0..3 {
            assert_eq!(one.add_once(digest.clone(), 100), Ok(()), "it counts once, and what was refused is not held");
        }
        assert!(one.add_once(ContentDigest::of(Algorithm::Sha256, b"b"), 1).is_err());
        let later = "the component version takes 201 bytes of memory with what is read of it, and others \
                     have what is left; it is tried again";
        assert_eq!(told(&other, 201), Err(later.to_owned()));
        assert!(matches!(other.add(201), Err(Fault::Later(_))));
        drop(one);
        assert_eq!((told(&other, 200), told(&other, 0), other.double()), (Ok(()), Ok(()), Ok(())));
        assert_eq!(memory.shared.taken(), 400);
    }
}
