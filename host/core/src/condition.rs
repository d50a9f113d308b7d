//! The one place where conditions are computed: a function of phase, job, generation, halt and time (C-04, ORC-07).
//!
//! `Ready` is always present; `Reconciling` and `Stalled` only while they are true, as kstatus wants; `Progressing` says
//! whether the controller expects to be called again before the present job is settled (ORC-02, ORC-03).

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    error::{Code, Failure, LONGEST_MESSAGE, LONGEST_REPEATED, brief, cut, shown_codes},
    step::{Wait, Waiting},
};

/// The types of condition that this module owns.
pub const OWNED: [&str; 4] = ["Ready", RECONCILING, "Stalled", "Progressing"];

/// The type of the condition whose reason is the phase of a running job.
pub const RECONCILING: &str = "Reconciling";

/// The condition that tells whether `ComponentVersionOverwrites` replaced the component reference of an Installation
/// (`docs/wire.md` §3.7, §10). It says nothing of progress: kstatus and Flux pass over it.
pub const OVERWRITE: &str = "ComponentReferenceOverwrite";

/// The condition that tells whether what a deploy item has written is still as it was written (C-58). It says nothing of
/// progress: kstatus and Flux pass over it.
pub const DRIFTED: &str = "Drifted";

/// The condition of a root whose jobs are suspended (C-306). It says nothing of progress: kstatus and Flux pass over it.
pub const SUSPENDED: &str = "Suspended";

/// How the message of [`SUSPENDED`] begins.
pub const SUSPENDS: &str = "is suspended, and no job begins until it is resumed";

/// What is known of drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftReport {
    /// Nobody looks: there is no condition.
    Unwatched,
    /// All is as it was written.
    None,
    /// Something is not, in a sentence.
    Found(String),
    /// It was written again, and is not as it was written all the same, in a sentence.
    NotCorrected(String),
    /// It is not known, and why.
    Unknown(String),
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known.
    Unknown,
    /// Landscaper's fourth word, read and kept on conditions that are not ours.
    Progressing,
}

/// A condition on the wire (`docs/wire.md` §1) with the generation it speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: Status,
    /// When the status last changed.
    pub last_transition_time: Timestamp,
    /// When anything of it last changed.
    pub last_update_time: Timestamp,
    /// A CamelCase word.
    pub reason: String,
    /// For people; stable between reconciles.
    pub message: String,
    /// Error codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<Code>,
    /// The generation it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What is known of an object whose conditions are wanted. One state, one row of the table of `docs/rules.md`,
/// Conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionInput {
    /// No job ever ran, or the spec changed since the last one and nothing triggers a new one (C-05).
    AwaitingTrigger,
    /// It is being deleted, and the next job of its root uninstalls it (C-161).
    AwaitingUninstall {
        /// The name of the root.
        root: String,
    },
    /// A job runs.
    Running {
        /// The phase.
        phase: String,
        /// Why it does not go on, if it halted.
        halted: Option<Halted>,
        /// Whether the job deletes.
        deletion: bool,
    },
    /// The last job succeeded.
    Succeeded,
    /// The last job failed.
    Failed {
        /// Why.
        failure: Failure,
        /// Whether another try is scheduled (C-27).
        retry: bool,
    },
    /// The last deletion failed.
    DeleteFailed {
        /// Why.
        failure: Failure,
    },
}

/// Why a running job does not go on at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halted {
    /// It waits.
    Waiting(Wait),
    /// It is tried again after an error with this message.
    Retrying(String),
}

impl Halted {
    /// The reason of the conditions: `TransientError` or `WaitingFor<Kind>`.
    pub fn reason(&self) -> String {
        match self {
            Halted::Waiting(wait) => wait.reason(),
            Halted::Retrying(_) => "TransientError".to_owned(),
        }
    }

    /// The message of the conditions: what it waits for, or the error.
    pub fn message(&self) -> String {
        match self {
            Halted::Waiting(wait) => wait.to_string(),
            Halted::Retrying(message) => message.clone(),
        }
    }
}

