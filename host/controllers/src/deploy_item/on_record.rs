//! What a call of the controller did is put on record before the status of its item says where the job rests (C-331).

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    deploy_item::DeployItem,
    installation::Installation,
    job::Job as _,
    job_history::{
        ABSENT, APPLY, CREATE, DELETE, GOING, JobDefinitionPlace, PATCH, REPLACE, RecordedInputs, RecordedJob,
        RecordedKey, RecordedTrigger, RecordedWrite, UNREAD,
    },
};
use orangery_apply::{ItemState, RecordedObject, SentWrite, WriteRecorder, WriteVerb};
use orangery_core::{
    error::Failure,
    phase::item::Item as Phase,
    step::Step,
    walk::{StatusUpdate, Transition},
};
use orangery_proposal::{ClusterRef, ObjectKey};
use orangery_reconcile::Key;
use serde_json::json;

use super::gather::{GatheredItem, ItemReconciliation, installation_of};
use crate::{
    controller_context::ControllerContext,
    job,
    job_reports::{JobReport, digest, report},
    object::uid_of,
    tree::root_of,
};

/// How a job stands.
pub(super) struct JobState<'a> {
    phase: String,
    is_released: bool,
    is_under_way: bool,
    /// Whether the job has ended before, and this was done after it.
    is_after_job: bool,
    failure: Option<&'a Failure>,
}

impl<'a> JobState<'a> {
    /// Where it rests, or that the item goes; `None` where the job is not the item's any more.
    pub(super) fn of(resting: Option<&'a Step<Option<StatusUpdate<Phase>>>>, phase: Phase) -> Self {
        let Some(Ok(rest)) = resting else { return Self::under_way(phase) };
        match rest {
            None => {
                Self { phase: "Deleted".to_owned(), is_released: true, is_under_way: false, ..Self::under_way(phase) }
            }
            Some(rest) => {
                let shown = if rest.ended { rest.phase } else { phase };
                Self { failure: rest.failure.as_ref(), is_under_way: !rest.ended, ..Self::under_way(shown) }
            }
        }
    }

    /// It goes on.
    fn under_way(phase: Phase) -> Self {
        Self { phase: phase.to_string(), is_released: false, is_under_way: true, is_after_job: false, failure: None }
    }

    /// Something was done after the job had ended, which left the item in this phase.
    pub(super) fn after(item: &DeployItem) -> Self {
        Self {
            phase: item.phase().to_owned(),
            is_released: false,
            is_under_way: false,
            is_after_job: true,
            failure: None,
        }
    }
}

/// Notes the writes of a call, where jobs are on record.
pub(super) fn recorder(host: &Arc<ControllerContext>, item: &DeployItem) -> Option<WriteRecorder> {
    host.job_histories.most?;
    let (host, uid) = (Arc::clone(host), uid_of(item).to_owned());
    Some(WriteRecorder::new(Box::new(move |object| digest(&host, &uid, object))))
}

impl ItemReconciliation {
    /// Where the job rests, once what was done for it is on record. `None` where it is not the item's any more, and `Some(None)` where the
    /// item goes.
    ///
    /// # Errors
    /// It cannot be put on record, or a write met a newer version of the item.
    pub(super) async fn rest_on_record(
        &self,
        transition: &Transition<Phase>,
    ) -> Step<Option<Option<StatusUpdate<Phase>>>> {
        let (item, is_current) = (&self.gathered.item, self.status.is_current());
        let resting = is_current.then(|| job::resting(&self.gathered.host, item.as_ref(), self.phase, transition));
        let state_of_job = JobState::of(resting.as_ref(), self.phase);
        let of_call = (self.is_first, self.status.exported());
        self.gathered.put_on_record(state_of_job, self.state.as_ref(), of_call).await?;
        resting.transpose()
    }
}

