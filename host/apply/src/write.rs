//! One object is brought to its desired form, with as few requests as its kind of write allows.

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_core::step::{Halt, Until};
use orangery_proposal::{
    Injection, ObjectKey, ObjectWrite, Ownership, Write,
    check::key_of,
    inventory::LocatedObject,
    overlay::{fill, is_unchanged, merge_patch, overlay, replacement, three_way, without_server_owned},
};
use serde_json::{Map, Value, json};

use crate::{Owner, apply_error::ApplyError, job_objects::JobObjects, owner::places_of_marks, writer::ObjectHandle};
use orangery_cluster::{Error, is_being_deleted};

/// How often a write is tried that meets changes of others.
const ATTEMPTS: usize = 3;

/// What a dry run shows instead of content that the host places.
const PLACED: &str = "(placed by the host)";

/// What brings a live object to its desired form.
#[derive(Debug, PartialEq)]
enum Change {
    /// Nothing does: it has it.
    Nothing,
    /// A PUT of this.
    Put(Value),
    /// A merge patch of this.
    Patch(Value),
}

impl JobObjects<'_> {
    /// Carries a write out. Answers the object; `None` where it was left as it is, because it may not be touched.
    ///
    /// An object that is `known` to exist is read first; a new one is created first and only read if that fails.
    pub(crate) async fn write(
        &self,
        located: &LocatedObject,
        write: &ObjectWrite,
        known: bool,
    ) -> Result<Option<Arc<Value>>, ApplyError> {
        self.job.fence()?;
        let handle = self.handle_to_change(located).await?;
        let desired = self.desired(&handle, write).await?;
        let created = created(&desired, write, self.job.owner, self.job.labels);
        for object in [&desired, &created] {
            is_the_checked(object, located)?;
        }
        let answer = match &write.how {
            Write::Create => return self.create(&handle, &created).await,
            Write::Apply if write.at_creation.is_some() && handle.get().await?.is_none() => {
                handle.apply(None, None, &created).await?
            }
            Write::Apply => handle.apply(None, None, &desired).await?,
            Write::ApplyAs(manager) => handle.apply(Some(manager), None, &desired).await?,
            Write::Replace | Write::Patch | Write::Merge(_) | Write::Fill | Write::Overlay => {
                return self.converge(&handle, write, (&desired, &created), known).await;
            }
        };
        Ok(Some(Arc::new(answer)))
    }

    /// Creates an object where there is none; one on its way out is waited for.
    async fn create(&self, handle: &ObjectHandle<'_>, created: &Value) -> Result<Option<Arc<Value>>, ApplyError> {
        for _ in 0..ATTEMPTS {
            self.job.fence()?;
            match handle.create(created).await {
                Err(Error::AlreadyExists { .. }) => {}
                answer => return Ok(Some(Arc::new(answer?))),
            }
            match handle.get().await? {
                // That of this item was made before the answer was lost, or the host has ended in between.
                Some(live) if !is_being_deleted(&live) => return Ok(self.job.owns(&live).then(|| Arc::new(live))),
                Some(_) if self.is_still_there(handle)? => {
                    return Err(Halt::from(handle.key.waiting(Until::Gone)).into());
                }
                Some(_) | None => {}
            }
        }
        Err(Error::Conflict { key: Box::new(handle.key.clone()) }.into())
    }

    async fn converge(
        &self,
        handle: &ObjectHandle<'_>,
        write: &ObjectWrite,
        (desired, created): (&Value, &Value),
        known: bool,
    ) -> Result<Option<Arc<Value>>, ApplyError> {
        let key = &handle.key;
        let mut live = if known { handle.get().await? } else { None };
        for _ in 0..ATTEMPTS {
            self.job.fence()?;
            let answer = match &live {
                None => handle.create(created).await,
                Some(live) if is_being_deleted(live) => {
                    // What is written to an object on its way out is lost with it.
                    if self.is_still_there(handle)? {
                        return Err(Halt::from(key.waiting(Until::Gone)).into());
                    }
                    handle.create(created).await
                }
                Some(live) if write.owned == Ownership::Fallback && !self.job.owns(live) => return Ok(None),
                Some(live) => match change(live, &self.job.owner.over(live, desired), &write.how, self.job.labels) {
                    Change::Nothing => return Ok(Some(Arc::new(live.clone()))),
                    Change::Put(body) => handle.replace(live, &body).await,
                    Change::Patch(patch) => handle.patch(live, &patch).await,
                },
            };
            match answer {
                Ok(answer) => return Ok(Some(Arc::new(answer))),
                Err(Error::AlreadyExists { .. } | Error::Conflict { .. }) => live = handle.get().await?,
                Err(Error::Missing { .. }) if live.is_some() => live = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Conflict { key: Box::new(key.clone()) }.into())
    }

    /// The same with the content that the host places; a dry run shows nobody what that is.
    async fn desired(&self, handle: &ObjectHandle<'_>, write: &ObjectWrite) -> Result<Value, ApplyError> {
        place_all(self, &handle.key, labelled(write, self.job.owner, self.job.labels), write).await
    }
}

