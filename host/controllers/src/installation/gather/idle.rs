//! An Installation without a job: what may start one by itself (C-05, C-27, ORC-33, WF-26).

use jiff::SignedDuration;
use orangery_api::{convert::is_suspended, installation::Installation, job::Job, marks::Marks};
use orangery_core::{
    automatic::Terms,
    phase::installation::Installation as Phase,
    plan::idle::{IdleFacts, outcome},
    step::{Halt, Step},
};
use orangery_reconcile::Key;

use super::super::reconciliation::{InstallationReconciliation, InstallationWorker};
use crate::{
    controller_context::{ControllerContext, waiter},
    job::failure_of,
    namespace_policy::is_allowed_anew,
    object::generation_of,
    stores::StoredKind,
    tree::observing_root,
    workflow::changed_answers,
};

/// What is known of an Installation at rest, of roots alone, and why gate expressions could not be asked.
pub(super) async fn gather(
    worker: &InstallationWorker,
    installation: &Installation,
) -> (Option<IdleFacts>, Option<Halt>) {
    let mut unanswered = ask_again(worker, installation).await.err();
    if !installation.is_root() {
        return (None, unanswered);
    }
    let had_job = !installation.job_id().is_empty();
    let outcome = Phase::parse(installation.phase()).filter(|_| had_job).and_then(outcome);
    let status = installation.status.as_ref();
    let automatic = installation.spec.automatic_reconcile.as_ref();
    let terms = outcome.zip(automatic).map_or(Ok(None), |(outcome, automatic)| automatic.terms(outcome));
    // Read in any case: a root that gives the policy up watches nothing any more.
    let mut roots = outcome.map(|_| worker.imports.observed(&worker.host, installation)).unwrap_or_default();
    let by_change = status.and_then(|status| status.started_by_change_time.as_ref()).filter(|_| !roots.is_empty());
    let waits = matches!(terms, Ok(Some(_))) || by_change.is_some();
    let least = if waits { least(&worker.host, installation) } else { Ok(SignedDuration::ZERO) };
    let least = least.map_err(|halt| {
        unanswered.get_or_insert(halt);
        // What is not known starts nothing.
        roots.clear();
    });
    let terms = terms.map(|terms| Some(Terms { least: least.ok()?, ..terms? }));
    let facts = IdleFacts {
        had_job,
        outcome,
        generations: (generation_of(installation), status.map_or(0, |status| status.observed_generation)),
        has_operation: installation.operation().is_some(),
        deleting: installation.is_deleting(),
        is_suspended: is_suspended(installation),
        is_allowed_anew: is_allowed_anew(&worker.host.policies, installation),
        failure: failure_of(installation.last_error()),
        name: Key::of(installation).name.into(),
        held_until: by_change.zip(least.ok()).and_then(|(last, least)| last.0.checked_add(least).ok()),
        roots,
        terms,
        record: status.and_then(|status| status.automatic_reconcile_status.as_ref()?.record()),
    };
    (Some(facts), unanswered)
}

/// The least time between two jobs that start by themselves, as the policy of the namespace has it (C-184, C-196).
fn least(host: &ControllerContext, installation: &Installation) -> Step<SignedDuration> {
    let interval = host.policies.of(&Key::of(installation).namespace)?.min_reconcile_interval();
    Ok(SignedDuration::from_secs(interval.map_or(0, |interval| interval.seconds).into()))
}

/// Where its root starts jobs by changes, what decided about its sub-installations is watched, and the root is woken where that
/// answers otherwise now.
async fn ask_again(worker: &InstallationWorker, installation: &Installation) -> Step<()> {
    let (host, key) = (&worker.host, Key::of(installation));
    let decided =
        installation.status.as_ref().is_some_and(|status| status.workflow.is_some()) && !installation.is_deleting();
    let root = if decided { observing_root(&host.stores, &key) } else { None };
    let changed = match &root {
        Some(_) => changed_answers(&InstallationReconciliation::idle(worker, installation)).await?,
        None => {
            worker.pool.release(&waiter(StoredKind::Installation, &key));
            Vec::new()
        }
    };
    if host.changed_answers.set(&(StoredKind::Installation, key.clone()), changed)
        && let Some(root) = root.map(|root| Key::of(root.as_ref())).filter(|root| *root != key)
    {
        worker.queue.wake(root);
    }
    Ok(())
}
