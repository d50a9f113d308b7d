//! Components that could not be compiled for a reason that may pass: they are not compiled anew whenever somebody asks (C-134).
//!
//! A machine that was slow once condemns none for good: each is tried again, after a pause that grows only where the compiler
//! itself was at work for most of its time, or took so much memory that the system ended it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::error::Error;

/// For how long a component is not compiled again after the first time, or where others made it slow.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The same however often it was tried; a component that was not asked for as long after that begins anew.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);
/// How many such components are known; the one that may be compiled again first goes.
const MOST_KNOWN: usize = 1_000;

/// What is known of those of one origin.
#[derive(Default)]
pub(crate) struct SlowCompilations {
    /// Protects what is known, by digest. Held for one look.
    known: Mutex<BTreeMap<String, SlowCompilation>>,
}

struct SlowCompilation {
    why: Arc<Error>,
    pause: Duration,
    until: Instant,
}

impl SlowCompilation {
    fn error(&self) -> Error {
        Error::CompileLater { why: Arc::clone(&self.why), pause: self.pause }
    }
}

impl SlowCompilations {
    /// Whether this component may be compiled now; else why not.
    pub(crate) fn may_begin(&self, digest: &str) -> Result<(), Error> {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, slow| now < slow.until + LONGEST_PAUSE);
        known.get(digest).filter(|slow| now < slow.until).map_or(Ok(()), |slow| Err(slow.error()))
    }

    /// What the end of a compilation means: a reason that may pass holds for a while.
    pub(crate) fn ended<T>(&self, digest: &str, ended: Result<T, Error>) -> Result<T, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match ended {
            Err(why @ (Error::CompileTime { .. } | Error::CompileKilled)) => why,
            ended => {
                known.remove(digest);
                return ended;
            }
        };
        let grows = match why {
            Error::CompileTime { seconds, computed } => computed >= seconds / 2,
            _ => true,
        };
        let pause = match known.get(digest) {
            Some(last) if grows => last.pause.saturating_mul(2).min(LONGEST_PAUSE),
            Some(last) => last.pause,
            None => SHORTEST_PAUSE,
        };
        let slow = SlowCompilation { why: Arc::new(why), pause, until: Instant::now() + pause };
        let error = slow.error();
        known.insert(digest.to_owned(), slow);
        if known.len() > MOST_KNOWN {
            let first = known.iter().min_by_key(|(_, slow)| slow.until).map(|(digest, _)| digest.clone());
            first.and_then(|first| known.remove(&first));
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A compilation that took too long, for so many seconds of which the compiler computed.
    fn too_long(slow: &SlowCompilations, digest: &str, computed: u64) -> u64 {
        match slow.ended::<()>(digest, Err(Error::CompileTime { seconds: 180, computed })) {
            Err(Error::CompileLater { pause, .. }) => pause.as_secs() / 60,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c_134_limits_components_one_that_is_slow_is_asked_for_in_vain_for_a_while_that_grows() {
        let slow = SlowCompilations::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            slow.may_begin("a").unwrap();
            pauses.push(too_long(&slow, "a", 170));
            let why = slow.may_begin("a").unwrap_err().to_string();
            let expected = format!(
                "compiling the component took longer than 180 s, of which the compiler computed 170 s; it is compiled again when it \
                 is asked for later than {} min after that; make it smaller if that stays so",
                pauses.last().unwrap()
            );
            assert_eq!(why, expected);
            slow.may_begin("b").unwrap();
            tokio::time::advance(MINUTE * u32::try_from(*pauses.last().unwrap()).unwrap()).await;
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 360, 360]);
        // It is not asked for, and begins anew.
        tokio::time::advance(LONGEST_PAUSE).await;
        slow.may_begin("a").unwrap();
        assert!(slow.known.lock().unwrap().is_empty());
        assert_eq!(too_long(&slow, "a", 170), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn c_134_a_machine_that_was_slow_condemns_no_component() {
        let slow = SlowCompilations::default();
        let pauses = [10, 89, 10, 170, 10].map(|computed| too_long(&slow, "a", computed));
        assert_eq!(pauses, [5, 5, 5, 10, 10], "what others computed meanwhile is not its fault");
        slow.ended("a", Ok(())).unwrap();
        slow.may_begin("a").unwrap();
        assert_eq!(too_long(&slow, "a", 170), 5, "once it was compiled, nothing is held against it");
    }

    #[tokio::test(start_paused = true)]
    async fn c_134_what_does_not_pass_is_nothing_to_wait_for() {
        let slow = SlowCompilations::default();
        too_long(&slow, "a", 170);
        let ended: Result<(), _> = slow.ended("a", Err(Error::Compile { why: "bad magic".to_owned() }));
        assert_eq!(ended.unwrap_err().to_string(), "the component does not compile: bad magic");
        slow.may_begin("a").unwrap();
        let ended: Result<(), _> = slow.ended("a", Err(Error::CompileKilled));
        assert!(ended.unwrap_err().is_transient());
        assert_eq!(
            slow.may_begin("a").unwrap_err().to_string(),
            "the compiler of the component was killed, as by the system where memory ends; it is compiled again when it is asked for \
             later than 5 min after that; make it smaller if that stays so"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn c_134_limits_components_so_many_that_are_slow_are_known() {
        let slow = SlowCompilations::default();
        for index in 0..=MOST_KNOWN {
            too_long(&slow, &index.to_string(), 170);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(slow.known.lock().unwrap().len(), MOST_KNOWN);
        assert!(slow.may_begin("0").is_ok() && slow.may_begin("1").is_err());
    }
}
