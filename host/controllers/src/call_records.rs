//! Calls of components that are kept, for whoever tries another component on them (C-340, C-341). Where they are kept is
//! implemented by `runtime`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use orangery_core::name::{Namespace, ObjectName};
use orangery_proposal::{deployer::PluginIdentity, recorded::HiddenCall};

/// A call that is kept, without values of Secrets.
#[derive(Clone, Debug)]
pub struct CallRecording {
    /// The component.
    pub component: PluginIdentity,
    /// The namespace of the item.
    pub namespace: Namespace,
    /// The item.
    pub item: ObjectName,
    /// What was called: `plan`, `uninstall`, `render`, `evaluate`.
    pub function: &'static str,
    /// When.
    pub at: Timestamp,
    /// Request and answer.
    pub call: HiddenCall,
    /// The content that it read, by the names that the request gives the files.
    pub content: Vec<(String, Arc<Vec<u8>>)>,
}

/// Where calls are kept.
pub trait CallRecords: Send + Sync {
    /// Whether the call that begins now is to be kept, whoever asks for it or not.
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

/// What asks for recordings, beside the flags: Plugins (`spec.record`) and policies of namespaces (C-347).
#[derive(Default)]
pub(crate) struct AskedRecordings {
    /// Protects what is asked for and counted. Held for one look.
    shares: Mutex<RecordedShares>,
}

#[derive(Default)]
struct RecordedShares {
    by_plugin: BTreeMap<String, RecordedShare>,
    by_namespace: BTreeMap<Namespace, RecordedShare>,
}

/// Of so many calls one.
#[derive(Clone, Copy)]
struct RecordedShare {
    one_in: u32,
    begun: u64,
}

impl RecordedShare {
    /// Whether it is the turn of the call that begins now.
    fn samples(&mut self) -> bool {
        let is_its_turn = self.begun.is_multiple_of(u64::from(self.one_in.max(1)));
        self.begun = self.begun.wrapping_add(1);
        is_its_turn
    }
}

/// Has one call in so many count from now on; of the same number those that were made go on counting.
fn ask<K: Ord>(shares: &mut BTreeMap<K, RecordedShare>, of: K, one_in: Option<u32>) {
    match one_in {
        None => drop(shares.remove(&of)),
        Some(one_in) if shares.get(&of).is_some_and(|known| known.one_in == one_in) => {}
        Some(one_in) => drop(shares.insert(of, RecordedShare { one_in, begun: 0 })),
    }
}

impl AskedRecordings {
    /// What a Plugin asks for from now on.
    pub(crate) fn of_plugin(&self, plugin: &str, one_in: Option<u32>) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&mut shares.by_plugin, plugin.to_owned(), one_in);
    }

    /// Whether the call that begins now is asked for: by the Plugin of its component, or by the policy of its namespace, which asks
    /// for one call in so many.
    pub(crate) fn samples(&self, component: &PluginIdentity, namespace: &Namespace, one_in: Option<u32>) -> bool {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&mut shares.by_namespace, namespace.clone(), one_in);
        // Both count it, whichever asks for it.
        let of_plugin = shares.by_plugin.get_mut(&component.name).is_some_and(RecordedShare::samples);
        let of_namespace = shares.by_namespace.get_mut(namespace).is_some_and(RecordedShare::samples);
        of_plugin || of_namespace
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_347_plugins_and_policies_ask_for_one_call_in_so_many_each_by_its_own_count() {
        let asked = AskedRecordings::default();
        let samples = |plugin: &str, namespace: &'static str, one_in: Option<u32>| {
            let component =
                PluginIdentity { name: plugin.into(), version: "1".into(), digest: "d".into(), is_pinned: false };
            asked.samples(&component, &Namespace::from_static(namespace), one_in)
        };
        assert!(!samples("mine", "a", None), "nobody asks");
        asked.of_plugin("mine", Some(3));
        let sampled: Vec<bool> = (0..5).map(|_| samples("mine", "a", None)).collect();
        assert_eq!(sampled, [true, false, false, true, false]);
        assert!(!samples("other", "a", None));
        // The same again changes no count.
        asked.of_plugin("mine", Some(3));
        let sampled: Vec<bool> = (0..4).map(|_| samples("mine", "a", Some(2))).collect();
        assert_eq!(sampled, [true, true, true, false], "the policy has the first and the third, the Plugin the second");
        assert!(!samples("other", "b", None));
        asked.of_plugin("mine", None);
        let sampled: Vec<bool> = (0..2).map(|_| samples("mine", "a", None)).collect();
        assert_eq!(sampled, [false, false], "nobody asks any more");
    }
}
