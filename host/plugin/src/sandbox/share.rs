//! How the memory of the machine is shared out: what this process may take in all, and what of it calls and compilers get.

use std::{fs, path::Path};

use crate::budget::MAX_MEMORY_MIB;

/// What the process takes besides calls and compilers: stores, watches, answers of clusters, with some to spare. 1,000
/// installations took 170 MiB.
const OF_THE_PROCESS: u64 = 256 << 20;
/// The most that all calls share, where there is enough.
const MOST_OF_CALLS: u64 = 1 << 30;
/// The least that they share: one call may take so much by itself.
const LEAST_OF_CALLS: u64 = MAX_MEMORY_MIB << 20;
/// The most that one compiler takes, where there is enough.
const MOST_OF_A_COMPILER: u64 = 4 << 30;
/// The least that one compiler takes: the largest built-in component needs so much.
const LEAST_OF_A_COMPILER: u64 = 640 << 20;

/// The shares of a machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Linear memory of all calls that run.
    pub(crate) calls: usize,
    /// What one compiler may allocate.
    pub(crate) compiler: u64,
    /// Whether compilers wait for each other, whatever they compile: two have no room beside the calls.
    pub(crate) is_one_compiler: bool,
}

impl Shares {
    /// The shares of the machine or the container that this process runs in.
    pub(crate) fn of_machine() -> Self {
        Self::of(limit_below(Path::new("/")))
    }

    /// The shares of so many bytes; of as many as anybody wants where nothing says how many there are.
    fn of(total: Option<u64>) -> Self {
        let left = total.unwrap_or(u64::MAX).saturating_sub(OF_THE_PROCESS);
        let calls = (left / 2).clamp(LEAST_OF_CALLS, MOST_OF_CALLS);
        let left = left.saturating_sub(calls);
        let compiler = left.clamp(LEAST_OF_A_COMPILER, MOST_OF_A_COMPILER);
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        Self { calls, compiler, is_one_compiler: left / 2 < compiler }
    }
}

/// The bytes that processes of this control group may take, or else those of the machine, as the files below `root` tell.
fn limit_below(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        // The limits of all groups around count; a container sees its own group as the outermost.
        let around = Path::new(group.trim_start_matches('/')).ancestors();
        around.filter_map(|group| number(&read(Path::new(folder).join(group).join(file).to_str()?)?)).collect()
    });
    let machine = read("proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        number(line.trim().strip_suffix("kB")?)?.checked_mul(1 << 10)
    });
    of_groups.chain(machine).min()
}

/// A number; `max`, where there is no limit, is none.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        limit_below(root.path())
    }

    #[test]
    fn the_smallest_limit_of_the_machine_and_of_all_control_groups_counts() {
        let meminfo = ("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[meminfo]), Some(2 * MIB));
        let second = ("proc/self/cgroup", "0::/pod/container\n");
        assert_eq!(machine(&[meminfo, second, ("sys/fs/cgroup/pod/container/memory.max", "max\n")]), Some(2 * MIB));
        assert_eq!(machine(&[meminfo, second, ("sys/fs/cgroup/pod/container/memory.max", "1048576\n")]), Some(MIB));
        assert_eq!(machine(&[meminfo, second, ("sys/fs/cgroup/pod/memory.max", "4096\n")]), Some(4096));
        assert_eq!(
            machine(&[meminfo, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "8192\n")]),
            Some(8192)
        );
        let first = ("proc/self/cgroup", "5:cpu:/x\n4:memory:/pod\n");
        assert_eq!(machine(&[meminfo, first, ("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "512\n")]), Some(512));
        assert_eq!(machine(&[meminfo, first, ("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n")]), Some(2 * MIB));
    }

    #[test]
    fn calls_and_compilers_get_what_the_process_leaves_and_never_less_than_one_of_them_needs() {
        let shares = |calls: u64, compiler: u64, is_one_compiler: bool| Shares {
            calls: (calls * MIB) as usize,
            compiler: compiler * MIB,
            is_one_compiler,
        };
        assert_eq!(Shares::of(None), shares(1024, 4096, false));
        assert_eq!(Shares::of(Some(64 << 30)), shares(1024, 4096, false));
        assert_eq!(Shares::of(Some(4 << 30)), shares(1024, 2816, true));
        assert_eq!(Shares::of(Some(1536 * MIB)), shares(640, 640, true), "the limit of the chart");
        assert_eq!(Shares::of(Some(128 * MIB)), shares(512, 640, true));
    }
}
