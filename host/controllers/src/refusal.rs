//! What ends a call of a controller without a word in the status, as a write of the status that the API server refuses: it is
//! told by an event and by the status of a job under way, and tried again (C-42).

use orangery_api::job::Job;
use orangery_core::{
    error::{Code, Failure},
    phase::Phase,
    step::{Halt, Step},
    walk::StatusUpdate,
};
use orangery_reconcile::{Crash, Key, NextCall, Store, Watched};

use crate::{
    controller_context::ControllerContext,
    event,
    job::JobStatus,
    object::{generation_of, uid_of},
};

/// Whether a write that is tried again waits for people all the same: for rights, or for a webhook that is down.
fn is_up_to_others(failure: &Failure) -> bool {
    failure.codes.iter().any(|code| matches!(code, Code::Unauthorized | Code::Webhook))
}

/// What a call of a controller for `object` came to, told where it stopped at what only others can change: a policy, a
/// webhook or a definition, none of which is watched. So it is called again with backoff, and not at its next event alone.
///
/// Of a job under way `lastError` and the conditions say so in a write of their own: it has nothing in it of what was refused.
/// Where that is refused as well, there is the event.
pub(crate) async fn publish<K: Watched + Job, S: JobStatus>(
    (host, store): (&ControllerContext, &Store<K>),
    object: &K,
    result: Result<NextCall, Halt>,
    status: impl FnOnce(&mut K) -> &mut S,
) -> Result<NextCall, Halt> {
    let failure = match result {
        Err(Halt::Stall(failure)) => failure,
        Err(Halt::Retry(failure)) if is_up_to_others(&failure) => failure,
        other @ (Ok(_) | Err(Halt::Retry(_) | Halt::Wait(_))) => return other,
    };
    tell((host, store), object, &failure, status).await;
    Err(Halt::Retry(failure))
}

/// Says that calls for an object panic or end the process again and again, as [`publish`] says what it came to.
pub(crate) async fn publish_crash<K: Watched + Job, S: JobStatus>(
    (host, store): (&ControllerContext, &Store<K>),
    object: &K,
    crash: Crash,
    status: impl FnOnce(&mut K) -> &mut S,
) {
    tell((host, store), object, &failure_of(crash, false), status).await;
}

/// What ended the last calls, while they are tried again or when the time for that is up.
fn failure_of(crash: Crash, time_is_up: bool) -> Failure {
    let (reason, message) = match (crash, time_is_up) {
        (Crash::Panicked, false) => (
            "Panicked",
            "the operator panics each time that it works on this, which is a mistake of its program, and tries it again; report \
             it with what its log and the CriticalProblems of its namespace say"
                .to_owned(),
        ),
        (Crash::Panicked, true) => (
            "Panicked",
            "the operator panicked each time that it worked on this, until the time for it was up, which is a mistake of its \
             program; report it with what its log and the CriticalProblems of its namespace say"
                .to_owned(),
        ),
        (Crash::Killed(times), _) => {
            let then = if time_is_up { "the time for it is up" } else { "it is set aside, and tried again later, alone" };
            let message = format!(
                "the operator was killed {times} times while it worked on this, most likely as it needs more memory than \
                 there is; {then}: make it smaller, or give the operator more memory"
            );
            ("OperatorKilled", message)
        }
        (Crash::KilledInNamespace(times), _) => {
            let then = if time_is_up { "the time for this is up" } else { "this is tried again later" };
            let message = format!(
                "the operator was killed {times} times while it worked on other objects of this namespace, each time on new ones, most \
                 likely as they need more memory than there is; the namespace is set aside, and {then}: make those objects smaller \
                 (the log of the operator names them), or give the operator more memory"
            );
            ("OperatorKilled", message)
        }
    };
    Failure::new("Reconcile", reason, message).with_code(Code::InternalProblem)
}

/// Ends the job of an object in this phase, for its calls have no end of their own when its time is up: what ends a job otherwise is
/// in the calls (C-157).
pub(crate) async fn end_crashed<K: Watched + Job, S: JobStatus>(
    (host, store): (&ControllerContext, &Store<K>),
    object: &K,
    (crash, phase): (Crash, impl Phase),
    status: impl FnOnce(&mut K) -> &mut S,
) {
    let failure = failure_of(crash, true).with_code(Code::Timeout);
    let key = Key::of(object);
    let newest = store.get(&key).filter(|newest| uid_of(newest.as_ref()) == uid_of(object) && !newest.job_finished());
    let Some(newest) = newest else { return };
    event::failed(host, newest.as_ref(), newest.last_error(), Some(&failure));
    let mut draft = K::clone(&newest);
    let rest = StatusUpdate { phase, ended: true, failure: Some(failure), wait: None };
    status(&mut draft).rest(&rest, generation_of(newest.as_ref()), &host.now());
    if let Err(error) = host.writer(store).update_status(&newest, &draft).await {
        tracing::debug!(%error, object = %key, "ending a job whose calls crash");
    }
}

async fn tell<K: Watched + Job, S: JobStatus>(
    (host, store): (&ControllerContext, &Store<K>),
    object: &K,
    failure: &Failure,
    status: impl FnOnce(&mut K) -> &mut S,
) {
    let key = Key::of(object);
    let newest = store.get(&key).filter(|newest| uid_of(newest.as_ref()) == uid_of(object));
    if let Some(newest) = newest {
        let masker = host.secrets.masker(&key.namespace);
        let shown = Failure { message: masker.mask(&failure.message).into_owned(), ..failure.clone() };
        event::failed(host, newest.as_ref(), newest.last_error(), Some(&shown));
        if !newest.job_finished() {
            let mut draft = K::clone(&newest);
            let deleting = newest.meta().deletion_timestamp.is_some();
            status(&mut draft).refuse(&shown, deleting, generation_of(newest.as_ref()), &host.now());
            if let Err(error) = host.writer(store).update_status(&newest, &draft).await {
                tracing::debug!(%error, object = %key, "telling what it came to");
            }
        }
    }
}

/// The same of a guard that cannot be taken away: the object has no status that could say so, and an event does.
///
/// # Errors
/// What it came to, to be tried again with backoff.
pub(crate) fn publish_guard<K: Watched>(host: &ControllerContext, object: &K, result: Step<()>) -> Step<()> {
    let failure = match result {
        Err(Halt::Stall(failure)) => failure,
        Err(Halt::Retry(failure)) if is_up_to_others(&failure) => failure,
        other @ (Ok(()) | Err(Halt::Retry(_) | Halt::Wait(_))) => return other,
    };
    let note = format!("nothing uses it, and its guard cannot be taken away: {}", failure.message);
    event::warn(host, object, &failure.reason, &note);
    Err(Halt::Retry(failure))
}
