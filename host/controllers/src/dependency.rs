//! One value for each edge between two kinds (ORC-24, ORC-29, ORC-32). It gives:
//!
//! - the index by which the dependents of an object are found ([`Dependents`]),
//! - the watch: which changes call their controller ([`Watch`]),
//! - the wait: how a dependent gets the object, and what it answers while it is not there ([`Dependency::find`],
//!   [`Dependency::wait`]),
//! - the guard: the finalizer that keeps the object as long as it has dependents (`Dependency::guard`).
//!
//! The values stand with the kind that depends, in its `dependencies.rs`.

use std::{collections::BTreeSet, sync::Arc};

use orangery_core::{
    name::Namespace,
    step::{Halt, Step, Until},
};
use orangery_reconcile::{Key, ObjectChange, Store};

use crate::{
    controller_context::ControllerContext,
    index::Index,
    object::is_going,
    object_access::get,
    stores::{Queues, Stored, StoredKind, Stores},
};

/// How those who depend on an object are found.
pub(crate) enum Dependents<O: 'static, D: 'static> {
    /// They name it: an index of theirs, and the values under which the dependents of an object stand there.
    Indexed(&'static Index<O>, fn(&D) -> Vec<String>),
    /// The object names them: an index of its own kind.
    Named(&'static Index<D>),
    /// They have its name.
    SameName,
    /// All of its namespace.
    Namespace,
    /// As this function says.
    Reached(fn(&Stores, &D) -> Vec<Key>),
    /// They hold a watch of its name: the names that a dependent refers to.
    Watching(fn(&O) -> Vec<String>),
}

impl<O: 'static, D: 'static> Clone for Dependents<O, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: 'static, D: 'static> Copy for Dependents<O, D> {}

impl<O: Stored, D: Stored> Dependents<O, D> {
    /// The dependents of an object, in its namespace, as it is or was last. Where others stand under what it has no more, these as
    /// well: they wait for it in vain now.
    pub(crate) fn of_change(&self, stores: &Stores, change: &ObjectChange<'_, D>) -> BTreeSet<Key> {
        let Some(object) = change.after.or(change.before) else { return BTreeSet::new() };
        let key = Key::of(object.as_ref());
        match self {
            Self::Indexed(index, under) => {
                let versions = change.before.into_iter().chain(change.after);
                let values: BTreeSet<String> = versions.flat_map(|version| under(version)).collect();
                found_under(index, O::store(stores), &key.namespace, &values)
            }
            Self::Named(index) => {
                let names = (index.values)(object).into_iter().filter(|name| !name.is_empty());
                names.map(|name| Key::new(&key.namespace, name)).collect()
            }
            Self::SameName => [key].into(),
            Self::Namespace => O::store(stores).keys(Some(&key.namespace)).into_iter().collect(),
            Self::Reached(reached) => reached(stores, object).into_iter().collect(),
            Self::Watching(_) => BTreeSet::new(),
        }
    }
}

/// The most objects that are found for one change, one of them as often as it stands under another value (C-296): where there are more,
/// all of the namespace count as found.
const MOST_FOUND: usize = 10_000;

/// What stands under one of these values.
fn found_under<O: Stored>(
    index: &Index<O>,
    store: &Store<O>,
    namespace: &Namespace,
    values: &BTreeSet<String>,
) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    let mut left = MOST_FOUND;
    for value in values {
        let keys = index.keys(store, namespace, value);
        let Some(rest) = left.checked_sub(keys.len()) else {
            return store.keys(Some(namespace)).into_iter().collect();
        };
        left = rest;
        found.extend(keys);
    }
    found
}

/// What a change does.
pub(crate) enum Watch<D: 'static> {
    /// Changes of what is depended on of which this holds call the controller of the dependents.
    Wakes(fn(&ObjectChange<'_, D>) -> bool),
    /// A dependent that gives its reference up, or goes, has the guard of what it referred to called, in this way.
    Frees(fn(&Stores, &Queues, Key)),
    /// A watch of one name, which begins where a dependent asks for it.
    ByName,
}

/// Objects of the kind `O` depend on objects of the kind `D`.
pub(crate) struct Dependency<O: 'static, D: 'static> {
    /// What they depend on them for.
    pub(crate) what: &'static str,
    /// How the dependents are found, in words.
    pub(crate) through: &'static str,
    /// How the dependents are found.
    pub(crate) dependents: Dependents<O, D>,
    /// What a change does.
    pub(crate) watch: Watch<D>,
}

impl<O: Stored, D: Stored> Dependency<O, D> {
    /// The names of the objects that a dependent refers to, where it is the dependent that names them.
    pub(crate) fn names(&self, of: &O) -> Vec<String> {
        match &self.dependents {
            Dependents::Indexed(index, _) => (index.values)(of),
            Dependents::Watching(names) => names(of),
            Dependents::Named(_) | Dependents::SameName | Dependents::Namespace | Dependents::Reached(_) => Vec::new(),
        }
    }

    /// The object that is depended on. What the store lacks is asked of the server once before it counts as missing.
    ///
    /// # Errors
    /// The server could not be asked.
    pub(crate) async fn find(&self, host: &ControllerContext, key: &Key) -> Step<Option<Arc<D>>> {
        let store = D::store(&host.stores);
        if let Some(known) = store.get(key) {
            return Ok(Some(known));
        }
        let read: Option<D> = get(&host.client, &key.namespace, &key.name).await?;
        Ok(read.map(|object| store.upsert(object)))
    }

    /// What a dependent answers that waits for the object.
    pub(crate) fn wait(&self, name: impl Into<String>, until: Until) -> Halt {
        Halt::wait(D::KIND.name(), name, until)
    }
}

/// What writes records waits for one that is on its way out to be gone, to write it anew (C-138). The record does not say what
/// waits for it: all of its namespace are called.
pub(crate) const fn gone_records<O: Stored, D: Stored>() -> Dependency<O, D> {
    Dependency {
        what: "to be gone, before it is written anew",
        through: "its namespace",
        dependents: Dependents::Namespace,
        watch: Watch::Wakes(was_going),
    }
}

fn was_going<D: Stored>(change: &ObjectChange<'_, D>) -> bool {
    change.after.is_none() && change.before.is_some_and(|before| is_going(before.as_ref()))
}

/// An edge in words: a row of the table of who depends on whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DependencyRow {
    /// The kind that waits: the dependent, or what waits for its dependents to be gone.
    pub of: StoredKind,
    /// The kind that it waits for.
    pub on: StoredKind,
    /// What it waits for.
    pub what: &'static str,
    /// How those who wait are found.
    pub through: &'static str,
}

/// An edge, whatever its kinds.
pub(crate) trait Edge: Sync {
    /// The edge in words.
    fn row(&self) -> DependencyRow;
    /// Gives the stores the index of this edge.
    fn index(&self, stores: &Stores);
    /// Subscribes to the stores.
    fn watch(&self, stores: &Stores, queues: &Queues);
    /// The kind that the edge guards against deletion, and the kind of its dependents.
    fn guards(&self) -> Option<(StoredKind, StoredKind)>;
    /// The dependents of an object that they name themselves.
    fn dependents(&self, stores: &Stores, key: &Key) -> Vec<Key>;
}

impl<O: Stored, D: Stored> Edge for Dependency<O, D> {
    fn row(&self) -> DependencyRow {
        // A guard waits for the dependents of what it keeps.
        let (of, on) = if self.guards().is_some() { (D::KIND, O::KIND) } else { (O::KIND, D::KIND) };
        DependencyRow { of, on, what: self.what, through: self.through }
    }

