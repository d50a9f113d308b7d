//! A bundle: a signature with all that it takes to check it.

use data_encoding::HEXLOWER;
use orangery_core::digest::content::{Algorithm, ContentDigest};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    BUNDLE, MOST_OF_A_BUNDLE, cut,
    log::LogEntry,
    root::{Base64, RawCertificate},
};

/// A bundle of the form that is read.
pub(super) struct Bundle {
    /// The certificate of the key that signed, in DER.
    pub(super) certificate: Vec<u8>,
    pub(super) signature: Vec<u8>,
    /// `SHA2_256` of what was signed, where the bundle says it.
    digest: Option<MessageDigest>,
    pub(super) entry: LogEntry,
}

/// What is not named here makes a bundle unreadable, so that no other reader finds another certificate or signature in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BundleDocument {
    media_type: String,
    verification_material: VerificationMaterial,
    message_signature: Option<MessageSignature>,
    dsse_envelope: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VerificationMaterial {
    certificate: Option<RawCertificate>,
    #[serde(rename = "x509CertificateChain")]
    chain: Option<IgnoredAny>,
    public_key: Option<IgnoredAny>,
    #[serde(default)]
    tlog_entries: Vec<LogEntry>,
    #[expect(dead_code, reason = "the time of the log counts, and no other")]
    timestamp_verification_data: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MessageSignature {
    message_digest: Option<MessageDigest>,
    signature: Base64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageDigest {
    algorithm: String,
    digest: Base64,
}

impl Bundle {
    /// The error is the end of a sentence that begins with the signature.
    pub(super) fn parse(document: &[u8]) -> Result<Self, String> {
        if document.len() > MOST_OF_A_BUNDLE {
            let size = document.len();
            return Err(format!("has a bundle of {size} bytes, and the limit is {MOST_OF_A_BUNDLE}; sign it again"));
        }
        let unreadable =
            |error: serde_json::Error| format!("has a bundle that cannot be read: {}", cut(&error.to_string()));
        let read: BundleDocument = serde_json::from_slice(document).map_err(unreadable)?;
        let BundleDocument { media_type, verification_material, message_signature, dsse_envelope } = read;
        if media_type != BUNDLE {
            return Err(format!("has a bundle of the media type {:?}; known is {BUNDLE}", cut(&media_type)));
        }
        let VerificationMaterial { certificate, chain, public_key, tlog_entries, .. } = verification_material;
        if chain.is_some() || public_key.is_some() {
            return Err(
                "has a bundle with a chain of certificates or a public key; known is one certificate".to_owned()
            );
        }
        let certificate =
            certificate.ok_or("has a bundle without a certificate, so nothing says by whom it was made")?;
        let MessageSignature { message_digest, signature } = match (message_signature, dsse_envelope) {
            (Some(signature), None) => signature,
            (_, Some(_)) => {
                return Err("is an attestation (DSSE); sign the digest itself, as `cosign sign-blob` does".to_owned());
            }
            (None, None) => return Err("has a bundle without a signature; sign it again".to_owned()),
        };
        let Ok([entry]) = <[LogEntry; 1]>::try_from(tlog_entries) else {
            return Err("has a bundle that has not exactly one entry of a log; sign it again, with a log".to_owned());
        };
        let certificate = certificate.raw_bytes.0;
        Ok(Self { certificate, signature: signature.0, digest: message_digest, entry })
    }

    /// Whether it says of itself that it is for a message.
    pub(super) fn is_for(&self, message: &[u8]) -> Result<(), String> {
        let Some(MessageDigest { algorithm, digest }) = &self.digest else { return Ok(()) };
        if algorithm != "SHA2_256" {
            return Err(format!("is for a digest of {:?}; known is SHA2_256", cut(algorithm)));
        }
        let (found, expected) = (HEXLOWER.encode(&digest.0), ContentDigest::of(Algorithm::Sha256, message));
        if found == expected.hex() {
            return Ok(());
        }
        let expected = expected.hex();
        Err(format!("is for other content: its bundle is for SHA-256 {}, and this is {expected}", cut(&found)))
    }
}
