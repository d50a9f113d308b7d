//! Reads of clusters that are made once, where a component is asked again and again over what is there: what has changed meanwhile is not
//! taken for something that an input has changed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_api::deploy_item::DeployItem;
use orangery_core::{error::Fault, memory, name::ObjectName, port::BoxFuture};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters, Reads},
};
use serde_json::Value;

/// The most memory, in bytes, of what is remembered; what is beyond it is read again (C-244).
const MOST_REMEMBERED_BYTES: u64 = 64 << 20;

/// A cluster: the name of the item's Target, and which one beside it.
type RememberedCluster = (ObjectName, ClusterRef);

/// What was read.
#[derive(Default)]
pub(in super::super) struct RememberedReads(Mutex<KnownAnswers>);

#[derive(Default)]
struct KnownAnswers {
    objects: BTreeMap<(RememberedCluster, ObjectKey), Option<Value>>,
    lists: BTreeMap<(RememberedCluster, Selection), Vec<Value>>,
    /// What they take of memory.
    bytes: u64,
}

impl KnownAnswers {
    /// Whether there is room for these.
    fn takes<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> bool {
        let bytes = values.into_iter().fold(self.bytes, |sum, value| sum.saturating_add(memory::of(value)));
        let takes = bytes <= MOST_REMEMBERED_BYTES;
        if takes {
            self.bytes = bytes;
        }
        takes
    }
}

impl RememberedReads {
    fn known(&self) -> MutexGuard<'_, KnownAnswers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reads of a call for this item, each made once.
    pub(in super::super) fn over(self: &Arc<Self>, reads: Reads, item: &DeployItem) -> Reads {
        let target = item.spec.target.as_ref().map(|target| target.name.clone()).unwrap_or_default();
        Reads {
            clusters: Arc::new(RememberedClusters { of: reads.clusters, target, known: Arc::clone(self) }),
            ..reads
        }
    }
}

/// The clusters of a call.
struct RememberedClusters {
    of: Arc<dyn Clusters>,
    /// The Target of its item: an item that has another one has another cluster.
    target: ObjectName,
    known: Arc<RememberedReads>,
}

impl RememberedClusters {
    fn object(&self, on: &ClusterRef, key: &ObjectKey) -> Option<Option<Value>> {
        self.known.known().objects.get(&((self.target.clone(), on.clone()), key.clone())).cloned()
    }

    fn remember(&self, on: &ClusterRef, key: &ObjectKey, object: &Option<Value>) {
        let mut known = self.known.known();
        if known.takes(object) {
            known.objects.insert(((self.target.clone(), on.clone()), key.clone()), object.clone());
        }
    }
}

