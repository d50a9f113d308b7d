//! What is counted where it happens, and read when somebody asks: durations in buckets, and figures by names that others
//! choose, of which there is a bounded number.

use std::{
    array,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How many bounds there are between buckets.
const BOUNDS: usize = 14;

/// The greatest duration of each bucket but the last one, which has no bound; in milliseconds.
const MILLISECONDS: [u64; BOUNDS] =
    [1, 5, 20, 100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000];

/// Which bucket a duration belongs to.
fn bucket(of: Duration) -> usize {
    MILLISECONDS.iter().position(|most| of <= Duration::from_millis(*most)).unwrap_or(BOUNDS)
}

/// How many durations there were, by buckets, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// All of them together.
    pub sum: Duration,
    /// How many are in each bucket; in the last one those longer than an hour.
    counts: [u64; BOUNDS + 1],
}

impl DurationCounts {
    /// Counts one more.
    pub fn add(&mut self, duration: Duration) {
        self.sum = self.sum.saturating_add(duration);
        if let Some(count) = self.counts.get_mut(bucket(duration)) {
            *count += 1;
        }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper bound of each bucket in seconds, the last one infinite, and how many are in it and in none before.
    pub fn buckets(&self) -> [(f64, u64); BOUNDS + 1] {
        array::from_fn(|at| {
            let bound = MILLISECONDS.get(at).map_or(f64::INFINITY, |bound| Duration::from_millis(*bound).as_secs_f64());
            (bound, self.counts.get(at).copied().unwrap_or_default())
        })
    }
}

/// The same, counted by many at once without a lock.
#[derive(Debug, Default)]
pub struct Durations {
    nanoseconds: AtomicU64,
    counts: [AtomicU64; BOUNDS + 1],
}

impl Durations {
    /// Counts one more.
    pub fn add(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        if let Some(count) = self.counts.get(bucket(duration)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> DurationCounts {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        DurationCounts { sum: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)), counts }
    }
}

/// The most names that have figures of their own; those beyond have one set of figures together (C-390).
pub const MOST_NAMES: usize = 100;

/// The most bytes of such a name (C-390).
pub const LONGEST_NAME: usize = 253;

/// The name of what has no figures of its own.
pub const OTHER: &str = "other";

/// Figures by names that others choose. A name keeps its figures as long as this lives.
#[derive(Debug, Default)]
pub struct ByName<F> {
    /// Protects who has which. Held for one look-up, not while something is counted.
    figures: Mutex<BTreeMap<Arc<str>, Arc<F>>>,
}

impl<F: Default> ByName<F> {
    /// The figures of a name, to be kept by who counts: those of [`OTHER`] where too many names have some, or where it is too long.
    pub fn of(&self, name: &str) -> Arc<F> {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = figures.get(name) {
            return Arc::clone(known);
        }
        let own = figures.keys().filter(|known| ***known != *OTHER).count();
        let name = if name.len() <= LONGEST_NAME && own < MOST_NAMES { name } else { OTHER };
        Arc::clone(figures.entry(name.into()).or_default())
    }

    /// All of them, sorted by name.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<F>)> {
        let figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.iter().map(|(name, figures)| (Arc::clone(name), Arc::clone(figures))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_has_room_for_it() {
        let (shared, mut own) = (Durations::default(), DurationCounts::default());
        for milliseconds in [0, 1, 2, 20, 3_600_000, 3_600_001] {
            shared.add(Duration::from_millis(milliseconds));
            own.add(Duration::from_millis(milliseconds));
        }
        assert_eq!(shared.counts(), own);
        let filled: Vec<(f64, u64)> = own.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.001, 2), (0.005, 1), (0.02, 1), (3600.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((own.count(), own.sum), (6, Duration::from_millis(7_200_024)));
    }

    #[test]
    fn bounds_grow() {
        let bounds = DurationCounts::default().buckets().map(|(bound, _)| bound);
        assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
    }

    #[test]
    fn c_390_limits_figures_so_many_names_have_figures_of_their_own() {
        let by_name = ByName::<AtomicU64>::default();
        let count = |name: &str| by_name.of(name).fetch_add(1, Ordering::Relaxed);
        count(&"x".repeat(LONGEST_NAME));
        count(&"x".repeat(LONGEST_NAME + 1));
        for number in 0..10_000 {
            count(&number.to_string());
        }
        count("5");
        let all = by_name.all();
        let of = |name: &str| {
            all.iter().find(|(known, _)| **known == *name).map(|(_, figures)| figures.load(Ordering::Relaxed))
        };
        let own = u64::try_from(MOST_NAMES).unwrap() - 1;
        assert_eq!([of(&"x".repeat(LONGEST_NAME)), of("5"), of(OTHER)], [Some(1), Some(2), Some(10_001 - own)]);
        assert_eq!(all.len(), MOST_NAMES + 1);
    }
}
