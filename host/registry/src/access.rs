//! From a resource to its bytes: what its access says, checked against its digest.

mod compare;
mod files;
mod kind;

pub(crate) use self::{
    compare::{algorithm, is_excluded, is_told_by_access},
    files::pushed_as,
};

use std::sync::Arc;

use orangery_core::{
    error::{Code, Fault},
    lenient,
};
use orangery_ocm::{Resource, ResourceContent, media};
use orangery_turns::{blocking, lending, off_the_executor};

use self::{
    compare::{Comparison, compare},
    kind::{Access, AccessKind},
};
use crate::{
    graph::GraphNode,
    held_manifest::HeldManifest,
    image,
    oci::{ArtifactReference, ArtifactSelector, HeldMemory, Keyring, Manifest, OciDescriptor, ReservedContent},
    registry::Registries,
    version_memory::HeldVersionMemory,
};

/// Content of so many bytes is compared at once.
const SMALL: usize = 1 << 20;

/// How a resource's content is reached.
#[derive(Clone)]
pub(crate) struct ResourceAccess {
    pub(crate) registries: Arc<Registries>,
    pub(crate) keyring: Arc<Keyring>,
}

/// What a resource is.
pub(crate) enum Fetched {
    /// Bytes, and the room that they hold in memory.
    Blob(ResourceContent, HeldMemory),
    /// An artifact in a registry.
    Artifact { reference: ArtifactReference, manifest: HeldManifest },
}

impl Fetched {
    fn of(content: ReservedContent, media_type: String) -> Self {
        let (bytes, room) = content.into_parts();
        Fetched::Blob(ResourceContent { bytes, media_type }, room)
    }
}

impl ResourceAccess {
    /// The content of a resource, or the manifest of the artifact that it is. It is compared with the digest of the
    /// resource each time; below a signature, what was not compared is refused.
    pub(crate) async fn fetch(&self, node: &GraphNode, resource: &Resource) -> Result<Fetched, Fault> {
        match node.signed {
            Some(_) => self.fetch_signed(node, resource).await,
            None => Ok(self.compared(node, resource).await?.0),
        }
    }

    /// The same of a resource whose digest was signed.
    pub(crate) async fn fetch_signed(&self, node: &GraphNode, resource: &Resource) -> Result<Fetched, Fault> {
        let (fetched, not_compared) = self.compared(node, resource).await?;
        let Some(why) = not_compared else { return Ok(fetched) };
        let message = format!(
            "{} {why}, so nothing shows that its content is what was signed; sign the component again as it is where it is \
             kept",
            display(node, resource)
        );
        Err(Fault::invalid(Code::ConfigurationProblem, message))
    }

    /// Unpacks something of a resource: in turns, and where it holds up nobody. What is wrong with it is the end of a sentence.
    pub(crate) async fn in_turn<T: Send + 'static>(
        &self,
        place: impl Fn() -> String,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<Result<T, String>, Fault> {
        let _turn = lending(self.registries.turns().acquire(self.keyring.tenant())).await;
        blocking(work).await.map_err(|error| crate::interrupted(&place(), &error))
    }

    /// The content, and why it was not compared with a digest, where it was not.
    async fn compared(&self, node: &GraphNode, resource: &Resource) -> Result<(Fetched, Option<String>), Fault> {
        let fetched = self.fetch_unchecked(node, resource).await;
        let fetched = fetched.map_err(|fault| crate::within(fault, &display(node, resource)))?;
        let compared = || compare(resource.digest.as_ref(), &fetched);
        let compared = match &fetched {
            Fetched::Blob(content, _) if content.bytes.len() > SMALL || image::is_archive(&content.media_type) => {
                let _turn = lending(self.registries.turns().acquire(self.keyring.tenant())).await;
                off_the_executor(compared)
            }
            Fetched::Blob(..) | Fetched::Artifact { .. } => compared(),
        };
        match compared {
            Comparison::Other(found) => Err(other_content(node, resource, &found)),
            Comparison::Broken(why) => {
                Err(Fault::invalid(Code::ConfigurationProblem, format!("{}: {why}", display(node, resource))))
            }
            Comparison::NotCompared(why) => Ok((fetched, Some(why))),
            Comparison::Same => Ok((fetched, None)),
        }
    }

