//! A call of a candidate beside that of the component in use (C-344).

use std::sync::Arc;

use orangery_api::deploy_item::DeployItem;
use orangery_apply::Purpose;
use orangery_core::error::Fault;
use orangery_proposal::{
    Proposal,
    deployer::Reads,
    recorded::{HiddenCall, RecordedAnswer, RecordedRequest},
};
use orangery_reconcile::Key;

use super::noted_answers::NotedAnswers;
use crate::{
    candidates::{CandidateTurn, DIFFERS, answer_differences},
    controller_context::ControllerContext,
    event,
    hidden_call::hidden_call,
};

/// A call that has ended, for a candidate to make as well.
pub(super) struct ShadowedCall {
    pub(super) host: Arc<ControllerContext>,
    pub(super) item: Arc<DeployItem>,
    pub(super) request: RecordedRequest,
    pub(super) answer: Result<Proposal, Fault>,
    pub(super) noted: NotedAnswers,
}

impl ShadowedCall {
    /// Makes the call with a candidate, and tells the item how the answers differ. Nothing of its answer is carried out.
    pub(super) async fn make(self, turn: CandidateTurn, purpose: Purpose) {
        let Self { host, item, request, answer, noted } = self;
        let namespace = Key::of(item.as_ref()).namespace;
        let noted = Arc::new(noted);
        let reads = Reads { clusters: noted.clone(), artifacts: noted.clone(), resources: noted };
        let found = match (turn.deployer(), purpose) {
            (Some(candidate), Purpose::Install) => Some(candidate.plan(&request.item, reads).await),
            (Some(candidate), Purpose::Uninstall) => candidate.uninstall(&request.item, reads).await.transpose(),
            (None, _) => None,
        };
        let answers = match found.map(RecordedAnswer::from) {
            Some(found) => {
                let answer = RecordedAnswer::from(answer);
                let hidden = async |answer: &RecordedAnswer, other: &RecordedAnswer| -> Option<HiddenCall> {
                    hidden_call(&host, &namespace, request.clone(), answer.clone(), Some(other)).await.ok()
                };
                hidden(&answer, &found).await.zip(hidden(&found, &answer).await)
            }
            None => None,
        };
        let different = answers.map(|(in_use, found)| answer_differences(&in_use.answer, &found.answer, "a proposal"));
        if let Some(note) = host.candidates.tell(turn, &namespace, different, host.clock.now()) {
            event::tell(&host, item.as_ref(), DIFFERS, &note);
        }
    }
}

/// A call in which the component in use has asked what it was not told as a whole.
pub(super) fn not_comparable(host: &ControllerContext, turn: CandidateTurn, key: &Key) {
    host.candidates.tell(turn, &key.namespace, None, host.clock.now());
}
