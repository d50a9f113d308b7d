//! Records of jobs, as JobHistories have them (C-331), read and checked.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use kube::Client;
use orangery_api::{
    job_history::{JobHistory, JobRecord, JobRecords, RecordContentError, RecordedJob},
    namespace_policy::POLICY_GROUP,
    plan::PlanItem,
};
use orangery_core::name::{JobId, Namespace};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Serialize;

use crate::{call::CallError, listed};

/// Histories that are listed at once: each may have a megabyte.
const PAGE: u32 = 20;

/// Why records are not shown.
#[derive(Debug, thiserror::Error)]
pub enum JobRecordError {
    /// The server does not answer, or refuses.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing is known of a name.
    #[error(
        "in namespace {namespace} is no job on record of an Installation or a deploy item {asked_for}; jobs are on record where the operator is \
         started with --job-records"
    )]
    NoHistory {
        /// The namespace.
        namespace: Namespace,
        /// What was asked for.
        asked_for: String,
    },
    /// Two are of one name.
    #[error(
        "{asked_for} is the name of an Installation and of a deploy item that is not below it; say installation/{asked_for} or \
         deployitem/{asked_for}"
    )]
    AmbiguousName {
        /// The name.
        asked_for: String,
    },
    /// A job is not on record.
    #[error(
        "job {asked_for} is not on record in namespace {namespace}; orangery history NAME -n {namespace} lists those that are, of which the \
         operator keeps the last ones"
    )]
    NoJob {
        /// The namespace.
        namespace: Namespace,
        /// What was asked for.
        asked_for: String,
    },
    /// Several jobs begin so.
    #[error("{jobs} jobs on record begin with {asked_for}; give more of its id")]
    AmbiguousJob {
        /// What was asked for.
        asked_for: String,
        /// How many.
        jobs: usize,
    },
    /// A record was not written by the operator whose key it names, or that is meant.
    #[error(
        "the record of job {job} of deploy item {item} was not written by {}, or was changed since; do not rely on it",
        of_operator(key.as_deref())
    )]
    Seal {
        /// The job.
        job: JobId,
        /// The deploy item.
        item: String,
        /// The key that is meant; `None` for that of the record itself.
        key: Option<String>,
    },
    /// The records of one job are of several operators.
    #[error("the records of job {job} are of several operators, with the keys {keys}; choose one with --operator-key")]
    SeveralOperators {
        /// The job.
        job: JobId,
        /// Their public keys.
        keys: String,
    },
    /// A record cannot be read.
    #[error("the record of job {job} of deploy item {item} cannot be read: {cause}")]
    Content {
        /// The job.
        job: JobId,
        /// The deploy item.
        item: String,
        /// Why.
        cause: RecordContentError,
    },
    /// A statement cannot be signed.
    #[error("the statement cannot be signed: {0}")]
    Sign(String),
}

fn of_operator(key: Option<&str>) -> String {
    key.map_or_else(|| "the operator whose key it names".to_owned(), |key| format!("the operator with the key {key}"))
}

/// A record, and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct FoundRecord {
    pub(crate) item: PlanItem,
    pub(crate) installation: String,
    pub(crate) record: JobRecord,
    /// Whether it is as the operator has written it whose key it names.
    pub(crate) is_sealed: bool,
}

/// A record as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownRecord {
    pub(crate) item: PlanItem,
    pub(crate) job: JobId,
    pub(crate) number: u64,
    pub(crate) phase: String,
    pub(crate) begun: String,
    pub(crate) written: String,
    pub(crate) summary: String,
    pub(crate) hash: String,
    #[serde(flatten)]
    pub(crate) content: RecordedJob,
}

impl FoundRecord {
    /// Checks the seal, and reads the content. `key` is that of the operator that is meant, where one is.
    ///
    /// # Errors
    /// [`JobRecordError::Seal`] and [`JobRecordError::Content`]
    pub(crate) fn read(&self, key: Option<&str>) -> Result<ShownRecord, JobRecordError> {
        let FoundRecord { item, record, is_sealed, .. } = self;
        let job = record.job_id.clone();
        if !is_sealed || key.is_some_and(|key| key != record.key) {
            return Err(JobRecordError::Seal { job, item: item.name.clone(), key: key.map(str::to_owned) });
        }
        let content = record.recorded();
        let content =
            content.map_err(|cause| JobRecordError::Content { job: job.clone(), item: item.name.clone(), cause })?;
        Ok(ShownRecord {
            item: item.clone(),
            job,
            number: record.number,
            phase: record.phase.clone(),
            begun: record.begun.clone(),
            written: record.written.clone(),
            summary: record.summary.clone(),
            hash: record.hash.clone(),
            content,
        })
    }
}

/// All records of a namespace.
///
/// # Errors
/// The server does not answer, or refuses.
pub(crate) async fn all(client: &Client, namespace: &Namespace) -> Result<Vec<FoundRecord>, JobRecordError> {
    let mut found = Vec::new();
    let take = |history: JobHistory| found.extend(of_history(namespace, history));
    listed::each(client, Some(namespace), (POLICY_GROUP, PAGE), take).await?;
    Ok(found)
}

