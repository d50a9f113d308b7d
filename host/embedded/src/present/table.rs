//! The `Table` form of objects, which `kubectl get` asks for.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Cell, Column, metadata_only};

/// What of an object goes along with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    /// Reads the query parameter `includeObject`.
    pub(crate) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("None") => Self::Nothing,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// The columns of a kind: its name first, unless it has a place for that among its own.
pub(crate) fn columns_of(columns: &[Column]) -> Vec<Column> {
    if columns.iter().any(|column| column.title == "Name") {
        return columns.to_vec();
    }
    let name = Column {
        format: "name".to_owned(),
        ..Column::new("Name", "string", Cell::Path(vec!["metadata".to_owned(), "name".to_owned()]))
    };
    std::iter::once(name).chain(columns.iter().cloned()).collect()
}

/// A table of objects; `meta` is the list's own metadata.
pub(crate) fn table(columns: &[Column], objects: &[Value], include: Include, meta: Value, now: Timestamp) -> Value {
    let definitions: Vec<Value> = columns.iter().map(definition).collect();
    let rows: Vec<Value> = objects.iter().map(|object| row(columns, object, include, now)).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.title, "type": column.of, "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn row(columns: &[Column], object: &Value, include: Include, now: Timestamp) -> Value {
    let cells: Vec<Value> = columns.iter().map(|column| column.show(object, now)).collect();
    match include {
        Include::Nothing => json!({"cells": cells}),
        Include::Metadata => json!({"cells": cells, "object": metadata_only(object)}),
        Include::Object => json!({"cells": cells, "object": object}),
    }
}
