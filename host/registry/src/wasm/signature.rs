//! Signatures of artifacts by a key pair, as cosign makes and verifies them: over a payload that names the artifact by its digest.

use data_encoding::BASE64;
use orangery_core::digest::content::ContentDigest;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use serde::Deserialize;
use serde_json::json;

use crate::keyless::{BUNDLE, EllipticKey};

/// The media type of a payload.
pub(super) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of its layer that has the signature.
pub(super) const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// What a manifest with signatures is, where it refers to what it signs.
pub(super) const COSIGN_SIGNATURE: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// What a payload is for.
const PAYLOAD_TYPE: &str = "cosign container image signature";

/// Whether a manifest that refers to an artifact has signatures in a form that is not read.
pub(super) fn is_bundle(artifact_type: &str) -> bool {
    artifact_type == BUNDLE || artifact_type.starts_with("application/vnd.dev.sigstore.bundle")
}

/// The tag of the manifest with an artifact's signatures.
pub(super) fn tag(artifact: &ContentDigest) -> String {
    let hex: String = artifact.hex().chars().take(64).collect();
    format!("{}-{hex}.sig", artifact.algorithm().name())
}

/// What is signed.
pub(super) fn payload(repository: &str, artifact: &ContentDigest) -> Vec<u8> {
    let critical = json!({
        "identity": {"docker-reference": repository},
        "image": {"docker-manifest-digest": artifact.to_string()},
        "type": PAYLOAD_TYPE,
    });
    json!({"critical": critical, "optional": null}).to_string().into_bytes()
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: SignedImage,
    #[serde(rename = "type")]
    payload_type: String,
}

#[derive(Deserialize)]
struct SignedImage {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// A signature of an artifact, as it was found.
pub(super) struct FoundSignature {
    pub(super) payload: Vec<u8>,
    /// In base64.
    pub(super) signature: String,
}

/// A public key that has to have signed: ECDSA on P-256 or P-384.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactKey {
    /// The SubjectPublicKeyInfo.
    info: Vec<u8>,
    /// Where it stands, for messages.
    origin: String,
}

impl ArtifactKey {
    /// Reads a public key in PEM; `origin` names where it stands. The error is a sentence.
    pub fn read(pem: &[u8], origin: &str) -> Result<Self, String> {
        let how = "give a public key of ECDSA on P-256 or P-384 in PEM, such as cosign.pub";
        let block = pem::parse(pem).map_err(|_| format!("{origin} is no PEM; {how}"))?;
        if block.tag() != "PUBLIC KEY" {
            return Err(format!("{origin} is a {}; {how}", block.tag().escape_debug()));
        }
        let info = block.into_contents();
        if EllipticKey::of(&info).is_none() {
            return Err(format!("{origin} is a public key of another kind; {how}"));
        }
        Ok(Self { info, origin: origin.to_owned() })
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        EllipticKey::of(&self.info).is_some_and(|key| key.verifies(message, signature))
    }
}

/// A private key: ECDSA on P-256.
pub struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// Reads a private key in PEM. The error is a sentence, without anything of the key.
    pub fn read(pem: &[u8]) -> Result<Self, String> {
        let make = "make one with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out plugin.key";
        let block = pem::parse(pem).map_err(|_| format!("the key is no PEM; {make}"))?;
        match block.tag() {
            "PRIVATE KEY" => {}
            "EC PRIVATE KEY" => {
                return Err("the key is not in PKCS #8; write it anew with: openssl pkcs8 -topk8 -nocrypt -in OLD -out plugin.key"
                    .to_owned());
            }
            "ENCRYPTED SIGSTORE PRIVATE KEY" | "ENCRYPTED COSIGN PRIVATE KEY" => {
                return Err(
                    "the key is encrypted by cosign, which alone reads it; sign with: cosign sign --key FILE REFERENCE"
                        .to_owned(),
                );
            }
            other => return Err(format!("the key is a {}; {make}", other.escape_debug())),
        }
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, block.contents(), &SystemRandom::new());
        pair.map(Self).map_err(|_| format!("the key is none of ECDSA on P-256; {make}"))
    }

    /// A payload in a DSSE envelope, signed: JSON. The error is a sentence.
    pub fn envelope(&self, payload_type: &str, payload: &[u8]) -> Result<String, String> {
        let signature = self.sign(&pre_authentication(payload_type, payload))?;
        let envelope = json!({
            "payloadType": payload_type,
            "payload": BASE64.encode(payload),
            "signatures": [{"keyid": "", "sig": signature}],
        });
        Ok(envelope.to_string())
    }

    /// A signature in base64. The error is a sentence.
    pub(super) fn sign(&self, message: &[u8]) -> Result<String, String> {
        let signed = self.0.sign(&SystemRandom::new(), message);
        let signed = signed.map_err(|_| "this machine has no randomness to sign with; try again".to_owned())?;
        Ok(BASE64.encode(signed.as_ref()))
    }
}

