//! Calls as they are written down for the next process (C-283).

use std::sync::{Arc, Mutex, PoisonError};

use orangery_core::name::Namespace;

use crate::Key;

/// Where calls are written down, so that the next process reads them.
pub trait CallJournal: Send + Sync {
    /// How many entries it can hold.
    fn capacity(&self) -> usize;

    /// Writes an entry, in place of what was there.
    fn write(&self, place: usize, entry: &JournalEntry);

    /// Nothing is in this place from now on.
    fn clear(&self, place: usize);
}

/// What stands in one place of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// A call.
    Call(WrittenCall),
    /// A namespace during whose calls processes were killed.
    Namespace(WrittenNamespace),
}

/// A call as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCall {
    /// The name of its controller.
    pub controller: String,
    /// Its object.
    pub key: Key,
    /// What it does.
    pub state: CallState,
    /// How many kills count against it: those at which only calls of its namespace were under way, and the first one in any case.
    pub times: u32,
}

/// What a call that is written down does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It is under way and works.
    Works,
    /// It is under way, and waits on somebody else's server.
    WaitsOnServer,
    /// It was under way when an earlier process was killed, and is to be called alone.
    Suspected,
}

/// A namespace during whose calls processes were killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenNamespace {
    /// Its name.
    pub namespace: Namespace,
    /// How many processes were killed during calls of objects of it that had killed none before.
    pub kills: u32,
    /// How many were in a row while calls of several namespaces were under way, of this one each time.
    pub together: u32,
}

/// The place where a call that is under way is written down.
pub(crate) struct CallRecord {
    journal: Arc<dyn CallJournal>,
    place: usize,
    /// `None` once the call has ended: what goes on of it writes into no place that may be another's by then.
    call: Mutex<Option<WrittenCall>>,
}

impl CallRecord {
    /// A place for a call.
    pub(crate) fn of(journal: &Arc<dyn CallJournal>, place: usize, call: WrittenCall) -> Arc<Self> {
        Arc::new(Self { journal: Arc::clone(journal), place, call: Mutex::new(Some(call)) })
    }

    /// Writes down what the call does.
    pub(crate) fn write(&self, state: CallState) {
        if let Some(call) = &*self.call.lock().unwrap_or_else(PoisonError::into_inner) {
            self.journal.write(self.place, &JournalEntry::Call(WrittenCall { state, ..call.clone() }));
        }
    }

    /// The call has ended.
    pub(crate) fn close(&self) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
