//! Records of the jobs of deploy items on the server: one JobHistory for each item, with its last jobs (C-331 … C-335). A call of the
//! controller that has written something says so there before its status does, in one write.

use data_encoding::BASE64_NOPAD;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, ObjectMeta, PostParams},
    core::PartialObjectMeta,
};
use orangery_api::{
    deploy_item::DeployItem,
    job::Job as _,
    job_history::{ENDED, JobHistory, JobRecord, JobRecords, RecordedJob},
    plan::PlanItem,
};
use orangery_cluster::TERMINATING;
use orangery_core::{
    digest::sha256,
    error::{Code, Failure},
    name::JobId,
    step::{Halt, Step},
};
use orangery_reconcile::Key;
use serde_json::{Value, json};

use crate::{
    controller_context::ControllerContext,
    object::{beginning_of_name, delete_old, message_of, owner_reference, uid_of},
};

/// JobHistories of items that are gone, in one namespace: the oldest go (C-335).
pub(crate) const MOST_ENDED_HISTORIES: usize = 200;

/// Histories that are looked at at once.
const PAGE: u32 = 500;

/// How often a history is written that others write as well.
const ATTEMPTS: usize = 3;

/// Bytes of a digest: nobody who has not the key can try anything, so that nothing but chance makes two of them the same.
const DIGEST: usize = 16;

/// What a call says of its job.
pub(crate) struct JobReport {
    pub(crate) job: JobId,
    /// Where the job stands.
    pub(crate) phase: String,
    /// Whether the item goes.
    pub(crate) is_released: bool,
    /// Whether the job had ended before.
    pub(crate) is_after_job: bool,
    /// Whether this is the first job of the item, and its first call.
    pub(crate) is_first: bool,
    pub(crate) installation: String,
    pub(crate) begun: String,
    pub(crate) content: RecordedJob,
}

/// What something that may be secret is, as a record says it: under a key of the operator, for one object of our own.
pub(crate) fn digest(host: &ControllerContext, uid: &str, content: &Value) -> String {
    let tag = host.key.seals().sign(json!(["recorded", uid, content]).to_string().as_bytes());
    BASE64_NOPAD.encode(tag.get(..DIGEST).unwrap_or(&tag))
}

/// Writes what a call says of its job.
///
/// # Errors
/// The server does not take it. What was said is kept in memory, and written by the next call.
pub(crate) async fn report(host: &ControllerContext, item: &DeployItem, mut report: JobReport) -> Step<()> {
    let Some(most) = host.job_histories.most else { return Ok(()) };
    let (uid, job) = (uid_of(item).to_owned(), report.job.clone());
    let has_ended = JobRecord { phase: report.phase.clone(), ..JobRecord::default() }.has_ended();
    report.content = report.content.following(host.job_histories.take_unwritten(&uid));
    let history = ItemHistory { host, item, most: most.get() };
    match history.write(&report).await {
        Ok(()) => {}
        // Nothing new can be made there, and the item goes.
        Err(error) if is_terminating(&error) => {
            tracing::warn!(item = %Key::of(item), "the record of a job is not written, as its namespace terminates");
        }
        Err(error) => {
            let message = format!(
                "the record of job {job} of DeployItem {} could not be written: {}; the job does not go on until it can, unless the \
                 operator is started without --job-records",
                Key::of(item),
                message_of(&error)
            );
            host.job_histories.keep(&uid, &job, report.content);
            let failure = Failure::new("RecordJob", "RecordNotWritten", message);
            return Err(Halt::Retry(failure.with_code(Code::InternalProblem)));
        }
    }
    if !has_ended {
        host.job_histories.wrote(&uid, &job);
    }
    let namespace = Key::of(item).namespace;
    if report.is_released && host.job_histories.counts_ended(&namespace) {
        history.remove_old_ended().await;
    }
    Ok(())
}

/// The history of one item.
struct ItemHistory<'a> {
    host: &'a ControllerContext,
    item: &'a DeployItem,
    most: usize,
}

