//! Suites that run on the embedded server only; `cases.rs` says why.

mod chart;
mod command_line;
mod component_versions;
mod containers;
mod full_disk;
mod killed_calls;
mod kinds;
mod requests;
mod restored_data;
mod restricted_recordings;
mod upgrades;
mod workloads;
