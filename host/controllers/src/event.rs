//! Events: what has happened, for `kubectl describe` (`docs/rules.md`, Events). One Warning for each failure that a
//! status shows newly, and one for each item that goes without being uninstalled; one for drift that is new, and a Normal
//! one for what was written again, and one for another answer of a candidate; one for an object that cannot be read; one for
//! another operator that does the same; none for waiting.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;
use orangery_api::error::LastError;
use orangery_core::{
    error::Failure,
    name::{Namespace, ObjectName},
};
use orangery_reconcile::{Key, Notice, Repeated, StatusAuthors, Store, UnreadableObject, Watched};

use crate::{controller_context::ControllerContext, stores::Stores};

/// The longest note that the events API takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Publishes the failure of an object, unless its status showed the same one before; see [`warn`].
pub(crate) fn failed<K: Watched>(
    host: &ControllerContext,
    object: &K,
    text: Option<&LastError>,
    failure: Option<&Failure>,
) {
    let Some(failure) = failure else { return };
    if text.map(LastError::failure).as_ref() == Some(failure) {
        return;
    }
    warn(host, object, reason_of(failure), &failure.message);
}

/// Publishes a Warning about an object, without the secret values of its namespace. In the background: nobody waits for an
/// event, and one that cannot be written is only logged.
pub(crate) fn warn<K: Watched>(host: &ControllerContext, object: &K, reason: &str, note: &str) {
    publish(host, object, (EventType::Warning, Repeated::Counted), (reason, note));
}

/// Publishes a failure that no status shows and that lasts until its object changes, as [`warn`] does: once, however often
/// the object is looked at.
pub(crate) fn warn_of_lasting<K: Watched>(host: &ControllerContext, object: &K, failure: &Failure) {
    publish(host, object, (EventType::Warning, Repeated::Passed), (reason_of(failure), &failure.message));
}

/// Publishes what holds an object, as [`warn`] does: once, whatever holds it later.
pub(crate) fn warn_of_holding<K: Watched>(host: &ControllerContext, object: &K, reason: &str, note: &str) {
    publish(host, object, (EventType::Warning, Repeated::PassedWhateverItSays), (reason, note));
}

/// Publishes what has been done about an object, as [`warn`] does.
pub(crate) fn tell<K: Watched>(host: &ControllerContext, object: &K, reason: &str, note: &str) {
    publish(host, object, (EventType::Normal, Repeated::Counted), (reason, note));
}

/// From now on publishes of each object of a store that cannot be read why that is so, once: it has no status that could be
/// written (C-153).
pub fn tell_unreadable<K: Watched>(host: &Arc<ControllerContext>, store: &Store<K>) {
    let host = Arc::downgrade(host);
    store.on_unreadable(move |unreadable: &UnreadableObject| {
        let Some(host) = host.upgrade() else { return };
        // What is wrong with it may be quoted.
        let masker = host.secrets.masker(&unreadable.object.namespace.as_deref().unwrap_or("").into());
        let notice = Notice {
            type_: EventType::Warning,
            reason: "Unreadable".to_owned(),
            note: cut(&masker.mask(&format!("it is left as it was read last: {}", unreadable.why))),
            action: format!("Read{}", K::kind(&())),
            repeated: Repeated::Passed,
        };
        send(&host, notice, unreadable.object.clone());
    });
}

/// From now on the status of objects is written in the name of the operator that holds this Lease, and what others write is told: in
/// the log, by an event of the object, and counted (C-330). `since` is when it has got it, by the clock of the API server.
pub fn tell_authors(
    host: &Arc<ControllerContext>,
    lease: (&Namespace, &ObjectName),
    since: Option<Timestamp>,
) -> Arc<StatusAuthors> {
    let to = Arc::downgrade(host);
    let authors = StatusAuthors::of_lease(lease, since, move |object, other| {
        let Some(host) = to.upgrade() else { return };
        let by = if other.is_empty() {
            "without a Lease, or of an older release".to_owned()
        } else {
            format!("with the Lease {other}")
        };
        let note = format!(
            "another operator, {by}, writes the status of the same objects, so that every job is done twice: stop one of them, or \
             give each namespaces of its own (--namespace; namespaces of the chart)"
        );
        let of = format!(
            "{}/{}",
            object.namespace.as_deref().unwrap_or_default(),
            object.name.as_deref().unwrap_or_default()
        );
        tracing::warn!(object = of, "{note}");
        let notice = Notice {
            type_: EventType::Warning,
            reason: "AnotherOperator".to_owned(),
            note: cut(&note),
            action: "WriteStatus".to_owned(),
            repeated: Repeated::Counted,
        };
        send(&host, notice, object.clone());
    });
    let Stores { installations, executions, deploy_items, .. } = &host.stores;
    installations.tell_authors(&authors);
    executions.tell_authors(&authors);
    deploy_items.tell_authors(&authors);
    authors
}

fn reason_of(failure: &Failure) -> &str {
    if failure.reason.is_empty() { "Failed" } else { &failure.reason }
}

fn publish<K: Watched>(
    host: &ControllerContext,
    object: &K,
    (type_, repeated): (EventType, Repeated),
    (reason, note): (&str, &str),
) {
    let masker = host.secrets.masker(&Key::of(object).namespace);
    let (reason, note) = (reason.to_owned(), cut(&masker.mask(note)));
    let notice = Notice { type_, reason, note, action: format!("Reconcile{}", K::kind(&())), repeated };
    send(host, notice, object.object_ref(&()));
}

fn send(host: &ControllerContext, notice: Notice, reference: ObjectReference) {
    let (recorder, now) = (host.recorder.clone(), host.now());
    tokio::spawn(async move {
        if let Err(error) = recorder.publish(&notice, &reference, now.0).await {
            tracing::debug!(%error, object = reference.name, "publishing an event");
        }
    });
}

fn cut(message: &str) -> String {
    message.get(..message.floor_char_boundary(LONGEST_NOTE)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_event_a_note_is_as_long_as_the_server_takes_it_and_cut_between_letters() {
        assert_eq!(cut(&"x".repeat(LONGEST_NOTE)), "x".repeat(LONGEST_NOTE));
        assert_eq!(cut(&"x".repeat(LONGEST_NOTE + 1)), "x".repeat(LONGEST_NOTE));
        assert_eq!(cut(&format!("x{}", "é".repeat(LONGEST_NOTE))), format!("x{}", "é".repeat(LONGEST_NOTE / 2 - 1)));
    }
}
