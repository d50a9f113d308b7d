//! Components that blueprints bring along: what they may do and spend, and the few of them that stay loaded.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_proposal::grant::Grants;
use orangery_turns::Tenant;

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

/// What namespaces keep, what was used longest ago first. Where it is too much, something goes of whoever keeps the most: nobody empties
/// what others keep (C-301).
#[derive(Default)]
pub(crate) struct Shares {
    /// Whose it is, and how much; `None` where it has gone.
    entries: Vec<Option<(Tenant, u64)>>,
    by_tenant: BTreeMap<Tenant, u64>,
    sum: u64,
}

impl Shares {
    /// Something that was used after all others.
    pub(crate) fn add(&mut self, tenant: Tenant, size: u64) {
        self.entries.push(Some((tenant.clone(), size)));
        self.add_newest(tenant, size);
    }

    /// What counts as the others do, and stays.
    pub(crate) fn add_newest(&mut self, tenant: Tenant, size: u64) {
        let own = self.by_tenant.entry(tenant).or_default();
        *own = own.saturating_add(size);
        self.sum = self.sum.saturating_add(size);
    }

    /// All of it.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// Takes out what was used longest ago of those that have something to give, of whoever keeps the most; answers the how-manyth it was.
    pub(crate) fn take_one(&mut self) -> Option<usize> {
        let entries = self.entries.iter().enumerate();
        let present = entries.filter_map(|(at, entry)| entry.as_ref().map(|(tenant, size)| (at, tenant, *size)));
        // The first of those that are equal: the one that was used longest ago.
        let of = |tenant: &Tenant| self.by_tenant.get(tenant).copied().unwrap_or_default();
        let (at, tenant, size) = present.min_by_key(|(_, tenant, _)| Reverse(of(tenant)))?;
        let tenant = tenant.clone();
        if let Some(own) = self.by_tenant.get_mut(&tenant) {
            *own = own.saturating_sub(size);
        }
        self.sum = self.sum.saturating_sub(size);
        self.entries.get_mut(at)?.take();
        Some(at)
    }
}

/// The components of blueprints that stay loaded, the one used last at the end.
pub(crate) struct Recent {
    /// Bytes of their code; the one that was used last stays whatever its size.
    most_code: usize,
    /// Protects the list; held for one look-up.
    slots: Mutex<Vec<RecentSlot>>,
}

/// A component that stays loaded.
struct RecentSlot {
    digest: String,
    /// The namespace whose blueprints bring it; `None` where several do.
    tenant: Tenant,
    slot: Arc<Slot>,
}

impl Recent {
    pub(crate) fn new(most_code: usize) -> Self {
        Self { most_code, slots: Mutex::default() }
    }

    /// Where the component of this digest is kept, whichever blueprint brings it.
    pub(crate) fn slot(&self, digest: &str, tenant: &Tenant) -> Arc<Slot> {
        self.slot_within(digest, tenant, MOST_LOADED, self.most_code)
    }

    /// Whether it is known what becomes of the component of this digest.
    pub(crate) fn knows(&self, digest: &str) -> bool {
        self.slots().iter().any(|known| known.digest == digest && known.slot.is_known())
    }

    /// Bytes of its code, where that is loaded.
    pub(crate) fn code(&self, digest: &str) -> Option<u64> {
        let slots = self.slots();
        let loaded = slots.iter().find(|known| known.digest == digest && known.slot.is_known());
        loaded.map(|known| known.slot.code() as u64)
    }

    /// Bytes of the code of all that are loaded, and how many they may have.
    pub(crate) fn all_code(&self) -> (u64, u64) {
        let loaded =
            self.slots().iter().filter(|known| known.slot.is_known()).map(|known| known.slot.code() as u64).sum();
        (loaded, self.most_code as u64)
    }

