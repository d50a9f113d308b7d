//! Trees of Installations: parents, roots, and the roots whose jobs start by changes below them.

use std::{collections::BTreeSet, iter::successors, sync::Arc};

use orangery_api::{
    deploy_item::DeployItem,
    installation::{Installation, ReconcilePolicy},
    label,
    marks::Marks,
};
use orangery_blueprint::{DEEPEST_MADE, MOST_OF_A_TREE};
use orangery_core::{
    error::{Code, Failure},
    job::JobEnd,
    name::JobId,
};
use orangery_reconcile::{FoundObjects, Key, Watched};

use crate::{index::Index, object::uid_of, stores::Stores};

/// Installations by the name of their parent; roots stand under the empty name.
pub(crate) static CHILDREN: Index<Installation> =
    Index { name: "parent", values: |installation| vec![parent(installation).to_owned()] };

/// Deploy items by the name of their Execution.
pub(crate) static MANAGED_BY: Index<DeployItem> =
    Index { name: "managed-by", values: |item| item.label(label::MANAGED_BY).map(str::to_owned).into_iter().collect() };

/// Installations in one another, as far as they are followed: more are a circle.
pub(crate) const DEEPEST: usize = 64;

/// Deploy items of one tree that are made (C-197).
const MOST_ITEMS_OF_A_TREE: usize = 20_000;

/// The name of an Installation's parent; empty for roots, which are siblings of each other.
pub(crate) fn parent(installation: &Installation) -> &str {
    installation.parent_installation().unwrap_or("")
}

/// An Installation and those above it, from below, as far as they are followed, each once: the only way up.
pub(crate) fn ancestors<'a>(stores: &'a Stores, first: &'a Key) -> impl Iterator<Item = Arc<Installation>> + use<'a> {
    let mut seen = BTreeSet::from([first.name.clone()]);
    let above = move |below: &Arc<Installation>| {
        let key = Key::new(&first.namespace, parent(below));
        if seen.insert(key.name.clone()) { stores.installations.get(&key) } else { None }
    };
    successors(stores.installations.get(first), above).take(DEEPEST)
}

/// The sub-installations of an Installation, sorted by name.
pub(crate) fn children(stores: &Stores, of: &Key) -> FoundObjects<Installation> {
    CHILDREN.find(&stores.installations, &of.namespace, &of.name)
}

/// An Installation, and all that are below it, each once: who may edit them may close their owners to a circle.
pub(crate) fn with_descendants(stores: &Stores, installation: &Installation) -> Vec<Key> {
    tree_below(stores, Key::of(installation)).into_iter().collect()
}

/// The same by the key of the Installation; none of them is looked at.
pub(crate) fn tree_below(stores: &Stores, top: Key) -> BTreeSet<Key> {
    downwards(stores, top).collect()
}

/// The same one by one: the only way down.
fn downwards(stores: &Stores, top: Key) -> impl Iterator<Item = Key> + use<'_> {
    let (mut seen, mut ahead) = (BTreeSet::new(), vec![top]);
    std::iter::from_fn(move || {
        let key = std::iter::from_fn(|| ahead.pop()).find(|key| seen.insert(key.clone()))?;
        ahead.extend(CHILDREN.keys(&stores.installations, &key.namespace, &key.name));
        Some(key)
    })
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

/// Why nothing more is made below an Installation for a job, whatever its own phase has still to do: the job was interrupted there or
/// above, or the root is being deleted (C-155).
pub(crate) fn end_of_making(stores: &Stores, key: &Key, job: &JobId) -> Option<JobEnd> {
    let is_interrupted =
        |above: &Arc<Installation>| above.status.as_ref().is_some_and(|status| status.interrupted_job == *job);
    if ancestors(stores, key).any(|above| is_interrupted(&above)) {
        return Some(JobEnd::Interrupted);
    }
    end_of_tree(stores, key)
}

