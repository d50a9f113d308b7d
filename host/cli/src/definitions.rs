//! What a job was made from, as the operator has kept it, read and checked (C-358).

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, ResourceExt as _};
use orangery_api::{
    installation::Installation,
    job_definition::{
        DEFINITION, DEFINITION_SEAL, DEFINITION_TYPE, JobDefinition, JobDefinitionError, sealed_definition,
    },
    job_history::JobDefinitionPlace,
};
use orangery_core::name::{JobId, Kind, Namespace, ObjectName, can_be_name};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::{
    call::{CallError, CallSubject},
    records::{FoundRecord, JobRecordError, ShownRecord, all, of_job, of_name},
};

const SECRET: &Kind = &Kind::from_static("Secret");

/// Why it is not known what a job was made from.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// The job is not on record, or its record is none to rely on.
    #[error(transparent)]
    Record(#[from] JobRecordError),
    /// The server does not answer, or refuses.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The record does not tell.
    #[error(
        "job {job} cannot be gone back to: its record does not say what it was made from, as those of earlier versions of the operator; \
         orangery show {job} has the digests"
    )]
    NotOnRecord {
        /// The job.
        job: JobId,
    },
    /// It was not kept.
    #[error("job {job} cannot be gone back to: what it was made from was not kept: {why}")]
    NotKept {
        /// The job.
        job: JobId,
        /// Why.
        why: String,
    },
    /// The records of the job do not agree.
    #[error("the records of job {job} name several definitions, which none of an operator do; do not rely on them")]
    Several {
        /// The job.
        job: JobId,
    },
    /// It is kept no longer.
    #[error(
        "job {job} cannot be gone back to: Secret {secret}, which had what it was made from, is gone; the operator keeps the last ones, and \
         orangery history shows later jobs"
    )]
    Gone {
        /// The job.
        job: JobId,
        /// The Secret.
        secret: String,
    },
    /// It was not written by the operator that wrote the record, or is of something else.
    #[error(
        "Secret {secret} is not what the operator has kept of job {job}: it was made or changed by somebody else, or is of another \
         Installation; do not rely on it"
    )]
    Seal {
        /// The job.
        job: JobId,
        /// The Secret.
        secret: String,
    },
    /// It cannot be read.
    #[error("what job {job} was made from cannot be read from Secret {secret}: {cause}")]
    Content {
        /// The job.
        job: JobId,
        /// The Secret.
        secret: String,
        /// Why.
        cause: JobDefinitionError,
    },
}

/// A job, and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedDefinition {
    /// The job.
    pub job: JobId,
    /// What it was made from.
    pub definition: JobDefinition<'static>,
    /// Which deploy items other components have been for since.
    pub components: Vec<ChangedComponent>,
}

/// A deploy item whose last job was carried out by another component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedComponent {
    /// The item.
    pub item: String,
    /// Component, version and digest in the job that is gone back to.
    pub then: String,
    /// The same in the last job on record.
    pub last: String,
}

impl RecordedDefinition {
    /// What a job of a root was made from. `id` is the begin of its id, `key` that of the operator that is meant, where one is.
    ///
    /// # Errors
    /// [`DefinitionError`]
    pub async fn read(
        client: &Client,
        root: &Installation,
        (id, key): (&str, Option<&str>),
    ) -> Result<Self, DefinitionError> {
        let namespace: Namespace = root.namespace().unwrap_or_default().into();
        let found = all(client, &namespace).await?;
        let found = of_name(found, &namespace, &format!("installation/{}", root.name_any()))?;
        let records = of_job(&found, &namespace, id, key)?;
        let (job, place) = place(&records)?;
        let components = changed_components(&records, &found, key);
        let signed_by = found.iter().find(|found| found.record.job_id == job).map(|found| found.record.key.clone());
        let unsealed = || DefinitionError::Seal { job: job.clone(), secret: place.secret.clone() };
        if !can_be_name(&place.secret) {
            return Err(unsealed());
        }
        let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        let name: ObjectName = place.secret.as_str().into();
        let subject = CallSubject { kind: SECRET, group: "", namespace: &namespace, name: &name };
        let secret = api.get_opt(&name).await.map_err(|error| CallError::of(subject, error))?;
        let secret = secret.ok_or_else(|| DefinitionError::Gone { job: job.clone(), secret: place.secret.clone() })?;
        let packed = packed(&namespace, &secret, &signed_by.unwrap_or_default()).ok_or_else(unsealed)?;
        let definition = JobDefinition::unpacked(packed);
        let definition = definition.map_err(|cause| DefinitionError::Content {
            job: job.clone(),
            secret: place.secret.clone(),
            cause,
        })?;
        let of = &definition.installation;
        if Some(&of.uid) != root.metadata.uid.as_ref() || of.name != root.name_any() {
            return Err(unsealed());
        }
        Ok(Self { job, definition, components })
    }
}

/// Which job, and where what it was made from is.
fn place(records: &[ShownRecord]) -> Result<(JobId, JobDefinitionPlace), DefinitionError> {
    let job = records.first().map(|record| record.job.clone()).unwrap_or_default();
    let places: BTreeSet<(&str, &str)> = records
        .iter()
        .filter_map(|record| record.content.inputs.definition.as_ref())
        .map(|place| (place.secret.as_str(), place.not_kept.as_str()))
        .collect();
    match places.into_iter().collect::<Vec<_>>()[..] {
        [] => Err(DefinitionError::NotOnRecord { job }),
        [("", why)] => Err(DefinitionError::NotKept { job, why: why.to_owned() }),
        [(secret, _)] => Ok((job, JobDefinitionPlace { secret: secret.to_owned(), not_kept: String::new() })),
        _ => Err(DefinitionError::Several { job }),
    }
}

