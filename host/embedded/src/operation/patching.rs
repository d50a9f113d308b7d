//! Patching objects, server-side apply included.

use std::sync::Arc;

use serde_json::Value;

use super::{ObjectPart, WriteOutcome, WriteRequest, prepare, typed, update::Tracking};
use crate::{
    cluster::{EmbeddedCluster, key},
    convert,
    object::{self, meta},
    patch::{self, PatchType, apply::OnConflict},
    refusal::{Refusal, RefusalReason},
    store::ObjectVersion,
};

/// How often a patch starts anew when somebody else was faster.
const ATTEMPTS: usize = 16;

/// One patch request.
#[derive(Debug)]
pub(crate) struct PatchCall {
    pub(crate) call: WriteRequest,
    pub(crate) name: String,
    pub(crate) form: PatchType,
    pub(crate) patch: Value,
    pub(crate) on_conflict: OnConflict,
}

impl EmbeddedCluster {
    /// Applies a patch to an object; server-side apply creates it if need be.
    pub(crate) async fn patch(&self, mut patch: PatchCall) -> Result<WriteOutcome, Refusal> {
        if patch.form == PatchType::Strategic && patch.call.served.is_custom() {
            let why = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Err(Refusal::new(RefusalReason::UnsupportedMediaType, why));
        }
        if patch.form == PatchType::Apply {
            prepare::check_identity(&patch.call, &mut patch.patch, Some(&patch.name))?;
            if patch.call.manager.is_empty() {
                return Err(Refusal::bad_request(
                    "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
                ));
            }
        }
        let mut last = Refusal::stale(patch.call.served.label(), &patch.name);
        for _ in 0..ATTEMPTS {
            match self.patch_once(&patch).await {
                Err(refusal) if self.may_try_again(&patch, &refusal) => last = refusal,
                other => return other,
            }
        }
        Err(last)
    }

    /// A conflict is the caller's only if the caller named a version, or met another manager.
    fn may_try_again(&self, patch: &PatchCall, refusal: &Refusal) -> bool {
        let stale = refusal.message == Refusal::stale(patch.call.served.label(), &patch.name).message;
        let raced = refusal.reason == RefusalReason::AlreadyExists && patch.form == PatchType::Apply;
        (stale || raced) && meta(&patch.patch, "resourceVersion").is_empty()
    }

    async fn patch_once(&self, patch: &PatchCall) -> Result<WriteOutcome, Refusal> {
        let call = &patch.call;
        let present = self.store.latest(&key(&call.served, &call.namespace, &patch.name));
        match (present, patch.form) {
            (Some(present), PatchType::Apply) => {
                let new = self.applied(patch, Some(&present))?;
                self.replace(call, &present, new, Tracking::Done).await
            }
            (Some(present), PatchType::Json | PatchType::Merge | PatchType::Strategic) => {
                let old = convert::served_value(&call.served, &present);
                let mut new = patched(patch, &old)?;
                prepare::check_identity(call, &mut new, Some(&patch.name))?;
                self.replace(call, &present, new, Tracking::Update).await
            }
            (None, PatchType::Apply) if call.part == ObjectPart::Main => {
                if !meta(&patch.patch, "uid").is_empty() {
                    let why = "the object was deleted since it was read: the uid is set and nothing has it";
                    return Err(Refusal::conflict(call.served.label(), &patch.name, why));
                }
                let mut new = self.applied(patch, None)?;
                let managed = object::take(&mut new, &["metadata", "managedFields"]);
                object::take(&mut new, &["metadata", "resourceVersion"]);
                self.create_named(call, new, managed).await
            }
            (None, _) => Err(Refusal::not_found(call.served.label(), &patch.name)),
        }
    }

    fn applied(&self, patch: &PatchCall, present: Option<&Arc<ObjectVersion>>) -> Result<Value, Refusal> {
        let call = &patch.call;
        let live = present.map(|present| convert::served_value(&call.served, present));
        let mut wanted = patch.patch.clone();
        let version = object::take(&mut wanted, &["metadata", "resourceVersion"]);
        let uid = object::take(&mut wanted, &["metadata", "uid"]);
        // Whoever applies the object does not speak of the status, and the other way round.
        match call.part {
            ObjectPart::Main if call.served.version().status => {
                object::take(&mut wanted, &["status"]);
            }
            ObjectPart::Main | ObjectPart::Scale | ObjectPart::Finalizers => {}
            ObjectPart::Status => {
                let status = |name: &String| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status");
                object::fields(&mut wanted).retain(|name, _| status(name));
                if !call.status_brings_metadata() {
                    object::meta_mut(&mut wanted).retain(|name, _| matches!(name.as_str(), "name" | "namespace"));
                }
            }
        }
        typed::check(call, &wanted)?;
        let author = call.author(self.stamp());
        let mut merged = patch::apply::apply(live.as_ref(), &wanted, &author, patch.on_conflict, call.shape())?;
        for (field, value) in [("resourceVersion", version), ("uid", uid)] {
            if let Some(value) = value {
                object::set(&mut merged, &["metadata", field], value);
            }
        }
        Ok(merged)
    }
}

fn patched(patch: &PatchCall, old: &Value) -> Result<Value, Refusal> {
    match patch.form {
        PatchType::Json => patch::json_patch(old, &patch.patch),
        PatchType::Merge => Ok(patch::merge_patch(old, &patch.patch)),
        PatchType::Strategic => patch::strategic(old, &patch.patch, patch.call.shape()),
        PatchType::Apply => Err(Refusal::bad_request("an apply is not a patch of the live object")),
    }
}
