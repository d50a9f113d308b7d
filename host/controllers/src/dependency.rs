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

use orangery_core::step::{Halt, Step, Until};
use orangery_reconcile::{Key, ObjectChange};

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
    /// The dependents of an object, in its namespace.
    fn of(self, stores: &Stores, object: &D) -> Vec<Key> {
        let key = Key::of(object);
        match self {
            Self::Indexed(index, under) => {
                let under = under(object).into_iter();
                under.flat_map(|value| index.keys(O::store(stores), &key.namespace, &value)).collect()
            }
            Self::Named(index) => {
                let names = (index.values)(object).into_iter().filter(|name| !name.is_empty());
                names.map(|name| Key::new(&key.namespace, name)).collect()
            }
            Self::SameName => vec![key],
            Self::Namespace => O::store(stores).keys(Some(&key.namespace)),
            Self::Reached(reached) => reached(stores, object),
            Self::Watching(_) => Vec::new(),
        }
    }

    /// Those of an object as it is, or was last; where others stand under what it has no more, these as well: they wait for it in
    /// vain now.
    pub(crate) fn of_change(&self, stores: &Stores, change: &ObjectChange<'_, D>) -> Vec<Key> {
        let Some(object) = change.after.or(change.before) else { return Vec::new() };
        let mut dependents = self.of(stores, object);
        if let (Self::Indexed(index, under), Some(before)) = (self, change.before.filter(|_| change.after.is_some())) {
            let now: BTreeSet<String> = under(object).into_iter().collect();
            let lost = under(before).into_iter().filter(|value| !now.contains(value));
            let namespace = Key::of(before.as_ref()).namespace;
            dependents.extend(lost.flat_map(|value| index.keys(O::store(stores), &namespace, &value)));
        }
        dependents
    }
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
    use orangery_api::data_object::DataObject;
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
}
