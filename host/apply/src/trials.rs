//! What has become of the objects in a dry run: each is read once, and every write is tried and remembered.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use orangery_proposal::{
    deployer::ApiResource,
    inventory::LocatedObject,
    overlay::{apply_merge_patch, overlay},
};
use serde_json::Value;

use orangery_cluster::{Cluster, Deletion, Error, is_being_deleted};

/// An object that is tried to be written.
pub(crate) struct Tried<'a> {
    pub(crate) cluster: &'a Cluster,
    /// How its kind is served; `None` where it is not served yet.
    pub(crate) resource: Option<&'a ApiResource>,
    pub(crate) located: LocatedObject,
}

/// What has become of the objects so far.
#[derive(Default)]
pub(crate) struct Trials {
    /// Protects the objects by place. Held for one lookup or one change.
    objects: Mutex<BTreeMap<LocatedObject, Trial>>,
}

/// What has become of one object.
#[derive(Clone, Default)]
pub(crate) struct Trial {
    /// As it is on the server.
    pub(crate) before: Option<Value>,
    /// As it would be by now.
    pub(crate) after: Option<Value>,
    pub(crate) is_written: bool,
    pub(crate) is_deleted: bool,
}

impl Trials {
    /// All objects that were come to.
    pub(crate) fn into_objects(self) -> BTreeMap<LocatedObject, Trial> {
        self.objects.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object as it would be by now; one that is being deleted is taken to be gone.
    pub(crate) async fn get(&self, at: &Tried<'_>) -> Result<Option<Value>, Error> {
        Ok(self.trial(at).await?.after)
    }

    async fn trial(&self, at: &Tried<'_>) -> Result<Trial, Error> {
        if let Some(known) = self.objects.lock().unwrap_or_else(PoisonError::into_inner).get(&at.located) {
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
        let trial = Trial { before, after, is_written: false, is_deleted: false };
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(at.located.clone(), trial.clone());
        Ok(trial)
    }

    fn write(&self, at: &Tried<'_>, trial: Trial, after: Value) -> Value {
        let trial = Trial { after: Some(after.clone()), is_written: true, ..trial };
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(at.located.clone(), trial);
        after
    }

    pub(crate) async fn create(&self, at: &Tried<'_>, object: &Value) -> Result<Value, Error> {
        match self.trial(at).await? {
            Trial { after: Some(_), .. } => Err(Error::AlreadyExists { key: Box::new(at.located.key.clone()) }),
            trial => Ok(self.write(at, trial, object.clone())),
        }
    }

    pub(crate) async fn apply(&self, at: &Tried<'_>, manager: Option<&str>, object: &Value) -> Result<Value, Error> {
        let trial = self.trial(at).await?;
        let after = match (&trial.after, at.resource.filter(|_| trial.is_untouched())) {
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
        Ok(self.write(at, trial, after))
    }

    pub(crate) async fn replace(&self, at: &Tried<'_>, object: &Value) -> Result<Value, Error> {
        let trial = self.trial(at).await?;
        let after = match at.resource.filter(|_| trial.is_untouched()) {
            Some(resource) => answer(at.cluster.try_replace(resource, &at.located.key, object).await, object.clone())?,
            None => object.clone(),
        };
        Ok(self.write(at, trial, after))
    }

    pub(crate) async fn patch(&self, at: &Tried<'_>, patch: &Value) -> Result<Value, Error> {
        let trial = self.trial(at).await?;
        let mut otherwise = trial.after.clone().unwrap_or(Value::Null);
        apply_merge_patch(&mut otherwise, patch);
        let after = match at.resource.filter(|_| trial.is_untouched()) {
            Some(resource) => answer(at.cluster.try_merge(resource, &at.located.key, patch).await, otherwise)?,
            None => otherwise,
        };
        Ok(self.write(at, trial, after))
    }

    pub(crate) async fn delete(&self, at: &Tried<'_>) -> Result<Deletion, Error> {
        let trial = self.trial(at).await?;
        let is_deleted = trial.is_deleted || trial.after.is_some();
        let gone = Trial { after: None, is_deleted, ..trial };
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(at.located.clone(), gone);
        Ok(Deletion::Gone)
    }
}

impl Trial {
    /// Whether the server has the object as it would be: only then its answer to a try counts.
    fn is_untouched(&self) -> bool {
        !self.is_written && !self.is_deleted
    }
}

/// What the server answers to a try; `otherwise` where something in its way takes part in no tries.
fn answer(tried: Result<Value, Error>, otherwise: Value) -> Result<Value, Error> {
    match tried {
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
