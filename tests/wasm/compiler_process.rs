//! The process that compiles what others wrote: what it can reach, seen from outside while it runs.

use std::{
    fs,
    io::{Read, Write},
    os::fd::AsRawFd,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::inside::fixtures::bytes;

/// A line of `/proc/PID/status`.
pub(crate) fn status(process: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// The least that a compiler may allocate is 1 GiB, in a container with 2 GiB as that of the chart: what it has taken before
/// it begins counts as well, and its threads and the largest component need the rest.
#[test]
fn c_46_a_compiler_has_taken_nearly_nothing_before_it_compiles() {
    let mut compiler = Command::new(env!("CARGO_BIN_EXE_component-worker"))
        .env_clear()
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let process = compiler.id();
    let begin = Instant::now();
    while status(process, "NoNewPrivs") != "1" {
        assert!(begin.elapsed() < Duration::from_secs(30), "it has not confined itself");
        thread::yield_now();
    }
    let taken: u64 = status(process, "VmData").trim_end_matches(" kB").parse().unwrap();
    compiler.kill().unwrap();
    compiler.wait().unwrap();
    assert!(taken < 32 << 10, "{taken} kB");
}

#[test]
fn the_compiler_keeps_no_descriptor_of_its_caller_gains_no_privilege_and_still_compiles() {
    let inherited = tempfile::tempfile().unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    let mut compiler = Command::new(env!("CARGO_BIN_EXE_component-worker"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = compiler.id();
    // It waits for its input once it has confined itself; nothing tells of it but the kernel. A container has a filter of its own.
    let filters = |process: u32| status(process, "Seccomp_filters").parse::<u32>().unwrap();
    let begin = Instant::now();
    while filters(process) == filters(std::process::id()) {
        assert!(begin.elapsed() < Duration::from_secs(30), "it has not confined itself");
        thread::yield_now();
    }
    let mut open: Vec<_> =
        fs::read_dir(format!("/proc/{process}/fd")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    open.sort();
    assert_eq!(open, ["0", "1", "2"], "descriptor {} was open in its caller", inherited.as_raw_fd());
    assert_eq!(status(process, "NoNewPrivs"), "1");
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let limit = |name: &str| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let found = ["Max core file size", "Max file size", "Max open files"].map(limit);
    assert_eq!(found, [Some("0"), Some("0"), Some("3")]);
    assert_eq!(fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap().trim(), "1000");
    let mut input = compiler.stdin.take().unwrap();
    input.write_all(&bytes("answers")).unwrap();
    drop(input);
    let mut code = Vec::new();
    compiler.stdout.take().unwrap().read_to_end(&mut code).unwrap();
    assert!(compiler.wait().unwrap().success());
    assert!(code.starts_with(b"\x7fELF"), "{} bytes", code.len());
}
