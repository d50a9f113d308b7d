//! Calls whose reads are noted: to be kept (C-340), or to be made with a candidate as well (C-344).

use std::sync::Arc;

use orangery_apply::Purpose;
use orangery_core::error::Fault;
use orangery_proposal::{
    Item, Proposal,
    recorded::{CalledFunction, RecordedRequest},
};
use orangery_turns::off_the_executor;

use super::{
    GatheredItem,
    recording::{NotedCall, RecordingReads},
    shadow::{ShadowedCall, not_comparable},
};
use crate::{
    call_records::{CallRecording, CallRecords},
    candidates::CandidateTurn,
    hidden_call::hidden_call,
};

/// A call whose reads are noted, and what for.
pub(super) struct NotedCallReads {
    pub(super) reads: Arc<RecordingReads>,
    records: Option<Arc<dyn CallRecords>>,
    candidate: Option<CandidateTurn>,
}

impl GatheredItem {
    /// What notes the reads of the call that begins now; `None` where nobody wants to know them.
    pub(super) fn noted_call(&self) -> Option<NotedCallReads> {
        let records = self.host.call_records(self.deployer.identity(), &self.key.namespace);
        let candidate = self.host.candidates.sample(self.deployer.identity());
        if records.is_none() && candidate.is_none() {
            return None;
        }
        let held = self.host.noted.none_of(&Some(self.key.namespace.clone()));
        Some(NotedCallReads { reads: RecordingReads::over(self.reads(), held), records, candidate })
    }

    /// Has a candidate make a call that has ended, and keeps it. Why it cannot be kept is logged.
    pub(super) async fn keep(
        &self,
        noted: NotedCallReads,
        purpose: Purpose,
        item: Item,
        answer: &Result<Option<Proposal>, Fault>,
    ) {
        let NotedCallReads { reads, records, candidate } = noted;
        let call = match purpose {
            Purpose::Install => CalledFunction::Plan,
            Purpose::Uninstall => CalledFunction::Uninstall,
        };
        // A component that has nothing to say about a deletion was not called.
        let Some(answer) = answer.clone().transpose() else { return };
        if let Some(turn) = candidate {
            let request = RecordedRequest { call, item: item.clone(), reads: Vec::new(), artifacts: Vec::new() };
            self.shadow(turn, purpose, request, answer.clone(), &reads);
        }
        let Some(records) = records else { return };
        let kept = async {
            // What it holds is free again when it is kept.
            let NotedCall { reads, artifacts, content, held: _held, .. } =
                reads.noted().await.map_err(str::to_owned)?;
            let request = RecordedRequest { call, item, reads, artifacts };
            let hidden = hidden_call(&self.host, &self.key.namespace, request, answer.into(), None).await;
            let record = CallRecording {
                component: self.deployer.identity().clone(),
                namespace: self.key.namespace.clone(),
                item: self.key.name.clone(),
                function: match call {
                    CalledFunction::Plan => "plan",
                    CalledFunction::Uninstall => "uninstall",
                },
                at: self.host.clock.now(),
                call: hidden.map_err(|why| why.to_string())?,
                content,
            };
            off_the_executor(|| records.keep(record));
            Ok::<_, String>(())
        };
        if let Err(why) = kept.await {
            tracing::warn!(item = %self.key, why, "a call is not recorded");
        }
    }

    /// Has a candidate make a call that has ended; the job does not wait for it.
    fn shadow(
        &self,
        turn: CandidateTurn,
        purpose: Purpose,
        request: RecordedRequest,
        answer: Result<Proposal, Fault>,
        reads: &RecordingReads,
    ) {
        match reads.answers() {
            Some(noted) => {
                let request = RecordedRequest { reads: noted.reads.clone(), ..request };
                let call =
                    ShadowedCall { host: Arc::clone(&self.host), item: Arc::clone(&self.item), request, answer, noted };
                tokio::spawn(call.make(turn, purpose));
            }
            None => not_comparable(&self.host, turn, &self.key),
        }
    }
}
