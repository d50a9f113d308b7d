//! Loading a component: from the cache, or compiled in a process of its own.

use std::{
    io,
    ops::Deref,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use orangery_core::{
    digest,
    error::{Code, Fault},
};
use orangery_ocm::Artifact;
use orangery_proposal::deployer::PluginIdentity;
use orangery_turns::{HeldBytes, Tenant, lending, off_the_executor};
use tokio::time::timeout;

use super::{CallIsolation, ComponentOrigin, LARGE_COMPONENT, OriginCompiler, Sandbox};
use crate::{
    budget::Budget,
    compile,
    component::{CallPlace, Component, Slot, UncheckedCode},
    cost::CodeCounts,
    error::{CacheError, Error},
    inspect::{self, Inspection},
    meter::{MemorySource as _, SharedMemory},
    registration::{ReadBytes, StoredBytes},
    worker::CompiledCode,
};

/// A component that is asked for, and for whom.
#[derive(Clone, Copy)]
pub(crate) struct AskedComponent<'a> {
    /// Where it is kept.
    pub(crate) slot: &'a Slot,
    pub(crate) origin: ComponentOrigin,
    pub(crate) tenant: &'a Tenant,
    pub(crate) identity: &'a PluginIdentity,
    pub(crate) budget: &'a Budget,
    pub(crate) bytes: &'a StoredBytes,
}

/// A component of a blueprint that is asked for, before it is read.
#[derive(Clone, Copy)]
pub(crate) struct BundledComponent<'a> {
    pub(crate) tenant: &'a Tenant,
    pub(crate) identity: &'a PluginIdentity,
    pub(crate) budget: &'a Budget,
    pub(crate) content: &'a dyn Artifact,
}

impl BundledComponent<'_> {
    async fn read(&self) -> Result<Arc<Vec<u8>>, Error> {
        self.content.content().await.map_err(Error::NotRead)
    }

    /// What is on this machine, or comes without being waited for longer than others may wait.
    async fn read_at_once(&self) -> Option<Arc<Vec<u8>>> {
        let read = async {
            match self.content.at_hand().await {
                // It may be kept nowhere.
                None => self.content.content().await.ok(),
                here => here,
            }
        };
        timeout(LONGEST_READ, read).await.ok().flatten()
    }
}

/// A component that can be called, and the memory that is held for it until it is called no more.
pub(crate) struct HeldComponent {
    pub(crate) component: Arc<Component>,
    pub(super) memory: Option<BundledMemory>,
}

/// Memory that a component of a blueprint takes: of what calls share, and of what its namespace may take of that.
pub(super) struct BundledMemory {
    held: HeldBytes,
    shared: Arc<SharedMemory>,
}

impl BundledMemory {
    /// So much of it from now on, if it was more.
    fn shrink(&mut self, bytes: usize) {
        let before = self.held.bytes();
        let bytes = before.min(bytes as u64);
        self.held.put(bytes);
        self.shared.give((before - bytes) as usize);
    }
}

impl Drop for BundledMemory {
    fn drop(&mut self) {
        self.shared.give(self.held.bytes() as usize);
    }
}

impl HeldComponent {
    /// One that is kept whether it is called or not.
    pub(crate) fn registered(component: Arc<Component>) -> Self {
        Self { component, memory: None }
    }

    /// What others need is waited for with its memory: no longer than this, where there is some.
    pub(crate) async fn waited_for<T>(&self, wait: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match &self.memory {
            Some(_) => timeout(LONGEST_ROOM, wait).await.unwrap_or(Err(Error::Busy { what: "room" })),
            None => wait.await,
        }
    }
}

impl Deref for HeldComponent {
    type Target = Component;

    fn deref(&self) -> &Component {
        &self.component
    }
}

/// The most bytes of machine code of a component of a blueprint; an interpreter with its language has 40 MB.
pub(super) const MOST_CODE_OF_ONE: u64 = 128 << 20;
/// How long others wait while a component of a blueprint is read from the disk.
pub(super) const LONGEST_READ: Duration = Duration::from_secs(5);
/// How long the memory of a component of a blueprint is held while its call, or what checks it, waits for its turn; longer than its
/// namespace is waited for under its quotas (C-53), which says more.
pub(super) const LONGEST_ROOM: Duration = Duration::from_secs(15);
/// How often a component is tried to be loaded that had to be fetched or compiled anew meanwhile.
const MOST_TRIES: usize = 2;