    async fn fetch_unchecked(&self, node: &GraphNode, resource: &Resource) -> Result<Fetched, Fault> {
        let invalid = |message: String| Fault::invalid(Code::ConfigurationProblem, message);
        let written = resource.access.as_ref().ok_or_else(|| invalid("it has no access, so no content".to_owned()))?;
        let access: Access =
            lenient::decode(written).map_err(|error| invalid(format!("its access is invalid: {error}")))?;
        let kind = access.kind().ok_or_else(|| {
            let name = access.type_.split('/').next().unwrap_or_default();
            invalid(format!(
                "its access type {name:?} is not supported; known are localBlob, ociArtifact, ociBlob, \
                 relativeOciReference, helm, wget and gitHub: transport the component with its resources (ocm transfer \
                 --copy-resources)"
            ))
        })?;
        let digest = resource.digest.as_ref();
        let blob = |content: ReservedContent, media_type| Ok(Fetched::of(content, media_type));
        match kind {
            AccessKind::LocalBlob => blob(node.blobs.local(&access.local_reference).await?, access.media_type),
            AccessKind::LocalOciBlob => blob(node.blobs.local(&access.digest).await?, access.media_type),
            AccessKind::LocalFile => blob(node.blobs.local(&access.filename).await?, access.media_type),
            AccessKind::Artifact => self.artifact(&access.image_reference).await,
            AccessKind::RelativeArtifact => {
                let reference = node.blobs.relative(&access.reference);
                let missing =
                    || invalid("its access is relative to a registry, but its component is in none".to_owned());
                self.artifact(&reference.ok_or_else(missing)?).await
            }
            AccessKind::OciBlob => blob(self.blob(&access).await?, access.media_type),
            AccessKind::Wget => self.wget(written, digest).await,
            AccessKind::Helm => self.helm(written, digest).await,
            AccessKind::GitHub => self.github(written, digest).await,
        }
    }

    async fn artifact(&self, reference: &str) -> Result<Fetched, Fault> {
        let invalid = |error| Fault::invalid(Code::ConfigurationProblem, format!("its access is invalid: {error}"));
        let reference: ArtifactReference = reference.parse().map_err(invalid)?;
        let manifest = self.registries.manifest(&reference, &self.keyring).await?;
        Ok(Fetched::Artifact { reference, manifest })
    }

    /// A blob that is named by its digest alone: nothing shows that its reader may read it but asking.
    async fn blob(&self, access: &Access) -> Result<ReservedContent, Fault> {
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
        memory: &HeldVersionMemory,
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
        let of = |fault| crate::within(fault, &reference.to_string());
        let _held = memory.add_for_a_while(size).map_err(of)?;
        let document = self.registries.manifest_bytes(repository, &manifest.digest, &self.keyring).await?;
        // What is packed was counted above: content that waits for the room of the next one would hold up all.
        let mut blobs = vec![(manifest.digest.clone(), document.into_bytes())];
        for blob in manifest.blobs() {
            if blobs.iter().all(|(digest, _)| *digest != blob.digest) {
                let content = self.registries.blob(repository, blob, &self.keyring).await?;
                blobs.push((blob.digest.clone(), content.into_bytes()));
            }
        }
        let tag = match &reference.selector {
            ArtifactSelector::Tag(tag) => Some(tag.to_string()),
            ArtifactSelector::Digest(_) => None,
        };
        let packed = manifest.clone();
        let pack = move || image::pack(&packed, tag.as_deref(), &blobs).map_err(|error| error.to_string());
        let bytes = self.in_turn(|| reference.to_string(), pack).await?;
        let bytes = bytes
            .map_err(|why| Fault::invalid(Code::InternalProblem, format!("{reference} cannot be packed: {why}")))?;
        Ok(ResourceContent { media_type: image::archive_type(&manifest.media_type), bytes: Arc::new(bytes) })
    }

    /// The layer of a blueprint or schema artifact: the first one of a media type that is wanted; where the config says
    /// what the artifact is, the first one.
    pub(crate) async fn layer(
        &self,
        reference: &ArtifactReference,
        manifest: &Manifest,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<ReservedContent, Fault> {
        let layer = image::layer(manifest, wanted);
        let layer = layer.map_err(|why| Fault::invalid(Code::ConfigurationProblem, format!("{reference} {why}")))?;
        self.registries.blob(&reference.repository, layer, &self.keyring).await
    }
}

/// A resource, for messages.
pub(crate) fn display(node: &GraphNode, resource: &Resource) -> String {
    format!("resource {} of {}", resource.element.name, node.descriptor)
}

fn other_content(node: &GraphNode, resource: &Resource, found: &str) -> Fault {
    let expected = resource.digest.as_ref().map(|digest| digest.value.as_str()).unwrap_or_default();
    let message = format!(
        "{} has another content than its component says: its digest is {found}, the component descriptor says {expected}; \
         push the component again",
        display(node, resource)
    );
    Fault::invalid(Code::ConfigurationProblem, message)
}

/// Whether templates get the content in base64.
pub(crate) fn is_binary(content: &ResourceContent) -> bool {
    content.media_type == media::OCTET_STREAM
}
