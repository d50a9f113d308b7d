//! Calls of deployers that are kept, for whoever tries another component on them (C-340, C-341). Where they are kept is implemented by
//! `runtime`.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use orangery_core::name::{Namespace, ObjectName};
use orangery_proposal::{
    deployer::PluginIdentity,
    recorded::{CalledFunction, HiddenCall},
};

/// A call that is kept, without values of Secrets.
#[derive(Clone, Debug)]
pub struct CallRecording {
    /// The component.
    pub component: PluginIdentity,
    /// The namespace of the item.
    pub namespace: Namespace,
    /// The item.
    pub item: ObjectName,
    /// What was called.
    pub function: CalledFunction,
    /// When.
    pub at: Timestamp,
    /// Request and answer.
    pub call: HiddenCall,
    /// The content that it read, by the names that the request gives the files.
    pub content: Vec<(String, Arc<Vec<u8>>)>,
}

/// Where calls are kept.
pub trait CallRecords: Send + Sync {
    /// Whether the call that begins now is to be kept.
    fn samples(&self) -> bool;
    /// Keeps a call. What cannot be kept is told in the log, and the job goes on.
    fn keep(&self, record: CallRecording);
}

/// Calls are kept from now on.
pub struct Recordings {
    /// Where.
    pub(crate) records: Arc<dyn CallRecords>,
}

impl Recordings {
    /// Calls are kept there.
    pub fn kept_in(records: Arc<dyn CallRecords>) -> Self {
        Self { records }
    }
}

/// The namespaces whose Secrets were read by this process.
#[derive(Default)]
pub(crate) struct ReadNamespaces {
    /// Protects one change.
    namespaces: Mutex<BTreeSet<Namespace>>,
}

impl ReadNamespaces {
    /// Whether what is secret in a namespace is to be read: the process before may have read it. It counts as read from now on.
    pub(crate) fn begins_with(&self, namespace: &Namespace) -> bool {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.clone())
    }
}
