//! Confining a process to what it was handed: memory and time, three open descriptors, and no way to anything else.
//!
//! For processes that work on what others wrote, such as the compiler. What a component makes of a bug in it, is made in a
//! process that can compute, read its input and write its answer.

use std::{collections::BTreeMap, fs, io, process};

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope,
};
use rlimit::{Resource, setrlimit};
use seccompiler::{
    BpfProgram, BpfProgramRef, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// The descriptors that stay open: input, answer and words.
const STANDARD_DESCRIPTORS: u64 = 3;

/// Bytes of address space beside the memory that is allocated: the program, and what is reserved and never touched.
const MOST_MAPPED: u64 = 2 << 30;

/// Seconds of processor time that a process has left when it is told that it has none; then it is killed, whatever it made of that.
const AFTER_SIGNAL: u64 = 5;

/// What a process may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessLimits {
    /// Seconds of processor time.
    pub(crate) cpu_seconds: u64,
    /// Bytes of memory that it allocates, stacks of threads among it.
    pub(crate) memory: u64,
}

/// Confines this process for the rest of its life. Call it before a thread is started: a filter counts for the thread that
/// asks for it, and for those that it starts.
///
/// No core dumps, no files, no more memory and time than the limits, no descriptor but the standard ones, no new privileges.
/// Where the kernel has landlock, no path, port or process is reached; where it has seccomp, only calls that compute,
/// allocate and use the open descriptors are made, and no memory becomes code.
///
/// # Errors
/// What the system refuses, but for filters that the kernel does not have.
pub(crate) fn confine(limits: ProcessLimits) -> io::Result<()> {
    leave_caller()?;
    limit(limits)?;
    reach_nothing().map_err(io::Error::other)?;
    open_nothing()?;
    filter_system_calls(allowed().map_err(io::Error::other)?)
}

/// Confines this process as [`confine`] does, but for what it takes to load compiled code: memory becomes code, and its own
/// descriptors and what the system tells of it can be opened. To be followed by [`confine_loaded`].
///
/// # Errors
/// As [`confine`].
pub(crate) fn confine_loader() -> io::Result<()> {
    leave_caller()?;
    reach_itself().map_err(io::Error::other)?;
    filter_system_calls(loading().map_err(io::Error::other)?)
}

/// Confines a loader for good, with all threads that it has: there will be no further ones. The limit of memory is beside what
/// it has taken already.
///
/// # Errors
/// As [`confine`].
pub(crate) fn confine_loaded(limits: ProcessLimits) -> io::Result<()> {
    let (mapped, data) = taken()?;
    setrlimit(Resource::CPU, limits.cpu_seconds, limits.cpu_seconds)?;
    let most = data.saturating_add(limits.memory);
    setrlimit(Resource::DATA, most, most)?;
    let most = mapped.saturating_add(limits.memory).saturating_add(MOST_MAPPED);
    setrlimit(Resource::AS, most, most)?;
    reach_nothing().map_err(io::Error::other)?;
    open_nothing()?;
    filter_in_all_threads(serving().map_err(io::Error::other)?)
}

/// What both kinds of processes begin with.
fn leave_caller() -> io::Result<()> {
    // Where memory ends, this process is to end and not the one that has called it. Refused where there is no /proc.
    let _unmarked = fs::write("/proc/self/oom_score_adj", "1000");
    close_inherited()?;
    setrlimit(Resource::CORE, 0, 0)?;
    setrlimit(Resource::FSIZE, 0, 0)
}

fn limit(limits: ProcessLimits) -> io::Result<()> {
    // The first signal says why. Where both limits are the same the system sends the second one, as it does where memory ends.
    setrlimit(Resource::CPU, limits.cpu_seconds, limits.cpu_seconds.saturating_add(AFTER_SIGNAL))?;
    setrlimit(Resource::DATA, limits.memory, limits.memory)?;
    let mapped = limits.memory.saturating_add(MOST_MAPPED);
    setrlimit(Resource::AS, mapped, mapped)
}

fn open_nothing() -> io::Result<()> {
    setrlimit(Resource::NOFILE, STANDARD_DESCRIPTORS, STANDARD_DESCRIPTORS)
}