fn of_history(namespace: &Namespace, history: JobHistory) -> Vec<FoundRecord> {
    let records = history.spec;
    let found = records.records.iter().map(|record| FoundRecord {
        item: records.item.clone(),
        installation: records.installation.clone(),
        record: record.clone(),
        is_sealed: is_sealed(namespace, &records, record),
    });
    found.collect()
}

fn is_sealed(namespace: &Namespace, records: &JobRecords, record: &JobRecord) -> bool {
    let decoded = |text: &str| BASE64.decode(text.as_bytes()).ok();
    let sealed = decoded(&record.key).zip(decoded(&record.seal)).zip(records.sealed(namespace, record));
    sealed.is_some_and(|((key, seal), sealed)| UnparsedPublicKey::new(&ED25519, key).verify(&sealed, &seal).is_ok())
}

/// The records of an Installation, with all that is below it, or of a deploy item, the oldest first.
///
/// # Errors
/// [`JobRecordError::NoHistory`] and [`JobRecordError::AmbiguousName`]
pub(crate) fn of_name(
    all: Vec<FoundRecord>,
    namespace: &Namespace,
    asked_for: &str,
) -> Result<Vec<FoundRecord>, JobRecordError> {
    let (kind, bare) = asked_for.split_once('/').unwrap_or(("", asked_for));
    let is_root = |found: &FoundRecord| kind != "deployitem" && found.installation == bare;
    let is_item = |found: &FoundRecord| kind != "installation" && found.item.name == bare;
    if kind.is_empty() && all.iter().any(is_root) && all.iter().any(|found| is_item(found) && !is_root(found)) {
        return Err(JobRecordError::AmbiguousName { asked_for: bare.to_owned() });
    }
    let mut found: Vec<FoundRecord> = all.into_iter().filter(|found| is_root(found) || is_item(found)).collect();
    if found.is_empty() {
        return Err(JobRecordError::NoHistory { namespace: namespace.clone(), asked_for: asked_for.to_owned() });
    }
    found.sort_by(|a, b| (&a.record.begun, &a.item.name).cmp(&(&b.record.begun, &b.item.name)));
    Ok(found)
}

/// The records of a job, by its id or the begin of that, each checked.
///
/// # Errors
/// [`JobRecordError`]
pub(crate) fn of_job(
    all: &[FoundRecord],
    namespace: &Namespace,
    asked_for: &str,
    key: Option<&str>,
) -> Result<Vec<ShownRecord>, JobRecordError> {
    let ids: BTreeSet<&JobId> = all.iter().map(|found| &found.record.job_id).collect();
    let begins = ids.into_iter().filter(|id| id.starts_with(asked_for) && !asked_for.is_empty());
    let begins: Vec<&JobId> = begins.collect();
    let whole = begins.iter().find(|id| id.as_str() == asked_for);
    let id = match (&begins[..], whole) {
        ([], _) => {
            return Err(JobRecordError::NoJob { namespace: namespace.clone(), asked_for: asked_for.to_owned() });
        }
        ([id], _) | (_, Some(id)) => *id,
        _ => return Err(JobRecordError::AmbiguousJob { asked_for: asked_for.to_owned(), jobs: begins.len() }),
    };
    let found: Vec<&FoundRecord> = all.iter().filter(|found| found.record.job_id == *id).collect();
    let keys: BTreeSet<&str> = found.iter().map(|found| found.record.key.as_str()).collect();
    if keys.len() > 1 && key.is_none() {
        let keys = keys.into_iter().collect::<Vec<_>>().join(", ");
        return Err(JobRecordError::SeveralOperators { job: id.clone(), keys });
    }
    let mut records: Vec<ShownRecord> = found.into_iter().map(|found| found.read(key)).collect::<Result<_, _>>()?;
    records.sort_by(|a, b| (&a.item.name, &a.item.uid).cmp(&(&b.item.name, &b.item.uid)));
    Ok(records)
}

