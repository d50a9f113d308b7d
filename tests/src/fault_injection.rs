//! Faults of the API: requests are refused, lost and cut off; watches break off, repeat events and expire.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use http::StatusCode;
use tokio::sync::watch;

use crate::{
    dice::Dice,
    proxy::{Echo, Fate, Fates, ProxyRequest},
    write_log::{LoggedWrite, WriteLog},
};

/// Faults by chance, between [`begin`](Self::begin) and [`end`](Self::end).
pub struct FaultInjection {
    /// Protects the row of numbers; held for one throw.
    dice: Mutex<Dice>,
    injects: AtomicBool,
    /// Writes that the server has seen.
    writes: watch::Sender<usize>,
    /// The same since the faults began, with their answers.
    log: WriteLog,
}

/// Of a thousand requests, how many go wrong; the same of events.
const REQUESTS: usize = 80;
const EVENTS: usize = 60;

impl FaultInjection {
    /// One that has not begun.
    pub fn of(dice: Dice) -> FaultInjection {
        let (injects, writes) = (AtomicBool::new(false), watch::Sender::new(0));
        FaultInjection { dice: Mutex::new(dice), injects, writes, log: WriteLog::default() }
    }

    /// From now on requests and events go wrong by chance.
    pub fn begin(&self) {
        self.log.begin();
        self.injects.store(true, Ordering::SeqCst);
    }

    /// From now on nothing goes wrong.
    pub fn end(&self) {
        self.injects.store(false, Ordering::SeqCst);
    }

    /// How many writes were asked for so far; changes with each of them.
    pub fn writes(&self) -> watch::Receiver<usize> {
        self.writes.subscribe()
    }

    /// The writes that came since the faults began.
    pub fn logged(&self) -> Vec<LoggedWrite> {
        self.log.all()
    }

    fn fault(&self, times: usize) -> Option<MutexGuard<'_, Dice>> {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = self.injects.load(Ordering::SeqCst) && dice.permille(times);
        fault.then_some(dice)
    }
}

impl Fates for FaultInjection {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if asked.is_write() {
            self.writes.send_modify(|writes| *writes += 1);
        }
        // An operator that loses its Lease ends, and one that cannot ask for its kinds and its key does not begin. That is right:
        // whatever runs the operator starts it again.
        let is_start = asked.path.ends_with("/v1alpha1") || asked.path.ends_with("/orangery-seed");
        if asked.is_lease() || is_start {
            return Fate::Pass;
        }
        let Some(mut dice) = self.fault(REQUESTS) else { return Fate::Pass };
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

    fn write_log(&self) -> Option<&WriteLog> {
        Some(&self.log)
    }

    fn event(&self, _: &ProxyRequest) -> Echo {
        match self.fault(EVENTS) {
            None => Echo::Pass,
            Some(mut dice) => dice.pick(&[Echo::Double, Echo::Double, Echo::Break, Echo::Expire]),
        }
    }
}