/// Whether one more sub-installation may be made from a template below an Installation: a blueprint that contains itself would make
/// them for ever (C-155).
///
/// # Errors
/// What is full, with the names that lead there.
pub(crate) fn check_room(stores: &Stores, key: &Key, template: &str) -> Result<(), Failure> {
    let mut chain: Vec<String> = ancestors(stores, key).map(|above| Key::of(above.as_ref()).name.to_string()).collect();
    chain.reverse();
    let why = if chain.len() >= DEEPEST_MADE {
        format!("{DEEPEST_MADE} Installations stand in each other already, which are as many as may")
    } else if chain.first().is_some_and(|top| is_full(stores, Key::new(&key.namespace, top.as_str()))) {
        format!("the tree has {MOST_OF_A_TREE} Installations already, which are as many as it may have")
    } else {
        return Ok(());
    };
    let message = format!(
        "sub-installation {template:?} is not made below {}: {why}; look for a blueprint that contains itself",
        chain.join(" > ")
    );
    Err(Failure::new("CreateSubinstallation", "TreeTooLarge", message).with_code(Code::ConfigurationProblem))
}

/// Whether an Execution may have so many deploy items beside those of its tree (C-197).
///
/// # Errors
/// That it may not, and how many there are.
pub(crate) fn check_room_for_items(stores: &Stores, execution: &Key, items: usize) -> Result<(), Failure> {
    let Some(root) = root_of(stores, execution) else { return Ok(()) };
    let tree = tree_below(stores, Key::of(root.as_ref()));
    let others = tree.iter().filter(|key| *key != execution);
    let of_others = |key: &Key| MANAGED_BY.keys(&stores.deploy_items, &key.namespace, &key.name).len();
    let all = others.map(of_others).sum::<usize>().saturating_add(items);
    if all <= MOST_ITEMS_OF_A_TREE {
        return Ok(());
    }
    let message = format!(
        "the deploy items of Execution {} are not made: the tree of Installation {} would have {all}, and may have \
         {MOST_ITEMS_OF_A_TREE}; split it into trees of their own",
        execution.name,
        Key::of(root.as_ref()).name
    );
    Err(Failure::new("CreateDeployItems", "TreeTooLarge", message).with_code(Code::ConfigurationProblem))
}

