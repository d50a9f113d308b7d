//! Roots under the policy `OnChange`: a job starts when what they import has changed, or when conditions that decided about
//! items or sub-installations of their tree answer otherwise (C-05, ORC-33, WF-26). Roots under the import policy `Wait`: a job
//! goes on when what they import exists (C-10).
//!
//! A job is marked with the hash of the imports as it begins, and once more before it reads them; a root at rest whose imports
//! are all there with another hash starts the next job. DataObjects and Targets are known by their stores; Secrets and
//! ConfigMaps are watched, each by its name, as long as such a root imports them.
//!
//! The mark is of what the watches know, not of what the job reads. So every job that starts by itself answers something
//! that a watch has told since the last one, and jobs cannot follow each other over a watch that has fallen behind.

use std::{collections::BTreeSet, sync::Arc};

use kube::ResourceExt;
use orangery_api::{
    data_object::DataObject,
    installation::{ImportPolicy, Installation, InstallationStatus},
    job::Job as _,
    marks::Marks,
    target::Target,
};
use orangery_apply::{Lookout, Sight, Waiter};
use orangery_blueprint::{
    binding::Imports,
    import,
    sibling::{Reference, imported},
};
use orangery_core::{
    error::{Code, Failure},
    name::object_name,
    plan::installation as plan,
};
use orangery_reconcile::{Key, Queue, Watched};

use super::{
    KIND,
    children::peer,
    objects::{Names, read_imports},
    request, sibling,
    sources::{Gathered, Plain, PlainName},
};
use crate::{
    event,
    host::{Host, waiter},
    outdated::observes,
};

/// What roots import beside our own kinds.
pub(super) struct OnChange {
    lookout: Arc<Lookout>,
}

/// What a job begins with, for its root to tell what is new afterwards.
pub(super) struct Mark {
    imports: String,
    answers: Vec<String>,
}

impl Mark {
    pub(super) fn put(self, status: &mut InstallationStatus) {
        status.triggered_imports_hash = self.imports;
        status.triggered_answers = self.answers;
    }
}

/// What is known of the imports of a root.
enum View {
    /// Their hash; `None` where they do not bind.
    Known(Option<String>),
    /// A first list is not in yet; it wakes the root.
    Unknown,
    /// Something cannot be watched.
    Blind(Failure),
}

impl OnChange {
    /// Over a host; `queue` is that of the Installations, in which changes wake those who import.
    pub(super) fn new(host: &Host, queue: Queue) -> Self {
        let wake = move |waiter: &Waiter| queue.wake(Key::new(waiter.namespace.clone(), waiter.name.clone()));
        let lookout = Arc::new(Lookout::new(host.client.clone(), wake));
        let watched = Arc::clone(&lookout);
        host.stores.installations.subscribe(move |change| {
            if let (Some(before), None) = (change.before, change.after) {
                release(&watched, before);
            }
        });
        Self { lookout }
    }

    /// The mark of a job that begins, or is about to read its imports: the hash of the imports, empty where they do not
    /// bind. Empty as well for who does not start jobs by them.
    pub(super) async fn mark(&self, host: &Host, installation: &Installation) -> Mark {
        let imports = self.mark_imports(host, installation).await;
        let answers = if observes(installation) {
            host.outdated.hashes(&host.stores, &Key::of(installation))
        } else {
            Vec::new()
        };
        Mark { imports, answers }
    }

    async fn mark_imports(&self, host: &Host, installation: &Installation) -> String {
        if !observes(installation) {
            return String::new();
        }
        match self.view(host, installation) {
            View::Known(hash) => hash.unwrap_or_default(),
            // The first lists are not in: they will know nothing older than what is read now.
            View::Unknown | View::Blind(_) => {
                let read = read_imports(host, installation, "").await;
                read.map(|imported| import::content_hash(&imported)).unwrap_or_default()
            }
        }
    }

