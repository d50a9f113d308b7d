//! How the memory of the machine is shared out: what this process may take in all, and what of it calls, compilers and caches
//! get (C-88).

use std::{fs, path::Path};

use crate::bundled::MOST_CODE;

/// The least memory that is shared out: with less, the process may be killed.
const LEAST_IN_ALL: u64 = 512 << 20;
/// What the process takes besides calls, compilers and caches: our own objects, answers of clusters, with some to spare. 1,000
/// installations took 170 MiB.
const OF_THE_PROCESS: u64 = 256 << 20;
/// The most that all calls share, where there is enough.
const MOST_OF_CALLS: u64 = 1 << 30;
/// What calls keep beside a compiler that has what it needs: one call of the Helm deployer may take so much.
const LEAST_BESIDE_A_COMPILER: u64 = 256 << 20;
/// The most that one compiler takes, where there is enough.
const MOST_OF_A_COMPILER: u64 = 4 << 30;
/// What a compiler needs for any built-in component: the largest, the Helm deployer, has 907 MiB set aside for it, of which
/// 645 MiB are touched.
const OF_A_LARGE_COMPONENT: u64 = 1 << 30;
/// Bytes of the index by which values are found, for each byte of them.
const INDEX: u64 = 20;
/// What servers make of a manifest can take as much as the manifest.
const LIVE: u64 = 2;

/// Bytes of what calls share for one process that makes calls.
const OF_A_WORKER: usize = 64 << 20;
/// The fewest processes that make calls.
const LEAST_WORKERS: usize = 4;
/// The most of them.
const MOST_WORKERS: usize = 16;

/// The shares of a machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShares {
    /// What there is; `None` where nothing says it.
    pub total: Option<u64>,
    /// Linear memory of all calls that run.
    pub calls: usize,
    /// What one compiler may allocate.
    pub compiler: u64,
    /// How many compilers may run at once, whatever they compile.
    pub compilers: usize,
    /// What is kept or on its way.
    pub caches: CacheShares,
}

/// The shares of what is kept or on its way, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShares {
    /// Objects of all watches and of all lists under way on clusters.
    pub objects: u64,
    /// Packed manifests of items whose drift is looked for; they take twice as much.
    pub manifests: u64,
    /// Blobs of registries on their way into memory.
    pub blobs: u64,
    /// Component versions that are open, and descriptors that are kept.
    pub component_versions: u64,
    /// Machine code of components of blueprints that stay loaded.
    pub code: usize,
    /// Objects of proposals under way.
    pub proposals: u64,
    /// Values that are masked; they take twenty times as much.
    pub secret_values: usize,
}

impl CacheShares {
    /// What they are worth anywhere: with more nothing gets better.
    const LARGEST: Self = Self {
        objects: 512 << 20,
        manifests: 256 << 20,
        blobs: 256 << 20,
        component_versions: 256 << 20,
        code: MOST_CODE,
        proposals: 64 << 20,
        secret_values: 8 << 20,
    };

    /// The shares of so many bytes, in 40 parts.
    fn of(bytes: u64) -> Self {
        let parts = |count: u64| bytes / 40 * count;
        let of = |bytes: u64, most: usize| usize::try_from(bytes).unwrap_or(usize::MAX).min(most);
        let most = Self::LARGEST;
        Self {
            objects: parts(12).min(most.objects),
            manifests: (parts(4) / LIVE).min(most.manifests),
            blobs: parts(8).min(most.blobs),
            component_versions: parts(8).min(most.component_versions),
            code: of(parts(4), most.code),
            proposals: parts(2).min(most.proposals),
            secret_values: of(parts(2) / INDEX, most.secret_values),
        }
    }

    /// What they take together.
    pub fn sum(&self) -> u64 {
        let Self { objects, manifests, blobs, component_versions, code, proposals, secret_values } = *self;
        objects + LIVE * manifests + blobs + component_versions + code as u64 + proposals + INDEX * secret_values as u64
    }
}

impl MemoryShares {
    /// The shares of the machine or the container that this process runs in.
    pub fn of_machine() -> Self {
        Self::of(limit_below(Path::new("/")))
    }

    /// The shares of so many bytes; of as many as anybody wants where nothing says how many there are. Together they are no more
    /// than there is, from 512 MiB on.
    pub fn of(total: Option<u64>) -> Self {
        let bytes = total.unwrap_or(u64::MAX).max(LEAST_IN_ALL);
        // Five parts of 32, and of 16 what is beyond a gibibyte.
        let caches = CacheShares::of((bytes / 32 * 5).max(bytes.saturating_sub(1 << 30) / 16 * 5));
        let left = bytes - OF_THE_PROCESS - caches.sum();
        let has_room_for_large = left >= OF_A_LARGE_COMPONENT + LEAST_BESIDE_A_COMPILER;
        let beside = if has_room_for_large { left - OF_A_LARGE_COMPONENT } else { left };
        let calls = (left / 2).min(beside).min(MOST_OF_CALLS);
        let compiler = (left - calls).min(MOST_OF_A_COMPILER);
        let compilers = if (left - calls) / 2 < compiler { 1 } else { 2 };
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        Self { total, calls, compiler, compilers, caches }
    }

