//! Opens component versions, wherever they are.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use orangery_core::{
    error::{Code, Fault},
    memory,
    port::BoxFuture,
};
use orangery_ocm::{
    Artifacts, ComponentRequest, ComponentSource, ComponentVersion, ComponentVersions, Credentials, Descriptor,
    RegistryComponent, RegistryComponentRequest, SignaturePolicy, Verification, VersionReference,
};
use serde_json::Value;

use crate::{
    access::ResourceAccess,
    artifacts::Remote,
    cache::ContentCache,
    graph::Graph,
    memory::Memory,
    named,
    oci::{self, Client, CredentialsOwner, Keyring, OcmConfig},
    registry::Registries,
    roots::Roots,
    search::{DescriptorSearch, check_context},
    shared::SharedRepositories,
    verify,
    version::OpenedVersion,
    version_memory::{HeldVersionMemory, VersionMemory},
    wasm::{ArtifactKey, FoundComponent, WasmArtifacts},
};

/// What the operator says about repositories.
#[derive(Clone, Debug)]
pub struct RepositorySettings {
    /// Folders that repositories on this machine may be in; paths in repository contexts are relative to the first one
    /// that has them. None: no repository is on this machine.
    pub folders: Vec<PathBuf>,
    /// The folder of the cache.
    pub cache: PathBuf,
    /// How many bytes the cache may have.
    pub cache_bytes: u64,
    /// How registries are reached.
    pub oci: oci::RegistrySettings,
    /// Whether component versions have to be signed.
    pub signatures: SignaturePolicy,
}

/// All repositories. One for the process: what one job fetched, the next one has.
pub struct Repositories {
    shared: Arc<SharedRepositories>,
    signatures: SignaturePolicy,
}

/// Bytes of memory of credentials that count nowhere: those of most Contexts have some hundred.
const SMALL_CREDENTIALS: u64 = 64 << 10;
/// Transport archives whose index is kept in memory.
const MOST_ARCHIVES: usize = 64;
/// Unpacked blueprints in memory, each of at most [`crate::version::SMALL`] bytes.
const MOST_BLUEPRINTS: usize = 64;
/// The part of the memory of component versions, as its divisor, that is for descriptors which are kept for the next job.
const KEPT: u64 = 8;

impl Repositories {
    /// Opens the cache and reads the certificates of this machine.
    pub fn new(settings: RepositorySettings) -> Result<Self, Fault> {
        let cache = ContentCache::open(&settings.cache, settings.cache_bytes).map_err(|error| {
            let message = format!("the cache of components {} cannot be opened: {error}", settings.cache.display());
            Fault::invalid(Code::ConfigurationProblem, message)
        })?;
        let cache = Arc::new(cache);
        let bytes = settings.oci.limits.component_versions;
        let version_memory = Arc::new(VersionMemory::new(bytes - bytes / KEPT, &settings.oci.limits));
        let client = Client::new(settings.oci)?;
        let registries =
            Arc::new(Registries::new(client, (Arc::clone(&cache), Arc::clone(&version_memory)), bytes / KEPT));
        let shared = SharedRepositories {
            roots: Roots::new(&settings.folders)?,
            cache,
            registries,
            version_memory,
            archives: Memory::new(MOST_ARCHIVES),
            blueprints: Memory::new(MOST_BLUEPRINTS),
        };
        Ok(Self { shared: Arc::new(shared), signatures: settings.signatures })
    }

    /// Where others have the memory that a component version needs, it is opened again when it has its turn: it holds nothing
    /// while it waits.
    async fn opened(&self, request: &ComponentRequest) -> Result<OpenedVersion, Fault> {
        contexts_of(request).try_for_each(check_context)?;
        let (keyring, config) = self.keyring(&request.credentials)?;
        let (keyring, config) = (Arc::new(keyring), Arc::new(config));
        let reader = VersionReader { shared: &self.shared, keyring, config, request };
        let name = name_of(&request.source);
        loop {
            let memory = self.shared.version_memory.of_version(reader.keyring.tenant(), &name).await?;
            let opened = reader.opened(&memory).await;
            if opened.is_ok() || !memory.lacks_room() {
                return opened;
            }
        }
    }
}

