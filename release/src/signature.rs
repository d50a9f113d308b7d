//! Signatures by a key, in the forms that `cosign verify`, `cosign verify-blob` and `cosign verify-attestation` read.

use std::path::Path;

use data_encoding::BASE64;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use serde_json::{Value, json};

use crate::{
    error::Error,
    files::read_text,
    layout::{Layout, digest},
};

const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A private key of the curve P-256.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl SigningKey {
    /// Reads it from PEM (PKCS #8, not encrypted).
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let wrong = || {
            let how = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256";
            Error::content(path, format!("is no private key of P-256 in PKCS #8; make one with `{how}`"))
        };
        let random = SystemRandom::new();
        let document = pem::parse(read_text(path)?).map_err(|_| wrong())?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.contents(), &random);
        Ok(Self { pair: pair.map_err(|_| wrong())?, random })
    }

    /// The signature of a text, in base64. Another one each time.
    pub(crate) fn sign(&self, text: &[u8]) -> Result<String, Error> {
        let signature = self.pair.sign(&self.random, text);
        let signature =
            signature.map_err(|_| Error::content("the key", "cannot sign: this machine has no randomness"))?;
        Ok(BASE64.encode(signature.as_ref()))
    }

    /// Writes the signature of what a layout has, as the artifact whose tag names its digest.
    pub(crate) fn sign_image(&self, layout: &mut Layout, repository: &str, signed: &Value) -> Result<(), Error> {
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": repository},
                "image": {"docker-manifest-digest": digest(signed)},
                "type": "cosign container image signature",
            },
            "optional": null,
        });
        let payload = payload.to_string();
        let mut layer = layout.blob(SIMPLE_SIGNING, payload.as_bytes())?;
        if let Some(fields) = layer.as_object_mut() {
            fields.insert(
                "annotations".to_owned(),
                json!({"dev.cosignproject.cosign/signature": self.sign(payload.as_bytes())?}),
            );
        }
        let diff_ids = [digest(&layer).to_owned()];
        let config = json!({
            "architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let manifest = layout.manifest(&layout.document(CONFIG, &config)?, &[layer], &json!({}))?;
        layout.tag(&manifest, &format!("{}.sig", digest(signed).replace(':', "-")));
        Ok(())
    }

    /// A statement in an envelope (DSSE) that is signed.
    pub(crate) fn envelope(&self, statement: &str) -> Result<Value, Error> {
        let signed = format!("DSSEv1 {} {IN_TOTO} {} {statement}", IN_TOTO.len(), statement.len());
        Ok(json!({
            "payloadType": IN_TOTO,
            "payload": BASE64.encode(statement.as_bytes()),
            "signatures": [{"sig": self.sign(signed.as_bytes())?}],
        }))
    }
}