/// What a status says of progress: all of it is written at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// What is waited for, at most [`crate::step::LISTED`]; empty where nothing is, or only a time.
    pub waiting_for: Vec<Waiting>,
    /// How many more are waited for.
    pub waiting_for_more: usize,
}

struct ConditionRow {
    type_: Cow<'static, str>,
    status: Status,
    reason: String,
    message: String,
    codes: Vec<Code>,
}

fn row(type_: &'static str, status: Status, reason: &str, message: &str) -> ConditionRow {
    ConditionRow {
        type_: type_.into(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        codes: Vec::new(),
    }
}

fn failed(type_: &'static str, status: Status, failure: &Failure) -> ConditionRow {
    let reason = if failure.reason.is_empty() { "Failed" } else { failure.reason.as_str() };
    ConditionRow { codes: shown_codes(&failure.codes), ..row(type_, status, reason, &failure.message) }
}

const AWAITING: &str = "no job has run for this generation; annotate the root with \
                        landscaper.gardener.cloud/operation=reconcile to start one";

/// How the message of [`ConditionInput::AwaitingUninstall`] begins.
pub const AWAITS_UNINSTALL: &str = "is being deleted; the next job of root ";

fn awaiting_uninstall(root: &str) -> String {
    format!("{AWAITS_UNINSTALL}{root} uninstalls it")
}

fn rows(state: &ConditionInput) -> Vec<ConditionRow> {
    match state {
        ConditionInput::AwaitingTrigger => vec![
            row("Ready", Status::False, "AwaitingTrigger", AWAITING),
            row("Progressing", Status::False, "AwaitingTrigger", AWAITING),
        ],
        ConditionInput::AwaitingUninstall { root } => {
            let message = awaiting_uninstall(root);
            vec![
                row("Ready", Status::False, "AwaitingTrigger", &message),
                row("Progressing", Status::False, "AwaitingTrigger", &message),
            ]
        }
        ConditionInput::Running { phase, halted, deletion } => {
            let message = halted.as_ref().map(Halted::message).unwrap_or_default();
            let progressing = halted.as_ref().map_or_else(|| phase.clone(), Halted::reason);
            let ready = if *deletion {
                row("Ready", Status::False, "Deleting", &message)
            } else {
                row("Ready", Status::Unknown, phase, &message)
            };
            vec![
                ready,
                row("Reconciling", Status::True, phase, &message),
                row("Progressing", Status::True, &progressing, &message),
            ]
        }
        ConditionInput::Succeeded => {
            vec![row("Ready", Status::True, "Succeeded", ""), row("Progressing", Status::False, "Succeeded", "")]
        }
        ConditionInput::Failed { failure, retry: true } => vec![
            ConditionRow { reason: "Failed".to_owned(), ..failed("Ready", Status::False, failure) },
            row("Reconciling", Status::True, "RetryScheduled", &failure.message),
            row("Progressing", Status::True, "RetryScheduled", &failure.message),
        ],
        ConditionInput::Failed { failure, retry: false } | ConditionInput::DeleteFailed { failure } => vec![
            failed("Ready", Status::False, failure),
            failed("Stalled", Status::True, failure),
            failed("Progressing", Status::False, failure),
        ],
    }
}

/// What the status of an object says of progress: its conditions, and what it waits for.
pub fn observe(state: &ConditionInput, generation: i64, previous: &[Condition], now: Timestamp) -> Observation {
    let wait = match state {
        ConditionInput::Running { halted: Some(Halted::Waiting(wait)), .. } => Some(wait),
        ConditionInput::Running { halted: Some(Halted::Retrying(_)) | None, .. } => None,
        ConditionInput::AwaitingTrigger
        | ConditionInput::AwaitingUninstall { .. }
        | ConditionInput::Succeeded
        | ConditionInput::Failed { .. }
        | ConditionInput::DeleteFailed { .. } => None,
    };
    let (waiting_for, waiting_for_more) = wait.map(Wait::listed).unwrap_or_default();
    Observation { conditions: conditions(state, generation, previous, now), waiting_for, waiting_for_more }
}

/// The conditions of an object: the owned ones computed, the others of `previous` kept. The order is stable, and the
/// transition time of a condition is kept while its status is.
fn conditions(state: &ConditionInput, generation: i64, previous: &[Condition], now: Timestamp) -> Vec<Condition> {
    let kept = previous.iter().filter(|condition| !OWNED.contains(&condition.type_.as_str())).cloned();
    let owned = rows(state).into_iter().map(|row| {
        let before = previous.iter().find(|condition| condition.type_ == row.type_);
        condition(row, generation, before, now)
    });
    owned.chain(kept).collect()
}

/// The same list with [`OVERWRITE`] as it is now: `report` is the sentence of an overwrite, or that there was none, where
/// the Context has overwrites; where it has none, the condition goes.
pub fn with_overwrite(
    report: Option<Result<&str, &str>>,
    generation: i64,
    previous: &[Condition],
    now: Timestamp,
) -> Vec<Condition> {
    let row = report.map(|report| match report {
        Ok(overwritten) => row(OVERWRITE, Status::True, "FoundOverwrite", overwritten),
        Err(not) => row(OVERWRITE, Status::False, "NoOverwriteDefined", not),
    });
    with_row(OVERWRITE, row, generation, previous, now)
}

/// The same list with [`SUSPENDED`] as it is now: `how` says how jobs are resumed; `None` where they are not suspended.
pub fn with_suspension(how: Option<&str>, generation: i64, previous: &[Condition], now: Timestamp) -> Vec<Condition> {
    let row = how.map(|how| row(SUSPENDED, Status::True, "Suspended", how));
    with_row(SUSPENDED, row, generation, previous, now)
}

/// The same list with [`DRIFTED`] as it is now.
pub fn with_drift(report: &DriftReport, generation: i64, previous: &[Condition], now: Timestamp) -> Vec<Condition> {
    let row = match report {
        DriftReport::Unwatched => None,
        DriftReport::None => Some(row(DRIFTED, Status::False, "AsWritten", "")),
        DriftReport::Found(what) => Some(row(DRIFTED, Status::True, "DriftDetected", what)),
        DriftReport::NotCorrected(why) => Some(row(DRIFTED, Status::True, "DriftNotCorrected", why)),
        DriftReport::Unknown(why) => Some(row(DRIFTED, Status::Unknown, "DriftUnknown", why)),
    };
    with_row(DRIFTED, row, generation, previous, now)
}

/// What a component tells of something of its own, as a condition of its item (C-209).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToldCondition {
    /// Its type, which is none of the host's.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: Status,
    /// A word.
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
}

