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
    /// Reads an `Accept` header: the first form we have. None if there is none.
    pub(crate) fn parse(accept: &str, include: Option<&str>) -> Option<Self> {
        if accept.trim().is_empty() {
            return Some(Self::Whole);
        }
        accept.split(',').find_map(|range| {
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
