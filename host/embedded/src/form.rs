//! In which form objects are answered: whole, as metadata alone, or as a table.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::{
    cluster::EmbeddedCluster,
    convert,
    present::{self, Include},
    resource::Served,
    store::ObjectVersion,
};

/// The form that the `Accept` header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseForm {
    Whole,
    Metadata,
    Table(Include),
}

impl ResponseForm {
    /// Reads an `Accept` header as a real server does: of the forms that we have the one of the highest quality, of equal
    /// ones the first. None where there is none, as where a client takes protobuf alone.
    pub(crate) fn parse(accept: &str, include: Option<&str>) -> Option<Self> {
        if accept.trim().is_empty() {
            return Some(Self::Whole);
        }
        let mut ranges: Vec<&str> = accept.split(',').collect();
        ranges.sort_by(|one, other| quality(other).total_cmp(&quality(one)));
        ranges.into_iter().find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next()?;
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                return None;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => Some(Self::Whole),
                Some("Table") => Some(Self::Table(Include::parse(include))),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Self::Metadata),
                Some(_) => None,
            }
        })
    }

    /// One object.
    pub(crate) fn one(self, cluster: &EmbeddedCluster, served: &Served, entry: &ObjectVersion) -> Bytes {
        match self {
            Self::Whole => convert::served_bytes(served, entry),
            Self::Metadata => text(&present::metadata_only(&entry.value())),
            Self::Table(include) => {
                let meta = json!({"resourceVersion": entry.revision.to_string()});
                text(&self::table(cluster, served, &[convert::served_value(served, entry)], include, meta))
            }
        }
    }

    /// Many objects; `meta` is the list's own metadata.
    pub(crate) fn many(
        self,
        cluster: &EmbeddedCluster,
        served: &Served,
        entries: &[Arc<ObjectVersion>],
        meta: Value,
    ) -> Bytes {
        match self {
            Self::Whole => {
                let head =
                    json!({"kind": served.resource.list_kind, "apiVersion": served.api_version(), "metadata": meta});
                whole(&head, entries.iter().map(|entry| convert::served_bytes(served, entry)))
            }
            Self::Metadata => {
                let head =
                    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta});
                whole(&head, entries.iter().map(|entry| text(&present::metadata_only(&entry.value()))))
            }
            Self::Table(include) => {
                let objects: Vec<Value> = entries.iter().map(|entry| convert::served_value(served, entry)).collect();
                text(&self::table(cluster, served, &objects, include, meta))
            }
        }
    }

    /// The object of a bookmark.
    pub(crate) fn bookmark(self, served: &Served, metadata: Value) -> Value {
        match self {
            Self::Whole => json!({"kind": served.kind(), "apiVersion": served.api_version(), "metadata": metadata}),
            Self::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Self::Table(_) => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": metadata.get("resourceVersion")},
                "columnDefinitions": null,
                "rows": [{"cells": [], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}],
            }),
        }
    }
}

/// How much a client wants one of the forms that it names: 1 where it does not say.
fn quality(range: &str) -> f64 {
    let said = range.split(';').find_map(|part| part.trim().strip_prefix("q="));
    said.and_then(|said| said.trim().parse().ok()).unwrap_or(1.0)
}

fn table(cluster: &EmbeddedCluster, served: &Served, objects: &[Value], include: Include, meta: Value) -> Value {
    let columns = present::columns_of(&served.version().columns);
    present::table(&columns, objects, include, meta, cluster.now())
}

fn text(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// A list put together from the bytes of its items, which are not read.
fn whole(head: &Value, items: impl Iterator<Item = Bytes>) -> Bytes {
    let head = head.to_string();
    let mut list = BytesMut::with_capacity(64 * 1024);
    list.put_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
    list.put_slice(b",\"items\":[");
    for (index, item) in items.enumerate() {
        if index > 0 {
            list.put_u8(b',');
        }
        list.put(item);
    }
    list.put_slice(b"]}");
    list.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: Option<ResponseForm>) {
        assert_eq!(ResponseForm::parse(accept, None), expected, "{accept}");
    }

    #[test]
    fn what_a_client_would_rather_have_counts_where_there_is_one() {
        let table = Some(ResponseForm::Table(Include::parse(None)));
        let [whole, metadata] = [ResponseForm::Whole, ResponseForm::Metadata].map(Some);
        let protobuf = "application/vnd.kubernetes.protobuf";
        check("", whole);
        check(protobuf, None);
        check(&format!("{protobuf};stream=watch"), None);
        check("application/cbor", None);
        check("application/json;as=Unknown;v=v1", None);
        // As client-go asks, with and without a list of its own, and its clients of metadata.
        check(&format!("{protobuf}, */*"), whole);
        check(&format!("{protobuf},application/json"), whole);
        let as_metadata = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        check(&format!("{protobuf};{as_metadata},application/json;{as_metadata},application/json"), metadata);
        // As kubectl asks.
        check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table);
        check("application/json;q=0.5, application/json;as=Table;v=v1;g=meta.k8s.io", table);
        check("application/json;as=Table;v=v1;q=0.1,application/yaml,application/json", whole);
    }
}
