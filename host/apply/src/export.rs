//! Exports: values of the component and values read from objects, merged into one object (`docs/wire.md` §8.1).

use std::sync::Arc;

use orangery_core::{
    error::{Code, Failure},
    jsonpath::{ParsedPath, PathError, StepBudget},
    memory,
    name::Namespace,
    step::{Halt, Until},
};
use orangery_proposal::{
    ExportRule, ExportSource, Follow, ObjectKey, PathSource,
    check::key_of,
    inventory::{Inventory, LocatedObject},
};
use orangery_turns::off_the_executor;
use serde_json::{Map, Value, json};

use crate::{
    apply_error::{ApplyError, all},
    job_objects::{JobObjects, or_before},
    writer::ObjectHandle,
};
use orangery_cluster::{Cluster, KeptObjects, Observed};

/// The most bytes of memory that the exports of one item take. They become one Secret, which has a MiB of text at most.
const MOST_EXPORTED_BYTES: u64 = 32 << 20;

/// Exports, with what they take of the memory that the objects of all clusters share (C-287).
pub(crate) struct CollectedExports {
    pub(crate) exports: Value,
    _held: KeptObjects,
}

/// The room that the values of rules take so far.
#[derive(Default)]
struct ExportRoom {
    bytes: u64,
    held: KeptObjects,
}

impl ExportRoom {
    /// One value more, before it is copied; `from` is where it was read.
    fn take(&mut self, value: &Value, from: Option<(&Cluster, &ObjectKey)>) -> Result<(), ApplyError> {
        self.bytes = self.bytes.saturating_add(memory::of(value));
        if self.bytes > MOST_EXPORTED_BYTES {
            let message = format!(
                "the exports take more than the {MOST_EXPORTED_BYTES} bytes of memory that those of one item may; export less, or in \
                 several items"
            );
            return Err(Halt::Stall(Failure::new("Export", "TooLarge", message).with_code(Code::LimitExceeded)).into());
        }
        let Some((cluster, key)) = from else { return Ok(()) };
        cluster.reserve(&mut self.held, self.bytes, key).map_err(|_| {
            let message = format!(
                "the exports take {} bytes of memory, for which there is no room beside the objects that others work with; it is tried \
                 again",
                self.bytes
            );
            Halt::Retry(Failure::new("Export", "NoRoom", message)).into()
        })
    }
}

/// The version of an object that was looked at last, and why that has no value: it is not looked at again (C-297).
#[derive(Default)]
struct LastLook(Option<(Value, PathError)>);

impl LastLook {
    /// The value at a path of an object.
    fn one<'v>(&mut self, path: &ParsedPath, object: &'v Value, steps: &StepBudget) -> Result<&'v Value, PathError> {
        let version = object.pointer("/metadata/resourceVersion");
        if let Some((seen, error)) = &self.0
            && version == Some(seen)
        {
            return Err(error.clone());
        }
        let found = off_the_executor(|| path.one(object, steps));
        if let Err(error) = &found {
            self.0 = version.map(|version| (version.clone(), error.clone()));
        }
        found
    }
}

impl JobObjects<'_> {
    /// All exports, or a wait for what they come from.
    pub(crate) async fn collect(
        &self,
        rules: &[ExportRule],
        inventory: &Inventory,
    ) -> Result<CollectedExports, ApplyError> {
        let (mut results, mut memory) = (Vec::new(), ExportRoom::default());
        for rule in rules {
            let value = match &rule.source {
                ExportSource::Value(value) => memory.take(value, None).map(|()| value.clone()),
                ExportSource::Path(source) => self.value(source, &rule.key, inventory, &mut memory).await,
            };
            // Whatever comes after it would be refused as well, and its object asked for in vain (C-297).
            let is_last = value.is_err() && self.steps.is_spent();
            results.push(value.map(|value| (rule.key.as_str(), value)));
            if is_last {
                break;
            }
        }
        let mut exports = Value::Object(Map::new());
        for (key, value) in all(results)? {
            merge(&mut exports, nested(key, value));
        }
        if exports.is_object() {
            return Ok(CollectedExports { exports, _held: memory.held });
        }
        let message = "an export without a key must be an object, because it becomes all exports of the item";
        Err(Halt::Stall(Failure::new("Export", "InvalidExport", message).with_code(Code::ConfigurationProblem)).into())
    }

    async fn value(
        &self,
        source: &PathSource,
        key: &str,
        inventory: &Inventory,
        memory: &mut ExportRoom,
    ) -> Result<Value, ApplyError> {
        let located = LocatedObject { on: source.on.clone(), key: source.key.clone() };
        let Some(follow) = &source.then else { return self.at(&located, (&source.path, key), inventory, memory).await };
        let reference = self.at(&located, (&source.path, key), inventory, memory).await?;
        let key_of_second = followed(&reference, follow, &source.key).ok_or_else(|| {
            let message =
                format!("the export {key} follows {} of {}, which is no object with a name", source.path, source.key);
            Halt::Retry(Failure::new("Export", "InvalidReference", message))
        })?;
        let second = LocatedObject { on: source.on.clone(), key: key_of_second };
        self.at(&second, (&follow.path, key), inventory, memory).await
    }

    /// The one value at a path: from what a write has answered, or a watch that lives, or one read; if it is not there
    /// yet, a watch calls again.
    async fn at(
        &self,
        located: &LocatedObject,
        (path, export): (&str, &str),
        inventory: &Inventory,
        memory: &mut ExportRoom,
    ) -> Result<Value, ApplyError> {
        let parsed = ParsedPath::parse(path).map_err(|error| {
            Halt::Stall(Failure::new("Export", "InvalidPath", error.to_string()).with_code(Code::ConfigurationProblem))
        })?;
        let mut last = LastLook::default();
        if let Some(answer) = self.answer(located)
            && let Ok(value) = last.one(&parsed, answer, &self.steps)
        {
            let cluster = self.job.clusters.cluster(&located.on).await?;
            memory.take(value, Some((&cluster, &located.key)))?;
            self.has_read(located, answer);
            return Ok(value.clone());
        }
        let handle = self.handle(located).await?;
        let mut classified = |object: Option<Arc<Value>>| {
            object.iter().for_each(|object| self.has_read(located, object));
            let found = object.as_deref().map(|object| last.one(&parsed, object, &self.steps));
            match found {
                Some(Ok(value)) => memory.take(value, Some((&handle.cluster, &handle.key))).map(|()| value.clone()),
                Some(Err(error)) => Err(absent(&handle.key, export, &error)),
                None => Err(self.missing(located, inventory)),
            }
        };
        let before = match classified(self.newest(&handle).await?) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        // From here on a change calls again; what has changed since the read is seen at once.
        classified(or_before(self.watch(&handle), || before)?)
    }

    async fn newest(&self, handle: &ObjectHandle<'_>) -> Result<Option<Arc<Value>>, ApplyError> {
        match handle.observed() {
            Some(Observed::Present(object)) => Ok(Some(object)),
            Some(Observed::Absent | Observed::Gone(_)) => Ok(None),
            Some(Observed::Unknown | Observed::Forbidden(_) | Observed::Unwatched(_)) | None => {
                Ok(handle.get().await?.map(Arc::new))
            }
        }
    }
}

