//! Replacing objects, and what every change of an existing object has in common.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Draft, ObjectPart, WriteOutcome, WriteRequest, prepare};
use crate::{
    cluster::{EmbeddedCluster, key},
    convert, crd,
    object::{self, meta},
    patch::managed,
    refusal::Refusal,
    store::{Expect, ObjectVersion, StoreWrite},
};

/// The source of the managed fields of a new form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracking {
    /// The change is an update: whoever changed a field owns it.
    Update,
    /// Server-side apply has kept them already.
    Done,
}

impl EmbeddedCluster {
    /// Replaces an object by the body of a request.
    pub(crate) async fn update(
        &self,
        call: &WriteRequest,
        name: &str,
        mut body: Value,
    ) -> Result<WriteOutcome, Refusal> {
        prepare::check_identity(call, &mut body, Some(name))?;
        let missing = || Refusal::not_found(call.served.label(), name);
        let entry = self.store.latest(&key(&call.served, &call.namespace, name)).ok_or_else(missing)?;
        let asked = meta(&body, "resourceVersion");
        if asked.is_empty() && call.served.is_custom() {
            let resource = &call.served.resource;
            let why = "must be specified for an update";
            let cause = crate::refusal::StatusCause::invalid("metadata.resourceVersion", &json!(0), why);
            return Err(Refusal::invalid(&resource.kind, &resource.group, name, &[cause]));
        }
        self.replace(call, &entry, body, Tracking::Update).await
    }

    /// Brings an object from its present form to a new one. The new one's resource version, if any, must be the present.
    pub(super) async fn replace(
        &self,
        call: &WriteRequest,
        present: &Arc<ObjectVersion>,
        mut new: Value,
        tracking: Tracking,
    ) -> Result<WriteOutcome, Refusal> {
        let definitions = match call.served.label() {
            crd::SHELF => Some(self.definitions.lock().await),
            _ => None,
        };
        let old = convert::served_value(&call.served, present);
        let name = meta(&old, "name").to_owned();
        check_preconditions(call, &old, &new)?;
        if call.part == ObjectPart::Status {
            new = with_status(call, &old, new);
        }
        let Draft { object, warnings } = self.draft_change(call, &old, new, tracking)?;
        let unchanged = || WriteOutcome { entry: Arc::clone(present), created: false, warnings: warnings.clone() };
        // The last finalizer of an object under deletion is gone, and so is the object.
        let deletes = object::deleting(&object) && object::finalizers(&object).is_empty() && !is_held(call, &object);
        if !deletes && prepare::is_same(&old, &object) {
            return Ok(unchanged());
        }
        if call.dry_run {
            return Ok(WriteOutcome { entry: Arc::new(ObjectVersion::unnumbered(&object)), ..unchanged() });
        }
        let key = key(&call.served, &call.namespace, &name);
        let definition = definitions.as_ref().map(|_| object.clone());
        let object = convert::stored(&call.served, object);
        let write = StoreWrite { key, expect: Expect::Revision(present.revision), object, deletes };
        let entry = self.store.write(write).await.map_err(|error| call.refused(&error, &name))?;
        match definition {
            // A definition is named after the collection of its objects.
            Some(_) if deletes => self.withdraw(&name),
            Some(definition) => self.serve(&definition),
            None => {}
        }
        Ok(WriteOutcome { entry, created: false, warnings })
    }

    fn draft_change(
        &self,
        call: &WriteRequest,
        old: &Value,
        mut new: Value,
        tracking: Tracking,
    ) -> Result<Draft, Refusal> {
        for kept in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "selfLink",
            "resourceVersion",
        ] {
            object::carry(old, &mut new, &["metadata", kept]);
        }
        if call.part != ObjectPart::Status && call.served.version().status && call.served.label() != "namespaces" {
            object::carry(old, &mut new, &["status"]);
        }
        if call.served.label() == "namespaces" {
            object::carry(old, &mut new, &["metadata", "labels", "kubernetes.io/metadata.name"]);
            if call.part == ObjectPart::Main {
                object::carry(old, &mut new, &["spec"]);
            }
            if call.part != ObjectPart::Status {
                object::carry(old, &mut new, &["status"]);
            }
        }
        let given = object::at(&new, &["metadata", "managedFields"]).cloned();
        let draft = prepare::shape_up(self, call, Some(old), new)?;
        let mut draft = prepare::mutate(self, call, Some(old), draft)?;
        let object = &mut draft.object;
        if call.served.label() == crd::SHELF && !object::deleting(object) {
            prepare::establish(self, object);
        }
        match prepare::next_generation(call, old, object) {
            Some(generation) => object::set(object, &["metadata", "generation"], json!(generation)),
            None => {
                object::take(object, &["metadata", "generation"]);
            }
        }
        if tracking == Tracking::Update {
            if let Some(given) = given {
                object::set(object, &["metadata", "managedFields"], given);
            }
            managed::track_update(Some(old), object, &call.author(self.stamp()), call.shape());
        }
        prepare::admit(self, call, Some(old), &mut draft)?;
        Ok(draft)
    }
}

/// A namespace is held by its own finalizers too.
fn is_held(call: &WriteRequest, object: &Value) -> bool {
    call.served.label() == "namespaces" && !object::items(object, &["spec", "finalizers"]).is_empty()
}

fn check_preconditions(call: &WriteRequest, old: &Value, new: &Value) -> Result<(), Refusal> {
    let (label, name) = (call.served.label(), meta(old, "name"));
    let (uid, version) = (meta(new, "uid"), meta(new, "resourceVersion"));
    if !uid.is_empty() && uid != meta(old, "uid") {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", meta(old, "uid"));
        return Err(Refusal::conflict(label, name, &why));
    }
    if !version.is_empty() && version != "0" && version != meta(old, "resourceVersion") {
        return Err(Refusal::stale(label, name));
    }
    Ok(())
}

/// The old form with the status of the new one. Of most built-in kinds the metadata is the new one's as well.
fn with_status(call: &WriteRequest, old: &Value, mut new: Value) -> Value {
    let mut object = old.clone();
    match object::take(&mut new, &["status"]) {
        Some(status) => object::set(&mut object, &["status"], status),
        None => {
            object::take(&mut object, &["status"]);
        }
    }
    if call.status_brings_metadata() {
        object::carry(&new, &mut object, &["metadata"]);
        if call.served.kind() == "Pod" {
            object::carry(old, &mut object, &["metadata", "ownerReferences"]);
            if object::text(&object, &["status", "qosClass"]).is_none() {
                object::carry(old, &mut object, &["status", "qosClass"]);
            }
        }
    } else {
        object::carry(&new, &mut object, &["metadata", "managedFields"]);
    }
    object
}
