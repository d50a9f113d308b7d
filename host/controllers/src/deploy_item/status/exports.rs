//! The Secret with the exports of an item, which its status refers to.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Resource as _, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use orangery_api::{annotation, deploy_item::DeployItem, reference::ObjectReference};
use orangery_core::{
    error::{Code, Failure},
    name::export_secret,
    step::{Halt, Step},
};
use serde_json::{Value, json};

use orangery_reconcile::Key;

use super::item_secrets;
use crate::{controller_context::ControllerContext, object::owner_reference, secret_values::reader};

/// The key of an export Secret.
const CONFIG: &str = "config";

/// Where the exports of an item are.
pub(super) fn reference(item: &DeployItem) -> ObjectReference {
    ObjectReference { name: export_secret(&item.name_any()), namespace: Key::of(item).namespace }
}

/// Writes the exports of an item: an object. What is secret in it is told beside (C-195).
///
/// # Errors
/// A Secret of the name is there that is not of the item (C-194), or the server does not take it.
pub(super) async fn write(host: &ControllerContext, item: &DeployItem, exports: &Value) -> Step<()> {
    let ObjectReference { name, namespace } = reference(item);
    let api: Api<Secret> = Api::namespaced(host.client.clone(), &namespace);
    let data = ByteString(exports.to_string().into_bytes());
    let places = host.secrets.secret_places(&namespace, &reader(&item.name_any()), exports);
    let places = (!places.is_empty()).then(|| json!(places).to_string());
    let annotations = places.clone().map(|places| BTreeMap::from([(annotation::SECRET_EXPORTS.to_owned(), places)]));
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            owner_references: Some(vec![owner_reference(item)]),
            annotations,
            ..ObjectMeta::default()
        },
        data: Some([(CONFIG.to_owned(), data.clone())].into()),
        ..Secret::default()
    };
    let halt = |error: kube::Error| not_written(item, &error);
    let has_exported = item.status.as_ref().is_some_and(|status| status.export_ref.is_some());
    if !has_exported {
        match api.create(&PostParams::default(), &secret).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            created => return created.map(drop).map_err(halt),
        }
    }
    let Some(there) = api.get_opt(&name).await.map_err(halt)? else {
        return api.create(&PostParams::default(), &secret).await.map(drop).map_err(halt);
    };
    if !is_of(item, &there) {
        return Err(taken(item));
    }
    // The version keeps the patch from a Secret that has taken the place of the one that was looked at.
    let patch = json!({
        "metadata": {
            "resourceVersion": there.metadata.resource_version,
            "ownerReferences": secret.metadata.owner_references,
            "annotations": {(annotation::SECRET_EXPORTS): places},
        },
        "data": {CONFIG: data},
    });
    let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(drop).map_err(halt)
}

/// Removes the exports of an item that has none any more. A Secret of the name that is not of the item stays.
pub(super) async fn remove(client: &Client, item: &DeployItem, name: &str) -> Step<()> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &Key::of(item).namespace);
    let there = api.get_opt(name).await.map_err(|error| not_written(item, &error))?;
    let Some(there) = there.filter(|there| is_of(item, there)) else { return Ok(()) };
    let Secret { metadata: ObjectMeta { uid, resource_version, .. }, .. } = there;
    let params =
        DeleteParams { preconditions: Some(Preconditions { uid, resource_version }), ..DeleteParams::default() };
    match api.delete(name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(not_written(item, &error)),
    }
}

/// Whether a Secret has exports of this item, or of an earlier one of its name: it is the owner, as it is of those that the
/// deployers of Landscaper write.
fn is_of(item: &DeployItem, secret: &Secret) -> bool {
    let (group, kind, name) = (DeployItem::group(&()), DeployItem::kind(&()), item.name_any());
    let group_of = |api_version: &str| api_version.split_once('/').map(|(group, _version)| group.to_owned());
    secret.owner_references().iter().any(|owner| {
        group_of(&owner.api_version).is_some_and(|of| of == group) && owner.kind == kind && owner.name == name
    })
}

fn taken(item: &DeployItem) -> Halt {
    let ObjectReference { name: secret, namespace } = reference(item);
    let message = format!(
        "the exports of DeployItem {} cannot be written: Secret {namespace}/{secret} is there already, and the item is not its owner, \
         so it stays as it is; rename or delete it, and reconcile again",
        item.name_any()
    );
    Halt::Stall(Failure::new("WriteExports", "ExportSecretTaken", message).with_code(Code::ConfigurationProblem))
}

fn not_written(item: &DeployItem, error: &kube::Error) -> Halt {
    let name = item.name_any();
    let message =
        format!("the exports of DeployItem {name} cannot be written to Secret {}: {error}", export_secret(&name));
    Halt::Retry(Failure::new("WriteExports", item_secrets::reason_of(error, "ExportsNotWritten"), message))
}
