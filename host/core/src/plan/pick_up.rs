//! How long an item waits for a deployer of somebody else (`docs/wire.md` §3.5).

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    duration::{deadline, display},
    error::{Code, Failure},
};

/// Whether somebody works on an item whose job is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickUp {
    /// Somebody does, or may take for ever to begin.
    NotAwaited,
    /// Nobody yet; there is time until then.
    Until(Timestamp),
    /// Nobody has begun within this long.
    TooLate(Duration),
}

/// Decides. `triggered` is when the job was asked for, `picked_up` when a deployer began last, whatever the job; `limit` is
/// `None` for ever.
pub fn pick_up(
    triggered: Option<Timestamp>,
    picked_up: Option<Timestamp>,
    limit: Option<Duration>,
    now: Timestamp,
) -> PickUp {
    let (Some(triggered), Some(limit)) = (triggered, limit) else { return PickUp::NotAwaited };
    if picked_up.is_some_and(|picked_up| picked_up >= triggered) {
        return PickUp::NotAwaited;
    }
    match deadline(triggered, Some(limit)) {
        None => PickUp::NotAwaited,
        Some(deadline) if deadline <= now => PickUp::TooLate(limit),
        Some(deadline) => PickUp::Until(deadline),
    }
}

/// The operation that an item fails in that nobody began in time.
pub const PICK_UP_OPERATION: &str = "WaitingForPickup";

/// What an item fails with that nobody began in time. `missing_target` is the name of its Target, where that does not
/// exist.
pub fn too_late(item_type: &str, limit: Duration, missing_target: Option<&str>) -> Failure {
    let hint = match missing_target {
        Some(target) => format!("the target {target} does not exist; create it"),
        None => format!("register a component that claims {item_type}, or start a deployer for it"),
    };
    let message = format!("no deployer has begun within {} of the trigger: {hint}", display(limit));
    Failure::new(PICK_UP_OPERATION, "PickupTimeout", message).with_code(Code::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[track_caller]
    fn check(picked_up: Option<i64>, limit: Option<u64>, now: i64, expected: PickUp) {
        let limit = limit.map(Duration::from_secs);
        assert_eq!(pick_up(Some(at(100)), picked_up.map(at), limit, at(now)), expected);
    }

    #[test]
    fn an_item_that_nobody_begins_has_until_the_limit_after_its_trigger() {
        check(None, Some(300), 399, PickUp::Until(at(400)));
        check(None, Some(300), 400, PickUp::TooLate(Duration::from_secs(300)));
        check(Some(99), Some(300), 400, PickUp::TooLate(Duration::from_secs(300)));
    }

    #[test]
    fn what_was_begun_after_its_trigger_or_has_no_limit_is_not_awaited() {
        check(Some(100), Some(300), 1000, PickUp::NotAwaited);
        check(None, None, 1000, PickUp::NotAwaited);
        assert_eq!(pick_up(None, None, Some(Duration::from_secs(1)), at(1000)), PickUp::NotAwaited);
    }

    #[test]
    fn the_failure_says_that_a_deployer_was_missing_and_names_a_missing_target() {
        let nobody = too_late("example.com/theirs", Duration::from_secs(300), None);
        let expected = Failure::new(
            "WaitingForPickup",
            "PickupTimeout",
            "no deployer has begun within 5m of the trigger: register a component that claims example.com/theirs, or start a \
             deployer for it",
        );
        assert_eq!(nobody, expected.with_code(Code::Timeout));
        assert_eq!(
            too_late("example.com/theirs", Duration::from_secs(1), Some("gone")).message,
            "no deployer has begun within 1s of the trigger: the target gone does not exist; create it"
        );
    }
}
