//! What every new form of an object goes through, whoever made it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Draft, FieldValidation, ObjectPart, WriteRequest, admit};
use crate::{
    builtin,
    cluster::EmbeddedCluster,
    crd,
    object::{self, meta},
    policy::Attempt,
    refusal::{Refusal, StatusCause},
    resource::Generation,
};

/// The metadata fields that exist; others are dropped.
const META_FIELDS: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The most levels of lists and objects in each other of an object: a decoder of JSON ends at 128, and in a list an object stands two
/// levels deep, so that what is deeper could not be read back (C-154). A body is not deeper, but the managed fields of what stands in
/// it are.
const DEEPEST_OBJECT: usize = 125;

/// Refuses what could not be read back.
fn check_levels(call: &WriteRequest, object: &Value) -> Result<(), Refusal> {
    let found = object::levels(object);
    if found <= DEEPEST_OBJECT {
        return Ok(());
    }
    let why = format!(
        "the values of the object stand {found} levels deep in each other with these, and {DEEPEST_OBJECT} are allowed; make what \
         stands in it less deep"
    );
    let (resource, cause) = (&call.served.resource, StatusCause::forbidden("metadata.managedFields", &why));
    Err(Refusal::invalid(&resource.kind, &resource.group, meta(object, "name"), &[cause]))
}

/// A write that is about to happen, with the namespace that it is in.
fn attempt<'a>(
    call: &'a WriteRequest,
    namespace: Option<&'a Value>,
    old: Option<&'a Value>,
    new: &'a Value,
) -> Attempt<'a> {
    Attempt { served: &call.served, part: call.part, namespace, old, new, dry_run: call.dry_run }
}

fn namespace_of(cluster: &EmbeddedCluster, call: &WriteRequest) -> Option<Value> {
    cluster.namespace(if call.served.resource.namespaced { &call.namespace } else { "" })
}

/// What the policies of the cluster make of a new form, in the kind's shape again.
pub(super) fn mutate(
    cluster: &EmbeddedCluster,
    call: &WriteRequest,
    old: Option<&Value>,
    draft: Draft,
) -> Result<Draft, Refusal> {
    if !cluster.mutates() {
        return Ok(draft);
    }
    let namespace = namespace_of(cluster, call);
    let asked = attempt(call, namespace.as_ref(), old, &draft.object);
    let Some(changed) = cluster.mutate(&asked, call.shape())? else { return Ok(draft) };
    let changed = shape_up(cluster, call, old, changed)?;
    Ok(Draft { object: changed.object, warnings: [draft.warnings, changed.warnings].concat() })
}

/// Holds a new form against the policies of the cluster, and adds their warnings to its own.
pub(super) fn admit(
    cluster: &EmbeddedCluster,
    call: &WriteRequest,
    old: Option<&Value>,
    draft: &mut Draft,
) -> Result<(), Refusal> {
    check_levels(call, &draft.object)?;
    let namespace = namespace_of(cluster, call);
    let asked = attempt(call, namespace.as_ref(), old, &draft.object);
    let warnings = cluster.admit(&asked)?;
    draft.warnings.extend(warnings);
    Ok(())
}

/// Holds a deletion that somebody asks for against the policies of the cluster; answers their warnings.
pub(super) fn admit_deletion(
    cluster: &EmbeddedCluster,
    call: &WriteRequest,
    live: &Value,
    dry_run: bool,
) -> Result<Vec<String>, Refusal> {
    // What owners, namespaces and definitions take along is the server's own affair.
    if call.user.is_none() {
        return Ok(Vec::new());
    }
    let namespace = namespace_of(cluster, call);
    let asked = attempt(call, namespace.as_ref(), Some(live), &Value::Null);
    cluster.admit(&Attempt { dry_run: call.dry_run || dry_run, ..asked })
}

