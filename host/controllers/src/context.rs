//! The Context controller: every namespace has a Context `default` (`docs/wire.md` §1.5, §11.1).

use std::{collections::BTreeSet, future::ready, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1;
use kube::{
    Api, ResourceExt,
    core::{ObjectMeta, PartialObjectMeta},
    runtime::{WatchStreamExt, watcher},
};
use orangery_api::context::{Context, DEFAULT_CONTEXT};
use orangery_core::name::Namespace;
use orangery_reconcile::{Key, WriteError};

use crate::controller_context::ControllerContext;

/// Creates the Context `default` in every namespace that lacks it, as namespaces appear. Runs until it is dropped.
///
/// Namespaces in `excluded` get none. A create that fails is told in the log and tried again when the namespace changes;
/// an installation that needs the Context waits for it and says so.
pub async fn keep_default_contexts(host: Arc<ControllerContext>, excluded: BTreeSet<Namespace>) {
    host.stores.contexts.synced().await;
    let api: Api<PartialObjectMeta<v1::Namespace>> = Api::all(host.client.clone());
    watcher(api, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(|event| ready(event.inspect_err(|error| tracing::debug!(%error, "watching namespaces")).ok()))
        .filter(|namespace| {
            let wanted =
                namespace.metadata.deletion_timestamp.is_none() && !excluded.contains(namespace.name_any().as_str());
            ready(wanted)
        })
        .for_each(|namespace| ensure(&host, namespace.name_any().into()))
        .await;
}

/// Creates the Context `default` in these namespaces, for an operator that looks into no others.
pub async fn ensure_default_contexts(host: &ControllerContext, namespaces: &[Namespace]) {
    host.stores.contexts.synced().await;
    for namespace in namespaces {
        ensure(host, namespace.clone()).await;
    }
}

async fn ensure(host: &ControllerContext, namespace: Namespace) {
    let key = Key { namespace: namespace.clone(), name: DEFAULT_CONTEXT.to_owned() };
    if host.stores.contexts.get(&key).is_some() {
        return;
    }
    let context = Context {
        metadata: ObjectMeta {
            name: Some(DEFAULT_CONTEXT.to_owned()),
            namespace: Some(namespace.to_string()),
            ..ObjectMeta::default()
        },
        ..Context::default()
    };
    match host.writer(&host.stores.contexts).create(&context).await {
        Ok(_) => {}
        Err(WriteError::AlreadyExists { .. }) => {}
        Err(error) => tracing::warn!(%namespace, %error, "creating the default Context"),
    }
}
