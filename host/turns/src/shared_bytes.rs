//! Memory that namespaces share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::Tenant;

/// So many bytes that tenants share, as they share places: one gets more while it holds no more than is left (C-88).
pub struct SharedBytes {
    total: u64,
    /// Protects what is held; held for one decision.
    taken: Mutex<TakenBytes>,
}

#[derive(Default)]
struct TakenBytes {
    sum: u64,
    by_tenant: BTreeMap<Tenant, u64>,
}

/// Bytes of one tenant; they are free again when this is dropped.
pub struct HeldBytes {
    of: Arc<SharedBytes>,
    tenant: Tenant,
    bytes: u64,
}

impl SharedBytes {
    /// So many bytes, all of them free.
    pub fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, taken: Mutex::default() })
    }

    /// The most that one tenant gets while nobody else holds any.
    pub fn most_of_one(&self) -> u64 {
        self.total / 2
    }

    /// Bytes that are held.
    pub fn taken(&self) -> u64 {
        self.lock().sum
    }

    /// Nothing yet, for a tenant.
    pub fn none_of(self: &Arc<Self>, tenant: &Tenant) -> HeldBytes {
        HeldBytes { of: Arc::clone(self), tenant: tenant.clone(), bytes: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, TakenBytes> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldBytes {
    /// How many there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it is a part of.
    pub fn of(&self) -> &SharedBytes {
        &self.of
    }

    /// Holds so many bytes from now on, and answers whether there is room for them; without room what was held still is.
    #[must_use]
    pub fn set(&mut self, bytes: u64) -> bool {
        let mut taken = self.of.lock();
        let own = taken.by_tenant.get(&self.tenant).copied().unwrap_or_default();
        let own = own.saturating_sub(self.bytes).saturating_add(bytes);
        let sum = taken.sum.saturating_sub(self.bytes).saturating_add(bytes);
        if bytes > self.bytes && own > self.of.total.saturating_sub(sum) {
            return false;
        }
        self.bytes = bytes;
        taken.sum = sum;
        if own == 0 {
            taken.by_tenant.remove(&self.tenant);
        } else {
            taken.by_tenant.insert(self.tenant.clone(), own);
        }
        true
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let _less_has_room = self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::name::Namespace;

    use super::*;

    fn of(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    #[test]
    fn c_88_a_namespace_gets_more_bytes_while_it_holds_no_more_than_are_left() {
        let shared = SharedBytes::new(800);
        let (mut first, mut second, mut other) =
            (shared.none_of(&of("a")), shared.none_of(&of("a")), shared.none_of(&of("b")));
        assert!(first.set(300) && second.set(100), "half of it, in two parts");
        assert!(!second.set(101) && !first.set(301), "and no byte more");
        assert!(other.set(200) && !other.set(201), "another namespace has half of what is left");
        assert_eq!((shared.taken(), shared.most_of_one()), (600, 400));
        assert!(first.set(0) && second.set(300), "what is given back is free");
        assert!(!shared.none_of(&of("c")).set(u64::MAX));
        drop((first, second, other));
        let taken = shared.lock();
        assert_eq!((taken.sum, taken.by_tenant.len()), (0, 0), "nothing is kept of those that have gone");
    }
}
