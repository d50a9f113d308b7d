//! Chance that repeats itself: the same seed throws the same numbers (SplitMix64).

use std::time::{SystemTime, UNIX_EPOCH};

/// A row of numbers that a seed fixes.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The dice of a seed.
    pub fn of(seed: u64) -> Dice {
        Dice(seed)
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.throw() % limit).unwrap_or_default()
    }

    /// True so many times of a thousand.
    pub fn permille(&mut self, times: usize) -> bool {
        self.below(1000) < times
    }

    /// One of these, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let at = self.below(of.len());
        *of.get(at).expect("there is something to choose from")
    }
}

/// Another seed for each run.
#[expect(clippy::disallowed_methods, reason = "a seed is to differ from run to run")]
pub fn drawn() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    since.as_secs() * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_another_does_not() {
        let row = |seed| {
            let mut dice = Dice::of(seed);
            [(); 8].map(|()| dice.below(6))
        };
        assert_eq!(row(1), row(1));
        assert_ne!(row(1), row(2));
        assert!(row(3).iter().all(|number| *number < 6));
    }
}