/// What is signed of an envelope of DSSE: the payload with its type, so that it counts as nothing else.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut signed = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    signed.extend_from_slice(payload);
    signed
}

/// Whether one of the keys has signed an artifact. The error is the end of a sentence that begins with the artifact.
pub(super) fn check(
    signatures: &[FoundSignature],
    bundles: usize,
    keys: &[ArtifactKey],
    artifact: &ContentDigest,
) -> Result<(), String> {
    let how = "sign it with: orangery plugin sign REFERENCE --key FILE";
    if signatures.is_empty() {
        return Err(match bundles {
            0 => format!("has no signature; {how}"),
            _ => format!(
                "has only bundles of Sigstore beside it, which are not read here; {how}, or with: cosign sign --new-bundle-format=false"
            ),
        });
    }
    let mut signed_other = None;
    for found in signatures {
        let Ok(signature) = BASE64.decode(found.signature.as_bytes()) else { continue };
        if !keys.iter().any(|key| key.verifies(&found.payload, &signature)) {
            continue;
        }
        match signed_digest(&found.payload) {
            Some(digest) if digest == artifact.to_string() => return Ok(()),
            other => signed_other = Some(other.unwrap_or_else(|| "nothing that is known".to_owned())),
        }
    }
    if let Some(other) = signed_other {
        return Err(format!("has a signature that is for {other}; {how}"));
    }
    let names: Vec<&str> = keys.iter().map(|key| key.origin.as_str()).collect();
    Err(format!("has signatures, and none was made with the key of {}; {how}", names.join(" or ")))
}

/// The digest that a payload names; `None` where it is for something else.
fn signed_digest(payload: &[u8]) -> Option<String> {
    let Payload { critical } = serde_json::from_slice(payload).ok()?;
    let digest: ContentDigest = critical.image.digest.parse().ok()?;
    (critical.payload_type == PAYLOAD_TYPE).then(|| digest.to_string())
}

#[cfg(test)]
mod tests {
    use orangery_core::digest::content::Algorithm;
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    fn pair() -> (SigningKey, ArtifactKey) {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let key = SigningKey::read(pair.serialize_pem().as_bytes()).expect("a key");
        (key, ArtifactKey::read(pair.public_key_pem().as_bytes(), "a.pub").expect("a key"))
    }

    fn artifact(content: &str) -> ContentDigest {
        ContentDigest::of(Algorithm::Sha256, content.as_bytes())
    }

