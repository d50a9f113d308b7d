//! The way to a server as a test switches it: open, frozen, cut, busy, busy at first, expired, or open for one token only. The Lease of the
//! operator always comes through: one that loses it ends, and that is another matter.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use http::StatusCode;
use tokio::{sync::watch, time::timeout};

use crate::{
    fail,
    objects::DEADLINE,
    proxy::{Echo, Fate, Fates, ProxyRequest},
    write_log::{LoggedWrite, WriteLog},
};

/// What becomes of all that comes along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It passes.
    Open,
    /// Nothing comes along, and no connection ends.
    Frozen,
    /// Connections break.
    Cut,
    /// Requests are answered with 429 and the seconds of `Retry-After`.
    Busy(u32),
    /// The same of each write the first time that it is made, by verb and path; all else passes.
    BusyAtFirst(u32),
    /// Watches are answered with 410, and end with it.
    Expired,
    /// Requests with this token pass; all others are answered with 401, and their watches end.
    Token(&'static str),
}

/// Such a way.
pub struct Road {
    /// Protects the passage; held to look at it.
    passage: Mutex<Passage>,
    frozen: watch::Sender<bool>,
    /// How often each was asked in vain since the last switch, by verb and path.
    in_vain: watch::Sender<BTreeMap<String, usize>>,
    /// All writes that came along.
    log: WriteLog,
}

impl Default for Road {
    fn default() -> Road {
        let (frozen, in_vain) = (watch::Sender::new(false), watch::Sender::new(BTreeMap::new()));
        Road { passage: Mutex::new(Passage::Open), frozen, in_vain, log: WriteLog::default() }
    }
}

impl Road {
    /// Switches it; what is asked in vain is counted anew.
    pub fn switch(&self, to: Passage) {
        let is_frozen = to == Passage::Frozen;
        *self.passage.lock().unwrap_or_else(PoisonError::into_inner) = to;
        self.in_vain.send_modify(BTreeMap::clear);
        self.frozen.send_replace(is_frozen);
    }

    /// Waits until so many requests were asked in vain.
    pub async fn asked_in_vain(&self, times: usize) {
        self.asked(&format!("{times} requests in vain"), |asked| asked.values().sum::<usize>() >= times).await;
    }

    /// Waits until something was asked in vain by this verb for the second time: the first time its client has given up.
    pub async fn asked_again(&self, verb: &str) {
        let is_again = |(asked, times): (&String, &usize)| *times > 1 && asked.starts_with(verb);
        self.asked(&format!("two {verb} of the same in vain"), |asked| asked.iter().any(is_again)).await;
    }

    async fn asked(&self, what: &str, holds: impl Fn(&BTreeMap<String, usize>) -> bool) {
        let mut asked = self.in_vain.subscribe();
        let in_time = timeout(DEADLINE, asked.wait_for(holds)).await.is_ok();
        if !in_time {
            fail(&format!("there were not {what}, but {:?}", *self.in_vain.borrow()));
        }
    }

    /// How often each was asked in vain since the last switch, by verb and path.
    pub fn in_vain(&self) -> BTreeMap<String, usize> {
        self.in_vain.borrow().clone()
    }

    /// The writes that came along so far, with their answers.
    pub fn logged(&self) -> Vec<LoggedWrite> {
        self.log.all()
    }

    fn passage(&self) -> Passage {
        self.passage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Fates for Road {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if asked.is_lease() {
            return Fate::Pass;
        }
        let what = format!("{} {}", if asked.watches { "WATCH" } else { asked.method.as_str() }, asked.path);
        let is_first_write = asked.is_write() && !self.in_vain.borrow().contains_key(&what);
        let (fate, is_in_vain) = match self.passage() {
            Passage::Open => (Fate::Pass, false),
            Passage::Frozen => (Fate::Pass, true),
            Passage::Cut => (Fate::Cut, true),
            Passage::Busy(seconds) => (Fate::Later(seconds), true),
            Passage::BusyAtFirst(seconds) if is_first_write => (Fate::Later(seconds), true),
            Passage::BusyAtFirst(_) => (Fate::Pass, false),
            Passage::Expired if asked.watches => (Fate::Refuse(StatusCode::GONE), true),
            Passage::Expired => (Fate::Pass, false),
            Passage::Token(token) if asked.token.as_deref() == Some(token) => (Fate::Pass, false),
            Passage::Token(_) => (Fate::Refuse(StatusCode::UNAUTHORIZED), true),
        };
        if is_in_vain {
            self.in_vain.send_modify(|asked| *asked.entry(what).or_default() += 1);
        }
        fate
    }

    fn write_log(&self) -> Option<&WriteLog> {
        Some(&self.log)
    }

    fn event(&self, watch: &ProxyRequest) -> Echo {
        match self.passage() {
            Passage::Open | Passage::Frozen | Passage::Busy(_) | Passage::BusyAtFirst(_) => Echo::Pass,
            Passage::Cut => Echo::Break,
            Passage::Expired => Echo::Expire,
            Passage::Token(token) if watch.token.as_deref() == Some(token) => Echo::Pass,
            Passage::Token(_) => Echo::Break,
        }
    }

    fn frozen(&self, asked: &ProxyRequest) -> Option<watch::Receiver<bool>> {
        (!asked.is_lease()).then(|| self.frozen.subscribe())
    }
}