fn absent(key: &ObjectKey, export: &str, error: &PathError) -> ApplyError {
    Halt::from(key.waiting(Until::Ready).because(format!("export {export}: {error}"))).into()
}

/// The object that a reference `{name, namespace}` names.
fn followed(reference: &Value, follow: &Follow, from: &ObjectKey) -> Option<ObjectKey> {
    let name = reference.get("name")?;
    let namespace = reference.get("namespace").and_then(Value::as_str).filter(|text| !text.is_empty());
    let namespace = namespace.map(Namespace::from).or_else(|| from.namespace.clone());
    let object = json!({"apiVersion": follow.api_version, "kind": follow.kind,
        "metadata": {"name": name, "namespace": namespace}});
    key_of(&object).ok()
}

/// A dotted key builds nested maps; an empty one stands for the root.
fn nested(key: &str, value: Value) -> Value {
    if key.is_empty() {
        return value;
    }
    key.rsplit('.').fold(value, |inner, part| Value::Object(Map::from_iter([(part.to_owned(), inner)])))
}

fn merge(target: &mut Value, value: Value) {
    match (target, value) {
        (Value::Object(target), Value::Object(value)) => {
            for (key, value) in value {
                match target.get_mut(&key) {
                    Some(known) => merge(known, value),
                    None => drop(target.insert(key, value)),
                }
            }
        }
        (target, value) => *target = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_keys_build_maps_and_several_are_merged() {
        let mut exports = json!({});
        for (key, value) in
            [("a.b", json!(1)), ("a.c", json!({"d": 2})), ("", json!({"a": {"e": 3}})), ("a.b", json!(4))]
        {
            merge(&mut exports, nested(key, value));
        }
        assert_eq!(exports, json!({"a": {"b": 4, "c": {"d": 2}, "e": 3}}));
    }

    #[test]
    fn c_297_a_version_without_a_value_is_looked_at_once() {
        let of = |version: &str, data: Value| json!({"metadata": {"resourceVersion": version}, "data": data});
        let (path, mut last) = (ParsedPath::parse(".data.k").unwrap(), LastLook::default());
        let mut look = |object: &Value, steps: &StepBudget| last.one(&path, object, steps).cloned();
        let (without, steps, none) = (of("1", json!({})), StepBudget::default(), StepBudget::default());
        assert!(none.take(u64::MAX).is_err());
        let refused = look(&without, &steps);
        assert!(matches!(refused, Err(PathError::Count { count: 0, .. })));
        assert_eq!(look(&without, &none), refused, "it takes no steps");
        assert_eq!(look(&of("2", json!({"k": 1})), &steps), Ok(json!(1)));
        assert!(matches!(look(&of("2", json!({"k": 1})), &none), Err(PathError::Together { .. })));
    }

    #[test]
    fn a_reference_without_a_namespace_stays_in_that_of_its_object() {
        let follow = Follow { api_version: "v1".into(), kind: "Secret".into(), path: ".".into() };
        let from =
            ObjectKey { api_version: "v1".into(), kind: "K".into(), namespace: Some("a".into()), name: "x".into() };
        let key = |namespace: &str| ObjectKey {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some(namespace.into()),
            name: "s".into(),
        };
        assert_eq!(followed(&json!({"name": "s"}), &follow, &from), Some(key("a")));
        assert_eq!(followed(&json!({"name": "s", "namespace": "b"}), &follow, &from), Some(key("b")));
        assert_eq!(followed(&json!("s"), &follow, &from), None);
    }
}
