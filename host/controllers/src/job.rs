//! What the kinds of the job protocol do alike: take a job over, walk through phases, rest in the status, let go.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    FINALIZER,
    condition::{self, Condition},
    deploy_item::{DeployItem, DeployItemStatus},
    error::LastError,
    execution::{Execution, ExecutionStatus},
    installation::{Installation, InstallationStatus},
    job::{Job, TransitionTimes},
    waiting::WaitingFor,
};
use orangery_core::{
    condition::{ConditionInput, Halted, RECONCILING},
    error::Failure,
    job::{JobEnd, JobIds},
    name::JobId,
    phase::{
        Phase, execution::Execution as ExecutionPhase, installation::Installation as InstallationPhase,
        item::Item as ItemPhase,
    },
    step::{Halt, Step, Verdict},
    walk::{StatusUpdate, Transition, advance, beside_children, fails_in},
};
use orangery_reconcile::{CONFLICT, Key, NextCall, Store, Watched};

use crate::{controller_context::ControllerContext, event, object::generation_of};

/// The fields that the statuses of all three kinds share, borrowed.
pub(crate) struct SharedStatus<'a> {
    pub(crate) phase: &'a mut String,
    pub(crate) phase_transition_time: Option<&'a mut Option<Time>>,
    pub(crate) job_id: &'a mut JobId,
    pub(crate) job_id_finished: &'a mut JobId,
    pub(crate) observed_generation: &'a mut i64,
    pub(crate) job_generation: &'a mut Option<i64>,
    pub(crate) conditions: &'a mut Vec<Condition>,
    pub(crate) waiting_for: &'a mut Vec<WaitingFor>,
    pub(crate) waiting_for_more: &'a mut u32,
    pub(crate) last_error: &'a mut Option<LastError>,
    pub(crate) transition_times: &'a mut Option<TransitionTimes>,
}

impl SharedStatus<'_> {
    /// Conditions and what is waited for, as they are in this state.
    fn show(&mut self, state: &ConditionInput, generation: i64, now: &Time) {
        let progress = condition::following(state, generation, self.conditions, now);
        *self.conditions = progress.conditions;
        *self.waiting_for = progress.waiting_for;
        *self.waiting_for_more = progress.waiting_for_more;
    }
}

/// The phase that a running job is in, as the conditions say: of one that has just been taken over its first, when the phase of the
/// status is still the last of the job before.
pub(crate) fn told_phase(conditions: &[Condition]) -> Option<&str> {
    conditions.iter().find(|condition| condition.type_ == RECONCILING).map(|condition| condition.reason.as_str())
}

/// A status of the job protocol.
pub(crate) trait JobStatus {
    /// Its shared fields.
    fn shared(&mut self) -> SharedStatus<'_>;

    /// Takes a job over: the trigger. `Ready` turns Unknown in the same write (`docs/rules.md`, Conditions).
    fn trigger(&mut self, job: &JobId, first: impl Phase, generation: i64, now: &Time) {
        let mut shared = self.shared();
        // A job that it is in the middle of ends here, and the phase of that one says nothing of the next (C-31).
        if *shared.job_id != *shared.job_id_finished {
            shared.phase.clear();
        }
        shared.job_id.clone_from(job);
        // It gets the job once more: it ended it before it was to go.
        if *shared.job_id_finished == *job {
            *shared.job_id_finished = JobId::default();
        }
        *shared.job_generation = Some(generation);
        *shared.transition_times =
            Some(TransitionTimes { trigger_time: Some(now.clone()), ..TransitionTimes::default() });
        let state = ConditionInput::Running { phase: first.to_string(), halted: None, deletion: first.is_deletion() };
        shared.show(&state, generation, now);
    }

    /// It is being deleted, and waits for a job of its root (C-161).
    fn await_uninstall(&mut self, root: &str, generation: i64, now: &Time) {
        self.shared().show(&ConditionInput::AwaitingUninstall { root: root.to_owned() }, generation, now);
    }