/// Whether the host tells conditions of this type itself, of any kind.
pub fn is_of_host(type_: &str) -> bool {
    OWNED.contains(&type_) || [OVERWRITE, DRIFTED, SUSPENDED].contains(&type_)
}

/// The same list with those that a component tells now, and without those of the types `before` that it told and does not tell any
/// more. What others tell stays, and so does what the host tells.
pub fn with_told(
    told: Vec<ToldCondition>,
    before: &[String],
    generation: i64,
    previous: &[Condition],
    now: Timestamp,
) -> Vec<Condition> {
    let told: Vec<ToldCondition> = told.into_iter().filter(|told| !is_of_host(&told.type_)).collect();
    let has_ended =
        |type_: &String| !is_of_host(type_) && before.contains(type_) && !told.iter().any(|told| told.type_ == *type_);
    let mut list: Vec<Condition> = previous.iter().filter(|condition| !has_ended(&condition.type_)).cloned().collect();
    for ToldCondition { type_, status, reason, message } in told {
        let message = cut(message, LONGEST_REPEATED);
        let row = ConditionRow { type_: type_.into(), status, reason, message, codes: Vec::new() };
        match list.iter_mut().find(|condition| condition.type_ == row.type_) {
            Some(before) => *before = condition(row, generation, Some(&before.clone()), now),
            None => list.push(condition(row, generation, None, now)),
        }
    }
    list
}

