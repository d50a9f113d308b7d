//! What a component reads in one call, as it is told to it, for a recording (C-340).

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_core::{error::Fault, memory, port::BoxFuture};
use orangery_ocm::{
    Artifact, ArtifactFuture, Artifacts, ComponentReference, ComponentSource, LayerFuture, ResourceKey, Resources,
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters, Reads},
    recorded::{ReadQuestion, RecordedArtifact, RecordedRead, RecordedSource},
};
use orangery_turns::HeldBytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::noted_answers::{NotedAnswers, component_source, resource_source};

/// The most bytes of memory of what one call reads of clusters, and again of the content that it reads, with which it is recorded.
const MOST_RECORDED_BYTES: u64 = 16 << 20;

/// Reads for one call, and what was answered.
pub(super) struct RecordingReads {
    inner: Reads,
    /// Protects what was answered. Held for one addition.
    noted: Mutex<NotedReads>,
}

#[derive(Default)]
struct NotedReads {
    questions: BTreeSet<String>,
    reads: Vec<RecordedRead>,
    content: Vec<(RecordedSource, Arc<NotedArtifact>)>,
    bytes: u64,
    /// The same of what all calls have together; `None` of a call that has ended.
    held: Option<HeldBytes>,
    incomplete: Option<&'static str>,
}

/// What was read, with the files of the content.
pub(super) struct NotedCall {
    pub(super) reads: Vec<RecordedRead>,
    pub(super) artifacts: Vec<RecordedArtifact>,
    pub(super) content: Vec<(String, Arc<Vec<u8>>)>,
    bytes: u64,
    /// What it holds of what all calls have together.
    pub(super) held: Option<HeldBytes>,
}

const TOO_LARGE: &str = "it read more than 16 MiB";
const NO_ROOM: &str = "calls that are recorded at once read more than 64 MiB";
const NO_CONTENT: &str = "content that it asked for could not be fetched";

impl RecordingReads {
    /// What is noted counts as held.
    pub(super) fn over(inner: Reads, held: HeldBytes) -> Arc<Self> {
        let noted = NotedReads { held: Some(held), ..NotedReads::default() };
        Arc::new(Self { inner, noted: Mutex::new(noted) })
    }

    /// The reads that are noted.
    pub(super) fn reads(self: &Arc<Self>) -> Reads {
        Reads { clusters: self.clone(), artifacts: self.clone(), resources: self.clone() }
    }

    /// What was read so far, for a candidate; `None` where that is not all.
    pub(super) fn answers(&self) -> Option<NotedAnswers> {
        let noted = self.locked();
        let content =
            || noted.content.iter().map(|(source, content)| (source.clone(), content.clone() as Arc<dyn Artifact>));
        let is_whole = noted.incomplete.is_none();
        is_whole.then(|| NotedAnswers { reads: noted.reads.clone(), content: content().collect() })
    }

    /// What was read; else why that is not all.
    pub(super) async fn noted(&self) -> Result<NotedCall, &'static str> {
        let NotedReads { reads, content, bytes, held, incomplete, .. } = std::mem::take(&mut *self.locked());
        if let Some(why) = incomplete {
            return Err(why);
        }
        let mut call = NotedCall { reads, artifacts: Vec::new(), content: Vec::new(), bytes, held };
        let mut of_content = 0;
        for (source, artifact) in content {
            let layers = std::mem::take(&mut *artifact.layers.lock().unwrap_or_else(PoisonError::into_inner));
            let mut recorded = call.add(&source, artifact.inner.as_ref(), &mut of_content).await?;
            for layer in layers {
                recorded.layers.push(call.add(&source, layer.as_ref(), &mut of_content).await?);
            }
            call.artifacts.push(recorded);
        }
        Ok(call)
    }

    fn locked(&self) -> MutexGuard<'_, NotedReads> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was answered to a question, the first time that it is asked.
    fn note<T>(&self, read: ReadQuestion, answer: &Result<T, Fault>, form: impl Fn(&T) -> Value) {
        let mut noted = self.locked();
        let question = serde_json::to_string(&read).unwrap_or_default();
        if noted.incomplete.is_some() || !noted.questions.insert(question) {
            return;
        }
        let (answer, fault) = match answer {
            Ok(answer) => (form(answer), None),
            Err(fault) => (Value::Null, Some(fault.clone().into())),
        };
        let bytes = noted.bytes + memory::of(&answer);
        let has_room = noted.held.as_mut().is_some_and(|held| held.set(bytes));
        if bytes > MOST_RECORDED_BYTES || !has_room {
            let why = if has_room { TOO_LARGE } else { NO_ROOM };
            *noted = NotedReads { incomplete: Some(why), ..NotedReads::default() };
            return;
        }
        noted.bytes = bytes;
        noted.reads.push(RecordedRead { read, answer, fault });
    }

    fn note_content(
        &self,
        source: RecordedSource,
        found: Result<Arc<dyn Artifact>, Fault>,
    ) -> Result<Arc<dyn Artifact>, Fault> {
        let mut noted = self.locked();
        match found {
            Ok(inner) => {
                let known =
                    noted.content.iter().find(|(known, _)| *known == source).map(|(_, artifact)| artifact.clone());
                let artifact = known.unwrap_or_else(|| {
                    let artifact = Arc::new(NotedArtifact { inner, layers: Mutex::default() });
                    noted.content.push((source, artifact.clone()));
                    artifact
                });
                Ok(artifact)
            }
            Err(fault) => {
                noted.incomplete.get_or_insert(NO_CONTENT);
                Err(fault)
            }
        }
    }
}

