//! The Context `default` of one namespace: made with the namespace, and again by whoever needs it and finds none.

use kube::core::ObjectMeta;
use orangery_api::context::{Context, DEFAULT_CONTEXT};
use orangery_core::name::Namespace;
use orangery_reconcile::{Key, WriteError};

use crate::controller_context::ControllerContext;

/// Makes the Context `default` of a namespace where there is none.
///
/// # Errors
/// The server refuses it, or cannot be reached.
pub(crate) async fn ensure(host: &ControllerContext, namespace: &Namespace) -> Result<(), WriteError> {
    let key = Key { namespace: namespace.clone(), name: DEFAULT_CONTEXT.into() };
    if host.stores.contexts.get(&key).is_some() {
        return Ok(());
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
        Ok(_) | Err(WriteError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
