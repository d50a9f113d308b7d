//! One instance: a store of its own, budgets on everything, an answer or the reason why there is none.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use wasmtime::{
    Engine, PoolConcurrencyLimitError, Store, Trap, UpdateDeadline, WasmBacktrace, component::ResourceTableError,
};
use wasmtime_wasi::I32Exit;

use crate::{
    budget::{Budget, BudgetLimit},
    capability::locked,
    cost::CallCost,
    error::{CallStop, Error, SharedResource},
    export::{ExportAnswer, ExportRequest, ExportedFunctions},
    meter::Metered,
    transcript::{Transcript, escaped},
    wasi::Randomness,
};

/// What a call goes by, wherever it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallTerms {
    pub(crate) budget: Budget,
    /// The guest's clock: since the epoch.
    pub(crate) now: Duration,
    pub(crate) randomness: Randomness,
}

/// Calls an export in an instance of its own, with everything but the wall clock limited. Says what that has cost.
pub(crate) async fn call<T: Metered + Send>(
    engine: &Engine,
    exports: &ExportedFunctions<T>,
    guest: T,
    budget: &Budget,
    request: &ExportRequest,
) -> (Result<ExportAnswer, CallEnd>, CallCost) {
    let mut store = store(engine, guest, budget);
    let begin = Instant::now();
    let mut instantiate = None;
    let answer = async {
        let instance = match exports.pre.instantiate_async(&mut store).await {
            Err(error) if is_sealing(&error) => exports.pre.instantiate_async(&mut store).await,
            instance => instance,
        }?;
        instantiate = Some(begin.elapsed());
        // In a box, because the stacks of tests are nearly full.
        Box::pin(exports.call(&mut store, &instance, request)).await
    };
    let answer = answer.await.map_err(|error| CallEnd::of(&error));
    let all = begin.elapsed();
    let instantiate = instantiate.unwrap_or(all);
    let fuel = store.get_fuel().map_or(0, |left| u64::MAX - left);
    let memory = store.data_mut().meter().memory() as u64;
    (answer, CallCost { instantiate, call: all - instantiate, memory, fuel })
}

/// Whether the machine has refused to seal the memory that instances of a component begin with. It does so where a page of it
/// is in use for a moment (`F_SEAL_WRITE` of memfd, EBUSY), which was seen under load; the next try seals it.
fn is_sealing(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().ends_with("(os error 16)")
}

fn store<T: Metered + Send>(engine: &Engine, guest: T, budget: &Budget) -> Store<T> {
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| guest.meter());
    store.set_hostcall_fuel(most_passed(budget));
    store.set_max_component_handles(usize::try_from(budget.handles).unwrap_or(usize::MAX));
    // Only code that counts takes any, and it has no end of it.
    let _uncounted = store.set_fuel(u64::MAX);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut context| {
        context.data_mut().meter().tick()?;
        Ok(UpdateDeadline::Yield(1))
    });
    store
}

/// Bytes of values that one call of a function may pass between guest and host.
pub(crate) fn most_passed(budget: &Budget) -> usize {
    usize::try_from(budget.output_bytes.max(budget.host_call_bytes)).unwrap_or(usize::MAX)
}

/// The longest reason of a trap, in bytes.
const MOST_REASON: usize = 1 << 10;

/// Why a guest gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallEnd {
    /// It met a limit.
    Stop(CallStop),
    /// It ended itself with this status.
    Exit(i32),
    /// It called itself too deep.
    StackOverflow,
    /// It crashed for this reason.
    Trap(String),
}

impl CallEnd {
    /// What an error of the engine says about the call.
    pub(crate) fn of(error: &wasmtime::Error) -> Self {
        if let Some(stop) = error.downcast_ref::<CallStop>() {
            return Self::Stop(*stop);
        }
        if error.downcast_ref::<ResourceTableError>().is_some_and(|error| matches!(error, ResourceTableError::Full)) {
            return Self::Stop(CallStop::Limit(BudgetLimit::Handles));
        }
        if error.is::<PoolConcurrencyLimitError>() {
            return Self::Stop(CallStop::Busy(SharedResource::Instances));
        }
        if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
            return Self::Exit(*status);
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => return Self::StackOverflow,
            Some(trap) => return Self::Trap(trap.to_string()),
            None => {}
        }
        // These two have no type of their own in 48.0.8; a hostile guest tests each sentence.
        let reason = error.root_cause().to_string();
        if reason.contains("fuel allocated for hostcalls has been exhausted") {
            // Frames of the guest stand behind what it passed to a host call, and not behind its answer.
            let is_argument = error.is::<WasmBacktrace>();
            let limit = if is_argument { BudgetLimit::HostCallBytes } else { BudgetLimit::Output };
            return Self::Stop(CallStop::Limit(limit));
        }
        if reason.contains("store handle limit exceeded") {
            return Self::Stop(CallStop::Limit(BudgetLimit::Handles));
        }
        Self::Trap(reason)
    }

    /// The same as an error of a call with this budget and these words.
    pub(crate) fn error(self, budget: &Budget, transcript: &Mutex<Transcript>) -> Error {
        let wrote = || locked(transcript).last_words();
        match self {
            Self::Stop(stop) => stop.error(budget),
            Self::Exit(status) => Error::Exit { status, wrote: wrote(), logged: None },
            Self::StackOverflow => Error::StackOverflow { wrote: wrote(), logged: None },
            Self::Trap(reason) => Error::Trap { reason: escaped(&reason, MOST_REASON), wrote: wrote(), logged: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_workers_a_reason_of_a_crash_is_cut() {
        let transcript = Mutex::new(Transcript::new("test".into(), &Budget::default()));
        let error = CallEnd::Trap("a".repeat(MOST_REASON + 1)).error(&Budget::default(), &transcript);
        assert_eq!(error.to_string(), format!("the component crashed: {}…", "a".repeat(MOST_REASON)));
    }
}