    /// What all of them take together.
    pub fn sum(&self) -> u64 {
        OF_THE_PROCESS + self.calls as u64 + self.compiler * self.compilers as u64 + self.caches.sum()
    }

    /// A sentence where there is less than is shared out.
    pub fn shortage(&self) -> Option<String> {
        let total = self.total.filter(|total| *total < LEAST_IN_ALL)?;
        Some(format!(
            "the memory limit is {} MiB, and with less than {} MiB this process may be killed; raise the limit",
            total >> 20,
            LEAST_IN_ALL >> 20
        ))
    }

    /// What a compiler gets, as a message says it.
    pub(crate) fn of_a_compiler(&self) -> String {
        let share = format!("{} MiB of memory", self.compiler >> 20);
        match self.total {
            Some(total) if self.compiler < OF_A_LARGE_COMPONENT => format!(
                "{share}, the compiler's share of a limit of {} MiB (give 2048 MiB, or compile it elsewhere by `orangery plugin \
                 compile`)",
                total >> 20
            ),
            Some(_) | None => share,
        }
    }

    /// How many processes make calls at once, where all calls share so many bytes: each has some of its own beside them.
    pub(crate) fn workers_in(calls: usize) -> usize {
        (calls / OF_A_WORKER).clamp(LEAST_WORKERS, MOST_WORKERS)
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
    fn c_88_limits_memory_the_shares_are_never_more_than_the_limit_and_grow_with_it() {
        let limits = (512..4_096).step_by(7).chain((4..200).map(|gibibytes| gibibytes << 10)).map(|mib: u64| mib * MIB);
        let mut before = MemoryShares::of(Some(512 * MIB));
        for limit in limits {
            let shares = MemoryShares::of(Some(limit));
            assert!(shares.sum() <= limit, "{limit}: {shares:?} are {}", shares.sum());
            assert!(limit > 4 << 30 || shares.sum() == limit, "{limit}: {} are used", shares.sum());
            assert!(shares.calls as u64 >= 64 * MIB && shares.caches.sum() >= before.caches.sum(), "{shares:?}");
            before = shares;
        }
        let any = MemoryShares::of(None);
        assert_eq!((any.caches, any.sum()), (CacheShares::LARGEST, (256 + 1_024 + 2 * 4_096 + 2_272) * MIB));
        let few = MemoryShares::of(Some(128 * MIB));
        assert_eq!(MemoryShares { total: Some(512 * MIB), ..few }, MemoryShares::of(Some(512 * MIB)));
        let sentence =
            "the memory limit is 128 MiB, and with less than 512 MiB this process may be killed; raise the limit";
        assert_eq!((few.shortage().as_deref(), MemoryShares::of(Some(512 * MIB)).shortage()), (Some(sentence), None));
    }

    #[test]
    fn c_88_limits_memory_the_document_has_the_shares_as_they_are() {
        let document = include_str!("../../../../docs/limits.md");
        let mut missing = Vec::new();
        for total in [Some(512), Some(1_024), Some(2_048), Some(4_096), Some(8_192), None] {
            let MemoryShares { calls, compiler, compilers, caches, .. } =
                MemoryShares::of(total.map(|total: u64| total * MIB));
            let CacheShares { objects, manifests, blobs, component_versions, code, proposals, secret_values } = caches;
            let mebibytes = |bytes: u64| (bytes / MIB).to_string();
            let row = [
                total.map_or_else(|| "none".to_owned(), |total| total.to_string()),
                mebibytes(calls as u64),
                format!("{compilers} × {}", mebibytes(compiler)),
                mebibytes(objects),
                mebibytes(blobs),
                mebibytes(component_versions),
                mebibytes(code as u64),
                mebibytes(manifests),
                mebibytes(proposals),
                format!("{} KiB", secret_values >> 10),
            ];
            let row = format!("| {} |", row.join(" | "));
            if !document.contains(&row) {
                missing.push(row);
            }
        }
        assert!(missing.is_empty(), "docs/limits.md lacks these rows:\n{}", missing.join("\n"));
    }

    #[test]
    fn c_88_within_the_limit_of_the_chart_the_largest_built_in_component_compiles_and_one_call_of_it_runs() {
        let of = |mib: u64| {
            let shares = MemoryShares::of(Some(mib * MIB));
            (shares.calls as u64 / MIB, shares.compiler / MIB, shares.compilers)
        };
        assert_eq!(of(2_048), (448, 1_024, 1));
        assert_eq!(of(4_096), (1_024, 1_856, 1));
        let sentence = |mib: u64| MemoryShares::of(Some(mib * MIB)).of_a_compiler();
        assert_eq!(sentence(2_048), "1024 MiB of memory");
        assert_eq!(
            sentence(1_024),
            "304 MiB of memory, the compiler's share of a limit of 1024 MiB (give 2048 MiB, or compile it elsewhere by \
             `orangery plugin compile`)"
        );
    }

    #[test]
    fn c_72_limits_workers_there_are_as_many_as_have_room_beside_what_calls_share() {
        let shares = [0, 512, 640, 1024, 8192].map(|calls: usize| calls << 20);
        assert_eq!(shares.map(MemoryShares::workers_in), [4, 8, 10, 16, 16]);
    }
}
