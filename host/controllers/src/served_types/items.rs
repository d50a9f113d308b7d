//! How many deploy items there are of each type, and of which some have come or gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use orangery_api::deploy_item::DeployItem;
use orangery_core::name::Namespace;
use orangery_reconcile::{Key, ObjectChange};
use tokio::sync::Notify;

/// The deploy items of each type. Told of every change from the first one on.
#[derive(Default)]
pub(crate) struct ItemCounts {
    /// Protects what is counted. Held for one look or one change.
    counted: Mutex<CountedItems>,
    changed: Notify,
}

#[derive(Default)]
struct CountedItems {
    by_type: BTreeMap<String, BTreeMap<Namespace, u32>>,
    /// The types of which the number has changed since it was asked for last.
    changed: BTreeSet<String>,
}

impl ItemCounts {
    pub(crate) fn hear(&self, change: &ObjectChange<'_, DeployItem>) {
        let of = |item: &DeployItem| (item.spec.type_.clone(), Key::of(item).namespace);
        let (before, after) = (change.before.map(|item| of(item)), change.after.map(|item| of(item)));
        if before == after {
            return;
        }
        let mut counted = self.counted();
        if let Some((item_type, namespace)) = before {
            counted.remove(&item_type, &namespace);
            counted.changed.insert(item_type);
        }
        if let Some((item_type, namespace)) = after {
            let count = counted.by_type.entry(item_type.clone()).or_default().entry(namespace).or_default();
            *count = count.saturating_add(1);
            counted.changed.insert(item_type);
        }
        drop(counted);
        self.changed.notify_one();
    }

    /// How many items of a type there are in the namespaces of which this holds.
    pub(crate) fn count(&self, item_type: &str, holds: impl Fn(&Namespace) -> bool) -> u32 {
        // Whether it holds is asked elsewhere, under another lock.
        let of_type = self.counted().by_type.get(item_type).cloned().unwrap_or_default();
        of_type.iter().filter(|(namespace, _)| holds(namespace)).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Waits until the number of some type may have changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The types of which the number has changed since this was called last.
    pub(crate) fn take_changed(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.counted().changed)
    }

    fn counted(&self) -> MutexGuard<'_, CountedItems> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountedItems {
    fn remove(&mut self, item_type: &str, namespace: &Namespace) {
        let Some(of_type) = self.by_type.get_mut(item_type) else { return };
        if let Some(count) = of_type.get_mut(namespace) {
            *count = count.saturating_sub(1);
        }
        of_type.retain(|_, count| *count > 0);
        if of_type.is_empty() {
            self.by_type.remove(item_type);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stores::Stores;

    fn item(namespace: &str, name: &str, item_type: &str, version: &str) -> DeployItem {
        let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": item_type}})).unwrap()
    }

    #[test]
    fn c_264_items_are_counted_by_type_and_namespace_as_they_come_and_go() {
        let (stores, counts) = (Stores::new(), std::sync::Arc::new(ItemCounts::default()));
        let told = std::sync::Arc::clone(&counts);
        stores.deploy_items.subscribe(move |change| told.hear(change));
        let all = |item_type: &str| counts.count(item_type, |_| true);
        stores.deploy_items.upsert(item("n", "a", "t", "1"));
        stores.deploy_items.upsert(item("n", "b", "t", "2"));
        stores.deploy_items.upsert(item("m", "c", "t", "3"));
        stores.deploy_items.upsert(item("n", "a", "t", "4"));
        assert_eq!((all("t"), all("u"), counts.count("t", |namespace| namespace.as_str() == "n")), (3, 0, 2));
        assert_eq!(counts.take_changed(), BTreeSet::from(["t".to_owned()]));
        stores.deploy_items.upsert(item("n", "a", "u", "5"));
        assert_eq!((all("t"), all("u")), (2, 1));
        assert_eq!(counts.take_changed(), BTreeSet::from(["t".to_owned(), "u".to_owned()]));
        for (namespace, name) in [("n", "a"), ("n", "b"), ("m", "c")] {
            let gone = stores.deploy_items.get(&Key::new(namespace, name)).unwrap();
            stores.deploy_items.forget(&gone);
        }
        assert_eq!((all("t"), all("u"), counts.counted().by_type.len()), (0, 0, 0));
    }
}
