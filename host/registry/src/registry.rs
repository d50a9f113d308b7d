//! Component versions in OCI registries, and other artifacts there: asked once, then from memory and from the cache.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
    memory,
    port::BoxFuture,
};
use orangery_ocm::{AllowedSources, NameMapping};
use orangery_turns::{Tenant, Turns, blocking, lending};
use serde_json::Value;

use crate::{
    cache::{Blob, ContentCache},
    charts::{self, ChartLocation},
    held_manifest::HeldManifest,
    memory::Memory,
    oci::{
        ArtifactReference, ArtifactSelector, Client, FileRequest, Flights, FoundArtifact, HeldMemory, Keyring,
        Manifest, NoAnswer, OciDescriptor, OciRepository, Pull, ReceivedFile, RegistryVersions, ReservedContent,
    },
    source::{self, Blobs, FoundVersion, MOST_OF_A_BLOB, ReadDescriptor, VersionSource},
    version_memory::{HeldVersionMemory, VersionMemory},
};

/// How many manifests and component versions are kept in memory.
const MOST_KEPT: usize = 4096;
/// Bytes of memory that the manifests among them take, at most.
const MOST_OF_MANIFESTS: u64 = 16 << 20;
/// Bytes of the index of a chart repository; the greatest known ones have about 20 MiB.
const MOST_OF_AN_INDEX: u64 = 64 << 20;
/// Bytes of the name of a chart, and of its version.
const LONGEST_OF_A_CHART: usize = 253;
/// How long it counts where an index said that a chart is. A version that it does not have is looked for at once.
const INDEX_COUNTS: Duration = Duration::from_secs(5 * 60);

/// The error of what an index says.
fn message_of(index: &FileRequest, why: &str) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, format!("the index {} {why}", index.display()))
}

/// A question whose answer outlives the process, with what policies say beside.
fn question(text: &str, keyring: &Keyring) -> String {
    let sources = keyring.sources();
    if *sources == AllowedSources::default() {
        return text.to_owned();
    }
    let policies = ContentDigest::of(Algorithm::Sha256, format!("{sources:?}").as_bytes());
    format!("{text} under {}", policies.hex())
}

/// All registries.
///
/// What a registry answered is kept for those who ask with the same credentials, and whose policies let servers lead them to the
/// same others (C-104): a component version does not change, so the next job asks nothing. After a restart it is asked once more, and what it answered before counts only where it
/// gives no answer now. A blob in the cache is given to who could read, with credentials of his own, a manifest of the
/// repository that the blob came from: another repository may name any digest.
pub(crate) struct Registries {
    client: Arc<Client>,
    cache: Arc<ContentCache>,
    version_memory: Arc<VersionMemory>,
    manifests: Memory<(ArtifactReference, ContentDigest, Arc<AllowedSources>), Arc<Manifest>>,
    versions: Memory<VersionKey, FoundVersion>,
    /// Blobs that were fetched by their digest alone: repository, credentials, what policies say, digest.
    proven: Memory<(OciRepository, ContentDigest, Arc<AllowedSources>, ContentDigest), ()>,
    /// Charts of classic repositories, by the digest of index, chart and version, and by the rest of the question.
    charts: Memory<ChartQuestion, (Instant, ChartLocation)>,
    /// Indexes that are being read, each for one namespace: nobody waits until another one has memory for it (C-133).
    indexes: Flights<(IndexQuestion, Tenant), Result<Arc<Value>, Fault>>,
}

/// Repository, credentials, what policies say, the namespace, and version: its blobs are fetched as these policies allow, and take
/// the memory of this namespace.
type VersionKey = (OciRepository, ContentDigest, Arc<AllowedSources>, Tenant, String);

/// The digest of an index with a chart and its version, the fingerprint of the credentials, and what the policies of who asks say.
type ChartQuestion = (ContentDigest, ContentDigest, Arc<AllowedSources>);

/// An index, the fingerprint of the credentials, and what the policies of who asks say.
type IndexQuestion = (String, ContentDigest, Arc<AllowedSources>);

impl Registries {
    /// Keeps descriptors of so many bytes.
    pub(crate) fn new(
        client: Client,
        (cache, version_memory): (Arc<ContentCache>, Arc<VersionMemory>),
        most_of_descriptors: u64,
    ) -> Self {
        Self {
            client: Arc::new(client),
            cache,
            version_memory,
            manifests: Memory::within(MOST_KEPT, MOST_OF_MANIFESTS),
            versions: Memory::within(MOST_KEPT, most_of_descriptors),
            proven: Memory::new(MOST_KEPT),
            charts: Memory::new(MOST_KEPT),
            indexes: Flights::new(),
        }
    }