    /// The begin of the job's work, on the spec of this generation (C-06).
    fn begin(&mut self, generation: i64, now: &Time) {
        let shared = self.shared();
        *shared.job_generation = Some(generation);
        shared.transition_times.get_or_insert_default().init_time = Some(now.clone());
    }

    /// The job cannot go on or end, because a write is refused: it stays in its phase, and says why (C-42).
    fn refuse(&mut self, failure: &Failure, deletion: bool, generation: i64, now: &Time) {
        let mut shared = self.shared();
        *shared.last_error = Some(LastError::following(shared.last_error.as_ref(), failure, now));
        let halted = Some(Halted::Retrying(failure.message.clone()));
        let state = ConditionInput::Running { phase: shared.phase.clone(), halted, deletion };
        shared.show(&state, generation, now);
    }

    /// Rests: phase, job ids, error and conditions, for one write (C-25). A job that ends has dealt with the generation that
    /// it took, which need not be the one that the object has by now (C-06).
    fn rest<P: Phase>(&mut self, rest: &StatusUpdate<P>, generation: i64, now: &Time) {
        let mut shared = self.shared();
        let phase = rest.phase.to_string();
        if *shared.phase != phase {
            if let Some(time) = &mut shared.phase_transition_time {
                **time = Some(now.clone());
            }
            *shared.phase = phase;
        }
        *shared.last_error =
            rest.failure.as_ref().map(|failure| LastError::following(shared.last_error.as_ref(), failure, now));
        let times = shared.transition_times.get_or_insert_default();
        let mut generation = generation;
        if rest.ended {
            generation = shared.job_generation.unwrap_or(generation);
            shared.job_id_finished.clone_from(shared.job_id);
            *shared.observed_generation = generation;
            times.finished_time = Some(now.clone());
        } else if rest.wait.is_some() && times.wait_time.is_none() {
            times.wait_time = Some(now.clone());
        }
        shared.show(&rest.state(), generation, now);
    }
}

/// What a subobject is triggered with.
#[derive(Clone, Debug)]
pub(crate) struct JobTrigger<P> {
    /// The job that goes down to it.
    pub(crate) job: JobId,
    /// The phase that it begins with.
    pub(crate) first: P,
    /// The token of the request that the job answers.
    pub(crate) token: String,
    /// When.
    pub(crate) now: Time,
}

/// A kind that gets its jobs from another one.
pub(crate) trait Subobject: Watched + Job {
    /// Its phases.
    type Phase: Phase;

    /// The same object with the job.
    fn triggered(&self, trigger: &JobTrigger<Self::Phase>) -> Self;
}

/// Implements [`Subobject`] for a kind; the last argument says what else its status has of a trigger.
macro_rules! subobject {
    ($kind:ty, $phase:ty, $more:expr) => {
        impl Subobject for $kind {
            type Phase = $phase;

            fn triggered(&self, trigger: &JobTrigger<Self::Phase>) -> Self {
                let (mut after, generation) = (self.clone(), generation_of(self));
                let (status, more) = (after.status.get_or_insert_default(), $more);
                status.trigger(&trigger.job, trigger.first, generation, &trigger.now);
                status.last_handled_trigger.clone_from(&trigger.token);
                more(status, &trigger.now);
                after
            }
        }
    };
}

subobject!(Installation, InstallationPhase, |_: &mut InstallationStatus, _: &Time| {});
subobject!(Execution, ExecutionPhase, |_: &mut ExecutionStatus, _: &Time| {});
subobject!(DeployItem, ItemPhase, |status: &mut DeployItemStatus, now: &Time| status.job_id_generation_time =
    Some(now.clone()));

/// How many subobjects get their job before others have a turn.
const AT_ONCE: usize = 32;

/// Subobjects of one kind that a job has come to, and that get it with the status of their parent, for which that is to be written
/// (C-216): they work from then on, and their own status has the job with its first write.
pub(crate) struct HandedDown<K: Subobject>(BTreeMap<Key, JobTrigger<K::Phase>>);