    /// Whether the imports of an Installation at rest start a job. They are watched from now on, or no longer where they start
    /// none.
    pub(super) fn is_due(&self, host: &Host, installation: &Installation) -> bool {
        if !observes(installation) {
            release(&self.lookout, installation);
            return false;
        }
        let view = self.view(host, installation);
        if let View::Blind(failure) = &view {
            event::failed(&host.recorder, installation, None, Some(failure));
        }
        self.starts(host, installation, view, &mut BTreeSet::new())
    }

    /// Whether what is known of the imports of a root under the policy starts a job; `asked` are the roots after it for which
    /// that was asked already.
    fn starts(&self, host: &Host, root: &Installation, view: View, asked: &mut BTreeSet<String>) -> bool {
        let View::Known(imports) = view else { return false };
        let answers = host.outdated.hashes(&host.stores, &Key::of(root));
        let status = root.status.as_ref();
        let changes = plan::Changes {
            marked: status.map_or("", |status| &status.triggered_imports_hash),
            imports: imports.as_deref(),
            marked_answers: status.map(|status| status.triggered_answers.as_slice()).unwrap_or_default(),
            answers: &answers,
        };
        if !changes.tell() || !asked.insert(root.name_any()) {
            return false;
        }
        let before = sibling::predecessors(host, root);
        let peers: Vec<_> = before.iter().map(|sibling| peer(sibling)).collect();
        let wanted = is_about_to_be_asked(&root.name_any(), &before)
            || before.iter().any(|sibling| self.is_about_to_start(host, sibling, asked));
        plan::changes_start(changes, &peers, wanted)
    }

    /// Whether a root at rest starts a job as soon as its turn comes. Who imports from it waits for that: of one change that
    /// both import, the one that comes first would else be told by the other one's old exports.
    fn is_about_to_start(&self, host: &Host, sibling: &Installation, asked: &mut BTreeSet<String>) -> bool {
        let by_imports = |asked| observes(sibling) && self.starts(host, sibling, self.view(host, sibling), asked);
        sibling.job_finished() && (request::is_requested(sibling) || by_imports(asked))
    }

    /// Watches the Secrets and ConfigMaps that a job may have to wait for, until the Installation is at rest.
    pub(super) fn watch(&self, host: &Host, installation: &Installation) {
        if awaits(installation) {
            self.keep(host, installation, &Imports::from(&installation.spec.imports));
        }
    }

    /// Watches the Secrets and ConfigMaps among the imports from now on. What is known of each.
    fn keep(&self, host: &Host, installation: &Installation, imports: &Imports) -> Vec<(PlainName, Sight)> {
        let waiter = waiter(KIND, &Key::of(installation));
        let named = Plain::named(imports);
        let objects: Vec<_> = named.iter().map(|(kind, name)| (kind.resource(), name.clone())).collect();
        let sights = self.lookout.keep(&waiter, &objects);
        if host.stores.installations.get(&Key::of(installation)).is_none() {
            // It went meanwhile, and what it held before was released.
            self.lookout.release(&waiter);
        }
        named.into_iter().zip(sights).collect()
    }

    fn view(&self, host: &Host, installation: &Installation) -> View {
        let imports = Imports::from(&installation.spec.imports);
        let namespace = installation.namespace().unwrap_or_default();
        let mut seen = Vec::new();
        for (of, sight) in self.keep(host, installation, &imports) {
            match sight {
                Sight::Present(object) => seen.push((of, object)),
                Sight::Absent => {}
                Sight::Unknown => return View::Unknown,
                Sight::Blind(why) => return View::Blind(blind(&of.0.resource().kind, &namespace, &of.1, &why)),
            }
        }
        let gathered = Gathered::seen(host, &namespace, seen);
        let imported = import::read(&imports, &Names::of(installation, "").scope(), &gathered);
        View::Known(imported.ok().map(|imported| import::content_hash(&imported)))
    }
}

/// Whether jobs of an Installation wait for imports that do not exist.
pub(super) fn awaits(installation: &Installation) -> bool {
    installation.spec.import_policy == ImportPolicy::Wait && installation.is_root() && !installation.is_deleting()
}

