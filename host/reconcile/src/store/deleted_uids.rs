//! The uids of objects that are gone. A uid never lives again, unless the storage of the server is restored.

use std::collections::{BTreeSet, VecDeque};

/// More than can be deleted while one answer is under way.
const KEPT: usize = 1024;

/// The last uids buried, so that a late word about them is known to be late.
#[derive(Default)]
pub(super) struct DeletedUids {
    uids: BTreeSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

impl DeletedUids {
    pub(super) fn record(&mut self, uid: &str) {
        if uid.is_empty() || !self.uids.insert(uid.into()) {
            return;
        }
        self.order.push_back(uid.into());
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    /// One that lives again after all.
    pub(super) fn remove(&mut self, uid: &str) {
        if self.uids.remove(uid) {
            self.order.retain(|deleted| deleted.as_ref() != uid);
        }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_tomb_makes_room_for_the_newest() {
        let mut deleted_uids = DeletedUids::default();
        for number in 0..=KEPT {
            deleted_uids.record(&number.to_string());
        }
        assert_eq!(
            (
                deleted_uids.contains("0"),
                deleted_uids.contains("1"),
                deleted_uids.contains("1024"),
                deleted_uids.uids.len(),
                deleted_uids.order.len()
            ),
            (false, true, true, KEPT, KEPT)
        );
    }
}
