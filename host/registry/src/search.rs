//! Where one Context's component versions are looked for: in the installation itself, in the repository that the
//! reference names, then where `ocmConfig` says.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use orangery_core::{
    error::{Code, Fault},
    listing, memory,
    port::BoxFuture,
};
use orangery_ocm::{Descriptor, Repository, VersionReference};
use orangery_turns::blocking;
use serde_json::Value;

use crate::{
    folder::{ComponentArchive, Local},
    oci::{Keyring, OcmConfig, ReservedContent},
    registry::RegistrySource,
    shared::SharedRepositories,
    source::{Blobs, FoundVersion, VersionSource},
    store::BlobStore,
    transport::TransportArchive,
    version_memory::HeldVersionMemory,
};

/// Descriptors that one installation may carry in one another.
const MOST_INLINE: usize = 1_000;

/// Bytes of memory of a repository context: each reference of a component version carries that of the version (C-284).
const MOST_OF_A_CONTEXT: u64 = 16 << 10;

/// Whether a repository context is no longer than one may be.
pub(crate) fn check_context(context: &Value) -> Result<(), Fault> {
    if memory::of(context) <= MOST_OF_A_CONTEXT {
        return Ok(());
    }
    let message = format!(
        "a repositoryContext takes more than {MOST_OF_A_CONTEXT} bytes of memory; write no more into it than the type of the \
         repository and where it is"
    );
    Err(Fault::invalid(Code::LimitExceeded, message))
}

pub(crate) struct DescriptorSearch {
    shared: Arc<SharedRepositories>,
    keyring: Arc<Keyring>,
    config: Arc<OcmConfig>,
    /// What all that is found here takes.
    memory: Arc<HeldVersionMemory>,
    /// Descriptors that the installation carries.
    inline: BTreeMap<(String, String), Arc<Descriptor>>,
    /// By repository context, as JSON.
    sources: Mutex<HashMap<String, Arc<dyn VersionSource>>>,
}

impl DescriptorSearch {
    pub(crate) fn new(
        shared: Arc<SharedRepositories>,
        keyring: Arc<Keyring>,
        config: Arc<OcmConfig>,
        memory: Arc<HeldVersionMemory>,
    ) -> Self {
        Self { shared, keyring, config, memory, inline: BTreeMap::new(), sources: Mutex::default() }
    }

    /// The memory of all that is found here.
    pub(crate) fn memory(&self) -> &Arc<HeldVersionMemory> {
        &self.memory
    }

    /// Adds the descriptor that an installation carries, and those in its references' labels, which take so many bytes together.
    pub(crate) fn with_inline(mut self, root: Arc<Descriptor>, bytes: u64) -> Result<Self, Fault> {
        self.memory.add(bytes)?;
        let mut waiting = vec![root];
        while let Some(descriptor) = waiting.pop() {
            for nested in descriptor.nested() {
                // Each level has all below it once more.
                self.memory.add(memory::of(nested))?;
                let nested = Descriptor::parse(nested).map_err(|error| {
                    let message = format!("a descriptor in the references of {descriptor}: {error}");
                    Fault::invalid(Code::ConfigurationProblem, message)
                })?;
                waiting.push(Arc::new(nested));
            }
            if self.inline.len() + waiting.len() > MOST_INLINE {
                let message = format!("the component descriptor carries more than {MOST_INLINE} others");
                return Err(Fault::invalid(Code::LimitExceeded, message));
            }
            self.inline.insert((descriptor.name.clone(), descriptor.version.clone()), descriptor);
        }
        Ok(self)
    }

    /// The component version of a reference. Its memory is held by all that is found here.
    pub(crate) async fn find(&self, reference: &VersionReference) -> Result<FoundVersion, Fault> {
        self.look_for(reference, &self.memory).await
    }

    async fn look_for(&self, reference: &VersionReference, memory: &HeldVersionMemory) -> Result<FoundVersion, Fault> {
        let VersionReference { repository_context, name, version } = reference;
        if let Some(descriptor) = self.inline.get(&(name.clone(), version.clone())) {
            return self.of_inline(Arc::clone(descriptor), repository_context.as_ref());
        }
        let mut asked: Vec<String> = Vec::new();
        for context in repository_context.as_deref().into_iter().chain(self.config.repositories(name)) {
            let source = self.source(context).await?;
            if let Some(found) = source.find((name, version), memory).await? {
                return Ok(found);
            }
            asked.extend(Repository::parse(context).map(|repository| repository.to_string()));
        }
        if asked.is_empty() {
            let message = format!(
                "RepositoryContextMissing: nothing says where the component {reference} is; set repositoryContext in \
                 componentDescriptor.ref or in the Context, or a resolver for it in the Context's ocmConfig"
            );
            return Err(Fault::invalid(Code::ConfigurationProblem, message));
        }
        asked.dedup();
        let message =
            format!("there is no component {reference} in {}; check its name and version", listing::joined(&asked));
        Err(Fault::later(Code::ConfigurationProblem, message))
    }

