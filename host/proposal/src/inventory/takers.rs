//! Which group of an order takes an object in: looked up, as an order may have many groups, scopes and names (C-291).

use std::collections::BTreeMap;

use orangery_core::name::{Kind, Namespace, ObjectName};

use super::{LocatedObject, is_definition};
use crate::{ClusterRef, DeletionGroup, DeletionScope, ObjectKey, Selection};

/// What a scope takes in; what is `None` is left open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taken<'a> {
    Namespaced,
    ClusterScoped,
    Definitions,
    Selected { group: &'a str, kind: &'a Kind, namespace: Option<&'a Namespace>, name: Option<&'a ObjectName> },
}

/// The first group for each of what the groups of an order take in.
pub(super) struct Takers<'a>(BTreeMap<(&'a ClusterRef, Taken<'a>), usize>);

impl<'a> Takers<'a> {
    pub(super) fn of(order: &'a [DeletionGroup]) -> Self {
        let mut first = BTreeMap::new();
        for (place, group) in order.iter().enumerate() {
            for taken in group.what.iter().flat_map(taken) {
                first.entry((&group.on, taken)).or_insert(place);
            }
        }
        Self(first)
    }

    /// The place of the first group that takes an object in, whatever version either is named in.
    pub(super) fn first(&self, LocatedObject { on, key }: &LocatedObject) -> Option<usize> {
        let of_all = match (&key.namespace, is_definition(key)) {
            (Some(_), true) => [Some(Taken::Namespaced), Some(Taken::Definitions)],
            (Some(_), false) => [Some(Taken::Namespaced), None],
            (None, true) => [Some(Taken::Definitions), None],
            (None, false) => [Some(Taken::ClusterScoped), None],
        };
        let taken = of_all.into_iter().flatten().chain(selected(key));
        taken.filter_map(|taken| self.0.get(&(on, taken)).copied()).min()
    }
}

fn taken(scope: &DeletionScope) -> Vec<Taken<'_>> {
    match scope {
        DeletionScope::Namespaced => vec![Taken::Namespaced],
        DeletionScope::ClusterScoped => vec![Taken::ClusterScoped],
        DeletionScope::CustomResourceDefinitions => vec![Taken::Definitions],
        DeletionScope::Managed(selection) => taken_by(selection),
        // Such a group deletes what it selects, and waits until all of it is gone: members need no place of their own.
        DeletionScope::Matching(selection) if selection.labels.is_none() && selection.fields.is_none() => {
            taken_by(selection)
        }
        DeletionScope::Matching(_) => Vec::new(),
    }
}

fn taken_by(selection: &Selection) -> Vec<Taken<'_>> {
    let Selection { api_version, kind, namespace, names, .. } = selection;
    let (group, namespace) = (api_version.group(), namespace.as_ref());
    let of = |name| Taken::Selected { group, kind, namespace, name };
    if names.is_empty() { vec![of(None)] } else { names.iter().map(|name| of(Some(name))).collect() }
}

/// All that selections may say which take an object in.
fn selected(key: &ObjectKey) -> impl Iterator<Item = Taken<'_>> {
    let (group, kind) = (key.group(), &key.kind);
    let own = key.namespace.as_ref();
    let namespaces = [None].into_iter().chain(own.map(Some));
    namespaces
        .flat_map(move |namespace| [None, Some(&key.name)].map(|name| Taken::Selected { group, kind, namespace, name }))
}