    fn slots(&self) -> MutexGuard<'_, Vec<RecentSlot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot_within(&self, digest: &str, tenant: &Tenant, most: usize, most_code: usize) -> Arc<Slot> {
        let mut slots = self.slots();
        let known = slots.iter().position(|known| known.digest == digest).map(|at| slots.remove(at));
        let mut newest = known.unwrap_or_else(|| RecentSlot {
            digest: digest.to_owned(),
            tenant: tenant.clone(),
            slot: Arc::default(),
        });
        if newest.tenant != *tenant {
            newest.tenant = None;
        }
        for (most, weight) in [(most, (|_| 1) as fn(&Slot) -> usize), (most_code, Slot::code)] {
            let mut shares = Shares::default();
            for kept in &*slots {
                shares.add(kept.tenant.clone(), weight(&kept.slot) as u64);
            }
            shares.add_newest(newest.tenant.clone(), weight(&newest.slot) as u64);
            let mut gone = BTreeSet::new();
            while shares.sum() > most as u64
                && let Some(at) = shares.take_one()
            {
                gone.insert(at);
            }
            let mut at = 0..;
            slots.retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
        }
        let slot = Arc::clone(&newest.slot);
        slots.push(newest);
        slot
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::name::Namespace;

    use super::*;

    #[test]
    fn those_used_last_stay() {
        let recent = Recent::new(MOST_CODE);
        let slot = |digest: &str| recent.slot_within(digest, &None, 2, 100);
        let (first, second) = (slot("a"), slot("b"));
        assert!(Arc::ptr_eq(&slot("a"), &first));
        let third = slot("c");
        assert!(Arc::ptr_eq(&slot("a"), &first) && Arc::ptr_eq(&slot("c"), &third));
        assert!(!Arc::ptr_eq(&slot("b"), &second));
    }

    #[test]
    fn their_code_is_bounded_and_the_one_that_is_used_stays_whatever_its_size() {
        let recent = Recent::new(MOST_CODE);
        let slot = |digest: &str| recent.slot_within(digest, &None, 10, 100);
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
        let first = recent.slot("0", &None);
        for other in 1..MOST_LOADED {
            recent.slot(&other.to_string(), &None);
        }
        assert!(Arc::ptr_eq(&recent.slot("0", &None), &first), "{MOST_LOADED} stay");
        for other in 1..=MOST_LOADED {
            recent.slot(&other.to_string(), &None);
        }
        assert!(!Arc::ptr_eq(&recent.slot("0", &None), &first), "one more does not");

        let recent = Recent::new(MOST_CODE);
        let first = recent.slot("a", &None);
        first.pretend(MOST_CODE);
        recent.slot("b", &None);
        assert!(Arc::ptr_eq(&recent.slot("a", &None), &first), "so much stays");
        recent.slot("b", &None).pretend(1);
        recent.slot("b", &None);
        assert!(!Arc::ptr_eq(&recent.slot("a", &None), &first), "a byte more does not");
    }

    #[test]
    fn c_88_limits_components_with_less_memory_less_code_stays() {
        let recent = Recent::new(100);
        let first = recent.slot("a", &None);
        first.pretend(60);
        recent.slot("b", &None).pretend(41);
        recent.slot("b", &None);
        assert!(!Arc::ptr_eq(&recent.slot("a", &None), &first));
    }

    #[test]
    fn c_301_what_goes_is_of_the_namespace_that_has_the_most_loaded() {
        let recent = Recent::new(100);
        let (greedy, other) = (Some(Namespace::from_static("greedy")), Some(Namespace::from_static("other")));
        let first = recent.slot("a", &other);
        first.pretend(40);
        for digest in ["b", "c", "d"] {
            recent.slot(digest, &greedy).pretend(50);
        }
        let kept: Vec<_> = recent.slots().iter().map(|kept| kept.digest.clone()).collect();
        assert_eq!(kept, ["a", "c", "d"], "what is loaded counts when the next one comes");
        recent.slot("d", &greedy);
        let kept: Vec<_> = recent.slots().iter().map(|kept| kept.digest.clone()).collect();
        assert_eq!(kept, ["a", "d"]);
        assert!(Arc::ptr_eq(&recent.slot("a", &greedy), &first));
        let by_count = Recent::new(100);
        for (digest, tenant) in [("a", &other), ("b", &greedy), ("c", &greedy), ("d", &other)] {
            by_count.slot_within(digest, tenant, 3, 100);
        }
        let kept: Vec<_> = by_count.slots().iter().map(|kept| kept.digest.clone()).collect();
        assert_eq!(kept, ["b", "c", "d"], "of two that have as many, what was used longest ago");
    }
}
