//! What jobs of roots are made from, kept where jobs are on record, so that it can be gone back to (C-358, C-359): one Secret for each spec
//! with its imports. A job whose like there was before it writes nothing. No job waits for it, or fails by it.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, ObjectMeta, PostParams},
    core::PartialObjectMeta,
};
use orangery_api::{
    installation::Installation,
    job_definition::{
        DEFINED_AT, DEFINITION, DEFINITION_OF, DEFINITION_SEAL, DEFINITION_TYPE, JobDefinition, sealed_definition,
    },
    job_history::JobDefinitionPlace,
};
use orangery_blueprint::import::Imported;
use orangery_core::digest::sha256;
use orangery_reconcile::Key;
use serde_json::json;

use crate::{
    controller_context::ControllerContext,
    object::{beginning_of_name, delete_old, message_of, of_uid, owner_reference, uid_of},
};

/// Definitions of one root that are kept, where more of its jobs are on record (C-359).
pub(crate) const MOST_DEFINITIONS: usize = 20;

/// Definitions that are looked at at once.
const PAGE: u32 = 100;

/// Letters of what a server says, where a definition is not kept.
const LONGEST_WHY: usize = 256;

/// Bytes of the digest in the name of a definition.
const DIGEST: usize = 16;

/// Keeps what the job of a root is made from. Where that is; `None` where jobs are not on record, and of sub-installations.
pub(crate) async fn keep(
    host: &ControllerContext,
    installation: &Installation,
    imported: &BTreeMap<String, Imported>,
) -> Option<JobDefinitionPlace> {
    let most = host.job_histories.most?;
    if !installation.is_root() {
        return None;
    }
    let root = Key::of(installation);
    let definition = JobDefinition::of((&root.name, uid_of(installation)), &installation.spec, imported);
    let packed = match definition.packed() {
        Ok(packed) => packed,
        Err(error) => return Some(not_kept(&error.to_string())),
    };
    let definitions = JobDefinitions { host, installation, most: most.get().min(MOST_DEFINITIONS) };
    let name = definitions.name(&packed);
    match definitions.write(&name, packed).await {
        Ok(()) => Some(JobDefinitionPlace { secret: name, not_kept: String::new() }),
        Err(error) => {
            tracing::warn!(installation = %root, %error, "what a job is made from is not kept");
            Some(not_kept(&format!("its Secret could not be written: {}", message_of(&error))))
        }
    }
}

fn not_kept(why: &str) -> JobDefinitionPlace {
    JobDefinitionPlace { secret: String::new(), not_kept: why.chars().take(LONGEST_WHY).collect() }
}

/// The definitions of one root.
struct JobDefinitions<'a> {
    host: &'a ControllerContext,
    installation: &'a Installation,
    /// How many are kept.
    most: usize,
}

