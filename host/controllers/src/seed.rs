//! The operator's key. From it come the seals of the host's state, and
//! the time and the randomness that templates of a job are given: made from what is stored, so that rendering again,
//! also after a restart, gives the same (`docs/contract.md`, the promise of `rng`).

use std::fmt;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, api::PostParams, core::ObjectMeta};
use orangery_api::installation::Installation;
use orangery_blueprint::template_engine::JobRandomness;
use orangery_core::{
    name::{JobId, Namespace},
    port::Rng,
};
use orangery_proposal::ItemSecret;
use ring::hmac;

use crate::{
    encryption::EncryptionKey,
    history_key::HistoryKey,
    object::{message_of, uid_of},
};

/// The Secret with the host's key, in the operator's namespace.
const SECRET: &str = "orangery-seed";
/// The key of the host's key in it.
const CONTENT: &str = "seed";
/// How many bytes it has.
const LENGTH: usize = 32;

/// What the key for seals is derived with: no text that the randomness of a job is derived from, as it has no `/`.
const SEALS: &[u8] = b"orangery.dev seals of host state";

/// The same of the key of tokens in recordings.
const TOKENS: &[u8] = b"orangery.dev tokens of recordings";

/// What the secret of a deploy item in a job is derived with: no Installation has such a uid.
const DEPLOY_ITEM: &str = "deploy item";

/// What the randomness of all jobs is derived from, and the key that seals the host's state. With it and the id of a job
/// one knows the passwords that its templates made.
#[derive(Clone)]
pub struct HostKey {
    randomness: hmac::Key,
    seals: SealKey,
    encryption: EncryptionKey,
    histories: HistoryKey,
    tokens: [u8; LENGTH],
    is_operators: bool,
}

/// The key of seals (C-37).
#[derive(Clone)]
pub(crate) struct SealKey(hmac::Key);

impl SealKey {
    /// The HMAC of a text.
    pub(crate) fn sign(&self, text: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, text).as_ref().to_vec()
    }

    /// Whether this is the HMAC of a text.
    pub(crate) fn verify(&self, text: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.0, text, tag).is_ok()
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey([...])")
    }
}

/// Why there is no host key.
#[derive(Debug, thiserror::Error)]
pub enum HostKeyError {
    /// The Secret cannot be read.
    #[error(
        "Secret {namespace}/{SECRET}, which holds the key for the randomness of templates, cannot be read: {why}; \
         let the operator get Secrets in its namespace"
    )]
    Read {
        /// The operator's namespace.
        namespace: Namespace,
        /// What the server says.
        why: String,
    },
    /// The Secret cannot be made.
    #[error(
        "Secret {namespace}/{SECRET}, which holds the key for the randomness of templates, cannot be created: {why}; \
         let the operator create Secrets in its namespace"
    )]
    Create {
        /// The operator's namespace.
        namespace: Namespace,
        /// What the server says.
        why: String,
    },
    /// The Secret holds something else.
    #[error(
        "Secret {namespace}/{SECRET} has no {LENGTH} bytes under {CONTENT:?}; delete it, and the operator makes a new one: \
         what templates make up in running jobs changes then"
    )]
    Content {
        /// The operator's namespace.
        namespace: Namespace,
    },
}