    /// The turns of those that read, unpack and compare what servers have sent.
    pub(crate) fn turns(&self) -> &Arc<Turns> {
        &self.version_memory.turns
    }

    /// Waits for what comes of a server, with the slot of the call lent, and no longer than what the call holds may wait for it.
    pub(crate) async fn coming<T, E: From<Fault>>(&self, comes: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        lending(self.version_memory.while_it_comes(comes)).await
    }

    /// A file that is in no registry, with its room in memory.
    pub(crate) async fn reserved_file(
        &self,
        file: &FileRequest,
        keyring: &Keyring,
    ) -> Result<(ReceivedFile, HeldMemory), Fault> {
        self.version_memory.while_it_comes(self.client.reserved_file(file, keyring)).await
    }

    /// The client, for what is in no registry.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The manifest of an artifact.
    pub(crate) async fn manifest(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> Result<HeldManifest, Fault> {
        let answered: Arc<Manifest> =
            self.answered(reference, keyring, self.client.shared_manifest(reference, keyring)).await?;
        HeldManifest::of(answered, reference, || self.version_memory.none_of(keyring.tenant()))
    }

    /// The manifest of an artifact as it is now: a tag may have moved since it was asked for.
    pub(crate) async fn current_manifest(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> Result<HeldManifest, Fault> {
        keyring.allows(&reference.repository)?;
        match reference.selector {
            ArtifactSelector::Digest(_) => self.manifest(reference, keyring).await,
            ArtifactSelector::Tag(_) => {
                let answered = self.coming(self.client.manifest(reference, keyring)).await?;
                HeldManifest::of(answered, reference, || self.version_memory.none_of(keyring.tenant()))
            }
        }
    }

    /// Where the chart of a classic repository is, as its index said lately or says now. Calls for the same index at
    /// the same time share one request.
    pub(crate) async fn chart(
        &self,
        index: &FileRequest,
        chart: &str,
        version: &str,
        keyring: &Keyring,
    ) -> Result<ChartLocation, Fault> {
        index.is_allowed(keyring)?;
        if chart.len() > LONGEST_OF_A_CHART || version.len() > LONGEST_OF_A_CHART {
            let message = format!(
                "a chart of {} has a name or a version of more than {LONGEST_OF_A_CHART} bytes, which none has",
                index.display()
            );
            return Err(Fault::invalid(Code::ConfigurationProblem, message));
        }
        let asker = index.fingerprint(keyring);
        let question = format!("{} {chart}:{version}", index.identity());
        let key = (ContentDigest::of(Algorithm::Sha256, question.as_bytes()), asker.clone(), keyring.sources());
        if let Some((since, place)) = self.charts.get(&key)
            && since.elapsed() < INDEX_COUNTS
        {
            return Ok(place);
        }
        let read = || async {
            // The text keeps its share of what is on its way until it is read.
            let (got, _reserved) = self.reserved_file(&index.clone().at_most(MOST_OF_AN_INDEX), keyring).await?;
            let turn = self.turns().acquire(keyring.tenant()).await;
            let read = blocking(move || charts::read(&got.bytes)).await;
            drop(turn);
            let read = read.map_err(|error| crate::interrupted(&index.display(), &error))?;
            read.map(Arc::new).map_err(|why| message_of(index, &why))
        };
        let question = (index.identity(), asker, keyring.sources());
        let found = self.coming(self.indexes.join((question, keyring.tenant().clone()), read)).await?;
        let place = charts::find(&found, chart, version).map_err(|unlisted| unlisted.fault(&index.display()))?;
        self.charts.put(key, (Instant::now(), place.clone()));
        Ok(place)
    }

    /// What was answered before to the same credentials, or what is answered now.
    async fn answered<T>(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
        ask: impl Future<Output = Result<T, NoAnswer>>,
    ) -> Result<T, Fault>
    where
        T: From<Arc<Manifest>> + Into<Option<Arc<Manifest>>> + Clone,
    {
        keyring.allows(&reference.repository)?;
        let key = (reference.clone(), keyring.fingerprint(&reference.repository), keyring.sources());
        if let Some(manifest) = self.manifests.get(&key) {
            return Ok(manifest.into());
        }
        let (question, asker) = (question(&reference.to_string(), keyring), &key.1);
        let answer = self.coming(ask).await;
        let manifest: Option<Arc<Manifest>> = answer.clone().ok().and_then(Into::into);
        match (&answer, manifest) {
            (_, Some(manifest)) => {
                if let Ok(text) = serde_json::to_vec(&*manifest) {
                    self.cache.keep_answer(&question, asker, &text).await;
                    self.manifests.put_sized(key, manifest, memory::of_json(&text));
                }
            }
            (Err(NoAnswer::Failed(Fault::Later(problem))), None) => {
                let known = self.cache.answer(&question, asker).await;
                if let Some(text) = known
                    && let Ok(manifest) = serde_json::from_slice::<Manifest>(&text)
                {
                    let why = &problem.message;
                    tracing::warn!(why, "a registry gives no answer; what it answered before the restart counts");
                    let manifest = Arc::new(manifest);
                    self.manifests.put_sized(key, Arc::clone(&manifest), memory::of_json(&text));
                    return Ok(manifest.into());
                }
            }
            (Ok(_) | Err(_), None) => self.cache.forget_answer(&question, asker),
        }
        answer.map_err(NoAnswer::fault)
    }

    /// A blob that a manifest of the repository names, which the asker could read.
    pub(crate) async fn blob(
        &self,
        at: &OciRepository,
        blob: &OciDescriptor,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        let most = MOST_OF_A_BLOB.min(self.client.settings().limits.blob);
        self.bounded_blob(at, blob, most, keyring).await
    }

    async fn bounded_blob(
        &self,
        at: &OciRepository,
        blob: &OciDescriptor,
        most: u64,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        keyring.allows(at)?;
        let (place, asker) = (at.to_string(), keyring.fingerprint(at));
        let kept = Blob::of((&place, &blob.digest), (&asker, keyring), &self.client);
        let content = self.coming(self.cache.blob(&kept, || self.client.content(at, blob, most, keyring))).await?;
        // What is kept was held against what the manifest said that it was fetched by.
        let got = content.bytes().len() as u64;
        if got != blob.size {
            return Err(Client::wrong_size(at, blob, got));
        }
        Ok(content)
    }

    /// The same where it is on this machine already, without room in memory: whoever asks has some for it. No server is asked, and nobody
    /// is waited for.
    pub(crate) async fn blob_at_hand(
        &self,
        at: &OciRepository,
        blob: &OciDescriptor,
        keyring: &Keyring,
    ) -> Option<ReservedContent> {
        keyring.allows(at).ok()?;
        let (place, asker) = (at.to_string(), keyring.fingerprint(at));
        let content = self.cache.at_hand(&Blob::of((&place, &blob.digest), (&asker, keyring), &self.client)).await?;
        (content.bytes().len() as u64 == blob.size).then_some(content)
    }

    /// A manifest as it is, which the asker could read.
    pub(crate) async fn manifest_bytes(
        &self,
        at: &OciRepository,
        digest: &ContentDigest,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        keyring.allows(at)?;
        let (place, asker) = (at.to_string(), keyring.fingerprint(at));
        let kept = Blob::of((&place, digest), (&asker, keyring), &self.client);
        self.coming(self.cache.blob(&kept, || self.client.manifest_bytes(at, digest, keyring))).await
    }

    /// A file that is in no registry: where its digest is known, from the cache for who asked the same question with the
    /// same credentials.
    pub(crate) async fn file<F>(
        &self,
        question: &str,
        (asker, keyring): (&ContentDigest, &Keyring),
        digest: Option<ContentDigest>,
        fetch: impl FnOnce() -> F,
    ) -> Result<ReservedContent, Fault>
    where
        F: Future<Output = Result<ReservedContent, Fault>>,
    {
        // What fetches a file lends the slot by itself.
        let Some(digest) = digest else { return fetch().await };
        let place = self.cache.named(question, asker);
        let (sources, tenant, client) = (keyring.sources(), keyring.tenant(), Some(&*self.client));
        self.coming(self.cache.blob(&Blob { place: &place, digest: &digest, asker, sources, tenant, client }, fetch))
            .await
    }

    /// A blob that only its digest names: it comes from the cache for who has fetched it before.
    pub(crate) async fn unproven_blob(
        &self,
        at: &OciRepository,
        blob: &OciDescriptor,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        keyring.allows(at)?;
        let key = (at.clone(), keyring.fingerprint(at), keyring.sources(), blob.digest.clone());
        if self.proven.get(&key).is_some() {
            return self.blob(at, blob, keyring).await;
        }
        let (place, question) = (at.to_string(), question(&format!("{at} {}", blob.digest), keyring));
        let most = MOST_OF_A_BLOB.min(self.client.settings().limits.blob);
        let kept = Blob {
            place: &place,
            digest: &blob.digest,
            asker: &key.1,
            sources: keyring.sources(),
            tenant: keyring.tenant(),
            client: Some(&self.client),
        };
        let content = match self.coming(self.client.content(at, blob, most, keyring)).await {
            // It has its room: nobody waits here for room of the same content in the cache.
            Ok(content) => self.cache.keep(&kept, content).await?,
            Err(fault @ Fault::Later(_)) => {
                self.cache.answer(&question, &key.1).await.ok_or_else(|| fault.clone())?;
                self.cache.blob(&kept, || async move { Err(fault) }).await?
            }
            Err(fault) => {
                self.cache.forget_answer(&question, &key.1);
                return Err(fault);
            }
        };
        self.cache.keep_answer(&question, &key.1, b"").await;
        self.proven.put(key, ());
        Ok(content)
    }
}

impl Pull for Registries {
    async fn manifest_if_any(
        &self,
        reference: &ArtifactReference,
        keyring: &Keyring,
    ) -> Result<Option<Arc<Manifest>>, Fault> {
        let asked = async { self.client.manifest_if_any(reference, keyring).await.map_err(NoAnswer::Failed) };
        self.answered(reference, keyring, asked).await
    }

    async fn content(
        &self,
        repository: &OciRepository,
        blob: &OciDescriptor,
        most: u64,
        keyring: &Keyring,
    ) -> Result<ReservedContent, Fault> {
        self.bounded_blob(repository, blob, most, keyring).await
    }
}

/// The component versions below one address.
pub(crate) struct RegistrySource {
    registries: Arc<Registries>,
    keyring: Arc<Keyring>,
    versions: RegistryVersions<Registries>,
    base_url: String,
}

impl RegistrySource {
    pub(crate) fn new(
        registries: Arc<Registries>,
        keyring: Arc<Keyring>,
        base_url: &str,
        mapping: NameMapping,
    ) -> Result<Self, Fault> {
        let versions = RegistryVersions::new(Arc::clone(&registries), Arc::clone(&keyring), base_url, mapping)?;
        Ok(Self { registries, keyring, versions, base_url: base_url.to_owned() })
    }
}

impl VersionSource for RegistrySource {
    fn find<'a>(
        &'a self,
        (name, version): (&'a str, &'a str),
        memory: &'a HeldVersionMemory,
    ) -> BoxFuture<'a, Result<Option<FoundVersion>, Fault>> {
        Box::pin(async move {
            let repository = self.versions.repository(name)?;
            self.keyring.allows(&repository)?;
            let asker = self.keyring.fingerprint(&repository);
            let (sources, tenant) = (self.keyring.sources(), self.keyring.tenant().clone());
            let key = (repository.clone(), asker, sources, tenant, version.to_owned());
            if let Some(found) = self.registries.versions.get(&key) {
                memory.add(found.bytes)?;
                return Ok(Some(found));
            }
            let Some(manifest) = self.versions.manifest(name, version).await? else { return Ok(None) };
            // It is kept from here on, however long its descriptor takes to come.
            let of_manifest = manifest.memory();
            memory.add(of_manifest)?;
            let found = self.versions.described(name, version, manifest).await?;
            let turn = lending(self.registries.turns().acquire(self.keyring.tenant())).await;
            let ReadDescriptor { descriptor, bytes } =
                source::read(&found.descriptor, name, version, &repository.to_string())?;
            let FoundArtifact { repository, manifest, .. } = found;
            drop(turn);
            memory.add(bytes)?;
            let blobs = ManifestLayers {
                registries: Arc::clone(&self.registries),
                keyring: Arc::clone(&self.keyring),
                repository,
                manifest,
                base_url: self.base_url.clone(),
            };
            let bytes = bytes.saturating_add(of_manifest);
            let found = FoundVersion { descriptor: Arc::new(descriptor), bytes, blobs: Arc::new(blobs) };
            // With the credentials by which its blobs are fetched.
            let kept = bytes.saturating_add(self.keyring.memory());
            self.registries.versions.put_sized(key, found.clone(), kept);
            Ok(Some(found))
        })
    }
}

/// The layers of a component version's manifest.
struct ManifestLayers {
    registries: Arc<Registries>,
    keyring: Arc<Keyring>,
    repository: OciRepository,
    manifest: Arc<Manifest>,
    base_url: String,
}

impl Blobs for ManifestLayers {
    fn local<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ReservedContent, Fault>> {
        Box::pin(async move {
            let missing = |why: String| {
                let message = format!("the local blob {reference:?} is not in {}: {why}", self.repository);
                Fault::invalid(Code::ConfigurationProblem, message)
            };
            let digest: ContentDigest = reference.parse().map_err(|error| missing(format!("{error}")))?;
            let layer = self.manifest.layers.iter().find(|layer| layer.digest == digest);
            let layer =
                layer.ok_or_else(|| missing("no layer has this digest; push the component again".to_owned()))?;
            self.registries.blob(&self.repository, layer, &self.keyring).await
        })
    }

    fn relative(&self, reference: &str) -> Option<String> {
        Some(format!("{}/{}", self.base_url, reference.trim_start_matches('/')))
    }
}

#[cfg(test)]
mod tests;
