//! Changing an object by a patch: JSON patch, merge patch, strategic merge patch, server-side apply.

pub(crate) mod apply;
mod fields;
pub(crate) mod managed;
mod shape;
mod strategic;

use json_patch::PatchOperation;
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

/// The most operations of a JSON patch, as on the real server.
const MOST_OPERATIONS: usize = 10_000;

/// The most bytes, as JSON, of all that a JSON patch copies, as on the real server: each copy may double the object.
const MOST_COPIED_BYTES: usize = 3 << 20;

/// A JSON patch (RFC 6902).
pub(crate) fn json_patch(object: &Value, patch: &Value) -> Result<Value, Refusal> {
    let patch: json_patch::Patch = serde_json::from_value(patch.clone())
        .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
    let (mut patched, mut copied) = (object.clone(), 0_usize);
    let operations = patch.0.len();
    if operations > MOST_OPERATIONS {
        let why = format!("The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {operations}");
        return Err(Refusal::new(RefusalReason::TooLarge, why));
    }
    let refused = |error: String| {
        let why = format!("the server rejected our request due to an error in our request: {error}");
        Refusal::new(RefusalReason::Invalid, why)
    };
    for (number, operation) in patch.0.into_iter().enumerate() {
        if let PatchOperation::Copy(copy) = &operation {
            let length = patched.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len());
            copied = copied.saturating_add(length);
            if copied > MOST_COPIED_BYTES {
                let limit = format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
                     {MOST_COPIED_BYTES}"
                );
                return Err(refused(limit));
            }
        }
        json_patch::patch(&mut patched, &[operation]).map_err(|mut error| {
            error.operation = number;
            refused(error.to_string())
        })?;
    }
    Ok(patched)
}

/// A merge patch (RFC 7386).
pub(crate) fn merge_patch(object: &Value, patch: &Value) -> Value {
    let mut patched = object.clone();
    json_patch::merge(&mut patched, patch);
    patched
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_112_limits_embedded_what_a_json_patch_copies_is_bounded_before_it_is_copied() {
        let object = json!({"data": {"a": "x".repeat(1 << 20)}});
        let copies = |count: usize| {
            let copy = |number: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/{number}")});
            json_patch(&object, &Value::Array((0..count).map(copy).collect()))
        };
        assert!(copies(1).is_ok());
        let refusal = copies(60).unwrap_err();
        let sentence = "the server rejected our request due to an error in our request: Unable to complete the copy, the \
                        accumulated size increase of copy is 3145757, exceeding the limit 3145728";
        assert_eq!((refusal.reason, refusal.message.as_str()), (RefusalReason::Invalid, sentence));
        let test = json!({"op": "test", "path": "/data/b", "value": 1});
        let patch = json!([{"op": "copy", "from": "/data/a", "path": "/c"}, test]);
        let refusal = json_patch(&object, &patch).unwrap_err();
        assert!(refusal.message.contains("operation '/1' failed at path '/data/b'"), "{}", refusal.message);
        let many = Value::Array(vec![test; MOST_OPERATIONS + 1]);
        let refusal = json_patch(&object, &many).unwrap_err();
        let sentence = "The allowed maximum operations in a JSON patch is 10000, got 10001";
        assert_eq!((refusal.reason, refusal.message.as_str()), (RefusalReason::TooLarge, sentence));
    }
}
