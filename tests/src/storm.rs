//! A storm over the API: requests are refused, lost and cut off, watches break off, stammer and forget.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use http::StatusCode;
use tokio::sync::watch;

use crate::{
    dice::Dice,
    proxy::{Asked, Echo, Fate, Fates},
};

/// Faults by chance while it rages.
pub struct Storm {
    /// Protects the row of numbers; held for one throw.
    dice: Mutex<Dice>,
    rages: AtomicBool,
    /// Writes that the server has seen.
    writes: watch::Sender<usize>,
}

/// Of a thousand requests, how many go wrong; the same of events.
const REQUESTS: usize = 80;
const EVENTS: usize = 60;

impl Storm {
    /// A storm that does not rage yet.
    pub fn of(dice: Dice) -> Storm {
        Storm { dice: Mutex::new(dice), rages: AtomicBool::new(false), writes: watch::Sender::new(0) }
    }

    /// From now on it rages.
    pub fn begin(&self) {
        self.rages.store(true, Ordering::SeqCst);
    }

    /// From now on nothing goes wrong.
    pub fn end(&self) {
        self.rages.store(false, Ordering::SeqCst);
    }

    /// How many writes were asked for so far; changes with each of them.
    pub fn writes(&self) -> watch::Receiver<usize> {
        self.writes.subscribe()
    }

    fn strikes(&self, times: usize) -> Option<MutexGuard<'_, Dice>> {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let strikes = self.rages.load(Ordering::SeqCst) && dice.permille(times);
        strikes.then_some(dice)
    }
}

impl Fates for Storm {
    fn request(&self, asked: &Asked) -> Fate {
        if asked.is_write() {
            self.writes.send_modify(|writes| *writes += 1);
        }
        // Who loses his Lease ends, and who cannot ask for his kinds and his key does not begin, and rightly so: whoever runs
        // the operator starts it again.
        let is_start = asked.path.ends_with("/v1alpha1") || asked.path.ends_with("/orangery-seed");
        if asked.is_lease() || is_start {
            return Fate::Pass;
        }
        let Some(mut dice) = self.strikes(REQUESTS) else { return Fate::Pass };
        let any = [
            Fate::Cut,
            Fate::Lose,
            Fate::Refuse(StatusCode::TOO_MANY_REQUESTS),
            Fate::Refuse(StatusCode::INTERNAL_SERVER_ERROR),
            Fate::Refuse(StatusCode::SERVICE_UNAVAILABLE),
            Fate::Refuse(StatusCode::GATEWAY_TIMEOUT),
            Fate::Refuse(if asked.is_write() { StatusCode::CONFLICT } else { StatusCode::GONE }),
        ];
        dice.pick(&any)
    }

    fn event(&self, _: &Asked) -> Echo {
        match self.strikes(EVENTS) {
            None => Echo::Pass,
            Some(mut dice) => dice.pick(&[Echo::Double, Echo::Double, Echo::Break, Echo::Expire]),
        }
    }
}
