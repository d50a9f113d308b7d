//! The custom resources as they are on the wire, quirks included (`docs/wire.md` §1, §2).
//!
//! Group `landscaper.gardener.cloud`, version `v1alpha1`, every kind namespaced; but JobHistory, NamespacePolicy, Plan and Plugin, which are ours. Each kind has
//! its file; the types that
//! several kinds share stand first. Go's zero values are kept: a text field that is absent reads as empty, and an empty
//! one is not written. Kinds without a `spec` on the wire keep their fields in `spec` in Rust (`no_spec` of kube).
//!
//! This crate decides nothing: meaning and transitions belong to `orangery-core` and the controllers.

#![expect(
    clippy::duplicated_attributes,
    reason = "printer columns share their type, and the lint takes them for one list"
)]

pub mod annotation;
pub mod condition;
pub mod duration;
pub mod error;
pub mod label;
mod lenient;
pub mod reference;
mod schema;
pub mod waiting;

pub mod context;
pub mod data_object;
pub mod deploy_item;
pub mod execution;
pub mod health;
pub mod installation;
pub mod job;
pub mod job_definition;
pub mod job_history;
pub mod marks;
pub mod namespace_policy;
pub mod overwrites;
pub mod plan;
pub mod plugin;
pub mod stored_state;
pub mod sync;
pub mod target;

mod admission;
pub mod convert;
mod crds;

pub use crate::{
    admission::{Admission, admission},
    crds::crds,
};

/// The API group of every kind.
pub const GROUP: &str = "landscaper.gardener.cloud";
/// The only version.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as `apiVersion` has them.
pub const API_VERSION: &str = "landscaper.gardener.cloud/v1alpha1";
/// The finalizer of Installation, Execution, DeployItem and TargetSync (`docs/wire.md` §2.3).
pub const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";
