//! The one loop that every controller runs in, what it reads and how it writes. Knows no kind.
//!
//! - [`Store`]: what is known of one kind; the watch and our own writes feed it, so every write is seen by the next
//!   reconcile at once (`docs/rules.md`, Tests, read after write).
//! - [`watch`]: keeps a store current; one malformed object never stops a kind.
//! - [`Writer`]: writes under the resource version that was read, and tells the store what the server answered.
//! - [`Queue`]: who is to be called; no key twice at once, none forgotten.
//! - [`EventRecorder`]: events; what is said again soon is counted in one (C-89).
//! - [`LeaseDeadline`]: until when this process may write.
//! - [`run`]: calls a [`Controller`], event-driven; time is only the pace of failures (C-12) and the net below the watches:
//!   what waits and hears nothing for long looks again (C-11).
//!
//! A call that waits on somebody else's server lends its [`slot`] to others meanwhile. One of a long object, and one that reads
//! much, reserves memory before (C-130, C-132). One that was under way when a process was killed is called alone, and then set
//! aside (C-283).
//!
//! It does not decide anything about an object: that is `core`'s, through the controllers.

mod call_memory;
mod difference;
mod event;
mod key;
mod lease_deadline;
mod queue;
mod read;
mod run;
mod slot;
mod stale_watch;
mod status_authors;
mod store;
mod unfinished;
mod watch;
mod watched_object;
mod write;
mod written;

pub use crate::{
    call_memory::{
        ReservedForReading, give_reading_back, reading_memory, reserve_for_reading, reserve_now, reserve_when_free,
    },
    event::{EventRecorder, Notice, Repeated},
    key::{Key, Watched},
    lease_deadline::{LeaseDeadline, Moment},
    queue::{MOST_CALLS_OF_A_NAMESPACE, Queue, QueueCounts},
    read::list,
    run::{Controller, ControllerOptions, MOST_CALLS, NextCall, Panicked, TOLD_AFTER, run},
    slot::in_this_slot,
    status_authors::StatusAuthors,
    store::{FoundObjects, MOST_VALUES, ObjectChange, Restorations, Store, UnreadableObject},
    unfinished::{Crash, UnfinishedCalls},
    watch::{watch, watch_labelled},
    watched_object::UnreadObject,
    write::{CONFLICT, WriteError, Writer},
    written::{CallJournal, CallState, JournalEntry, WrittenCall, WrittenNamespace},
};
