//! One engine for the process: its settings, its room for calls, its memory of components by digest.

mod engine;
mod load;
mod share;
#[cfg(test)]
mod tests;
mod ticker;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use orangery_blueprint::plugins::CallQuotas;
use orangery_figures::ByName;
use orangery_proposal::deployer::PluginIdentity;
use orangery_turns::{SharedBytes, Tenant, Turn, Turns, lending};
use wasmtime::{Engine, component::Linker};

pub use engine::Allocator;
pub(crate) use engine::{one_call_engine, settings};
pub(crate) use load::{AskedComponent, BundledComponent, HeldComponent};
pub use share::{CacheShares, MemoryShares};
pub(crate) use ticker::{Ticker, Ticking};

use crate::{
    budget::Budget,
    bundled::Recent,
    cache::CompilationCache,
    call_figures::{CallCounts, CallFigures},
    capability::{self, Guest},
    compile::SlowCompilations,
    component::Slot,
    cost::{CallCosts, CodeCounts},
    epochs::Epochs,
    error::{CacheError, Error},
    meter::SharedMemory,
    wasi,
    worker::{WorkerCommand, Workers},
};

/// The version of the engine, for `--version` and metrics. A test compares it with the lock file.
pub const WASMTIME_VERSION: &str = "48.0.8";

/// What a [`Sandbox`] is made of.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// The program that compiles and calls components in processes of their own.
    pub worker: WorkerCommand,
    /// Which components run their calls in such processes.
    pub isolation: CallIsolation,
    /// The folder of compiled components; `None` keeps them in memory only.
    pub cache: Option<PathBuf>,
    /// How many calls run at once; more wait for their turn.
    pub calls: u32,
    /// Bytes of linear memory that all calls share.
    pub memory: usize,
    /// How many components are compiled at once, of whatever origin.
    pub compilers: usize,
    /// Bytes of machine code of components of blueprints that stay loaded.
    pub code: usize,
    /// Is told in one sentence when a large component begins to compile, and when it has ended: that takes seconds, once.
    pub notice: fn(&str),
    /// Where the costs of calls are written down, and what its code counts for that; `None` where nobody asks.
    pub costs: Option<CallCosts>,
}

impl SandboxConfig {
    /// 64 calls at once, eight of them large ones. All of them have 1 GiB, and less where the machine or the container has
    /// less to give. Notices go to the log.
    pub fn new(worker: WorkerCommand, cache: Option<PathBuf>) -> Self {
        let notice = |sentence: &str| tracing::warn!("{sentence}");
        let MemoryShares { calls: memory, compilers, caches, .. } = MemoryShares::of_machine();
        let (isolation, code) = (CallIsolation::Untrusted, caches.code);
        Self { worker, isolation, cache, calls: 64, memory, compilers, code, notice, costs: None }
    }
}

/// Which components run their calls in processes of their own, without credentials. Each is compiled in one, whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIsolation {
    /// None of them.
    Nothing,
    /// Those of blueprints, and those that do not ship with the host.
    #[default]
    Untrusted,
    /// All of them.
    All,
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

/// What was counted of calls, and what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxFigures {
    /// What calls hold at the moment.
    pub occupancy: Occupancy,
    /// Bytes of linear memory that all calls together may have.
    pub memory_limit: u64,
    /// Bytes of machine code of components of blueprints that stay loaded, and how many there may be.
    pub code: (u64, u64),
    /// The calls of each component by the name of its plugin, sorted; a bounded number of them (C-390).
    pub calls: Vec<(Arc<str>, CallCounts)>,
}

