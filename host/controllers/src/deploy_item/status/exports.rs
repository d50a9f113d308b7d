//! The Secret with the exports of an item, which its status refers to.

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use orangery_api::{deploy_item::DeployItem, reference::ObjectReference};
use orangery_core::{
    error::Failure,
    name::export_secret,
    step::{Halt, Step},
};
use serde_json::{Value, json};

use orangery_reconcile::Key;

use super::item_secrets;
use crate::object::owner_reference;

/// The key of an export Secret.
const CONFIG: &str = "config";

/// Where the exports of an item are.
pub(super) fn reference(item: &DeployItem) -> ObjectReference {
    ObjectReference { name: export_secret(&item.name_any()), namespace: Key::of(item).namespace }
}

/// Writes the exports of an item: an object.
pub(super) async fn write(client: &Client, item: &DeployItem, exports: &Value) -> Step<()> {
    let ObjectReference { name, namespace } = reference(item);
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let data = ByteString(exports.to_string().into_bytes());
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            owner_references: Some(vec![owner_reference(item)]),
            ..ObjectMeta::default()
        },
        data: Some([(CONFIG.to_owned(), data.clone())].into()),
        ..Secret::default()
    };
    match api.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let patch =
                json!({"metadata": {"ownerReferences": secret.metadata.owner_references}, "data": {CONFIG: data}});
            let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            patched.map(drop).map_err(|error| not_written(item, &error))
        }
        Err(error) => Err(not_written(item, &error)),
    }
}

/// Removes the exports of an item that has none any more.
pub(super) async fn remove(client: &Client, item: &DeployItem, name: &str) -> Step<()> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &Key::of(item).namespace);
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(not_written(item, &error)),
    }
}

fn not_written(item: &DeployItem, error: &kube::Error) -> Halt {
    let name = item.name_any();
    let message =
        format!("the exports of DeployItem {name} cannot be written to Secret {}: {error}", export_secret(&name));
    Halt::Retry(Failure::new("WriteExports", item_secrets::reason_of(error, "ExportsNotWritten"), message))
}