impl Sandbox {
    /// Loads the component that a blueprint brings along, when its namespace has memory for it and for its code (C-302).
    pub(crate) async fn load_bundled(&self, asked: BundledComponent<'_>) -> Result<HeldComponent, Arc<Error>> {
        for _ in 0..MOST_TRIES {
            if let Some(loaded) = self.try_to_load(asked).await? {
                return Ok(loaded);
            }
        }
        Err(Arc::new(Error::Busy { what: "memory" }))
    }

    /// The same; `None` where the server it comes from, or the compiler, would be waited for with memory that others need. It is there
    /// the next time, most likely.
    async fn try_to_load(&self, asked: BundledComponent<'_>) -> Result<Option<HeldComponent>, Arc<Error>> {
        let BundledComponent { tenant, identity, budget, content } = asked;
        // Code is known by one sort of digest, whatever the registry calls the component.
        let named = match identity.digest.starts_with("sha256:") {
            true => identity.digest.clone(),
            false => {
                let bytes = asked.read().await?;
                off_the_executor(|| digest::sha256(&bytes))
            }
        };
        let digest = named.as_str();
        // What is wrong with it for good is remembered, below.
        let ahead = match self.compile_ahead(asked, digest).await {
            Err(error) if error.is_transient() => return Err(Arc::new(error)),
            ahead => ahead,
        };
        let is_kept = matches!(ahead, Ok(true));
        let of_code = || self.own.cache.as_ref().ok().and_then(|cache| cache.size(digest));
        let size = content.size();
        let code = of_code().or_else(|| self.recent.code(digest)).unwrap_or(MOST_CODE_OF_ONE);
        let mut memory = self.bundled_memory(tenant, size.saturating_add(code)).await?;
        // Also where it is loaded already: what is in memory is for those who may read it.
        let Some(bytes) = asked.read_at_once().await else {
            drop(memory);
            drop(asked.read().await?);
            return Ok(None);
        };
        let bytes = StoredBytes::Plain(bytes);
        let slot = self.recent.slot(digest, tenant);
        if is_kept && !slot.is_known() && of_code().is_none() {
            return Ok(None);
        }
        let loaded = slot.get_or_load(tenant, async || {
            ahead?;
            let origin = ComponentOrigin::Blueprint;
            self.load(AskedComponent { slot: &slot, origin, tenant, identity, budget, bytes: &bytes }).await
        });
        let component = loaded.await?;
        if let Ok(cache) = &self.own.cache {
            cache.used(digest, tenant);
        }
        memory.shrink(component.code);
        Ok(Some(HeldComponent { component, memory: Some(memory) }))
    }

    /// Compiles a component of a blueprint into the cache where it is not there: those that wait for the compiler have neither its
    /// bytes nor its code in memory (C-302). Where there is no cache, or it cannot be written, it is compiled when it is loaded.
    /// Whether it is there.
    async fn compile_ahead(&self, asked: BundledComponent<'_>, digest: &str) -> Result<bool, Error> {
        let BundledComponent { tenant, identity, .. } = asked;
        let own = &self.own;
        let Ok(cache) = &own.cache else { return Ok(false) };
        let is_there = || self.recent.knows(digest) || cache.size(digest).is_some();
        if is_there() {
            return Ok(true);
        }
        own.slow.may_begin(digest)?;
        // What has to be fetched is on the disk from here on: with the turn of the compiler nobody's server is waited for.
        drop(asked.read().await?);
        let _turn = lending(own.compiling.acquire(tenant)).await;
        if is_there() {
            return Ok(true);
        }
        let Some(bytes) = asked.read_at_once().await else { return Err(Error::Busy { what: "memory" }) };
        let inspection = off_the_executor(|| inspect::inspect(&bytes))?;
        inspection.check()?;
        if inspection.digest != digest {
            let message = format!("{} has changed while it was read; it is read again", identity.name);
            return Err(Error::NotRead(Fault::later(Code::ConfigurationProblem, message)));
        }
        self.compile_and_keep(own, (tenant, identity), digest, ReadBytes::Plain(bytes)).await?;
        Ok(is_there())
    }

