//! Components that blueprints bring along: what they may do and spend, and the few of them that stay loaded.

use std::sync::{Arc, Mutex, PoisonError};

use orangery_proposal::grant::Grants;

use crate::{budget::Budget, component::Slot, registration::Registration};

/// The memory of one call, unless the operator says something else: any template engine gets as much.
const MEMORY_MIB: u64 = 128;
/// How many components of blueprints stay loaded.
const MOST_LOADED: usize = 64;
/// Bytes of code of those that stay loaded, where there is enough memory; an interpreter with its language has 40 MB.
pub(crate) const MOST_CODE: usize = 512 << 20;

/// What components of blueprints may do and spend: the registration of the template type `Wasm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundledTerms {
    /// The name of the registration; `None` where the operator made none.
    pub(crate) registration: Option<String>,
    pub(crate) grants: Arc<Grants>,
    pub(crate) budget: Budget,
}

impl Default for BundledTerms {
    fn default() -> Self {
        let budget = Budget { memory_mib: MEMORY_MIB, ..Budget::default() };
        Self { registration: None, grants: Arc::default(), budget }
    }
}

impl BundledTerms {
    /// The terms of a registration.
    pub(crate) fn of(registration: Registration) -> Self {
        Self {
            registration: Some(registration.metadata.name),
            grants: Arc::new(registration.spec.grants),
            budget: registration.spec.limits,
        }
    }
}

/// The components of blueprints that stay loaded, by digest, the one used last at the end.
pub(crate) struct Recent {
    /// Bytes of their code; the one that was used last stays whatever its size.
    most_code: usize,
    /// Protects the list; held for one look-up.
    slots: Mutex<Vec<(String, Arc<Slot>)>>,
}

impl Recent {
    pub(crate) fn new(most_code: usize) -> Self {
        Self { most_code, slots: Mutex::default() }
    }

    /// Where the component of this digest is kept, whichever blueprint brings it.
    pub(crate) fn slot(&self, digest: &str) -> Arc<Slot> {
        self.slot_within(digest, MOST_LOADED, self.most_code)
    }

    fn slot_within(&self, digest: &str, most: usize, most_code: usize) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().position(|(known, _)| known == digest).map(|at| slots.remove(at).1);
        let slot = known.unwrap_or_default();
        let mut code = slot.code();
        let mut keep = slots.len();
        while let Some((_, older)) = keep.checked_sub(1).and_then(|last| slots.get(last)) {
            code = code.saturating_add(older.code());
            if code > most_code || slots.len() - keep + 2 > most {
                break;
            }
            keep -= 1;
        }
        slots.drain(..keep);
        slots.push((digest.to_owned(), slot.clone()));
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_used_last_stay() {
        let recent = Recent::new(MOST_CODE);
        let slot = |digest: &str| recent.slot_within(digest, 2, 100);
        let (first, second) = (slot("a"), slot("b"));
        assert!(Arc::ptr_eq(&slot("a"), &first));
        let third = slot("c");
        assert!(Arc::ptr_eq(&slot("a"), &first) && Arc::ptr_eq(&slot("c"), &third));
        assert!(!Arc::ptr_eq(&slot("b"), &second));
    }

    #[test]
    fn their_code_is_bounded_and_the_one_that_is_used_stays_whatever_its_size() {
        let recent = Recent::new(MOST_CODE);
        let slot = |digest: &str| recent.slot_within(digest, 10, 100);
        let first = slot("a");
        first.pretend(60);
        let second = slot("b");
        second.pretend(30);
        assert!(Arc::ptr_eq(&slot("a"), &first) && Arc::ptr_eq(&slot("b"), &second));
        let large = slot("c");
        large.pretend(200);
        assert!(Arc::ptr_eq(&slot("c"), &large));
        assert!(!Arc::ptr_eq(&slot("a"), &first));
    }

    #[test]
    fn limits_components_so_many_of_blueprints_stay_loaded_and_so_much_of_their_code() {
        let recent = Recent::new(MOST_CODE);
        let first = recent.slot("0");
        for other in 1..MOST_LOADED {
            recent.slot(&other.to_string());
        }
        assert!(Arc::ptr_eq(&recent.slot("0"), &first), "{MOST_LOADED} stay");
        for other in 1..=MOST_LOADED {
            recent.slot(&other.to_string());
        }
        assert!(!Arc::ptr_eq(&recent.slot("0"), &first), "one more does not");

        let recent = Recent::new(MOST_CODE);
        let first = recent.slot("a");
        first.pretend(MOST_CODE);
        recent.slot("b");
        assert!(Arc::ptr_eq(&recent.slot("a"), &first), "so much stays");
        recent.slot("b").pretend(1);
        recent.slot("b");
        assert!(!Arc::ptr_eq(&recent.slot("a"), &first), "a byte more does not");
    }

    #[test]
    fn c_88_limits_components_with_less_memory_less_code_stays() {
        let recent = Recent::new(100);
        let first = recent.slot("a");
        first.pretend(60);
        recent.slot("b").pretend(41);
        recent.slot("b");
        assert!(!Arc::ptr_eq(&recent.slot("a"), &first));
    }
}
