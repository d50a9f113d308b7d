//! Whether what is applied fits its kind: server-side apply has to read it by its schema before anything else.

use serde_json::Value;

use super::{WriteRequest, prepare::prune_metadata};
use crate::{
    builtin,
    object::meta,
    patch::{by_keys, doubled},
    refusal::{Refusal, RefusalReason},
};

/// Refuses what cannot be applied, whatever was said of unknown fields: fields that a kind and types that a built-in kind does not
/// have, and several entries of a list for one key. In the words of the real server, all of them together.
pub(super) fn check(call: &WriteRequest, wanted: &Value) -> Result<(), Refusal> {
    let double = doubled(wanted, call.shape(), "").into_iter();
    let mut complaints: Vec<String> =
        double.map(|(list, key)| format!("{list}: duplicate entries for key {key}")).collect();
    let schema = call.served.version().schema.as_deref().filter(|_| call.served.is_custom());
    if let Some(schema) = schema {
        let mut pruned = wanted.clone();
        let unknown = prune_metadata(&mut pruned).into_iter().chain(schema.prune(&mut pruned));
        complaints.extend(unknown.map(|path| {
            let place = by_keys(&path, wanted, call.shape()).unwrap_or_else(|| format!(".{path}"));
            format!("{place}: field not declared in schema")
        }));
    }
    if !call.served.is_custom() {
        let place = |path: &str| by_keys(path, wanted, call.shape()).unwrap_or_else(|| format!(".{path}"));
        let misfits = builtin::check(&mut wanted.clone());
        complaints.extend(misfits.unknown.iter().map(|path| format!("{}: field not declared in schema", place(path))));
        complaints.extend(misfits.mistyped.iter().map(|misfit| {
            let wanted = match misfit.wanted {
                "integer" | "number" => "numeric (int or float)",
                "bool" => "boolean",
                "an object" | "a map" => "map",
                "a list" => "list",
                other => other,
            };
            format!("{}: expected {wanted}, got {}", place(&misfit.path), misfit.found)
        }));
    }
    let message = match complaints.as_slice() {
        [] => return Ok(()),
        [only] => only.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let (namespace, name) = (meta(wanted, "namespace"), meta(wanted, "name"));
    let of = format!("{namespace}/{name}; {}, Kind={}", call.served.api_version(), call.served.kind());
    Err(Refusal::new(RefusalReason::InternalError, format!("failed to create typed patch object ({of}): {message}")))
}