    fn index(&self, stores: &Stores) {
        match &self.dependents {
            Dependents::Indexed(index, _) => index.register(O::store(stores)),
            Dependents::Named(index) => index.register(D::store(stores)),
            Dependents::SameName | Dependents::Namespace | Dependents::Reached(_) | Dependents::Watching(_) => {}
        }
    }

    fn watch(&self, stores: &Stores, queues: &Queues) {
        let (known, queues) = (stores.clone(), queues.clone());
        match self.watch {
            Watch::Wakes(concerns) => {
                let dependents = self.dependents;
                D::store(stores).subscribe(move |change| {
                    if concerns(change) {
                        for dependent in dependents.of_change(&known, change) {
                            queues.wake(O::KIND, dependent);
                        }
                    }
                });
            }
            Watch::Frees(free) => {
                let Dependents::Indexed(index, _) = self.dependents else { return };
                O::store(stores).subscribe(move |change| {
                    let Some(before) = change.before else { return };
                    let now: BTreeSet<String> =
                        change.after.into_iter().flat_map(|after| (index.values)(after)).collect();
                    let namespace = Key::of(before.as_ref()).namespace;
                    for name in (index.values)(before).into_iter().filter(|name| !now.contains(name)) {
                        free(&known, &queues, Key::new(&namespace, name));
                    }
                });
            }
            Watch::ByName => {}
        }
    }