/// The repository contexts that a request has, whoever wrote them.
fn contexts_of(request: &ComponentRequest) -> impl Iterator<Item = &Value> {
    let above = request.verification.as_ref().and_then(|wanted| wanted.above.as_ref());
    let sources = std::iter::once(&request.source).chain(above);
    let named = sources.filter_map(|source| match source {
        ComponentSource::Reference(reference) => reference.repository_context.as_deref(),
        ComponentSource::Inline(_) => None,
    });
    let sides = request.overwrites.iter().flat_map(|rule| [&rule.source, &rule.substitution]);
    let replaced = sides.filter_map(|side| side.repository_context.as_deref());
    request.repository_context.as_deref().into_iter().chain(named).chain(replaced)
}

/// What names a component version among those of a namespace.
fn name_of(source: &ComponentSource) -> String {
    match source {
        ComponentSource::Reference(reference) => format!("{reference} {:?}", reference.repository_context),
        ComponentSource::Inline(document) => format!("inline {:?}", document.pointer("/component/name")),
    }
}

/// Opens one component version.
struct VersionReader<'a> {
    shared: &'a Arc<SharedRepositories>,
    keyring: Arc<Keyring>,
    config: Arc<OcmConfig>,
    request: &'a ComponentRequest,
}

impl VersionReader<'_> {
    async fn opened(&self, memory: &Arc<HeldVersionMemory>) -> Result<OpenedVersion, Fault> {
        let mut version = self.found(&self.request.source, memory).await?;
        if let Some(wanted) = &self.request.verification {
            self.verify(&mut version, wanted, memory).await?;
        }
        Ok(version)
    }

    /// By its own signature, or by that of the component version above it which refers to it.
    async fn verify(
        &self,
        version: &mut OpenedVersion,
        wanted: &Verification,
        memory: &Arc<HeldVersionMemory>,
    ) -> Result<(), Fault> {
        let above = match &wanted.above {
            Some(above) if !verify::has_signature(&version.graph.root().descriptor, wanted) => above,
            Some(_) | None => {
                // Copies of the descriptors.
                memory.add(memory.used())?;
                let signed = verify::verify(&version.graph, wanted, &version.reach).await?;
                version.graph.set_signed(&signed);
                return Ok(());
            }
        };
        let before = memory.used();
        let above = self.found(above, memory).await?;
        memory.add(memory.used().saturating_sub(before))?;
        let signed = verify::verify(&above.graph, wanted, &above.reach).await?;
        verify::check_below(&version.graph, &above.graph)?;
        version.graph.set_signed_below(&above.graph, &signed);
        Ok(())
    }

    async fn found(&self, source: &ComponentSource, memory: &Arc<HeldVersionMemory>) -> Result<OpenedVersion, Fault> {
        let Self { shared, keyring, config, request } = self;
        let (keyring, config) = (Arc::clone(keyring), Arc::clone(config));
        let open = DescriptorSearch::new(Arc::clone(shared), Arc::clone(&keyring), config, Arc::clone(memory));
        let (search, at, replaced) = match source {
            ComponentSource::Reference(reference) => {
                let replaced = request.replaced(reference);
                let text = replaced.matched.then(|| replaced.reference.clone());
                (open, replaced.reference, text)
            }
            ComponentSource::Inline(document) => {
                let descriptor = Descriptor::parse(document)
                    .map_err(|error| Fault::invalid(Code::ConfigurationProblem, error.to_string()))?;
                let own = descriptor.repository_context();
                own.or(request.repository_context.as_deref()).into_iter().try_for_each(check_context)?;
                let context = own.map(|own| Arc::new(own.clone())).or_else(|| request.repository_context.clone());
                let at = VersionReference {
                    repository_context: context,
                    name: descriptor.name.clone(),
                    version: descriptor.version.clone(),
                };
                (open.with_inline(Arc::new(descriptor), memory::of(document))?, at, None)
            }
        };
        let root = search.find(&at).await?;
        let graph = Graph::load(root, &at, &request.overwrites, &search).await?;
        let reach = ResourceAccess { registries: Arc::clone(&shared.registries), keyring };
        let (shared, nested) = (Arc::clone(shared), Mutex::default());
        Ok(OpenedVersion { shared, graph, reach, source: source.clone(), at, replaced, nested })
    }
}

