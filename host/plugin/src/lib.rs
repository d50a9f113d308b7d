//! The sandbox: loads, limits and calls WebAssembly components.
//!
//! A component is a value in, a value out. Each call has a store of its own with budgets on everything; nothing survives
//! it. What a component may reach is decided by grants before a port is asked. This crate carries nothing out: it answers
//! the proposals and texts that components make, as the words of `orangery-core`.

mod bindings;
mod budget;
mod bundled;
mod cache;
mod call;
mod call_figures;
mod capability;
mod claim;
mod compile;
mod component;
mod confine;
mod contract;
mod convert;
mod cost;
mod epochs;
mod error;
mod export;
mod held_artifact;
mod inspect;
mod installed;
mod installer;
mod instance;
mod meter;
mod pages;
mod plugin;
mod plugin_set;
mod registration;
mod reload;
mod sandbox;
mod transcript;
mod wasi;
mod worker;

pub use budget::{Budget, BudgetLimit};
pub use call_figures::{CallCounts, CallResult};
pub use compile::{compile_counting_worker_main, compile_worker_main};
pub use component::Component;
pub use contract::{LEVEL, WIT, contract_versions};
pub use cost::{CallCost, CallCosts, CodeCounts};
pub use error::{CacheError, Error};
pub use inspect::{Inspection, Need, Offer, World, inspect};
pub use plugin::{Plugin, TestCase, TestSubject};
pub use plugin_set::{PluginSet, PluginSetError};
pub use registration::{
    Registered, Registration, RegistrationError, RegistrationSpec, is_registration, read_folder, unpack,
};
pub use reload::{ReloadOutcome, Reloaded};
pub use sandbox::{
    Allocator, CacheShares, CallIsolation, MemoryShares, Occupancy, Sandbox, SandboxConfig, SandboxFigures,
    WASMTIME_VERSION,
};
pub use worker::{WorkerCommand, call_worker_main, read_worker_frame};
