//! What follows from asking a gate expression once: the record that is kept, and whether it is waited for any longer
//! (WF-02 … WF-09, C-07).

use std::time::Duration;

use jiff::Timestamp;

use crate::gate::{self, GateRecord, GateResult};
use orangery_core::duration::deadline;
use orangery_core::{
    error::Failure,
    workflow::{Answer, GateKind},
};

/// The reason of an answer about an object whose watch has only begun.
pub const NOT_KNOWN_YET: &str = "ObjectNotKnownYet";

/// A gate expression of an item, as far as asking it goes.
#[derive(Clone, Copy, Debug)]
pub struct Gate<'a> {
    /// The item in messages, as `deploy item db`.
    pub item: &'a str,
    /// Which one of the item's.
    pub kind: GateKind,
    /// How long it is waited for; `None` for ever.
    pub limit: Option<Duration>,
    /// Whether it looks at clusters, where the answer may change.
    pub looks_at_clusters: bool,
}

/// Why a gate expression got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// This may pass by itself.
    Passing(Failure),
    /// Nothing of what the expression waits for changes it.
    Lasting(Failure),
}

/// What follows from asking once.
#[derive(Clone, Debug, PartialEq)]
pub struct GateDecision {
    /// What is remembered for the job.
    pub record: GateRecord,
    /// Why it is not waited for any longer.
    pub given_up: Option<Failure>,
    /// What kept it from being asked, and may pass by itself.
    pub retry: Option<Failure>,
    /// The time until it is given up.
    pub left: Option<Duration>,
}

/// What follows from an answer at `now`; `before` is the record of this job so far.
pub fn decide(
    gate: Gate<'_>,
    before: Option<&GateRecord>,
    answer: Result<GateResult, Unanswered>,
    now: Timestamp,
) -> GateDecision {
    let (answered, unanswered) = match answer {
        Ok(answered) => (answered, None),
        Err(why @ (Unanswered::Passing(_) | Unanswered::Lasting(_))) => {
            let (Unanswered::Passing(failure) | Unanswered::Lasting(failure)) = &why;
            (GateResult::unknown(failure.reason.clone(), failure.message.clone()), Some(why))
        }
    };
    let Gate { item, kind: gate, limit, looks_at_clusters } = gate;
    let record = GateRecord::following(before, answered, now);
    let may_change = looks_at_clusters || matches!(unanswered, Some(Unanswered::Passing(_)));
    let given_up = match &unanswered {
        Some(Unanswered::Lasting(failure)) => {
            let message = format!("{gate} of {item} cannot be told: {}", failure.message);
            Some(Failure { message, ..failure.clone() })
        }
        Some(Unanswered::Passing(_)) | None => gate::given_up(item, gate, &record, may_change, limit, now),
    };
    let retry = match unanswered {
        Some(Unanswered::Passing(failure)) if given_up.is_none() => Some(failure),
        Some(_) | None => None,
    };
    let end = deadline(record.asked, limit).filter(|_| given_up.is_none() && !gate::is_settled(gate, &record));
    // A deadline that is over is no time at all.
    let left = end.map(|end| Duration::try_from(end.duration_since(now)).unwrap_or(Duration::ZERO));
    GateDecision { record, given_up, retry, left }
}

/// Whether a record of the last job has said anything: an answer that came before its watch has not.
pub fn has_answered(record: &GateRecord) -> bool {
    record.answered.reason != NOT_KNOWN_YET
}

/// Whether an expression that decided about an item in the last job answers otherwise now. Doubt is no other answer.
pub fn answers_otherwise(before: &GateRecord, now: &GateResult) -> bool {
    now.answer != Answer::Unknown && now.answer != before.answered.answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn gate(gate: GateKind, looks_at_clusters: bool) -> Gate<'static> {
        Gate { item: "deploy item db", kind: gate, limit: Some(Duration::from_secs(60)), looks_at_clusters }
    }

    fn failure(message: &str) -> Failure {
        Failure::new("AskGateExpression", "Reason", message)
    }

    fn not_met() -> GateResult {
        GateResult::new(Answer::NotMet, "No", "not yet")
    }

    #[test]
    fn wf_02_a_no_that_decides_is_settled_and_has_no_deadline() {
        let decided = decide(gate(GateKind::When, true), None, Ok(not_met()), at(0));
        assert_eq!((decided.given_up, decided.retry, decided.left), (None, None, None));
        assert_eq!(decided.record, GateRecord::following(None, not_met(), at(0)));
    }

    #[test]
    fn wf_03_what_is_not_ready_is_waited_for_until_the_limit_is_over() {
        let first = decide(gate(GateKind::Ready, true), None, Ok(not_met()), at(0));
        assert_eq!((&first.given_up, first.left), (&None, Some(Duration::from_secs(60))));
        let later = decide(gate(GateKind::Ready, true), Some(&first.record), Ok(not_met()), at(59));
        assert_eq!((&later.given_up, later.left), (&None, Some(Duration::from_secs(1))));
        let over = decide(gate(GateKind::Ready, true), Some(&first.record), Ok(not_met()), at(60));
        assert!(over.given_up.is_some() && over.left.is_none(), "{over:?}");
    }

    #[test]
    fn c_07_what_may_pass_is_tried_again_and_what_lasts_is_given_up_at_once() {
        let passing = decide(gate(GateKind::When, false), None, Err(Unanswered::Passing(failure("away"))), at(0));
        assert_eq!((passing.given_up, passing.retry), (None, Some(failure("away"))));
        assert_eq!(passing.record.answered, GateResult::unknown("Reason", "away"));
        let lasting =
            decide(gate(GateKind::When, false), None, Err(Unanswered::Lasting(failure("no such type"))), at(0));
        let expected = failure("when of deploy item db cannot be told: no such type");
        assert_eq!((lasting.given_up, lasting.retry, lasting.left), (Some(expected), None, None));
    }

    #[test]
    fn orc_33_wf_26_doubt_is_no_other_answer() {
        let record = |answered| GateRecord::following(None, answered, at(0));
        let met = || GateResult::new(Answer::Met, "Yes", "yes");
        assert!(answers_otherwise(&record(met()), &not_met()));
        assert!(!answers_otherwise(&record(met()), &met()));
        assert!(!answers_otherwise(&record(met()), &GateResult::unknown("R", "m")));
        assert!(!has_answered(&record(GateResult::unknown(NOT_KNOWN_YET, "m"))) && has_answered(&record(met())));
        assert!(answers_otherwise(&record(GateResult::unknown("R", "m")), &met()));
    }
}