impl JobDefinitions<'_> {
    fn api(&self) -> Api<Secret> {
        Api::namespaced(self.host.client.clone(), &Key::of(self.installation).namespace)
    }

    /// What the names of all of them begin with.
    fn prefix(&self) -> String {
        format!("{}-job-", beginning_of_name(&Key::of(self.installation).name))
    }

    /// One content has one name, which nobody else can tell from it.
    fn name(&self, packed: &[u8]) -> String {
        let content = json!(["job definition", uid_of(self.installation), sha256(packed)]).to_string();
        let tag = self.host.key.seals().sign(content.as_bytes());
        format!("{}{}", self.prefix(), HEXLOWER.encode(tag.get(..DIGEST).unwrap_or(&tag)))
    }

    async fn write(&self, name: &str, packed: Vec<u8>) -> kube::Result<()> {
        let (api, secret, params) = (self.api(), self.secret(name, packed), PostParams::default());
        let place = self.installation.status.as_ref().and_then(|status| status.job_definition.as_ref());
        if place.is_some_and(|place| place.secret == name)
            && api.get_opt(name).await?.is_some_and(|found| is_same(&found, &secret))
        {
            return Ok(());
        }
        match api.create(&params, &secret).await {
            // What is gone back to is the newest again. What others have made of one is written anew.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let found = api.get_metadata(name).await?;
                api.delete(name, &of_uid(found.metadata.uid)).await?;
                api.create(&params, &secret).await?;
            }
            created => drop(created?),
        }
        // The first one has none before it.
        if place.is_some() {
            self.remove_old(name).await;
        }
        Ok(())
    }

    fn secret(&self, name: &str, packed: Vec<u8>) -> Secret {
        let Key { namespace, .. } = Key::of(self.installation);
        let seal =
            sealed_definition(&namespace, name, &packed).and_then(|sealed| self.host.key.histories().sign(&sealed));
        let at = format!("{:020}", self.host.clock.now().as_microsecond());
        Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_string()),
                labels: Some([(DEFINITION_OF.to_owned(), uid_of(self.installation).to_owned())].into()),
                annotations: Some(
                    [(DEFINED_AT.to_owned(), at), (DEFINITION_SEAL.to_owned(), seal.unwrap_or_default())].into(),
                ),
                owner_references: Some(vec![owner_reference(self.installation)]),
                ..ObjectMeta::default()
            },
            data: Some([(DEFINITION.to_owned(), ByteString(packed))].into()),
            type_: Some(DEFINITION_TYPE.to_owned()),
            immutable: Some(true),
            ..Secret::default()
        }
    }

    /// Removes definitions of the Installation but the newest. What cannot be removed now is when the next one is kept.
    async fn remove_old(&self, newest: &str) {
        let (api, prefix) = (self.api(), self.prefix());
        let selected = format!("{DEFINITION_OF}={}", uid_of(self.installation));
        let Ok(listed) = api.list_metadata(&ListParams::default().labels(&selected).limit(PAGE)).await else { return };
        let is_other = |of: &PartialObjectMeta<Secret>| of.name_any() != newest && of.name_any().starts_with(&prefix);
        let others = listed.items.into_iter().filter(is_other).collect();
        let age = |of: &PartialObjectMeta<Secret>| (of.annotations().get(DEFINED_AT).cloned(), of.name_any());
        delete_old(&api, others, age, self.most.saturating_sub(1)).await;
    }
}

fn is_same(found: &Secret, secret: &Secret) -> bool {
    let seal = |secret: &Secret| secret.annotations().get(DEFINITION_SEAL).cloned();
    found.data == secret.data && found.type_ == secret.type_ && seal(found) == seal(secret)
}

#[cfg(test)]
mod tests {
    use std::{
        num::NonZeroUsize,
        sync::{
            Arc,
            atomic::{AtomicI64, Ordering},
        },
    };

    use kube::api::{Patch, PatchParams};
    use orangery_blueprint::import::DataValue;
    use orangery_core::port::Clock;

    use super::*;
    use crate::{
        controller_context::tests::{host, host_on, server},
        job_histories::JobHistories,
    };

    /// Each look at it is a second later.
    #[derive(Debug, Default)]
    struct Ticking(AtomicI64);