/// Brings a new form into the kind's shape: prunes, fills in defaults, judges. The old form is there for updates.
pub(super) fn shape_up(
    cluster: &EmbeddedCluster,
    call: &WriteRequest,
    old: Option<&Value>,
    mut new: Value,
) -> Result<Draft, Refusal> {
    let mut unknown = prune_metadata(&mut new);
    let schema = call.served.version().schema.as_deref().filter(|_| call.served.is_custom());
    if let Some(schema) = schema {
        unknown.extend(schema.prune(&mut new));
        schema.fill_defaults(&mut new);
    }
    if !call.served.is_custom() {
        let misfits = builtin::check(&mut new);
        unknown.extend(misfits.unknown);
        if let Some(mistyped) = misfits.mistyped.first() {
            let (kind, version) = (call.served.kind(), call.served.api_version());
            let why = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: json: {mistyped}");
            return Err(Refusal::bad_request(why));
        }
        builtin::complete(&mut new);
    }
    let doubled = call.doubled.iter().map(|field| format!("duplicate field \"{field}\""));
    let warnings: Vec<String> =
        unknown.iter().map(|field| format!("unknown field \"{field}\"")).chain(doubled).collect();
    if call.validation == FieldValidation::Strict && !warnings.is_empty() {
        return Err(Refusal::bad_request(format!("strict decoding error: {}", warnings.join(", "))));
    }
    let mut causes = metadata_problems(&new, old);
    if let Some(schema) = schema {
        causes.extend(match call.part {
            ObjectPart::Status => schema.validate_status(&new),
            ObjectPart::Main | ObjectPart::Scale | ObjectPart::Finalizers => schema.validate(&new),
        });
    } else if !call.served.is_custom() {
        admit::builtin(cluster, call.served.kind(), old, &mut new, &mut causes)?;
    }
    if !causes.is_empty() {
        let resource = &call.served.resource;
        return Err(Refusal::invalid(&resource.kind, &resource.group, meta(&new, "name"), &causes));
    }
    let warnings = if call.validation == FieldValidation::Warn { warnings } else { Vec::new() };
    Ok(Draft { object: new, warnings })
}

pub(super) fn prune_metadata(object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    object::meta_mut(object).retain(|field, value| {
        let known = META_FIELDS.contains(&field.as_str());
        if !known {
            unknown.push(format!("metadata.{field}"));
        }
        known && !value.is_null()
    });
    unknown
}

fn metadata_problems(new: &Value, old: Option<&Value>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    for map in ["labels", "annotations"] {
        for (name, value) in object::at(new, &["metadata", map]).and_then(Value::as_object).into_iter().flatten() {
            if !value.is_string() {
                causes.push(StatusCause::invalid(format!("metadata.{map}.{name}"), value, "must be a string"));
            } else if map == "labels" && !is_label_value(value.as_str().unwrap_or_default()) {
                let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
                causes.push(StatusCause::invalid("metadata.labels", value, why));
            }
        }
    }
    for (index, owner) in object::items(new, &["metadata", "ownerReferences"]).iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if object::text(owner, &[field]).is_none_or(str::is_empty) {
                causes.push(StatusCause::invalid(
                    format!("metadata.ownerReferences[{index}].{field}"),
                    &json!(""),
                    "must not be empty",
                ));
            }
        }
    }
    if let Some(old) = old.filter(|old| object::deleting(old)) {
        let known: HashSet<&str> = object::finalizers(old).into_iter().collect();
        let fresh: Vec<&str> = object::finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
        if !fresh.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{fresh:?}"
            );
            let listed = why.replace("[]string[", "[]string{").trim_end_matches(']').to_owned() + "}";
            causes.push(StatusCause::forbidden("metadata.finalizers", &listed));
        }
    }
    causes
}

fn is_label_value(text: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.len() <= 63 && text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().last())
}