impl<K: Subobject> Default for HandedDown<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Subobject> HandedDown<K> {
    /// Hands a job down with the status. Answers whether that can be. By a write of its own it goes to one that is in the middle of
    /// another job, as what is written for that job has to find it replaced (C-24), and to a long one, which would be whole with all others
    /// (C-289).
    pub(crate) fn take(&mut self, store: &Store<K>, object: &K, trigger: &JobTrigger<K::Phase>) -> bool {
        let key = Key::of(object);
        let can = object.job_finished() && !trigger.first.is_deletion() && store.memory(&key) == 0;
        if can {
            self.0.insert(key, trigger.clone());
        }
        can
    }

    /// The job ids of a subobject, as they are with what it is handed.
    pub(crate) fn ids(&self, key: &Key, object: JobIds) -> JobIds {
        let handed = self.0.get(key).map(|trigger| trigger.job.clone());
        JobIds { job: handed.or(object.job), finished: object.finished }
    }

    /// The status of the parent is written: the subobjects have the job.
    pub(crate) async fn deliver(self, store: &Store<K>) {
        for (number, (key, trigger)) in self.0.into_iter().enumerate() {
            // What is not delivered yet when the call is cut off is found without its job.
            if number % AT_ONCE == AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let Some(object) = store.get(&key).filter(|object| object.job_finished()) else { continue };
            let before = object.job_id().clone();
            store.defer(&key, move |object: &K| (*object.job_id() == before).then(|| object.triggered(&trigger)));
        }
    }
}

/// The shared fields of a status; a DeployItem does not say when its phase changed.
macro_rules! job_status {
    ($status:ty, |$this:ident| $phase_transition_time:expr) => {
        impl JobStatus for $status {
            fn shared(&mut self) -> SharedStatus<'_> {
                let $this = self;
                SharedStatus {
                    phase: &mut $this.phase,
                    phase_transition_time: $phase_transition_time,
                    job_id: &mut $this.job_id,
                    job_id_finished: &mut $this.job_id_finished,
                    observed_generation: &mut $this.observed_generation,
                    job_generation: &mut $this.job_generation,
                    conditions: &mut $this.conditions,
                    waiting_for: &mut $this.waiting_for,
                    waiting_for_more: &mut $this.waiting_for_more,
                    last_error: &mut $this.last_error,
                    transition_times: &mut $this.transition_times,
                }
            }
        }
    };
}

job_status!(InstallationStatus, |status| Some(&mut status.phase_transition_time));
job_status!(ExecutionStatus, |status| Some(&mut status.phase_transition_time));
job_status!(DeployItemStatus, |status| None);

/// A job's walk over one object.
pub(crate) trait Run: Send {
    /// The phases of its kind.
    type Phase: Phase;

    /// Does the work of one phase, once.
    fn phase(&mut self, phase: Self::Phase) -> impl Future<Output = Step<Verdict>> + Send;
}

/// Walks from `phase` as far as it goes without waiting; a phase passed is not written on its own.
pub(crate) async fn walk<R: Run>(run: &mut R, mut phase: R::Phase) -> (R::Phase, Transition<R::Phase>) {
    loop {
        match advance(phase, run.phase(phase).await) {
            Transition::Next(next) => phase = next,
            other @ (Transition::End(..) | Transition::Released | Transition::Wait(_) | Transition::Retry(_)) => {
                return (phase, other);
            }
        }
    }
}

/// The subobjects of a job, as far as they are known.
pub(crate) trait Subobjects: Send + Sync {
    /// Whether one works for the job.
    fn are_working(&self) -> bool;

    /// Reads those from the server that may have got the job, or lost it, without its being known here.
    fn read(&self) -> impl Future<Output = Step<()>> + Send;

    /// The same as [`are_working`](Self::are_working), as the server has it (C-136).
    fn are_working_now(&self) -> impl Future<Output = Step<bool>> + Send {
        async {
            if !self.are_working() {
                self.read().await?;
            }
            Ok(self.are_working())
        }
    }
}

