//! Writing DataObjects and Targets: import copies, exports, exports of Executions (`docs/wire.md` §2.2, §5.4, §5.5).

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use orangery_api::{convert, data_object::DataObject, label, target::Target};
use orangery_blueprint::record::{Record, RecordContent};
use orangery_core::{name::Namespace, step::Step};
use orangery_reconcile::{Key, Store, Watched};

use crate::{controller_context::ControllerContext, secret_values::SecretData};

/// How many records of one owner are written at the same time.
const WRITES_AT_ONCE: usize = 16;

/// Writes records; one that is there already as it should be costs nothing.
pub(crate) async fn write(
    host: &ControllerContext,
    namespace: &Namespace,
    owner: &OwnerReference,
    records: &[Record],
) -> Step<()> {
    let writes: Vec<_> = records.iter().map(|record| write_one(host, namespace, owner, record)).collect();
    stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).try_for_each(|()| async { Ok(()) }).await
}

async fn write_one(
    host: &ControllerContext,
    namespace: &Namespace,
    owner: &OwnerReference,
    record: &Record,
) -> Step<()> {
    let key = Key { namespace: namespace.to_owned(), name: record.name.clone() };
    match &record.content {
        RecordContent::Data(data) => {
            let secret = host.secrets.secret_data(namespace, data).map(SecretData::label);
            let fill = |object: &mut DataObject| {
                convert::write_data_object(record, object, owner);
                let labels = object.metadata.labels.get_or_insert_default();
                match secret {
                    Some(secret) => labels.insert(label::SECRET_DATA.to_owned(), secret.to_owned()),
                    None => labels.remove(label::SECRET_DATA),
                };
            };
            put(host, &host.stores.data_objects, &key, fill).await
        }
        RecordContent::Target(_) => {
            let fill = |object: &mut Target| convert::write_target(record, object, owner);
            put(host, &host.stores.targets, &key, fill).await
        }
    }
}

async fn put<K: Watched + Default>(
    host: &ControllerContext,
    store: &Store<K>,
    key: &Key,
    fill: impl Fn(&mut K),
) -> Step<()> {
    let writer = host.writer(store);
    let written = match store.get(key) {
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
