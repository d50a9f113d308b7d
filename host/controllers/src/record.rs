//! Writing DataObjects and Targets: import copies, exports, exports of Executions (`docs/wire.md` §2.2, §5.4, §5.5).

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use orangery_api::{convert, data_object::DataObject, label, target::Target};
use orangery_blueprint::{
    import::{Imported, SecretData, secret_data},
    record::{Record, RecordContent},
};
use orangery_core::{
    name::Namespace,
    step::{Halt, Step, Until},
};
use orangery_reconcile::Key;

use crate::{
    controller_context::ControllerContext,
    encryption::EncryptionKey,
    object::is_going,
    secret_data::{encrypt, is_encrypted, mark},
    stores::Stored,
};

/// How many records of one owner are written at the same time.
const WRITES_AT_ONCE: usize = 16;

/// What writes records.
pub(crate) struct RecordOwner<'a> {
    /// Where it is.
    pub(crate) namespace: &'a Namespace,
    /// As the owner of what it writes.
    pub(crate) reference: OwnerReference,
    /// What it imports, and may write again.
    pub(crate) imported: &'a BTreeMap<String, Imported>,
}

/// Writes records; one that is there already as it should be costs nothing. None is written where a policy refuses one of them.
pub(crate) async fn write(host: &ControllerContext, owner: &RecordOwner<'_>, records: &[Record]) -> Step<()> {
    let planned: Vec<PlannedRecord<'_>> =
        records.iter().map(|record| PlannedRecord::of(host, owner, record)).collect::<Step<_>>()?;
    let writes: Vec<_> = planned.iter().map(|planned| planned.write(host, owner)).collect();
    stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).try_for_each(|()| async { Ok(()) }).await
}

/// A record, and what becomes of data of Secrets in it.
struct PlannedRecord<'a> {
    record: &'a Record,
    key: Key,
    secret: Option<SecretData>,
    is_encrypted: bool,
}

impl<'a> PlannedRecord<'a> {
    fn of(host: &ControllerContext, owner: &RecordOwner<'_>, record: &'a Record) -> Step<Self> {
        let key = Key { namespace: owner.namespace.to_owned(), name: record.name.clone() };
        let secret = match &record.content {
            RecordContent::Data(data) => {
                secret_data(owner.imported, data).max(host.secrets.secret_data(owner.namespace, data))
            }
            RecordContent::Target(_) => None,
        };
        let is_encrypted = is_encrypted(&host.policies, &key, secret)?;
        Ok(Self { record, key, secret, is_encrypted })
    }

    async fn write(&self, host: &ControllerContext, owner: &RecordOwner<'_>) -> Step<()> {
        match &self.record.content {
            RecordContent::Data(_) => {
                let fill = |object: &mut DataObject| self.fill(object, host.key.encryption(), &owner.reference);
                put(host, &self.key, fill).await
            }
            RecordContent::Target(_) => {
                let fill = |object: &mut Target| convert::write_target(self.record, object, &owner.reference);
                put(host, &self.key, fill).await
            }
        }
    }

    fn fill(&self, object: &mut DataObject, key: &EncryptionKey, owner: &OwnerReference) {
        convert::write_data_object(self.record, object, owner);
        let labels = object.metadata.labels.get_or_insert_default();
        match self.secret.map(mark) {
            Some(mark) => labels.insert(label::SECRET_DATA.to_owned(), mark.to_owned()),
            None => labels.remove(label::SECRET_DATA),
        };
        if self.is_encrypted {
            encrypt(key, object, &owner.uid);
        }
    }
}

async fn put<K: Stored + Default>(host: &ControllerContext, key: &Key, fill: impl Fn(&mut K)) -> Step<()> {
    let store = K::store(&host.stores);
    let writer = host.writer(store);
    let written = match store.get(key) {
        // What is written to it would go with it (C-138).
        Some(going) if is_going(going.as_ref()) => {
            return Err(Halt::wait(K::KIND.name(), key.name.clone(), Until::Gone));
        }
        Some(before) => {
            let mut after = K::clone(&before);
            fill(&mut after);
            writer.update(&before, &after).await
        }
        None => {
            let mut object = K::default();
            object.meta_mut().namespace = Some(key.namespace.to_string());
            fill(&mut object);
            // One that exists all the same is known to the store by then: the next try compares.
            writer.create(&object).await
        }
    };
    written.map(drop).map_err(|error| error.halt("WriteRecord"))
}
