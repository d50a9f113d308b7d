//! What a waiting object reads from the server when it has heard nothing for long (C-11).
//!
//! Every change is absorbed by its store, which wakes whoever waits for it, as an event of a watch would have.

use kube::api::ListParams;
use orangery_core::{
    error::Failure,
    name::{Namespace, is_path_segment},
    step::{Halt, Step},
};
use orangery_reconcile::{FoundObjects, Key, Store, Watched};

use crate::{controller_context::ControllerContext, object::message_of};

/// Reads one object again. One that is gone is forgotten, and none has a name that is a path (C-74).
pub(crate) async fn read<K: Watched>(host: &ControllerContext, store: &Store<K>, key: &Key) -> Step<()> {
    if !is_path_segment(&key.name) {
        return Ok(());
    }
    store.read_again(&host.client, key).await.map_err(|error| unread::<K>(&key.to_string(), &error))
}

/// Reads all objects that a label marks, and those of `known`, found in the store before, that are not among them.
pub(crate) async fn list<K: Watched>(
    host: &ControllerContext,
    store: &Store<K>,
    known: FoundObjects<K>,
    namespace: &Namespace,
    (label, value): (&str, &str),
) -> Step<()> {
    let marked = ListParams::default().labels(&format!("{label}={value}"));
    let there = store.list_again(&host.client, namespace, &marked).await;
    let there = there.map_err(|error| unread::<K>(&format!("{namespace}/*"), &error))?;
    for unlisted in known.into_iter().filter(|known| !there.contains(&known.meta().uid)) {
        read(host, store, &Key::of(unlisted.as_ref())).await?;
    }
    Ok(())
}

fn unread<K: Watched>(name: &str, error: &kube::Error) -> Halt {
    let message = format!("{} {name} cannot be read: {}; it is tried again", K::kind(&()), message_of(error));
    Halt::Retry(Failure::new("LookAgain", "ReadFailed", message))
}
