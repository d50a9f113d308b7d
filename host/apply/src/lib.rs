//! Carries proposals out: inventory, stages, gates, pruning, deletion. Knows none of our kinds.
//!
//! Access to clusters, which imports nothing of the rest:
//!
//! - [`Cluster`]: one Kubernetes API server, its kinds, and the watches that items share on it.
//! - [`ClusterPool`]: clusters by the digest of their kubeconfig; [`ClusterSet`]: those of one deploy item, also the
//!   port through which its component reads.
//! - [`ObjectWatcher`]: watches on single objects, for those that depend on them without deploying them.
//! - [`issue_credential`]: credentials of a cluster for templates that ask for them.
//!
//! Carrying out:
//!
//! - [`carry_out`]: takes a proposal as far as it goes without waiting; [`delete`]: does the same with an inventory.
//! - [`dry_run`]: takes the same path with a writer that only tries, and says what would become of each object.
//!
//! Nothing here sleeps or polls: what cannot go on answers `Halt::Wait`, and a watch wakes the item. What has to survive a
//! crash goes through the caller's [`ProgressStore`] before it counts.

mod apply_error;
mod cluster;
mod connect;
mod deletion;
mod dry_run;
mod error;
mod executor;
mod export;
mod gate;
mod guest;
mod issue;
mod job;
mod kubeconfig;
mod object_watcher;
mod set;
mod site;
mod trials;
mod watch;
mod write;
mod writer;

pub use crate::{
    cluster::Cluster,
    connect::{ClusterPool, Connections},
    deletion::delete,
    dry_run::{DryRun, Effect, dry_run},
    error::Error,
    executor::carry_out,
    issue::{Credential, IssuedCredential, Subject, issue_credential},
    job::{ItemState, Job, Outcome, ProgressStore, Purpose},
    kubeconfig::KubeconfigError,
    object_watcher::ObjectWatcher,
    set::ClusterSet,
    watch::{Observed, Waiter, Wake},
};
