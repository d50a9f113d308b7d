//! Roots under the policy `OnChange`: a job starts when what they import has changed, or when gate expressions that decided
//! about items or sub-installations of their tree answer otherwise (C-05, ORC-33, WF-26). Roots under the import policy `Wait`: a job
//! goes on when what they import exists (C-10).
//!
//! A job is marked with the hash of the imports as it begins, and once more before it reads them; a root at rest whose imports
//! are all there with another hash starts the next job. DataObjects and Targets are known by their stores; Secrets and
//! ConfigMaps are watched as long as such a root imports them.
//!
//! The mark is of what the watches know, not of what the job reads. So every job that starts by itself answers something
//! that a watch has told since the last one, and jobs cannot follow each other over a watch that has fallen behind.

use std::sync::Arc;

use orangery_api::installation::{Installation, InstallationStatus};
use orangery_blueprint::{binding::ImportBindings, import};
use orangery_cluster::{ClusterPool, ObjectWatcher, Observed, Waiter};
use orangery_core::{
    error::{Code, Failure},
    name::{JobId, Kind, Namespace, ObjectName},
    plan::changes::{ObservedRoot, ObservedRoots, RootChanges},
};
use orangery_reconcile::{Key, Queue};

use super::{
    super::dependencies::awaits_imports,
    data_sources::DataSourceName,
    imports::{GatheredImports, ImportNames, ImportsTurn, data_source_names, read_imports},
    related::related_object,
    siblings,
};
use crate::{
    controller_context::{ControllerContext, waiter},
    event,
    stores::StoredKind,
    tree::observes,
};

/// What roots import beside our own kinds, watched by name or, where many are, with all of their kind (C-164).
pub(in crate::installation) struct ImportWatches {
    watcher: Arc<ObjectWatcher>,
}

/// What a job begins with, for its root to tell what is new afterwards.
pub(in crate::installation) struct Mark {
    imports: String,
    answers: Vec<String>,
}

impl Mark {
    pub(in crate::installation) fn put(self, status: &mut InstallationStatus) {
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
    Forbidden(Failure),
}

impl ImportWatches {
    /// Over a host and its clusters; `queue` is that of the Installations, in which changes wake those who import.
    pub(in crate::installation) fn new(host: &ControllerContext, pool: &ClusterPool, queue: Queue) -> Self {
        let wake = move |waiter: &Waiter| queue.wake(Key::new(&waiter.namespace, waiter.name.clone()));
        let watcher = Arc::new(pool.object_watcher(host.client.clone(), wake));
        let watched = Arc::clone(&watcher);
        host.stores.installations.subscribe(move |change| {
            if let (Some(before), None) = (change.before, change.after) {
                release(&watched, before);
            }
        });
        Self { watcher }
    }

    /// The mark of a job that begins, or is about to read its imports: the hash of the imports, empty where they do not
    /// bind. Empty as well for an Installation that does not start jobs by them.
    pub(in crate::installation) async fn mark(
        &self,
        host: &ControllerContext,
        installation: &Installation,
        turn: &ImportsTurn,
    ) -> Mark {
        if !observes(installation) {
            return Mark { imports: String::new(), answers: Vec::new() };
        }
        let imports = match self.view(host, installation) {
            View::Known(Some(hash)) => Some(hash),
            // The first lists are not in, or one has not told yet of what is there already: they will know nothing older than
            // what is read now.
            View::Known(None) | View::Unknown | View::Forbidden(_) => {
                let read = read_imports(host, installation, JobId::EMPTY, turn).await;
                read.ok().map(|imported| import::content_hash(&imported))
            }
        };
        let answers = host.changed_answers.hashes(&host.stores, &Key::of(installation));
        Mark { imports: imports.unwrap_or_default(), answers }
    }

    /// What a root at rest may start a job by, and the roots before it as far as they matter. Its imports are watched from now on,
    /// or no longer where they start none; nothing is known then.
    pub(in crate::installation) fn observed(&self, host: &ControllerContext, root: &Installation) -> ObservedRoots {
        let mut roots = ObservedRoots::new();
        if !observes(root) {
            release(&self.watcher, root);
            return roots;
        }
        let view = self.view(host, root);
        if let View::Forbidden(failure) = &view {
            event::warn_of_lasting(host, root, failure);
        }
        let Key { namespace, name } = Key::of(root);
        let mut ahead = self.add(host, (&name, root), view, &mut roots);
        while let Some(name) = ahead.pop() {
            let before = host.stores.installations.get(&Key::new(&namespace, &name));
            let Some(before) = before.filter(|_| !roots.contains_key(&name)) else { continue };
            let view = if observes(&before) { self.view(host, &before) } else { View::Unknown };
            ahead.extend(self.add(host, (&name, &before), view, &mut roots));
        }
        roots
    }

