//! The places for deploy items that are under way at once in this host (WF-15).

use std::{
    num::NonZeroU32,
    sync::{Mutex, Once, PoisonError},
};

use orangery_api::{job::Job, marks::Marks};
use orangery_core::{
    phase::item::Item as Phase,
    plan::room::Room,
    step::{Until, Wait},
};
use orangery_reconcile::{Key, Queue};

use crate::{controller_context::ControllerContext, job::standing_phase};

/// All places; without a limit nobody is counted.
pub(super) struct Places {
    most: Option<NonZeroU32>,
    /// Protects who is inside and who waits. Held for one change.
    room: Option<Mutex<Room>>,
    /// Done when those that had begun before this operator did are counted.
    counted: Once,
    /// Wakes those whose turn it is.
    queue: Queue,
}

impl Places {
    pub(super) fn new(most: Option<NonZeroU32>, queue: Queue) -> Self {
        Self { most, room: most.map(|most| Mutex::new(Room::new(most))), counted: Once::new(), queue }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let room = self.room.as_ref()?;
        Some(change(&mut room.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Those that had begun before this operator did have their places before anybody else.
    pub(super) fn count(&self, host: &ControllerContext) {
        if self.room.is_none() {
            return;
        }
        self.counted.call_once(|| {
            host.stores.deploy_items.for_each(|item| {
                let (_, fresh) = standing_phase(Phase::parse(item.phase()), item.is_deleting());
                let is_ours = host.plugins.deployer(&item.spec.type_).is_some();
                if !item.job_finished() && !fresh && is_ours {
                    self.stay(&Key::of(item));
                }
            });
        });
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
