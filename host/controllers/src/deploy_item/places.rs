//! The places for deploy items that are under way at once in this host (WF-15).

use std::{
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
};

use orangery_core::{
    plan::room::Room,
    step::{Until, Wait},
};
use orangery_reconcile::{Key, Queue};

/// All places; without a limit nobody is counted.
pub(super) struct Places {
    most: Option<NonZeroU32>,
    /// Protects who is inside and who waits. Held for one change.
    room: Option<Mutex<Room>>,
    /// Wakes those whose turn it is.
    queue: Queue,
}

impl Places {
    pub(super) fn new(most: Option<NonZeroU32>, queue: Queue) -> Self {
        Self { most, room: most.map(|most| Mutex::new(Room::new(most))), queue }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let room = self.room.as_ref()?;
        Some(change(&mut room.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A place for an item that is to begin, or what it waits for; it is woken when it is its turn.
    pub(super) fn enter(&self, item: &Key) -> Result<(), Wait> {
        match (self.most, self.with(|room| room.enter(&guest(item)))) {
            (Some(most), Some(false)) => Err(Wait::on("Host", format!("maxParallel={most}"), Until::Room)),
            _ => Ok(()),
        }
    }

    /// The place of an item that has begun.
    pub(super) fn stay(&self, item: &Key) {
        self.with(|room| room.stay(&guest(item)));
    }

    /// The item needs no place any more.
    pub(super) fn leave(&self, item: &Key) {
        for (namespace, name) in self.with(|room| room.leave(&guest(item))).into_iter().flatten() {
            self.queue.wake(Key::new(namespace, name));
        }
    }
}

fn guest(item: &Key) -> (String, String) {
    (item.namespace.clone(), item.name.clone())
}
