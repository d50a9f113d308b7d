//! The trusted root: certificate authorities, and the keys of logs, each with the time for which it counts.

use data_encoding::BASE64;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::Error};

use super::cut;

/// A trusted root as it is written; what is not named here is not used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrustedRoot {
    media_type: String,
    /// Logs of signatures.
    #[serde(default)]
    pub(super) tlogs: Vec<TrustedLog>,
    /// Authorities of certificates for signing.
    #[serde(default)]
    pub(super) certificate_authorities: Vec<TrustedAuthority>,
    /// Logs of certificates.
    #[serde(default)]
    pub(super) ctlogs: Vec<TrustedLog>,
}

/// A log, by its key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrustedLog {
    public_key: LogKey,
    log_id: LogName,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogKey {
    raw_bytes: Base64,
    #[serde(default)]
    valid_for: Validity,
}

/// The name of a log: the hash of its key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogName {
    pub(super) key_id: Base64,
}

/// An authority, by its certificates.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrustedAuthority {
    cert_chain: AuthorityChain,
    #[serde(default)]
    pub(super) valid_for: Validity,
}

#[derive(Deserialize)]
struct AuthorityChain {
    certificates: Vec<RawCertificate>,
}

/// A certificate in DER.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawCertificate {
    pub(super) raw_bytes: Base64,
}

/// From when to when something counts. An end that is written in another way would be none.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Validity {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

/// Bytes, as JSON has them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Base64(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = BASE64.decode(text.as_bytes());
        bytes.map(Self).map_err(|error| D::Error::custom(format!("a value is not in base64: {error}")))
    }
}

const MEDIA_TYPES: [&str; 2] =
    ["application/vnd.dev.sigstore.trustedroot+json;version=0.1", "application/vnd.dev.sigstore.trustedroot.v0.2+json"];

impl TrustedRoot {
    /// The error is the end of a sentence that begins with the trusted root.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let root: Self =
            serde_json::from_str(text).map_err(|error| format!("cannot be read: {}", cut(&error.to_string())))?;
        if MEDIA_TYPES.contains(&root.media_type.as_str()) {
            return Ok(root);
        }
        Err(format!("is {:?}, and not a trusted root of Sigstore", cut(&root.media_type)))
    }
}

impl TrustedLog {
    /// The key of the log with a name, where it counts at a time.
    pub(super) fn key<'a>(logs: &'a [Self], name: &[u8], at: Timestamp) -> Option<&'a [u8]> {
        let mut named = logs.iter().filter(|log| log.log_id.key_id.0 == name);
        named.find(|log| log.public_key.valid_for.includes(at)).map(|log| log.public_key.raw_bytes.0.as_slice())
    }
}

impl TrustedAuthority {
    /// Its own certificate, and those between it and what it signs.
    pub(super) fn certificates(&self) -> Option<(&[u8], impl Iterator<Item = &[u8]>)> {
        let (own, between) = self.cert_chain.certificates.split_last()?;
        Some((&own.raw_bytes.0, between.iter().map(|certificate| certificate.raw_bytes.0.as_slice())))
    }
}

impl Validity {
    pub(super) fn includes(&self, at: Timestamp) -> bool {
        self.start.is_some_and(|start| start <= at) && self.end.is_none_or(|end| at <= end)
    }
}
