//! From a resource to its bytes: what its access says, checked against its digest.

mod files;

pub(crate) use self::files::pushed_as;

use std::sync::Arc;

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    lenient,
};
use orangery_ocm::{Digest, Resource, ResourceContent, media};
use serde::Deserialize;

use crate::{
    cache::Bytes,
    graph::GraphNode,
    image,
    oci::{ArtifactReference, ArtifactSelector, Keyring, Manifest, OciDescriptor},
    registry::Registries,
};

/// How a resource's content is reached.
#[derive(Clone)]
pub(crate) struct ResourceAccess {
    pub(crate) registries: Arc<Registries>,
    pub(crate) keyring: Arc<Keyring>,
}

/// What a resource is.
pub(crate) enum Fetched {
    /// Bytes.
    Blob(ResourceContent),
    /// An artifact in a registry.
    Artifact { reference: ArtifactReference, manifest: Arc<Manifest> },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Access {
    #[serde(rename = "type")]
    type_: String,
    local_reference: String,
    filename: String,
    media_type: String,
    digest: String,
    size: Option<u64>,
    image_reference: String,
    reference: String,
    #[serde(rename = "ref")]
    repository: String,
}

impl ResourceAccess {
    /// The content of a resource, or the manifest of the artifact that it is.
    pub(crate) async fn fetch(&self, node: &GraphNode, resource: &Resource) -> Result<Fetched, Fault> {
        let fetched = self
            .fetch_unchecked(node, resource)
            .await
            .map_err(|fault| crate::within(fault, &display(node, resource)))?;
        match &fetched {
            Fetched::Blob(content) => check_blob(node, resource, content)?,
            Fetched::Artifact { manifest, .. } => check_manifest(node, resource, &manifest.artifact)?,
        }
        Ok(fetched)
    }

    async fn fetch_unchecked(&self, node: &GraphNode, resource: &Resource) -> Result<Fetched, Fault> {
        let invalid = |message: String| Fault::invalid(Code::ConfigurationProblem, message);
        let written = resource.access.as_ref().ok_or_else(|| invalid("it has no access, so no content".to_owned()))?;
        let access: Access =
            lenient::decode(written).map_err(|error| invalid(format!("its access is invalid: {error}")))?;
        let digest = resource.digest.as_ref();
        let blob = |bytes, media_type| Ok(Fetched::Blob(ResourceContent { bytes, media_type }));
        match access.type_.split('/').next().unwrap_or_default() {
            "localBlob" | "LocalBlob" => blob(node.blobs.local(&access.local_reference).await?, access.media_type),
            "localOciBlob" => blob(node.blobs.local(&access.digest).await?, access.media_type),
            "localFilesystemBlob" => blob(node.blobs.local(&access.filename).await?, access.media_type),
            "ociArtifact" | "OCIImage" | "ociImage" | "ociRegistry" => self.artifact(&access.image_reference).await,
            "relativeOciReference" => {
                let reference = node.blobs.relative(&access.reference);
                let missing =
                    || invalid("its access is relative to a registry, but its component is in none".to_owned());
                self.artifact(&reference.ok_or_else(missing)?).await
            }
            "ociBlob" | "ociBlobLayer" => blob(self.blob(&access).await?, access.media_type),
            "wget" | "Wget" => self.wget(written, digest).await.map(Fetched::Blob),
            "helm" | "Helm" | "helmChartRepository" => self.helm(written, digest).await.map(Fetched::Blob),
            "gitHub" | "github" | "GitHub" => self.github(written, digest).await.map(Fetched::Blob),
            other => Err(invalid(format!(
                "its access type {other:?} is not supported; known are localBlob, ociArtifact, ociBlob, \
                 relativeOciReference, helm, wget and gitHub: transport the component with its resources (ocm transfer \
                 --copy-resources)"
            ))),
        }
    }

    async fn artifact(&self, reference: &str) -> Result<Fetched, Fault> {
        let invalid = |error| Fault::invalid(Code::ConfigurationProblem, format!("its access is invalid: {error}"));
        let reference: ArtifactReference = reference.parse().map_err(invalid)?;
        let manifest = self.registries.manifest(&reference, &self.keyring).await?;
        Ok(Fetched::Artifact { reference, manifest })
    }

    /// A blob that is named by its digest alone: nothing shows that its reader may read it but asking.
    async fn blob(&self, access: &Access) -> Result<Bytes, Fault> {
        let invalid = |why: String| Fault::invalid(Code::ConfigurationProblem, format!("its access is invalid: {why}"));
        let repository = access.repository.parse().map_err(|error| invalid(format!("{error}")))?;
        let digest = access.digest.parse().map_err(|error| invalid(format!("{error}")))?;
        let size = access.size.ok_or_else(|| invalid("it has no size".to_owned()))?;
        let blob = OciDescriptor { media_type: String::new(), digest, size, annotations: Default::default() };
        self.registries.unproven_blob(&repository, &blob, &self.keyring).await
    }