/// Loads components and gives their calls room. One per process: engines of one process share nothing.
pub struct Sandbox {
    engine: Engine,
    allocator: Allocator,
    ticker: Ticker,
    linker: Linker<Guest>,
    memory: Arc<SharedMemory>,
    memory_limit: u64,
    /// The calls by the name of their plugin.
    call_figures: ByName<CallFigures>,
    rooms: Arc<Turns>,
    /// Of these rooms, those for calls that may take much memory.
    large_rooms: Arc<Turns>,
    worker: WorkerCommand,
    isolation: CallIsolation,
    workers: Workers,
    /// Compilers that may run at once.
    compilers: Arc<Turns>,
    notice: fn(&str),
    costs: Option<CallCosts>,
    registered: OriginCompiler,
    own: OriginCompiler,
    /// The quotas of namespaces, where there are any. Held for one look.
    quotas: RwLock<Option<Arc<dyn CallQuotas>>>,
    /// Protects the registered components, usable or not, by digest. With the last of a version goes what is kept of it.
    components: Mutex<BTreeMap<(ComponentOrigin, String), Weak<Slot>>>,
    recent: Recent,
    /// Of what calls share, what components of blueprints take that are loaded or called (C-302).
    of_blueprints: Arc<SharedBytes>,
}

/// Where a component comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ComponentOrigin {
    /// It ships with the host.
    Builtin,
    /// From outside, by a registration of the operator.
    Registered,
    /// The author of a blueprint. What is kept of such components is bounded, and they wait for each other only.
    Blueprint,
}

impl ComponentOrigin {
    /// The tenant whose turns are waited for where a component is loaded: one that is registered is loaded for all, whoever was
    /// the first.
    pub(crate) fn whose(self, tenant: &Tenant) -> Tenant {
        tenant.clone().filter(|_| self == ComponentOrigin::Blueprint)
    }
}

/// How components of one origin are compiled.
struct OriginCompiler {
    origin: ComponentOrigin,
    /// One component is compiled at a time: the compiler uses all processors and much memory.
    compiling: Arc<Turns>,
    /// Where compiled components are kept, or why nowhere.
    cache: Result<CompilationCache, CacheError>,
    /// Those that are not compiled for a while.
    slow: SlowCompilations,
}

/// Bytes above which a component is large. Those in Rust have 0.1 to 1 MiB, those in Go, Python and JavaScript 8 to 20.
pub(crate) const LARGE_COMPONENT: usize = 4 << 20;
/// Memory from which on a call counts as large: engines in Go are allowed so much, components in Rust half of it.
const LARGE_MEMORY_MIB: u64 = 128;
/// One in so many rooms is for large calls.
const LARGE_SHARE: u32 = 8;

/// Components of blueprints that are loaded or called take so many quarters of the bytes that calls share: with one of the largest
/// there is room for an interpreter of another namespace.
const OF_BLUEPRINTS_QUARTERS: usize = 3;

