//! Objects at the version a client asks for. All versions of a kind are one form under several names, but for Events and
//! HorizontalPodAutoscalers.

mod autoscaling;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{object, resource::Served, store::ObjectVersion};

/// Fields of an Event in the core group, and what the group `events.k8s.io` calls them.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];
const EVENTS_GROUP: &str = "events.k8s.io";

/// The bytes of an object at the served version: those of the store, unless the version differs or defaults are newer than the
/// object.
pub(crate) fn served_bytes(served: &Served, entry: &ObjectVersion) -> Bytes {
    let one_form = served.resource.versions.len() == 1 && served.kind() != "Event";
    let whole = served.fills_in(entry.revision).is_none();
    if one_form && whole { entry.bytes.clone() } else { Bytes::from(served_value(served, entry).to_string()) }
}

/// An object at the served version.
pub(crate) fn served_value(served: &Served, entry: &ObjectVersion) -> Value {
    let mut object = entry.value();
    let version = served.api_version();
    if object::text(&object, &["apiVersion"]) != Some(&version) {
        convert_event(&mut object, &served.resource.group);
        convert_scaler(&mut object, &version);
        object::set(&mut object, &["apiVersion"], json!(version));
    }
    if let Some(schema) = served.fills_in(entry.revision) {
        schema.fill_defaults(&mut object);
    }
    object
}

/// The form in which the store keeps an object: Events in the words of the core group, so that selectors find them, and
/// HorizontalPodAutoscalers in those of their second version, which has words for all.
pub(crate) fn stored(served: &Served, mut object: Value) -> Value {
    if served.kind() == "Event" && served.resource.group == EVENTS_GROUP {
        convert_event(&mut object, "");
        object::set(&mut object, &["apiVersion"], json!("v1"));
    }
    if served.kind() == autoscaling::KIND && served.api_version() == autoscaling::FIRST {
        convert_scaler(&mut object, autoscaling::SECOND);
        object::set(&mut object, &["apiVersion"], json!(autoscaling::SECOND));
    }
    object
}

/// A HorizontalPodAutoscaler in the words of the other version; other kinds are left as they are.
fn convert_scaler(object: &mut Value, version: &str) {
    if object::text(object, &["kind"]) != Some(autoscaling::KIND) {
        return;
    }
    match version {
        autoscaling::FIRST => autoscaling::to_first(object),
        autoscaling::SECOND => autoscaling::to_second(object),
        _ => {}
    }
}

/// An Event in the words of a group; other kinds have the same words everywhere.
fn convert_event(object: &mut Value, group: &str) {
    if object::text(object, &["kind"]) != Some("Event") {
        return;
    }
    let fields = object::fields(object);
    for (core, events) in EVENT_FIELDS {
        let (from, to) = if group == EVENTS_GROUP { (core, events) } else { (events, core) };
        if let Some(value) = fields.remove(*from) {
            fields.insert((*to).to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_under_either_group() {
        let event = json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "regarding": {"name": "x"}, "note": "n"});
        let mut core = event.clone();
        convert_event(&mut core, "");
        assert_eq!(
            core,
            json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "involvedObject": {"name": "x"}, "message": "n"})
        );
        convert_event(&mut core, EVENTS_GROUP);
        assert_eq!(core, event);
    }
}