    #[test]
    fn c_337_an_envelope_is_signed_over_its_payload_and_the_type_of_that() {
        // The example of the specification of DSSE.
        let signed = pre_authentication("http://example.com/HelloWorld", b"hello world");
        assert_eq!(signed, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
        let (key, public) = pair();
        let envelope: serde_json::Value = serde_json::from_str(&key.envelope("a/b", b"payload").unwrap()).unwrap();
        let decoded = |text: &serde_json::Value| BASE64.decode(text.as_str().unwrap().as_bytes()).unwrap();
        assert_eq!((&envelope["payloadType"], decoded(&envelope["payload"])), (&json!("a/b"), b"payload".to_vec()));
        let signature = decoded(&envelope["signatures"][0]["sig"]);
        assert!(public.verifies(&pre_authentication("a/b", b"payload"), &signature));
        assert!(!public.verifies(&pre_authentication("a/c", b"payload"), &signature));
    }

    fn signed(key: &SigningKey, payload: Vec<u8>) -> FoundSignature {
        let signature = key.sign(&payload).expect("a signature");
        FoundSignature { payload, signature }
    }

    #[test]
    fn c_258_a_signature_holds_for_its_artifact_by_its_key_alone() {
        let ((key, public), (other_key, other)) = (pair(), pair());
        let digest = artifact("a");
        let good = || signed(&key, payload("r.example/a", &digest));
        assert_eq!(check(&[good()], 0, std::slice::from_ref(&public), &digest), Ok(()));
        let by_another = signed(&other_key, payload("r.example/a", &digest));
        assert_eq!(check(&[by_another, good()], 0, std::slice::from_ref(&public), &digest), Ok(()));
        assert_eq!(check(&[good()], 0, &[other.clone(), public.clone()], &digest), Ok(()));
        let how = "sign it with: orangery plugin sign REFERENCE --key FILE";
        let none = check(&[], 0, std::slice::from_ref(&public), &digest);
        assert_eq!(none, Err(format!("has no signature; {how}")));
        let bundles = check(&[], 1, std::slice::from_ref(&public), &digest).expect_err("bundles alone");
        assert!(bundles.contains("--new-bundle-format=false"), "{bundles}");
        let foreign = check(&[good()], 0, &[other], &digest);
        assert_eq!(foreign, Err(format!("has signatures, and none was made with the key of a.pub; {how}")));
        let moved = check(&[good()], 0, std::slice::from_ref(&public), &artifact("b"));
        assert_eq!(moved, Err(format!("has a signature that is for {digest}; {how}")));
        // One that was made with the key for something that is no artifact.
        let of_something = String::from_utf8(payload("r.example/a", &digest)).expect("text").replace(PAYLOAD_TYPE, "x");
        let of_something = signed(&key, of_something.into_bytes());
        let refused = check(&[of_something], 0, std::slice::from_ref(&public), &digest);
        assert_eq!(refused, Err(format!("has a signature that is for nothing that is known; {how}")));
        let mut changed = good();
        changed.payload.push(b' ');
        assert!(check(&[changed], 0, std::slice::from_ref(&public), &digest).is_err());
        let garbled = FoundSignature { signature: "%".to_owned(), ..good() };
        assert!(check(&[garbled], 0, &[public], &digest).is_err());
    }

    #[test]
    fn c_258_keys_that_cannot_be_used_are_told_without_showing_them() {
        let secret = |text: &str| SigningKey::read(text.as_bytes()).err().expect("no key");
        let block = |tag: &str| format!("-----BEGIN {tag}-----\nAAAA\n-----END {tag}-----\n");
        assert!(secret("hunter2").starts_with("the key is no PEM; make one with: openssl genpkey"));
        assert!(secret(&block("ENCRYPTED SIGSTORE PRIVATE KEY")).contains("cosign sign --key"));
        assert!(secret(&block("EC PRIVATE KEY")).contains("openssl pkcs8"));
        assert!(secret(&block("RSA PRIVATE KEY")).starts_with("the key is a RSA PRIVATE KEY;"));
        let pem = |algorithm| KeyPair::generate_for(algorithm).expect("a key");
        for other in [pem(&PKCS_ECDSA_P384_SHA384), pem(&PKCS_ED25519)] {
            assert!(secret(&other.serialize_pem()).starts_with("the key is none of ECDSA on P-256;"));
        }
        let public = |text: &str| ArtifactKey::read(text.as_bytes(), "a.pub").expect_err("no key");
        assert!(public("x").starts_with("a.pub is no PEM; give a public key of ECDSA"));
        assert!(public(&block("PRIVATE KEY")).starts_with("a.pub is a PRIVATE KEY;"));
        assert!(public(&pem(&PKCS_ED25519).public_key_pem()).starts_with("a.pub is a public key of another kind;"));
        assert!(ArtifactKey::read(pem(&PKCS_ECDSA_P384_SHA384).public_key_pem().as_bytes(), "b").is_ok());
    }
}
