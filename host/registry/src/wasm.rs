//! Components in registries, in the layout of the CNCF for Wasm: a config `application/vnd.wasm.config.v0+json` and one layer
//! `application/wasm`. Resolved once, verified and read by that digest: a tag that moves meanwhile changes nothing (C-259).

mod signature;

use std::{fmt::Display, sync::Arc};

use bytes::Bytes;
use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
};
use serde::Serialize;
use serde_json::json;

pub use self::signature::{ArtifactKey, SigningKey};
use self::signature::{COSIGN_SIGNATURE, FoundSignature, SIGNATURE_ANNOTATION, SIMPLE_SIGNING};
use crate::oci::{
    ArtifactReference, ArtifactSelector, Client, IMAGE_MANIFEST, Keyring, Manifest, OciDescriptor, OciRepository,
    Pull as _,
};

/// The media type of the config.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The media type of the layer.
const LAYER: &str = "application/wasm";
/// The most bytes of a component in a registry.
const MOST_OF_A_COMPONENT: u64 = 64 << 20;
/// The most signatures of an artifact that are looked at.
const MOST_SIGNATURES: usize = 64;
/// The most bytes of what a signature is over.
const MOST_OF_A_PAYLOAD: u64 = 64 << 10;

/// One registry's artifacts that are components, with the credentials of somebody.
#[derive(Clone, Copy)]
pub struct WasmArtifacts<'a> {
    /// What asks.
    pub client: &'a Client,
    /// With which credentials, and what policies say.
    pub keyring: &'a Keyring,
}

/// A component in a registry, found: which one it is does not change any more.
#[derive(Clone, Debug)]
pub struct FoundComponent {
    repository: OciRepository,
    manifest: Arc<Manifest>,
}

/// The layer of an artifact that has the bytes of a component, which are not too many.
pub(crate) fn component_layer<'m>(manifest: &'m Manifest, artifact: &dyn Display) -> Result<&'m OciDescriptor, Fault> {
    let layer = manifest.wasm_layer().map_err(|why| invalid(format!("{artifact} {why}")))?;
    if layer.size > MOST_OF_A_COMPONENT {
        let why =
            format!("has a component of {} bytes, {MOST_OF_A_COMPONENT} are allowed; make it smaller", layer.size);
        return Err(Fault::invalid(Code::LimitExceeded, format!("{artifact} {why}")));
    }
    Ok(layer)
}

impl FoundComponent {
    pub(crate) fn new(repository: OciRepository, manifest: Arc<Manifest>) -> Self {
        Self { repository, manifest }
    }

    /// The layer that has its bytes, which are not too many.
    pub(crate) fn layer(&self) -> Result<&OciDescriptor, Fault> {
        component_layer(&self.manifest, &self.reference())
    }

    /// The digest of the artifact: what a tag stands for, and what is signed.
    #[expect(
        clippy::misnamed_getters,
        reason = "an index leads to the manifest, and the artifact is what has the name"
    )]
    pub fn digest(&self) -> &ContentDigest {
        &self.manifest.artifact
    }

    /// The artifact by its digest.
    pub fn reference(&self) -> ArtifactReference {
        self.repository.artifact(ArtifactSelector::Digest(self.digest().clone()))
    }
}

/// What is known of a component that is pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentFacts {
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// When it was made, as RFC 3339.
    pub created: String,
    /// What its maker says about it.
    pub annotations: Vec<(String, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig<'a> {
    created: &'a str,
    architecture: &'a str,
    os: &'a str,
    layer_digests: [String; 1],
    component: ConfigComponent<'a>,
}

#[derive(Serialize)]
struct ConfigComponent<'a> {
    exports: &'a [String],
    imports: &'a [String],
}

