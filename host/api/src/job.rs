//! The job protocol's fields, which Installation, Execution and DeployItem share (`docs/wire.md` §3.1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{condition::Condition, error::LastError, schema, waiting::WaitingFor};
use orangery_core::name::{JobId, ObjectName};

/// When a job passed its stations; diagnostic, but for `initTime` of a deploy item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransitionTimes {
    /// The object was asked to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub trigger_time: Option<Time>,
    /// It began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub init_time: Option<Time>,
    /// It began to wait for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub wait_time: Option<Time>,
    /// It ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DateTime>")]
    pub finished_time: Option<Time>,
}

/// The name in a template and the name of the object made from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamePair {
    /// The name in the template.
    #[serde(default)]
    pub spec_name: String,
    /// The object's name.
    #[serde(default)]
    #[schemars(with = "String")]
    pub object_name: ObjectName,
}

/// What the kinds of the job protocol have in common. Absent status reads as empty.
pub trait Job {
    /// The job being asked for; empty before the first.
    fn job_id(&self) -> &JobId;
    /// The job finished last; empty before the first.
    fn job_id_finished(&self) -> &JobId;
    /// The phase; empty before the first job.
    fn phase(&self) -> &str;
    /// The conditions.
    fn conditions(&self) -> &[Condition];
    /// What it waits for.
    fn waiting_for(&self) -> &[WaitingFor];
    /// How many more things it waits for.
    fn waiting_for_more(&self) -> u32;
    /// The error shown.
    fn last_error(&self) -> Option<&LastError>;
    /// INS-07: whether no job is running; the only indicator of it.
    fn job_finished(&self) -> bool {
        self.job_id() == self.job_id_finished()
    }
    /// Whether exactly this job is finished.
    fn finished_job(&self, job: &JobId) -> bool {
        self.job_id() == job && self.job_id_finished() == job
    }
}

/// Implements [`Job`] for a kind whose status has the fields of the protocol.
macro_rules! implement_job {
    ($kind:ty) => {
        impl $crate::job::Job for $kind {
            fn job_id(&self) -> &orangery_core::name::JobId {
                self.status.as_ref().map_or(orangery_core::name::JobId::EMPTY, |status| &status.job_id)
            }
            fn job_id_finished(&self) -> &orangery_core::name::JobId {
                self.status.as_ref().map_or(orangery_core::name::JobId::EMPTY, |status| &status.job_id_finished)
            }
            fn phase(&self) -> &str {
                self.status.as_ref().map_or("", |status| &status.phase)
            }
            fn conditions(&self) -> &[$crate::condition::Condition] {
                self.status.as_ref().map_or(&[], |status| &status.conditions)
            }
            fn waiting_for(&self) -> &[$crate::waiting::WaitingFor] {
                self.status.as_ref().map_or(&[], |status| &status.waiting_for)
            }
            fn waiting_for_more(&self) -> u32 {
                self.status.as_ref().map_or(0, |status| status.waiting_for_more)
            }
            fn last_error(&self) -> Option<&$crate::error::LastError> {
                self.status.as_ref().and_then(|status| status.last_error.as_ref())
            }
        }
    };
}

pub(crate) use implement_job;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::execution::Execution;

    fn execution(status: serde_json::Value) -> Execution {
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {}, "status": status})).unwrap()
    }

    #[test]
    fn ins_07_a_job_is_finished_when_both_ids_are_equal_whatever_the_phase() {
        let fresh = execution(json!(null));
        assert!(fresh.job_finished() && fresh.job_id().is_empty());
        let running = execution(json!({"jobID": "b", "jobIDFinished": "a", "phase": "Succeeded"}));
        assert!(!running.job_finished() && !running.finished_job(&"b".into()) && !running.finished_job(&"a".into()));
        let ended = execution(json!({"jobID": "b", "jobIDFinished": "b", "phase": "Progressing"}));
        assert!(ended.job_finished() && ended.finished_job(&"b".into()) && !ended.finished_job(&"a".into()));
    }
}
