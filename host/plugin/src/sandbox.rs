//! One engine for the process: its settings, its room for calls, its memory of components by digest.

mod engine;
mod share;
mod ticker;
mod turns;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use orangery_core::digest;
use orangery_proposal::deployer::PluginIdentity;
use tokio::sync::Semaphore;
use wasmtime::{Engine, component::Linker};

pub(crate) use engine::settings;
pub(crate) use share::Shares;
pub(crate) use ticker::Ticking;
pub(crate) use turns::Tenant;
use turns::{Turn, Turns};

use crate::{
    budget::Budget,
    bundled::Recent,
    cache::CompilationCache,
    capability::{self, Guest},
    compile::{self, CompileCommand},
    component::{Component, Slot},
    epochs::Epochs,
    error::{CacheError, Error},
    inspect,
    meter::SharedMemory,
    wasi,
};

/// The version of the engine, for `--version` and metrics. A test compares it with the lock file.
pub const WASMTIME_VERSION: &str = "48.0.8";

/// What a [`Sandbox`] is made of.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// The program that compiles components, in a process of its own.
    pub compiler: CompileCommand,
    /// The folder of compiled components; `None` keeps them in memory only.
    pub cache: Option<PathBuf>,
    /// How many calls run at once; more wait for their turn.
    pub calls: u32,
    /// Bytes of linear memory that all calls share.
    pub memory: usize,
    /// How many components are compiled at once, of whatever origin.
    pub compilers: usize,
    /// Is told in one sentence when a large component begins to compile, and when it has ended: that takes seconds, once.
    pub notice: fn(&str),
}

impl SandboxConfig {
    /// 64 calls at once, eight of them large ones. All of them have 1 GiB, and less where the machine or the container has
    /// less to give. Notices go to the log.
    pub fn new(compiler: CompileCommand, cache: Option<PathBuf>) -> Self {
        let notice = |sentence: &str| tracing::warn!("{sentence}");
        let Shares { calls: memory, is_one_compiler, .. } = Shares::of_machine();
        Self { compiler, cache, calls: 64, memory, compilers: if is_one_compiler { 1 } else { 2 }, notice }
    }
}

/// Where instances come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// Slots reserved at the start: an instance costs microseconds.
    Pooling,
    /// Memory is mapped for each instance: this machine refused the reservation.
    OnDemand {
        /// The machine's own words.
        reason: String,
    },
}

/// What calls hold at the moment; all zero when none runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Calls that run.
    pub calls: usize,
    /// Instances in the pool.
    pub instances: u64,
    /// Linear memories in the pool.
    pub memories: usize,
    /// Tables in the pool.
    pub tables: usize,
    /// Stacks in the pool.
    pub stacks: usize,
    /// Bytes of linear memory.
    pub bytes: usize,
}

/// Loads components and gives their calls room. One per process: engines of one process share nothing.
pub struct Sandbox {
    engine: Engine,
    allocator: Allocator,
    ticker: ticker::Ticker,
    linker: Linker<Guest>,
    memory: Arc<SharedMemory>,
    rooms: Arc<Turns>,
    /// Of these rooms, those for calls that may take much memory.
    large_rooms: Arc<Turns>,
    compiler: CompileCommand,
    /// Compilers that may run at once.
    compilers: Semaphore,
    notice: fn(&str),
    registered: OriginCompiler,
    own: OriginCompiler,
    /// Protects the registered components that were asked for, usable or not, by digest.
    components: Mutex<BTreeMap<String, Arc<Slot>>>,
    recent: Recent,
}

/// The owner of a component: the operator or a blueprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComponentOrigin {
    /// The operator, by a registration.
    Registered,
    /// The author of a blueprint. What is kept of such components is bounded, and they wait for each other only.
    Blueprint,
}

