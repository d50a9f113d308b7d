//! The machine that the host runs on: its clock and its randomness, read here and nowhere else.

use jiff::Timestamp;
use orangery_core::port::{Chance, Clock};
use uuid::Uuid;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsChance;

impl OsChance {
    #[expect(clippy::disallowed_methods, reason = "the one place where randomness is made")]
    fn uuid() -> Uuid {
        Uuid::new_v4()
    }
}

impl Chance for OsChance {
    fn job_id(&self) -> String {
        Self::uuid().to_string()
    }

    fn fraction(&self) -> f64 {
        // The bits of a float's mantissa, taken from the end of the id, where all bits are random.
        const BITS: u32 = 48;
        let random = Self::uuid().as_u128() & ((1 << BITS) - 1);
        let random = u64::try_from(random).unwrap_or_default();
        random as f64 / (1_u64 << BITS) as f64
    }

    fn secret(&self) -> [u8; 32] {
        let ids = std::iter::repeat_with(|| Self::uuid().into_bytes());
        // Bytes 6 and 8 carry the version of the UUID and are left out.
        let random = ids.flat_map(|id| id.into_iter().enumerate().filter(|(at, _)| !matches!(at, 6 | 8)));
        let mut secret = [0; 32];
        secret.iter_mut().zip(random).for_each(|(to, (_, byte))| *to = byte);
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_lie_between_none_and_all_and_differ() {
        let fractions: Vec<f64> = (0..100).map(|_| OsChance.fraction()).collect();
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)), "{fractions:?}");
        assert!(fractions.iter().any(|fraction| *fraction < 0.5), "{fractions:?}");
        assert!(fractions.iter().any(|fraction| *fraction >= 0.5), "{fractions:?}");
    }

    #[test]
    fn secrets_are_random_in_every_byte() {
        let secrets: Vec<[u8; 32]> = (0..100).map(|_| OsChance.secret()).collect();
        for at in 0..32 {
            let seen: std::collections::BTreeSet<u8> = secrets.iter().map(|secret| secret[at]).collect();
            assert!(seen.len() > 50, "byte {at} had only {} values in a hundred secrets", seen.len());
        }
    }

    #[test]
    fn job_ids_are_uuids_of_version_4() {
        let id = Uuid::parse_str(&OsChance.job_id()).unwrap();
        assert_eq!(id.get_version_num(), 4);
        assert_ne!(OsChance.job_id(), OsChance.job_id());
    }
}
