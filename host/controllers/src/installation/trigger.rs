//! What starts jobs of an Installation: requests, schedules, and changes of what it imports.

pub(super) mod changes;
pub(super) mod request;
pub(super) mod schedule;
pub(super) mod start;