/// The object as the component wants it, with the mark and the labels of the item.
pub(crate) fn labelled(write: &ObjectWrite, owner: &Owner, labels: &[String]) -> Value {
    let mut object = write.object.clone();
    put_marks(&mut object, owner, labels);
    object
}

/// Puts the marks of an item on an object, in the place of those of another one.
pub(crate) fn put_marks(object: &mut Value, owner: &Owner, labels: &[String]) {
    if !labels.is_empty() {
        let labels: Map<String, Value> = labels.iter().map(|label| (label.clone(), json!(owner.label()))).collect();
        overlay(object, &json!({"metadata": {"labels": labels}}));
    }
    owner.put_on(object);
}

/// The same where it does not exist yet: with what is merged in at creation, and the marks all the same.
pub(crate) fn created(desired: &Value, write: &ObjectWrite, owner: &Owner, labels: &[String]) -> Value {
    let mut created = desired.clone();
    if let Some(extra) = &write.at_creation {
        overlay(&mut created, extra);
        put_marks(&mut created, owner, labels);
    }
    created
}

/// What is about to be written is the object that was checked, whatever was laid over it or placed in it (C-119).
pub(crate) fn is_the_checked(object: &Value, located: &LocatedObject) -> Result<(), ApplyError> {
    if key_of(object).is_ok_and(|key| key == located.key) {
        Ok(())
    } else {
        Err(ApplyError::another_object(&located.key))
    }
}

/// An object with the content that the host places.
pub(crate) async fn place_all(
    objects: &JobObjects<'_>,
    key: &ObjectKey,
    mut object: Value,
    write: &ObjectWrite,
) -> Result<Value, ApplyError> {
    for Injection { at, content } in &write.inject {
        let content =
            if objects.is_dry_run() { PLACED.to_owned() } else { objects.job.clusters.content(content).await? };
        let encoded = key.kind == "Secret" && at.starts_with("/data/");
        let text = if encoded { BASE64.encode(content.as_bytes()) } else { content };
        place(&mut object, at, text).ok_or_else(|| ApplyError::no_place(key, at))?;
    }
    Ok(object)
}

fn place(object: &mut Value, at: &str, text: String) -> Option<()> {
    let (parent, name) = at.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    object.pointer_mut(parent)?.as_object_mut()?.insert(name, Value::String(text));
    Some(())
}

fn change(live: &Value, desired: &Value, how: &Write, labels: &[String]) -> Change {
    let put = |body: Value| {
        if is_unchanged(live, &body) { Change::Nothing } else { Change::Put(under_version_of(live, body)) }
    };
    match how {
        Write::Replace => put(replacement(live, desired)),
        Write::Fill => {
            let mut body = live.clone();
            fill(&mut body, desired);
            take_over(&mut body, desired, labels);
            put(body)
        }
        Write::Overlay => {
            let mut body = live.clone();
            overlay(&mut body, desired);
            put(body)
        }
        Write::Merge(earlier) => put(three_way(earlier, live, desired)),
        Write::Patch => {
            let mut before = without_server_owned(live);
            if let Value::Object(map) = &mut before {
                map.remove("status");
            }
            match merge_patch(&before, &without_server_owned(&replacement(live, desired))) {
                None => Change::Nothing,
                Some(mut patch) => {
                    let version = live.pointer("/metadata/resourceVersion").cloned().unwrap_or(Value::Null);
                    overlay(&mut patch, &json!({"metadata": {"resourceVersion": version}}));
                    Change::Patch(patch)
                }
            }
        }
        // Neither depends on the live object.
        Write::Apply | Write::ApplyAs(_) | Write::Create => Change::Nothing,
    }
}

