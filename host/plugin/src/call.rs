//! One call: room for it, what is behind its imports, and where it runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use orangery_blueprint::template_engine::TemplateContext;
use orangery_proposal::{
    deployer::{PluginIdentity, Reads},
    grant::Grants,
};
use orangery_turns::Tenant;
use tokio::time::{Instant, timeout};
use wasmtime::component::ResourceTable;

use crate::{
    budget::{Budget, BudgetLimit},
    call_figures::CallFigures,
    capability::{Capabilities, Guest, locked, postponed::Postponed, randomness::RandomnessState},
    component::CallPlace,
    error::Error,
    export::{ExportAnswer, ExportRequest, ExportedFunctions},
    instance::{self, CallTerms},
    meter::Meter,
    sandbox::{HeldComponent, Sandbox},
    transcript::Transcript,
    wasi::{self, Randomness},
};

/// What a call is made of, besides its component.
pub(crate) struct ComponentCall<'a> {
    /// For which namespace: no process serves two.
    pub(crate) tenant: Tenant,
    /// Whose turns and quotas it takes.
    pub(crate) turns: Tenant,
    /// Which component it is, for messages.
    pub(crate) by: &'a PluginIdentity,
    /// Where it is counted.
    pub(crate) figures: &'a CallFigures,
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
    /// Clusters and artifacts, and what all randomness follows from.
    Deployer(Reads, Randomness),
    /// A blueprint and what belongs to it, and what is drawn.
    Template(TemplateContext, RandomnessState),
    /// Nothing. All randomness follows from a number.
    Gate(u64),
}

/// Calls an export of the component, in a fresh instance, and counts it. Nothing of the instance outlives the answer.
pub(crate) async fn run(
    sandbox: &Sandbox,
    component: &HeldComponent,
    call: ComponentCall<'_>,
    request: ExportRequest,
) -> Result<ExportAnswer, Error> {
    let (figures, begun) = (call.figures, Instant::now());
    let answer = Box::pin(answer(sandbox, component, call, request)).await;
    figures.count(&answer, begun.elapsed());
    answer
}

async fn answer(
    sandbox: &Sandbox,
    component: &HeldComponent,
    call: ComponentCall<'_>,
    request: ExportRequest,
) -> Result<ExportAnswer, Error> {
    let entered = async {
        let room = sandbox.enter(&call.turns, call.by, call.budget).await?;
        let place = match &component.place {
            CallPlace::Inside(_) => None,
            CallPlace::Worker(_) => Some(sandbox.workers().place(&call.turns).await),
        };
        Ok((room, place))
    };
    let _entered = component.waited_for(entered).await?;
    let ComponentCall { tenant, turns: _, by: _, figures: _, budget, grants, reach, now, postponed, transcript } = call;
    let (randomness, reads, context, rng) = match reach {
        CallImports::Deployer(reads, randomness) => (randomness, Some(reads), None, None),
        CallImports::Template(context, rng) => (Randomness::of_chance(&rng), None, Some(context), Some(rng)),
        CallImports::Gate(seed) => (Randomness::Number(seed), None, None, None),
    };
    let terms = CallTerms { budget: budget.clone(), now, randomness };
    let mut table = ResourceTable::new();
    table.set_max_capacity(usize::try_from(budget.handles).unwrap_or(usize::MAX));
    let meter = Meter::new(budget.clone(), sandbox.memory().clone(), sandbox.epochs().clone());
    let (transcript_of_call, costs) = (transcript.clone(), sandbox.costs().cloned());
    let capabilities =
        Capabilities { meter, transcript: transcript_of_call, grants, reads, context, rng, postponed, table, costs };
    let answer = match &component.place {
        CallPlace::Inside(exports) => inside(sandbox, exports, &terms, capabilities, &request).await,
        CallPlace::Worker(code) => sandbox.workers().call(&tenant, code, terms, capabilities, request).await,
    };
    answer.map_err(|error| error.after(locked(&transcript).last_logged()))
}

/// Runs a call in this process.
async fn inside(
    sandbox: &Sandbox,
    exports: &ExportedFunctions<Guest>,
    terms: &CallTerms,
    capabilities: Capabilities,
    request: &ExportRequest,
) -> Result<ExportAnswer, Error> {
    let _ticking = sandbox.tick();
    let CallTerms { budget, now, randomness } = terms;
    let transcript = capabilities.transcript.clone();
    let guest = Guest { wasi: wasi::context(*now, randomness.clone(), transcript.clone()), capabilities };
    let called = instance::call(sandbox.engine(), exports, guest, budget, request);
    match timeout(Duration::from_millis(budget.wall_milliseconds), called).await {
        Ok((ended, cost)) => {
            sandbox.costs().iter().for_each(|costs| costs.add(cost));
            ended.map_err(|end| end.error(budget, &transcript))
        }
        Err(_elapsed) => Err(Error::limit(BudgetLimit::Wall, budget)),
    }
}
