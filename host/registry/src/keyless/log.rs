//! What a log says of a signature: that it was there, when, and that it can be found there by everybody.
//!
//! The time is under the log's own signature, over the entry (SET); that the entry is in the log is shown by hashes up to the
//! root of its tree (RFC 9162), which the log has signed as well (a checkpoint).

use data_encoding::{BASE64, HEXLOWER};
use jiff::Timestamp;
use orangery_core::digest::content::{Algorithm, ContentDigest};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::json;

use super::{
    cut,
    key::EllipticKey,
    root::{Base64, LogName, TrustedLog, TrustedRoot},
};

/// Hashes of one proof: those of a tree with as many entries as there may be.
const MOST_HASHES: usize = 64;
/// The kind of entries that are read, and its version.
const KNOWN: (&str, &str) = ("hashedrekord", "0.0.1");
/// What begins each line of a checkpoint that has a signature.
const SIGNATURE_LINE: &str = "\u{2014} ";

/// An entry, as a bundle has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LogEntry {
    log_index: Number,
    log_id: LogName,
    kind_version: Option<LoggedKind>,
    #[serde(default)]
    integrated_time: Option<Number>,
    inclusion_promise: Option<InclusionPromise>,
    inclusion_proof: Option<InclusionProof>,
    canonicalized_body: Base64,
}

