//! Writing DataObjects and Targets: import copies, exports, exports of Executions (`landscaper.md` §2.2, §5.4, §5.5).

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ObjectMeta;
use orangery_api::{
    annotation,
    data_object::{DataObject, DataObjectContent},
    label,
    target::{Target, TargetSpec},
};
use orangery_core::{
    error::Failure,
    record::{Content, Place, Purpose, Record, TargetContent},
    step::{Halt, Step},
};
use orangery_reconcile::{Key, Store, Watched, WriteError};

use crate::host::Host;

/// How many records of one owner are written at the same time.
const WRITES_AT_ONCE: usize = 16;

/// Writes records; one that is there already as it should be costs nothing.
pub(crate) async fn write(host: &Host, namespace: &str, owner: &OwnerReference, records: &[Record]) -> Step<()> {
    let writes: Vec<_> = records.iter().map(|record| write_one(host, namespace, owner, record)).collect();
    stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).try_for_each(|()| async { Ok(()) }).await
}

async fn write_one(host: &Host, namespace: &str, owner: &OwnerReference, record: &Record) -> Step<()> {
    let key = Key { namespace: namespace.to_owned(), name: record.name.clone() };
    match &record.content {
        Content::Data(data) => {
            let fill = |mut object: DataObject| {
                object.spec = DataObjectContent { data: data.clone() };
                object.metadata = marked(object.metadata, &key, owner, record, None);
                object
            };
            put(host, &host.stores.data_objects, &key, fill).await
        }
        Content::Target(content) => {
            let spec: TargetSpec = serde_json::from_value(content.spec.clone()).map_err(|error| {
                Halt::Stall(Failure::new(
                    "WriteTarget",
                    "InvalidTarget",
                    format!("the target {} has a wrong form: {error}", record.key),
                ))
            })?;
            let fill = |mut object: Target| {
                object.spec = spec.clone();
                object.metadata = marked(object.metadata, &key, owner, record, Some(content));
                object
            };
            put(host, &host.stores.targets, &key, fill).await
        }
    }
}

async fn put<K: Watched + Default + PartialEq>(
    host: &Host,
    store: &Store<K>,
    key: &Key,
    fill: impl Fn(K) -> K,
) -> Step<()> {
    let writer = host.writer(store);
    let Some(before) = store.get(key) else {
        return match writer.create(&fill(K::default())).await {
            Ok(_) => Ok(()),
            // The store knows it by now; the next try compares.
            Err(error @ WriteError::AlreadyExists { .. }) => Err(error.halt("WriteRecord")),
            Err(error) => Err(error.halt("WriteRecord")),
        };
    };
    let after = fill(K::clone(&before));
    writer.update(&before, &after).await.map(drop).map_err(|error| error.halt("WriteRecord"))
}

/// The metadata of a record's object: what the record says over what is there.
fn marked(
    mut meta: ObjectMeta,
    key: &Key,
    owner: &OwnerReference,
    record: &Record,
    content: Option<&TargetContent>,
) -> ObjectMeta {
    meta.name = Some(key.name.clone());
    meta.namespace = Some(key.namespace.clone());
    let labels = meta.labels.get_or_insert_default();
    labels.extend(content.map(|content| content.labels.clone()).unwrap_or_default());
    labels.retain(|name, _| !OWN_LABELS.contains(&name.as_str()));
    labels.extend(own_labels(record));
    let annotations = meta.annotations.get_or_insert_default();
    annotations.extend(content.map(|content| content.annotations.clone()).unwrap_or_default());
    annotations.insert(annotation::HASH.to_owned(), record.hash.clone());
    let owners = meta.owner_references.get_or_insert_default();
    if !owners.iter().any(|present| present.uid == owner.uid) {
        owners.push(owner.clone());
    }
    meta
}

const OWN_LABELS: [&str; 7] =
    [label::CONTEXT, label::SOURCE, label::SOURCE_TYPE, label::KEY, label::INDEX, label::TARGET_MAP_KEY, label::JOB_ID];

fn own_labels(record: &Record) -> BTreeMap<String, String> {
    let (index, map_key) = match &record.place {
        Some(Place::Index(index)) => (index.to_string(), String::new()),
        Some(Place::Key(key)) => (String::new(), key.clone()),
        None => (String::new(), String::new()),
    };
    let source_type = match record.purpose {
        Some(Purpose::Import) => label::SOURCE_TYPE_IMPORT,
        Some(Purpose::Export) => label::SOURCE_TYPE_EXPORT,
        None => "",
    };
    [
        (label::CONTEXT, record.context.as_str()),
        (label::SOURCE, &record.source),
        (label::SOURCE_TYPE, source_type),
        (label::KEY, &record.key),
        (label::INDEX, &index),
        (label::TARGET_MAP_KEY, &map_key),
        (label::JOB_ID, &record.job),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}
