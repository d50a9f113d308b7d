//! The Context controller: every namespace has a Context `default` (`docs/wire.md` §1.5, §11.1).

use std::{collections::BTreeSet, future::ready, sync::Arc};

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1;
use kube::{
    Api, Resource as _, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use orangery_api::context::DEFAULT_CONTEXT;
use orangery_core::name::Namespace;
use orangery_reconcile::{Key, UnreadObject};
use tokio::sync::mpsc;

use crate::{controller_context::ControllerContext, default_context::ensure};

/// Keeps a Context `default` in every namespace, as namespaces appear and wherever it is deleted. Runs until it is dropped.
///
/// Namespaces in `excluded` get none. A create that fails is told in the log and tried again when the namespace changes, or
/// an Installation needs the Context.
pub async fn keep_default_contexts(host: Arc<ControllerContext>, excluded: BTreeSet<Namespace>) {
    host.stores.contexts.synced().await;
    let api: Api<UnreadObject<v1::Namespace>> = Api::all(host.client.clone());
    let living = watcher(api, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(|event| ready(event.inspect_err(|error| tracing::debug!(%error, "watching namespaces")).ok()))
        .filter(|namespace| ready(namespace.meta().deletion_timestamp.is_none()))
        .map(|namespace| Namespace::from(namespace.name_any()));
    stream::select(living, lost(&host))
        .filter(|namespace| ready(!excluded.contains(namespace)))
        .for_each(|namespace| keep(&host, namespace))
        .await;
}

/// The same in these namespaces, for an operator that looks into no others.
pub async fn keep_default_contexts_of(host: Arc<ControllerContext>, namespaces: Vec<Namespace>) {
    host.stores.contexts.synced().await;
    let lost = lost(&host).filter(|namespace| ready(namespaces.contains(namespace)));
    stream::iter(namespaces.clone()).chain(lost).for_each(|namespace| keep(&host, namespace)).await;
}

/// The namespaces whose Context `default` was deleted. The server refuses another one where the namespace goes as well.
fn lost(host: &ControllerContext) -> impl Stream<Item = Namespace> + use<> {
    let (tell, mut lost) = mpsc::unbounded_channel();
    host.stores.contexts.subscribe(move |change| {
        if let (Some(before), None) = (change.before, change.after) {
            let Key { namespace, name } = Key::of(before.as_ref());
            if name == DEFAULT_CONTEXT {
                // Nobody hears it once the operator ends.
                drop(tell.send(namespace));
            }
        }
    });
    stream::poll_fn(move |context| lost.poll_recv(context))
}

async fn keep(host: &ControllerContext, namespace: Namespace) {
    if let Err(error) = ensure(host, &namespace).await {
        tracing::warn!(%namespace, %error, "creating the default Context");
    }
}
