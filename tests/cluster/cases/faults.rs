//! Faults: crashes, events that are lost, users that interfere, and all of it by chance.

mod away_targets;
mod busy_servers;
mod crashes;
mod deep_objects;
mod endless_trees;
mod frozen_connections;
mod host_state;
mod hostile;
mod lost_events;
mod many_failures;
mod refused_credentials;
pub(crate) mod refused_writes;
mod schedules;
mod silent_clusters;