/// The result of a phase beside the subobjects, as [`beside_children`] has it. A job does not end with a failure before the server
/// has said that none of them works: the answer to the write that handed the job down may have been lost (C-136).
pub(crate) async fn beside<P: Phase>(
    subobjects: &impl Subobjects,
    phase: P,
    result: Step<Verdict>,
    end: impl Fn() -> Option<JobEnd> + Send,
) -> Step<Verdict> {
    let known = beside_children(result.clone(), &end, || subobjects.are_working());
    if !fails_in(phase, &known) {
        return known;
    }
    subobjects.read().await?;
    beside_children(result, end, || subobjects.are_working())
}

/// Where a walk rests, for the one write that follows; `None` where the object is to be released. A failure that the
/// status did not show before becomes an event.
///
/// # Errors
/// A write met a newer version of its object: nothing is written, the loop calls again (ORC: conflicts are silent).
pub(crate) fn resting<K: Watched + Job, P: Phase>(
    host: &ControllerContext,
    object: &K,
    phase: P,
    transition: &Transition<P>,
) -> Step<Option<StatusUpdate<P>>> {
    if let Transition::Retry(failure) = transition
        && failure.reason == CONFLICT
    {
        return Err(Halt::Retry(failure.clone()));
    }
    let namespace = Key::of(object).namespace;
    let masker = host.secrets.masker(&namespace);
    let rest = StatusUpdate::after(phase, transition).map(|rest| rest.in_namespace(&namespace).masked(&masker));
    let is_before_deletion = is_deleted_root(object) && !phase.is_deletion();
    let rest = rest.map(|rest| if is_before_deletion { rest.before_deletion() } else { rest });
    let failure = rest.as_ref().and_then(|rest| rest.failure.as_ref());
    event::failed(host, object, object.last_error(), failure);
    Ok(rest)
}

/// Whether an object is being deleted that no other one hands a job to: its deletion begins by itself when its job has ended.
fn is_deleted_root<K: Watched>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && object.meta().owner_references.as_ref().is_none_or(Vec::is_empty)
}

/// Takes our finalizer away: the object may go.
pub(crate) async fn release<K: Watched>(host: &ControllerContext, store: &Store<K>, object: &K) -> Step<()> {
    let mut released = object.clone();
    released.meta_mut().finalizers.get_or_insert_default().retain(|name| name != FINALIZER);
    host.writer(store).update(object, &released).await.map_err(|error| error.halt("RemoveFinalizer"))?;
    Ok(())
}

/// What is returned where the status could not be written: with it what the status was to tell (FLX-35). A conflict stays
/// alone, for it is silent.
pub(crate) fn unwritten<P>(transition: &Transition<P>, write: Halt) -> Halt {
    match (transition, write) {
        (_, Halt::Retry(conflict)) if conflict.reason == CONFLICT => Halt::Retry(conflict),
        (Transition::Retry(failure), write) => Halt::Retry(failure.clone()).join(write),
        (_, write) => write,
    }
}

/// When the loop calls again after a walk that was written; `left` is the time until the job's deadline.
pub(crate) fn next<P>(transition: Transition<P>, left: Option<Duration>) -> Result<NextCall, Halt> {
    match transition {
        Transition::Retry(failure) => Err(Halt::Retry(failure)),
        Transition::Wait(wait) => Ok(NextCall::Waiting([wait.again_in(), left].into_iter().flatten().min())),
        Transition::Next(_) | Transition::End(..) | Transition::Released => Ok(NextCall::Settled),
    }
}

