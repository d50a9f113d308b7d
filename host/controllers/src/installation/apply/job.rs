//! The job of an Installation: it begins (INS-12 … INS-14), and goes on through its phases.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Api;
use orangery_api::{
    annotation,
    context::DEFAULT_CONTEXT,
    installation::Installation,
    job_history::RecordedTrigger,
    marks::{Marks, Operation},
};
use orangery_core::{
    phase::{Phase as _, installation::Installation as Phase},
    plan::{idle::SelfStart, reconcile::RunningJob},
    step::Step,
};
use orangery_reconcile::Key;

use super::{
    super::{
        gather::imports::ImportsTurn,
        reconciliation::{InstallationReconciliation, InstallationWorker},
    },
    AppliedInstallation,
};
use crate::{
    controller_context::ControllerContext,
    job::{JobStatus, walk},
    object::{add_finalizer, generation_of, remove_request},
};

/// From the phase in which the job rests as far as it goes without waiting.
pub(super) async fn go_on<'a>(
    worker: &'a InstallationWorker,
    installation: &Arc<Installation>,
    running: RunningJob<Phase>,
    answers_request: bool,
) -> Step<AppliedInstallation<'a>> {
    let RunningJob { job, phase, begins } = running;
    let before = adopt(&worker.host, installation, answers_request).await?;
    let draft = Installation::clone(&before);
    let mut run = InstallationReconciliation::of(worker, before, draft, job, begins);
    let (phase, transition) = walk(&mut run, phase).await;
    Ok(AppliedInstallation::Job(Box::new(run), phase, transition))
}

/// What a job needs before its first phase, in one write: the finalizer, the default context, and the request removed
/// (INS-14), so that it can be made again.
async fn adopt(host: &ControllerContext, before: &Arc<Installation>, answers_request: bool) -> Step<Arc<Installation>> {
    let mut after = Installation::clone(before);
    if after.spec.context.is_empty() {
        DEFAULT_CONTEXT.clone_into(&mut after.spec.context);
    }
    add_finalizer(&mut after);
    // A request that came after this job began stays for the next one.
    if answers_request {
        remove_request(&mut after);
    }
    if after == **before {
        return Ok(Arc::clone(before));
    }
    let writer = host.writer(&host.stores.installations);
    writer.update(before, &after).await.map_err(|error| error.halt("AdoptInstallation"))
}

/// Starts a job at a root: the id is written before any child gets it, so that a request is never lost. Of a deletion without a
/// request one write says that the job began and where it rests. `by` is what starts a job that nobody asks for. A person's request
/// begins to count anew what a schedule has started, as does a change.
pub(super) async fn start<'a>(
    worker: &'a InstallationWorker,
    installation: &Arc<Installation>,
    by: Option<SelfStart>,
) -> AppliedInstallation<'a> {
    let (host, deletes) = (&worker.host, installation.is_deleting());
    let job = host.rng.job_id();
    let mark = worker.imports.mark(host, installation, &ImportsTurn::default()).await;
    let trigger = trigger_of(host, installation, by.as_ref()).await;
    let mut draft = Installation::clone(installation);
    let status = draft.status.get_or_insert_default();
    let first = if deletes { Phase::INIT_DELETE } else { Phase::INIT };
    status.trigger(&job, first, generation_of(installation.as_ref()), &host.now());
    installation.annotation(annotation::TRIGGER).unwrap_or("").clone_into(&mut status.last_handled_trigger);
    status.pending_operation.clear();
    mark.put(status);
    status.trigger = trigger;
    if by == Some(SelfStart::Change) {
        status.started_by_change_time = Some(host.now());
    }
    let record = match by {
        Some(SelfStart::Schedule(record)) => Some(record),
        Some(SelfStart::Allowed | SelfStart::Change) | None => None,
    };
    // A program asks once more for what has failed, and not a person.
    let retries = installation.annotation(annotation::RECONCILE_REASON) == Some(annotation::RETRY);
    if record.is_some() || !retries {
        status.automatic_reconcile_status = record.map(Into::into);
    }
    // The job rests before its first phase where a request is to be removed: `go_on` answers it then (INS-14, INS-59).
    if !deletes || installation.operation() == Some(Operation::Reconcile) {
        return AppliedInstallation::Status(Box::new(draft), "StartJob");
    }
    let mut run = InstallationReconciliation::of(worker, Arc::clone(installation), draft, job, true);
    let (phase, transition) = run.begin_deletion().await;
    AppliedInstallation::Job(Box::new(run), phase, transition)
}