impl HostKey {
    /// A key of these bytes.
    pub fn new(bytes: &[u8; LENGTH]) -> Self {
        let randomness = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let seals = SealKey(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&randomness, SEALS).as_ref()));
        let encryption = EncryptionKey::of(&randomness);
        let histories = HistoryKey::of(&randomness);
        let mut tokens = [0; LENGTH];
        tokens.iter_mut().zip(hmac::sign(&randomness, TOKENS).as_ref()).for_each(|(to, from)| *to = *from);
        Self { randomness, seals, encryption, histories, tokens, is_operators: true }
    }

    /// A key of these bytes for a command, which knows no operator's: it can tell nobody's seals from others.
    pub fn unknown(bytes: &[u8; LENGTH]) -> Self {
        Self { is_operators: false, ..Self::new(bytes) }
    }

    /// Whether it can be said what the operator has sealed.
    pub(crate) fn is_operators(&self) -> bool {
        self.is_operators
    }

    /// The key of what is encrypted.
    pub(crate) fn encryption(&self) -> &EncryptionKey {
        &self.encryption
    }

    /// What stands for values of Secrets in recordings is derived with this (C-340).
    pub(crate) fn tokens(&self) -> &[u8; LENGTH] {
        &self.tokens
    }

    /// The key of records of jobs.
    pub(crate) fn histories(&self) -> &HistoryKey {
        &self.histories
    }

    /// The key of seals.
    pub(crate) fn seals(&self) -> &SealKey {
        &self.seals
    }

    /// The key of this installation of the host: read, or made once.
    ///
    /// # Errors
    /// [`HostKeyError`]: the Secret can be neither read nor made, or is damaged.
    pub async fn ensure(client: &Client, namespace: &Namespace, rng: &dyn Rng) -> Result<Self, HostKeyError> {
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let read = |error: kube::Error| HostKeyError::Read { namespace: namespace.to_owned(), why: message_of(&error) };
        if let Some(secret) = api.get_opt(SECRET).await.map_err(read)? {
            return Self::of(&secret, namespace);
        }
        match api.create(&PostParams::default(), &secret(namespace, rng.secret())).await {
            Ok(made) => Self::of(&made, namespace),
            // Another operator was faster: its key counts.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                Self::of(&api.get(SECRET).await.map_err(read)?, namespace)
            }
            Err(error) => Err(HostKeyError::Create { namespace: namespace.to_owned(), why: message_of(&error) }),
        }
    }

    fn of(secret: &Secret, namespace: &Namespace) -> Result<Self, HostKeyError> {
        let bytes = secret.data.as_ref().and_then(|data| data.get(CONTENT));
        let bytes: Option<&[u8; LENGTH]> = bytes.and_then(|ByteString(bytes)| bytes.as_slice().try_into().ok());
        bytes.map(Self::new).ok_or_else(|| HostKeyError::Content { namespace: namespace.to_owned() })
    }

    /// What all that a component draws for a deploy item follows from in a job; none of a command, whose key is nobody's: it draws
    /// the same whenever it asks.
    pub(crate) fn of_item(&self, uid: &str, job: &JobId) -> Option<ItemSecret> {
        let tag = hmac::sign(&self.randomness, format!("{DEPLOY_ITEM}/{uid}/{job}").as_bytes());
        let mut secret = [0; LENGTH];
        secret.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        self.is_operators.then_some(ItemSecret(secret))
    }

    /// Time and randomness of the job that an Installation is in. The time is that of the trigger, which is written
    /// together with the job's id.
    pub(crate) fn of_job(&self, installation: &Installation, job: &JobId) -> JobRandomness {
        let uid = uid_of(installation);
        let tag = hmac::sign(&self.randomness, format!("{uid}/{job}").as_bytes());
        let mut seed = [0; LENGTH];
        seed.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        let times = installation.status.as_ref().and_then(|status| status.transition_times.clone()).unwrap_or_default();
        let created = installation.metadata.creation_timestamp.clone();
        let begun = times.trigger_time.or(times.init_time).or(created);
        JobRandomness { now: begun.map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0), seed }
    }
}

fn secret(namespace: &Namespace, bytes: [u8; LENGTH]) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            namespace: Some(namespace.to_string()),
            ..ObjectMeta::default()
        },
        data: Some([(CONTENT.to_owned(), ByteString(bytes.to_vec()))].into()),
        immutable: Some(true),
        type_: Some("orangery.dev/seed".to_owned()),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installation(uid: &str, times: serde_json::Value) -> Installation {
        let metadata = json!({"name": "x", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"});
        let status = json!({"transitionTimes": times});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"blueprint": {}}, "status": status})).unwrap()
    }

    #[test]
    fn a_job_has_one_seed_and_another_job_key_or_installation_another() {
        let seed = |key: u8, uid: &str, job: &str| {
            HostKey::new(&[key; LENGTH]).of_job(&installation(uid, json!({})), &job.into()).seed
        };
        let seeds = [seed(1, "u", "a"), seed(2, "u", "a"), seed(1, "v", "a"), seed(1, "u", "b")];
        assert_eq!(seed(1, "u", "a"), seeds[0]);
        let different: std::collections::BTreeSet<_> = seeds.into_iter().collect();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn c_395_what_an_item_draws_in_a_job_follows_from_the_key_and_is_nobody_elses() {
        let secret = |key: u8, uid: &str, job: &str| HostKey::new(&[key; LENGTH]).of_item(uid, &job.into()).unwrap().0;
        let of_installation = HostKey::new(&[1; LENGTH]).of_job(&installation("u", json!({})), &"a".into()).seed;
        let all = [secret(1, "u", "a"), secret(2, "u", "a"), secret(1, "v", "a"), secret(1, "u", "b"), of_installation];
        assert_eq!(secret(1, "u", "a"), all[0]);
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        let shown = format!("{:?}", HostKey::new(&[1; LENGTH]).of_item("u", &"a".into()));
        assert_eq!(shown, "Some(ItemSecret([...]))");
        assert_eq!(HostKey::unknown(&[1; LENGTH]).of_item("u", &"a".into()), None);
    }

    /// `printf 'u/a' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0101…` of 32 bytes.
    #[test]
    fn a_seed_is_the_hmac_of_installation_and_job() {
        let seed = HostKey::new(&[1; LENGTH]).of_job(&installation("u", json!({})), &"a".into()).seed;
        let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "a7734fcd92a61089fea14ba351b2fe39d49c1836c856480b57346d1b9f28313b");
    }

    #[test]
    fn the_time_of_a_job_is_that_of_its_trigger() {
        let now = |times| HostKey::new(&[1; LENGTH]).of_job(&installation("u", times), &"a".into()).now.to_string();
        let (trigger, init) = ("2026-02-01T00:00:00Z", "2026-02-01T00:00:09Z");
        assert_eq!(now(json!({"triggerTime": trigger, "initTime": init})), trigger);
        assert_eq!(now(json!({"initTime": init})), init);
        assert_eq!(now(json!({})), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", HostKey::new(&[7; LENGTH])), "HostKey([...])");
    }
}
