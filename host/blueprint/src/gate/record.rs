//! What is remembered of gate expressions during a job, and when one is not waited for any longer.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{GateExpressions, GateResult};
use orangery_core::{
    duration::{self, deadline},
    error::{Code, Failure},
    workflow::{Answer, Answers, GateKind},
};

/// What is remembered of a gate expression during a job, and shown (WF-09).
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// What it answered last.
    pub answered: GateResult,
    /// Since when it has answered so.
    pub since: Timestamp,
    /// When it was asked first in this job: the time that it is waited for counts from here.
    pub asked: Timestamp,
}

impl GateRecord {
    /// The record after another answer.
    pub fn following(before: Option<&GateRecord>, answered: GateResult, now: Timestamp) -> Self {
        match before {
            Some(before) if before.answered.answer == answered.answer => {
                Self { answered, since: before.since, asked: before.asked }
            }
            Some(before) => Self { answered, since: now, asked: before.asked },
            // The status has whole seconds: rounded up, nobody is given up before his time.
            None => Self { answered, since: now, asked: whole_second(now) },
        }
    }
}

fn whole_second(time: Timestamp) -> Timestamp {
    let second = if time.subsec_nanosecond() > 0 { time.as_second() + 1 } else { time.as_second() };
    Timestamp::from_second(second).unwrap_or(time)
}

/// What an item's gate expressions say in this job: those that are set and were not asked are unknown.
pub fn answers<T>(gates: &GateExpressions<T>, records: &BTreeMap<GateKind, GateRecord>) -> Answers {
    let of = |gate: GateKind| match (gates.get(gate), records.get(&gate)) {
        (None, _) => Answer::Met,
        (Some(_), None) => Answer::Unknown,
        (Some(_), Some(record)) => record.answered.answer,
    };
    Answers {
        activate: of(GateKind::Activate),
        when: of(GateKind::When),
        ready: of(GateKind::Ready),
        deleted: of(GateKind::Deleted),
    }
}

/// Whether a gate expression is not asked again in this job: an item that was decided upon stays with it, one that was ready or
/// gone is not waited for again, however often what the gate expression looks at changes.
pub fn is_settled(gate: GateKind, record: &GateRecord) -> bool {
    match (gate, record.answered.answer) {
        (GateKind::Activate | GateKind::When, Answer::Met | Answer::NotMet) => true,
        (GateKind::Ready | GateKind::Deleted, Answer::Met) => true,
        (_, Answer::Unknown) | (GateKind::Ready | GateKind::Deleted, Answer::NotMet) => false,
    }
}

/// Why a gate expression that does not let its item go on is not waited for any longer; `None` while it is. `may_change`: whether
/// its answer can become another one without anything of the item's own job. `item` names it, as in `deploy item web`; `limit`
/// is its timeout.
pub fn given_up(
    item: &str,
    gate: GateKind,
    record: &GateRecord,
    may_change: bool,
    limit: Option<Duration>,
    now: Timestamp,
) -> Option<Failure> {
    if is_settled(gate, record) {
        return None;
    }
    let report = &record.answered.message;
    let failure =
        |reason: &str, why: String| Failure::new("Progressing", reason, format!("{gate} of {item} {why}: {report}"));
    if !may_change {
        let why = match record.answered.answer {
            Answer::Unknown => "cannot be told, and it looks at nothing that could change",
            Answer::Met | Answer::NotMet => "is not met, and it looks at nothing that could change",
        };
        return Some(failure("GateExpressionFailed", why.to_owned()).with_code(Code::ConfigurationProblem));
    }
    let limit = limit?;
    if now < deadline(record.asked, Some(limit))? {
        return None;
    }
    let why = format!("was not met within its timeout of {}", duration::display(limit));
    Some(failure("GateExpressionTimeout", why).with_code(Code::Timeout))
}