    /// Adds what is observed of a root; the roots before it matter where it tells anything new.
    fn add(
        &self,
        host: &ControllerContext,
        (name, root): (&str, &Installation),
        view: View,
        roots: &mut ObservedRoots,
    ) -> Vec<String> {
        let changes = match view {
            View::Known(imports) => Some(changes(host, root, imports)),
            View::Unknown | View::Forbidden(_) => None,
        };
        let (mut predecessors, mut is_about_to_be_asked) = (Vec::new(), false);
        if changes.as_ref().is_some_and(RootChanges::tells) {
            for before in siblings::predecessors(&host.stores, root) {
                is_about_to_be_asked |= asks_soon(&before, name);
                predecessors.push(related_object(&before));
            }
        }
        let names = predecessors.iter().map(|before| before.name.clone()).collect();
        roots.insert(name.to_owned(), ObservedRoot { changes, predecessors, is_about_to_be_asked });
        names
    }

    /// Watches the Secrets and ConfigMaps that a job may have to wait for, until the Installation is at rest.
    pub(in crate::installation) fn watch(&self, host: &ControllerContext, installation: &Installation) {
        if awaits_imports(installation) {
            self.keep(host, installation);
        }
    }

    /// Watches the Secrets and ConfigMaps among the imports from now on. What is known of each.
    fn keep(&self, host: &ControllerContext, installation: &Installation) -> Vec<(DataSourceName, Observed)> {
        let waiter = waiter(StoredKind::Installation, &Key::of(installation));
        let named = data_source_names(installation);
        let objects: Vec<_> = named.iter().map(|(kind, name)| (kind.resource(), name.clone())).collect();
        let sights = self.watcher.keep(&waiter, &objects);
        if host.stores.installations.get(&Key::of(installation)).is_none() {
            // It went meanwhile, and what it held before was released.
            self.watcher.release(&waiter);
        }
        named.into_iter().zip(sights).collect()
    }

    fn view(&self, host: &ControllerContext, installation: &Installation) -> View {
        let Key { namespace, .. } = Key::of(installation);
        let mut seen = Vec::new();
        for (of, sight) in self.keep(host, installation) {
            match sight {
                Observed::Present(object) => seen.push((of, object)),
                Observed::Absent | Observed::Gone(_) => {}
                Observed::Unknown => return View::Unknown,
                Observed::Forbidden(why) | Observed::Unwatched(why) => {
                    return View::Forbidden(forbidden(&of.0.resource().kind, &namespace, &of.1, &why));
                }
            }
        }
        let gathered = GatheredImports::seen(host, &namespace, seen);
        let imports = ImportBindings::from(&installation.spec.imports);
        let imported = import::read(&imports, &ImportNames::of(installation, JobId::EMPTY).scope(), &gathered);
        View::Known(imported.ok().map(|imported| import::content_hash(&imported)))
    }
}

/// What a root may start a job by.
fn changes(host: &ControllerContext, root: &Installation, imports: Option<String>) -> RootChanges {
    let answers = host.changed_answers.hashes(&host.stores, &Key::of(root));
    match &root.status {
        Some(status) => RootChanges {
            marked: status.triggered_imports_hash.clone(),
            imports,
            marked_answers: status.triggered_answers.clone(),
            answers,
        },
        None => RootChanges { imports, answers, ..RootChanges::default() },
    }
}

/// Whether a sibling is about to ask an Installation for a job (INS-43).
fn asks_soon(sibling: &Installation, name: &str) -> bool {
    let mut asked = sibling.status.iter().flat_map(|status| &status.dependents_to_trigger);
    asked.any(|dependent| dependent.name == name)
}

/// Ends what an Installation has watched, if anybody watches anything.
fn release(watcher: &ObjectWatcher, installation: &Installation) {
    if !watcher.is_empty() {
        watcher.release(&waiter(StoredKind::Installation, &Key::of(installation)));
    }
}

fn forbidden(kind: &Kind, namespace: &Namespace, name: &ObjectName, why: &str) -> Failure {
    let message = format!(
        "{kind} {namespace}/{name} cannot be watched, so a change of it starts no job: {why}; where a right is missing, let \
         the operator get, list and watch it, as the rules of the chart do"
    );
    Failure::new("WatchImports", "ImportNotWatched", message).with_code(Code::ConfigurationProblem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn orc_33_ins_43_what_is_about_to_be_asked_stands_in_the_status_of_a_sibling() {
        let asks = |status: Value| {
            let object = json!({"metadata": {"name": "x"}, "spec": {"blueprint": {}}, "status": status});
            asks_soon(&serde_json::from_value(object).unwrap(), "a")
        };
        let of = |name: &str| json!({"dependentsToTrigger": [{"name": "z"}, {"name": name}]});
        assert_eq!([json!({}), of("b"), of("a")].map(asks), [false, false, true]);
    }
}
