//! Calls as they are written down for the next process (C-283).

use std::sync::Arc;

use crate::Key;

/// Where calls are written down, so that the next process reads them.
pub trait CallJournal: Send + Sync {
    /// How many calls it can hold.
    fn capacity(&self) -> usize;

    /// Writes a call down, in place of what was there.
    fn write(&self, place: usize, call: &WrittenCall);

    /// Nothing is in this place from now on.
    fn clear(&self, place: usize);
}

/// A call as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCall {
    /// The name of its controller.
    pub controller: String,
    /// Its object.
    pub key: Key,
    /// Whether it is under way; else it waits for being called alone.
    pub under_way: bool,
    /// In how many processes in a row it was under way at their end, those before this one.
    pub times: u32,
}

/// The place where a call is written down.
#[derive(Clone)]
pub(crate) struct CallRecord {
    journal: Arc<dyn CallJournal>,
    place: usize,
    call: Arc<WrittenCall>,
}

impl CallRecord {
    /// A place for a call.
    pub(crate) fn of(journal: &Arc<dyn CallJournal>, place: usize, call: WrittenCall) -> Self {
        Self { journal: Arc::clone(journal), place, call: Arc::new(call) }
    }

    /// Writes down whether it works, or waits on somebody else's server.
    pub(crate) fn write(&self, under_way: bool) {
        self.journal.write(self.place, &WrittenCall { under_way, ..WrittenCall::clone(&self.call) });
    }
}
