//! Custom kinds: from the text of a CustomResourceDefinition to a resource that is served.

mod names;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::names::establish;
use crate::{
    object::{self, text},
    present::{Cell, Column, JsonPath},
    refusal::StatusCause,
    resource::{Generation, ResourceOrigin, Scale, ServedResource, ServedVersion, collection_of},
    schema::OpenApiSchema,
};

/// The finalizer that keeps a CRD until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The collection of the definitions themselves.
pub(crate) const SHELF: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Whether its names were accepted, so that it is served.
pub(crate) fn is_established(crd: &Value) -> bool {
    let holds = |c: &Value| text(c, &["type"]) == Some("Established") && text(c, &["status"]) == Some("True");
    object::items(crd, &["status", "conditions"]).iter().any(holds)
}

/// The resource that a definition describes.
pub(crate) fn resource(crd: &Value) -> ServedResource {
    let field = |path: &[&str]| text(crd, path).unwrap_or_default().to_owned();
    let texts = |name: &str| {
        let entries = object::items(crd, &["spec", "names", name]).iter();
        entries.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let (group, plural, kind) =
        (field(&["spec", "group"]), field(&["spec", "names", "plural"]), field(&["spec", "names", "kind"]));
    let served = |version: &&Value| version.get("served") == Some(&Value::Bool(true));
    let mut versions: Vec<ServedVersion> =
        object::items(crd, &["spec", "versions"]).iter().filter(served).map(version).collect();
    versions.sort_by_cached_key(|version| std::cmp::Reverse(names::priority(&version.name)));
    ServedResource {
        singular: field(&["spec", "names", "singular"]),
        list_kind: field(&["spec", "names", "listKind"]),
        short_names: texts("shortNames"),
        categories: texts("categories"),
        namespaced: text(crd, &["spec", "scope"]) == Some("Namespaced"),
        collection: collection_of(&plural, &group).into(),
        versions,
        origin: if object::deleting(crd) { ResourceOrigin::Terminating } else { ResourceOrigin::Custom },
        since: 0,
        group,
        plural,
        kind,
    }
}

fn version(version: &Value) -> ServedVersion {
    let columns: Vec<Column> = object::items(version, &["additionalPrinterColumns"]).iter().map(column).collect();
    let columns = if columns.is_empty() {
        let created = vec!["metadata".to_owned(), "creationTimestamp".to_owned()];
        vec![Column::new("Age", "date", Cell::Since(created))]
    } else {
        columns
    };
    let scale = object::at(version, &["subresources", "scale"]).map(|scale| Scale {
        spec_replicas: text(scale, &["specReplicasPath"]).unwrap_or_default().to_owned(),
        status_replicas: text(scale, &["statusReplicasPath"]).unwrap_or_default().to_owned(),
        selector: text(scale, &["labelSelectorPath"]).unwrap_or_default().to_owned(),
    });
    let schema = object::at(version, &["schema", "openAPIV3Schema"]).cloned();
    ServedVersion {
        name: text(version, &["name"]).unwrap_or_default().to_owned(),
        status: object::at(version, &["subresources", "status"]).is_some(),
        scale,
        generation: Generation::Content,
        columns: columns.into(),
        schema: schema.map(|schema| Arc::new(OpenApiSchema::new(schema))),
        selectable: object::items(version, &["selectableFields"])
            .iter()
            .filter_map(|field| text(field, &["jsonPath"]))
            .map(|path| path.trim_start_matches('.').to_owned())
            .collect(),
    }
}

fn column(column: &Value) -> Column {
    let field = |name: &str| text(column, &[name]).unwrap_or_default().to_owned();
    let path = JsonPath::parse(&field("jsonPath")).unwrap_or_else(|| JsonPath::of_fields(&[]));
    Column {
        format: field("format"),
        description: field("description"),
        priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
        ..Column::new(&field("name"), &field("type"), Cell::Json(path))
    }
}

/// What is wrong with a definition.
pub(crate) fn problems(crd: &Value) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    for path in [["spec", "group", ""], ["spec", "scope", ""], ["spec", "names", "plural"], ["spec", "names", "kind"]] {
        let path: Vec<&str> = path.into_iter().filter(|field| !field.is_empty()).collect();
        if text(crd, &path).is_none_or(str::is_empty) {
            causes.push(StatusCause::required(path.join("."), ""));
        }
    }
    let full = format!(
        "{}.{}",
        text(crd, &["spec", "names", "plural"]).unwrap_or_default(),
        text(crd, &["spec", "group"]).unwrap_or_default()
    );
    let name = object::meta(crd, "name");
    if causes.is_empty() && name != full {
        causes.push(StatusCause::invalid("metadata.name", &json!(name), "must be spec.names.plural+\".\"+spec.group"));
    }
    let versions = object::items(crd, &["spec", "versions"]);
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count();
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(StatusCause::invalid("spec.versions", &json!(versions), why));
    }
    for (index, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        match object::at(version, &["schema", "openAPIV3Schema"]) {
            None => causes.push(StatusCause::required(field, "schemas are required")),
            Some(schema) => causes.extend(OpenApiSchema::new(schema.clone()).problems(&field)),
        }
    }
    causes
}