/// Whether a tree has as many Installations as it may have.
fn is_full(stores: &Stores, top: Key) -> bool {
    downwards(stores, top).take(MOST_OF_A_TREE).count() == MOST_OF_A_TREE
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
        let namespace = stores.installations.keys(None).remove(0).namespace;
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
        assert_eq!(names("circle"), ["circle"], "each once (C-294)");

        // The root is looked for on the same way: not beyond its end, nor where it is cut.
        let root = |name: &str| root_of(&stores, &Key::new(&namespace, name)).map(|top| Key::of(top.as_ref()).name);
        assert_eq!((root("i3"), root("circle")), (None, None));
        stores.installations.upsert(installation("i0", "i0", json!({})));
        let ends = [root("i0"), root(&format!("i{}", DEEPEST - 1)), root(&format!("i{DEEPEST}"))];
        assert_eq!(ends, [Some("i0".into()), Some("i0".into()), None]);
    }

    /// A child of an Installation, known to the stores.
    fn child(stores: &Stores, name: &str, parent: &str, status: &Value) {
        let owner =
            json!([{"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": parent, "uid": parent}]);
        let mut made = installation(name, name, json!({"ownerReferences": owner}));
        made.status = serde_json::from_value(status.clone()).unwrap();
        stores.installations.upsert(made);
    }

    #[test]
    fn c_155_limits_tree_sub_installations_are_made_so_deep_and_the_error_names_the_way() {
        let stores = crate::stores();
        stores.installations.upsert(installation("i1", "i1", json!({})));
        (2..=DEEPEST_MADE)
            .for_each(|number| child(&stores, &format!("i{number}"), &format!("i{}", number - 1), &json!(null)));
        let namespace = stores.installations.keys(None).remove(0).namespace;
        let room = |number: usize| check_room(&stores, &Key::new(&namespace, format!("i{number}").as_str()), "sub");
        assert_eq!(room(DEEPEST_MADE - 1), Ok(()));
        let failure = room(DEEPEST_MADE).unwrap_err();
        assert_eq!(
            failure.message,
            "sub-installation \"sub\" is not made below i1 > i2 > i3 > i4 > i5 > i6 > i7 > i8 > i9 > i10 > i11 > i12 > i13 > i14 > \
             i15 > i16: 16 Installations stand in each other already, which are as many as may; look for a blueprint that \
             contains itself"
        );
        assert_eq!(failure.codes, [Code::ConfigurationProblem].into());
    }

    #[test]
    fn c_155_limits_tree_so_many_installations_of_a_tree_are_made() {
        let stores = crate::stores();
        stores.installations.upsert(installation("top", "top", json!({})));
        let namespace = stores.installations.keys(None).remove(0).namespace;
        let room = |below: &str| check_room(&stores, &Key::new(&namespace, below), "sub");
        (2..MOST_OF_A_TREE).for_each(|number| child(&stores, &format!("i{number}"), "top", &json!(null)));
        assert_eq!((room("top"), room("i2")), (Ok(()), Ok(())));
        child(&stores, "last", "i2", &json!(null));
        let message = room("i3").unwrap_err().message;
        assert_eq!(
            message,
            "sub-installation \"sub\" is not made below top > i3: the tree has 2000 Installations already, which are as many as it \
             may have; look for a blueprint that contains itself"
        );
    }

    #[test]
    fn c_197_limits_tree_so_many_deploy_items_of_a_tree_are_made() {
        let stores = crate::stores();
        stores.installations.upsert(installation("top", "top", json!({})));
        child(&stores, "sub", "top", &json!(null));
        let namespace = stores.installations.keys(None).remove(0).namespace;
        let room = |name: &str, items: usize| {
            check_room_for_items(&stores, &Key::new(&namespace, name), items).map_err(|failure| failure.message)
        };
        for number in 0..100 {
            let metadata = json!({"namespace": *namespace, "name": format!("i{number}"), "uid": format!("i{number}"),
                "resourceVersion": "1", "labels": {(label::MANAGED_BY): "sub"}});
            stores
                .deploy_items
                .upsert(serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}})).unwrap());
        }
        assert_eq!(room("top", MOST_ITEMS_OF_A_TREE - 100), Ok(()));
        let message = "the deploy items of Execution top are not made: the tree of Installation top would have 20001, and may have \
                       20000; split it into trees of their own";
        assert_eq!(room("top", MOST_ITEMS_OF_A_TREE - 99), Err(message.to_owned()));
        // Its own are not counted twice, and an Execution of nobody is in no tree.
        assert_eq!(room("sub", MOST_ITEMS_OF_A_TREE), Ok(()));
        assert_eq!(room("nobody", MOST_ITEMS_OF_A_TREE + 1), Ok(()));
    }

    #[test]
    fn c_155_nothing_is_made_below_an_interrupt_or_a_deletion() {
        let stores = crate::stores();
        let time = json!("2026-01-01T00:00:00Z");
        stores.installations.upsert(installation("top", "top", json!({})));
        stores.installations.upsert(installation(
            "gone",
            "gone",
            json!({"deletionTimestamp": time, "finalizers": ["x"]}),
        ));
        child(&stores, "stopped", "top", &json!({"interruptedJob": "j"}));
        child(&stores, "below-stopped", "stopped", &json!(null));
        child(&stores, "below-gone", "gone", &json!(null));
        let namespace = stores.installations.keys(None).remove(0).namespace;
        let end = |name: &str, job: &str| end_of_making(&stores, &Key::new(&namespace, name), &job.into());
        assert_eq!((end("top", "j"), end("below-stopped", "other")), (None, None));
        assert_eq!(
            (end("stopped", "j"), end("below-stopped", "j")),
            (Some(JobEnd::Interrupted), Some(JobEnd::Interrupted))
        );
        assert_eq!(end("below-gone", "j"), Some(JobEnd::TreeDeleted));
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
        let above = |of: &Installation| -> Vec<String> {
            ancestors(&stores, &Key::of(of)).map(|above| Key::of(above.as_ref()).name.to_string()).collect()
        };
        assert_eq!(
            (above(&ring), above(&leaf)),
            (vec!["ring".to_owned()], ["leaf", "one", "two"].map(str::to_owned).to_vec())
        );
        assert!(
            [&ring, &two, &leaf].iter().all(|of| root_of(&stores, &Key::of(*of)).is_none()),
            "a circle has no root"
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
