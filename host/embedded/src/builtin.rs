//! The built-in kinds as tables of data: names, scope, subresources, printer columns, fields, defaults.

mod check;
mod columns;
mod complete;
mod defaults;
mod derived;
mod describe;
mod fields;
mod protobuf;
mod quantity;
mod rows;

use std::sync::Arc;

use self::rows::{BuiltinResource, ROWS};
pub(crate) use self::{
    check::check,
    complete::complete,
    describe::describe,
    fields::unset,
    protobuf::{ProtobufError, decode},
};
use crate::{
    present::Column,
    resource::{Generation, ResourceOrigin, Scale, ServedResource, ServedVersion, collection_of},
};

/// All built-in resources.
pub(crate) fn resources() -> Vec<ServedResource> {
    ROWS.iter().map(resource).collect()
}

fn resource(row: &BuiltinResource) -> ServedResource {
    let scale = row.scaled.then(|| Scale {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: ".status.selector".to_owned(),
    });
    let columns: Arc<[Column]> = columns::of(row.kind).into();
    let version = |name: &&str| ServedVersion {
        name: (*name).to_owned(),
        status: row.status,
        scale: scale.clone(),
        generation: match (row.generation, row.kind) {
            (false, _) => Generation::Never,
            (true, "Deployment") => Generation::SpecOrAnnotations,
            (true, _) => Generation::Spec,
        },
        columns: Arc::clone(&columns),
        schema: None,
        selectable: Vec::new(),
    };
    ServedResource {
        group: row.group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: row.short.iter().map(|&name| name.to_owned()).collect(),
        categories: if row.in_all { vec!["all".to_owned()] } else { Vec::new() },
        namespaced: row.namespaced,
        // Events are one resource under two groups.
        collection: if row.kind == "Event" { "events".into() } else { collection_of(row.plural, row.group).into() },
        versions: row.versions.iter().map(version).collect(),
        origin: if row.answered { ResourceOrigin::GateResult } else { ResourceOrigin::Builtin },
        since: 0,
    }
}

/// The spec fields of a built-in kind that never change after creation, with their paths.
pub(crate) fn immutable_fields(kind: &str) -> &'static [&'static str] {
    rows::IMMUTABLE.iter().find(|(of, _)| *of == kind).map(|(_, fields)| *fields).unwrap_or_default()
}
