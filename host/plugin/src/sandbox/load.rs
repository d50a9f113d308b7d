//! Loading a component: from the cache, or compiled in a process of its own.

use std::{io, path::PathBuf, sync::Arc, time::Instant};

use orangery_core::digest;
use orangery_proposal::deployer::PluginIdentity;
use orangery_turns::{Tenant, off_the_executor};

use super::{CallIsolation, ComponentOrigin, LARGE_COMPONENT, OriginCompiler, Sandbox};
use crate::{
    budget::Budget,
    compile,
    component::{CallPlace, Component, Slot, UncheckedCode},
    error::{CacheError, Error},
    inspect::{self, Inspection},
    registration::StoredBytes,
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

impl Sandbox {
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
            let _turn = self.registered.compiling.acquire(&None).await;
            cache.put(&digest, &self.compile(&self.registered, &None, name, bytes).await?)?;
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
            let code = cache.get(&inspection.digest);
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
        let _turn = of_origin.compiling.acquire(&origin.whose(tenant)).await;
        if let Some(code) = self.code_there(asked, inspection, is_damaged).await? {
            return Ok(code);
        }
        of_origin.slow.may_begin(digest)?;
        let bytes = off_the_executor(|| bytes.read())?;
        let compiled = self.compile(of_origin, tenant, &identity.to_string(), bytes).await;
        let compiled = of_origin.slow.ended(digest, compiled)?;
        off_the_executor(|| {
            if let Ok(cache) = &of_origin.cache
                && let Err(error) = cache.put(digest, &compiled)
            {
                tracing::warn!(%error, "the next start compiles again");
            }
            let code = self.unchecked(origin, inspection, compiled)?;
            slot.keep_unchecked(&code);
            Ok(code)
        })
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
        Ok(UncheckedCode::Worker { code: Arc::new(code.map_err(no_room)?), length: compiled.len() })
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
            UncheckedCode::Worker { code, length } => {
                self.workers.check(&origin.whose(tenant), tenant, &code, budget).await?;
                Ok(Component { inspection, place: CallPlace::Worker(code), code: length })
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
        let _share = self.compilers.acquire(&of_origin.origin.whose(tenant)).await;
        if bytes.as_ref().len() <= LARGE_COMPONENT {
            return compile::compile(&self.worker, bytes).await;
        }
        (self.notice)(&format!(
            "compiling {name}, once for this version of it and of this host; that takes some seconds"
        ));
        let begin = Instant::now();
        let compiled = compile::compile(&self.worker, bytes).await?;
        (self.notice)(&format!("compiled {name} in {:.1} s", begin.elapsed().as_secs_f64()));
        Ok(compiled)
    }
}
