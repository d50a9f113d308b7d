//! The net below the watches (C-11): an object that waits and hears nothing for long is made to look again.
//!
//! The first silence is 15 to 30 seconds, each one after it in a row twice as long, up to 10 minutes. Any event ends the row.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::{Key, queue::CallCause};

const FIRST_CEILING: Duration = Duration::from_secs(30);
const LAST_CEILING: Duration = Duration::from_secs(600);

/// The keys that wait, and until when they may wait without an event.
#[derive(Default)]
pub(crate) struct StaleWatchTimer {
    spans: BTreeMap<Key, QuietPeriod>,
}

struct QuietPeriod {
    /// How many came before it, in a row.
    before: u32,
    ends: Instant,
}

impl StaleWatchTimer {
    /// A call begins: whether because its object has heard nothing for too long.
    pub(crate) fn is_stale(&mut self, key: &Key, cause: CallCause, now: Instant) -> bool {
        if cause == CallCause::Event {
            self.spans.remove(key);
        }
        self.spans.get(key).is_some_and(|span| span.ends <= now)
    }

    /// The call ended with a wait: how long it may hear nothing from now on. `fraction` of 0 to 1 spreads those who began
    /// together.
    pub(crate) fn wait(&mut self, key: &Key, now: Instant, fraction: f64) -> Duration {
        let before = match self.spans.get(key) {
            None => 0,
            Some(span) if span.ends <= now => span.before.saturating_add(1),
            // A call that a timer of its own made: the silence goes on.
            Some(span) => return span.ends.saturating_duration_since(now),
        };
        let longest = longest(before, fraction);
        self.spans.insert(key.clone(), QuietPeriod { before, ends: now + longest });
        longest
    }

    /// The object waits no more.
    pub(crate) fn release(&mut self, key: &Key) {
        self.spans.remove(key);
    }
}

fn longest(before: u32, fraction: f64) -> Duration {
    let doubled = FIRST_CEILING.checked_mul(2_u32.saturating_pow(before)).unwrap_or(LAST_CEILING);
    doubled.min(LAST_CEILING).mul_f64(0.5 + fraction.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_11_the_silence_doubles_up_to_ten_minutes_and_is_spread() {
        let times = |fraction: f64| [0, 1, 2, 3, 4, 5, 40].map(|before| longest(before, fraction).as_secs());
        assert_eq!(times(1.0), [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(times(0.0), [15, 30, 60, 120, 240, 300, 300]);
    }

    #[test]
    fn c_11_only_a_silence_that_was_waited_through_is_caught_and_an_event_ends_the_row() {
        let (mut stale_watch, key, start) = (StaleWatchTimer::default(), Key::new("a", "x"), Instant::now());
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        assert!(!stale_watch.is_stale(&key, CallCause::Time, start));
        assert_eq!(stale_watch.wait(&key, start, 1.0).as_secs(), 30);
        // A timer of the object's own, before: the silence goes on.
        assert!(!stale_watch.is_stale(&key, CallCause::Time, after(10)));
        assert_eq!(stale_watch.wait(&key, after(10), 1.0).as_secs(), 20);
        assert!(stale_watch.is_stale(&key, CallCause::Time, after(30)));
        assert_eq!(stale_watch.wait(&key, after(30), 1.0).as_secs(), 60);
        assert!(stale_watch.is_stale(&key, CallCause::Time, after(90)));
        assert!(!stale_watch.is_stale(&key, CallCause::Event, after(91)));
        assert_eq!(stale_watch.wait(&key, after(91), 1.0).as_secs(), 30);
        stale_watch.release(&key);
        assert!(!stale_watch.is_stale(&key, CallCause::Time, after(1000)));
    }
}