    /// Memory for a component of a blueprint, when its namespace has its turn.
    pub(super) async fn bundled_memory(&self, tenant: &Tenant, bytes: u64) -> Result<BundledMemory, Error> {
        let held = lending(self.of_blueprints.acquire(tenant, bytes)).await;
        // More than a namespace may have counts as that, so that there is room for it beside other calls.
        let shared = Arc::clone(&self.memory);
        match shared.take(held.bytes() as usize) {
            true => Ok(BundledMemory { held, shared }),
            false => Err(Error::Busy { what: "memory" }),
        }
    }

    /// Compiles into the cache, for images that come with it filled. Answers the file.
    ///
    /// # Errors
    ///
    /// Why it is unusable; [`Error::Cache`] where there is no cache or it cannot be written.
    pub async fn fill_cache(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        self.fill(bytes, async || {
            let _turn = self.registered.compiling.acquire(&None).await;
            self.compile(&self.registered, &None, name, bytes).await
        })
        .await
    }

    /// The same in this process, without the limits of a compiler (C-246): for components that are trusted, where an emulator cannot
    /// start this program once more.
    ///
    /// # Errors
    ///
    /// As [`fill_cache`](Self::fill_cache).
    pub async fn fill_cache_in_process(&self, bytes: &[u8]) -> Result<PathBuf, Error> {
        self.fill(bytes, async || off_the_executor(|| compile::compile_in_process(CodeCounts::Nothing, bytes))).await
    }

