//! Reads objects from the server beside the watches, each by itself: one that cannot be read keeps nothing from the others.

use std::collections::BTreeSet;

use kube::{Api, Client, api::ListParams, core::ObjectList};
use orangery_core::name::Namespace;

use crate::{Key, Store, Watched, watched_object::WatchedObject};

impl<K: Watched> Store<K> {
    /// Reads an object again. One that is gone is forgotten; one that cannot be read is told and left as it was known.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn read_again(&self, client: &Client, key: &Key) -> kube::Result<()> {
        let known = self.get(key);
        let api: Api<WatchedObject<K>> = Api::namespaced(client.clone(), &key.namespace);
        match (api.get_opt(&key.name).await?, known) {
            (Some(newest), _) => self.take_in(&newest),
            // Known before the server was asked: it was there once.
            (None, Some(gone)) => self.forget(&gone),
            (None, None) => {}
        }
        Ok(())
    }

    /// Reads all objects of a namespace again that parameters select. Returns the uids of what there is.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn list_again(
        &self,
        client: &Client,
        namespace: &Namespace,
        params: &ListParams,
    ) -> kube::Result<BTreeSet<Option<String>>> {
        let listed = list_texts::<K>(client, namespace, params).await?;
        let there = listed.items.iter().map(|object| object.meta.uid.clone()).collect();
        listed.items.iter().for_each(|object| self.take_in(object));
        Ok(there)
    }

    fn take_in(&self, read: &WatchedObject<K>) {
        match read.decode() {
            Ok(object) => drop(self.upsert(object)),
            Err(error) => self.unread(read, &error),
        }
    }
}

/// All objects of a namespace that parameters select, as far as they can be read; the others are logged.
///
/// # Errors
/// The server did not answer.
pub async fn list<K: Watched>(client: &Client, namespace: &Namespace, params: &ListParams) -> kube::Result<Vec<K>> {
    let listed = list_texts::<K>(client, namespace, params).await?;
    let read = |object: &WatchedObject<K>| match object.decode() {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(kind = %K::kind(&()), object = %Key::of_meta(&object.meta), %error, "an object cannot be read");
            None
        }
    };
    Ok(listed.items.iter().filter_map(read).collect())
}

async fn list_texts<K: Watched>(
    client: &Client,
    namespace: &Namespace,
    params: &ListParams,
) -> kube::Result<ObjectList<WatchedObject<K>>> {
    Api::<WatchedObject<K>>::namespaced(client.clone(), namespace).list(params).await
}
