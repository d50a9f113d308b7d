//! One component, compiled: what is kept per digest.

use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use wasmtime::{
    Engine,
    component::{Component as Code, Linker},
};

use crate::{
    capability::Guest,
    error::Error,
    export::{ExportedFunctions, Interface},
    inspect::Inspection,
    worker::CompiledCode,
};

/// A component that can be called.
pub struct Component {
    pub(crate) inspection: Inspection,
    pub(crate) place: CallPlace,
    /// Bytes of its machine code.
    pub(crate) code: usize,
}

/// Where a component's calls run.
pub(crate) enum CallPlace {
    /// In this process.
    Inside(Box<ExportedFunctions<Guest>>),
    /// In processes of their own. This one has never loaded the code.
    Worker(Arc<CompiledCode>),
}

impl Component {
    /// Loads compiled code into this process, and checks its imports and exports against the contract.
    pub(crate) fn inside(
        engine: &Engine,
        linker: &Linker<Guest>,
        inspection: Inspection,
        code: &[u8],
    ) -> Result<Self, Error> {
        #[expect(
            unsafe_code,
            reason = "the code was made by our own compiler: now, or sealed in a folder that only we write"
        )]
        // SAFETY: `code` comes from `compile` or, with its seal checked, from `Cache`; see `cache` for why that is ours.
        let code =
            unsafe { Code::deserialize(engine, code) }.map_err(|error| Error::Compile { why: format!("{error:#}") })?;
        let size = code.image_range();
        let size = size.end.addr().saturating_sub(size.start.addr());
        let exports = ExportedFunctions::link(linker, &inspection.interfaces(), &code)?;
        Ok(Self { inspection, place: CallPlace::Inside(Box::new(exports)), code: size })
    }

    /// What is known of its bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Whether it exports an interface that the host calls.
    pub(crate) fn exports(&self, interface: Interface) -> bool {
        self.inspection.exports_interface(interface.name())
    }
}

/// A component by its digest: not asked for yet, being loaded, usable, or unusable for a reason.
#[derive(Default)]
pub(crate) struct Slot {
    known: OnceLock<Result<Arc<Component>, Arc<Error>>>,
    /// Protects loading: it is done once, by whoever comes first.
    loading: Mutex<()>,
    /// Stands for the code of a component that is not there.
    #[cfg(test)]
    pretended: OnceLock<usize>,
}

impl Slot {
    /// Bytes of machine code that it holds.
    pub(crate) fn code(&self) -> usize {
        #[cfg(test)]
        if let Some(pretended) = self.pretended.get() {
            return *pretended;
        }
        self.known.get().and_then(|known| known.as_ref().ok()).map_or(0, |component| component.code)
    }

    /// Holds this many bytes of code from now on, as far as [`Slot::code`] is asked.
    #[cfg(test)]
    pub(crate) fn pretend(&self, code: usize) {
        self.pretended.set(code).unwrap();
    }

    /// The component, or why it is unusable. A reason that may pass by itself is not remembered.
    pub(crate) async fn get_or_load(
        &self,
        load: impl AsyncFnOnce() -> Result<Component, Error>,
    ) -> Result<Arc<Component>, Arc<Error>> {
        if let Some(known) = self.known.get() {
            return known.clone();
        }
        let _loading = self.loading.lock().await;
        if let Some(known) = self.known.get() {
            return known.clone();
        }
        match load().await {
            Err(error) if error.is_transient() => Err(Arc::new(error)),
            loaded => self.known.get_or_init(|| loaded.map(Arc::new).map_err(Arc::new)).clone(),
        }
    }
}
