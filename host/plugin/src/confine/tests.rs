//! What a confined process cannot do, tried in a process of its own: this test program, called again.

use std::{
    env, fs,
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::{net::UnixStream, process::ExitStatusExt},
    process::{Command, Output, Stdio},
    thread,
};

use super::*;

const LIMITS: ProcessLimits = ProcessLimits { cpu_seconds: 60, memory: 1 << 30 };

const WRITTEN: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Set for the process that tries: what confines it, and a port that is open.
const PROBE: &str = "ORANGERY_CONFINE_PROBE";

/// Tries one thing after the other, and prints what the system says to each.
#[test]
fn probe() {
    let Ok(asked) = env::var(PROBE) else { return };
    let (by, port) = asked.split_once(' ').unwrap();
    let parent = rustix::process::getppid().unwrap();
    match by {
        "all" => confine(LIMITS).unwrap(),
        "loader" => confine_loader().unwrap(),
        "loaded" => confine_loader().and_then(|()| confine_loaded(LIMITS)).unwrap(),
        "computing" => {
            confine(ProcessLimits { cpu_seconds: 1, ..LIMITS }).unwrap();
            loop {
                std::hint::spin_loop();
            }
        }
        "landlock" => {
            let _enforced = reach_nothing().unwrap();
        }
        _ => {}
    }
    let port = port.parse().unwrap();
    let tried: [(&str, io::Result<()>); 16] = [
        ("reads a file", fs::read("/etc/passwd").map(drop)),
        ("lists a folder", fs::read_dir("/").map(drop)),
        ("writes a file", fs::write(env::temp_dir().join(format!("orangery-probe-{}", process::id())), "x")),
        ("connects", TcpStream::connect(("127.0.0.1", port)).map(drop)),
        ("listens", TcpListener::bind("127.0.0.1:0").map(drop)),
        ("sends datagrams", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("makes sockets", UnixStream::pair().map(drop)),
        ("starts a program", Command::new("/bin/true").spawn().map(drop)),
        ("signals its parent", rustix::process::test_kill_process(parent).map_err(Into::into)),
        ("starts a thread", thread::Builder::new().spawn(|| ()).map(drop)),
        ("makes memory code", mapped(4096, libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE)),
        ("takes more memory than it may", mapped(LIMITS.memory + 4096, WRITTEN, libc::MAP_PRIVATE)),
        ("reserves more than it may", mapped(LIMITS.memory + MOST_MAPPED + 4096, libc::PROT_NONE, libc::MAP_PRIVATE)),
        ("takes memory that is shared", mapped(4096, WRITTEN, libc::MAP_SHARED)),
        ("takes memory that grows", mapped(4096, WRITTEN, libc::MAP_PRIVATE | libc::MAP_GROWSDOWN)),
        ("reads of itself", fs::read("/proc/self/status").map(drop)),
    ];
    // The line of the test harness ends.
    println!();
    for (what, answer) in tried {
        let answer =
            answer.err().map_or("yes".to_owned(), |error| error.raw_os_error().unwrap_or_default().to_string());
        println!("{what}: {answer}");
    }
}

/// Asks for memory, and does not touch it.
#[expect(unsafe_code, reason = "nothing that is safe maps code")]
fn mapped(bytes: u64, protection: i32, flags: i32) -> io::Result<()> {
    let flags = flags | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the system's choice touches nothing that is there.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How a process ended that tried.
fn ended(by: &str, port: u16) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "confine::tests::probe", "--nocapture", "--test-threads=1"])
        .env(PROBE, format!("{by} {port}"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What is killed says nothing of why, and where memory ends it is killed as well.
#[test]
fn c_134_a_process_that_has_computed_for_too_long_ends_by_the_signal_that_says_so() {
    assert_eq!(ended("computing", 0).status.signal(), Some(libc::SIGXCPU));
}

fn probed(by: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = ended(by, listener.local_addr().unwrap().port());
    let printed = String::from_utf8(output.stdout).unwrap();
    let is_answer =
        |line: &&str| line.rsplit_once(": ").is_some_and(|(_, end)| end == "yes" || end.parse::<i32>().is_ok());
    printed.lines().filter(is_answer).fold(String::new(), |all, line| all + line + "\n")
}

/// What landlock of this kernel knows: paths from 1 on, ports from 4 on, other processes from 6 on; 0 is none.
#[expect(unsafe_code, reason = "no safe function asks for the version")]
fn version_of_landlock() -> i64 {
    const VERSION: u32 = 1;
    // SAFETY: asked for its version, the call reads and writes no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) }.max(0)
}

/// What a process that nothing confines is told.
const FREE: &str = "\
reads a file: yes
lists a folder: yes
writes a file: yes
connects: yes
listens: yes
sends datagrams: yes
makes sockets: yes
starts a program: yes
signals its parent: yes
starts a thread: yes
makes memory code: yes
takes more memory than it may: yes
reserves more than it may: yes
takes memory that is shared: yes
takes memory that grows: yes
reads of itself: yes
";

/// What a process is told that may do nothing: there is no such system call, and for memory that there is none.
fn refused() -> String {
    FREE.replace("it may: yes", &format!("it may: {}", libc::ENOMEM)).replace("yes", &libc::ENOSYS.to_string())
}

#[test]
fn limits_components_a_confined_process_computes_and_reaches_nothing_and_takes_what_it_may() {
    assert_eq!(probed("nothing"), FREE, "the probe can do all of it where it is let");
    // ENOSYS: the filter of system calls.
    let expected = refused().replace("thread: 38", "thread: yes");
    assert_eq!(probed("all"), expected);
}

#[test]
fn c_70_a_process_that_calls_starts_no_thread_and_makes_no_code_and_reaches_nothing() {
    assert_eq!(probed("loaded"), refused());
}

#[test]
fn c_70_while_it_loads_code_a_process_reaches_itself_alone() {
    let absent = libc::ENOSYS.to_string();
    // Without landlock its files stay empty.
    let (read, written) = if version_of_landlock() > 0 { ("13", "13") } else { ("yes", "27") };
    let expected = FREE
        .replace("yes", &absent)
        .replace("reads a file: 38", &format!("reads a file: {read}"))
        .replace("writes a file: 38", &format!("writes a file: {written}"))
        .replace("folder: 38", &format!("folder: {read}"))
        .replace("thread: 38", "thread: yes")
        .replace("code: 38", "code: yes")
        .replace("it may: 38", "it may: yes")
        .replace("shared: 38", "shared: yes")
        .replace("grows: 38", "grows: yes")
        .replace("itself: 38", "itself: yes");
    assert_eq!(probed("loader"), expected);
}

#[test]
fn a_process_without_a_filter_of_system_calls_reaches_no_file_and_no_port() {
    let refused = [
        (1, "file", "13"),
        (1, "folder", "13"),
        (4, "connects", "13"),
        (4, "listens", "13"),
        (1, "program", "13"),
        (6, "parent", "1"),
        (1, "itself", "13"),
    ];
    let version = version_of_landlock();
    let expected =
        refused.iter().filter(|(since, _, _)| version >= *since).fold(FREE.to_owned(), |told, (_, what, code)| {
            told.replace(&format!("{what}: yes"), &format!("{what}: {code}"))
        });
    assert_eq!(probed("landlock"), expected);
}
