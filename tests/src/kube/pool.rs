//! The servers of one process of tests: what one test has left is taken away before the next one begins, which takes
//! milliseconds where a start takes seconds. They end with the process.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::ListParams};

use super::{Kube, Programs, stored::Stored};
use crate::{binary::Binary, objects::Objects};

/// Servers that one test has at a time, and what they had stored before the first.
struct Pooled {
    kube: Kube,
    stored: Stored,
}

static POOL: Mutex<Vec<Arc<Pooled>>> = Mutex::new(Vec::new());

/// Servers for one test, and for another one afterwards.
pub struct SharedKube(Arc<Pooled>);

impl Drop for SharedKube {
    fn drop(&mut self) {
        self.0.kube.end_test();
    }
}

impl Deref for SharedKube {
    type Target = Kube;

    fn deref(&self) -> &Kube {
        &self.0.kube
    }
}

/// Servers that no test has, as they were before any had them; new ones where there are none.
pub(super) async fn take(programs: &Programs, binary: &Binary) -> SharedKube {
    while let Some(pooled) = unused() {
        let objects = Objects::of(pooled.kube.kubeconfig()).await;
        let namespaces: Api<Namespace> = Api::all(objects.client().clone());
        let namespaces = namespaces.list(&ListParams::default()).await.expect("the server lists its namespaces");
        // What goes with a namespace is deleted by its name alone, and may be the next test's.
        if namespaces.iter().all(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
            pooled.stored.restore(objects.client()).await;
            pooled.kube.begin_test();
            return SharedKube(pooled);
        }
        drop_from_pool(&pooled);
    }
    let kube = Kube::start(programs, binary).await;
    let objects = Objects::of(kube.kubeconfig()).await;
    let stored = Stored::now(kube.etcd, objects.client().clone()).await;
    let pooled = Arc::new(Pooled { kube, stored });
    pool(|pool| pool.push(Arc::clone(&pooled)));
    SharedKube(pooled)
}

/// One that only the pool has, for who asks.
fn unused() -> Option<Arc<Pooled>> {
    pool(|pool| pool.iter().find(|pooled| Arc::strong_count(pooled) == 1).map(Arc::clone))
}

fn drop_from_pool(dropped: &Arc<Pooled>) {
    pool(|pool| pool.retain(|pooled| !Arc::ptr_eq(pooled, dropped)));
}

fn pool<T>(with: impl FnOnce(&mut Vec<Arc<Pooled>>) -> T) -> T {
    with(&mut POOL.lock().unwrap_or_else(PoisonError::into_inner))
}
