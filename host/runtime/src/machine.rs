//! The machine that the host runs on: its clock, its randomness and its name, read here and nowhere else.

use std::{env, fs, process};

use jiff::Timestamp;
use orangery_core::{
    name::JobId,
    port::{Clock, Rng},
};
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

impl Rng for OsChance {
    fn job_id(&self) -> JobId {
        Self::uuid().to_string().into()
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

/// What this process is known by: the pod, where there is one, else the machine.
pub fn name() -> String {
    let variable = |name: &str| env::var(name).ok();
    // A shell has the name of the machine in a variable that it keeps to itself.
    let kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    first_name([variable("POD_NAME"), variable("HOSTNAME"), kernel()])
}

/// What the names of all processes begin with that were this container's before it was started again: the pod, whose uid is in
/// POD_UID. `None` where nobody tells it, and of a process that is not the first one of its container, beside which others may run.
pub fn container() -> Option<String> {
    of_container(&name(), env::var("POD_UID").ok().as_deref(), process::id())
}

fn of_container(name: &str, uid: Option<&str>, process: u32) -> Option<String> {
    uid.filter(|uid| !uid.is_empty() && process == 1).map(|uid| format!("{name}_{uid}_"))
}

fn first_name(candidates: impl IntoIterator<Item = Option<String>>) -> String {
    let mut names = candidates.into_iter().flatten().map(|name| name.trim().to_owned());
    names.find(|name| !name.is_empty()).unwrap_or_else(|| "orangery".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_233_only_the_first_process_of_a_container_takes_the_place_of_another() {
        assert_eq!(of_container("pod", Some("uid"), 1).as_deref(), Some("pod_uid_"));
        assert_eq!([of_container("pod", Some("uid"), 7), of_container("pod", Some(""), 1)], [None, None]);
        assert_eq!(of_container("node", None, 1), None);
    }

    #[test]
    fn the_first_name_that_is_one_counts() {
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(first_name([some("pod-0"), some("node"), some("kernel\n")]), "pod-0");
        assert_eq!(first_name([some(""), None, some("kernel\n")]), "kernel");
        assert_eq!(first_name([None, some(" "), None]), "orangery");
    }

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
