//! What gate expressions answer otherwise than they did in the last job, in trees whose root starts jobs by changes (C-05,
//! ORC-33, WF-26).
//!
//! It is known in memory alone: after a restart each object at rest asks its gate expressions once more.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use orangery_core::digest;
use orangery_reconcile::Key;
use serde_json::json;

use crate::{
    stores::{StoredKind, Stores},
    tree::tree_below,
};

/// The Execution or Installation whose gate expressions answer otherwise.
pub(crate) type Holder = (StoredKind, Key);

/// All answers that are others now.
#[derive(Default)]
pub(crate) struct ChangedAnswers {
    /// Protects the answers. Held for one lookup or one change.
    answers: Mutex<BTreeMap<Holder, Vec<String>>>,
}

impl ChangedAnswers {
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
        let tree = tree_below(stores, root.clone());
        let of_tree = known.into_iter().filter(|((_, key), _)| tree.contains(key));
        of_tree.map(|((kind, key), answers)| digest::data_hash(&json!([kind.name(), key.name, answers]))).collect()
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
        stores.installations.upsert(serde_json::from_value(object).unwrap());
    }

    #[test]
    fn orc_33_answers_count_for_the_root_of_their_tree_alone() {
        let stores = crate::stores();
        installation(&stores, "root", None, "OnChange");
        installation(&stores, "mid", Some("root"), "Manual");
        installation(&stores, "other", None, "Manual");
        let (root, other) = (Key::new("n", "root"), Key::new("n", "other"));
        let changed = ChangedAnswers::default();
        let (below, beside) = ((StoredKind::Execution, Key::new("n", "mid")), (StoredKind::Execution, other.clone()));
        assert!(changed.set(&below, vec!["db/when=True".to_owned()]));
        assert!(!changed.set(&below, vec!["db/when=True".to_owned()]), "nothing new");
        let one = changed.hashes(&stores, &root);
        assert_eq!(one.len(), 1);
        assert!(changed.set(&beside, vec!["db/when=True".to_owned()]));
        assert_eq!(changed.hashes(&stores, &root), one);
        assert_ne!(changed.hashes(&stores, &other), one);
        assert!(changed.set(&below, vec!["db/when=False".to_owned()]));
        assert_ne!(changed.hashes(&stores, &root), one);
        assert!(changed.set(&below, Vec::new()) && !changed.set(&below, Vec::new()));
        assert_eq!(changed.hashes(&stores, &root), [""; 0]);
        let observed =
            |name: &str| crate::tree::observing_root(&stores, &Key::new("n", name)).map(|root| Key::of(root.as_ref()));
        assert_eq!((observed("mid"), observed("other"), observed("absent")), (Some(root), None, None));
    }
}