/// How components of one origin are compiled.
struct OriginCompiler {
    /// One component is compiled at a time: the compiler uses all processors and much memory.
    compiling: Arc<Turns>,
    /// Where compiled components are kept, or why nowhere.
    cache: Result<CompilationCache, CacheError>,
}

/// Bytes above which a component is large. Those in Rust have 0.1 to 1 MiB, those in Go, Python and JavaScript 8 to 20.
pub(crate) const LARGE_COMPONENT: usize = 4 << 20;
/// Memory from which on a call counts as large: engines in Go are allowed so much, components in Rust half of it.
const LARGE_MEMORY_MIB: u64 = 128;
/// One in so many rooms is for large calls.
const LARGE_SHARE: u32 = 8;

/// The folder below the cache for components of blueprints.
const OF_BLUEPRINTS: &str = "of-blueprints";
/// Bytes on disk of the compiled components of blueprints; those used longest ago go.
const MOST_OF_BLUEPRINTS: u64 = 2 << 30;

impl Sandbox {
    /// Starts the engine. Says once, as a warning, where the pool could not be reserved (see [`Sandbox::allocator`]) and
    /// where the cache cannot be used: calls are slower then, and each start compiles again.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`] where this machine cannot run WebAssembly at all.
    pub fn start(config: SandboxConfig) -> Result<Arc<Self>, Error> {
        let SandboxConfig { compiler, cache, calls, memory, compilers, notice } = config;
        let (engine, allocator) = engine::start(calls)?;
        if let Allocator::OnDemand { reason } = &allocator {
            tracing::warn!(reason, "calls of components are slower: the pool of instances could not be reserved");
        }
        let mut linker = Linker::new(&engine);
        let unlinked = |error: wasmtime::Error| Error::Engine { why: format!("{error:#}") };
        capability::add_to_linker(&mut linker).map_err(unlinked)?;
        wasi::add_to_linker(&mut linker).map_err(unlinked)?;
        let open = |folder: Option<PathBuf>, most| match folder {
            Some(folder) => CompilationCache::open(folder, &engine, most),
            None => Err(CacheError { folder: PathBuf::new(), why: "none is configured; name a folder".to_owned() }),
        };
        let of_origin = |cache| OriginCompiler { compiling: Turns::new(1), cache };
        let own = of_origin(open(cache.as_ref().map(|folder| folder.join(OF_BLUEPRINTS)), Some(MOST_OF_BLUEPRINTS)));
        let configured = cache.is_some();
        let registered = of_origin(open(cache, None).inspect_err(|error| {
            if configured {
                tracing::warn!(%error, "components are compiled at each start");
            }
        }));
        Ok(Arc::new(Self {
            ticker: ticker::Ticker::start(&engine)?,
            linker,
            engine,
            allocator,
            memory: Arc::new(SharedMemory::new(memory)),
            rooms: Turns::new(calls as usize),
            large_rooms: Turns::new((calls / LARGE_SHARE).max(1) as usize),
            compiler,
            compilers: Semaphore::new(compilers),
            registered,
            own,
            notice,
            recent: Recent::default(),
            components: Mutex::default(),
        }))
    }

    /// Where instances come from.
    pub fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    /// What calls hold at the moment.
    pub fn occupancy(&self) -> Occupancy {
        let calls = self.rooms.taken();
        let bytes = self.memory.used();
        match self.engine.pooling_allocator_metrics() {
            Some(pool) => Occupancy {
                calls,
                instances: pool.component_instances(),
                memories: pool.memories(),
                tables: pool.tables(),
                stacks: pool.stacks(),
                bytes,
            },
            None => Occupancy { calls, bytes, ..Occupancy::default() },
        }
    }

    /// Where the component of this digest is kept, whoever asks for it.
    pub(crate) fn slot(&self, origin: ComponentOrigin, digest: &str) -> Arc<Slot> {
        if origin == ComponentOrigin::Blueprint {
            return self.recent.slot(digest);
        }
        let mut components = self.components.lock().unwrap_or_else(PoisonError::into_inner);
        components.entry(digest.to_owned()).or_default().clone()
    }