    /// An artifact packed into an archive, as the original hands it to templates.
    pub(crate) async fn packed(
        &self,
        reference: &ArtifactReference,
        manifest: &Manifest,
    ) -> Result<ResourceContent, Fault> {
        let repository = &reference.repository;
        if manifest.artifact != manifest.digest {
            let message = format!(
                "{reference} is an index of several artifacts, which is no single content; name the one that is meant by \
                 its digest"
            );
            return Err(Fault::invalid(Code::ConfigurationProblem, message));
        }
        let most = self.registries.client().settings().limits.blob;
        let size = manifest.blobs().fold(0_u64, |size, blob| size.saturating_add(blob.size));
        if size > most {
            let message = format!("{reference} has {size} bytes in its layers, and the limit is {most}");
            return Err(Fault::invalid(Code::LimitExceeded, message));
        }
        let document = self.registries.manifest_bytes(repository, &manifest.digest, &self.keyring).await?;
        let mut blobs = vec![(manifest.digest.clone(), document)];
        for blob in manifest.blobs() {
            if blobs.iter().all(|(digest, _)| *digest != blob.digest) {
                blobs.push((blob.digest.clone(), self.registries.blob(repository, blob, &self.keyring).await?));
            }
        }
        let tag = match &reference.selector {
            ArtifactSelector::Tag(tag) => Some(tag.as_str()),
            ArtifactSelector::Digest(_) => None,
        };
        let bytes = image::pack(manifest, tag, &blobs)
            .map_err(|error| Fault::invalid(Code::InternalProblem, format!("{reference} cannot be packed: {error}")))?;
        Ok(ResourceContent { media_type: image::archive_type(&manifest.media_type), bytes: Bytes::new(bytes) })
    }

    /// The layer of a blueprint or schema artifact: the first one of a media type that is wanted; where the config says
    /// what the artifact is, the first one.
    pub(crate) async fn layer(
        &self,
        reference: &ArtifactReference,
        manifest: &Manifest,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Bytes, Fault> {
        let layer = image::layer(manifest, wanted);
        let layer = layer.map_err(|why| Fault::invalid(Code::ConfigurationProblem, format!("{reference} {why}")))?;
        self.registries.blob(&reference.repository, layer, &self.keyring).await
    }
}

/// A resource, for messages.
pub(crate) fn display(node: &GraphNode, resource: &Resource) -> String {
    format!("resource {} of {}", resource.element.name, node.descriptor)
}

/// Whether the access itself names the content by this digest: it cannot be another one.
pub(crate) fn is_told_by_access(resource: &Resource, digest: &Digest) -> bool {
    let Some(Ok(access)) = resource.access.as_ref().map(lenient::decode::<Access>) else { return false };
    let Some(algorithm) = algorithm(&digest.hash_algorithm) else { return false };
    let expected = format!("{}:{}", algorithm.name(), digest.value);
    match digest.normalisation_algorithm.as_str() {
        "genericBlobDigest/v1" => [&access.local_reference, &access.digest].contains(&&expected),
        "ociArtifactDigest/v1" => access.image_reference.ends_with(&format!("@{expected}")),
        _ => false,
    }
}

/// The hash of a name, as descriptors write it.
pub(crate) fn algorithm(name: &str) -> Option<Algorithm> {
    match name.to_ascii_lowercase().replace('-', "").as_str() {
        "sha256" => Some(Algorithm::Sha256),
        "sha512" => Some(Algorithm::Sha512),
        _ => None,
    }
}

fn check_blob(node: &GraphNode, resource: &Resource, content: &ResourceContent) -> Result<(), Fault> {
    let Some(digest) = &resource.digest else { return Ok(()) };
    match (digest.normalisation_algorithm.as_str(), algorithm(&digest.hash_algorithm)) {
        ("genericBlobDigest/v1", Some(algorithm)) => {
            compare(node, resource, ContentDigest::of(algorithm, &content.bytes).hex(), &digest.value)
        }
        ("ociArtifactDigest/v1", Some(_)) if image::is_archive(&content.media_type) => {
            let main = image::main_digest(&content.bytes).map_err(|why| {
                Fault::invalid(Code::ConfigurationProblem, format!("{}: {why}", display(node, resource)))
            })?;
            compare(node, resource, main.hex(), &digest.value)
        }
        // Excluded from signatures, or of an algorithm of others: nothing to compare.
        _ => Ok(()),
    }
}

fn check_manifest(node: &GraphNode, resource: &Resource, manifest: &ContentDigest) -> Result<(), Fault> {
    match &resource.digest {
        Some(digest) if digest.normalisation_algorithm == "ociArtifactDigest/v1" => {
            compare(node, resource, manifest.hex(), &digest.value)
        }
        Some(_) | None => Ok(()),
    }
}

fn compare(node: &GraphNode, resource: &Resource, found: &str, expected: &str) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    let message = format!(
        "{} has another content than its component says: its digest is {found}, the component descriptor says {expected}; \
         push the component again",
        display(node, resource)
    );
    Err(Fault::invalid(Code::ConfigurationProblem, message))
}

/// Whether templates get the content in base64.
pub(crate) fn is_binary(content: &ResourceContent) -> bool {
    content.media_type == media::OCTET_STREAM
}