/// What starts a job, where jobs are on record, and who asks for it as far as managed fields tell: these are not kept in memory, so
/// that the server is asked for them (C-331). Where it does not answer, nobody is named.
async fn trigger_of(
    host: &ControllerContext,
    installation: &Installation,
    by: Option<&SelfStart>,
) -> Option<RecordedTrigger> {
    host.job_histories.most?;
    let asked = installation.operation() == Some(Operation::Reconcile);
    let cause = match by {
        Some(SelfStart::Schedule(_)) => "Schedule",
        Some(SelfStart::Allowed) => "Policy",
        Some(SelfStart::Change) => "Change",
        None if installation.is_deleting() && !asked => "Deletion",
        None => "Request",
    };
    let path: &[&str] = match by {
        Some(SelfStart::Change) => &["f:spec"],
        Some(SelfStart::Schedule(_) | SelfStart::Allowed) => &[],
        None if asked => &["f:metadata", "f:annotations", OPERATION_FIELD],
        // Nobody is named who deletes.
        None => &[],
    };
    let Key { namespace, name } = Key::of(installation);
    let manager = if path.is_empty() {
        String::new()
    } else {
        let api: Api<Installation> = Api::namespaced(host.client.clone(), &namespace);
        let found = api.get_metadata(&name).await.ok();
        found.map_or_else(String::new, |found| manager_of(&found.metadata, path))
    };
    Some(RecordedTrigger { cause: cause.to_owned(), manager })
}

/// The annotation that asks for a job, as managed fields name it.
const OPERATION_FIELD: &str = "f:landscaper.gardener.cloud/operation";

/// Letters of the name of a field manager.
const LONGEST_MANAGER_NAME: usize = 128;

/// The manager that has written a field last; empty where none has.
fn manager_of(metadata: &ObjectMeta, path: &[&str]) -> String {
    let has = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        let found = path.iter().try_fold(fields?, |fields, name| fields.get(name));
        found.map(drop)
    };
    let entries = metadata.managed_fields.iter().flatten();
    let last = entries.filter(|entry| has(entry).is_some()).max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    let manager = last.and_then(|entry| entry.manager.as_deref()).unwrap_or("");
    manager.chars().take(LONGEST_MANAGER_NAME).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::{
        CustomResourceExt as _,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    };
    use serde_json::json;

    use super::*;
    use crate::{
        controller_context::tests::{host_on, server},
        job_histories::JobHistories,
    };

    #[test]
    fn c_331_limits_job_histories_a_job_is_asked_for_by_the_manager_that_has_written_the_field_last_or_nobody_knows() {
        let entry = |manager: &str, second: u8, fields: serde_json::Value| {
            let time = format!("2026-01-01T00:00:{second:02}Z");
            json!({"manager": manager, "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        let asks = json!({"f:metadata": {"f:annotations": {(OPERATION_FIELD): {}}}});
        let of = |fields: serde_json::Value, path: &[&str]| {
            manager_of(&serde_json::from_value(json!({"managedFields": fields})).unwrap(), path)
        };
        let path: &[&str] = &["f:metadata", "f:annotations", OPERATION_FIELD];
        let both =
            json!([entry("anna", 2, asks.clone()), entry("bert", 1, asks), entry("carl", 3, json!({"f:spec": {}}))]);
        assert_eq!(of(both.clone(), path), "anna");
        assert_eq!(of(both, &["f:spec"]), "carl");
        assert_eq!(
            of(json!([entry(&"x".repeat(500), 1, json!({"f:spec": {}}))]), &["f:spec"]).len(),
            LONGEST_MANAGER_NAME
        );
        assert_eq!(of(json!([]), path), "");
    }

    #[tokio::test]
    async fn c_331_a_trigger_is_told_as_far_as_the_server_knows_it() {
        let (_server, client) = server(&[Installation::crd()]).await;
        let api: Api<Installation> = Api::namespaced(client.clone(), "default");
        let by = |manager: &str| PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let begin = json!({"metadata": {"name": "web"}, "spec": {"blueprint": {}}});
        let begin: Installation = serde_json::from_value(begin).unwrap();
        let params = PostParams { field_manager: Some("anna".to_owned()), ..PostParams::default() };
        let changed = api.create(&params, &begin).await.unwrap();
        let asks = json!({"metadata": {"annotations": {(annotation::OPERATION): "reconcile"}}});
        let asked = api.patch("web", &by("bert"), &Patch::Merge(asks)).await.unwrap();
        let mut deleted = changed.clone();
        deleted.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        let mut host = Arc::into_inner(host_on(client)).unwrap();
        assert_eq!(trigger_of(&host, &asked, None).await, None, "jobs are not on record");
        host.job_histories = JobHistories::keeping(NonZeroUsize::new(1));
        let trigger = async |installation: &Installation, by: Option<SelfStart>| {
            let trigger = trigger_of(&host, installation, by.as_ref()).await.unwrap();
            (trigger.cause, trigger.manager)
        };
        let told = |cause: &str, manager: &str| (cause.to_owned(), manager.to_owned());
        assert_eq!(trigger(&asked, None).await, told("Request", "bert"));
        assert_eq!(trigger(&changed, Some(SelfStart::Change)).await, told("Change", "anna"));
        assert_eq!(trigger(&changed, Some(SelfStart::Allowed)).await, told("Policy", ""));
        assert_eq!(trigger(&changed, None).await, told("Request", ""), "a request that waited for the end of a job");
        assert_eq!(trigger(&deleted, None).await, told("Deletion", ""));
        api.delete("web", &DeleteParams::default()).await.unwrap();
        assert_eq!(trigger(&asked, None).await, told("Request", ""), "the server does not say");
    }
}