/// Bytes of address space of this process, and those of them that are private and may be written.
fn taken() -> io::Result<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status")?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10))
    };
    bytes("VmSize").zip(bytes("VmData")).ok_or_else(|| io::Error::other("/proc/self/status does not say what is taken"))
}
/// Closes what the caller's callers left open.
#[expect(unsafe_code, reason = "a descriptor that nothing of this process owns is closed by its number")]
fn close_inherited() -> io::Result<()> {
    let names = match fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()?,
        // Without /proc there is nothing to go by; the filters below still hold.
        Err(_) => return Ok(()),
    };
    let descriptors = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for descriptor in descriptors.filter(|descriptor| *descriptor as u64 >= STANDARD_DESCRIPTORS) {
        // SAFETY: the process has just begun and has opened nothing yet but the listing, which is closed already; what is
        // open besides was inherited, and no value of this process knows of it.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// Landlock: nothing in the file system, no port, no process outside. A kernel that has less of it takes what it has.
fn reach_nothing() -> Result<RulesetStatus, landlock::RulesetError> {
    let abi = ABI::V6;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(restricted.ruleset)
}

/// The same, but for what `/proc` tells this process of itself.
fn reach_itself() -> Result<RulesetStatus, landlock::RulesetError> {
    let abi = ABI::V6;
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    let ruleset = match PathFd::new("/proc/self") {
        Ok(itself) => ruleset.add_rule(PathBeneath::new(itself, AccessFs::from_read(abi)))?,
        // What is not there is not reached either.
        Err(_) => ruleset,
    };
    Ok(ruleset.restrict_self()?.ruleset)
}

type SystemCalls = BTreeMap<i64, Vec<SeccompRule>>;

/// Seccomp: what is not among these does not exist for this thread and those that it starts. A second filter can only forbid
/// more.
fn filter_system_calls(rules: SystemCalls) -> io::Result<()> {
    apply(rules, seccompiler::apply_filter)
}

/// The same for all threads that there are.
fn filter_in_all_threads(rules: SystemCalls) -> io::Result<()> {
    apply(rules, seccompiler::apply_filter_all_threads)
}

fn apply(rules: SystemCalls, apply: fn(BpfProgramRef<'_>) -> Result<(), seccompiler::Error>) -> io::Result<()> {
    // An architecture that the crate does not know has no filter.
    let Ok(architecture) = std::env::consts::ARCH.try_into() else { return Ok(()) };
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let filter = SeccompFilter::new(rules, absent, SeccompAction::Allow, architecture).map_err(io::Error::other)?;
    let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    match apply(&program) {
        Ok(()) => Ok(()),
        Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error))
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
        {
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The system calls of a process that computes, with several threads, and whose memory never becomes code.
fn allowed() -> Result<SystemCalls, seccompiler::BackendError> {
    let always = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_lseek,
        libc::SYS_fstat,
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_membarrier,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let mut rules: SystemCalls = always.into_iter().map(|call| (call, Vec::new())).collect();
    let no_code = || masked(2, libc::PROT_EXEC as u64, 0);
    // The limit of memory knows neither what is shared nor what grows by itself (C-46).
    let counted = masked(3, (libc::MAP_SHARED | libc::MAP_GROWSDOWN) as u64, 0)?;
    rules.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![no_code()?, counted])?]);
    rules.insert(libc::SYS_mprotect, vec![SeccompRule::new(vec![no_code()?])?]);
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![masked(0, thread, thread)?])?]);
    rules.insert(libc::SYS_prctl, vec![equal(0, libc::PR_SET_NAME as u64)?]);
    // A process that gives up sends itself a signal.
    rules.insert(libc::SYS_tgkill, vec![equal(0, u64::from(process::id()))?]);
    Ok(rules)
}

/// What a process may do besides while it loads compiled code and confines itself for good.
fn loading() -> Result<SystemCalls, seccompiler::BackendError> {
    // With threads.
    let mut rules = allowed()?;
    let besides = [
        libc::SYS_openat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_readlinkat,
        libc::SYS_pread64,
        libc::SYS_fcntl,
        libc::SYS_ioctl,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_prctl,
        libc::SYS_seccomp,
        libc::SYS_prlimit64,
        libc::SYS_setsockopt,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
    ];
    rules.extend(besides.into_iter().map(|call| (call, Vec::new())));
    Ok(rules)
}

/// Asks which pages of this process were written (linux/fs.h): instances are reset by it.
const PAGEMAP_SCAN: u64 = 0xc060_6610;

/// What a process may do that calls compiled code, with no threads but those that it has: there are so many for all
/// processes of a container together.
fn serving() -> Result<SystemCalls, seccompiler::BackendError> {
    let mut rules = allowed()?;
    rules.remove(&libc::SYS_clone);
    rules.insert(libc::SYS_ioctl, vec![equal(1, PAGEMAP_SCAN)?]);
    Ok(rules)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
}

fn equal(argument: u8, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
}

#[cfg(test)]
mod tests;