impl NotedCall {
    async fn add(
        &mut self,
        source: &RecordedSource,
        artifact: &dyn Artifact,
        bytes: &mut u64,
    ) -> Result<RecordedArtifact, &'static str> {
        *bytes = bytes.saturating_add(artifact.size());
        if *bytes > MOST_RECORDED_BYTES {
            return Err(TOO_LARGE);
        }
        let together = self.bytes.saturating_add(*bytes);
        if !self.held.as_mut().is_some_and(|held| held.set(together)) {
            return Err(NO_ROOM);
        }
        let content = artifact.content().await.map_err(|_| NO_CONTENT)?;
        let file = format!("content-{}", self.content.len());
        self.content.push((file.clone(), content));
        Ok(RecordedArtifact {
            source: source.clone(),
            digest: artifact.digest().to_owned(),
            media_type: artifact.media_type().to_owned(),
            file,
            layers: Vec::new(),
        })
    }
}

fn document(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn kinds(kinds: &[ApiResource]) -> Value {
    let kind = |ApiResource { api_version, kind, plural, namespaced }: &ApiResource| json!({"apiVersion": api_version, "kind": kind, "plural": plural, "namespaced": namespaced});
    kinds.iter().map(kind).collect()
}

impl Clusters for RecordingReads {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move {
            let answer = self.inner.clusters.get(on, key).await;
            self.note(ReadQuestion::Get { on: on.clone(), key: key.clone() }, &answer, document);
            answer
        })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(async move {
            let answer = self.inner.clusters.get_many(on, keys).await;
            for (index, key) in keys.iter().enumerate() {
                let of_one = match &answer {
                    Ok(answers) => Ok(answers.get(index).cloned().flatten()),
                    Err(fault) => Err(fault.clone()),
                };
                self.note(ReadQuestion::Get { on: on.clone(), key: key.clone() }, &of_one, document);
            }
            answer
        })
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let answer = self.inner.clusters.list(on, what).await;
            self.note(ReadQuestion::List { on: on.clone(), what: what.clone() }, &answer, document);
            answer
        })
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move {
            let answer = self.inner.clusters.version(on).await;
            self.note(ReadQuestion::Version { on: on.clone() }, &answer, document);
            answer
        })
    }

    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async move {
            let answer = self.inner.clusters.discover(on).await;
            self.note(ReadQuestion::Discover { on: on.clone() }, &answer, |found| kinds(found));
            answer
        })
    }
}

impl Artifacts for RecordingReads {
    fn component<'a>(&'a self, reference: &'a ComponentReference) -> ArtifactFuture<'a> {
        self.inner.artifacts.component(reference)
    }

    fn oci<'a>(&'a self, reference: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move {
            let found = self.inner.artifacts.oci(reference).await;
            self.note_content(RecordedSource::Oci(reference.to_owned()), found)
        })
    }

    fn url<'a>(&'a self, url: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move {
            let found = self.inner.artifacts.url(url).await;
            self.note_content(RecordedSource::Url(url.to_owned()), found)
        })
    }

    fn helm_repository<'a>(&'a self, url: &'a str, chart: &'a str, version: &'a str) -> ArtifactFuture<'a> {
        Box::pin(async move {
            let found = self.inner.artifacts.helm_repository(url, chart, version).await;
            let [url, chart, version] = [url, chart, version].map(str::to_owned);
            self.note_content(RecordedSource::HelmRepository { url, chart, version }, found)
        })
    }
}

impl Resources for RecordingReads {
    fn resource<'a>(&'a self, key: &'a ResourceKey) -> ArtifactFuture<'a> {
        Box::pin(async move {
            let found = self.inner.resources.resource(key).await;
            self.note_content(resource_source(key), found)
        })
    }

    fn descriptors<'a>(&'a self, of: &'a ComponentSource) -> ArtifactFuture<'a> {
        Box::pin(async move {
            let found = self.inner.resources.descriptors(of).await;
            self.note_content(component_source(of), found)
        })
    }
}

/// Content that was found, with the other layers that were asked for.
struct NotedArtifact {
    inner: Arc<dyn Artifact>,
    /// Protects the layers. Held for one addition.
    layers: Mutex<Vec<Arc<dyn Artifact>>>,
}

impl Artifact for NotedArtifact {
    fn digest(&self) -> &str {
        self.inner.digest()
    }

    fn media_type(&self) -> &str {
        self.inner.media_type()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        self.inner.content()
    }

    fn at_hand(&self) -> BoxFuture<'_, Option<Arc<Vec<u8>>>> {
        self.inner.at_hand()
    }

    fn is_in_memory(&self) -> bool {
        self.inner.is_in_memory()
    }

    fn layer<'a>(&'a self, media_type: &'a str) -> LayerFuture<'a> {
        Box::pin(async move {
            let found = self.inner.layer(media_type).await?;
            let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(layer) =
                found.as_ref().filter(|layer| layers.iter().all(|known| known.digest() != layer.digest()))
            {
                layers.push(Arc::clone(layer));
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests;
