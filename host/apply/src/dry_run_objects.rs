//! What has become of the objects in a dry run: each is read once, and every write is sent as a dry run and remembered.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orangery_proposal::{
    deployer::ApiResource,
    inventory::LocatedObject,
    overlay::{apply_merge_patch, overlay},
};
use serde_json::Value;

use orangery_cluster::{Cluster, Deletion, Error, KeptObjects, is_being_deleted};
use orangery_core::memory;

/// An object that a dry run reads or writes.
pub(crate) struct DryRunRequest<'a> {
    pub(crate) cluster: &'a Cluster,
    /// How its kind is served; `None` where it is not served yet.
    pub(crate) resource: Option<&'a ApiResource>,
    pub(crate) located: LocatedObject,
}

/// What has become of the objects so far.
#[derive(Default)]
pub(crate) struct DryRunObjects {
    /// Protects the objects. Held for one lookup or one change.
    known: Mutex<ReachedObjects>,
}

#[derive(Default)]
struct ReachedObjects {
    by_place: BTreeMap<LocatedObject, DryRunObject>,
    /// What all of them take of the memory that clusters share (C-201).
    kept: KeptObjects,
}

/// What has become of one object.
#[derive(Clone, Default)]
pub(crate) struct DryRunObject {
    /// As it is on the server.
    pub(crate) before: Option<Value>,
    /// As it would be by now.
    pub(crate) after: Option<Value>,
    pub(crate) is_written: bool,
    pub(crate) is_deleted: bool,
}

impl DryRunObjects {
    /// All objects that were come to.
    pub(crate) fn into_objects(self) -> BTreeMap<LocatedObject, DryRunObject> {
        self.known.into_inner().unwrap_or_else(PoisonError::into_inner).by_place
    }

    fn locked(&self) -> MutexGuard<'_, ReachedObjects> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what has become of an object.
    ///
    /// # Errors
    /// All of them have no room.
    fn keep(&self, at: &DryRunRequest<'_>, object: DryRunObject) -> Result<(), Error> {
        let mut known = self.locked();
        let before = known.by_place.get(&at.located).map_or(0, DryRunObject::bytes);
        let bytes = known.kept.bytes().saturating_sub(before).saturating_add(object.bytes());
        at.cluster.reserve(&mut known.kept, bytes, &at.located.key)?;
        known.by_place.insert(at.located.clone(), object);
        Ok(())
    }

    /// The object as it would be by now; one that is being deleted is taken to be gone.
    pub(crate) async fn get(&self, at: &DryRunRequest<'_>) -> Result<Option<Value>, Error> {
        Ok(self.known(at).await?.after)
    }

    async fn known(&self, at: &DryRunRequest<'_>) -> Result<DryRunObject, Error> {
        if let Some(known) = self.locked().by_place.get(&at.located) {
            return Ok(known.clone());
        }
        let before = match at.resource {
            Some(resource) => match at.cluster.get(resource, &at.located.key).await {
                // A kind that the proposal defines.
                Err(Error::NotServed { .. }) => None,
                found => found?,
            },
            None => None,
        };
        let after = before.clone().filter(|object| !is_being_deleted(object));
        let known = DryRunObject { before, after, is_written: false, is_deleted: false };
        self.keep(at, known.clone())?;
        Ok(known)
    }

    fn write(&self, at: &DryRunRequest<'_>, known: DryRunObject, after: Value) -> Result<Value, Error> {
        self.keep(at, DryRunObject { after: Some(after.clone()), is_written: true, ..known })?;
        Ok(after)
    }

    pub(crate) async fn create(&self, at: &DryRunRequest<'_>, object: &Value) -> Result<Value, Error> {
        match self.known(at).await? {
            DryRunObject { after: Some(_), .. } => Err(Error::AlreadyExists { key: Box::new(at.located.key.clone()) }),
            known => self.write(at, known, object.clone()),
        }
    }

    pub(crate) async fn apply(
        &self,
        at: &DryRunRequest<'_>,
        manager: Option<&str>,
        object: &Value,
    ) -> Result<Value, Error> {
        let known = self.known(at).await?;
        let after = match (&known.after, at.resource.filter(|_| known.is_untouched())) {
            (None, _) => object.clone(),
            (Some(live), resource) => {
                let mut otherwise = live.clone();
                overlay(&mut otherwise, object);
                match resource {
                    Some(resource) => {
                        answer(at.cluster.try_apply(manager, resource, &at.located.key, object).await, otherwise)?
                    }
                    None => otherwise,
                }
            }
        };
        self.write(at, known, after)
    }

    pub(crate) async fn replace(&self, at: &DryRunRequest<'_>, object: &Value) -> Result<Value, Error> {
        let known = self.known(at).await?;
        let after = match at.resource.filter(|_| known.is_untouched()) {
            Some(resource) => answer(at.cluster.try_replace(resource, &at.located.key, object).await, object.clone())?,
            None => object.clone(),
        };
        self.write(at, known, after)
    }

    pub(crate) async fn patch(&self, at: &DryRunRequest<'_>, patch: &Value) -> Result<Value, Error> {
        let known = self.known(at).await?;
        let mut otherwise = known.after.clone().unwrap_or(Value::Null);
        apply_merge_patch(&mut otherwise, patch);
        let after = match at.resource.filter(|_| known.is_untouched()) {
            Some(resource) => answer(at.cluster.try_merge(resource, &at.located.key, patch).await, otherwise)?,
            None => otherwise,
        };
        self.write(at, known, after)
    }

    pub(crate) async fn delete(&self, at: &DryRunRequest<'_>) -> Result<Deletion, Error> {
        let known = self.known(at).await?;
        let is_deleted = known.is_deleted || known.after.is_some();
        self.keep(at, DryRunObject { after: None, is_deleted, ..known })?;
        Ok(Deletion::Gone)
    }
}

impl DryRunObject {
    /// Bytes of memory that it takes, as it is and as it would be.
    fn bytes(&self) -> u64 {
        let of = |object: &Option<Value>| object.as_ref().map_or(0, memory::of);
        of(&self.before).saturating_add(of(&self.after))
    }

    /// Whether the server has the object as it would be: only then its answer to a try counts.
    fn is_untouched(&self) -> bool {
        !self.is_written && !self.is_deleted
    }
}

/// What the server answers to a try; `otherwise` where something in its way takes part in no tries.
fn answer(answered: Result<Value, Error>, otherwise: Value) -> Result<Value, Error> {
    match answered {
        Err(Error::Invalid { message, .. }) if message.contains("does not support dry run") => Ok(otherwise),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::ObjectKey;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_takes_part_in_no_tries_is_foreseen_and_other_refusals_are_the_answer() {
        let refused = |message: &str| {
            let key = ObjectKey { api_version: "v1".into(), kind: "K".into(), namespace: None, name: "x".into() };
            Err(Error::Invalid { key: Box::new(key), message: message.into() })
        };
        assert_eq!(answer(Ok(json!(1)), json!(2)).ok(), Some(json!(1)));
        let webhook = "admission webhook \"w\" does not support dry run";
        assert_eq!(answer(refused(webhook), json!(2)).ok(), Some(json!(2)));
        assert!(matches!(answer(refused("data is wrong"), json!(2)), Err(Error::Invalid { .. })));
    }
}
