//! The uids of objects that are gone. A uid never lives again.

use std::collections::{BTreeSet, VecDeque};

/// More than can be deleted while one answer is under way.
const KEPT: usize = 1024;

/// The last uids buried, so that a late word about them is known to be late.
#[derive(Default)]
pub(super) struct Tombs {
    uids: BTreeSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

impl Tombs {
    pub(super) fn bury(&mut self, uid: &str) {
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

    pub(super) fn hold(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_tomb_makes_room_for_the_newest() {
        let mut tombs = Tombs::default();
        for number in 0..=KEPT {
            tombs.bury(&number.to_string());
        }
        assert_eq!(
            (tombs.hold("0"), tombs.hold("1"), tombs.hold("1024"), tombs.uids.len(), tombs.order.len()),
            (false, true, true, KEPT, KEPT)
        );
    }
}
