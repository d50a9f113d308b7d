//! Deleting objects: at once, or marked until their finalizers are gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ListQuery, WriteRequest, prepare};
use crate::{
    cluster::{EmbeddedCluster, key},
    convert, crd,
    object::{self, meta},
    refusal::Refusal,
    store::{Expect, ObjectVersion, StoreWrite, StoreWriteError},
};

/// The finalizers by which owners wait for what they own.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// What happens to what the object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// It goes afterwards.
    #[default]
    Background,
    /// It goes first.
    Foreground,
    /// It stays, without this owner.
    Orphan,
}

/// How something is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletionOptions {
    pub(crate) propagation: Propagation,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    /// Everything is judged, nothing is deleted.
    pub(crate) dry_run: bool,
}

impl DeletionOptions {
    /// Reads `DeleteOptions` from a body, and from the query parameters that kubectl uses instead.
    pub(crate) fn parse(body: &Value, policy: Option<&str>) -> Result<Self, Refusal> {
        let text = |path: &[&str]| object::text(body, path).map(str::to_owned);
        let policy = text(&["propagationPolicy"]).or_else(|| policy.map(str::to_owned));
        let propagation = match policy.as_deref() {
            None | Some("" | "Background") => match body.get("orphanDependents") {
                Some(Value::Bool(true)) => Propagation::Orphan,
                _ => Propagation::Background,
            },
            Some("Foreground") => Propagation::Foreground,
            Some("Orphan") => Propagation::Orphan,
            Some(other) => {
                return Err(Refusal::bad_request(format!(
                    "invalid propagationPolicy \"{other}\": one of Orphan, Background, Foreground"
                )));
            }
        };
        let (uid, resource_version) = (text(&["preconditions", "uid"]), text(&["preconditions", "resourceVersion"]));
        let dry_run = object::items(body, &["dryRun"]).iter().any(|stage| stage == "All");
        Ok(Self { propagation, uid, resource_version, dry_run })
    }
}

/// What a deletion led to, and what policies have to say to it.
pub(crate) type DeletionAnswer = (Deleted, Vec<String>);

/// What a deletion led to.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; this was its last form.
    Gone(Arc<ObjectVersion>),
    /// The object is marked, and goes when its finalizers are gone.
    Marked(Arc<ObjectVersion>),
}

impl EmbeddedCluster {
    /// Deletes an object.
    pub(crate) async fn delete(
        &self,
        call: &WriteRequest,
        name: &str,
        how: &DeletionOptions,
    ) -> Result<DeletionAnswer, Refusal> {
        loop {
            match self.delete_once(call, name, how).await? {
                Ok(deleted) => return Ok(deleted),
                // Somebody changed it meanwhile; unless a version was asked for, the new form goes just as well.
                Err(StoreWriteError::Stale) => {}
                Err(error) => return Err(call.refused(&error, name)),
            }
        }
    }

    async fn delete_once(
        &self,
        call: &WriteRequest,
        name: &str,
        how: &DeletionOptions,
    ) -> Result<Result<DeletionAnswer, StoreWriteError>, Refusal> {
        let definitions = match call.served.label() {
            crd::SHELF => Some(self.definitions.lock().await),
            _ => None,
        };
        let key = key(&call.served, &call.namespace, name);
        let missing = || Refusal::not_found(call.served.label(), name);
        let present = self.store.latest(&key).ok_or_else(missing)?;
        let old = present.value();
        check_preconditions(call, &old, how)?;
        let warnings = prepare::admit_deletion(self, call, &old, how.dry_run)?;
        let mut marked = old.clone();
        let kept = self.mark(call, &mut marked, how);
        if call.dry_run || how.dry_run {
            return Ok(Ok((if kept { Deleted::Marked(present) } else { Deleted::Gone(present) }, warnings)));
        }
        if kept && marked == old {
            return Ok(Ok((Deleted::Marked(present), warnings)));
        }
        let expect = Expect::Revision(present.revision);
        let definition = definitions.as_ref().map(|_| marked.clone());
        let object = if kept { marked } else { old };
        let written = self.store.write(StoreWrite { key, expect, object, deletes: !kept }).await;
        let entry = match written {
            Ok(entry) => entry,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(definition) = definition {
            if kept { self.serve(&definition) } else { self.withdraw(name) }
        }
        Ok(Ok((if kept { Deleted::Marked(entry) } else { Deleted::Gone(entry) }, warnings)))
    }

    /// Marks the object as under deletion; answers whether something holds it.
    fn mark(&self, call: &WriteRequest, object: &mut Value, how: &DeletionOptions) -> bool {
        let namespace = call.served.label() == "namespaces";
        let mut finalizers: Vec<String> = object::finalizers(object).into_iter().map(str::to_owned).collect();
        let owns = !self.store.dependents(meta(object, "uid")).is_empty();
        let wait = match how.propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
        };
        if let Some(wait) = wait.filter(|wait| owns && !finalizers.iter().any(|name| name == wait)) {
            finalizers.push(wait.to_owned());
            object::set(object, &["metadata", "finalizers"], json!(finalizers));
        }
        if finalizers.is_empty() && !namespace {
            return false;
        }
        if !object::deleting(object) {
            object::set(object, &["metadata", "deletionTimestamp"], json!(self.stamp()));
            object::set(object, &["metadata", "deletionGracePeriodSeconds"], json!(0));
            if let Some(generation) = object::at(object, &["metadata", "generation"]).and_then(Value::as_i64) {
                object::set(object, &["metadata", "generation"], json!(generation.saturating_add(1)));
            }
            if namespace {
                object::set(object, &["status", "phase"], json!("Terminating"));
            }
        }
        true
    }

    /// Deletes all objects that a query selects, and answers their last forms.
    pub(crate) async fn delete_collection(
        &self,
        call: &WriteRequest,
        query: &ListQuery,
        how: &DeletionOptions,
    ) -> Result<Vec<Arc<ObjectVersion>>, Refusal> {
        let namespace = (!call.namespace.is_empty()).then_some(call.namespace.as_str());
        let found = self.store.list(call.served.label(), namespace, None).entries;
        let mut deleted = Vec::new();
        for (name, entry) in found.into_iter().filter(|(name, entry)| query.selector.matches(name, entry)) {
            let call = WriteRequest { namespace: name.namespace.to_string(), ..call.clone() };
            match self.delete(&call, &name.name, how).await {
                Ok(_) => deleted.push(entry),
                Err(refusal) if refusal.reason == crate::refusal::RefusalReason::NotFound => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(deleted)
    }
}

fn check_preconditions(call: &WriteRequest, old: &Value, how: &DeletionOptions) -> Result<(), Refusal> {
    let checks = [("UID", "uid", &how.uid), ("ResourceVersion", "resourceVersion", &how.resource_version)];
    for (word, field, wanted) in checks {
        let found = meta(old, field);
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
            let why = format!("Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {found}");
            return Err(Refusal::conflict(call.served.label(), meta(old, "name"), &why));
        }
    }
    Ok(())
}

impl Deleted {
    /// The answer: the marked object, or a `Status` that names what is gone.
    pub(crate) fn answer(&self, call: &WriteRequest, name: &str) -> bytes::Bytes {
        match self {
            Self::Marked(entry) => convert::served_bytes(&call.served, entry),
            Self::Gone(entry) => {
                let resource = &call.served.resource;
                let mut details = json!({"name": name, "kind": resource.plural, "uid": entry.head.uid});
                if !resource.group.is_empty() {
                    object::set(&mut details, &["group"], json!(resource.group));
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
                bytes::Bytes::from(status.to_string())
            }
        }
    }
}
