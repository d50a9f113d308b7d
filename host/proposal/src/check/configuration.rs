//! What the configurations of deployers say of objects by themselves, before a component reads them.

use std::collections::BTreeSet;

use orangery_core::name::{Namespace, ObjectName};
use serde_json::Value;

use super::key_of;
use crate::ObjectKey;

/// The group of the configurations of the Helm deployer.
const HELM: &str = "helm.deployer.landscaper.gardener.cloud";
/// The same of the deployer of manifests.
const MANIFEST: &str = "manifest.deployer.landscaper.gardener.cloud";
/// The policy of what is left alone.
const IGNORE: &str = "ignore";

/// How the names of the Secrets begin in which Helm keeps the revisions of a release.
const REVISION: &str = "sh.helm.release.v1.";

/// The objects that an item deploys, as far as its configuration says so (C-210). Of manifests it is those in `manifests`, lists
/// expanded: what stands in an object is that object's affair. A chart has none before it is rendered. Of other configurations it is
/// what they have in them whole, at any depth.
pub fn named_objects(config: &Value) -> BTreeSet<ObjectKey> {
    match group_of(config) {
        Some(HELM) => BTreeSet::new(),
        Some(MANIFEST) => manifests(config).flat_map(|(_, manifest)| listed(manifest)).collect(),
        Some(_) | None => within(config),
    }
}

/// The objects that a configuration of manifests has under the policy `ignore` (`docs/wire.md` §8.1).
pub fn ignored_objects(config: &Value) -> BTreeSet<ObjectKey> {
    objects_under(config, |policy| policy == Some(IGNORE))
}

/// Those that it has under any other policy: an object that stands there twice is deployed (C-204).
pub fn deployed_objects(config: &Value) -> BTreeSet<ObjectKey> {
    objects_under(config, |policy| policy != Some(IGNORE))
}

/// The objects that a configuration names and that its item writes over whoever has written them, or leaves as they are:
/// all but those that it only creates, or updates only where they are its own (`immutable`, `fallback`; `docs/wire.md` §8.1).
pub fn taken_over_objects(config: &Value) -> BTreeSet<ObjectKey> {
    let mut taken = named_objects(config);
    for policy in ["fallback", "immutable"] {
        for key in objects_under(config, |of| of == Some(policy)) {
            taken.remove(&key);
        }
    }
    taken
}

fn objects_under(config: &Value, is_meant: impl Fn(Option<&str>) -> bool) -> BTreeSet<ObjectKey> {
    let objects = if group_of(config) == Some(MANIFEST) { listed } else { within };
    manifests(config).filter(|(policy, _)| is_meant(*policy)).flat_map(|(_, manifest)| objects(manifest)).collect()
}

/// The entries of `manifests`, each with its policy; `v1alpha1` has the objects alone.
fn manifests(config: &Value) -> impl Iterator<Item = (Option<&str>, &Value)> {
    let entries = field(config, "manifests").and_then(Value::as_array).into_iter().flatten();
    entries.map(|entry| match field(entry, "manifest") {
        Some(manifest) => (field(entry, "policy").and_then(Value::as_str), manifest),
        None => (None, entry),
    })
}

/// An object, or each of a list of them, lists in lists included.
fn listed(manifest: &Value) -> BTreeSet<ObjectKey> {
    let (mut keys, mut ahead) = (BTreeSet::new(), vec![manifest]);
    while let Some(object) = ahead.pop() {
        match object.get("items").and_then(Value::as_array).filter(|_| is_list(object)) {
            Some(items) => ahead.extend(items),
            None => keys.extend(key_of(object).ok()),
        }
    }
    keys
}

/// `List`, or a list of one kind, which has no name of its own.
fn is_list(object: &Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind == "List" || kind.ends_with("List") && object.pointer("/metadata/name").is_none_or(|name| name == "")
}

/// What stands in a value whole, at any depth.
fn within(value: &Value) -> BTreeSet<ObjectKey> {
    let (mut keys, mut ahead) = (BTreeSet::new(), vec![value]);
    while let Some(value) = ahead.pop() {
        keys.extend(key_of(value).ok());
        match value {
            Value::Object(fields) => ahead.extend(fields.values()),
            Value::Array(values) => ahead.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    keys
}

/// The release that a configuration of the Helm deployer makes, by its namespace and name; `None` where it makes none
/// (`docs/wire.md` §8.2).
pub fn release_of(config: &Value) -> Option<(Namespace, ObjectName)> {
    let text = |name: &str| field(config, name).and_then(Value::as_str);
    let is_release = group_of(config) == Some(HELM) && field(config, "helmDeployment") != Some(&Value::Bool(false));
    is_release.then_some((Namespace::from(text("namespace")?), ObjectName::from(text("name")?)))
}

/// Whether a configuration is one of a chart, which names no objects before it is rendered (C-205).
pub fn is_chart(config: &Value) -> bool {
    group_of(config) == Some(HELM)
}

/// The namespace that a chart is installed in and that is made with it, and stays when its item goes (`createNamespace`).
pub fn created_namespace(config: &Value) -> Option<ObjectKey> {
    let is_created = is_chart(config) && field(config, "createNamespace") == Some(&Value::Bool(true));
    let name = field(config, "namespace").and_then(Value::as_str).filter(|_| is_created)?;
    Some(ObjectKey { api_version: "v1".into(), kind: "Namespace".into(), namespace: None, name: name.into() })
}

/// Whether an object is the Secret of a revision of a release, by its name.
pub fn is_revision(key: &ObjectKey) -> bool {
    key.group().is_empty() && key.kind == "Secret" && key.name.starts_with(REVISION)
}

/// The group of the kind of a configuration.
fn group_of(config: &Value) -> Option<&str> {
    field(config, "apiVersion")?.as_str()?.split_once('/').map(|(group, _version)| group)
}

/// A field of a provider configuration, whose names count in any case.
fn field<'a>(of: &'a Value, name: &str) -> Option<&'a Value> {
    of.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
