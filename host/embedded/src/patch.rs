//! Changing an object by a patch: JSON patch, merge patch, strategic merge patch, server-side apply.

pub(crate) mod apply;
mod fields;
pub(crate) mod managed;
mod shape;
mod strategic;

use serde_json::Value;

pub(crate) use self::{
    fields::{by_keys, doubled},
    shape::Shape,
    strategic::strategic,
};
use crate::refusal::{Refusal, RefusalReason};

/// The form a patch comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// Reads the content type of the request.
    pub(crate) fn parse(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// A JSON patch (RFC 6902).
pub(crate) fn json_patch(object: &Value, patch: &Value) -> Result<Value, Refusal> {
    let patch: json_patch::Patch = serde_json::from_value(patch.clone())
        .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch).map_err(|error| {
        Refusal::new(
            RefusalReason::Invalid,
            format!("the server rejected our request due to an error in our request: {error}"),
        )
    })?;
    Ok(patched)
}

/// A merge patch (RFC 7386).
pub(crate) fn merge_patch(object: &Value, patch: &Value) -> Value {
    let mut patched = object.clone();
    json_patch::merge(&mut patched, patch);
    patched
}
