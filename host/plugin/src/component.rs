//! One component, compiled: what is kept per digest.

#[cfg(test)]
use std::sync::OnceLock;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_turns::{Tenant, lending};
use tokio::sync::SetOnce;
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

/// Compiled code that was not checked yet, where its calls would run.
#[derive(Clone)]
pub(crate) enum UncheckedCode {
    /// In this process.
    Inside(Arc<Vec<u8>>),
    /// In processes of their own.
    Worker(Arc<CompiledCode>),
}

impl UncheckedCode {
    /// Whether it is the same, and not only equal.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (UncheckedCode::Inside(code), UncheckedCode::Inside(other)) => Arc::ptr_eq(code, other),
            (UncheckedCode::Worker(code), UncheckedCode::Worker(other)) => Arc::ptr_eq(code, other),
            (UncheckedCode::Inside(_), UncheckedCode::Worker(_))
            | (UncheckedCode::Worker(_), UncheckedCode::Inside(_)) => false,
        }
    }
}

/// A component by its digest: not asked for yet, being loaded, usable, or unusable for a reason.
#[derive(Default)]
pub(crate) struct Slot {
    known: SetOnce<Result<Arc<Component>, Arc<Error>>>,
    /// Protects who loads it; held for one look.
    loading: Mutex<SlotLoading>,
    /// Protects reading its code from the cache: it is read once. Nobody waits for anything else with it.
    reading: tokio::sync::Mutex<()>,
    /// Stands for the code of a component that is not there.
    #[cfg(test)]
    pretended: OnceLock<usize>,
}

/// Those that load a component: of a blueprint one at a time for each namespace, so that nobody waits where another namespace waits,
/// in the queue of the compiler or for a worker (C-134).
#[derive(Default)]
struct SlotLoading {
    by_tenant: BTreeMap<Tenant, TenantLoading>,
    /// What one of them has compiled, for the others.
    code: Option<UncheckedCode>,
}

#[derive(Default)]
struct TenantLoading {
    asking: usize,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// One that asks for a component while it is loaded. With the last one goes the code that was not checked.
struct SlotGuard<'a> {
    slot: &'a Slot,
    tenant: &'a Tenant,
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        let mut loading = self.slot.loading();
        if let Some(own) = loading.by_tenant.get_mut(self.tenant) {
            own.asking -= 1;
            if own.asking == 0 {
                loading.by_tenant.remove(self.tenant);
            }
        }
        if loading.by_tenant.is_empty() {
            loading.code = None;
        }
    }
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

    /// Whether it is known what becomes of it.
    pub(crate) fn is_known(&self) -> bool {
        self.known.initialized()
    }

    /// Holds this many bytes of code from now on, as far as [`Slot::code`] is asked.
    #[cfg(test)]
    pub(crate) fn pretend(&self, code: usize) {
        self.pretended.set(code).unwrap();
    }

    /// The component, or why it is unusable. A reason that may pass by itself is not remembered.
    pub(crate) async fn get_or_load(
        &self,
        tenant: &Tenant,
        load: impl AsyncFnOnce() -> Result<Component, Error>,
    ) -> Result<Arc<Component>, Arc<Error>> {
        if let Some(known) = self.known.get() {
            return known.clone();
        }
        let turn = {
            let mut loading = self.loading();
            let own = loading.by_tenant.entry(tenant.clone()).or_default();
            own.asking += 1;
            Arc::clone(&own.turn)
        };
        let _guard = SlotGuard { slot: self, tenant };
        let loaded = async {
            let _turn = lending(turn.lock()).await;
            match load().await {
                Err(error) if error.is_transient() => Err(Arc::new(error)),
                loaded => {
                    // Where another namespace was faster, both have the same.
                    let _known = self.known.set(loaded.map(Arc::new).map_err(Arc::new));
                    self.known.wait().await.clone()
                }
            }
        };
        tokio::select! {
            biased;
            known = self.known.wait() => known.clone(),
            loaded = loaded => loaded,
        }
    }

    /// Waits until nobody else reads its code from the cache.
    pub(crate) async fn reading(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.reading.lock().await
    }

    /// What somebody has compiled or read, and not checked yet.
    pub(crate) fn unchecked(&self) -> Option<UncheckedCode> {
        self.loading().code.clone()
    }

    /// Keeps such code for whoever loads it meanwhile. Where nobody does, nobody would take it away again.
    pub(crate) fn keep_unchecked(&self, code: &UncheckedCode) {
        let mut loading = self.loading();
        if !loading.by_tenant.is_empty() {
            loading.code = Some(code.clone());
        }
    }

    /// Forgets this code, which is damaged.
    pub(crate) fn forget_unchecked(&self, damaged: &UncheckedCode) {
        let mut loading = self.loading();
        if loading.code.as_ref().is_some_and(|code| code.is(damaged)) {
            loading.code = None;
        }
    }

    fn loading(&self) -> MutexGuard<'_, SlotLoading> {
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use orangery_core::name::Namespace;

    use super::*;

    fn tenant(name: &'static str) -> Tenant {
        Some(Namespace::from_static(name))
    }

    /// What a component that is none ends with, for good.
    async fn loaded() -> Result<Component, Error> {
        Err(Error::Compile { why: "loaded".to_owned() })
    }

    fn message(known: Result<Arc<Component>, Arc<Error>>) -> String {
        known.err().unwrap().to_string()
    }

    #[tokio::test]
    async fn c_134_the_turns_of_another_namespace_are_not_waited_for_and_all_are_told_when_it_is_there() {
        let (slot, greedy, other) = (Slot::default(), tenant("greedy"), tenant("other"));
        let mut waits = Box::pin(slot.get_or_load(&greedy, pending::<Result<Component, Error>>));
        assert!(futures::poll!(&mut waits).is_pending());
        // In one namespace only one loads it.
        let mut behind = Box::pin(slot.get_or_load(&greedy, loaded));
        assert!(futures::poll!(&mut behind).is_pending());
        assert_eq!(message(slot.get_or_load(&other, loaded).await), "the component does not compile: loaded");
        assert_eq!(message(waits.await), "the component does not compile: loaded");
        assert_eq!(message(behind.await), "the component does not compile: loaded");
        assert_eq!(slot.loading().by_tenant.len(), 0);
    }

    #[tokio::test]
    async fn c_134_what_was_compiled_is_kept_while_somebody_loads_it() {
        let (slot, greedy, other) = (Slot::default(), tenant("greedy"), tenant("other"));
        let code = UncheckedCode::Inside(Arc::default());
        slot.keep_unchecked(&code);
        assert!(slot.unchecked().is_none(), "nobody loads it");
        let mut waits = Box::pin(slot.get_or_load(&greedy, pending::<Result<Component, Error>>));
        assert!(futures::poll!(&mut waits).is_pending());
        let busy = slot.get_or_load(&other, async || {
            slot.keep_unchecked(&code);
            Err(Error::Busy { what: "memory" })
        });
        assert!(message(busy.await).contains("memory"));
        slot.forget_unchecked(&UncheckedCode::Inside(Arc::default()));
        assert!(slot.unchecked().is_some(), "another one was damaged");
        drop(waits);
        assert!(slot.unchecked().is_none());
    }
}
