//! Trees of Installations: parents, roots, and the roots whose jobs start by changes below them.

use std::{collections::BTreeSet, iter::successors, sync::Arc};

use orangery_api::{
    deploy_item::DeployItem,
    installation::{Installation, ReconcilePolicy},
    label,
    marks::Marks,
};
use orangery_core::job::JobEnd;
use orangery_reconcile::{Key, Watched};

use crate::{index::Index, object::uid_of, stores::Stores};

/// Installations by the name of their parent; roots stand under the empty name.
pub(crate) static CHILDREN: Index<Installation> =
    Index { name: "parent", values: |installation| vec![parent(installation).to_owned()] };

/// Deploy items by the name of their Execution.
pub(crate) static MANAGED_BY: Index<DeployItem> =
    Index { name: "managed-by", values: |item| item.label(label::MANAGED_BY).map(str::to_owned).into_iter().collect() };

/// Installations in one another, as far as they are followed: more are a circle.
pub(crate) const DEEPEST: usize = 64;

/// The name of an Installation's parent; empty for roots, which are siblings of each other.
pub(crate) fn parent(installation: &Installation) -> &str {
    installation.parent_installation().unwrap_or("")
}

/// An Installation and those above it, from below, as far as they are followed: the only way up.
pub(crate) fn ancestors<'a>(stores: &'a Stores, first: &'a Key) -> impl Iterator<Item = Arc<Installation>> + use<'a> {
    let above = move |below: &Arc<Installation>| stores.installations.get(&Key::new(&first.namespace, parent(below)));
    successors(stores.installations.get(first), above).take(DEEPEST)
}

/// The sub-installations of an Installation, sorted by name.
pub(crate) fn children(stores: &Stores, of: &Key) -> Vec<Arc<Installation>> {
    CHILDREN.find(&stores.installations, &of.namespace, &of.name)
}

/// An Installation, and all that are below it, each once: who may edit them may close their owners to a circle.
pub(crate) fn with_descendants(stores: &Stores, installation: &Installation) -> Vec<Key> {
    let (mut all, mut ahead) = (BTreeSet::new(), vec![Key::of(installation)]);
    while let Some(key) = ahead.pop() {
        if all.insert(key.clone()) {
            ahead.extend(CHILDREN.keys(&stores.installations, &key.namespace, &key.name));
        }
    }
    all.into_iter().collect()
}

/// The root of the tree that an Installation belongs to; that of an Execution has its name. `None` where the way up is cut, or
/// longer than Installations are followed.
pub(crate) fn root_of(stores: &Stores, key: &Key) -> Option<Arc<Installation>> {
    ancestors(stores, key).last().filter(|top| top.parent_installation().is_none())
}

/// Why jobs of a tree end where they would wait or try again: its root is being deleted, which waits for their end (INS-57).
pub(crate) fn end_of_tree(stores: &Stores, key: &Key) -> Option<JobEnd> {
    root_of(stores, key).filter(|root| root.is_deleting()).map(|_| JobEnd::TreeDeleted)
}

/// The root that starts a job when gate expressions below it answer otherwise, if the tree of this object has such a one.
pub(crate) fn observing_root(stores: &Stores, key: &Key) -> Option<Arc<Installation>> {
    root_of(stores, key).filter(|root| observes(root))
}

/// Whether jobs of an Installation start by changes.
pub(crate) fn observes(installation: &Installation) -> bool {
    installation.spec.reconcile_policy == ReconcilePolicy::OnChange
        && installation.is_root()
        && !installation.is_deleting()
}

