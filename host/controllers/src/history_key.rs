//! The key by which records of jobs are known as those of the operator (C-332). It is a pair, unlike the key of seals: auditors check a
//! record without being able to make one.

use std::{fmt, sync::Arc};

use data_encoding::BASE64;
use orangery_api::job_history::{JobRecord, JobRecords};
use orangery_core::name::Namespace;
use ring::{
    hmac,
    signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey},
};

/// What it is derived with: no text that the randomness of a job is derived from, as it has no `/`.
const DERIVED_WITH: &[u8] = b"orangery.dev key of job histories";

/// A key pair of the operator: Ed25519.
#[derive(Clone)]
pub(crate) struct HistoryKey(Option<Arc<Ed25519KeyPair>>);

impl fmt::Debug for HistoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryKey([...])")
    }
}

impl HistoryKey {
    /// Derived from the key of the operator.
    pub(crate) fn of(operators: &hmac::Key) -> Self {
        let seed = hmac::sign(operators, DERIVED_WITH);
        Self(Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).ok().map(Arc::new))
    }

    /// The public key, in base64.
    pub(crate) fn public(&self) -> String {
        self.0.as_ref().map_or_else(String::new, |pair| BASE64.encode(pair.public_key().as_ref()))
    }

    /// Signs a record of these.
    pub(crate) fn seal(&self, namespace: &Namespace, records: &JobRecords, record: &mut JobRecord) {
        record.key = self.public();
        if let Some(seal) = records.sealed(namespace, record).and_then(|sealed| self.sign(&sealed)) {
            record.seal = seal;
        }
    }

    /// The signature of what is sealed, in base64.
    pub(crate) fn sign(&self, sealed: &[u8]) -> Option<String> {
        Some(BASE64.encode(self.0.as_ref()?.sign(sealed).as_ref()))
    }

    /// Whether this operator has written a record as it is.
    pub(crate) fn knows(&self, namespace: &Namespace, records: &JobRecords, record: &JobRecord) -> bool {
        let tag = BASE64.decode(record.seal.as_bytes()).ok();
        let sealed = self.0.as_ref().zip(tag).zip(records.sealed(namespace, record));
        sealed.is_some_and(|((pair, tag), sealed)| {
            record.key == self.public()
                && UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref()).verify(&sealed, &tag).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use orangery_api::plan::PlanItem;

    use super::*;

    #[test]
    fn c_332_a_record_is_known_by_its_operator_as_it_is_and_by_no_other() {
        let key = |byte: u8| HistoryKey::of(&hmac::Key::new(hmac::HMAC_SHA256, &[byte; 32]));
        let (own, other) = (key(1), key(2));
        let item = PlanItem { name: "item".to_owned(), uid: "u".to_owned() };
        let records = JobRecords { item, installation: "web".to_owned(), ..JobRecords::default() };
        let mut record = JobRecord { job_id: "j".into(), number: 1, ..JobRecord::default() };
        own.seal(&"n".into(), &records, &mut record);
        assert!(own.knows(&"n".into(), &records, &record));
        assert!(!other.knows(&"n".into(), &records, &record));
        assert!(!own.knows(&"m".into(), &records, &record), "of another namespace");
        let changes: [fn(&mut JobRecord); 5] = [
            |record| record.number += 1,
            |record| record.phase.push('x'),
            |record| record.hash.push('x'),
            |record| record.key.push('x'),
            |record| record.seal.clear(),
        ];
        for change in changes {
            let mut changed = record.clone();
            change(&mut changed);
            assert!(!own.knows(&"n".into(), &records, &changed), "{changed:?}");
        }
        let moved = JobRecords { item: PlanItem { uid: "v".to_owned(), ..records.item.clone() }, ..records };
        assert!(!own.knows(&"n".into(), &moved, &record), "of another item");
    }
}