/// The phase of a job of several items.
pub(crate) fn phase_of(phases: &BTreeMap<&str, usize>) -> String {
    let words: Vec<String> = phases.iter().map(|(phase, count)| format!("{count} {phase}")).collect();
    match phases.keys().collect::<Vec<_>>()[..] {
        [one] => (*one).to_owned(),
        _ => words.join(", "),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use orangery_api::job_history::{ABSENT, RecordedInputs, RecordedKey, RecordedWrite};
    use orangery_proposal::ObjectKey;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    /// A history of one record, sealed with a key.
    pub(crate) fn history(key: u8, (root, item): (&str, &str), job: &str, after: &str) -> JobHistory {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[key; 32]).unwrap();
        let key = ObjectKey {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: item.into(),
        };
        let object = RecordedKey { cluster: "target".to_owned(), key };
        let write = RecordedWrite {
            object,
            verb: "create".to_owned(),
            before: ABSENT.to_owned(),
            after: after.to_owned(),
            is_unanswered: false,
            is_after_job: false,
        };
        let inputs = RecordedInputs {
            item: format!("spec {after}"),
            plugin: "manifest 1".to_owned(),
            ..RecordedInputs::default()
        };
        let mut record = JobRecord {
            job_id: job.into(),
            number: 1,
            phase: "Succeeded".to_owned(),
            begun: format!("2026-01-01T00:00:0{}Z", job.len()),
            summary: "1 created".to_owned(),
            key: BASE64.encode(pair.public_key().as_ref()),
            ..JobRecord::default()
        };
        record.keep(RecordedJob { inputs, writes: vec![write], ..RecordedJob::default() }).unwrap();
        let item = PlanItem { name: item.to_owned(), uid: "u".to_owned() };
        let records = JobRecords { item, installation: root.to_owned(), ..JobRecords::default() };
        record.seal = BASE64.encode(pair.sign(&records.sealed(&"default".into(), &record).unwrap()).as_ref());
        let mut history = JobHistory::new("h", JobRecords { records: vec![record], ..records });
        history.metadata.namespace = Some("default".to_owned());
        history
    }

    /// A record as it is shown.
    pub(crate) fn one_record(item: &str, job: &str) -> ShownRecord {
        let found = found(vec![history(1, ("web", item), job, "x")]);
        found[0].read(None).unwrap()
    }

    fn found(histories: Vec<JobHistory>) -> Vec<FoundRecord> {
        histories.into_iter().flat_map(|history| of_history(&"default".into(), history)).collect()
    }

    fn items_of(all: &[FoundRecord], job: &str, key: Option<&str>) -> Result<Vec<String>, String> {
        let found = of_job(all, &"default".into(), job, key).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|record| record.item.name).collect())
    }

    #[test]
    fn c_336_a_job_is_found_by_the_begin_of_its_id() {
        let all = found(vec![
            history(1, ("web", "b"), "aa1", "x"),
            history(1, ("web", "a"), "aa1", "x"),
            history(1, ("web", "a"), "ab2", "x"),
        ]);
        assert_eq!(items_of(&all, "aa1", None), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(items_of(&all, "ab", None), Ok(vec!["a".to_owned()]));
        assert_eq!(items_of(&all, "a", None), Err("2 jobs on record begin with a; give more of its id".to_owned()));
        for job in ["", "c"] {
            assert!(
                items_of(&all, job, None).unwrap_err().contains("is not on record in namespace default"),
                "{job:?}"
            );
        }
    }

    #[test]
    fn c_332_c_336_a_record_that_was_changed_or_is_of_another_operator_is_not_shown() {
        let key = |byte: u8| history(byte, ("web", "a"), "j", "x").spec.records[0].key.clone();
        let own = found(vec![history(1, ("web", "a"), "j", "x")]);
        assert_eq!(items_of(&own, "j", Some(&key(1))), Ok(vec!["a".to_owned()]));
        let error = items_of(&own, "j", Some(&key(2))).unwrap_err();
        assert!(error.contains(&format!("was not written by the operator with the key {}", key(2))), "{error}");
        let changes: [fn(&mut JobHistory); 4] = [
            |history| history.spec.records[0].phase = "Failed".to_owned(),
            |history| history.spec.records[0].number = 2,
            |history| history.spec.item.name = "b".to_owned(),
            |history| history.spec.records[0].seal.clear(),
        ];
        for change in changes {
            let mut history = history(1, ("web", "a"), "j", "x");
            change(&mut history);
            let error = items_of(&found(vec![history]), "j", None).unwrap_err();
            assert!(
                error.contains("was not written by the operator whose key it names, or was changed since"),
                "{error}"
            );
        }
        let two = found(vec![history(1, ("web", "a"), "j", "x"), history(2, ("web", "b"), "j", "x")]);
        assert!(items_of(&two, "j", None).unwrap_err().contains("are of several operators"));
    }

    #[test]
    fn c_336_a_name_is_an_installation_or_a_deploy_item_and_where_it_is_both_it_has_to_be_said() {
        let of = |name: &str| {
            let all = found(vec![
                history(1, ("web", "a"), "j", "x"),
                history(1, ("other", "web"), "k", "x"),
                history(1, ("same", "same"), "l", "x"),
            ]);
            let found = of_name(all, &"default".into(), name).map_err(|error| error.to_string())?;
            Ok::<_, String>(found.into_iter().map(|found| found.record.job_id.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(of("installation/web"), Ok(vec!["j".to_owned()]));
        assert_eq!(of("deployitem/web"), Ok(vec!["k".to_owned()]));
        assert_eq!(of("same"), Ok(vec!["l".to_owned()]));
        assert!(of("web").unwrap_err().starts_with("web is the name of an Installation and of a deploy item"));
        assert!(of("none").unwrap_err().contains("is no job on record"));
    }
}
