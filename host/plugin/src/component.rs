//! One component, compiled and linked: what is kept per digest.

use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use wasmtime::{
    Engine,
    component::{Component as Code, ComponentNamedList, InstancePre, Lift, Linker, Lower, types::ComponentItem},
};

use crate::{
    bindings::{
        deployer::{
            exports::orangery::deployer::{deploy, tests, uninstall},
            orangery::deployer::{plan::Proposal, types::Fault},
        },
        gate::exports::orangery::gate::gate,
        template::exports::orangery::template::{check, template},
    },
    capability::Guest,
    error::Error,
    inspect::Inspection,
};

const DEPLOY: &str = "orangery:deployer/deploy";
const UNINSTALL: &str = "orangery:deployer/uninstall";
const TESTS: &str = "orangery:deployer/tests";
const TEMPLATE: &str = "orangery:template/template";
const CHECK: &str = "orangery:template/check";
const GATE: &str = "orangery:gate/gate";

/// A component that can be called.
pub struct Component {
    pub(crate) inspection: Inspection,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) deploy: Option<deploy::GuestIndices>,
    pub(crate) uninstall: Option<uninstall::GuestIndices>,
    pub(crate) tests: Option<tests::GuestIndices>,
    pub(crate) template: Option<template::GuestIndices>,
    pub(crate) check: Option<check::GuestIndices>,
    pub(crate) gate: Option<gate::GuestIndices>,
    /// Bytes of its machine code.
    code: usize,
}

impl Component {
    /// What is known of its bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Loads compiled code and checks its imports and exports against the contract.
    pub(crate) fn link(
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
        let misfit = |error: wasmtime::Error| Error::Link { why: format!("{error:#}") };
        let pre = linker.instantiate_pre(&code).map_err(misfit)?;
        let mut component = Self {
            inspection,
            pre,
            deploy: None,
            uninstall: None,
            tests: None,
            template: None,
            check: None,
            gate: None,
            code: size,
        };
        if component.inspection.exports_interface(DEPLOY) {
            component.check::<(&deploy::Item,), (Result<Proposal, Fault>,)>(DEPLOY, "plan")?;
            component.deploy = Some(deploy::GuestIndices::new(&component.pre).map_err(misfit)?);
        }
        if component.inspection.exports_interface(UNINSTALL) {
            component.check::<(&deploy::Item,), (Result<Proposal, Fault>,)>(UNINSTALL, "plan")?;
            component.uninstall = Some(uninstall::GuestIndices::new(&component.pre).map_err(misfit)?);
        }
        if component.inspection.exports_interface(TESTS) {
            type FoundTests = (Result<Option<Vec<tests::Test>>, Fault>,);
            component.check::<(&tests::Subject,), FoundTests>(TESTS, "find")?;
            component.tests = Some(tests::GuestIndices::new(&component.pre).map_err(misfit)?);
        }
        if component.inspection.exports_interface(TEMPLATE) {
            type Rendering = (Result<template::Rendered, template::Failure>,);
            component.check::<(&template::Request,), Rendering>(TEMPLATE, "render")?;
            component.template = Some(template::GuestIndices::new(&component.pre).map_err(misfit)?);
        }
        if component.inspection.exports_interface(CHECK) {
            component.check::<(&template::Request,), (Option<check::Findings>,)>(CHECK, "check")?;
            component.check = Some(check::GuestIndices::new(&component.pre).map_err(misfit)?);
        }
        if component.inspection.exports_interface(GATE) {
            component.check::<(&gate::GateQuestion,), (gate::Answer,)>(GATE, "evaluate")?;
            component.gate = Some(gate::GuestIndices::new(&component.pre).map_err(misfit)?);
        }
        Ok(component)
    }

    /// Whether an exported function has the types of the contract; the bindings would find out at the first call only.
    fn check<P, A>(&self, interface: &str, function: &str) -> Result<(), Error>
    where
        P: ComponentNamedList + Lower,
        A: ComponentNamedList + Lift,
    {
        let code = self.pre.component();
        let version = format!("{interface}@0.1.0");
        let found = code.get_export_index(None, &version).and_then(|index| code.get_export(Some(&index), function));
        match found {
            Some((ComponentItem::ComponentFunc(exported), _)) => exported
                .typecheck::<P, A>(&self.pre.instance_type())
                .map_err(|error| Error::Link { why: format!("`{function}` of {interface}: {error:#}") }),
            Some(_) | None => Err(Error::Link { why: format!("`{function}` of {interface} is not there") }),
        }
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
