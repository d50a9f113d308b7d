//! One component, compiled and linked: what is kept per digest.

use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use wasmtime::{
    Engine,
    component::{Component as Code, InstancePre, Linker},
};

use crate::{
    bindings::{
        deployer::exports::orangery::deployer::{deploy, uninstall},
        template::exports::orangery::template::template,
    },
    capability::Guest,
    error::Error,
    inspect::Inspection,
};

/// A component that can be called.
pub struct Component {
    pub(crate) inspection: Inspection,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) deploy: Option<deploy::GuestIndices>,
    pub(crate) uninstall: Option<uninstall::GuestIndices>,
    pub(crate) template: Option<template::GuestIndices>,
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
        #[expect(unsafe_code, reason = "the code was made by our own compiler: now, or sealed in a folder that only we write")]
        // SAFETY: `code` comes from `compile` or, with its seal checked, from `Cache`; see `cache` for why that is ours.
        let code = unsafe { Code::deserialize(engine, code) }.map_err(|error| Error::Compile { why: format!("{error:#}") })?;
        let misfit = |error: wasmtime::Error| Error::Link { why: format!("{error:#}") };
        let pre = linker.instantiate_pre(&code).map_err(misfit)?;
        let exports = |name: &str| inspection.exports_interface(name);
        let deploy = exports("orangery:deployer/deploy").then(|| deploy::GuestIndices::new(&pre));
        let uninstall = exports("orangery:deployer/uninstall").then(|| uninstall::GuestIndices::new(&pre));
        let template = exports("orangery:template/template").then(|| template::GuestIndices::new(&pre));
        Ok(Self {
            deploy: deploy.transpose().map_err(misfit)?,
            uninstall: uninstall.transpose().map_err(misfit)?,
            template: template.transpose().map_err(misfit)?,
            inspection,
            pre,
        })
    }
}

/// A component by its digest: not asked for yet, being loaded, usable, or unusable for a reason.
#[derive(Default)]
pub(crate) struct Slot {
    known: OnceLock<Result<Arc<Component>, Arc<Error>>>,
    /// Protects loading: it is done once, by whoever comes first.
    loading: Mutex<()>,
}

impl Slot {
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