/// How a component stands that is installed while the host runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginReport {
    /// It is in use as it is asked for; the text says how.
    Ready(String),
    /// Nobody works on it, since its owner says so; what is in use stays.
    Suspended(String),
    /// It is being fetched or compiled, or deleted.
    Progressing(String),
    /// Something that may pass by itself; it is tried again.
    Retrying(Failure),
    /// Only another spec or other content helps.
    Stalled(Failure),
}

/// The conditions of such a component.
pub fn of_plugin(report: &PluginReport, generation: i64, previous: &[Condition], now: Timestamp) -> Vec<Condition> {
    let rows = match report {
        PluginReport::Ready(message) => vec![row("Ready", Status::True, "Active", message)],
        PluginReport::Suspended(message) => vec![row("Ready", Status::True, "Suspended", message)],
        PluginReport::Progressing(message) => vec![
            row("Ready", Status::Unknown, "Progressing", message),
            row("Reconciling", Status::True, "Progressing", message),
        ],
        PluginReport::Retrying(failure) => vec![
            failed("Ready", Status::False, failure),
            row("Reconciling", Status::True, "RetryScheduled", &failure.message),
        ],
        PluginReport::Stalled(failure) => {
            vec![failed("Ready", Status::False, failure), failed("Stalled", Status::True, failure)]
        }
    };
    let with_age = |row: ConditionRow| {
        let before = previous.iter().find(|condition| condition.type_ == row.type_);
        condition(row, generation, before, now)
    };
    rows.into_iter().map(with_age).collect()
}

/// The same list with one condition as it is now; without it where there is none.
fn with_row(
    type_: &str,
    row: Option<ConditionRow>,
    generation: i64,
    previous: &[Condition],
    now: Timestamp,
) -> Vec<Condition> {
    let before = previous.iter().find(|condition| condition.type_ == type_);
    let now = row.map(|row| condition(row, generation, before, now));
    previous.iter().filter(|condition| condition.type_ != type_).cloned().chain(now).collect()
}

fn condition(row: ConditionRow, generation: i64, before: Option<&Condition>, now: Timestamp) -> Condition {
    let same_status = before.filter(|before| before.status == row.status);
    // A column of the parents shows it, beside `lastError` and `Ready`, which say it all (C-65).
    let message = match row.type_.as_ref() {
        "Progressing" => brief(&row.message),
        "Reconciling" | "Stalled" => cut(row.message, LONGEST_REPEATED),
        _ => cut(row.message, LONGEST_MESSAGE),
    };
    let mut condition = Condition {
        type_: row.type_.into_owned(),
        status: row.status,
        last_transition_time: same_status.map_or(now, |before| before.last_transition_time),
        last_update_time: now,
        reason: row.reason,
        message,
        codes: row.codes,
        observed_generation: Some(generation),
    };
    if let Some(before) = before {
        let aged = Condition { last_update_time: before.last_update_time, ..condition.clone() };
        if aged == *before {
            condition = aged;
        }
    }
    condition
}