impl WasmArtifacts<'_> {
    /// Finds a component: the manifest, checked against the digest where the reference has one.
    ///
    /// # Errors
    /// The registry cannot be reached, has no such artifact, or another one.
    pub async fn find(&self, reference: &ArtifactReference) -> Result<FoundComponent, Fault> {
        self.keyring.allows(&reference.repository)?;
        let manifest = self.client.manifest(reference, self.keyring).await?;
        Ok(FoundComponent { repository: reference.repository.clone(), manifest })
    }

    /// The bytes of a component.
    ///
    /// # Errors
    /// The artifact is no component, its layer is too large, or the registry does not give what its digest names.
    pub async fn read(&self, found: &FoundComponent) -> Result<Vec<u8>, Fault> {
        self.client.small_blob(&found.repository, found.layer()?, MOST_OF_A_COMPONENT, self.keyring).await
    }

    /// Checks that one of the keys has signed the artifact.
    ///
    /// # Errors
    /// It has no signature, none by such a key, or one that is for another artifact; or the registry cannot be reached.
    pub async fn verify(&self, found: &FoundComponent, keys: &[ArtifactKey]) -> Result<(), Fault> {
        let (signatures, bundles) = self.signatures(found).await?;
        signature::check(&signatures, bundles, keys, found.digest())
            .map_err(|why| invalid(format!("{} {why}", found.reference())))
    }

    /// All signatures of an artifact, and how many more there are in a form that is not read.
    async fn signatures(&self, found: &FoundComponent) -> Result<(Vec<FoundSignature>, usize), Fault> {
        let FoundComponent { repository, .. } = found;
        let tagged = repository.artifact(ArtifactSelector::Tag(signature::tag(found.digest())));
        let mut manifests: Vec<Arc<Manifest>> =
            self.client.manifest_if_any(&tagged, self.keyring).await?.into_iter().collect();
        let referrers = self.client.referrers(repository, found.digest(), self.keyring).await?;
        let bundles = referrers.iter().filter(|one| signature::is_bundle(&one.artifact_type)).count();
        for referrer in referrers.iter().filter(|one| one.artifact_type == COSIGN_SIGNATURE).take(MOST_SIGNATURES) {
            let digest = referrer.digest.parse().map_err(|error| invalid(format!("{tagged}: {error}")))?;
            let reference = repository.artifact(ArtifactSelector::Digest(digest));
            manifests.push(self.client.manifest(&reference, self.keyring).await?);
        }
        let mut signatures = Vec::new();
        for layer in manifests.iter().flat_map(|manifest| &manifest.layers) {
            let Some(signature) = layer.annotations.get(SIGNATURE_ANNOTATION) else { continue };
            if layer.media_type != SIMPLE_SIGNING {
                continue;
            }
            if signatures.len() == MOST_SIGNATURES {
                let why =
                    format!("has more than {MOST_SIGNATURES} signatures, which is the limit; delete some of them");
                return Err(invalid(format!("{} {why}", found.reference())));
            }
            let payload = self.client.small_blob(repository, layer, MOST_OF_A_PAYLOAD, self.keyring).await?;
            signatures.push(FoundSignature { payload, signature: signature.clone() });
        }
        Ok((signatures, bundles))
    }

    /// Pushes a component under a tag.
    ///
    /// # Errors
    /// The reference has a digest, which a push makes; or the registry does not take it.
    pub async fn push(
        &self,
        reference: &ArtifactReference,
        component: Vec<u8>,
        facts: &ComponentFacts,
    ) -> Result<FoundComponent, Fault> {
        let ArtifactSelector::Tag(tag) = &reference.selector else {
            let why = "a digest is what a push makes, so it cannot be pushed to; name a tag";
            return Err(invalid(format!("{reference}: {why}")));
        };
        let (repository, size) = (&reference.repository, component.len());
        let layer = self.client.push_blob(repository, Bytes::from(component), self.keyring).await?.to_string();
        let config = WasmConfig {
            created: &facts.created,
            architecture: "wasm",
            os: "wasip2",
            layer_digests: [layer.clone()],
            component: ConfigComponent { exports: &facts.exports, imports: &facts.imports },
        };
        let config = Bytes::from(serde_json::to_vec(&config).map_err(unwritten)?);
        let config_size = config.len();
        let config = self.client.push_blob(repository, config, self.keyring).await?.to_string();
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE_MANIFEST,
            "config": {"mediaType": CONFIG, "digest": config, "size": config_size},
            "layers": [{"mediaType": LAYER, "digest": layer, "size": size}],
        });
        if !facts.annotations.is_empty() {
            let annotations = facts.annotations.iter().map(|(name, value)| (name.clone(), json!(value)));
            let annotations: serde_json::Map<_, _> = annotations.collect();
            if let Some(manifest) = manifest.as_object_mut() {
                manifest.insert("annotations".to_owned(), annotations.into());
            }
        }
        let content = Bytes::from(manifest.to_string());
        let pushed = self.client.push_manifest(repository, Some(tag), (IMAGE_MANIFEST, content), self.keyring).await?;
        self.find(&repository.artifact(ArtifactSelector::Digest(pushed.digest))).await
    }

    /// Signs an artifact, as `cosign sign --key` does: in a manifest under the tag `sha256-….sig`, beside the signatures that are
    /// there.
    ///
    /// # Errors
    /// The registry does not take it.
    pub async fn sign(&self, found: &FoundComponent, key: &SigningKey) -> Result<(), Fault> {
        let FoundComponent { repository, .. } = found;
        let payload = signature::payload(&repository.source(), found.digest());
        let signed = key.sign(&payload).map_err(invalid)?;
        let tag = signature::tag(found.digest());
        let tagged = repository.artifact(ArtifactSelector::Tag(tag.clone()));
        let before = self.client.manifest_if_any(&tagged, self.keyring).await?;
        let size = payload.len();
        let layer = self.client.push_blob(repository, Bytes::from(payload), self.keyring).await?.to_string();
        let mut layers = Vec::new();
        for old in before.iter().flat_map(|manifest| &manifest.layers) {
            layers.push(serde_json::to_value(old).map_err(unwritten)?);
        }
        layers.push(json!({
            "mediaType": SIMPLE_SIGNING, "digest": layer, "size": size, "annotations": {SIGNATURE_ANNOTATION: signed},
        }));
        let digests: Vec<_> = layers.iter().filter_map(|layer| layer.get("digest")).cloned().collect();
        let config = json!({
            "architecture": "", "created": "0001-01-01T00:00:00Z", "history": [{"created": "0001-01-01T00:00:00Z"}],
            "os": "", "rootfs": {"type": "layers", "diff_ids": digests}, "config": {},
        });
        let config = Bytes::from(config.to_string());
        let config_size = config.len();
        let config = self.client.push_blob(repository, config, self.keyring).await?.to_string();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE_MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": config_size},
            "layers": layers,
        });
        let content = (IMAGE_MANIFEST, Bytes::from(manifest.to_string()));
        self.client.push_manifest(repository, Some(&tag), content, self.keyring).await.map(drop)
    }

    /// Adds a document about an artifact, such as a bill of materials, that refers to it.
    ///
    /// # Errors
    /// The document is of no known form, or the registry does not take it.
    pub async fn attach(&self, found: &FoundComponent, document: Vec<u8>) -> Result<&'static str, Fault> {
        let kind = document_type(&document).map_err(invalid)?;
        let size =
            self.client.manifest_bytes(&found.repository, found.digest(), self.keyring).await?.bytes().len() as u64;
        let content = (kind, Bytes::from(document));
        self.client.push_referrer(&found.repository, (found.digest(), size), content, self.keyring).await?;
        Ok(kind)
    }
}

