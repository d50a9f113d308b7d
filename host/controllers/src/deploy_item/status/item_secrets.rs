//! What has no room in a status: compressed, in Secrets of its item, in chunks named by their content. Secrets, because what lies in
//! them may be a Secret itself.

use std::collections::BTreeSet;

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, PostParams, Preconditions},
};
use orangery_api::{
    annotation::GUARD,
    deploy_item::DeployItem,
    marks::Marks as _,
    stored_state::{MOST_UNSEALED, STORED_CONTENT as CONTENT, StoredState, unpack, unpacked_memory},
};
use orangery_cluster::TERMINATING;
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    name::{Namespace, ObjectName, proposal_secret},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, reserve_for_reading};
use orangery_turns::off_the_executor;

use crate::{guard::OF_INVENTORY, object::owner_reference, object_access::get, sealed_state::unreadable};

/// Bytes of one Secret: below the limit of 1 MiB that the API server sets, also in base64.
const CHUNK: usize = 700 * 1024;

/// Bytes of memory that are reserved for each byte of a Secret that is read back, until it is measured: manifests compress to an
/// eighth.
const UNPACKED: u64 = 8;

/// Whether the seal of the operator is good with which a content is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::deploy_item) enum ContentSeal {
    /// What it names is what the operator stored.
    Good,
    /// It may be anything.
    Unknown,
}

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

    /// The Secrets of an item that are held whatever becomes of them: those that hold the inventory that its status has.
    fn held(self, item: &DeployItem) -> Vec<String> {
        let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
        StoredState::of(status).filter(|_| self.is_guarded()).map_or_else(Vec::new, |stored| stored.secrets)
    }
}

/// Stores a compressed content. Repeating it writes nothing new.
///
/// # Errors
/// The API server cannot be reached, or refuses a Secret; one of its name and content is on its way out, and is made anew when
/// it is gone.
pub(super) async fn persist(
    client: &Client,
    item: &DeployItem,
    content: ContentType,
    compressed: &[u8],
) -> Result<(), kube::Error> {
    let Key { namespace, name } = Key::of(item);
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let held = content.held(item);
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
        create(&api, &secret, &held).await?;
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

/// Creates a Secret that is named by its content. One of its name with other content was made by somebody else, and goes. One
/// that is being deleted is as good as gone, unless it is one of those that are held: no guard leaves these while the item
/// refers to them.
async fn create(api: &Api<Secret>, secret: &Secret, held: &[String]) -> kube::Result<()> {
    let exists = match api.create(&PostParams::default(), secret).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => kube::Error::Api(status),
        created => return created.map(drop),
    };
    let name = secret.name_any();
    let Some(there) = api.get_opt(&name).await? else { return Err(exists) };
    match (there.data == secret.data, there.is_deleting()) {
        (true, false) => Ok(()),
        (true, true) if held.contains(&name) => Ok(()),
        (_, true) => Err(exists),
        (false, false) => {
            let preconditions = Preconditions { uid: there.metadata.uid, resource_version: None };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            api.delete(&name, &params).await?;
            api.create(&PostParams::default(), secret).await.map(drop)
        }
    }
}

/// Reads a content back; `None` where its Secrets are gone or are not what was stored.
///
/// # Errors
/// The API server cannot be reached; there is no memory for it now; it is too large for one that anybody may have written.
pub(super) async fn read(
    client: &Client,
    namespace: &Namespace,
    (secrets, digest): (&[String], &str),
    seal: ContentSeal,
) -> Step<Option<Vec<u8>>> {
    let mut reserved = reserve_for_reading(namespace, (secrets.len() * CHUNK) as u64 * UNPACKED).await;
    let mut compressed = Vec::new();
    for name in secrets {
        let secret: Option<Secret> = get(client, namespace, &name.into()).await?;
        let Some(ByteString(chunk)) = secret.and_then(|secret| secret.data).and_then(|mut data| data.remove(CONTENT))
        else {
            return Ok(None);
        };
        compressed.extend(chunk);
    }
    let bytes = off_the_executor(|| unpacked_memory(&compressed));
    if seal == ContentSeal::Unknown && bytes > MOST_UNSEALED {
        reserved.takes(0).await;
        return Err(unreadable(&format!(
            "what Secrets {} have takes {bytes} bytes of memory, and at most {MOST_UNSEALED} are read of what the operator may not have \
             written; restore the status, or delete the item without uninstall",
            secrets.join(", ")
        )));
    }
    if bytes > reserved.bytes() {
        reserved = reserved.grow(namespace, bytes).await.ok_or_else(|| crowded(bytes))?;
    }
    let content = off_the_executor(|| unpack(&compressed, digest));
    // More than its namespace may have counts as that.
    let held = bytes.min(reserved.bytes());
    reserved.takes(if content.is_some() { held } else { 0 }).await;
    Ok(content)
}

