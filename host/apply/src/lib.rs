//! Carries proposals out: inventory, stages, gates, pruning, deletion. Knows none of our kinds.
//!
//! - [`Cluster`]: one Kubernetes API server, its kinds, and the watches that items share on it.
//! - [`ClusterPool`]: clusters by the digest of their kubeconfig; [`ClusterSet`]: those of one deploy item, also the
//!   port through which its component reads.
//! - [`carry_out`]: takes a proposal as far as it goes without waiting; [`delete`]: does the same with an inventory.
//! - [`Lookout`]: watches on single objects, for whoever depends on them without deploying them.
//! - [`mint`]: credentials of a cluster for templates that ask for them.
//! - [`drift`]: how far live objects are from a proposal; [`preview`]: what it would do to them.
//!
//! Nothing here sleeps or polls: what cannot go on answers `Halt::Wait`, and a watch wakes whoever waits. What has to
//! survive a crash goes through the caller's [`Ledger`] before it counts.

mod cluster;
mod connect;
mod deletion;
mod drift;
mod error;
mod export;
mod gate;
mod guest;
mod job;
mod kubeconfig;
mod lookout;
mod mint;
mod preview;
mod run;
mod set;
mod site;
mod watch;
mod write;

pub use crate::{
    cluster::Cluster,
    connect::{ClusterPool, Connections},
    deletion::delete,
    drift::{Drifted, drift},
    error::Error,
    job::{Job, Ledger, Outcome, Page, Purpose},
    kubeconfig::KubeconfigError,
    lookout::Lookout,
    mint::{Credential, Minted, Subject, mint},
    preview::{Effect, preview},
    run::carry_out,
    set::ClusterSet,
    watch::{Sight, Waiter, Wake},
};
