//! What conditions answer otherwise than they did in the last job, in trees whose root starts jobs by changes (C-05, ORC-33,
//! WF-26).
//!
//! It is known in memory alone: after a restart each object at rest asks its conditions once more.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use orangery_api::{
    installation::{Installation, ReconcilePolicy},
    marks::Marks,
};
use orangery_core::digest;
use orangery_reconcile::{Key, Queue};
use serde_json::json;

use crate::{dependency::Queues, host::Stores};

/// Who holds conditions: `Execution` or `Installation`, and which.
pub(crate) type Holder = (&'static str, Key);

/// All answers that are others now.
#[derive(Default)]
pub(crate) struct Outdated {
    /// Protects the answers. Held for one lookup or one change.
    answers: Mutex<BTreeMap<Holder, Vec<String>>>,
}

impl Outdated {
    fn answers(&self) -> std::sync::MutexGuard<'_, BTreeMap<Holder, Vec<String>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers which answers of an object are others now; whether those are not the ones known before.
    pub(crate) fn set(&self, holder: &Holder, answers: Vec<String>) -> bool {
        let mut all = self.answers();
        if answers.is_empty() {
            return all.remove(holder).is_some();
        }
        all.insert(holder.clone(), answers.clone()) != Some(answers)
    }

    /// Hashes of the answers that are others now in the tree of a root, one for each object that has such.
    pub(crate) fn hashes(&self, stores: &Stores, root: &Key) -> Vec<String> {
        let known: Vec<(Holder, Vec<String>)> = {
            let all = self.answers();
            let near = all.iter().filter(|((_, key), _)| key.namespace == root.namespace);
            near.map(|(holder, answers)| (holder.clone(), answers.clone())).collect()
        };
        let of_tree = known
            .into_iter()
            .filter(|((_, key), _)| root_of(stores, key).is_some_and(|of| Key::of(of.as_ref()) == *root));
        of_tree.map(|((kind, key), answers)| digest::data_hash(&json!([kind, key.name, answers]))).collect()
    }
}

/// The root of the tree that an Installation belongs to; that of an Execution has its name.
pub(crate) fn root_of(stores: &Stores, key: &Key) -> Option<Arc<Installation>> {
    let mut installation = stores.installations.get(key)?;
    // No tree is deeper than the nesting that the API server bears.
    for _ in 0..256 {
        let Some(parent) = installation.parent_installation() else { return Some(installation) };
        installation = stores.installations.get(&Key::new(key.namespace.clone(), parent))?;
    }
    None
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

/// Who takes the policy up or gives it up has its tree look again at what conditions look at.
pub(crate) fn wire_policy(stores: &Stores, queues: &Queues) {
    let (executions, installations, store) =
        (queues.executions.clone(), queues.installations.clone(), stores.installations.clone());
    stores.installations.subscribe(move |change| {
        let (Some(before), Some(after)) = (change.before, change.after) else { return };
        if observes(before) == observes(after) {
            return;
        }
        let mut ahead = vec![Key::of(after.as_ref())];
        while let Some(key) = ahead.pop() {
            ahead.extend(store.indexed_keys(crate::host::index::PARENT, &key.namespace, &key.name));
            wake(&[&executions, &installations], &key);
        }
    });
}

fn wake(queues: &[&Queue], key: &Key) {
    for queue in queues {
        queue.wake(key.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn version(policy: &str) -> &'static str {
        if policy == "OnChange" { "2" } else { "1" }
    }

    fn installation(stores: &Stores, name: &str, parent: Option<&str>, policy: &str) {
        let owners: Vec<Value> = parent
            .iter()
            .map(|name| json!({"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": name, "uid": "u"}))
            .collect();
        let metadata = json!({"namespace": "n", "name": name, "uid": name, "resourceVersion": version(policy), "ownerReferences": owners});
        let object = json!({"metadata": metadata, "spec": {"blueprint": {}, "reconcilePolicy": policy}});
        stores.installations.absorb(serde_json::from_value(object).unwrap());
    }

    #[test]
    fn orc_33_answers_count_for_the_root_of_their_tree_alone() {
        let stores = Stores::new();
        installation(&stores, "root", None, "OnChange");
        installation(&stores, "mid", Some("root"), "Manual");
        installation(&stores, "other", None, "Manual");
        let (root, other) = (Key::new("n", "root"), Key::new("n", "other"));
        let outdated = Outdated::default();
        let (below, beside) = (("Execution", Key::new("n", "mid")), ("Execution", other.clone()));
        assert!(outdated.set(&below, vec!["db/when=True".to_owned()]));
        assert!(!outdated.set(&below, vec!["db/when=True".to_owned()]), "nothing new");
        let one = outdated.hashes(&stores, &root);
        assert_eq!(one.len(), 1);
        assert!(outdated.set(&beside, vec!["db/when=True".to_owned()]));
        assert_eq!(outdated.hashes(&stores, &root), one);
        assert_ne!(outdated.hashes(&stores, &other), one);
        assert!(outdated.set(&below, vec!["db/when=False".to_owned()]));
        assert_ne!(outdated.hashes(&stores, &root), one);
        assert!(outdated.set(&below, Vec::new()) && !outdated.set(&below, Vec::new()));
        assert_eq!(outdated.hashes(&stores, &root), [""; 0]);
        let observed = |name: &str| observing_root(&stores, &Key::new("n", name)).map(|root| Key::of(root.as_ref()));
        assert_eq!((observed("mid"), observed("other"), observed("absent")), (Some(root), None, None));
    }

    #[test]
    fn orc_33_who_takes_the_policy_up_has_its_tree_look_again() {
        let (stores, queues) = (Stores::new(), Queues::default());
        wire_policy(&stores, &queues);
        installation(&stores, "root", None, "Manual");
        installation(&stores, "mid", Some("root"), "Manual");
        assert_eq!(queues.executions.queued(), []);
        installation(&stores, "root", None, "OnChange");
        let names = |queue: &Queue| queue.queued().into_iter().map(|key| key.name).collect::<Vec<_>>();
        assert_eq!(
            (names(&queues.executions), names(&queues.installations)),
            (vec!["mid".to_owned(), "root".to_owned()], vec!["mid".to_owned(), "root".to_owned()])
        );
    }
}
