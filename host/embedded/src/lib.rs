//! A Kubernetes API server in one process: objects over HTTP with the semantics of Kubernetes, and nothing else.
//!
//! It stores, validates, lists, watches, patches and deletes objects of the built-in kinds (a table of data) and of
//! custom kinds (from their definitions), collects what deleted owners leave behind, and runs nothing: no pod starts,
//! no deployment rolls out, though both can be simulated. It knows none of our kinds and imports no other room.
//!
//! ```text
//! http ─→ operation ─→ store ─→ disk
//!  │         │  └─ patch, crd, builtin: what an object becomes
//!  └─ form, present, discovery: how it is shown          lifecycle ←─ notes of the store
//! ```
//!
//! `README.md` beside this file says what holds everywhere and what is not there yet.

mod builtin;
mod catalog;
mod cluster;
mod convert;
mod crd;
mod entropy;
mod form;
mod http;
mod identity;
mod lifecycle;
mod metrics;
mod object;
mod off_the_executor;
mod operation;
mod patch;
mod policy;
mod present;
mod refusal;
mod resource;
mod schema;
mod selector;
mod server;
mod store;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

pub use self::{
    identity::IdentityError,
    server::{Server, StartError, start},
    store::DataFolderError,
};

/// What is wrong with the schema of a version of a custom kind, in the words of the server; nothing where it is taken.
pub fn schema_problems(schema: serde_json::Value) -> Vec<String> {
    let problems = schema::OpenApiSchema::new(schema).problems("schema");
    problems.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// Tells the time. The server reads no clock but this one.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// Where the objects are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory: gone with the process.
    Memory,
    /// In this folder, made if it does not exist. One server at a time has it.
    Folder(PathBuf),
}

/// What a server needs to start.
#[derive(Clone)]
pub struct Options {
    /// Where the objects are kept.
    pub storage: Storage,
    /// Where to listen; port 0 takes any that is free.
    pub address: SocketAddr,
    /// The time for timestamps, ages and expiries.
    pub clock: Clock,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("storage", &self.storage)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
