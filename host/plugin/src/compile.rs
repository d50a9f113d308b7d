//! Compiling in a process of its own, with limits: a component can make a compiler crash, take minutes or gigabytes.
//!
//! The component goes in by standard input, what was made of it comes back by standard output.

mod slow;
mod worker;

use std::{
    fs, io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

pub(crate) use slow::SlowCompilations;
pub(crate) use worker::compile_in_process;
pub use worker::{compile_counting_worker_main, compile_worker_main};

use crate::{
    cost::CodeCounts,
    error::Error,
    sandbox::MemoryShares,
    transcript::escaped,
    worker::{COMPILE, COMPILE_COUNTING, OF_ALLOCATOR, WorkerCommand},
};

/// The longest that a component may compile.
const WALL: Duration = Duration::from_secs(180);
/// Processor seconds of the compiler.
const CPU_SECONDS: u64 = 240;
/// The most code of a component. The largest built-in one, Helm, has 70 MiB.
pub(crate) const MOST_CODE: u64 = 256 << 20;
/// The most that is read of what the compiler says.
const MOST_WORDS: u64 = 4 << 10;

/// In how many parts of a second Linux tells what a process has computed, on every processor.
const TICKS: u64 = 100;

/// Compiles a component, whose bytes go when the compiler has read them, to at most so many bytes of code.
pub(crate) async fn compile(
    command: &WorkerCommand,
    counts: CodeCounts,
    bytes: impl AsRef<[u8]>,
    most: u64,
) -> Result<Vec<u8>, Error> {
    let did_not_start = |source: io::Error| Error::Compiler { program: command.program.clone(), source };
    let started = command.clone();
    // By the executor: what a thread of low priority starts would have its priority (C-96).
    let started = tokio::spawn(async move { spawn(&started, counts) }).await;
    let mut child = started.map_err(io::Error::other).flatten().map_err(did_not_start)?;
    let id = child.id();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let exchange = async {
        let fed = async move {
            if let Some(mut stdin) = stdin {
                // The compiler may end before it has read all: its status and words tell why.
                let _ended = stdin.write_all(bytes.as_ref()).await;
            }
            drop(bytes);
        };
        let ((), code, words) = futures::join!(fed, all_of(stdout, most + 1), all_of(stderr, MOST_WORDS));
        Ok::<_, io::Error>((code?, words?, child.wait().await?))
    };
    let Ok(exchanged) = timeout(WALL, exchange).await else {
        let computed = computed(id).map_or(0, |computed| computed.as_secs());
        return Err(Error::CompileTime { seconds: WALL.as_secs(), computed });
    };
    let (code, words, status) = exchanged.map_err(did_not_start)?;
    if code.len() as u64 > most {
        return Err(Error::CompileLimit { limit: format!("{} MiB of code", most >> 20) });
    }
    if status.success() {
        return Ok(code);
    }
    Err(classify(status, &String::from_utf8_lossy(&words)))
}

/// Processor time that a process has taken so far; `None` where the system does not tell.
fn computed(id: Option<u32>) -> Option<Duration> {
    computed_of(&fs::read_to_string(format!("/proc/{}/stat", id?)).ok()?)
}

/// The same, of what the system tells of it. Its name is in brackets, and may have any others.
fn computed_of(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let times: Result<Vec<u64>, _> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect();
    Some(Duration::from_millis(times.ok()?.iter().sum::<u64>() * (1_000 / TICKS)))
}

fn spawn(command: &WorkerCommand, counts: CodeCounts) -> io::Result<Child> {
    let job = match counts {
        CodeCounts::Nothing => COMPILE,
        CodeCounts::Fuel => COMPILE_COUNTING,
    };
    Command::new(&command.program)
        .args(&command.args)
        .arg(job)
        .env_clear()
        .envs([OF_ALLOCATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

async fn all_of(stream: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let mut limited = stream.take(most);
        limited.read_to_end(&mut bytes).await?;
        // What comes beyond is thrown away, so that the writer ends instead of waiting.
        tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// Why the compiler ended without a result.
fn classify(status: ExitStatus, words: &str) -> Error {
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    let words = escaped(words.trim(), MOST_WORDS as usize);
    match status.signal() {
        Some(SIGXCPU) => Error::CompileLimit { limit: format!("{CPU_SECONDS} s of processor time") },
        Some(SIGKILL) => Error::CompileKilled,
        Some(_) if words.contains("memory allocation of") => {
            Error::CompileLimit { limit: MemoryShares::of_machine().of_a_compiler() }
        }
        Some(signal) => Error::Compile { why: format!("the compiler crashed with signal {signal}: {words}") },
        None => {
            Error::Compile { why: if words.is_empty() { format!("the compiler ended with {status}") } else { words } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> WorkerCommand {
        WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] }
    }

    async fn message(script: &str) -> String {
        compile(&shell(script), CodeCounts::Nothing, b"component", MOST_CODE).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn c_46_the_environment_of_a_compiler_is_the_word_to_its_allocator_alone() {
        assert_eq!(
            compile(&shell("/usr/bin/env -u PWD -u SHLVL -u _"), CodeCounts::Nothing, b"component", MOST_CODE)
                .await
                .unwrap(),
            b"MIMALLOC_ARENA_EAGER_COMMIT=0\n"
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c_96_a_compiler_that_is_asked_for_at_low_priority_has_the_usual_one() {
        let usual = rustix::process::getpriority_process(None).unwrap();
        let executor = tokio::runtime::Handle::current();
        let asks = std::thread::spawn(move || {
            rustix::process::setpriority_process(None, 10).unwrap();
            executor.block_on(async { compile(&shell("/usr/bin/nice"), CodeCounts::Nothing, b"", MOST_CODE).await })
        });
        let told = tokio::task::block_in_place(|| asks.join()).unwrap().unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), format!("{usual}\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_by_the_clock_and_what_was_killed_is_not_for_good() {
        let error =
            compile(&shell("exec /bin/sleep 60"), CodeCounts::Nothing, b"component", MOST_CODE).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "compiling the component took longer than 180 s, of which the compiler computed 0 s"
        );
        assert!(error.is_transient());
        assert!(Error::CompileKilled.is_transient());
        assert!(!Error::CompileLimit { limit: String::new() }.is_transient());
    }

    #[test]
    fn c_134_what_a_compiler_has_computed_is_what_the_system_tells() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 1234 66 9999 9999 20 0 1 0 100 1 1";
        assert_eq!(computed_of(stat), Some(Duration::from_secs(13)));
        assert_eq!([computed_of(""), computed_of("7 (a) S x"), computed(None)], [None, Some(Duration::ZERO), None]);
        assert!(computed(Some(std::process::id())).is_some());
    }

    #[tokio::test]
    async fn a_compiler_answers_by_its_output() {
        assert_eq!(
            compile(&shell("/bin/cat"), CodeCounts::Nothing, b"component", MOST_CODE).await.unwrap(),
            b"component"
        );
    }

    #[tokio::test]
    async fn a_compiler_that_does_not_read_all_is_heard() {
        let large = vec![0; 1 << 20];
        let error =
            compile(&shell("echo 'bad magic' >&2; exit 1"), CodeCounts::Nothing, &large, MOST_CODE).await.unwrap_err();
        assert_eq!(error.to_string(), "the component does not compile: bad magic");
    }

    #[tokio::test]
    async fn each_end_of_the_compiler_has_its_sentence() {
        assert_eq!(
            message("kill -XCPU $$").await,
            "compiling the component was stopped: it needs more than 240 s of processor time; make it smaller"
        );
        assert_eq!(
            message("echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$").await,
            format!(
                "compiling the component was stopped: it needs more than {}; make it smaller",
                MemoryShares::of_machine().of_a_compiler()
            )
        );
        assert_eq!(
            message("kill -KILL $$").await,
            "the compiler of the component was killed, as by the system where memory ends"
        );
        assert_eq!(
            message("kill -SEGV $$").await,
            "the component does not compile: the compiler crashed with signal 11: "
        );
        assert_eq!(message("exit 3").await, "the component does not compile: the compiler ended with exit status: 3");
    }

    #[tokio::test]
    async fn a_compiler_that_does_not_start_may_start_later() {
        let error =
            compile(&WorkerCommand { program: "/nowhere".into(), args: vec![] }, CodeCounts::Nothing, b"", MOST_CODE)
                .await
                .unwrap_err();
        assert_eq!(error.to_string(), "the compiler /nowhere did not start: No such file or directory (os error 2)");
        assert!(error.is_transient());
    }

    #[tokio::test]
    async fn limits_components_code_and_words_of_a_compiler_are_bounded() {
        assert_eq!(
            message(&format!("exec /usr/bin/head -c {} /dev/zero", MOST_CODE + 1)).await,
            "compiling the component was stopped: it needs more than 256 MiB of code; make it smaller"
        );
        let words = message("/usr/bin/head -c 5000 /dev/zero | /usr/bin/tr '\\0' x >&2; exit 1").await;
        assert_eq!(words, format!("the component does not compile: {}", "x".repeat(MOST_WORDS as usize)));
    }
}
