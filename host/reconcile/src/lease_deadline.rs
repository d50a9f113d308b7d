//! Until when this process may write.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use orangery_core::port::Clock;

/// How long this process may write: each renewal of its lease moves the end on (C-34). Clones share one end.
///
/// The end is kept on two clocks, and the one that is there first counts: the machine's own does not jump but may stand
/// still while the machine sleeps; the other one goes on, but may be set back.
#[derive(Clone)]
pub struct LeaseDeadline {
    clock: Arc<dyn Clock>,
    /// Held for one comparison or one change.
    end: Arc<Mutex<Option<Moment>>>,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    here: Instant,
    everywhere: Timestamp,
}

impl LeaseDeadline {
    /// One that has not begun: nothing may be written.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, end: Arc::default() }
    }

    /// Now. Taken before a renewal is asked for: what the server grants counts from no later than that.
    pub fn now(&self) -> Moment {
        Moment { here: Instant::now(), everywhere: self.clock.now() }
    }

    /// From now on the end is so long after a moment.
    pub fn extend(&self, from: Moment, by: Duration) {
        let everywhere = SignedDuration::try_from(by).ok().and_then(|by| from.everywhere.checked_add(by).ok());
        let here = from.here.checked_add(by);
        *self.lock() = here.zip(everywhere).map(|(here, everywhere)| Moment { here, everywhere });
    }

    /// Ends it at once.
    pub fn end(&self) {
        *self.lock() = None;
    }

    /// Whether this process may still write.
    pub fn lasts(&self) -> bool {
        let now = self.now();
        self.lock().is_some_and(|end| now.here < end.here && now.everywhere < end.everywhere)
    }

    /// How long this process may still write: on the clock by which that is shorter.
    pub fn left(&self) -> Duration {
        let now = self.now();
        let Some(end) = *self.lock() else { return Duration::ZERO };
        let everywhere = Duration::try_from(end.everywhere.duration_since(now.everywhere)).unwrap_or_default();
        end.here.saturating_duration_since(now.here).min(everywhere)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Moment>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LeaseDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term").field("end", &*self.lock()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    struct Set(Mutex<Timestamp>);

    impl Clock for Set {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    fn deadline() -> (LeaseDeadline, Arc<Set>) {
        let clock = Arc::new(Set(Mutex::new(Timestamp::UNIX_EPOCH)));
        (LeaseDeadline::new(Arc::clone(&clock) as Arc<dyn Clock>), clock)
    }

    #[test]
    fn c_34_nothing_is_written_before_the_lease_is_held_and_after_it_is_lost() {
        let (deadline, _) = deadline();
        assert!(!deadline.lasts());
        deadline.extend(deadline.now(), LONG);
        assert!(deadline.clone().lasts());
        deadline.clone().end();
        assert!(!deadline.lasts());
    }

    #[test]
    fn what_is_left_of_a_term_is_told_by_the_clock_on_which_it_ends_first() {
        let (deadline, clock) = deadline();
        assert_eq!(deadline.left(), Duration::ZERO);
        deadline.extend(deadline.now(), LONG);
        *clock.0.lock().unwrap() += Duration::from_secs(3000);
        assert_eq!(deadline.left(), Duration::from_secs(600));
        *clock.0.lock().unwrap() += LONG;
        assert_eq!(deadline.left(), Duration::ZERO);
    }

    #[test]
    fn c_34_a_term_ends_by_itself() {
        let (deadline, _) = deadline();
        deadline.extend(deadline.now(), Duration::ZERO);
        assert!(!deadline.lasts());
    }

    #[test]
    fn c_34_a_term_ends_while_the_machine_sleeps() {
        let (deadline, clock) = deadline();
        deadline.extend(deadline.now(), LONG);
        *clock.0.lock().unwrap() += LONG;
        assert!(!deadline.lasts());
    }

    #[test]
    fn c_34_a_clock_that_is_set_back_does_not_prolong_a_term() {
        let (deadline, clock) = deadline();
        *clock.0.lock().unwrap() += LONG;
        deadline.extend(deadline.now(), Duration::ZERO);
        *clock.0.lock().unwrap() -= LONG;
        assert!(!deadline.lasts());
    }
}
