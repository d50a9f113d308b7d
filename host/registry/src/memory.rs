//! A bounded map: what was used longest ago makes room.

use std::{
    collections::HashMap,
    hash::Hash,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Values by key, at most so many, of at most so many bytes.
pub(crate) struct Memory<K, V> {
    most: usize,
    most_bytes: u64,
    entries: Mutex<CachedEntries<K, V>>,
}

struct CachedEntries<K, V> {
    map: HashMap<K, CachedEntry<V>>,
    clock: u64,
    bytes: u64,
}

struct CachedEntry<V> {
    used: u64,
    bytes: u64,
    value: V,
}

impl<K: Hash + Eq + Clone, V: Clone> Memory<K, V> {
    /// For values of which each is small.
    pub(crate) fn new(most: usize) -> Self {
        Self::within(most, u64::MAX)
    }

    /// The same, of so many bytes.
    pub(crate) fn within(most: usize, most_bytes: u64) -> Self {
        Self { most, most_bytes, entries: Mutex::new(CachedEntries { map: HashMap::new(), clock: 0, bytes: 0 }) }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut entries = self.lock();
        entries.clock += 1;
        let now = entries.clock;
        let entry = entries.map.get_mut(key)?;
        entry.used = now;
        Some(entry.value.clone())
    }

    pub(crate) fn put(&self, key: K, value: V) {
        self.put_sized(key, value, 0);
    }

    /// Keeps a value of so many bytes; one that has no room by itself is not kept.
    pub(crate) fn put_sized(&self, key: K, value: V, bytes: u64) {
        let mut gone = Vec::new();
        let mut entries = self.lock();
        entries.clock += 1;
        let used = entries.clock;
        gone.extend(entries.remove(&key));
        if bytes <= self.most_bytes {
            entries.bytes += bytes;
            entries.map.insert(key, CachedEntry { used, bytes, value });
        }
        while entries.map.len() > self.most || entries.bytes > self.most_bytes {
            let oldest = entries.map.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            gone.extend(entries.remove(&oldest));
        }
        // What is large is freed when nobody waits for it.
        drop(entries);
        mem::drop(gone);
    }

    pub(crate) fn forget(&self, key: &K) {
        let gone = self.lock().remove(key);
        mem::drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, CachedEntries<K, V>> {
        // The map is whole between any two statements.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, V> CachedEntries<K, V> {
    fn remove(&mut self, key: &K) -> Option<V> {
        let CachedEntry { bytes, value, .. } = self.map.remove(key)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(value)
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

    #[test]
    fn c_320_what_is_kept_has_a_sum_of_bytes() {
        let memory = Memory::within(9, 100);
        memory.put_sized("a", 1, 60);
        memory.put_sized("b", 2, 40);
        assert_eq!(memory.get(&"a"), Some(1));
        memory.put_sized("b", 3, 40);
        memory.put_sized("c", 4, 20);
        let kept = ["a", "b", "c"].map(|key| memory.get(&key));
        assert_eq!(kept, [None, Some(3), Some(4)], "a value that is replaced counts no more");
        memory.put_sized("d", 5, 101);
        memory.put_sized("c", 6, 101);
        let kept = ["b", "c", "d"].map(|key| memory.get(&key));
        assert_eq!((kept, memory.lock().bytes), ([Some(3), None, None], 40), "what has no room by itself makes none");
    }
}