/// A body under the version that was read, whatever it says itself: whose the object is was looked at in that one.
pub(crate) fn under_version_of(live: &Value, mut body: Value) -> Value {
    if let Some(version) = live.pointer("/metadata/resourceVersion") {
        overlay(&mut body, &json!({"metadata": {"resourceVersion": version}}));
    }
    body
}

/// Says of an object whose it is from now on, whatever it has filled in.
fn take_over(body: &mut Value, desired: &Value, labels: &[String]) {
    for (field, name) in places_of_marks(labels) {
        if let Some(value) = desired.pointer(&format!("/metadata/{field}")).and_then(|entries| entries.get(name)) {
            overlay(body, &json!({"metadata": {field: {name: value}}}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Value {
        json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": "7", "labels": {"theirs": "1"}},
            "data": {"a": "live", "b": ""}})
    }

    #[track_caller]
    fn check(how: &Write, desired: Value, expected: Change) {
        assert_eq!(change(&live(), &desired, how, &[]), expected);
    }

    #[test]
    fn each_strategy_carries_the_version_that_was_read() {
        let desired = json!({"metadata": {"name": "x"}, "data": {"a": "new", "b": "new"}});
        let put = |labels: bool, a: &str| {
            let mut body = json!({"metadata": {"name": "x", "resourceVersion": "7"}, "data": {"a": a, "b": "new"}});
            if labels {
                overlay(&mut body, &json!({"metadata": {"uid": "u", "labels": {"theirs": "1"}}}));
            }
            Change::Put(body)
        };
        check(&Write::Replace, desired.clone(), put(false, "new"));
        check(&Write::Fill, desired.clone(), put(true, "live"));
        check(&Write::Overlay, desired.clone(), put(true, "new"));
        check(&Write::Merge(json!({})), desired.clone(), put(true, "new"));
        check(
            &Write::Patch,
            desired,
            Change::Patch(
                json!({"metadata": {"labels": null, "resourceVersion": "7"}, "data": {"a": "new", "b": "new"}}),
            ),
        );
    }

    #[test]
    fn c_119_no_strategy_writes_over_another_version_than_the_one_that_was_read() {
        for version in [json!(""), json!("8"), Value::Null] {
            let desired = json!({"metadata": {"name": "x", "resourceVersion": version}, "data": {"a": "new"}});
            for how in [Write::Replace, Write::Patch, Write::Fill, Write::Overlay, Write::Merge(json!({}))] {
                let (Change::Put(body) | Change::Patch(body)) = change(&live(), &desired, &how, &[]) else {
                    // What is filled is there already.
                    assert_eq!(how, Write::Fill);
                    continue;
                };
                assert_eq!(body.pointer("/metadata/resourceVersion"), Some(&json!("7")), "{how:?} {version}");
            }
        }
    }

    #[test]
    fn what_is_as_desired_is_not_written() {
        let same = json!({"metadata": {"name": "x", "labels": {"theirs": "1"}}, "data": {"a": "live", "b": ""}});
        for how in [Write::Replace, Write::Patch, Write::Fill, Write::Overlay, Write::Merge(json!({}))] {
            check(&how, same.clone(), Change::Nothing);
        }
    }

    #[test]
    fn content_goes_where_its_parent_is() {
        let mut object = json!({"data": {}});
        assert_eq!(place(&mut object, "/data/a~1b", "x".into()), Some(()));
        assert_eq!(place(&mut object, "/absent/a", "x".into()), None);
        assert_eq!(object, json!({"data": {"a/b": "x"}}));
    }
}
