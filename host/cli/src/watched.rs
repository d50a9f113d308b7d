//! Waiting for what becomes of one object, by a watch.

use std::fmt::Debug;

use futures::{StreamExt as _, TryStreamExt as _, pin_mut};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, watch_object},
    },
};
use serde::de::DeserializeOwned;

use crate::call::{CallError, CallSubject};

/// Watches an object until `seen` answers something; it is given `None` where the object is not there. A server that does not
/// answer for a while is asked again.
///
/// # Errors
/// The server refuses.
pub(crate) async fn until<K, T>(
    api: &Api<K>,
    subject: CallSubject<'_>,
    mut seen: impl FnMut(Option<K>) -> Option<T>,
) -> Result<T, CallError>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let changes = watch_object(api.clone(), subject.name).default_backoff();
    let changes = changes.map_err(|error| refusal(subject, error));
    pin_mut!(changes);
    while let Some(change) = changes.next().await {
        match change {
            Ok(object) => {
                if let Some(found) = seen(object) {
                    return Ok(found);
                }
            }
            Err(Some(refused)) if !refused.may_pass() => return Err(refused),
            Err(_) => {}
        }
    }
    Err(CallError::Unreachable { cause: "the watch ended".to_owned() })
}

/// What the server said to a watch; `None` where the watch is merely to be started anew.
pub(crate) fn refusal(subject: CallSubject<'_>, error: watcher::Error) -> Option<CallError> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Some(CallError::of(subject, error)),
        watcher::Error::WatchError(status) if status.code == 410 => None,
        watcher::Error::WatchError(status) => Some(CallError::of(subject, kube::Error::Api(status))),
        watcher::Error::NoResourceVersion => None,
    }
}
