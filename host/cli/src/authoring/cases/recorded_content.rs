//! The content of a case: files beside its request, by what a deployer asks for.

use std::{path::Path, sync::Arc};

use orangery_blueprint::recorded::unrecorded;
use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{
    Artifact, ArtifactFuture, Artifacts, ComponentReference, ComponentSource, LayerFuture, ResourceKey, Resources,
    Unavailable,
};
use orangery_proposal::recorded::{RecordedArtifact, RecordedSource};

use super::CallLog;
use crate::folder;

/// What one call may read of registries and web servers.
pub(super) struct RecordedContent {
    content: Vec<(RecordedSource, Arc<ReadContent>)>,
    log: Arc<CallLog>,
}

/// Content that was read from its file.
struct ReadContent {
    digest: String,
    media_type: String,
    bytes: Arc<Vec<u8>>,
    layers: Vec<Arc<ReadContent>>,
}

impl RecordedContent {
    /// Reads the files of a case.
    ///
    /// # Errors
    /// One sentence about a file that cannot be read.
    pub(super) fn read(folder: &Path, artifacts: &[RecordedArtifact], log: Arc<CallLog>) -> Result<Self, String> {
        let read = |artifact: &RecordedArtifact| Ok((artifact.source.clone(), read(folder, artifact)?));
        Ok(Self { content: artifacts.iter().map(read).collect::<Result<_, String>>()?, log })
    }

    fn find<'a>(&self, function: &'static str, asked: &RecordedSource) -> ArtifactFuture<'a> {
        self.log.note(function);
        let found = self.content.iter().find(|(source, _)| source == asked).map(|(_, content)| content.clone());
        let found = found.ok_or_else(|| unrecorded(asked));
        Box::pin(async move { found.map(|content| content as Arc<dyn Artifact>) })
    }
}

fn read(folder: &Path, artifact: &RecordedArtifact) -> Result<Arc<ReadContent>, String> {
    let bytes = folder::content_within(folder, &artifact.file).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or_else(|| format!("there is no file {}", artifact.file))?;
    let layers = artifact.layers.iter().map(|layer| read(folder, layer)).collect::<Result<_, String>>()?;
    let RecordedArtifact { digest, media_type, .. } = artifact.clone();
    Ok(Arc::new(ReadContent { digest, media_type, bytes: Arc::new(bytes), layers }))
}

impl Artifact for ReadContent {
    fn digest(&self) -> &str {
        &self.digest
    }

    fn media_type(&self) -> &str {
        &self.media_type
    }

    fn size(&self) -> u64 {
        self.bytes.len().try_into().unwrap_or(u64::MAX)
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        Box::pin(async { Ok(self.bytes.clone()) })
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        let found = self.layers.iter().find(|layer| layer.media_type == media_type).cloned();
        Box::pin(async move { Ok(found.map(|layer| layer as Arc<dyn Artifact>)) })
    }
}

impl Artifacts for RecordedContent {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        Artifacts::component(&Unavailable, reference)
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        self.find("artifacts.oci", &RecordedSource::Oci(reference.to_owned()))
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        self.find("artifacts.url", &RecordedSource::Url(url.to_owned()))
    }

    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        let [url, chart, version] = [url, chart, version].map(str::to_owned);
        self.find("artifacts.helm-repository", &RecordedSource::HelmRepository { url, chart, version })
    }
}

impl Resources for RecordedContent {
    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        let is_asked = |source: &RecordedSource| match source {
            RecordedSource::ComponentDescriptors(written) => {
                ComponentSource::read(&written.to_string()).is_ok_and(|read| read == *of)
            }
            RecordedSource::Oci(_)
            | RecordedSource::Url(_)
            | RecordedSource::HelmRepository { .. }
            | RecordedSource::ComponentResource(_) => false,
        };
        match self.content.iter().find(|(source, _)| is_asked(source)) {
            Some((source, _)) => self.find("artifacts.component-descriptors", source),
            None => {
                self.log.note("artifacts.component-descriptors");
                let why = format!("the recording has no descriptors of {}; add them", of.name());
                Box::pin(async move { Err(Fault::invalid(Code::InternalProblem, why)) })
            }
        }
    }

    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        let is_asked = |source: &RecordedSource| match source {
            RecordedSource::ComponentResource(text) => ResourceKey::read(text).is_ok_and(|read| read == *key),
            RecordedSource::Oci(_)
            | RecordedSource::Url(_)
            | RecordedSource::HelmRepository { .. }
            | RecordedSource::ComponentDescriptors(_) => false,
        };
        match self.content.iter().find(|(source, _)| is_asked(source)) {
            Some((source, _)) => self.find("artifacts.component-resource", source),
            None => {
                self.log.note("artifacts.component-resource");
                let why = format!("the recording has no content of {key}; add it");
                Box::pin(async move { Err(Fault::invalid(Code::InternalProblem, why)) })
            }
        }
    }
}