impl Repositories {
    /// The credentials of a Context, and where it says that component versions are. Long ones count with what is read of component
    /// versions (C-280).
    fn keyring(&self, credentials: &Credentials) -> Result<(Keyring, OcmConfig), Fault> {
        let (keyring, config) = Keyring::of_context(credentials)?;
        let bytes = keyring.memory() + config.memory();
        if bytes <= SMALL_CREDENTIALS {
            return Ok((keyring, config));
        }
        let held = self.shared.version_memory.none_of(keyring.tenant());
        held.add(bytes).map_err(|fault| crate::within(fault, "the credentials of the Context"))?;
        Ok((keyring.holding(held), config))
    }

    async fn component(&self, request: &RegistryComponentRequest) -> Result<RegistryComponent, Fault> {
        let invalid = |why| Fault::invalid(Code::ConfigurationProblem, why);
        let keys = request.keys.iter().map(|(origin, pem)| ArtifactKey::read(pem.as_bytes(), origin).map_err(invalid));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let reference = named::artifact(&request.reference)?;
        let keyring = self.keyring(&request.credentials)?.0.owned_by(CredentialsOwner::Plugin);
        let registries = &self.shared.registries;
        let manifest = registries.current_manifest(&reference, &keyring).await?;
        let found = FoundComponent::new(reference.repository.clone(), Arc::clone(manifest.shared()));
        if !keys.is_empty() {
            let components = WasmArtifacts { client: registries.client(), keyring: &keyring };
            components.verify(&found, &keys).await?;
        }
        let artifact = found.reference().to_string();
        if request.known.as_ref() == Some(&artifact) {
            return Ok(RegistryComponent { artifact, content: None });
        }
        let layer = found.layer()?;
        let content = registries.blob(&reference.repository, layer, &keyring).await?;
        Ok(RegistryComponent { artifact, content: Some(content.into_vec()) })
    }
}

impl ComponentVersions for Repositories {
    fn open<'a>(&'a self, request: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>> {
        Box::pin(async move { Ok(Arc::new(self.opened(request).await?) as Arc<dyn ComponentVersion>) })
    }

    fn artifacts(&self, credentials: &Credentials) -> Result<Arc<dyn Artifacts>, Fault> {
        let (keyring, _) = self.keyring(credentials)?;
        let registries = Arc::clone(&self.shared.registries);
        Ok(Arc::new(Remote(ResourceAccess { registries, keyring: Arc::new(keyring) })))
    }

    fn registry_component<'a>(
        &'a self,
        request: &'a RegistryComponentRequest,
    ) -> BoxFuture<'a, Result<RegistryComponent, Fault>> {
        Box::pin(self.component(request))
    }

    fn signature_policy(&self) -> SignaturePolicy {
        self.signatures
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::digest::content::{Algorithm, ContentDigest};

    use super::*;
    use crate::{store::BlobStore, transport::TransportArchive};

    #[test]
    fn limits_registry_so_many_archives_and_blueprints_are_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(TransportArchive::INDEX), r#"{"artifacts": []}"#).expect("a file");
        let settings = RepositorySettings {
            folders: Vec::new(),
            cache: folder.path().join("cache"),
            cache_bytes: 1 << 20,
            oci: oci::RegistrySettings::default(),
            signatures: SignaturePolicy::default(),
        };
        let shared = Repositories::new(settings).expect("repositories").shared;
        let store = BlobStore::new(folder.path().to_owned());
        let stamp = store.stamp(TransportArchive::INDEX).expect("a file");
        let archive = TransportArchive::open(store, Arc::clone(&shared.cache)).expect("an archive");
        let files = Arc::new(orangery_blueprint::FileSystem::of_files([]).expect("files"));
        let digest = |index: usize| ContentDigest::of(Algorithm::Sha256, &index.to_be_bytes());
        for index in 0..=MOST_ARCHIVES.max(MOST_BLUEPRINTS) {
            shared.archives.put(index.to_string(), (stamp.clone(), archive.clone()));
            shared.blueprints.put((digest(index), false), Arc::clone(&files));
        }
        let archives = (0..100).filter(|index| shared.archives.get(&index.to_string()).is_some()).count();
        let blueprints = (0..100).filter(|index| shared.blueprints.get(&(digest(*index), false)).is_some()).count();
        assert_eq!((archives, blueprints), (MOST_ARCHIVES, MOST_BLUEPRINTS));
    }
}
