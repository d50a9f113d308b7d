//! Compiling in a process of its own, with limits: a component can make a compiler crash, take minutes or gigabytes.
//!
//! The component goes in by standard input, what was made of it comes back by standard output.

mod worker;

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

pub use worker::compile_worker_main;

use crate::{error::Error, sandbox::Shares, transcript::escaped};

/// The longest that a component may compile.
const WALL: Duration = Duration::from_secs(180);
/// Processor seconds of the compiler.
const CPU_SECONDS: u64 = 240;
/// The most that is read of the compiler.
const MOST_CODE: u64 = 1 << 30;
const MOST_WORDS: u64 = 4 << 10;

/// A program that compiles components: it calls [`compile_worker_main`] and ends with its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl CompileCommand {
    /// This program itself, as `plugin compile-worker`.
    ///
    /// # Errors
    ///
    /// Where the system does not tell the program's own path.
    pub fn current_exe() -> io::Result<Self> {
        Ok(Self { program: env::current_exe()?, args: vec!["plugin".into(), "compile-worker".into()] })
    }
}

/// Compiles a component.
pub(crate) async fn compile(command: &CompileCommand, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let did_not_start = |source: io::Error| Error::Compiler { program: command.program.clone(), source };
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(did_not_start)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let exchange = async {
        let fed = async {
            if let Some(mut stdin) = stdin {
                // The compiler may end before it has read all: its status and words tell why.
                let _ended = stdin.write_all(bytes).await;
            }
        };
        let ((), code, words) = futures::join!(fed, all_of(stdout, MOST_CODE), all_of(stderr, MOST_WORDS));
        Ok::<_, io::Error>((code?, words?, child.wait().await?))
    };
    let Ok(exchanged) = timeout(WALL, exchange).await else {
        return Err(Error::CompileLimit { limit: format!("{} s", WALL.as_secs()) });
    };
    let (code, words, status) = exchanged.map_err(did_not_start)?;
    if status.success() {
        return Ok(code);
    }
    Err(classify(status, &String::from_utf8_lossy(&words)))
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
        Some(SIGKILL) => Error::CompileLimit { limit: "the memory of this machine".to_owned() },
        Some(_) if words.contains("memory allocation of") => {
            Error::CompileLimit { limit: format!("{} MiB of memory", Shares::of_machine().compiler >> 20) }
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

    fn shell(script: &str) -> CompileCommand {
        CompileCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] }
    }

    async fn message(script: &str) -> String {
        compile(&shell(script), b"component").await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_compiler_answers_by_its_output() {
        assert_eq!(compile(&shell("/bin/cat"), b"component").await.unwrap(), b"component");
    }

    #[tokio::test]
    async fn a_compiler_that_does_not_read_all_is_heard() {
        let large = vec![0; 1 << 20];
        let error = compile(&shell("echo 'bad magic' >&2; exit 1"), &large).await.unwrap_err();
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
                "compiling the component was stopped: it needs more than {} MiB of memory; make it smaller",
                Shares::of_machine().compiler >> 20
            )
        );
        assert_eq!(
            message("kill -SEGV $$").await,
            "the component does not compile: the compiler crashed with signal 11: "
        );
        assert_eq!(message("exit 3").await, "the component does not compile: the compiler ended with exit status: 3");
    }

    #[tokio::test]
    async fn a_compiler_that_does_not_start_may_start_later() {
        let error = compile(&CompileCommand { program: "/nowhere".into(), args: vec![] }, b"").await.unwrap_err();
        assert_eq!(error.to_string(), "the compiler /nowhere did not start: No such file or directory (os error 2)");
        assert!(error.is_transient());
    }
}
