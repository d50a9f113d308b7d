//! Component versions in archives and folders of this machine, and in installations themselves.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the scaffolding of tests may fail as tests do"
)]

#[path = "local/blueprints.rs"]
mod blueprints;
#[path = "local/broken.rs"]
mod broken;
#[path = "local/graph.rs"]
mod graph;
#[path = "local/kit.rs"]
mod kit;
#[path = "local/limits.rs"]
mod limits;
#[path = "local/locations.rs"]
mod locations;
#[path = "local/signatures.rs"]
mod signatures;
#[path = "local/templates.rs"]
mod templates;
