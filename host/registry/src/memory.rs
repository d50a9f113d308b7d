//! A bounded map: what was used longest ago makes room.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Values by key, at most so many.
pub(crate) struct Memory<K, V> {
    most: usize,
    entries: Mutex<CachedEntries<K, V>>,
}

struct CachedEntries<K, V> {
    map: HashMap<K, (u64, V)>,
    clock: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Memory<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, entries: Mutex::new(CachedEntries { map: HashMap::new(), clock: 0 }) }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut entries = self.lock();
        entries.clock += 1;
        let now = entries.clock;
        let (used, value) = entries.map.get_mut(key)?;
        *used = now;
        Some(value.clone())
    }

    pub(crate) fn put(&self, key: K, value: V) {
        let mut entries = self.lock();
        entries.clock += 1;
        let now = entries.clock;
        entries.map.insert(key, (now, value));
        if entries.map.len() > self.most {
            let oldest = entries.map.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                entries.map.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CachedEntries<K, V>> {
        // The map is whole between any two statements.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let memory = Memory::new(2);
        memory.put("a", 1);
        memory.put("b", 2);
        assert_eq!(memory.get(&"a"), Some(1));
        memory.put("c", 3);
        assert_eq!([memory.get(&"a"), memory.get(&"b"), memory.get(&"c")], [Some(1), None, Some(3)]);
    }
}