    fn guards(&self) -> Option<(StoredKind, StoredKind)> {
        matches!(self.watch, Watch::Frees(_)).then_some((D::KIND, O::KIND))
    }

    fn dependents(&self, stores: &Stores, key: &Key) -> Vec<Key> {
        match &self.dependents {
            Dependents::Indexed(index, _) => index.keys(O::store(stores), &key.namespace, &key.name),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use orangery_api::{data_object::DataObject, installation::Installation};
    use serde_json::json;

    use super::*;

    #[test]
    fn c_138_what_waits_for_a_record_is_called_when_it_is_gone_after_it_was_on_its_way_out() {
        let record = |metadata: serde_json::Value| -> Arc<DataObject> {
            Arc::new(serde_json::from_value(json!({"metadata": metadata, "data": 1})).unwrap())
        };
        let (there, going) =
            (record(json!({"name": "x"})), record(json!({"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"})));
        let is = |before, after| was_going(&ObjectChange::<DataObject> { before, after });
        assert!(is(Some(&going), None));
        assert!(!is(Some(&going), Some(&there)) && !is(Some(&there), None) && !is(None, Some(&there)));
        // As the edges of those who write records ask it.
        let Watch::Wakes(concerns) = gone_records::<DataObject, DataObject>().watch else { panic!("it wakes nobody") };
        assert!(concerns(&ObjectChange { before: Some(&going), after: None }));
    }

    #[test]
    fn c_296_limits_index_dependents_of_a_change_are_found_once_and_beyond_a_number_all_are_called() {
        static IMPORTS: Index<Installation> =
            Index { name: "places", values: |installation| values(&installation.spec.imports.data) };
        fn values<T>(of: &[T]) -> Vec<String> {
            (0..of.len()).map(|at| format!("{at:03}")).collect()
        }
        let of = |name: &str, imports: usize| -> Installation {
            let imports: Vec<_> = (0..imports).map(|at| json!({"name": at.to_string(), "dataRef": "x"})).collect();
            let metadata = json!({"namespace": "n", "name": name, "uid": name, "resourceVersion": "1"});
            serde_json::from_value(
                json!({"metadata": metadata, "spec": {"blueprint": {}, "imports": {"data": imports}}}),
            )
            .unwrap()
        };
        let stores = crate::stores();
        IMPORTS.register(&stores.installations);
        for at in 0..100 {
            stores.installations.upsert(of(&format!("importer-{at}"), MOST_FOUND / 100 + 1));
        }
        stores.installations.upsert(of("other", 0));
        let dependents = Dependents::Indexed(&IMPORTS, |exporter: &Installation| values(&exporter.spec.imports.data));
        let found = |exports: usize| {
            let exporter = Arc::new(of("exporter", exports));
            dependents.of_change(&stores, &ObjectChange { before: Some(&exporter), after: Some(&exporter) })
        };
        let importers: BTreeSet<Key> = (0..100).map(|at| Key::new("n", format!("importer-{at}"))).collect();
        assert_eq!(found(MOST_FOUND / 100), importers);
        assert_eq!(found(MOST_FOUND / 100 + 1), stores.installations.keys(Some(&"n".into())).into_iter().collect());
    }
}