#[cfg(test)]
mod rules;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::LONGEST_BRIEF, step::Until};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn failure() -> Failure {
        Failure::new("Progressing", "DeployItemsFailed", "boom").with_code(Code::Timeout)
    }

    fn line(condition: &Condition) -> String {
        format!(
            "{}={:?} {} {:?} {}",
            condition.type_,
            condition.status,
            condition.reason,
            condition.message,
            condition.codes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        )
    }

    fn table() -> String {
        let running = |halted, deletion| ConditionInput::Running { phase: "Progressing".into(), halted, deletion };
        let waiting = || Some(Halted::Waiting(Wait::on("DeployItem", "x", Until::Finished)));
        let states = [
            ("no job ever", ConditionInput::AwaitingTrigger),
            ("being deleted, and no job has come", ConditionInput::AwaitingUninstall { root: "r".into() }),
            ("running", running(None, false)),
            ("running, waiting", running(waiting(), false)),
            ("succeeded", ConditionInput::Succeeded),
            ("failed, retry", ConditionInput::Failed { failure: failure(), retry: true }),
            ("failed", ConditionInput::Failed { failure: failure(), retry: false }),
            ("deleting", running(None, true)),
            ("delete failed", ConditionInput::DeleteFailed { failure: failure() }),
        ];
        states.iter().fold(String::new(), |text, (name, state)| {
            let lines: Vec<String> = conditions(state, 1, &[], at(0)).iter().map(line).collect();
            format!("{text}{name}\n  {}\n", lines.join("\n  "))
        })
    }

    #[test]
    fn c_04_the_whole_table_of_conditions() {
        assert_eq!(table().replace(AWAITING, "…"), include_str!("condition/table.txt"));
    }

    #[test]
    fn orc_08_what_is_waited_for_is_said_while_it_is_waited_for_and_by_then_alone() {
        let running = |halted| ConditionInput::Running { phase: "Progressing".into(), halted, deletion: false };
        let waits = |count: usize| {
            let items = (0..count).map(|n| Waiting::beside("DeployItem", format!("i{n:02}"), Until::Finished));
            running(Wait::each(items).map(Halted::Waiting))
        };
        let observed = |state: &ConditionInput| {
            let observed = observe(state, 1, &[], at(0));
            assert_eq!(observed.conditions, conditions(state, 1, &[], at(0)));
            let names = observed.waiting_for.iter().map(ToString::to_string).collect::<Vec<_>>();
            (names, observed.waiting_for_more)
        };
        let one = (vec!["DeployItem i00 to finish".to_owned()], 0);
        assert_eq!(observed(&waits(1)), one);
        let (names, more) = observed(&waits(20));
        assert_eq!((names.len(), more), (16, 4));
        let others = [
            ConditionInput::AwaitingTrigger,
            ConditionInput::AwaitingUninstall { root: "r".into() },
            running(None),
            running(Some(Halted::Retrying("boom".into()))),
            running(Some(Halted::Waiting(Wait::poll(std::time::Duration::ZERO)))),
            ConditionInput::Succeeded,
            ConditionInput::Failed { failure: failure(), retry: true },
            ConditionInput::Failed { failure: failure(), retry: false },
            ConditionInput::DeleteFailed { failure: failure() },
        ];
        for state in others {
            assert_eq!(observed(&state), (vec![], 0), "{state:?}");
        }
    }

    #[test]
    fn times_move_only_with_what_they_time() {
        let first = conditions(&ConditionInput::Succeeded, 1, &[], at(1));
        assert_eq!(conditions(&ConditionInput::Succeeded, 1, &first, at(2)), first);
        let later = conditions(&ConditionInput::Succeeded, 2, &first, at(2));
        let ready = later.first().unwrap();
        assert_eq!((ready.last_transition_time, ready.last_update_time), (at(1), at(2)));
        let turned = conditions(&ConditionInput::AwaitingTrigger, 2, &later, at(3));
        assert_eq!(turned.first().unwrap().last_transition_time, at(3));
    }

    #[test]
    fn flx_23_flx_24_conditions_of_others_are_kept_and_own_stale_ones_go() {
        let foreign = Condition {
            type_: "EnsureSubInstallations".into(),
            ..conditions(&ConditionInput::Succeeded, 1, &[], at(1)).remove(0)
        };
        let failed = conditions(
            &ConditionInput::Failed { failure: failure(), retry: false },
            1,
            std::slice::from_ref(&foreign),
            at(2),
        );
        let now = conditions(&ConditionInput::Succeeded, 1, &failed, at(3));
        let kinds: Vec<&str> = now.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(kinds, ["Ready", "Progressing", "EnsureSubInstallations"]);
        assert_eq!(now.last(), Some(&foreign));
    }

    #[test]
    fn c_58_drift_is_told_beside_what_others_say_and_moves_nothing_of_progress() {
        let owned = conditions(&ConditionInput::Succeeded, 1, &[], at(1));
        let with = |report: &DriftReport| with_drift(report, 1, &owned, at(2));
        let told = |report| with(&report)[owned.len()..].iter().map(line).collect::<Vec<_>>();
        assert_eq!(told(DriftReport::None), ["Drifted=False AsWritten \"\" "]);
        assert_eq!(told(DriftReport::Found("x".into())), ["Drifted=True DriftDetected \"x\" "]);
        assert_eq!(told(DriftReport::NotCorrected("x".into())), ["Drifted=True DriftNotCorrected \"x\" "]);
        assert_eq!(told(DriftReport::Unknown("x".into())), ["Drifted=Unknown DriftUnknown \"x\" "]);
        let found = with(&DriftReport::Found("x".into()));
        assert_eq!(found[..owned.len()], owned);
        assert_eq!(with_drift(&DriftReport::Unwatched, 1, &found, at(3)), owned);
        assert_eq!(with_drift(&DriftReport::Found("x".into()), 1, &found, at(3)), found);
    }

    #[test]
    fn c_209_a_component_tells_conditions_beside_those_of_the_host_and_what_it_tells_no_more_goes() {
        let owned = conditions(&ConditionInput::Succeeded, 1, &[], at(1));
        let told = |type_: &str, status: Status, message: &str| ToldCondition {
            type_: type_.to_owned(),
            status,
            reason: "R".to_owned(),
            message: message.to_owned(),
        };
        let both = ["Init".to_owned(), "Wait".to_owned()];
        let lines = |list: &[Condition]| list[owned.len()..].iter().map(line).collect::<Vec<_>>();
        let runs = vec![told("Init", Status::Progressing, "a"), told("Wait", Status::Progressing, "b")];
        let first = with_told(runs.clone(), &[], 1, &owned, at(2));
        assert_eq!(first[..owned.len()], owned);
        assert_eq!(lines(&first), ["Init=Progressing R \"a\" ", "Wait=Progressing R \"b\" "]);
        // The same again moves nothing, and what it never told stays.
        assert_eq!(with_told(runs, &both, 1, &first, at(3)), first);
        assert_eq!(with_told(Vec::new(), &[], 1, &first, at(3)), first);
        let second = with_told(vec![told("Init", Status::True, "c")], &both, 1, &first, at(4));
        assert_eq!(lines(&second), ["Init=True R \"c\" "]);
        assert_eq!(second[owned.len()].last_transition_time, at(4));
        assert_eq!(with_told(Vec::new(), &both, 1, &second, at(4)), owned);
        // A job that ends keeps them.
        let failed = ConditionInput::Failed { failure: failure(), retry: false };
        let kept: Vec<String> = conditions(&failed, 1, &second, at(5)).iter().map(line).collect();
        assert_eq!(kept.last(), lines(&second).last());
        let of_host =
            ["Ready", "Reconciling", "Stalled", "Progressing", "Drifted", "ComponentReferenceOverwrite", "Suspended"];
        for of_host in of_host {
            let before = [of_host.to_owned()];
            assert_eq!(
                with_told(vec![told(of_host, Status::True, "x")], &before, 1, &first, at(4)),
                first,
                "{of_host}"
            );
        }
        let long = with_told(vec![told("Init", Status::True, &"x".repeat(LONGEST_REPEATED + 1))], &[], 1, &[], at(1));
        assert!(long[0].message.len() <= LONGEST_REPEATED + 30 && long[0].message.ends_with("more bytes]"), "{long:?}");
    }

    #[test]
    fn c_306_a_suspension_is_told_beside_what_others_say_and_goes_with_it() {
        let owned = conditions(&ConditionInput::Succeeded, 1, &[], at(1));
        let told = with_suspension(Some("x"), 1, &owned, at(2));
        assert_eq!(told[..owned.len()], owned);
        assert_eq!(told[owned.len()..].iter().map(line).collect::<Vec<_>>(), ["Suspended=True Suspended \"x\" "]);
        assert_eq!(with_suspension(Some("x"), 1, &told, at(3)), told);
        assert_eq!(with_suspension(None, 1, &told, at(3)), owned);
    }

    #[test]
    fn an_overwrite_is_told_beside_what_others_say_and_goes_with_the_overwrites() {
        let failed = ConditionInput::Failed { failure: failure(), retry: false };
        let owned = conditions(&failed, 1, &[], at(1));
        let lines = |list: &[Condition]| list.iter().map(line).collect::<Vec<_>>();
        let with = |report, previous: &[Condition], second| with_overwrite(report, 1, previous, at(second));
        let message = with(Some(Ok("a -> b")), &owned, 2);
        assert_eq!(message[..owned.len()], owned);
        assert_eq!(lines(&message[owned.len()..]), ["ComponentReferenceOverwrite=True FoundOverwrite \"a -> b\" "]);
        // A job that ends keeps it, and the same again does not move its times.
        let ended = conditions(&ConditionInput::Succeeded, 1, &message, at(3));
        assert_eq!(ended.last(), message.last());
        assert_eq!(with(Some(Ok("a -> b")), &ended, 4), ended);
        let not = with(Some(Err("no rule matches")), &ended, 5);
        let last = not.last().unwrap();
        assert_eq!((last.last_transition_time, not.len()), (at(5), ended.len()));
        assert_eq!(line(last), "ComponentReferenceOverwrite=False NoOverwriteDefined \"no rule matches\" ");
        assert_eq!(with(None, &not, 6), ended[..ended.len() - 1]);
    }

    #[test]
    fn c_65_limits_conditions_progressing_has_the_begin_of_a_message_and_ready_has_all_of_it() {
        let child = "execution web failed: deploy item a failed: ";
        let texts = |length: usize| {
            let message = format!("{child}{}", "ä".repeat(length - child.len()));
            let failure = Failure::new("Progressing", "SubobjectsFailed", message.clone());
            let conditions = conditions(&ConditionInput::Failed { failure, retry: false }, 1, &[], at(0));
            let texts = ["Ready", "Stalled", "Progressing"].map(|type_| {
                conditions.iter().find(|condition| condition.type_ == type_).map(|found| found.message.clone())
            });
            (message, texts.map(Option::unwrap_or_default))
        };
        let (message, shown) = texts(LONGEST_BRIEF);
        assert_eq!(shown, [message.clone(), message.clone(), message]);
        let (message, shown) = texts(LONGEST_BRIEF + 1);
        let begin = format!("{child}{}…", "ä".repeat(LONGEST_BRIEF - 1 - child.len()));
        assert_eq!((begin.chars().count(), shown), (LONGEST_BRIEF, [message.clone(), message, begin]));
    }

    #[test]
    fn a_message_of_more_than_8_kib_is_cut_at_a_character() {
        let text = |message: String| {
            let failure = Failure::new("O", "R", message);
            let conditions = conditions(&ConditionInput::DeleteFailed { failure }, 1, &[], at(0));
            conditions.into_iter().map(|condition| condition.message).collect::<Vec<_>>()
        };
        // `Ready` has it, `Stalled` its begin, `Progressing` less of it (C-65, C-144).
        let shown = |ready: String, stalled: String| vec![ready, stalled.clone(), brief(&stalled)];
        let long = format!("{} [… 7168 more bytes]", "a".repeat(1024));
        assert_eq!(text("a".repeat(1024)), shown("a".repeat(1024), "a".repeat(1024)));
        assert_eq!(text("a".repeat(8192)), shown("a".repeat(8192), long));
        let longer = format!("{} [… 7169 more bytes]", "a".repeat(1024));
        assert_eq!(text("a".repeat(8193)), shown(format!("{} [… 1 more bytes]", "a".repeat(8192)), longer));
        let two_bytes_each = format!("a{}", "ä".repeat(4096));
        let longer = format!("a{} [… 7170 more bytes]", "ä".repeat(511));
        assert_eq!(text(two_bytes_each), shown(format!("a{} [… 2 more bytes]", "ä".repeat(4095)), longer));
    }
}