/// The generation that a new form has, after the old one's.
pub(super) fn next_generation(call: &WriteRequest, old: &Value, new: &Value) -> Option<i64> {
    let version = call.served.version();
    let current = object::at(old, &["metadata", "generation"]).and_then(Value::as_i64);
    let changed = match version.generation {
        Generation::Never => return current,
        // Whatever metadata comes along with a status.
        _ if call.part == ObjectPart::Status => false,
        Generation::Spec => old.get("spec") != new.get("spec"),
        Generation::SpecOrAnnotations => {
            let annotations = |object| object::at(object, &["metadata", "annotations"]);
            old.get("spec") != new.get("spec") || annotations(old) != annotations(new)
        }
        Generation::Content => content_differs(old, new, version.status),
    };
    let current = current.unwrap_or(1);
    Some(if changed { current.saturating_add(1) } else { current })
}

fn content_differs(old: &Value, new: &Value, status_apart: bool) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return true };
    let counts = |name: &&String| {
        !(matches!(name.as_str(), "metadata" | "apiVersion" | "kind") || (status_apart && *name == "status"))
    };
    let names = old.keys().chain(new.keys()).filter(counts);
    names.into_iter().any(|name| old.get(name) != new.get(name))
}

/// Whether two forms are the same but for their revision.
pub(super) fn is_same(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let field_same = |name: &String| {
        if name != "metadata" {
            return old.get(name) == new.get(name);
        }
        let stripped = |fields: &serde_json::Map<String, Value>| {
            let meta = fields.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
            meta.into_iter().filter(|(name, _)| name != "resourceVersion").collect::<serde_json::Map<_, _>>()
        };
        stripped(old) == stripped(new)
    };
    old.len() == new.len() && new.keys().all(field_same)
}

/// What the body has to be: an object of this kind, version, namespace and name.
pub(super) fn check_identity(call: &WriteRequest, body: &mut Value, name: Option<&str>) -> Result<(), Refusal> {
    let (kind, api_version) = (call.served.kind().to_owned(), call.served.api_version());
    if !body.is_object() {
        return Err(Refusal::bad_request("the body is not an object"));
    }
    match (object::text(body, &["kind"]), object::text(body, &["apiVersion"])) {
        (None, None) | (None, Some("")) | (Some(""), None) => {}
        (given, version) if given == Some(&kind) && version == Some(&api_version) => {}
        (given, version) => {
            let (given, version) = (given.unwrap_or_default(), version.unwrap_or_default());
            return Err(Refusal::bad_request(format!(
                "{kind} in version \"{api_version}\" cannot be handled: the object provided is a \"{given}\" of \"{version}\""
            )));
        }
    }
    object::set(body, &["kind"], json!(kind));
    object::set(body, &["apiVersion"], json!(api_version));
    if call.served.resource.namespaced {
        let given = meta(body, "namespace");
        if !given.is_empty() && given != call.namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Refusal::bad_request(why));
        }
        object::set(body, &["metadata", "namespace"], json!(call.namespace));
    } else {
        object::take(body, &["metadata", "namespace"]);
    }
    if let Some(name) = name {
        let given = meta(body, "name");
        if !given.is_empty() && given != name {
            let why = format!("the name of the object ({given}) does not match the name on the URL ({name})");
            return Err(Refusal::bad_request(why));
        }
        object::set(body, &["metadata", "name"], json!(name));
    }
    Ok(())
}

/// Puts the status of a definition into it, as the real server's controllers would at once.
pub(super) fn establish(cluster: &EmbeddedCluster, definition: &mut Value) {
    let taken = cluster.catalog().taken(&crd::resource(definition));
    crd::establish(definition, taken.as_deref(), &cluster.stamp());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_295_finalizers_of_an_object_that_goes_are_looked_up() {
        let names: Vec<String> = (0..200_000).map(|number| format!("a/{number}")).collect();
        let old = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": names}});
        assert_eq!(metadata_problems(&old, Some(&old)), []);
        let more = [names.as_slice(), &["b/c".to_owned()]].concat();
        let new = json!({"metadata": {"finalizers": more}});
        let why =
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{\"b/c\"}";
        assert_eq!(metadata_problems(&new, Some(&old)), [StatusCause::forbidden("metadata.finalizers", why)]);
    }
}
