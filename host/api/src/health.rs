//! LsHealthCheck and CriticalProblems (`docs/wire.md` §1.5, §7.6).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema;

/// Whether the operator works. No `spec` on the wire: the fields stand at the top.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "LsHealthCheck",
    doc = "Whether the operator works.",
    plural = "lshealthchecks",
    shortname = "lshc",
    category = "orangery",
    namespaced,
    no_spec,
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status"),
    printcolumn(name = "LastUpdateTime", type_ = "date", json_path = ".lastUpdateTime")
)]
#[serde(rename_all = "camelCase")]
pub struct LsHealthCheckContent {
    /// `Ok`, `Failed` or `Init`.
    #[serde(rename = "status")]
    pub health: String,
    /// When it was looked at last.
    #[schemars(with = "schema::DateTime")]
    pub last_update_time: Time,
    /// What is wrong.
    pub description: String,
}

/// What the looks of an operator come to (C-377).
#[derive(Clone, Debug, Default)]
pub struct HealthHistory {
    /// Whether the last look failed.
    has_failed: bool,
}

/// What is told after a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthWord {
    /// All is well.
    Ok,
    /// It is not, and why.
    Failed(String),
    /// What was told before, if anything: a failure counts when the look before has failed as well.
    AsBefore,
}

impl HealthHistory {
    /// What is told after one more, which was well or failed for a reason.
    pub fn add(&mut self, found: Result<(), String>) -> HealthWord {
        let had_failed = std::mem::replace(&mut self.has_failed, found.is_err());
        match found {
            Ok(()) => HealthWord::Ok,
            Err(why) if had_failed => HealthWord::Failed(why),
            Err(_) => HealthWord::AsBefore,
        }
    }
}

impl HealthWord {
    /// What changes in an object that is there: the time in any case.
    pub fn patch(&self, now: &Time) -> Value {
        match self {
            HealthWord::AsBefore => json!({"lastUpdateTime": now}),
            HealthWord::Ok | HealthWord::Failed(_) => json!(self.content(now)),
        }
    }

    /// The content of one that is made.
    pub fn content(&self, now: &Time) -> LsHealthCheckContent {
        let (health, description) = match self {
            HealthWord::Ok => ("Ok", "ok"),
            HealthWord::Failed(why) => ("Failed", why.as_str()),
            HealthWord::AsBefore => ("Init", "ok"),
        };
        let (health, description) = (health.to_owned(), description.to_owned());
        LsHealthCheckContent { health, last_update_time: now.clone(), description }
    }
}

/// The name of the one object of kind [`CriticalProblems`], in the operator's own namespace (`docs/wire.md` §2.4).
pub const CRITICAL_PROBLEMS: &str = "critical-problems";

/// How many crashes it keeps (`docs/wire.md` §7.6).
const KEPT: usize = 10;

/// Crashes of the operator.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "landscaper.gardener.cloud",
    version = "v1alpha1",
    kind = "CriticalProblems",
    doc = "Crashes of the operator.",
    plural = "criticalproblems",
    singular = "criticalproblems",
    shortname = "cps",
    category = "orangery",
    namespaced,
    status = "CriticalProblemsStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CriticalProblemsSpec {
    /// The newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_problem: Vec<CriticalProblem>,
}

impl CriticalProblemsSpec {
    /// Adds a crash as the newest one. Where the same pod has met the same one before, it takes the place of that: one
    /// object that crashes for ever does not push out all others. Beyond ten, the oldest go.
    pub fn add(&mut self, problem: CriticalProblem) {
        let known = &mut self.critical_problem;
        known.retain(|known| known.pod_name != problem.pod_name || known.description != problem.description);
        known.push(problem);
        known.drain(..known.len().saturating_sub(KEPT));
    }
}

/// One crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriticalProblem {
    /// Where: the pod of the operator, or the machine it ran on. The original has its namespace here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// When, the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub creation_time: Option<Time>,
    /// What: the controller, the object, and the message of the panic.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalProblemsStatus {}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(pod: &str, second: i64, description: &str) -> CriticalProblem {
        let time = jiff::Timestamp::from_second(second).unwrap();
        CriticalProblem { pod_name: pod.into(), creation_time: Some(Time(time)), description: description.into() }
    }

    #[test]
    fn the_eleventh_crash_pushes_out_the_oldest() {
        let crashes: Vec<_> = (0..11).map(|number| crash("p", number, &number.to_string())).collect();
        let mut spec = CriticalProblemsSpec::default();
        crashes.iter().cloned().for_each(|crash| spec.add(crash));
        assert_eq!(spec.critical_problem, crashes[1..]);
        // Also of a list that somebody else has made longer.
        let mut spec = CriticalProblemsSpec { critical_problem: [&crashes[..], &crashes[..]].concat() };
        spec.add(crash("p", 11, "11"));
        assert_eq!(spec.critical_problem, [&crashes[2..], &[crash("p", 11, "11")]].concat());
    }

    #[test]
    fn the_same_crash_of_the_same_pod_again_is_one_entry_with_its_last_time() {
        let mut spec = CriticalProblemsSpec::default();
        for crash in [crash("p", 1, "a"), crash("q", 2, "a"), crash("p", 3, "b"), crash("p", 4, "a")] {
            spec.add(crash);
        }
        assert_eq!(spec.critical_problem, [crash("q", 2, "a"), crash("p", 3, "b"), crash("p", 4, "a")]);
    }

    #[test]
    fn c_377_a_failure_counts_when_two_looks_have_failed_and_a_success_at_once() {
        let mut history = HealthHistory::default();
        let mut add = |found: Result<(), &str>| history.add(found.map_err(str::to_owned));
        let failed = |why: &str| HealthWord::Failed(why.to_owned());
        assert_eq!(add(Ok(())), HealthWord::Ok);
        assert_eq!(add(Err("a")), HealthWord::AsBefore);
        assert_eq!(add(Ok(())), HealthWord::Ok);
        assert_eq!(add(Err("a")), HealthWord::AsBefore);
        assert_eq!(add(Err("b")), failed("b"));
        assert_eq!(add(Err("c")), failed("c"));
        assert_eq!(add(Ok(())), HealthWord::Ok);
        assert_eq!(add(Err("d")), HealthWord::AsBefore);
    }

    #[test]
    fn c_377_the_time_goes_on_whatever_is_told() {
        let now = Time(jiff::Timestamp::UNIX_EPOCH);
        let time = "1970-01-01T00:00:00Z";
        let failed = HealthWord::Failed("why".to_owned());
        let content = |status: &str, description: &str| json!({"status": status, "lastUpdateTime": time, "description": description});
        assert_eq!(HealthWord::Ok.patch(&now), content("Ok", "ok"));
        assert_eq!(failed.patch(&now), content("Failed", "why"));
        assert_eq!(HealthWord::AsBefore.patch(&now), json!({"lastUpdateTime": time}));
        assert_eq!(json!(HealthWord::AsBefore.content(&now)), content("Init", "ok"));
    }
}
