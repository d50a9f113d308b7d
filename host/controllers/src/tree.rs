//! Trees of Installations: parents, roots, and the roots whose jobs start by changes below them.

use std::sync::Arc;

use orangery_api::{
    installation::{Installation, ReconcilePolicy},
    marks::Marks,
};
use orangery_core::job::JobEnd;
use orangery_reconcile::Key;

use crate::{index::Index, stores::Stores};

/// Installations by the name of their parent; roots stand under the empty name.
pub(crate) static CHILDREN: Index<Installation> =
    Index { name: "parent", values: |installation| vec![parent(installation).to_owned()] };

/// Installations in one another, as far as they are followed: more are a circle.
pub(crate) const DEEPEST: usize = 64;

/// The name of an Installation's parent; empty for roots, which are siblings of each other.
pub(crate) fn parent(installation: &Installation) -> &str {
    installation.parent_installation().unwrap_or("")
}

/// The sub-installations of an Installation, sorted by name.
pub(crate) fn children(stores: &Stores, of: &Key) -> Vec<Arc<Installation>> {
    CHILDREN.find(&stores.installations, &of.namespace, &of.name)
}

/// An Installation, and all that are below it.
pub(crate) fn with_descendants(stores: &Stores, installation: &Installation) -> Vec<Key> {
    let (mut all, mut ahead) = (Vec::new(), vec![Key::of(installation)]);
    while let Some(key) = ahead.pop() {
        ahead.extend(CHILDREN.keys(&stores.installations, &key.namespace, &key.name));
        all.push(key);
    }
    all
}

/// The root of the tree that an Installation belongs to; that of an Execution has its name.
pub(crate) fn root_of(stores: &Stores, key: &Key) -> Option<Arc<Installation>> {
    let mut installation = stores.installations.get(key)?;
    // No tree is deeper than the nesting that the API server bears.
    for _ in 0..256 {
        let Some(parent) = installation.parent_installation() else { return Some(installation) };
        installation = stores.installations.get(&Key::new(&key.namespace, parent))?;
    }
    None
}

/// Why jobs of a tree end where they would wait or try again: its root is being deleted, which waits for their end (INS-57).
pub(crate) fn end_of_tree(stores: &Stores, key: &Key) -> Option<JobEnd> {
    root_of(stores, key).filter(|root| root.is_deleting()).map(|_| JobEnd::TreeDeleted)
}

/// The root that starts a job when conditions below it answer otherwise, if the tree of this object has such a one.
pub(crate) fn observing_root(stores: &Stores, key: &Key) -> Option<Arc<Installation>> {
    root_of(stores, key).filter(|root| observes(root))
}

/// Whether jobs of an Installation start by changes.
pub(crate) fn observes(installation: &Installation) -> bool {
    installation.spec.reconcile_policy == ReconcilePolicy::OnChange
        && installation.is_root()
        && !installation.is_deleting()
}
