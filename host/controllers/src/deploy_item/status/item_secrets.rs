//! What has no room in a status: compressed, in Secrets of its item, in chunks named by their content. Secrets, because what lies in
//! them may be a Secret itself.

use std::collections::BTreeSet;

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use orangery_api::{
    annotation::GUARD,
    deploy_item::DeployItem,
    stored_state::{STORED_CONTENT as CONTENT, unpack},
};
use orangery_cluster::TERMINATING;
use orangery_core::{
    digest::sha256,
    name::{Namespace, ObjectName, proposal_secret},
    step::Step,
};
use orangery_reconcile::Key;

use crate::{guard::OF_INVENTORY, object::owner_reference, object_access::get};

/// Bytes of one Secret: below the limit of 1 MiB that the API server sets, also in base64.
const CHUNK: usize = 700 * 1024;

/// The Secrets that a compressed content of an item takes, in order.
pub(super) fn secrets(item: &ObjectName, compressed: &[u8]) -> Vec<String> {
    let name = |chunk: &[u8]| {
        let hex = sha256(chunk);
        let short = hex.rsplit(':').next().and_then(|hex| hex.get(..20)).unwrap_or(&hex);
        proposal_secret(item, short)
    };
    compressed.chunks(CHUNK).map(name).collect()
}

/// What a content is, as the type of its Secrets says it.
#[derive(Clone, Copy)]
pub(super) enum ContentType {
    /// A proposal.
    Proposal,
    /// A state that has no room in the status.
    State,
}

impl ContentType {
    fn secret_type(self) -> &'static str {
        match self {
            Self::Proposal => "orangery.dev/proposal",
            Self::State => "orangery.dev/state",
        }
    }

    /// Whether it stays until no item refers to it any more, whoever deletes it: what is in it is known nowhere else.
    fn is_guarded(self) -> bool {
        matches!(self, Self::State)
    }
}

/// Stores a compressed content. Repeating it writes nothing new.
///
/// # Errors
/// The API server cannot be reached, or refuses a Secret.
pub(super) async fn persist(
    client: &Client,
    item: &DeployItem,
    content: ContentType,
    compressed: &[u8],
) -> Result<(), kube::Error> {
    let Key { namespace, name } = Key::of(item);
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    for (name, chunk) in secrets(&name, compressed).into_iter().zip(compressed.chunks(CHUNK)) {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.to_string()),
                owner_references: Some(vec![owner_reference(item)]),
                finalizers: content.is_guarded().then(|| vec![GUARD.to_owned()]),
                labels: content.is_guarded().then(|| [(GUARD.to_owned(), OF_INVENTORY.to_owned())].into()),
                ..ObjectMeta::default()
            },
            data: Some([(CONTENT.to_owned(), ByteString(chunk.to_vec()))].into()),
            immutable: Some(true),
            type_: Some(content.secret_type().to_owned()),
            ..Secret::default()
        };
        create(&api, &secret).await?;
    }
    Ok(())
}

/// Whether a Secret is refused as it is: nothing is created in a namespace that terminates, nor beyond a quota.
pub(super) fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 404 | 422))
}

/// The reason of a failure to write a Secret: that its namespace is being terminated, or this one.
pub(super) fn reason_of(error: &kube::Error, otherwise: &'static str) -> &'static str {
    let kube::Error::Api(status) = error else { return otherwise };
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    if causes.iter().any(|cause| cause.reason == TERMINATING) { TERMINATING } else { otherwise }
}

/// Creates a Secret that is named by its content. One of its name with other content was made by somebody else, and goes.
async fn create(api: &Api<Secret>, secret: &Secret) -> kube::Result<()> {
    match api.create(&PostParams::default(), secret).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let name = secret.name_any();
            if api.get_opt(&name).await?.is_some_and(|there| there.data != secret.data) {
                api.delete(&name, &DeleteParams::default()).await?;
                api.create(&PostParams::default(), secret).await?;
            }
            Ok(())
        }
        created => created.map(drop),
    }
}

/// Reads a content back; `None` where its Secrets are gone or are not what was stored.
pub(super) async fn read(
    client: &Client,
    namespace: &Namespace,
    secrets: &[String],
    digest: &str,
) -> Step<Option<Vec<u8>>> {
    let mut compressed = Vec::new();
    for name in secrets {
        let secret: Option<Secret> = get(client, namespace, &name.into()).await?;
        let Some(ByteString(chunk)) = secret.and_then(|secret| secret.data).and_then(|mut data| data.remove(CONTENT))
        else {
            return Ok(None);
        };
        compressed.extend(chunk);
    }
    Ok(unpack(&compressed, digest))
}

/// Removes Secrets that are not needed any more. What cannot be removed goes with the item that owns it.
pub(super) async fn discard(client: &Client, namespace: &Namespace, unneeded: &BTreeSet<String>) {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    for name in unneeded {
        if let Err(error) = api.delete(name, &DeleteParams::default()).await {
            tracing::debug!(%error, secret = name, "a Secret that is not needed any more stays until its item goes");
        }
    }
}