impl GatheredItem {
    /// Puts on record what was done. `exports` is the digest of what was exported.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) async fn put_on_record(
        &self,
        job: JobState<'_>,
        state: Option<&ItemState>,
        (is_first, exports): (bool, Option<String>),
    ) -> Step<()> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        let (writes, more) = recorder.take();
        if job.is_after_job && writes.is_empty() && more == 0 {
            return Ok(());
        }
        let unaccounted = self.unaccounted.get().cloned().unwrap_or_else(Vec::new);
        let is_quiet = writes.is_empty() && more == 0 && unaccounted.is_empty();
        let (histories, uid) = (&self.host.job_histories, uid_of(self.item.as_ref()));
        if is_quiet && job.is_under_way && histories.goes_on(uid, &self.job.id) {
            return Ok(());
        }
        let writes =
            writes.into_iter().map(|write| RecordedWrite { is_after_job: job.is_after_job, ..recorded(write) });
        let installation = installation_of(&self.host, &self.item);
        let (trigger, definition) = self.of_root(installation.as_deref());
        let clusters = state.into_iter().flat_map(ItemState::cluster_uids);
        let plans = if self.requires_approval { self.plans().approved().await } else { Vec::new() };
        let content = RecordedJob {
            trigger,
            inputs: RecordedInputs { definition, ..self.inputs(installation.as_deref()) },
            plans,
            clusters: clusters.map(|(on, uid)| (cluster_name(on), uid.to_owned())).collect(),
            writes: writes.collect(),
            more,
            unaccounted,
            errors: job.failure.map_or_else(Vec::new, errors),
            exports,
        };
        let said = JobReport {
            job: self.job.id.clone(),
            phase: job.phase,
            is_released: job.is_released,
            is_after_job: job.is_after_job,
            is_first,
            installation: self.root(),
            begun: Time(self.job.begun).0.to_string(),
            content,
        };
        report(&self.host, &self.item, said).await
    }

    /// An operator has ended in the middle of this job: what it had written of the objects of the item is not known.
    pub(super) fn is_unaccounted_for(&self, state: &ItemState) {
        let here = state.inventory.0.keys().map(|located| key_of(cluster_name(&located.on), &located.key));
        let former = state
            .former
            .iter()
            .flat_map(|(uid, left)| left.0.keys().map(move |located| key_of(format!("former {uid}"), &located.key)));
        // What was read first is how that operator has left it.
        drop(self.unaccounted.set(here.chain(former).collect()));
    }

    /// What started the job at the root, and where what that is made from is kept.
    fn of_root(&self, installation: Option<&Installation>) -> (Option<RecordedTrigger>, Option<JobDefinitionPlace>) {
        let root = installation.and_then(|of| root_of(&self.host.stores, &Key::of(of)));
        let status = root.as_ref().and_then(|root| root.status.as_ref());
        let status = status.filter(|status| status.job_id == self.job.id);
        status.map_or((None, None), |status| (status.trigger.clone(), status.job_definition.clone()))
    }

    fn inputs(&self, installation: Option<&Installation>) -> RecordedInputs {
        let (item, identity) = (self.item.as_ref(), self.deployer.identity());
        let of_item = RecordedInputs {
            item: digest(&self.host, uid_of(item), &json!(item.spec)),
            plugin: identity.to_string(),
            plugin_digest: identity.digest.clone(),
            ..RecordedInputs::default()
        };
        let Some(installation) = installation else { return of_item };
        let (spec, uid) = (&installation.spec, uid_of(installation));
        let version = spec.component_descriptor.as_ref().and_then(|of| of.reference.as_ref());
        let blueprint = spec.blueprint.reference.as_ref().map(|of| of.resource_name.clone());
        let status = installation.status.as_ref().filter(|status| !status.imports_hash.is_empty());
        RecordedInputs {
            installation: Key::of(installation).name.to_string(),
            generation: installation.metadata.generation,
            spec: digest(&self.host, uid, &json!(spec)),
            component_version: version.map(|of| format!("{}:{}", of.component_name, of.version)),
            blueprint,
            imports: status.map(|status| digest(&self.host, uid, &json!(status.imports_hash))),
            ..of_item
        }
    }
}

/// Codes of a failure, or its reason where it has none: never its words.
fn errors(failure: &Failure) -> Vec<String> {
    let codes: Vec<String> = failure.codes.iter().map(ToString::to_string).collect();
    if codes.is_empty() { vec![failure.reason.clone()] } else { codes }
}

fn cluster_name(on: &ClusterRef) -> String {
    match on {
        ClusterRef::Target => "target".to_owned(),
        ClusterRef::Host => "host".to_owned(),
        ClusterRef::Named(name) => format!("target {name}"),
    }
}

fn key_of(cluster: String, key: &ObjectKey) -> RecordedKey {
    RecordedKey { cluster, key: key.clone() }
}

fn recorded(write: SentWrite) -> RecordedWrite {
    let cluster = write.former.map_or_else(|| cluster_name(&write.on), |uid| format!("former {uid}"));
    let verb = match write.verb {
        WriteVerb::Create => CREATE,
        WriteVerb::Apply => APPLY,
        WriteVerb::Replace => REPLACE,
        WriteVerb::Patch => PATCH,
        WriteVerb::Delete => DELETE,
    };
    RecordedWrite {
        object: key_of(cluster, &write.key),
        verb: verb.to_owned(),
        before: word(write.before),
        after: word(write.after),
        is_unanswered: !write.is_answered,
        is_after_job: false,
    }
}

