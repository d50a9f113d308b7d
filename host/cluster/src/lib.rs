//! Clients of clusters: pool, watches, credentials. Knows none of our kinds, and nothing of proposals but their words.
//!
//! - [`Cluster`]: one Kubernetes API server, its kinds, and the watches that items share on it.
//! - [`ClusterPool`]: clusters by the digest of their kubeconfig; [`ClusterSet`]: those of one deploy item, also the
//!   port through which its component reads.
//! - [`ObjectWatcher`]: watches on objects by their names, for those that depend on them without deploying them.
//! - [`issue_credential`]: credentials of a cluster for templates that ask for them.
//!
//! - [`Call`]: the call of a controller that clusters are asked for: its requests end with it.
//!
//! Nothing here polls: a watch wakes the object that waits. Nothing sleeps but a request that the server wants to have later.

mod answer;
mod answer_room;
mod call;
mod cluster;
mod connect;
mod connections;
mod error;
mod guest;
mod impersonation;
mod issue;
mod kubeconfig;
mod object_memory;
mod object_watcher;
mod pace;
mod path;
mod program_content;
mod request_figures;
mod set;
mod shares;
mod watch;

pub use crate::{
    answer::MOST_ANSWER_BYTES,
    call::Call,
    cluster::{Cluster, Deletion, MOST_PAGES, MOST_REQUESTS, Precondition, is_being_deleted},
    connect::{ClusterFigures, ClusterPool},
    connections::Connections,
    error::{Error, NOT_SERVED, TERMINATING, UNLOCATED, code, unreached},
    guest::{MOST_GROUP_VERSIONS, MOST_KINDS},
    impersonation::in_the_name_of,
    issue::{Credential, IssuedCredential, Subject, issue_credential},
    kubeconfig::{KubeconfigError, MOST_KUBECONFIG_BYTES, in_use, server_at, server_of},
    object_memory::{HeldObject, KeptObjects, MOST_OBJECT_BYTES},
    object_watcher::{MOST_APART, ObjectWatcher},
    request_figures::RequestCounts,
    set::{ClusterSet, unobserved},
    shares::{MOST_WATCHES, SMALL_COMPARISON},
    watch::{
        FeedEvent, FeedHandle, Feeds, MOST_SINGLE, NamespacedName, Observe, Observed, Observer, Waiter, Wake, Watches,
        read_events,
    },
};