    impl Clock for Ticking {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::from_second(self.0.fetch_add(1, Ordering::SeqCst)).unwrap()
        }
    }

    fn root(context: &str) -> Installation {
        let metadata = json!({"namespace": "default", "name": "web", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"blueprint": {}, "context": context}})).unwrap()
    }

    fn after(context: &str, place: &Option<JobDefinitionPlace>) -> Installation {
        let mut root = root(context);
        root.status.get_or_insert_default().job_definition = place.clone();
        root
    }

    #[tokio::test]
    async fn c_358_a_job_whose_like_there_was_before_it_writes_nothing_and_what_others_have_changed_is_written_anew() {
        let (_server, client) = server(&[]).await;
        let mut host = Arc::into_inner(host_on(client.clone())).unwrap();
        let api: Api<Secret> = Api::namespaced(client, "default");
        let none = BTreeMap::new();
        assert_eq!(keep(&host, &root("a"), &none).await, None, "jobs are not on record");
        host.job_histories = JobHistories::keeping(NonZeroUsize::new(3));
        let first = keep(&host, &root("a"), &none).await;
        let name = first.as_ref().unwrap().secret.clone();
        let version = async || api.get(&name).await.unwrap().resource_version();
        let begun = version().await;
        assert_eq!(keep(&host, &after("a", &first), &none).await, first);
        assert_eq!(version().await, begun, "nothing is written");
        // A planted one is replaced: its seal can be taken away, and it can be another one of the same name.
        let unsealed = json!({"metadata": {"annotations": {(DEFINITION_SEAL): null}}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(unsealed)).await.unwrap();
        assert_eq!(keep(&host, &after("a", &first), &none).await, first);
        let written = api.get(&name).await.unwrap();
        assert!(!written.annotations()[DEFINITION_SEAL].is_empty());
        let ByteString(packed) = &written.data.unwrap()[DEFINITION];
        let read = JobDefinition::unpacked(packed).unwrap();
        assert_eq!((read.installation.name.as_str(), read.spec.context.as_str()), ("web", "a"));
        // One whose like lies there before the status tells of it.
        let planted = json!({"metadata": {"labels": {"somebody": "else"}}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(planted)).await.unwrap();
        assert_eq!(keep(&host, &root("a"), &none).await, first);
        assert_eq!(api.get(&name).await.unwrap().labels().get("somebody"), None, "it is made anew");
        let mut below = root("a");
        let owner = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation", "name": "x", "uid": "x"}]);
        below.metadata.owner_references = serde_json::from_value(owner).unwrap();
        assert_eq!(keep(&host, &below, &none).await, None, "what is below a root is made from that");
    }

    #[tokio::test]
    async fn c_359_limits_job_definitions_have_a_number_and_what_is_gone_back_to_is_the_newest_again() {
        let (_server, client) = server(&[]).await;
        let mut host = Arc::into_inner(host_on(client.clone())).unwrap();
        host.clock = Arc::new(Ticking::default());
        let api: Api<Secret> = Api::namespaced(client, "default");
        let none = BTreeMap::new();
        let kept = async || -> Vec<String> {
            let mut listed = api.list(&ListParams::default()).await.unwrap().items;
            listed.retain(|secret| secret.type_.as_deref() == Some(DEFINITION_TYPE));
            listed.sort_by_key(|secret| secret.annotations()[DEFINED_AT].clone());
            let context = |secret: &Secret| {
                let ByteString(packed) = &secret.data.as_ref().unwrap()[DEFINITION];
                JobDefinition::unpacked(packed).unwrap().spec.context.clone()
            };
            listed.iter().map(context).collect()
        };
        host.job_histories = JobHistories::keeping(NonZeroUsize::new(2));
        let mut place = None;
        for (context, expected) in [("a", "a"), ("b", "ab"), ("a", "ba"), ("a", "ba"), ("c", "ac")] {
            place = keep(&host, &after(context, &place), &none).await;
            assert_eq!(kept().await.concat(), expected);
        }
        host.job_histories = JobHistories::keeping(NonZeroUsize::new(100));
        for context in 0..=MOST_DEFINITIONS {
            place = keep(&host, &after(&context.to_string(), &place), &none).await;
        }
        assert_eq!(kept().await.len(), MOST_DEFINITIONS);
    }

    #[tokio::test]
    async fn c_358_what_cannot_be_kept_is_told_why_and_holds_no_job_up() {
        // Nothing listens there.
        let mut host = Arc::into_inner(host()).unwrap();
        host.job_histories = JobHistories::keeping(NonZeroUsize::new(1));
        let place = keep(&host, &root("a"), &BTreeMap::new()).await.unwrap();
        assert_eq!(place.secret, "");
        assert!(place.not_kept.starts_with("its Secret could not be written: "), "{place:?}");
        let mut large = root("a");
        let data = json!([{"name": "i", "dataRef": "i"}]);
        large.spec.imports = serde_json::from_value(json!({"data": data})).unwrap();
        let value = json!("x".repeat(40 << 20));
        let import = Imported::Data(DataValue { value, ..DataValue::default() });
        let place = keep(&host, &large, &[("i".to_owned(), import)].into()).await.unwrap();
        assert_eq!(place.secret, "");
        assert!(place.not_kept.starts_with("it has more than "), "{place:?}");
    }

    #[test]
    fn c_359_limits_job_definitions_why_one_is_not_kept_is_cut() {
        assert_eq!(not_kept(&"x".repeat(1_000)).not_kept.len(), LONGEST_WHY);
        assert_eq!(not_kept("y"), JobDefinitionPlace { secret: String::new(), not_kept: "y".to_owned() });
    }
}
