//! What an operator holds when nothing is left to do: where that grows from schedule to schedule, something leaks.

use std::fmt;

/// So many schedules tell whether something grows.
pub const FEWEST_ROUNDS: usize = 3;

/// A process begins to use its memory well only after so many schedules; from then on it is compared.
const WARM: usize = 60;

/// Descriptors and threads may be so many more than at first: connections and workers that are kept.
const KEPT: usize = 8;

/// The memory at the end, as a multiple of that of an operator that is warm.
const MOST_GROWTH: f64 = 1.15;

/// What an operator holds, and what it has left in the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its resident memory.
    pub resident_mebibytes: f64,
    /// Its threads.
    pub threads: usize,
    /// Its open file descriptors.
    pub descriptors: usize,
    /// Its watches that go on.
    pub watches: usize,
    /// The Secrets of all namespaces.
    pub secrets: usize,
    /// The ConfigMaps of all namespaces.
    pub config_maps: usize,
}

impl Held {
    /// What there is more of than there was before, but for memory.
    pub fn exceeds(&self, before: &Held) -> Vec<String> {
        let counts = [
            ("threads", self.threads, before.threads + KEPT),
            ("descriptors", self.descriptors, before.descriptors + KEPT),
            ("watches", self.watches, before.watches),
            ("Secrets", self.secrets, before.secrets),
            ("ConfigMaps", self.config_maps, before.config_maps),
        ];
        let more = counts.into_iter().filter(|(_, now, most)| now > most);
        more.map(|(what, now, most)| format!("{now} {what}, at most {most} before")).collect()
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { resident_mebibytes, threads, descriptors, watches, secrets, config_maps } = self;
        write!(
            f,
            "{resident_mebibytes:.0} MiB resident, {threads} threads, {descriptors} descriptors, {watches} watches, \
             {secrets} Secrets, {config_maps} ConfigMaps"
        )
    }
}

/// Whether nothing leaks, of what was held after each schedule.
///
/// # Errors
/// What has grown.
pub fn check(held: &[Held]) -> Result<(), String> {
    let (Some(first), Some(last)) = (held.first(), held.last()) else { return Err("nothing was played".to_owned()) };
    let mut grown = last.exceeds(first);
    if let Some(warm) = held.get(WARM)
        && last.resident_mebibytes > warm.resident_mebibytes * MOST_GROWTH
    {
        let (warm, last) = (warm.resident_mebibytes, last.resident_mebibytes);
        grown.push(format!("{last:.0} MiB resident, {warm:.0} after {WARM} schedules"));
    }
    if grown.is_empty() { Ok(()) } else { Err(format!("the operator keeps what nobody needs: {}", grown.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(resident_mebibytes: f64, watches: usize, secrets: usize) -> Held {
        Held { resident_mebibytes, threads: 8, descriptors: 20, watches, secrets, config_maps: 2 }
    }

    #[test]
    fn what_grows_is_told_and_what_does_not_is_no_leak() {
        let warm = vec![held(100.0, 9, 3); WARM + 1];
        assert_eq!(check(&warm), Ok(()));
        let with = |last| check(&[warm.clone(), vec![last]].concat());
        assert_eq!(with(held(114.0, 9, 3)), Ok(()));
        assert_eq!(
            with(held(120.0, 10, 4)),
            Err("the operator keeps what nobody needs: 10 watches, at most 9 before; 4 Secrets, at most 3 before; \
                 120 MiB resident, 100 after 60 schedules"
                .to_owned())
        );
        let more = Held { threads: 17, descriptors: 29, config_maps: 3, ..held(1.0, 1, 1) };
        assert_eq!(
            with(more),
            Err("the operator keeps what nobody needs: 17 threads, at most 16 before; 29 descriptors, at most 28 before; \
                 3 ConfigMaps, at most 2 before"
                .to_owned())
        );
        assert_eq!(check(&[]), Err("nothing was played".to_owned()));
    }
}
