//! One call: a store of its own, budgets on everything, an answer or the reason why there is none.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use orangery_blueprint::template_engine::TemplateContext;
use orangery_proposal::{deployer::Reads, grant::Grants};
use tokio::time::timeout;
use wasmtime::{
    PoolConcurrencyLimitError, Store, Trap, UpdateDeadline, WasmBacktrace,
    component::{Instance, ResourceTable, ResourceTableError},
};
use wasmtime_wasi::I32Exit;

use crate::{
    budget::{Budget, BudgetLimit},
    capability::{Guest, locked, postponed::Postponed, randomness::RandomnessState},
    component::Component,
    error::{CallStop, Error},
    meter::Meter,
    sandbox::{Sandbox, Tenant},
    transcript::Transcript,
    wasi::{self, Randomness},
};

/// What a call is made of, besides its component.
pub(crate) struct ComponentCall<'a> {
    /// For which namespace.
    pub(crate) tenant: Tenant,
    pub(crate) budget: &'a Budget,
    pub(crate) grants: Arc<Grants>,
    pub(crate) reach: CallImports,
    /// The guest's clock: since the epoch.
    pub(crate) now: Duration,
    /// Where a fault that may pass is remembered.
    pub(crate) postponed: Postponed,
    /// What the guest says.
    pub(crate) transcript: Arc<Mutex<Transcript>>,
}

/// What is behind a call's imports.
pub(crate) enum CallImports {
    /// Clusters and artifacts, and a number that all randomness follows from.
    Deployer(Reads, u64),
    /// A blueprint and what belongs to it, and what is drawn.
    Template(TemplateContext, RandomnessState),
    /// Nothing. All randomness follows from a number.
    Gate(u64),
}

/// Runs `export` in a fresh instance of the component. Nothing of the instance outlives the answer.
pub(crate) async fn run<A>(
    sandbox: &Sandbox,
    component: &Component,
    call: ComponentCall<'_>,
    export: impl for<'s> FnOnce(&'s mut Store<Guest>, Instance) -> BoxFuture<'s, wasmtime::Result<A>> + Send,
) -> Result<A, Error> {
    let _room = sandbox.enter(&call.tenant, call.budget).await;
    let ComponentCall { tenant: _, budget, grants, reach, now, postponed, transcript } = call;
    let randomness = match &reach {
        CallImports::Deployer(_, seed) => Randomness::of_number(*seed),
        CallImports::Template(_, rng) => Randomness::of_chance(rng),
        CallImports::Gate(seed) => Randomness::of_number(*seed),
    };
    let (reads, context, rng) = match reach {
        CallImports::Deployer(reads, _) => (Some(reads), None, None),
        CallImports::Template(context, rng) => (None, Some(context), Some(rng)),
        CallImports::Gate(_) => (None, None, None),
    };
    let mut table = ResourceTable::new();
    table.set_max_capacity(usize::try_from(budget.handles).unwrap_or(usize::MAX));
    let guest = Guest {
        meter: Meter::new(budget.clone(), sandbox.memory().clone(), sandbox.epochs().clone()),
        wasi: wasi::context(now, randomness, &transcript),
        transcript: transcript.clone(),
        grants,
        reads,
        context,
        rng,
        postponed,
        table,
    };
    let mut store = store(sandbox, guest, budget);
    let answer = async {
        let instance = match component.pre.instantiate_async(&mut store).await {
            Err(error) if is_sealing(&error) => component.pre.instantiate_async(&mut store).await,
            instance => instance,
        }?;
        export(&mut store, instance).await
    };
    let ended = match timeout(Duration::from_millis(budget.wall_milliseconds), answer).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => classify(&error, budget, &transcript),
        Err(_elapsed) => Error::limit(BudgetLimit::Wall, budget),
    };
    Err(ended.after(locked(&transcript).last_logged()))
}

/// Whether the machine has refused to seal the memory that instances of a component begin with. It does so where a page of it
/// is in use for a moment (`F_SEAL_WRITE` of memfd, EBUSY), which was seen under load; the next try seals it.
fn is_sealing(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().ends_with("(os error 16)")
}

fn store(sandbox: &Sandbox, guest: Guest, budget: &Budget) -> Store<Guest> {
    let mut store = Store::new(sandbox.engine(), guest);
    store.limiter(|guest| &mut guest.meter);
    let bytes = budget.output_bytes.max(budget.host_call_bytes);
    store.set_hostcall_fuel(usize::try_from(bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(usize::try_from(budget.handles).unwrap_or(usize::MAX));
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut context| {
        context.data_mut().meter.tick()?;
        Ok(UpdateDeadline::Yield(1))
    });
    store
}

/// What an error of the engine says about the call.
fn classify(error: &wasmtime::Error, budget: &Budget, transcript: &Mutex<Transcript>) -> Error {
    let wrote = || locked(transcript).last_words();
    if let Some(stop) = error.downcast_ref::<CallStop>() {
        return stop.error(budget);
    }
    if error.downcast_ref::<ResourceTableError>().is_some_and(|error| matches!(error, ResourceTableError::Full)) {
        return Error::limit(BudgetLimit::Handles, budget);
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Error::Busy { what: "instances" };
    }
    if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
        return Error::Exit { status: *status, wrote: wrote(), logged: None };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => return Error::StackOverflow { wrote: wrote(), logged: None },
        Some(trap) => return Error::Trap { reason: trap.to_string(), wrote: wrote(), logged: None },
        None => {}
    }
    // These two have no type of their own in 48.0.8; a hostile guest tests each sentence.
    let reason = error.root_cause().to_string();
    if reason.contains("fuel allocated for hostcalls has been exhausted") {
        // Frames of the guest stand behind what it passed to a host call, and not behind its answer.
        let limit = if error.is::<WasmBacktrace>() { BudgetLimit::HostCallBytes } else { BudgetLimit::Output };
        return Error::limit(limit, budget);
    }
    if reason.contains("store handle limit exceeded") {
        return Error::limit(BudgetLimit::Handles, budget);
    }
    Error::Trap { reason, wrote: wrote(), logged: None }
}
