//! Installation, Execution, DeployItem and Context on the job protocol.
//!
//! One call of a controller is one reconciliation of one object. It takes what the stores know, goes as far as it gets without
//! waiting, and ends in one write of the status. What it waits for calls it again.
//!
//! ```text
//!   watches, own writes          runtime
//!          │                        │ ControllerContext
//!          ▼                        ▼
//!       Stores ── Dependency ──► Queues ──► reconcile(object)
//!          ▲      index, watch,                 │
//!          │      wait, guard                   ▼
//!          │                              gather ► decide ► apply ► status
//!          │                              stores   core     writes  one write
//!          └────────────────────────────────────────────────────┴────────┘
//! ```
//!
//! Each kind has the same modules: `dependencies` (what it depends on), `gather` (what is asked of it, and what it reads), `apply`
//! (what it writes), `status` (where it rests). Deciding is `orangery_core::plan`. No kind imports another one; what several need
//! stands below them. Nothing here names a component runtime: components are reached through the ports of the
//! core.

mod account_tokens;
mod acting_account;
mod artifacts;
mod awaited_uninstall;
mod cache_memory;
mod call_records;
mod candidates;
mod changed_answers;
mod component;
mod controller_context;
mod corrected_items;
mod default_context;
mod dependencies;
mod dependency;
mod encryption;
mod ended_jobs;
mod event;
mod exported_memory;
mod gates;
mod guard;
mod guard_controller;
mod hidden_call;
mod history_key;
mod host_cluster;
mod index;
mod job;
mod job_definitions;
mod job_deployers;
mod job_histories;
mod job_reports;
mod job_writes;
mod kept_credentials;
mod namespace_calls;
mod namespace_policy;
mod never_begun;
mod object;
mod object_access;
mod plan_rules;
mod planned_ahead;
mod plans;
mod plugins;
mod policy;
mod record;
mod refresh;
mod refusal;
mod removed;
mod seal;
mod sealed_state;
mod secret_data;
mod secret_imports;
mod secret_values;
mod seed;
mod served_types;
mod signed_origin;
#[cfg(test)]
mod silent_deployer;
mod stores;
mod target_access;
mod target_kubeconfig;
mod timeout;
mod tree;
mod watched_engines;
mod workflow;

pub mod context;
pub mod deploy_item;
pub mod execution;
pub mod installation;
pub mod target_sync;

pub use account_tokens::OwnAddress;
pub use acting_account::{ActingAccounts, TargetAccounts};
pub use cache_memory::CacheMemory;
pub use call_records::{CallRecording, CallRecords, Recordings};
pub use controller_context::{ControllerContext, PICK_UP_TIMEOUT};
pub use dependencies::{clusters, dependencies, stores, wire};
pub use dependency::DependencyRow;
pub use event::{tell_authors, tell_unreadable};
pub use guard::Guarded;
pub use guard_controller::GuardController;
pub use job_histories::JobHistories;
pub use job_writes::{JobItem, JobObject};
pub use namespace_calls::NamespaceCalls;
pub use namespace_policy::{NamespacePolicies, read_namespace_policies, watch_namespace_policies};
pub use plan_rules::broken_job_rules;
pub use plans::watch_plans;
pub use plugins::keep_plugins;
pub use secret_imports::read_secret_values;
pub use secret_values::{SecretSource, SecretValues};
pub use seed::{HostKey, HostKeyError};
pub use stores::{ConfigMapMeta, Queues, SecretMeta, Stored, StoredKind, Stores};