    /// Compiles into the cache, for images that come with it filled. Answers the file.
    ///
    /// # Errors
    ///
    /// Why it is unusable; [`Error::Cache`] where there is no cache or it cannot be written.
    pub async fn fill_cache(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        inspect::inspect(bytes)?.check()?;
        let digest = digest::sha256(bytes);
        let cache = self.registered.cache.as_ref().map_err(CacheError::clone)?;
        if cache.get(&digest).is_none() {
            cache.put(&digest, &self.compile(&self.registered, &None, name, bytes).await?)?;
        }
        Ok(cache.file(&digest))
    }

    /// Loads a component: from the cache, or compiled in a process of its own.
    pub(crate) async fn load(
        &self,
        origin: ComponentOrigin,
        tenant: &Tenant,
        who: &PluginIdentity,
        bytes: &[u8],
    ) -> Result<Component, Error> {
        let of_origin = match origin {
            ComponentOrigin::Registered => &self.registered,
            ComponentOrigin::Blueprint => &self.own,
        };
        let digest = who.digest.as_str();
        let inspection = inspect::inspect(bytes)?;
        inspection.check()?;
        if let Some(compiled) = of_origin.cache.as_ref().ok().and_then(|cache| cache.get(digest)) {
            match Component::link(&self.engine, &self.linker, inspection.clone(), &compiled) {
                Ok(component) => return Ok(component),
                Err(Error::Compile { why }) => {
                    tracing::warn!(digest, why, "a compiled component in the cache is damaged; it is compiled again");
                }
                Err(error) => return Err(error),
            }
        }
        let compiled = self.compile(of_origin, tenant, &who.to_string(), bytes).await?;
        if let Ok(cache) = &of_origin.cache
            && let Err(error) = cache.put(digest, &compiled)
        {
            tracing::warn!(%error, "the next start compiles again");
        }
        Component::link(&self.engine, &self.linker, inspection, &compiled)
    }

    async fn compile(
        &self,
        of_origin: &OriginCompiler,
        tenant: &Tenant,
        name: &str,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let _turn = of_origin.compiling.acquire(tenant).await;
        let _share = self.compilers.acquire().await;
        if bytes.len() <= LARGE_COMPONENT {
            return compile::compile(&self.compiler, bytes).await;
        }
        (self.notice)(&format!(
            "compiling {name}, once for this version of it and of this host; that takes some seconds"
        ));
        let begin = Instant::now();
        let compiled = compile::compile(&self.compiler, bytes).await?;
        (self.notice)(&format!("compiled {name} in {:.1} s", begin.elapsed().as_secs_f64()));
        Ok(compiled)
    }

    /// Room for one call, when there is some. Calls that may take much memory wait for each other first, and for nobody else:
    /// more of them at once are no faster, and their memory is what the process needs most of. No namespace takes all (C-43).
    pub(crate) async fn enter(&self, tenant: &Tenant, budget: &Budget) -> RunningCall<'_> {
        let is_large = budget.memory_mib >= LARGE_MEMORY_MIB;
        let large = if is_large { Some(self.large_rooms.acquire(tenant).await) } else { None };
        let room = self.rooms.acquire(tenant).await;
        RunningCall { _ticking: self.ticker.enter(), _room: room, _large: large }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    pub(crate) fn epochs(&self) -> &Arc<Epochs> {
        self.ticker.epochs()
    }
}

/// A call's place among those that run: while it is held, the processor's clock ticks.
pub(crate) struct RunningCall<'a> {
    _ticking: Ticking<'a>,
    _room: Turn,
    _large: Option<Turn>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_engine_is_the_locked_one() {
        let lock = include_str!("../../../Cargo.lock");
        assert!(lock.contains(&format!("name = \"wasmtime\"\nversion = \"{WASMTIME_VERSION}\"\n")));
    }
}
