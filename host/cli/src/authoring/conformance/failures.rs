//! Deletions, and calls after something failed.

use std::sync::Arc;

use orangery_core::error::{Code, Fault, Problem};
use orangery_proposal::{Item, Next, Proposal, StageFailure, check::key_of};

use super::session::{self, ConformanceSession, Shortfall};
use crate::authoring::fake_cluster::FakeCluster;

/// The most stages after which a deployment is made to end.
const MOST_STAGES: usize = 16;

const NO_UNINSTALL: &str = "the component exports no `uninstall`: the host deletes the inventory at once";

pub(super) async fn nothing_there(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let statuses = [None, session.proposal().await?.status, Some(session::foreign_status())];
    for status in statuses {
        let item = Item { status, ..session.item.clone() };
        let nothing = Arc::new(FakeCluster::default());
        if session.deletion(&item, &nothing).await?.is_none() {
            return Err(Shortfall::NotApplicable(NO_UNINSTALL.to_owned()));
        }
    }
    Ok(())
}

pub(super) async fn foreign_checkpoint(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    for checkpoint in [vec![], vec![0xff, 0, 0xfe], b"{\"version\":99}".to_vec(), vec![b'x'; 1 << 16]] {
        let item = Item { checkpoint: Some(checkpoint), ..session.item.clone() };
        let answer = session.answer(&item, None).await;
        // A fault is an answer as well.
        drop(answer.map_err(|why| format!("a checkpoint of another version: {why}"))?);
    }
    Ok(())
}

pub(super) async fn foreign_status(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let item = Item { status: Some(session::foreign_status()), ..session.item.clone() };
    match session.answer(&item, None).await.map_err(|why| format!("a status of another version: {why}"))? {
        Ok(_) | Err(Fault::Later(_)) => Ok(()),
        Err(Fault::Invalid(problem) | Fault::Denied(problem)) => Err(Shortfall::Failed(format!(
            "a status that another version has written fails the item, and no configuration helps: {problem}"
        ))),
    }
}

pub(super) async fn uninstall_after_failure(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let proposal = session.proposal().await?;
    if proposal.stages.is_empty() {
        return Err(Shortfall::NotApplicable("nothing is deployed with this sample".to_owned()));
    }
    for (index, stage) in proposal.stages.iter().enumerate().take(MOST_STAGES) {
        for writes in [0, stage.writes.len() / 2, stage.writes.len()] {
            let cluster = session.cluster();
            proposal.stages.iter().take(index).for_each(|stage| cluster.carry_out_stage(stage, usize::MAX));
            cluster.carry_out_stage(stage, writes);
            let item = Item { status: proposal.status.clone(), ..session.item.clone() };
            let ended = session.deletion(&item, &cluster).await;
            let named = |why| format!("after {writes} writes of the stage {:?}: {why}", stage.name);
            if ended.map_err(named)?.is_none() {
                return Err(Shortfall::NotApplicable(NO_UNINSTALL.to_owned()));
            }
        }
    }
    Ok(())
}

pub(super) async fn recovery(session: &ConformanceSession<'_>) -> Result<(), Shortfall> {
    let proposal = session.proposal().await?;
    let Some(checkpoint) = &proposal.recover else {
        return Err(Shortfall::NotApplicable("the proposal has no `recover`".to_owned()));
    };
    for (index, stage) in proposal.stages.iter().enumerate().take(MOST_STAGES) {
        for code in [Code::Timeout, Code::Webhook] {
            let cluster = session.cluster();
            proposal.stages.iter().take(index + 1).for_each(|stage| cluster.carry_out_stage(stage, usize::MAX));
            let problem = Problem { code, message: "the API server refuses it".to_owned(), at: None };
            let key = stage.writes.first().and_then(|write| key_of(&write.object).ok());
            let failed = StageFailure { stage: stage.name.clone(), key, problem };
            let item = Item {
                checkpoint: Some(checkpoint.clone()),
                failed: Some(failed),
                status: proposal.status.clone(),
                ..session.item.clone()
            };
            let named = |why| format!("called to recover from the stage {:?}: {why}", stage.name);
            match session.answer(&item, Some(cluster)).await.map_err(named)? {
                Ok(proposal) if claims_success_of_nothing(&proposal) => {
                    let why = "the item succeeds with nothing done about the failure; fail, or carry something out";
                    return Err(named(why.to_owned()).into());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Whether a failure is answered as if there were none.
fn claims_success_of_nothing(proposal: &Proposal) -> bool {
    proposal.stages.is_empty() && matches!(proposal.next, Next::Finish(_))
}