/// What a bundle says that an entry is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoggedKind {
    #[serde(rename = "kind")]
    entry_type: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InclusionPromise {
    signed_entry_timestamp: Base64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InclusionProof {
    log_index: Number,
    tree_size: Number,
    root_hash: Base64,
    hashes: Vec<Base64>,
    checkpoint: Checkpoint,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Checkpoint {
    envelope: String,
}

/// A number that is written as a text.
struct Number(i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(|_| D::Error::custom("a number is not in decimal digits"))
    }
}

/// The content of an entry, that the log stands behind.
#[derive(Deserialize)]
struct LoggedBody {
    #[serde(rename = "apiVersion")]
    format_version: String,
    #[serde(rename = "kind")]
    format: String,
    spec: LoggedSpec,
}

#[derive(Deserialize)]
struct LoggedSpec {
    data: LoggedContent,
    signature: LoggedSignature,
}

#[derive(Deserialize)]
struct LoggedContent {
    hash: LoggedHash,
}

#[derive(Deserialize)]
struct LoggedHash {
    algorithm: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoggedSignature {
    content: Base64,
    public_key: LoggedKey,
}

#[derive(Deserialize)]
struct LoggedKey {
    content: Base64,
}

/// An entry that is in a trusted log.
pub(super) struct Logged {
    /// When it came there.
    pub(super) at: Timestamp,
    body: LoggedBody,
}

impl LogEntry {
    /// Whether a trusted log has it. The error is the end of a sentence that begins with the signature.
    pub(super) fn logged(&self, root: &TrustedRoot) -> Result<Logged, String> {
        let (Some(Number(seconds)), Some(promise)) = (&self.integrated_time, &self.inclusion_promise) else {
            return Err(
                "has an entry of a log that does not say when it was made; sign it with a log of the first version \
                        (Rekor v1)"
                    .to_owned(),
            );
        };
        let at = Timestamp::from_second(*seconds).map_err(|_| "has an entry of a log whose time there is not")?;
        let key = TrustedLog::key(&root.tlogs, &self.log_id.key_id.0, at).ok_or_else(|| {
            let name = HEXLOWER.encode(&self.log_id.key_id.0);
            format!("is in the log {}, which the trusted root does not have for {at}", cut(&name))
        })?;
        let key = EllipticKey::of(key)
            .ok_or("cannot be checked: the key of the log in the trusted root is not on P-256 or P-384")?;
        if !key.verifies(self.promised(*seconds).as_bytes(), &promise.signed_entry_timestamp.0) {
            return Err("has an entry whose time the log did not sign (SET)".to_owned());
        }
        let proof = self.inclusion_proof.as_ref();
        let proof = proof.ok_or("has an entry without a proof that it is in the log; sign it again")?;
        proof.holds(&self.canonicalized_body.0, &self.log_id.key_id.0, &key)?;
        let is_other = |said: &&LoggedKind| (said.entry_type.as_str(), said.version.as_str()) != KNOWN;
        if let Some(LoggedKind { entry_type, version }) = self.kind_version.as_ref().filter(is_other) {
            return Err(unknown(entry_type, version));
        }
        let body: LoggedBody = serde_json::from_slice(&self.canonicalized_body.0)
            .map_err(|error| format!("has an entry of a log that cannot be read: {}", cut(&error.to_string())))?;
        Ok(Logged { at, body })
    }

    /// What the log signs at once: the fields in the order of their names.
    fn promised(&self, seconds: i64) -> String {
        let body = json!(BASE64.encode(&self.canonicalized_body.0));
        let log = json!(HEXLOWER.encode(&self.log_id.key_id.0));
        let Number(index) = self.log_index;
        format!(r#"{{"body":{body},"integratedTime":{seconds},"logID":{log},"logIndex":{index}}}"#)
    }
}

impl InclusionProof {
    fn holds(&self, body: &[u8], log: &[u8], key: &EllipticKey<'_>) -> Result<(), String> {
        let Self { log_index: Number(index), tree_size: Number(size), root_hash, hashes, checkpoint } = self;
        if hashes.len() > MOST_HASHES {
            return Err(format!("has a proof of {} hashes, and the limit is {MOST_HASHES}", hashes.len()));
        }
        let refused = || "has an entry that is not in the log: its proof does not hold".to_owned();
        let (index, size) = u64::try_from(*index).ok().zip(u64::try_from(*size).ok()).ok_or_else(refused)?;
        let leaf = hash(&[&[0], body]);
        if tree_root(leaf, index, size, hashes).is_none_or(|root| root != root_hash.0) {
            return Err(refused());
        }
        if checkpoint.signed(size, &root_hash.0, log, key) {
            return Ok(());
        }
        Err("has an entry with a proof that the log did not sign (its checkpoint)".to_owned())
    }
}

impl Checkpoint {
    /// Whether the log signed that its tree had this size and this root. Others may sign as well.
    fn signed(&self, size: u64, root: &[u8], log: &[u8], key: &EllipticKey<'_>) -> bool {
        let Some((text, signatures)) = self.envelope.split_once("\n\n") else { return false };
        let mut lines = text.split('\n').skip(1);
        let says = (lines.next(), lines.next()) == (Some(&size.to_string()), Some(&BASE64.encode(root)));
        let text = format!("{text}\n");
        let holds = |line: &str| {
            let signature = line.strip_prefix(SIGNATURE_LINE).and_then(|line| line.rsplit_once(' '));
            let signature = signature.and_then(|(_, signature)| BASE64.decode(signature.as_bytes()).ok());
            // Which key it is of: what its name begins with.
            let signature = signature.as_deref().and_then(|bytes| bytes.split_at_checked(4));
            signature.is_some_and(|(hint, signature)| log.starts_with(hint) && key.verifies(text.as_bytes(), signature))
        };
        says && signatures.lines().take(MOST_HASHES).any(holds)
    }
}

impl Logged {
    /// Whether it is of a signature, by a certificate, over a message.
    pub(super) fn is_of(&self, signed: &[u8], by: &[u8], message: &[u8]) -> Result<(), String> {
        let LoggedBody { format_version, format, spec } = &self.body;
        if (format.as_str(), format_version.as_str()) != KNOWN {
            return Err(unknown(format, format_version));
        }
        let LoggedSpec { data: LoggedContent { hash }, signature } = spec;
        let digest = ContentDigest::of(Algorithm::Sha256, message);
        if (hash.algorithm.as_str(), hash.value.as_str()) != ("sha256", digest.hex()) {
            let (value, digest) = (cut(&hash.value), digest.hex());
            return Err(format!("is for other content: the log has it for {value}, and this is {digest}"));
        }
        let found = pem::parse_many(&signature.public_key.content.0).unwrap_or_default();
        let is_own = matches!(found.as_slice(), [only] if only.tag() == "CERTIFICATE" && only.contents() == by);
        if signature.content.0 == signed && is_own {
            return Ok(());
        }
        Err("has an entry of a log that is of another signature or certificate".to_owned())
    }
}

fn unknown(entry_type: &str, version: &str) -> String {
    let ((entry_type, version), (known, known_version)) = ((cut(entry_type), cut(version)), KNOWN);
    format!("has an entry of a log of the kind {entry_type:?} {version:?}; known is {known} {known_version}")
}

fn hash(parts: &[&[u8]]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().to_vec()
}

/// The root of a tree of `size` entries that has a leaf at an index (RFC 9162, 2.1.3.2); `None` where the path leads to none.
fn tree_root(leaf: Vec<u8>, index: u64, size: u64, path: &[Base64]) -> Option<Vec<u8>> {
    let (mut at, mut last) = (index, size.checked_sub(1)?);
    if at > last {
        return None;
    }
    let mut root = leaf;
    for Base64(sibling) in path {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            root = hash(&[&[1], sibling, &root]);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            root = hash(&[&[1], &root, sibling]);
        }
        at >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(root)
}

#[cfg(test)]
mod tests;
