//! Events: what has happened, for `kubectl describe` (`docs/rules.md`, Events). One Warning for each failure that a
//! status shows newly, and one for each item that goes without being uninstalled; none for waiting.

use kube::runtime::events::{Event, EventType};
use orangery_api::error::LastError;
use orangery_core::error::Failure;
use orangery_reconcile::{Key, Watched};

use crate::controller_context::ControllerContext;

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
    let reason = if failure.reason.is_empty() { "Failed" } else { &failure.reason };
    warn(host, object, reason, &failure.message);
}

/// Publishes a Warning about an object, without the secret values of its namespace. In the background: nobody waits for an
/// event, and one that cannot be written is only logged.
pub(crate) fn warn<K: Watched>(host: &ControllerContext, object: &K, reason: &str, note: &str) {
    let masker = host.secrets.masker(&Key::of(object).namespace);
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        note: Some(cut(&masker.mask(note))),
        action: format!("Reconcile{}", K::kind(&())),
        secondary: None,
    };
    let recorder = host.recorder.clone();
    let reference = object.object_ref(&());
    tokio::spawn(async move {
        if let Err(error) = recorder.publish(&event, &reference).await {
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
