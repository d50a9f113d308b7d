//! What a guest can reach: one file per interface of `wit/`, each with its state, its view, its link and hostile input.

pub(crate) mod artifacts;
pub(crate) mod big_integers;
pub(crate) mod cluster;
pub(crate) mod components;
pub(crate) mod files;
pub(crate) mod kubeconfigs;
pub(crate) mod log;
pub(crate) mod postponed;
pub(crate) mod randomness;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use orangery_blueprint::template_engine::TemplateContext;
use orangery_proposal::{deployer::Reads, grant::Grants};
use wasmtime::component::{Linker, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::{
    bindings,
    cost::CallCosts,
    meter::{Meter, Metered},
    transcript::Transcript,
};

/// All that one call can see, but for WASI. It ends with the call.
pub(crate) struct Capabilities {
    pub(crate) meter: Meter,
    pub(crate) transcript: Arc<Mutex<Transcript>>,
    pub(crate) grants: Arc<Grants>,
    /// What a deployer may read; `None` for all others.
    pub(crate) reads: Option<Reads>,
    /// What a template may reach; `None` for deployers.
    pub(crate) context: Option<TemplateContext>,
    /// What a template draws; `None` for deployers.
    pub(crate) rng: Option<randomness::RandomnessState>,
    pub(crate) postponed: postponed::Postponed,
    /// What it holds handles of.
    pub(crate) table: ResourceTable,
    /// Where its cost is written down.
    pub(crate) costs: Option<CallCosts>,
}

/// The store's data of a call that runs in this process.
pub(crate) struct Guest {
    pub(crate) capabilities: Capabilities,
    pub(crate) wasi: WasiCtx,
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.capabilities.table }
    }
}

impl Metered for Guest {
    fn meter(&mut self) -> &mut Meter {
        &mut self.capabilities.meter
    }
}

/// The transcript, also after a panic of its holder: it is counted text, valid at any moment.
pub(crate) fn locked(transcript: &Mutex<Transcript>) -> MutexGuard<'_, Transcript> {
    transcript.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Links every interface of `wit/`; what is not granted answers so when it is called.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    add_types_to_linker(linker)?;
    log::add_to_linker(linker)?;
    cluster::add_to_linker(linker)?;
    artifacts::add_to_linker(linker)?;
    files::add_to_linker(linker)?;
    components::add_to_linker(linker)?;
    kubeconfigs::add_to_linker(linker)?;
    randomness::add_to_linker(linker)?;
    big_integers::add_to_linker(linker)
}

/// Links the interfaces that hold types only.
pub(crate) fn add_types_to_linker<T: 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    bindings::deployer::orangery::deployer::types::add_to_linker::<T, TypesOnly>(linker, |_| TypesOnlyView)?;
    bindings::deployer::orangery::deployer::plan::add_to_linker::<T, TypesOnly>(linker, |_| TypesOnlyView)
}

/// Interfaces that hold types only.
struct TypesOnlyView;

struct TypesOnly;

impl wasmtime::component::HasData for TypesOnly {
    type Data<'a> = TypesOnlyView;
}

impl bindings::deployer::orangery::deployer::types::Host for TypesOnlyView {}
impl bindings::deployer::orangery::deployer::plan::Host for TypesOnlyView {}