    async fn fill(
        &self,
        bytes: &[u8],
        compile: impl AsyncFnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<PathBuf, Error> {
        inspect::inspect(bytes)?.check()?;
        let digest = digest::sha256(bytes);
        let cache = self.registered.cache.as_ref().map_err(CacheError::clone)?;
        if cache.get(&digest, &None).is_none() {
            cache.put(&digest, &None, &compile().await?)?;
        }
        Ok(cache.file(&digest))
    }

    /// Loads a component: from the cache, or compiled in a process of its own.
    pub(crate) async fn load(&self, asked: AskedComponent<'_>) -> Result<Component, Error> {
        let AskedComponent { origin, tenant, identity, budget, bytes, .. } = asked;
        let inspection = off_the_executor(|| inspect::inspect(bytes.read()?.as_ref()))?;
        inspection.check()?;
        let digest = identity.digest.as_str();
        let mut is_damaged = false;
        if let Some(code) = self.code_there(asked, &inspection, is_damaged).await? {
            match self.link(origin, tenant, budget, inspection.clone(), code.clone()).await {
                Err(Error::Compile { why }) => {
                    tracing::warn!(digest, why, "a compiled component in the cache is damaged; it is compiled again");
                    asked.slot.forget_unchecked(&code);
                    is_damaged = true;
                }
                linked => return linked,
            }
        }
        let code = self.compiled(asked, &inspection, is_damaged).await?;
        self.link(origin, tenant, budget, inspection, code).await
    }

    fn of_origin(&self, origin: ComponentOrigin) -> &OriginCompiler {
        match origin {
            ComponentOrigin::Builtin | ComponentOrigin::Registered => &self.registered,
            ComponentOrigin::Blueprint => &self.own,
        }
    }

    /// Code that was compiled before, by whomever; not that of the cache where it is damaged.
    async fn code_there(
        &self,
        asked: AskedComponent<'_>,
        inspection: &Inspection,
        is_damaged: bool,
    ) -> Result<Option<UncheckedCode>, Error> {
        let _reading = asked.slot.reading().await;
        let cache = self.of_origin(asked.origin).cache.as_ref().ok().filter(|_| !is_damaged);
        let (None, Some(cache)) = (asked.slot.unchecked(), cache) else { return Ok(asked.slot.unchecked()) };
        let read = || {
            let code = cache.get(&inspection.digest, asked.tenant);
            code.map(|code| self.unchecked(asked.origin, inspection, code)).transpose()
        };
        let code = off_the_executor(read)?;
        if let Some(code) = &code {
            asked.slot.keep_unchecked(code);
        }
        Ok(code)
    }

    /// Compiles it, when the namespace has its turn, where nobody else has done so meanwhile.
    pub(super) async fn compiled(
        &self,
        asked: AskedComponent<'_>,
        inspection: &Inspection,
        is_damaged: bool,
    ) -> Result<UncheckedCode, Error> {
        let AskedComponent { slot, origin, tenant, identity, bytes, .. } = asked;
        let (of_origin, digest) = (self.of_origin(origin), inspection.digest.as_str());
        of_origin.slow.may_begin(digest)?;
        let _turn = lending(of_origin.compiling.acquire(&origin.whose(tenant))).await;
        if let Some(code) = self.code_there(asked, inspection, is_damaged).await? {
            return Ok(code);
        }
        let bytes = off_the_executor(|| bytes.read())?;
        let compiled = self.compile_and_keep(of_origin, (tenant, identity), digest, bytes).await?;
        let code = off_the_executor(|| self.unchecked(origin, inspection, compiled))?;
        slot.keep_unchecked(&code);
        Ok(code)
    }

    /// Compiles into the cache, where there is one. Whoever calls it has the turn of the origin.
    pub(super) async fn compile_and_keep(
        &self,
        of_origin: &OriginCompiler,
        (tenant, identity): (&Tenant, &PluginIdentity),
        digest: &str,
        bytes: ReadBytes,
    ) -> Result<Vec<u8>, Error> {
        // The one that had the turn before may have found that it takes too long.
        of_origin.slow.may_begin(digest)?;
        let compiled = self.compile(of_origin, tenant, &identity.to_string(), bytes).await;
        let compiled = of_origin.slow.ended(digest, compiled)?;
        if let Ok(cache) = &of_origin.cache
            && let Err(error) = off_the_executor(|| cache.put(digest, tenant, &compiled))
        {
            tracing::warn!(%error, "the next start compiles again");
        }
        Ok(compiled)
    }

    /// Compiled code where its calls run: in memory once.
    fn unchecked(
        &self,
        origin: ComponentOrigin,
        inspection: &Inspection,
        compiled: Vec<u8>,
    ) -> Result<UncheckedCode, Error> {
        let is_inside = match self.isolation {
            CallIsolation::Nothing => true,
            CallIsolation::Untrusted => origin == ComponentOrigin::Builtin,
            CallIsolation::All => false,
        };
        if is_inside {
            return Ok(UncheckedCode::Inside(Arc::new(compiled)));
        }
        let code = CompiledCode::new(&inspection.digest, inspection.interfaces(), &compiled);
        let no_room = |error: io::Error| Error::WorkerStart { why: format!("its code has no room: {error}") };
        Ok(UncheckedCode::Worker(Arc::new(code.map_err(no_room)?.measured(self.costs()))))
    }

    /// A component of compiled code, once it was checked where its calls run.
    pub(super) async fn link(
        &self,
        origin: ComponentOrigin,
        tenant: &Tenant,
        budget: &Budget,
        inspection: Inspection,
        code: UncheckedCode,
    ) -> Result<Component, Error> {
        match code {
            UncheckedCode::Inside(code) => {
                off_the_executor(|| Component::inside(&self.engine, &self.linker, inspection, &code))
            }
            UncheckedCode::Worker(code) => {
                let whose = origin.whose(tenant);
                let place = match origin {
                    ComponentOrigin::Blueprint => timeout(LONGEST_ROOM, self.workers.place(&whose)).await,
                    ComponentOrigin::Builtin | ComponentOrigin::Registered => Ok(self.workers.place(&whose).await),
                };
                let _place = place.map_err(|_| Error::Busy { what: "room" })?;
                self.workers.check(tenant, &code, budget).await?;
                Ok(Component { inspection, code: code.length, place: CallPlace::Worker(code) })
            }
        }
    }

    /// Whoever calls it has the turn of the origin.
    pub(super) async fn compile(
        &self,
        of_origin: &OriginCompiler,
        tenant: &Tenant,
        name: &str,
        bytes: impl AsRef<[u8]>,
    ) -> Result<Vec<u8>, Error> {
        let _share = lending(self.compilers.acquire(&of_origin.origin.whose(tenant))).await;
        let most = match of_origin.origin {
            ComponentOrigin::Builtin | ComponentOrigin::Registered => compile::MOST_CODE,
            ComponentOrigin::Blueprint => MOST_CODE_OF_ONE,
        };
        if bytes.as_ref().len() <= LARGE_COMPONENT {
            return compile::compile(&self.worker, self.counts(), bytes, most).await;
        }
        (self.notice)(&format!(
            "compiling {name}, once for this version of it and of this host; that takes some seconds"
        ));
        let begin = Instant::now();
        let compiled = compile::compile(&self.worker, self.counts(), bytes, most).await?;
        (self.notice)(&format!("compiled {name} in {:.1} s", begin.elapsed().as_secs_f64()));
        Ok(compiled)
    }
}
