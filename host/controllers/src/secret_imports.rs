//! What is secret for the imports of a namespace, read from the server (C-41).

use std::collections::BTreeSet;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::api::ListParams;
use orangery_api::{data_object::DataObject, installation::Installation, label};
use orangery_core::name::{Namespace, can_be_name};
use orangery_reconcile::{Key, list};

use crate::{controller_context::ControllerContext, object_access::get};

/// Reads what is secret for the imports of a namespace from the server, as far as the client may: for a process that renders
/// nothing itself, and still shows what others have rendered.
pub async fn read_secret_values(host: &ControllerContext, namespace: &Namespace) {
    let installations = list::<Installation>(&host.client, namespace, &ListParams::default()).await.unwrap_or_default();
    let imports = installations.iter().flat_map(|installation| &installation.spec.imports.data);
    let names: BTreeSet<&str> =
        imports.filter_map(|import| import.secret_ref.as_ref()).map(|reference| reference.name.as_str()).collect();
    for name in names.into_iter().filter(|name| can_be_name(name)) {
        if let Ok(Some(secret)) = get::<Secret>(&host.client, namespace, &name.into()).await {
            let data = secret.data.unwrap_or_default();
            host.secrets.learn_secret(&Key::new(namespace, name), data.values().map(|ByteString(bytes)| bytes));
        }
    }
    let labelled = ListParams::default().labels(&format!("{}={}", label::SECRET_DATA, label::SECRET_DATA_WHOLE));
    for copy in list::<DataObject>(&host.client, namespace, &labelled).await.unwrap_or_default() {
        host.stores.data_objects.upsert(copy);
    }
}
