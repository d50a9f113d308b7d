//! What an operator holds when nothing is left to do: where that grows from schedule to schedule, something leaks.

use std::{collections::BTreeMap, fmt};

/// So many schedules tell whether something grows.
pub const FEWEST_ROUNDS: usize = 3;

/// A process begins to use its memory well only after so many schedules; from then on it is compared.
const WARM: usize = 60;

/// The memory of so many schedules is taken together, by its median: of each alone it goes up and down.
const TOGETHER: usize = 10;

/// Descriptors and threads may be so many more than at first: connections and workers that are kept.
const KEPT: usize = 24;

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
    /// The objects of all namespaces, by kind.
    pub objects: BTreeMap<&'static str, usize>,
}

/// The kinds whose objects are counted: all that the operator makes, but for events, which go by themselves.
pub const COUNTED: [(&str, &str); 11] = [
    ("landscaper.gardener.cloud/v1alpha1", "Installation"),
    ("landscaper.gardener.cloud/v1alpha1", "Execution"),
    ("landscaper.gardener.cloud/v1alpha1", "DeployItem"),
    ("landscaper.gardener.cloud/v1alpha1", "DataObject"),
    ("landscaper.gardener.cloud/v1alpha1", "Target"),
    ("landscaper.gardener.cloud/v1alpha1", "Context"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "Namespace"),
    ("v1", "ServiceAccount"),
    ("coordination.k8s.io/v1", "Lease"),
];

impl Held {
    /// What there is more of than there was before, but for memory.
    pub fn exceeds(&self, before: &Held) -> Vec<String> {
        let of_process = [
            ("threads", self.threads, before.threads + KEPT),
            ("descriptors", self.descriptors, before.descriptors + KEPT),
            ("watches", self.watches, before.watches),
        ];
        let of_kind =
            |(kind, now): (&&'static str, &usize)| (*kind, *now, before.objects.get(kind).copied().unwrap_or_default());
        let counts = of_process.into_iter().chain(self.objects.iter().map(of_kind));
        let more = counts.filter(|(_, now, most)| now > most);
        more.map(|(what, now, most)| format!("{now} {what}, at most {most} before")).collect()
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { resident_mebibytes, threads, descriptors, watches, objects } = self;
        write!(
            f,
            "{resident_mebibytes:.0} MiB resident, {threads} threads, {descriptors} descriptors, {watches} watches"
        )?;
        objects.iter().try_for_each(|(kind, count)| write!(f, ", {count} {kind}"))
    }
}

/// The middle one of some figures; zero of none.
fn median(held: &[Held]) -> f64 {
    let mut figures: Vec<f64> = held.iter().map(|held| held.resident_mebibytes).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The memory of a process that is warm, and that of its last schedules; none where too few were played to tell.
pub fn memory(held: &[Held]) -> Option<(f64, f64)> {
    let warm = held.get(WARM..WARM + TOGETHER)?;
    let last = held.get(held.len().checked_sub(TOGETHER)?..)?;
    (held.len() >= WARM + 2 * TOGETHER).then(|| (median(warm), median(last)))
}

/// Whether nothing leaks: of what was held before the first schedule, and after each.
///
/// # Errors
/// What has grown.
pub fn check(before: &Held, held: &[Held]) -> Result<(), String> {
    let Some(last) = held.last() else { return Err("nothing was played".to_owned()) };
    let mut grown = last.exceeds(before);
    if let Some((warm, last)) = memory(held)
        && last > warm * MOST_GROWTH
    {
        grown.push(format!("{last:.0} MiB resident, {warm:.0} after {WARM} schedules"));
    }
    if grown.is_empty() { Ok(()) } else { Err(format!("the operator keeps what nobody needs: {}", grown.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(resident_mebibytes: f64, watches: usize, secrets: usize) -> Held {
        let objects = BTreeMap::from([("ConfigMap", 2), ("Secret", secrets)]);
        Held { resident_mebibytes, threads: 8, descriptors: 20, watches, objects }
    }

    #[test]
    fn what_grows_is_told_and_what_does_not_is_no_leak() {
        let before = held(60.0, 9, 3);
        let warm = vec![held(100.0, 9, 3); WARM + TOGETHER];
        assert_eq!(check(&before, &warm), Ok(()));
        let with = |last: Held| check(&before, &[warm.clone(), vec![last; TOGETHER]].concat());
        assert_eq!(with(held(114.0, 9, 3)), Ok(()));
        assert_eq!(
            with(held(120.0, 10, 4)),
            Err("the operator keeps what nobody needs: 10 watches, at most 9 before; 4 Secret, at most 3 before; \
                 120 MiB resident, 100 after 60 schedules"
                .to_owned())
        );
        let objects = BTreeMap::from([("ConfigMap", 3), ("Lease", 1)]);
        let more = Held { threads: 33, descriptors: 45, objects, ..held(1.0, 1, 1) };
        assert_eq!(
            with(more),
            Err("the operator keeps what nobody needs: 33 threads, at most 32 before; 45 descriptors, at most 44 before; \
                 3 ConfigMap, at most 2 before; 1 Lease, at most 0 before"
                .to_owned())
        );
        assert_eq!(check(&before, &[]), Err("nothing was played".to_owned()));
    }

    #[test]
    fn one_schedule_alone_tells_nothing_of_memory() {
        let mut many = vec![held(100.0, 9, 3); WARM + 2 * TOGETHER];
        assert_eq!(memory(&many[1..]), None);
        many.last_mut().unwrap().resident_mebibytes = 500.0;
        assert_eq!(memory(&many), Some((100.0, 100.0)));
    }
}