/// What is read back has no memory now (C-132).
fn crowded(bytes: u64) -> Halt {
    let message = format!(
        "what is kept for the item takes {bytes} bytes of memory, and others have what is left; it is tried again"
    );
    Halt::Retry(Failure::new("ReadBack", "MemoryTaken", message).with_code(Code::LimitExceeded))
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

#[cfg(test)]
mod tests {
    use kube::api::{Patch, PatchParams};
    use orangery_embedded::Server;
    use serde_json::json;

    use super::*;
    use crate::controller_context::tests::server;

    /// A server, its Secrets, and an item whose status names these.
    async fn item(named: &[String]) -> (Server, Client, Api<Secret>, DeployItem) {
        let (server, client) = server(&[]).await;
        let large = json!({"digest": "sha256:0", "secrets": named});
        let status = json!({"providerStatus": {"orangery": {"large": large}}});
        let item = json!({"metadata": {"namespace": "default", "name": "item", "uid": "0"}, "spec": {"type": "t"},
            "status": status});
        let api = Api::namespaced(client.clone(), "default");
        (server, client, api, serde_json::from_value(item).unwrap())
    }

    async fn finalizers(api: &Api<Secret>, name: &str, finalizers: &[&str]) {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    fn is_conflict(result: &Result<(), kube::Error>) -> bool {
        matches!(result, Err(kube::Error::Api(status)) if status.is_already_exists())
    }

    #[tokio::test]
    async fn c_94_a_secret_that_is_on_its_way_out_stores_nothing_and_is_made_anew_when_it_is_gone() {
        let (_server, client, api, item) = item(&[]).await;
        let persist = async || persist(&client, &item, ContentType::State, b"x").await;
        persist().await.unwrap();
        let name = secrets(&"item".into(), b"x").remove(0);
        let first = api.get(&name).await.unwrap();
        persist().await.unwrap();
        assert_eq!(api.get(&name).await.unwrap(), first, "repeating it writes nothing");
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        let refused = persist().await;
        assert!(is_conflict(&refused), "{refused:?}");
        finalizers(&api, &name, &[]).await;
        persist().await.unwrap();
        let anew = api.get(&name).await.unwrap();
        assert_eq!((&anew.data, anew.is_deleting()), (&first.data, false));
        assert_ne!(anew.metadata.uid, first.metadata.uid);
    }

    #[tokio::test]
    async fn c_94_a_secret_that_somebody_deletes_is_held_for_the_item_that_refers_to_it() {
        let name = secrets(&"item".into(), b"x").remove(0);
        let (_server, client, api, item) = item(std::slice::from_ref(&name)).await;
        persist(&client, &item, ContentType::State, b"x").await.unwrap();
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        persist(&client, &item, ContentType::State, b"x").await.unwrap();
        // Proposals have no guard, whatever the status says.
        let refused = persist(&client, &item, ContentType::Proposal, b"x").await;
        assert!(is_conflict(&refused), "{refused:?}");
    }

    #[tokio::test]
    async fn c_94_a_secret_with_other_content_goes_and_one_that_others_hold_is_waited_for() {
        let (_server, client, api, item) = item(&[]).await;
        let name = secrets(&"item".into(), b"x").remove(0);
        let theirs = json!({"metadata": {"name": name}, "data": {(CONTENT): "dGhlaXJz"}});
        let theirs: Secret = serde_json::from_value(theirs).unwrap();
        api.create(&PostParams::default(), &theirs).await.unwrap();
        persist(&client, &item, ContentType::State, b"x").await.unwrap();
        assert_eq!(api.get(&name).await.unwrap().data.unwrap()[CONTENT], ByteString(b"x".to_vec()));
        finalizers(&api, &name, &[]).await;
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        api.create(&PostParams::default(), &theirs).await.unwrap();
        finalizers(&api, &name, &["example.org/hold"]).await;
        let refused = persist(&client, &item, ContentType::State, b"x").await;
        assert!(is_conflict(&refused), "{refused:?}");
        finalizers(&api, &name, &[]).await;
        persist(&client, &item, ContentType::State, b"x").await.unwrap();
    }

    #[tokio::test]
    async fn c_132_what_no_seal_names_is_read_back_where_it_is_small_and_measured_before_it_is_unpacked() {
        let (_server, client, _api, item) = item(&[]).await;
        let read = async |content: &str, seal| {
            let packed = orangery_api::stored_state::pack(content.as_bytes()).unwrap();
            persist(&client, &item, ContentType::State, &packed).await.unwrap();
            let names = secrets(&"item".into(), &packed);
            let read = read(&client, &"default".into(), (&names, &sha256(content.as_bytes())), seal).await;
            read.map(|read| read.map(|read| read.len()))
        };
        let (small, large) = (r#"{"":0}"#.to_owned(), format!("[{}0]", r#"{"":0},"#.repeat(150_000)));
        assert_eq!(read(&small, ContentSeal::Unknown).await, Ok(Some(small.len())));
        assert_eq!(read(&large, ContentSeal::Good).await, Ok(Some(large.len())));
        let Err(Halt::Stall(failure)) = read(&large, ContentSeal::Unknown).await else { panic!("it is read") };
        assert!(
            failure.message.contains("at most 67108864 are read of what the operator may not have written"),
            "{}",
            failure.message
        );
    }
}