    /// A descriptor that the installation carries; its blobs are where its repository context says.
    fn of_inline(&self, descriptor: Arc<Descriptor>, context: Option<&Arc<Value>>) -> Result<FoundVersion, Fault> {
        let own = descriptor.repository_context();
        own.or(context.map(AsRef::as_ref)).into_iter().try_for_each(check_context)?;
        let context = own.map(|own| Arc::new(own.clone())).or_else(|| context.cloned());
        let elsewhere = DescriptorSearch {
            shared: Arc::clone(&self.shared),
            keyring: Arc::clone(&self.keyring),
            config: Arc::clone(&self.config),
            memory: Arc::clone(&self.memory),
            inline: BTreeMap::new(),
            sources: Mutex::default(),
        };
        let reference = VersionReference {
            repository_context: context,
            name: descriptor.name.clone(),
            version: descriptor.version.clone(),
        };
        // They were counted together.
        Ok(FoundVersion { descriptor, bytes: 0, blobs: Arc::new(StoredVersionBlobs { search: elsewhere, reference }) })
    }

    async fn source(&self, context: &Value) -> Result<Arc<dyn VersionSource>, Fault> {
        let key = context.to_string();
        let known = self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(source) = known {
            return Ok(source);
        }
        let source = self.make_source(context).await?;
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&source));
        Ok(source)
    }

    async fn make_source(&self, context: &Value) -> Result<Arc<dyn VersionSource>, Fault> {
        let unusable = |error| Fault::invalid(Code::ConfigurationProblem, format!("{error}"));
        let repository = Repository::parse(context).map_err(unusable)?;
        let path = match repository {
            Repository::Oci { base_url, mapping } => {
                let registries = Arc::clone(&self.shared.registries);
                return Ok(Arc::new(RegistrySource::new(registries, Arc::clone(&self.keyring), &base_url, mapping)?));
            }
            Repository::TransportArchive { ref path }
            | Repository::ComponentArchive { ref path }
            | Repository::Local { ref path } => path.clone(),
        };
        let shared = Arc::clone(&self.shared);
        let opened = blocking(move || {
            let store = BlobStore::new(shared.roots.find(&path)?);
            Ok(match repository {
                Repository::TransportArchive { .. } => Arc::new(shared.archive(store)?) as Arc<dyn VersionSource>,
                Repository::ComponentArchive { .. } => Arc::new(ComponentArchive(store)),
                Repository::Local { .. } | Repository::Oci { .. } => Arc::new(Local(store)),
            })
        });
        opened.await.map_err(|error| crate::interrupted("a repository", &error))?
    }
}

impl SharedRepositories {
    /// A transport archive, read again where it has changed.
    fn archive(&self, store: BlobStore) -> Result<TransportArchive, Fault> {
        let stamp = store.stamp(TransportArchive::INDEX)?;
        if let Some((known, archive)) = self.archives.get(&store.display())
            && known == stamp
        {
            return Ok(archive);
        }
        let text = store.display();
        let archive = TransportArchive::open(store, Arc::clone(&self.cache))?;
        self.archives.put(text, (stamp, archive.clone()));
        Ok(archive)
    }
}

/// The blobs of a component version whose descriptor is in an installation: looked for where it is stored.
struct StoredVersionBlobs {
    search: DescriptorSearch,
    reference: VersionReference,
}

impl Blobs for StoredVersionBlobs {
    fn local<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<ReservedContent, Fault>> {
        Box::pin(async move {
            let place = format!("the local blob {reference:?} of a component written in the installation");
            // For as long as the blob takes to come.
            let memory = self.search.shared.version_memory.none_of(self.search.keyring.tenant());
            let found = self.search.look_for(&self.reference, &memory).await;
            let found = found.map_err(|fault| crate::within(fault, &place))?;
            found.blobs.local(reference).await
        })
    }

    fn relative(&self, reference: &str) -> Option<String> {
        match Repository::parse(self.reference.repository_context.as_ref()?).ok()? {
            Repository::Oci { base_url, .. } => Some(format!("{base_url}/{}", reference.trim_start_matches('/'))),
            Repository::TransportArchive { .. } | Repository::ComponentArchive { .. } | Repository::Local { .. } => {
                None
            }
        }
    }
}