/// Whether an object is being deleted and the Installation that owns it is gone already: somebody took its finalizer away. Nobody
/// hands a job down to such an object, so it starts its own, as a root does.
pub(crate) fn is_orphaned<K: Watched + Marks>(stores: &Stores, object: &K) -> bool {
    let Some(parent) = object.parent_installation().filter(|_| object.is_deleting()) else { return false };
    let key = Key { name: parent.into(), ..Key::of(object) };
    let above = stores.installations.get(&key);
    let uid = above.as_deref().map_or("", uid_of);
    !object.meta().owner_references.iter().flatten().any(|owner| owner.name == parent && owner.uid == uid)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::object::tests::installation;

    #[test]
    fn limits_tree_installations_are_followed_so_far_and_a_circle_ends() {
        let stores = crate::stores();
        let below = |name: &str, parent: &str| {
            let owner = json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": parent, "uid": parent}]);
            installation(name, name, json!({"ownerReferences": owner}))
        };
        (1..=DEEPEST + 10).for_each(|number| {
            stores.installations.upsert(below(&format!("i{number}"), &format!("i{}", number - 1)));
        });
        let namespace = Key::of(stores.installations.list(None)[0].as_ref()).namespace;
        let names = |parent: &str| -> Vec<String> {
            ancestors(&stores, &Key::new(&namespace, parent))
                .map(|above| Key::of(above.as_ref()).name.to_string())
                .collect()
        };
        assert_eq!(names("i3"), ["i3", "i2", "i1"]);
        assert_eq!(names(""), [""; 0]);
        let expected: Vec<String> = (11..=DEEPEST + 10).rev().map(|number| format!("i{number}")).collect();
        assert_eq!((names(&format!("i{}", DEEPEST + 10)), expected.len()), (expected, DEEPEST));
        stores.installations.upsert(below("circle", "circle"));
        assert_eq!(names("circle"), vec!["circle"; DEEPEST]);

        // The root is looked for on the same way: not beyond its end, nor where it is cut.
        let root = |name: &str| root_of(&stores, &Key::new(&namespace, name)).map(|top| Key::of(top.as_ref()).name);
        assert_eq!((root("i3"), root("circle")), (None, None));
        stores.installations.upsert(installation("i0", "i0", json!({})));
        let ends = [root("i0"), root(&format!("i{}", DEEPEST - 1)), root(&format!("i{DEEPEST}"))];
        assert_eq!(ends, [Some("i0".into()), Some("i0".into()), None]);
    }

    #[test]
    fn limits_tree_what_is_below_a_circle_is_looked_at_once() {
        let stores = crate::stores();
        let below = |name: &str, parent: &str| {
            let owner = json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": parent, "uid": parent}]);
            let made = installation(name, name, json!({"ownerReferences": owner}));
            stores.installations.upsert(made.clone());
            made
        };
        let (ring, _, leaf) = (below("ring", "ring"), below("one", "two"), below("leaf", "one"));
        let two = below("two", "one");
        let names = |of: &Installation| -> Vec<String> {
            with_descendants(&stores, of).into_iter().map(|key| key.name.to_string()).collect()
        };
        assert_eq!(
            (names(&ring), names(&two), names(&leaf)),
            (vec!["ring".to_owned()], ["leaf", "one", "two"].map(str::to_owned).to_vec(), vec!["leaf".to_owned()])
        );
    }

    #[test]
    fn only_what_is_deleted_without_its_parent_is_orphaned() {
        let child = |owner: &str, deleting: bool| {
            let owner =
                json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": "up", "uid": owner}]);
            let time = if deleting { json!("2026-01-01T00:00:00Z") } else { Value::Null };
            installation("child", "c", json!({"ownerReferences": owner, "deletionTimestamp": time}))
        };
        let stores = crate::stores();
        assert!(is_orphaned(&stores, &child("u", true)));
        assert!(!is_orphaned(&stores, &child("u", false)));
        assert!(!is_orphaned(
            &stores,
            &installation("root", "r", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}))
        ));
        stores.installations.upsert(installation("up", "u", json!({})));
        assert!(!is_orphaned(&stores, &child("u", true)));
        assert!(is_orphaned(&stores, &child("of-before", true)), "another one has its name now");
    }
}