/// The DataObjects and Targets whose changes may start a job of an Installation or let one go on, as index keys.
pub(crate) fn observed(installation: &Installation) -> Vec<String> {
    if !observes(installation) && !awaits(installation) {
        return Vec::new();
    }
    let references = imported(&(&installation.spec.imports).into());
    let observed = references.iter().filter_map(|reference| match reference {
        Reference::Data(key) => Some(observed_as::<DataObject>(&object_name("", key))),
        Reference::Target(key) => Some(observed_as::<Target>(&object_name("", key))),
        Reference::TargetList(_) | Reference::TargetMap(_) => None,
    });
    observed.collect()
}

/// The index key of an object that may be imported.
pub(crate) fn observed_as<K: Watched>(name: &str) -> String {
    format!("{} {name}", K::kind(&()))
}

/// Whether one of these siblings is about to ask an Installation for a job (INS-43).
fn is_about_to_be_asked(name: &str, siblings: &[Arc<Installation>]) -> bool {
    let asked = siblings.iter().filter_map(|sibling| sibling.status.as_ref());
    asked.flat_map(|status| &status.dependents_to_trigger).any(|dependent| dependent.name == name)
}

/// Ends what an Installation has watched, if anybody watches anything.
fn release(lookout: &Lookout, installation: &Installation) {
    if !lookout.is_empty() {
        lookout.release(&waiter(KIND, &Key::of(installation)));
    }
}

fn blind(kind: &str, namespace: &str, name: &str, why: &str) -> Failure {
    let message = format!(
        "{kind} {namespace}/{name} cannot be watched, so a change of it starts no job: {why}; let the operator get, list \
         and watch it, as the rules of the chart do"
    );
    Failure::new("WatchImports", "ImportNotWatched", message).with_code(Code::ConfigurationProblem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn installation(policy: &str, metadata: Value) -> Installation {
        let imports = json!({
            "data": [
                {"name": "a", "dataRef": "plain"},
                {"name": "b", "dataRef": "#global"},
                {"name": "c", "dataRef": "No Name"},
                {"name": "d", "secretRef": {"name": "s"}},
            ],
            "targets": [{"name": "e", "target": "one"}, {"name": "f", "targets": ["two", "one"]}],
        });
        let spec = json!({"blueprint": {}, "imports": imports, "reconcilePolicy": policy});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    #[test]
    fn orc_30_orc_33_a_root_under_the_policy_is_found_by_the_objects_it_imports() {
        let root = json!({"name": "x"});
        let hashed = format!("DataObject {}", object_name("", "No Name"));
        let mut keys = vec!["DataObject global", &hashed, "DataObject plain", "Target one", "Target two"];
        let mut observed_keys = observed(&installation("OnChange", root.clone()));
        keys.sort_unstable();
        observed_keys.sort_unstable();
        assert_eq!(observed_keys, keys);
        assert_eq!(observed_as::<DataObject>("plain"), "DataObject plain");
        assert_eq!(observed_as::<Target>("one"), "Target one");
        for policy in ["Manual", "OnSpecChange"] {
            assert_eq!(observed(&installation(policy, root.clone())), [""; 0], "{policy}");
        }
    }

    #[test]
    fn orc_33_ins_43_who_is_about_to_be_asked_stands_in_the_status_of_a_sibling() {
        let mut sibling = installation("Manual", json!({"name": "x"}));
        sibling.status = Some(serde_json::from_value(json!({"dependentsToTrigger": [{"name": "a"}]})).unwrap());
        let siblings = [Arc::new(installation("Manual", json!({"name": "y"}))), Arc::new(sibling)];
        assert!(is_about_to_be_asked("a", &siblings));
        assert!(!is_about_to_be_asked("b", &siblings) && !is_about_to_be_asked("a", &[]));
    }

    #[test]
    fn orc_33_children_and_what_is_to_go_start_no_jobs_by_their_imports() {
        let owner =
            json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": "up", "uid": "u"}]);
        for metadata in [
            json!({"name": "x", "ownerReferences": owner}),
            json!({"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ] {
            assert_eq!(observed(&installation("OnChange", metadata.clone())), [""; 0], "{metadata}");
        }
    }
}
