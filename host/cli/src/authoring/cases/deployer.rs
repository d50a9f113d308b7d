//! The cases of a deployer.

use std::sync::Arc;

use orangery_core::error::Fault;
use orangery_plugin::Plugin;
use orangery_proposal::{
    Item, Next, Proposal,
    check::{Bounds, check},
    deployer::{Deployer, Reads},
    recorded::{CalledFunction, RecordedAnswer, RecordedRequest},
};
use serde_json::{Value, json};

use super::{CallLog, Case, Expectation, recorded_content::RecordedContent, recorded_reads::RecordedReads};
use crate::authoring::fake_cluster::FakeCluster;

/// The file with the objects of the target before the job.
const TARGET: &str = "target.yaml";
/// The file with the objects of the target after it.
const AFTER: &str = "after.yaml";
/// The most calls of a job that goes on.
pub(crate) const MOST_CALLS: usize = 32;

/// Calls the component once and holds its answer against the expected one. Where the case has a target, the job is played to
/// its end: each proposal is carried out, and the component is called again as it asks for.
pub(super) async fn run(case: &mut Case<'_>, plugin: &Plugin, log: &Arc<CallLog>) -> Result<(), String> {
    let request: RecordedRequest = case.request()?;
    let target = case.documents(TARGET)?.map(|objects| FakeCluster::of(&objects).map(Arc::new)).transpose();
    let target = target.map_err(|why| format!("{TARGET}: {why}"))?;
    let content = Arc::new(RecordedContent::read(case.folder, &request.artifacts, log.clone())?);
    let clusters = RecordedReads { reads: request.reads, target: target.clone(), log: log.clone() };
    let reads = Reads { clusters: Arc::new(clusters), artifacts: content.clone(), resources: content };
    let how = case.expectation;
    let answer = call((plugin, how), request.call, &request.item, reads.clone(), log).await?;
    case.expect(&RecordedAnswer::from(answer.clone()))?;
    if let Ok(proposal) = &answer
        && let Err(fault) = check(proposal, plugin.grants(), Bounds::default())
    {
        case.problems.push(format!("the host would refuse the proposal: {fault}"));
    }
    let mut proposals: Vec<Proposal> = answer.clone().into_iter().collect();
    if let (Some(target), Ok(first)) = (&target, &answer) {
        let rest = play((plugin, how), (request.call, &request.item), first, (target.as_ref(), reads), log).await;
        match rest {
            Ok(rest) => proposals.extend(rest),
            Err(why) => case.problems.push(why),
        }
        case.expect_documents(AFTER, &target.objects())?;
    }
    let objects = target.map(|target| target.objects()).unwrap_or_default();
    case.assert(variables(&request.item, &answer, &proposals, &objects))
}

/// What assertions can name: `proposal` and `fault` of the first call, one of them null; `proposals` of all calls of the job;
/// `objects` of the target after it; `item`.
fn variables(item: &Item, answer: &Result<Proposal, Fault>, proposals: &[Proposal], objects: &[Value]) -> Value {
    let (proposal, fault) = match RecordedAnswer::from(answer.clone()) {
        RecordedAnswer::Proposal(proposal) => (json!(proposal), Value::Null),
        RecordedAnswer::Fault(fault) => (Value::Null, json!(fault)),
    };
    json!({"item": item, "proposal": proposal, "fault": fault, "proposals": proposals, "objects": objects})
}

async fn call(
    (plugin, how): (&Plugin, Expectation),
    function: CalledFunction,
    item: &Item,
    reads: Reads,
    log: &CallLog,
) -> Result<Result<Proposal, Fault>, String> {
    let missing = || "the component does not export `uninstall`; leave the case out".to_owned();
    let answer = match function {
        // The host takes a call without an answer for a fault, and so it is recorded.
        CalledFunction::Plan if how == Expectation::IsAnswered => Ok(Deployer::plan(plugin, item, reads).await),
        CalledFunction::Uninstall if how == Expectation::IsAnswered => {
            Ok(Deployer::uninstall(plugin, item, reads).await.transpose().ok_or_else(missing)?)
        }
        CalledFunction::Plan => {
            log.note("deploy.plan");
            plugin.plan(item, reads).await
        }
        CalledFunction::Uninstall => {
            log.note("uninstall.plan");
            let answer = plugin.uninstall(item, reads).await.map_err(|error| error.to_string())?;
            Ok(answer.ok_or_else(missing)?)
        }
    };
    let answer = answer.map_err(|error| format!("there is no answer: {error}"))?;
    log.note_answer(&answer);
    Ok(answer)
}

/// Carries out a proposal and those that the component makes as it asks to be called again. Answers the others.
async fn play(
    (plugin, how): (&Plugin, Expectation),
    (function, item): (CalledFunction, &Item),
    first: &Proposal,
    (target, reads): (&FakeCluster, Reads),
    log: &CallLog,
) -> Result<Vec<Proposal>, String> {
    let mut item = item.clone();
    let mut proposals: Vec<Proposal> = Vec::new();
    for _ in 0..MOST_CALLS {
        let last = proposals.last().unwrap_or(first);
        target.carry_out(last);
        let (Next::ContinueWith(checkpoint) | Next::AgainIn { checkpoint, .. }) = &last.next else {
            return Ok(proposals);
        };
        item.checkpoint = Some(checkpoint.clone());
        item.status = last.status.clone().or(item.status);
        let answer = call((plugin, how), function, &item, reads.clone(), log).await?;
        proposals.push(answer.map_err(|fault| format!("the job does not go on: {fault}"))?);
    }
    Err(format!("the component still asks to be called again after {MOST_CALLS} calls"))
}
