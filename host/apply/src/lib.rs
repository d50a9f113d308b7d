//! Carries proposals out: inventory, stages, gates, pruning, deletion. Knows none of our kinds.
//!
//! - [`carry_out`]: takes a proposal as far as it goes without waiting; [`delete`]: does the same with an inventory.
//! - [`dry_run`]: takes the same path with a writer that only tries, and says what would become of each object.
//!
//! Nothing here sleeps or polls: what cannot go on answers `Halt::Wait`, and a watch wakes the item. What has to survive a
//! crash goes through the caller's [`ProgressStore`] before it counts.

mod apply_error;
mod cluster_identity;
mod defined;
mod deletion;
mod drift;
mod dry_run;
mod dry_run_objects;
mod executor;
mod export;
mod gate;
mod job;
mod job_objects;
mod owner;
mod pods;
mod recorder;
mod scope;
mod write;
mod writer;

pub use crate::{
    cluster_identity::{ClusterIdentity, ReachedCluster, Sameness},
    deletion::{delete, end_ephemeral, hand_over},
    drift::{
        DriftFinding, DriftedSince, TrackedManifest, ask, correct, find, manifest, manifest_objects, part, watch,
        writes_all,
    },
    dry_run::{DryRun, Effect, dry_run, dry_run_of_deletion, reached},
    executor::carry_out,
    job::{DeployItems, ItemState, Job, Outcome, ProgressStore, Purpose},
    owner::{OWNER_ANNOTATION, OWNER_CLUSTER_ANNOTATION, Owner},
    recorder::{MOST_SENT_WRITES, ObjectDigest, Recorded, RecordedObject, SentWrite, WriteRecorder, WriteVerb},
    scope::{has_stray_namespaces, without_stray_namespaces},
};