/// The media type of a document about an artifact; the error is a sentence.
fn document_type(document: &[u8]) -> Result<&'static str, String> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(document)
        .map_err(|_| "the document is no JSON object; give SPDX, CycloneDX or in-toto in JSON".to_owned())?;
    let text = |name: &str| fields.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let known = [
        (fields.contains_key("spdxVersion"), "application/spdx+json"),
        (text("bomFormat") == "CycloneDX", "application/vnd.cyclonedx+json"),
        (text("_type").starts_with("https://in-toto.io/Statement/"), "application/vnd.in-toto+json"),
        (text("payloadType") == "application/vnd.in-toto+json", "application/vnd.dsse.envelope.v1+json"),
    ];
    known.into_iter().find(|(is, _)| *is).map(|(_, kind)| kind).ok_or_else(|| {
        "the document is neither SPDX, CycloneDX, in-toto nor an envelope of in-toto, which are known; give one of these".to_owned()
    })
}

fn invalid(why: String) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, why)
}

fn unwritten(error: serde_json::Error) -> Fault {
    Fault::invalid(Code::InternalProblem, format!("a manifest cannot be written: {error}"))
}

/// The digest of a component's bytes, as status and registrations have it.
pub fn component_digest(bytes: &[u8]) -> ContentDigest {
    ContentDigest::of(Algorithm::Sha256, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_258_documents_about_a_component_are_told_apart_by_their_content() {
        let cases = [
            (r#"{"spdxVersion": "SPDX-2.3"}"#, "application/spdx+json"),
            (r#"{"bomFormat": "CycloneDX", "specVersion": "1.5"}"#, "application/vnd.cyclonedx+json"),
            (r#"{"_type": "https://in-toto.io/Statement/v1"}"#, "application/vnd.in-toto+json"),
            (r#"{"payloadType": "application/vnd.in-toto+json"}"#, "application/vnd.dsse.envelope.v1+json"),
        ];
        for (document, expected) in cases {
            assert_eq!(document_type(document.as_bytes()), Ok(expected));
        }
        for document in ["", "[]", "{}", r#"{"bomFormat": "other"}"#, r#"{"_type": "https://in-toto.io/"}"#] {
            assert!(document_type(document.as_bytes()).is_err(), "{document}");
        }
    }
}