impl Clusters for RememberedClusters {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move {
            if let Some(known) = self.object(on, key) {
                return Ok(known);
            }
            let object = self.of.get(on, key).await?;
            self.remember(on, key, &object);
            Ok(object)
        })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(async move {
            let known: Vec<Option<Option<Value>>> = keys.iter().map(|key| self.object(on, key)).collect();
            let new = keys.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(key, _)| key.clone());
            let new: Vec<ObjectKey> = new.collect();
            let read = if new.is_empty() { Vec::new() } else { self.of.get_many(on, &new).await? };
            new.iter().zip(&read).for_each(|(key, object)| self.remember(on, key, object));
            let mut read = read.into_iter();
            Ok(known.into_iter().map(|known| known.unwrap_or_else(|| read.next().flatten())).collect())
        })
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let asked = ((self.target.clone(), on.clone()), what.clone());
            let known = self.known.known().lists.get(&asked).cloned();
            if let Some(known) = known {
                return Ok(known);
            }
            let objects = self.of.list(on, what).await?;
            let mut known = self.known.known();
            if known.takes(&objects) {
                known.lists.insert(asked, objects.clone());
            }
            Ok(objects)
        })
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        self.of.version(on)
    }

    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        self.of.discover(on)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use orangery_core::error::Code;
    use serde_json::json;

    use super::*;

    /// A cluster that counts what is read of it, where each object has its number.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Counted {
        fn next(&self) -> Value {
            json!(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    impl Clusters for Counted {
        fn get<'a>(&'a self, _: &'a ClusterRef, _: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
            Box::pin(async move { Ok(Some(self.next())) })
        }

        fn get_many<'a>(
            &'a self,
            _: &'a ClusterRef,
            keys: &'a [ObjectKey],
        ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
            Box::pin(async move { Ok(keys.iter().map(|_| Some(self.next())).collect()) })
        }

        fn list<'a>(&'a self, _: &'a ClusterRef, _: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
            Box::pin(async move { Ok(vec![self.next()]) })
        }

        fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
            Box::pin(async { Err(Fault::later(Code::Unfinished, "no version")) })
        }

        fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    fn item(target: &str) -> DeployItem {
        let spec = json!({"type": "x", "target": {"name": target, "namespace": "n"}});
        serde_json::from_value(json!({"metadata": {"name": "i", "namespace": "n"}, "spec": spec})).unwrap()
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: name.into() }
    }

    #[tokio::test]
    async fn c_243_what_is_asked_again_of_the_same_cluster_is_read_once() {
        let known = Arc::new(RememberedReads::default());
        let cluster: Arc<dyn Clusters> = Arc::new(Counted::default());
        let over = |target: &str| known.over(Reads::of_clusters(Arc::clone(&cluster)), &item(target)).clusters;
        let (one, again, other) = (over("one"), over("one"), over("other"));
        let (target, host) = (ClusterRef::Target, ClusterRef::Host);
        assert_eq!(one.get(&target, &key("a")).await, Ok(Some(json!(0))));
        let three = [key("b"), key("a"), key("c")];
        let numbers = |numbers: [u8; 3]| Ok(numbers.map(|number| Some(json!(number))).to_vec());
        assert_eq!(again.get_many(&target, &three).await, numbers([1, 0, 2]));
        assert_eq!(one.get_many(&target, &three).await, numbers([1, 0, 2]));
        assert_eq!(one.get(&host, &key("a")).await, Ok(Some(json!(3))));
        assert_eq!(other.get(&target, &key("a")).await, Ok(Some(json!(4))));
        let what: Selection = serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap"})).unwrap();
        assert_eq!(one.list(&target, &what).await, Ok(vec![json!(5)]));
        assert_eq!(again.list(&target, &what).await, Ok(vec![json!(5)]));
    }

    /// A cluster that answers nothing but faults.
    struct Unanswering;

    impl Clusters for Unanswering {
        fn get<'a>(&'a self, _: &'a ClusterRef, _: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
            Box::pin(async { Err(Fault::later(Code::Unfinished, "no object")) })
        }

        fn get_many<'a>(
            &'a self,
            _: &'a ClusterRef,
            _: &'a [ObjectKey],
        ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
            Box::pin(async { Err(Fault::later(Code::Unfinished, "no objects")) })
        }

        fn list<'a>(&'a self, _: &'a ClusterRef, _: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
            Box::pin(async { Err(Fault::later(Code::Unfinished, "no list")) })
        }

        fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
            Box::pin(async { Ok("v1.33.0".to_owned()) })
        }

        fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    #[tokio::test]
    async fn c_243_what_was_not_answered_is_asked_again_and_so_is_what_there_is_no_room_for() {
        let known = Arc::new(RememberedReads::default());
        let over = |cluster: Arc<dyn Clusters>| known.over(Reads::of_clusters(cluster), &item("one")).clusters;
        let (target, what) = (ClusterRef::Target, json!({"apiVersion": "v1", "kind": "ConfigMap"}));
        let what: Selection = serde_json::from_value(what).unwrap();
        let silent = over(Arc::new(Unanswering));
        assert!(silent.get(&target, &key("a")).await.is_err() && silent.list(&target, &what).await.is_err());
        assert!(silent.get_many(&target, &[key("a")]).await.is_err());
        assert_eq!(silent.version(&target).await, Ok("v1.33.0".to_owned()));
        assert_eq!(silent.discover(&target).await, Ok(Vec::new()));
        let answering = over(Arc::new(Counted::default()));
        assert_eq!(answering.get(&target, &key("a")).await, Ok(Some(json!(0))));
        assert_eq!(silent.get_many(&target, &[key("a")]).await, Ok(vec![Some(json!(0))]), "it is known");
        known.known().bytes = MOST_REMEMBERED_BYTES;
        for number in [1, 2] {
            assert_eq!(answering.get(&target, &key("b")).await, Ok(Some(json!(number))));
        }
        assert_eq!(answering.list(&target, &what).await, Ok(vec![json!(3)]));
        assert_eq!(answering.list(&target, &what).await, Ok(vec![json!(4)]));
    }

    #[test]
    fn c_244_limits_deploy_items_what_is_remembered_of_clusters_has_a_memory() {
        let mut known = KnownAnswers::default();
        let large = json!("x".repeat(40 << 20));
        assert!(known.takes([&large]));
        assert!(!known.takes([&large]), "it would be 80 MiB");
        assert!(known.takes([&json!("small")]), "there is room for less");
    }
}