/// What the operator with this key has kept in a Secret; `None` where it is not as that has written it.
fn packed<'a>(namespace: &Namespace, secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    let ByteString(packed) = secret.data.as_ref()?.get(DEFINITION)?;
    let decoded = |text: &str| BASE64.decode(text.as_bytes()).ok();
    let seal = decoded(secret.annotations().get(DEFINITION_SEAL)?)?;
    let sealed = sealed_definition(namespace, &secret.name_any(), packed)?;
    let is_sealed = UnparsedPublicKey::new(&ED25519, decoded(key)?).verify(&sealed, &seal).is_ok();
    (is_sealed && secret.type_.as_deref() == Some(DEFINITION_TYPE)).then_some(packed.as_slice())
}

/// The deploy items of a job whose last record, as far as it is to be relied on, has another component.
fn changed_components(records: &[ShownRecord], found: &[FoundRecord], key: Option<&str>) -> Vec<ChangedComponent> {
    let component = |record: &ShownRecord| {
        let inputs = &record.content.inputs;
        (inputs.plugin_digest.clone(), format!("{} ({})", inputs.plugin, inputs.plugin_digest))
    };
    let mut last: BTreeMap<&str, &FoundRecord> = BTreeMap::new();
    for found in found {
        let newest = last.entry(found.item.name.as_str()).or_insert(found);
        if (&found.record.begun, found.record.number) >= (&newest.record.begun, newest.record.number) {
            *newest = found;
        }
    }
    let changed = records.iter().filter_map(|record| {
        let last = last.get(record.item.name.as_str())?.read(key).ok()?;
        let ((digest, then), (last_digest, last)) = (component(record), component(&last));
        (digest != last_digest).then(|| ChangedComponent { item: record.item.name.clone(), then, last })
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use orangery_api::{
        job_history::{RecordedInputs, RecordedJob},
        plan::PlanItem,
    };
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    fn record(place: Option<(&str, &str)>) -> ShownRecord {
        let definition = place
            .map(|(secret, not_kept)| JobDefinitionPlace { secret: secret.to_owned(), not_kept: not_kept.to_owned() });
        ShownRecord {
            item: PlanItem { name: "item".to_owned(), uid: "u".to_owned() },
            job: "j".into(),
            number: 1,
            phase: "Succeeded".to_owned(),
            begun: String::new(),
            written: String::new(),
            summary: String::new(),
            hash: String::new(),
            content: RecordedJob {
                inputs: RecordedInputs { definition, ..RecordedInputs::default() },
                ..RecordedJob::default()
            },
        }
    }

    #[test]
    fn c_360_a_job_is_gone_back_to_where_its_records_tell_one_definition() {
        let of = |places: &[Option<(&str, &str)>]| {
            let records: Vec<ShownRecord> = places.iter().map(|place| record(*place)).collect();
            place(&records).map(|(job, place)| (job.to_string(), place.secret)).map_err(|error| error.to_string())
        };
        let a = Some(("web-job-a", ""));
        assert_eq!(of(&[a, None, a]), Ok(("j".to_owned(), "web-job-a".to_owned())));
        assert!(of(&[None]).unwrap_err().contains("its record does not say what it was made from"));
        let error = of(&[Some(("", "it has too many bytes"))]).unwrap_err();
        assert_eq!(error, "job j cannot be gone back to: what it was made from was not kept: it has too many bytes");
        assert!(of(&[a, Some(("web-job-b", ""))]).unwrap_err().contains("name several definitions"));
    }

    #[test]
    fn c_360_a_definition_counts_as_the_operator_of_the_record_has_written_it_and_where() {
        let pair = |byte: u8| Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).unwrap();
        let key = |byte: u8| BASE64.encode(pair(byte).public_key().as_ref());
        let namespace = Namespace::from_static("n");
        let mut secret = Secret { type_: Some(DEFINITION_TYPE.to_owned()), ..Secret::default() };
        secret.metadata.name = Some("web-job-a".to_owned());
        secret.data = Some([(DEFINITION.to_owned(), ByteString(b"content".to_vec()))].into());
        let seal = pair(1).sign(&sealed_definition(&namespace, "web-job-a", b"content").unwrap());
        secret.annotations_mut().insert(DEFINITION_SEAL.to_owned(), BASE64.encode(seal.as_ref()));
        assert_eq!(packed(&namespace, &secret, &key(1)), Some(&b"content"[..]));
        assert_eq!(packed(&namespace, &secret, &key(2)), None, "of another operator");
        assert_eq!(packed(&namespace, &secret, ""), None);
        assert_eq!(packed(&Namespace::from_static("m"), &secret, &key(1)), None, "of another namespace");
        let changes: [fn(&mut Secret); 5] = [
            |secret| secret.metadata.name = Some("web-job-b".to_owned()),
            |secret| secret.data = Some([(DEFINITION.to_owned(), ByteString(b"other".to_vec()))].into()),
            |secret| secret.data = None,
            |secret| secret.type_ = Some("Opaque".to_owned()),
            |secret| secret.metadata.annotations = None,
        ];
        for change in changes {
            let mut changed = secret.clone();
            change(&mut changed);
            assert_eq!(packed(&namespace, &changed, &key(1)), None, "{changed:?}");
        }
    }
}