/// The failure that a status shows, for whoever fails with it.
pub(crate) fn failure_of(last_error: Option<&LastError>) -> Option<Failure> {
    last_error.map(LastError::failure)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::atomic::{AtomicBool, Ordering},
    };

    use orangery_core::{
        phase::execution::Execution as Phase,
        step::{Until, Wait, Waiting},
    };
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn ready(status: &ExecutionStatus) -> (&str, &str) {
        let ready = condition::find(&status.conditions, "Ready").unwrap();
        (&ready.status, &ready.reason)
    }

    #[test]
    fn ready_turns_unknown_in_the_write_that_sets_the_job() {
        let mut status = ExecutionStatus::default();
        status.rest(&StatusUpdate { phase: Phase::Succeeded, ended: true, failure: None, wait: None }, 1, &at(1));
        assert_eq!(ready(&status), ("True", "Succeeded"));
        status.trigger(&"new".into(), Phase::Init, 1, &at(2));
        assert_eq!(
            (ready(&status), status.job_id.as_str(), status.phase.as_str()),
            (("Unknown", "Init"), "new", "Succeeded")
        );
        assert_eq!(status.transition_times.unwrap().trigger_time, Some(at(2)));
    }

    #[test]
    fn c_212_only_the_deletion_of_a_root_begins_when_its_job_has_ended() {
        let root = |metadata: serde_json::Value| {
            let object = json!({"metadata": metadata, "spec": {"type": "t"}});
            is_deleted_root(&serde_json::from_value::<orangery_api::deploy_item::DeployItem>(object).unwrap())
        };
        let (deleted, owner) =
            ("2026-01-01T00:00:00Z", json!({"apiVersion": "v", "kind": "k", "name": "n", "uid": "u"}));
        assert!(root(json!({"name": "x", "deletionTimestamp": deleted})));
        assert!(!root(json!({"name": "x"})));
        assert!(!root(json!({"name": "x", "deletionTimestamp": deleted, "ownerReferences": [owner]})));
    }

    #[test]
    fn c_31_a_job_that_replaces_one_under_way_begins_anew_whatever_phase_that_stood_in() {
        let phase = |finished: &str| {
            let job = JobId::from("a");
            let mut status = ExecutionStatus { job_id: job, job_id_finished: finished.into(), ..Default::default() };
            status.phase = "Progressing".to_owned();
            status.trigger(&"b".into(), Phase::Init, 1, &at(1));
            status.phase
        };
        assert_eq!([phase("older"), phase("a")], ["", "Progressing"]);
    }

    #[test]
    fn ins_65_a_job_that_is_passed_once_more_is_no_finished_one() {
        let mut status = ExecutionStatus { job_id: "a".into(), job_id_finished: "a".into(), ..Default::default() };
        status.trigger(&"a".into(), Phase::InitDelete, 1, &at(1));
        assert_eq!((status.job_id.as_str(), status.job_id_finished.as_str()), ("a", ""));
        assert_eq!(ready(&status), ("False", "Deleting"));
    }

    #[test]
    fn c_25_an_ended_job_is_one_write_of_phase_ids_generation_and_conditions() {
        let mut status = ExecutionStatus { job_id: "a".into(), ..ExecutionStatus::default() };
        let failure = Failure::new("Progressing", "DeployItemsFailed", "boom");
        status.rest(
            &StatusUpdate { phase: Phase::Failed, ended: true, failure: Some(failure.clone()), wait: None },
            7,
            &at(3),
        );
        assert_eq!((status.job_id_finished.as_str(), status.observed_generation), ("a", 7));
        assert_eq!((status.phase.as_str(), ready(&status)), ("Failed", ("False", "DeployItemsFailed")));
        assert_eq!(failure_of(status.last_error.as_ref()), Some(failure));
        assert_eq!(
            (status.phase_transition_time, status.transition_times.unwrap().finished_time),
            (Some(at(3)), Some(at(3)))
        );
    }

    #[test]
    fn c_06_flx_18_a_job_observes_the_generation_that_it_took_when_it_has_ended_and_not_before() {
        let mut status = ExecutionStatus { observed_generation: 3, ..ExecutionStatus::default() };
        let wait = Some(Wait::on("DeployItem", "a", Until::Finished));
        let working = StatusUpdate { phase: Phase::Progressing, ended: false, failure: None, wait };
        let succeeded = StatusUpdate { phase: Phase::Succeeded, ended: true, failure: None, wait: None };
        let failed =
            StatusUpdate { phase: Phase::Failed, failure: Some(Failure::new("O", "R", "boom")), ..succeeded.clone() };
        // Observed, and that of which the conditions speak, where the spec is at 7 by then.
        let rests = |status: &mut ExecutionStatus, rest: &StatusUpdate<Phase>| {
            status.rest(rest, 7, &at(1));
            let ready = condition::find(&status.conditions, "Ready").unwrap();
            (status.observed_generation, ready.observed_generation)
        };
        status.trigger(&"a".into(), Phase::Init, 4, &at(1));
        assert_eq!(rests(&mut status, &failed), (4, Some(4)), "a job that never began");
        status.trigger(&"b".into(), Phase::Init, 5, &at(1));
        status.begin(6, &at(1));
        assert_eq!(
            rests(&mut status, &working),
            (4, Some(7)),
            "conditions of a running job speak of the object as it is"
        );
        assert_eq!(rests(&mut status, &succeeded), (6, Some(6)));
    }

    #[test]
    fn flx_35_what_the_status_was_to_tell_is_returned_with_why_it_could_not_be_written() {
        let failure = |message: &str| Failure::new("Op", "R", message);
        let failed: Transition<Phase> = Transition::Retry(failure("the registry is away"));
        let write = || Halt::Retry(failure("the server is away"));
        let both = Halt::Retry(failure("the registry is away; the server is away"));
        assert_eq!(unwritten(&failed, write()), both);
        assert_eq!(unwritten(&Transition::Next(Phase::Init), write()), write());
        let conflict = || Halt::Retry(Failure::new("Op", CONFLICT, "newer"));
        assert_eq!(unwritten(&failed, conflict()), conflict());
    }

    #[test]
    fn orc_08_what_is_waited_for_is_written_with_the_conditions_and_goes_with_the_wait() {
        let rest = |wait: Option<Wait>, failure: Option<Failure>, phase: Phase| {
            StatusUpdate { phase, ended: phase == Phase::Succeeded, failure, wait }.in_namespace(&"here".into())
        };
        let waits = |count: usize| {
            Wait::each((0..count).map(|n| Waiting::beside("DeployItem", format!("i{n:02}"), Until::Finished)))
        };
        let written = |status: &ExecutionStatus| {
            let status = serde_json::to_value(status).unwrap();
            (status.get("waitingFor").cloned(), status.get("waitingForMore").cloned())
        };
        let one = json!([{"kind": "DeployItem", "namespace": "here", "name": "i00", "until": "Finished"}]);
        let waiting = || {
            let mut status = ExecutionStatus { job_id: "a".into(), ..ExecutionStatus::default() };
            status.rest(&rest(waits(1), None, Phase::Progressing), 1, &at(1));
            assert_eq!(written(&status), (Some(one.clone()), None));
            status
        };
        let mut status = waiting();
        status.rest(&rest(waits(20), None, Phase::Progressing), 1, &at(2));
        assert_eq!((status.waiting_for.len(), status.waiting_for_more), (16, 4));
        // A merge patch removes what is absent: an emptied list is emptied in the object.
        let mut ended = status.clone();
        ended.rest(&rest(None, None, Phase::Succeeded), 1, &at(3));
        assert_eq!(written(&ended), (None, None));
        let failure = Failure::new("Op", "R", "boom");
        status.rest(&rest(None, Some(failure), Phase::Progressing), 1, &at(3));
        assert_eq!(written(&status), (None, None));
        let mut triggered = waiting();
        triggered.trigger(&"b".into(), Phase::Init, 1, &at(3));
        assert_eq!(written(&triggered), (None, None));
    }

    #[test]
    fn resting_again_in_the_same_place_changes_nothing() {
        let wait = Wait::on("DeployItem", "a", Until::Finished);
        let rest = StatusUpdate { phase: Phase::Progressing, ended: false, failure: None, wait: Some(wait) };
        let mut status = ExecutionStatus { job_id: "a".into(), ..ExecutionStatus::default() };
        status.rest(&rest, 1, &at(1));
        let first = status.clone();
        status.rest(&rest, 1, &at(2));
        assert_eq!(status, first);
        assert_eq!((status.job_id_finished.as_str(), status.last_error), ("", None));
    }

    fn item(status: serde_json::Value) -> DeployItem {
        let metadata = json!({"name": "i", "namespace": "n", "uid": "u", "generation": 3, "resourceVersion": "1"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}, "status": status})).unwrap()
    }

    fn trigger_of(first: ItemPhase) -> JobTrigger<ItemPhase> {
        JobTrigger { job: "b".into(), first, token: "asked".to_owned(), now: at(7) }
    }

    #[tokio::test]
    async fn c_216_a_job_is_handed_down_with_the_status_of_the_parent_and_not_before() {
        let (store, object) = (Store::new(), item(json!({"jobID": "a", "jobIDFinished": "a", "phase": "Succeeded"})));
        let (key, mut handed) = (Key::of(&object), HandedDown::default());
        store.upsert(object.clone());
        assert!(handed.take(&store, &object, &trigger_of(ItemPhase::Init)));
        let ids = |handed: &HandedDown<DeployItem>, of: &str| {
            handed.ids(&Key { name: of.into(), ..key.clone() }, JobIds::new("a", "a"))
        };
        assert_eq!((ids(&handed, "i"), ids(&handed, "other")), (JobIds::new("b", "a"), JobIds::new("a", "a")));
        assert_eq!(store.get(&key).unwrap().job_id().as_str(), "a");
        handed.deliver(&store).await;
        let triggered = store.get(&key).unwrap().status.clone().unwrap();
        assert_eq!((triggered.job_id.as_str(), triggered.job_id_finished.as_str()), ("b", "a"));
        assert_eq!((triggered.job_generation, triggered.last_handled_trigger.as_str()), (Some(3), "asked"));
        assert_eq!(triggered.job_id_generation_time, Some(at(7)));
        // Somebody else gives it another job first.
        let other = json!({"jobID": "c", "jobIDFinished": "a"});
        let mut other = item(other);
        other.metadata.resource_version = Some("2".to_owned());
        assert_eq!(store.upsert(other).job_id().as_str(), "c");
    }

    #[tokio::test]
    async fn c_216_what_works_and_what_is_to_go_gets_a_job_by_a_write_of_its_own() {
        let (store, mut handed) = (Store::new(), HandedDown::default());
        let (works, rests) = (item(json!({"jobID": "a"})), item(json!({"jobID": "a", "jobIDFinished": "a"})));
        assert!(!handed.take(&store, &works, &trigger_of(ItemPhase::Init)));
        assert!(!handed.take(&store, &rests, &trigger_of(ItemPhase::InitDelete)));
        let mut late = HandedDown::default();
        assert!(late.take(&store, &rests, &trigger_of(ItemPhase::Init)));
        store.upsert(works);
        late.deliver(&store).await;
        assert_eq!(store.get(&Key::of(&rests)).unwrap().job_id().as_str(), "a", "it has begun to work meanwhile");
    }

    /// Subobjects of which one works, as the server alone knows.
    struct Unknown(AtomicBool);

    impl Subobjects for Unknown {
        fn are_working(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        async fn read(&self) -> Step<()> {
            self.0.store(true, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn c_136_the_server_is_asked_whether_subobjects_work_before_a_job_fails_and_not_before_anything_else() {
        let unknown = || Unknown(AtomicBool::new(false));
        assert_eq!(unknown().are_working_now().await, Ok(true));
        let failure = Failure::new("Progressing", "Failed", "no");
        let end = || None;
        let failed = beside(&unknown(), Phase::Progressing, Ok(Verdict::Failed(failure.clone())), end).await;
        assert_eq!(failed, Err(Halt::Retry(failure)), "it works, so the job goes on");
        let (known, wait) = (unknown(), Halt::wait("DeployItem", "a", Until::Finished));
        for result in [Ok(Verdict::Done), Err(wait)] {
            assert_eq!(beside(&known, Phase::Progressing, result.clone(), end).await, result);
        }
        assert!(!known.are_working(), "nothing was read");
    }

    /// A walk whose phases answer what the script says.
    struct Scripted {
        script: VecDeque<Step<Verdict>>,
        phases: Vec<Phase>,
    }

    impl Run for Scripted {
        type Phase = Phase;

        async fn phase(&mut self, phase: Phase) -> Step<Verdict> {
            self.phases.push(phase);
            self.script.pop_front().unwrap()
        }
    }

    /// The phases of a scripted walk, then the conditions where it rests, then what is returned.
    async fn walked(
        script: impl IntoIterator<Item = Step<Verdict>>,
    ) -> (Vec<Phase>, Vec<String>, Result<NextCall, Halt>) {
        let mut status = ExecutionStatus::default();
        status.trigger(&"a".into(), Phase::Init, 1, &at(1));
        let mut run = Scripted { script: script.into_iter().collect(), phases: Vec::new() };
        let (phase, transition) = walk(&mut run, Phase::Init).await;
        status.rest(&StatusUpdate::after(phase, &transition).unwrap(), 1, &at(2));
        let text = |one: &Condition| format!("{}={} {} {}", one.type_, one.status, one.reason, one.message);
        (run.phases, status.conditions.iter().map(text).collect(), next(transition, None))
    }

    #[tokio::test]
    async fn flx_29_flx_30_conditions_sum_up_what_the_whole_walk_came_to() {
        let wait = Halt::wait("DeployItem", "a", Until::Finished);
        let (phases, conditions, returned) = walked([Ok(Verdict::Done), Err(wait)]).await;
        assert_eq!(phases, [Phase::Init, Phase::Progressing]);
        let expected = [
            "Ready=Unknown Progressing waiting for DeployItem a to finish",
            "Reconciling=True Progressing waiting for DeployItem a to finish",
            "Progressing=True WaitingForDeployItem waiting for DeployItem a to finish",
        ];
        assert_eq!((conditions, returned), (expected.map(str::to_owned).to_vec(), Ok(NextCall::Waiting(None))));

        let (phases, conditions, returned) = walked([(); 3].map(|()| Ok(Verdict::Done))).await;
        assert_eq!(phases, [Phase::Init, Phase::Progressing, Phase::Completing]);
        let expected = ["Ready=True Succeeded ", "Progressing=False Succeeded "];
        assert_eq!((conditions, returned), (expected.map(str::to_owned).to_vec(), Ok(NextCall::Settled)));
    }

    #[test]
    fn flx_36_what_is_returned_is_when_to_call_again_or_all_that_failed() {
        let failed = |message: &str| Failure::new("Progressing", "Unreachable", message);
        let wait = || Wait::on("DeployItem", "a", Until::Finished);
        let (deadline, poll) = (Duration::from_secs(60), Duration::from_secs(5));
        let returned = |result, left| next(advance(Phase::Progressing, result), left);
        let both = Halt::Retry(failed("one")).join(Halt::Retry(failed("two")));
        assert_eq!(returned(Err(both), Some(deadline)), Err(Halt::Retry(failed("one; two"))));
        assert_eq!(returned(Err(Halt::Wait(wait())), None), Ok(NextCall::Waiting(None)));
        assert_eq!(returned(Err(Halt::Wait(wait())), Some(deadline)), Ok(NextCall::Waiting(Some(deadline))));
        assert_eq!(returned(Err(Halt::Wait(wait().within(poll))), Some(deadline)), Ok(NextCall::Waiting(Some(poll))));
        assert_eq!(returned(Ok(Verdict::Failed(failed("one"))), Some(deadline)), Ok(NextCall::Settled));
    }
}