/// The folder below the cache for components of blueprints: in one that may be a volume of its own, and then is not ours alone.
const OF_BLUEPRINTS: &str = "of-blueprints/compiled";
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
        let SandboxConfig { worker, isolation, cache, calls, memory, compilers, code, notice, costs } = config;
        let counts = costs.as_ref().map(|costs| costs.counts).unwrap_or_default();
        let (engine, allocator) = engine::start(calls, counts)?;
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
        let of_origin = |origin, cache| OriginCompiler {
            origin,
            compiling: Turns::new(1),
            cache,
            slow: SlowCompilations::default(),
        };
        let own = open(cache.as_ref().map(|folder| folder.join(OF_BLUEPRINTS)), Some(MOST_OF_BLUEPRINTS));
        let own = of_origin(ComponentOrigin::Blueprint, own);
        let configured = cache.is_some();
        let registered = open(cache, None).inspect_err(|error| {
            if configured {
                tracing::warn!(%error, "components are compiled at each start");
            }
        });
        let registered = of_origin(ComponentOrigin::Registered, registered);
        Ok(Arc::new(Self {
            ticker: Ticker::start(&engine)?,
            linker,
            engine,
            allocator,
            memory: Arc::new(SharedMemory::new(memory)),
            memory_limit: memory as u64,
            call_figures: CallFigures::by_name(),
            rooms: Turns::new(calls as usize),
            large_rooms: Turns::new(large_rooms(calls, memory)),
            workers: Workers::new(worker.clone(), MemoryShares::workers_in(memory)),
            worker,
            isolation,
            compilers: Turns::new(compilers),
            registered,
            own,
            notice,
            costs,
            recent: Recent::new(code),
            of_blueprints: SharedBytes::new((memory / 4 * OF_BLUEPRINTS_QUARTERS) as u64),
            quotas: RwLock::default(),
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

    /// What was counted of calls so far, and what they hold at the moment.
    pub fn figures(&self) -> SandboxFigures {
        let calls = self.call_figures.all().into_iter().map(|(name, figures)| (name, figures.counts())).collect();
        let code = self.recent.all_code();
        SandboxFigures { occupancy: self.occupancy(), memory_limit: self.memory_limit, code, calls }
    }

    pub(crate) fn call_figures(&self) -> &ByName<CallFigures> {
        &self.call_figures
    }

    /// Where the registered component of this digest is kept, whoever asks for it.
    pub(crate) fn slot(&self, origin: ComponentOrigin, digest: &str) -> Arc<Slot> {
        let mut components = self.components.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (origin, digest.to_owned());
        if let Some(slot) = components.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        components.retain(|_, slot| slot.strong_count() > 0);
        let slot = Arc::<Slot>::default();
        components.insert(key, Arc::downgrade(&slot));
        slot
    }

    /// Calls of namespaces wait for a place under their quotas first, from now on (C-53).
    pub(crate) fn limit_calls(&self, quotas: Arc<dyn CallQuotas>) {
        *self.quotas.write().unwrap_or_else(PoisonError::into_inner) = Some(quotas);
    }

    /// A place under the quotas of its namespace, and then room for one call, when there is some. Calls that may take much
    /// memory wait for each other first, and for nobody else: more of them at once are no faster, and their memory is what the process
    /// needs most of. No namespace takes all, and whoever waits takes no slot of the controllers (C-43).
    pub(crate) async fn enter(
        &self,
        tenant: &Tenant,
        by: &PluginIdentity,
        budget: &Budget,
    ) -> Result<RunningCall, Error> {
        let quotas = self.quotas.read().unwrap_or_else(PoisonError::into_inner).clone();
        let admitted = match (quotas, tenant) {
            (Some(quotas), Some(namespace)) => {
                Some(quotas.enter(namespace, by, budget.memory_mib).await.map_err(Error::NoPlace)?)
            }
            (None, _) | (_, None) => None,
        };
        let is_large = budget.memory_mib >= LARGE_MEMORY_MIB;
        let large = if is_large { Some(lending(self.large_rooms.acquire(tenant)).await) } else { None };
        let room = lending(self.rooms.acquire(tenant)).await;
        Ok(RunningCall { _room: room, _large: large, _admitted: admitted })
    }

    /// While this is held, the processor's clock ticks.
    pub(crate) fn tick(&self) -> Ticking<'_> {
        self.ticker.enter()
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// Where the costs of calls are written down.
    pub(crate) fn costs(&self) -> Option<&CallCosts> {
        self.costs.as_ref()
    }

    /// What its code counts.
    pub(crate) fn counts(&self) -> CodeCounts {
        self.costs.as_ref().map(|costs| costs.counts).unwrap_or_default()
    }

    pub(crate) fn epochs(&self) -> &Arc<Epochs> {
        self.ticker.epochs()
    }
}

/// Rooms for large calls: as many as have memory.
fn large_rooms(calls: u32, memory: usize) -> usize {
    let have_memory = memory / (LARGE_MEMORY_MIB << 20) as usize;
    have_memory.min((calls / LARGE_SHARE) as usize).max(1)
}

/// A call's place among those that run.
pub(crate) struct RunningCall {
    _room: Turn,
    _large: Option<Turn>,
    _admitted: Option<Box<dyn Send + Sync>>,
}