fn word(object: RecordedObject) -> String {
    match object {
        RecordedObject::Unknown => UNREAD.to_owned(),
        RecordedObject::Absent => ABSENT.to_owned(),
        RecordedObject::Going => GOING.to_owned(),
        RecordedObject::Digest(digest) => digest,
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::{error::Code, step::Halt};

    use super::*;

    fn state(resting: Option<&Step<Option<StatusUpdate<Phase>>>>) -> (String, bool, bool, Vec<String>) {
        let state = JobState::of(resting, Phase::Progressing);
        (state.phase, state.is_released, state.is_under_way, state.failure.map_or_else(Vec::new, errors))
    }

    #[test]
    fn c_331_a_record_says_where_its_job_stands_and_why_it_failed_by_codes() {
        let failure = Failure::new("Apply", "NotApplied", "the password is hush");
        let rest = |phase, ended, failure| Ok(Some(StatusUpdate { phase, ended, failure, wait: None }));
        let told = |phase: &str, is_under_way, errors: &[&str]| {
            (phase.to_owned(), false, is_under_way, errors.iter().map(|word| (*word).to_owned()).collect())
        };
        assert_eq!(state(None), told("Progressing", true, &[]), "another job is the item's");
        let conflict = Err(Halt::Retry(failure.clone()));
        assert_eq!(state(Some(&conflict)), told("Progressing", true, &[]));
        assert_eq!(state(Some(&rest(Phase::Progressing, false, None))), told("Progressing", true, &[]));
        assert_eq!(state(Some(&rest(Phase::Succeeded, true, None))), told("Succeeded", false, &[]));
        let failed = rest(Phase::Failed, true, Some(failure.clone()));
        assert_eq!(state(Some(&failed)), told("Failed", false, &["NotApplied"]));
        let coded = rest(Phase::Failed, true, Some(failure.with_code(Code::Timeout)));
        assert_eq!(state(Some(&coded)), told("Failed", false, &["ERR_TIMEOUT"]));
        assert_eq!(state(Some(&Ok(None))), ("Deleted".to_owned(), true, false, Vec::new()));
    }

    #[test]
    fn c_334_what_is_done_after_a_job_leaves_the_item_in_its_phase() {
        let item: DeployItem = serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "x"},
            "spec": {"type": "t"},
            "status": {"phase": "Failed"},
        }))
        .unwrap();
        let state = JobState::after(&item);
        assert_eq!((state.phase.as_str(), state.is_after_job, state.is_under_way), ("Failed", true, false));
    }

    #[test]
    fn c_331_a_write_is_told_by_its_cluster_its_object_and_what_that_was() {
        let key = ObjectKey {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: "x".into(),
        };
        let sent = |on: ClusterRef, former: Option<&str>, verb, before, after| {
            let (former, key) = (former.map(str::to_owned), key.clone());
            let write =
                recorded(SentWrite { on, former, key, verb, before, after, is_answered: verb != WriteVerb::Patch });
            json!(write)
        };
        let digest = || RecordedObject::Digest("d".to_owned());
        let told = |cluster: &str, verb: &str, before: &str, after: &str| {
            json!({
                "cluster": cluster, "apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "x",
                "verb": verb, "before": before, "after": after,
            })
        };
        assert_eq!(
            sent(ClusterRef::Target, None, WriteVerb::Create, RecordedObject::Absent, digest()),
            told("target", "create", "absent", "d")
        );
        assert_eq!(
            sent(ClusterRef::Host, None, WriteVerb::Apply, RecordedObject::Unknown, digest()),
            told("host", "apply", "unread", "d")
        );
        assert_eq!(
            sent(ClusterRef::Named("b".to_owned()), None, WriteVerb::Replace, digest(), digest()),
            told("target b", "replace", "d", "d")
        );
        assert_eq!(
            sent(ClusterRef::Target, Some("u"), WriteVerb::Delete, digest(), RecordedObject::Going),
            told("former u", "delete", "d", "going")
        );
        let mut unanswered = told("target", "patch", "d", "unread");
        unanswered["isUnanswered"] = json!(true);
        assert_eq!(sent(ClusterRef::Target, None, WriteVerb::Patch, digest(), RecordedObject::Unknown), unanswered);
    }
}
