//! Jobs as they end: what the stores are told, counted by kind and result.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{deploy_item::DeployItem, execution::Execution, installation::Installation, job::TransitionTimes};
use orangery_controllers::Stores;
use orangery_core::name::JobId;
use orangery_figures::{DurationCounts, Durations};
use orangery_reconcile::{ObjectChange, Store, Watched};

/// The kinds that have jobs.
const KINDS: [&str; 3] = ["Installation", "Execution", "DeployItem"];

/// How jobs end, as metrics name it. Those of other phases, which only others write, count as the last one.
const RESULTS: [&str; 5] = ["Succeeded", "Failed", "DeleteFailed", DELETED, "other"];

/// What a deletion comes to that is done: the object is gone.
const DELETED: &str = "Deleted";

/// The jobs that have ended. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct JobFigures {
    ended: Arc<[[OfResult; RESULTS.len()]; KINDS.len()]>,
}

#[derive(Debug, Default)]
struct OfResult {
    number: AtomicU64,
    durations: Durations,
}

/// The jobs of a kind that ended in one way.
pub(super) struct JobCounts {
    /// The kind and the result.
    pub(super) labels: [&'static str; 2],
    pub(super) number: u64,
    pub(super) durations: DurationCounts,
}

/// As much of a status as tells of a job.
#[derive(Clone, Copy)]
struct EndState<'a> {
    phase: &'a str,
    finished: &'a JobId,
    times: Option<&'a TransitionTimes>,
}

impl JobFigures {
    /// Counts from now on what these stores are told.
    pub(super) fn follow(&self, stores: &Stores) {
        self.follow_kind(&stores.installations, "Installation", |object: &Installation| {
            let status = object.status.as_ref()?;
            Some(EndState {
                phase: &status.phase,
                finished: &status.job_id_finished,
                times: status.transition_times.as_ref(),
            })
        });
        self.follow_kind(&stores.executions, "Execution", |object: &Execution| {
            let status = object.status.as_ref()?;
            Some(EndState {
                phase: &status.phase,
                finished: &status.job_id_finished,
                times: status.transition_times.as_ref(),
            })
        });
        self.follow_kind(&stores.deploy_items, "DeployItem", |object: &DeployItem| {
            let status = object.status.as_ref()?;
            Some(EndState {
                phase: &status.phase,
                finished: &status.job_id_finished,
                times: status.transition_times.as_ref(),
            })
        });
    }

    fn follow_kind<K: Watched>(&self, store: &Store<K>, of: &'static str, state: fn(&K) -> Option<EndState<'_>>) {
        let figures = self.clone();
        store.subscribe(move |change: &ObjectChange<'_, K>| {
            // What is known since the start alone may have ended long ago.
            let Some(before) = change.before else { return };
            figures.changed(of, state(before), change.after.map(|after| state(after)));
        });
    }

    /// An object has changed; without an `after` it is gone.
    fn changed(&self, of: &str, before: Option<EndState<'_>>, after: Option<Option<EndState<'_>>>) {
        match (before, after) {
            (Some(before), None) if is_deletion(before.phase) => self.ended(of, DELETED, None),
            (before, Some(Some(after)))
                if !after.finished.as_str().is_empty()
                    && before.is_none_or(|before| before.finished != after.finished) =>
            {
                self.ended(of, after.phase, after.times.and_then(duration));
            }
            _ => {}
        }
    }

    fn ended(&self, of: &str, result: &str, took: Option<Duration>) {
        let kind = KINDS.iter().position(|known| *known == of);
        let result = RESULTS.iter().position(|known| *known == result).unwrap_or(RESULTS.len() - 1);
        let Some(ended) = kind.and_then(|kind| self.ended.get(kind)?.get(result)) else { return };
        ended.number.fetch_add(1, Ordering::Relaxed);
        took.into_iter().for_each(|took| ended.durations.add(took));
    }

    /// All that have ended so far; a kind has all results, so that the first failure is seen as one more.
    pub(super) fn counts(&self) -> Vec<JobCounts> {
        let kinds = KINDS.into_iter().zip(self.ended.iter());
        let all =
            kinds.flat_map(|(kind, ended)| RESULTS.into_iter().zip(ended).map(move |(result, of)| (kind, result, of)));
        all.map(|(kind, result, of)| JobCounts {
            labels: [kind, result],
            number: of.number.load(Ordering::Relaxed),
            durations: of.durations.counts(),
        })
        .collect()
    }
}

fn is_deletion(phase: &str) -> bool {
    matches!(phase, "InitDelete" | "TriggerDelete" | "Deleting" | "DeleteFailed")
}

/// How long a job took from its trigger, or from its beginning, to its end.
fn duration(times: &TransitionTimes) -> Option<Duration> {
    let begun: &Time = times.trigger_time.as_ref().or(times.init_time.as_ref())?;
    Duration::try_from(times.finished_time.as_ref()?.0.duration_since(begun.0)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn item(finished: &str, phase: &str, version: u32) -> DeployItem {
        let status: Value = json!({
            "phase": phase, "jobID": "j", "jobIDFinished": finished,
            "transitionTimes": {"triggerTime": "2026-01-01T00:00:00Z", "finishedTime": "2026-01-01T00:00:20Z"},
        });
        let metadata = json!({"namespace": "ns", "name": "a", "uid": "a", "resourceVersion": version.to_string()});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}, "status": status})).unwrap()
    }

    fn ended(figures: &JobFigures) -> Vec<([&'static str; 2], u64, u64)> {
        let counts = figures.counts().into_iter().filter(|of| of.number > 0);
        counts.map(|of| (of.labels, of.number, of.durations.sum.as_secs())).collect()
    }

    #[test]
    fn a_job_is_counted_once_when_it_has_ended_and_none_that_ended_before() {
        let (stores, figures) = (Stores::new(), JobFigures::default());
        figures.follow(&stores);
        stores.deploy_items.upsert(item("old", "Succeeded", 1));
        stores.deploy_items.upsert(item("old", "Progressing", 2));
        assert_eq!(ended(&figures), []);
        stores.deploy_items.upsert(item("j", "Failed", 3));
        stores.deploy_items.upsert(item("j", "Failed", 4));
        assert_eq!(ended(&figures), [(["DeployItem", "Failed"], 1, 20)]);
        stores.deploy_items.upsert(item("j", "Deleting", 5));
        stores.deploy_items.forget(&item("j", "Deleting", 5));
        assert_eq!(ended(&figures), [(["DeployItem", "Failed"], 1, 20), (["DeployItem", "Deleted"], 1, 0)]);
    }

    /// Whoever may write a status chooses no series (C-390).
    #[test]
    fn c_390_phases_that_others_write_are_counted_together() {
        let (stores, figures) = (Stores::new(), JobFigures::default());
        figures.follow(&stores);
        for number in 0..101 {
            stores.deploy_items.upsert(item(&format!("j{number}"), &format!("P{number}"), number + 1));
        }
        assert_eq!(ended(&figures), [(["DeployItem", "other"], 100, 2000)]);
        assert_eq!(figures.counts().len(), KINDS.len() * RESULTS.len());
    }
}