impl ItemHistory<'_> {
    fn api(&self) -> Api<JobHistory> {
        Api::namespaced(self.host.client.clone(), &Key::of(self.item).namespace)
    }

    async fn write(&self, report: &JobReport) -> kube::Result<()> {
        let (api, name) = (self.api(), history_name(self.item));
        if report.is_first {
            match api.create(&PostParams::default(), &self.with(JobHistory::default(), &name, report)).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                created => return created.map(drop),
            }
        }
        let mut tried = 0;
        loop {
            tried += 1;
            let written = match api.get_opt(&name).await? {
                Some(found) => api.replace(&name, &PostParams::default(), &self.with(found, &name, report)).await,
                None => {
                    let made = self.with(JobHistory::default(), &name, report);
                    api.create(&PostParams::default(), &made).await
                }
            };
            match written {
                Err(kube::Error::Api(status))
                    if tried < ATTEMPTS
                        && (status.is_conflict() || status.is_already_exists() || status.is_not_found()) => {}
                written => return written.map(drop),
            }
        }
    }

    /// A history with what is reported.
    fn with(&self, mut history: JobHistory, name: &str, report: &JobReport) -> JobHistory {
        let Key { namespace, name: item } = Key::of(self.item);
        let key = self.host.key.histories();
        history.metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_string()),
            resource_version: history.metadata.resource_version,
            uid: history.metadata.uid,
            // Auditors want that of an item that is gone as well.
            labels: report.is_released.then(|| [(ENDED.to_owned(), ended_at(self.host.now().0))].into()),
            owner_references: (!report.is_released).then(|| vec![owner_reference(self.item)]),
            ..ObjectMeta::default()
        };
        let mut records = history.spec;
        records.item = PlanItem { name: item.to_string(), uid: uid_of(self.item).to_owned() };
        if records.installation.is_empty() {
            records.installation.clone_from(&report.installation);
        }
        let mut list = std::mem::take(&mut records.records);
        let now = self.host.now().0.to_string();
        let is_own = |records: &JobRecords, record: &JobRecord| key.knows(&namespace, records, record);
        // What others have written stays as it is, and says so by its seal.
        for record in list.iter_mut().filter(|record| record.job_id != report.job && !record.has_ended()) {
            if is_own(&records, record) {
                "Interrupted".clone_into(&mut record.phase);
                key.seal(&namespace, &records, record);
            }
        }
        let numbers = list.iter().filter(|record| is_own(&records, record)).map(|record| record.number);
        let next = numbers.max().unwrap_or(0).saturating_add(1);
        let place = list.iter().position(|record| record.job_id == report.job && is_own(&records, record));
        let earlier = place.map(|place| list.remove(place));
        let (number, begun) =
            earlier.as_ref().map_or((next, report.begun.clone()), |earlier| (earlier.number, earlier.begun.clone()));
        let earlier = earlier.and_then(|earlier| earlier.recorded().ok());
        // How it ended was said when it did.
        let said =
            earlier.as_ref().filter(|_| report.is_after_job).map(|said| (said.inputs.clone(), said.errors.clone()));
        let mut content = report.content.clone().following(earlier.unwrap_or_else(RecordedJob::default));
        if let Some(said) = said {
            (content.inputs, content.errors) = said;
        }
        let mut record = JobRecord {
            job_id: report.job.clone(),
            number,
            phase: report.phase.clone(),
            begun,
            written: now,
            summary: content.summary(),
            ..JobRecord::default()
        };
        // What has no room even without its writes is told by the record without a content.
        if record.keep(content).is_err() {
            record.summary.push_str(", not listed");
        }
        key.seal(&namespace, &records, &mut record);
        list.push(record);
        (records.last_job, records.last_phase) = (report.job.clone(), report.phase.clone());
        records.records = list;
        records.retain_newest(self.most);
        history.spec = records;
        history
    }

    /// Removes histories of items that are gone, but for the newest. What cannot be removed now is when the next items have gone.
    async fn remove_old_ended(&self) {
        let api = self.api();
        let selected = ListParams::default().labels(ENDED).limit(PAGE);
        let Ok(listed) = api.list_metadata(&selected).await else { return };
        let age = |history: &PartialObjectMeta<JobHistory>| (history.labels().get(ENDED).cloned(), history.name_any());
        delete_old(&api, listed.items, age, MOST_ENDED_HISTORIES).await;
    }
}

/// Whether a namespace is to blame that is being terminated.
fn is_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == TERMINATING)
}

/// When an item has gone, as a label says it: in seconds, so that the later one is the greater text.
fn ended_at(now: jiff::Timestamp) -> String {
    format!("{:012}", now.as_second())
}

/// With the name of the item, as far as there is room, and with its uid: one of the same name has another history.
fn history_name(item: &DeployItem) -> String {
    let uid: String = sha256(uid_of(item).as_bytes()).chars().rev().take(8).collect();
    format!("{}-{uid}", beginning_of_name(&Key::of(item).name))
}

/// Whether a job is the first of an item.
pub(crate) fn is_first_job(item: &DeployItem) -> bool {
    item.job_id_finished().is_empty()
}

#[cfg(test)]
mod tests;
