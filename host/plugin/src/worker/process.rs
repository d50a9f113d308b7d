//! The process of a worker: how it is started, what it is handed, and how it ends.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::unix::{net::UnixStream, process::ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use orangery_turns::blocking;
use rustix::{
    fs::{MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_setfl, memfd_create},
    process::{Pid, WaitId, WaitIdOptions, waitid},
};
use tokio::time::timeout;

use super::{
    connection::{Lost, WorkerConnection},
    frame::{LoadFailure, MOST_FRAME_PARTS, WorkerFrame, WorkerStart},
};
use crate::{
    budget::Budget,
    cost::{CallCosts, CodeCounts},
    error::Error,
    export::Interface,
    transcript::escaped,
};

/// The longest that a worker may take to load code.
const LONGEST_START: Duration = Duration::from_secs(20);
/// How long a worker that has closed its socket may take to end.
const LONGEST_END: Duration = Duration::from_secs(2);
/// The most that is read of what a worker writes to its standard error.
const MOST_WORDS: u64 = 4 << 10;
/// The most bytes of a worker's first frame.
const MOST_FIRST_FRAME: usize = 64 << 10;

/// The whole environment of a worker. Else the allocator begins with 1 GiB of memory that may be written: no limit of a process
/// that calls says anything about that, and one that compiles could start no thread within a smaller one (C-46).
pub(crate) const OF_ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");

/// The job of a worker that compiles, as its last argument.
pub(crate) const COMPILE: &str = "compile-worker";
/// The same of one whose code counts its steps: for benchmarks alone.
pub(crate) const COMPILE_COUNTING: &str = "compile-counting-worker";
/// The job of a worker that calls.
pub(super) const CALL: &str = "call-worker";

/// A program that works on components in a process of its own. Its last argument is `compile-worker` or `call-worker`: it
/// calls [`crate::compile_worker_main`] or [`crate::call_worker_main`], and ends with their code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments but for the last one.
    pub args: Vec<OsString>,
}

impl WorkerCommand {
    /// This program itself, as `plugin compile-worker` and `plugin call-worker`.
    ///
    /// # Errors
    ///
    /// Where the system does not tell the program's own path.
    pub fn current_exe() -> io::Result<Self> {
        Ok(Self { program: env::current_exe()?, args: vec!["plugin".into()] })
    }
}

/// Compiled code that workers load. It is in memory, and nobody can change it any more.
pub(crate) struct CompiledCode {
    pub(super) digest: String,
    pub(super) interfaces: Vec<Interface>,
    /// Bytes.
    pub(crate) length: usize,
    file: File,
    /// What it counts, where its calls are measured.
    measured: Option<CodeCounts>,
}

impl CompiledCode {
    /// Of the component with this digest, which exports these interfaces.
    pub(crate) fn new(digest: &str, interfaces: Vec<Interface>, code: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create("orangery-component", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(code)?;
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Self { digest: digest.to_owned(), interfaces, length: code.len(), file, measured: None })
    }

    /// The same, whose calls are measured where costs are written down.
    pub(crate) fn measured(self, costs: Option<&CallCosts>) -> Self {
        Self { measured: costs.map(|costs| costs.counts), ..self }
    }

    /// The same memory, for one more process.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// A process that makes calls, and is killed when this is dropped.
pub(super) struct WorkerProcess {
    /// `None` once its end was waited for.
    child: Option<Child>,
    /// `None` while a call has it.
    stream: Option<UnixStream>,
    /// How long its calls took together.
    pub(super) used: Duration,
    /// Bytes of the code that it has loaded.
    pub(super) code: usize,
}

impl WorkerProcess {
    /// Starts a process and waits until it has loaded the code and confined itself.
    pub(super) async fn start(command: &WorkerCommand, code: &CompiledCode, budget: &Budget) -> Result<Self, Error> {
        let unstarted = |why: String| Error::WorkerStart { why: format!("{}: {why}", command.program.display()) };
        let (started, file) = (command.clone(), code.file());
        // By the executor: what a thread of low priority starts would have its priority (C-96).
        let started = tokio::spawn(async move { Self::spawn(&started, file?) }).await;
        let started = started.map_err(io::Error::other).flatten();
        let mut worker = started.map_err(|error| unstarted(error.to_string()))?;
        worker.code = code.length;
        let (interfaces, measured) = (code.interfaces.clone(), code.measured);
        let start = WorkerStart { interfaces, budget: budget.clone(), measured };
        let Ok(ready) = timeout(LONGEST_START, worker.get_ready(&start)).await else {
            return Err(unstarted(format!("it was not ready within {} s", LONGEST_START.as_secs())));
        };
        match ready {
            Ok(Ok(())) => Ok(worker),
            Ok(Err(LoadFailure::Compile(why))) => Err(Error::Compile { why }),
            Ok(Err(LoadFailure::Link(why))) => Err(Error::Link { why }),
            Ok(Err(LoadFailure::Worker(why))) => Err(unstarted(why)),
            Err(lost) => Err(unstarted(worker.end(lost).await.to_string())),
        }
    }

    pub(super) fn spawn(command: &WorkerCommand, code: File) -> io::Result<Self> {
        let (ours, its) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&command.program)
            .args(&command.args)
            .arg(CALL)
            .env_clear()
            .envs([OF_ALLOCATOR])
            .stdin(std::os::fd::OwnedFd::from(its))
            .stdout(code)
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { child: Some(child), stream: Some(ours), used: Duration::ZERO, code: 0 })
    }

    async fn get_ready(&mut self, start: &WorkerStart) -> Result<Result<(), LoadFailure>, Lost> {
        let mut connection = self.connect()?;
        connection.send(start).await?;
        let WorkerFrame::Ready(ready) = connection.receive(MOST_FIRST_FRAME).await? else {
            return Err(Lost::Nonsense("something else before it was ready".to_owned()));
        };
        self.disconnect(connection)?;
        Ok(ready)
    }

    /// The way to it, for one call.
    pub(super) fn connect(&mut self) -> Result<WorkerConnection, Lost> {
        Ok(WorkerConnection::new(self.stream.take().ok_or(Lost::Gone)?)?)
    }

    /// The call has ended well.
    pub(super) fn disconnect(&mut self, connection: WorkerConnection) -> Result<(), Lost> {
        self.stream = Some(connection.into_idle()?);
        Ok(())
    }

    /// Whether it is there for another call.
    pub(super) fn is_alive(&mut self) -> bool {
        self.stream.is_some() && self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// What has become of it.
    pub(super) async fn end(mut self, lost: Lost) -> Error {
        let how = match lost {
            Lost::TooManyParts => return Error::TooManyParts { most: MOST_FRAME_PARTS },
            Lost::Nonsense(what) => format!("said what no call says: {}", escaped(&what, MOST_WORDS as usize)),
            Lost::Gone | Lost::GoneBefore => {
                let has_ended = match &self.child {
                    Some(child) => has_ended(child).await,
                    None => true,
                };
                let Some(child) = self.child.take() else { return Error::WorkerKilled { logged: None } };
                let Ok((status, wrote)) = blocking(move || waited_for(child)).await else {
                    return Error::WorkerKilled { logged: None };
                };
                if has_ended {
                    return ended(status, wrote);
                }
                "closed its end of the socket and went on".to_owned()
            }
        };
        Error::Worker { how, wrote: None, logged: None }
    }
}

/// Whether a process that has closed its socket ends by itself. Its status stays to be asked for.
async fn has_ended(child: &Child) -> bool {
    let child = Pid::from_child(child);
    // Where it goes on, this ends when it is killed.
    let ends = blocking(move || waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    timeout(LONGEST_END, ends).await.is_ok()
}

/// Its status and its words. It has ended, or it is killed here.
fn waited_for(mut child: Child) -> (Option<ExitStatus>, String) {
    // The status of a process that is ending already stays what it is.
    let _ending = child.kill();
    let status = child.wait().ok();
    let mut wrote = Vec::new();
    // Another process that has it open is not waited for: what this one wrote is there.
    if let Some(stderr) = child.stderr.take().filter(|stderr| fcntl_setfl(stderr, OFlags::NONBLOCK).is_ok()) {
        // What cannot be read is not there.
        let _unread = stderr.take(MOST_WORDS).read_to_end(&mut wrote);
    }
    (status, escaped(String::from_utf8_lossy(&wrote).trim(), MOST_WORDS as usize))
}

fn ended(status: Option<ExitStatus>, wrote: String) -> Error {
    const SIGKILL: i32 = 9;
    let how = match status.map(|status| (status.signal(), status)) {
        None | Some((Some(SIGKILL), _)) => return Error::WorkerKilled { logged: None },
        Some((Some(signal), _)) => format!("crashed with signal {signal}"),
        Some((None, status)) => format!("ended with {status}"),
    };
    Error::Worker { how, wrote: (!wrote.is_empty()).then_some(wrote), logged: None }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // It has ended already, or it ends now.
        let _ended = child.kill();
        if let Ok(Some(_)) = child.try_wait() {
            return;
        }
        // Its memory is given back before it is gone; nobody waits for that but a thread.
        let waiting = thread::Builder::new().name("worker-end".to_owned()).spawn(move || child.wait());
        if let Err(error) = waiting {
            tracing::warn!(%error, "a process of a component has ended and is left to the system");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(script: &str) -> String {
        let command = WorkerCommand { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] };
        let code = CompiledCode::new("sha256:0", vec![], b"").unwrap();
        let Err(error) = WorkerProcess::start(&command, &code, &Budget::default()).await else { panic!("it started") };
        assert!(error.is_transient(), "{error:?}");
        let start = "the process for the component's calls did not start: /bin/sh: ";
        error.to_string().strip_prefix(start).unwrap().to_owned()
    }

    #[tokio::test]
    async fn limits_workers_the_last_words_of_a_worker_are_cut() {
        let words = refusal("head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1").await;
        let expected = "x".repeat(MOST_WORDS as usize);
        let sentence = "the process that the component ran in ended with exit status: 1; it wrote: ";
        assert_eq!(words, format!("{sentence}{expected}"));
    }

    #[tokio::test]
    async fn limits_workers_one_that_closes_its_socket_and_goes_on_was_not_killed_by_the_system() {
        // What it has started holds its standard error for longer.
        let words = refusal("exec 0<&-; /bin/sleep 8; true").await;
        assert_eq!(words, "the process that the component ran in closed its end of the socket and went on");
        let words = refusal("kill -KILL $$").await;
        assert_eq!(words, "the process that the component ran in was killed, as by the system where memory ends");
        let words = refusal("/bin/sleep 8 & echo last >&2; exit 3").await;
        assert_eq!(words, "the process that the component ran in ended with exit status: 3; it wrote: last");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c_96_a_worker_that_is_asked_for_at_low_priority_has_the_usual_one() {
        let usual = rustix::process::getpriority_process(None).unwrap();
        let executor = tokio::runtime::Handle::current();
        let asks = thread::spawn(move || {
            rustix::process::setpriority_process(None, 10).unwrap();
            executor.block_on(refusal("/usr/bin/nice >&2; exit 1"))
        });
        let words = tokio::task::block_in_place(|| asks.join()).unwrap();
        assert_eq!(
            words,
            format!("the process that the component ran in ended with exit status: 1; it wrote: {usual}")
        );
    }

    #[tokio::test]
    async fn limits_workers_the_first_frame_of_a_worker_is_small() {
        let length = u32::try_from(MOST_FIRST_FRAME + 1).unwrap();
        let octal: String = length.to_be_bytes().map(|byte| format!("\\{byte:03o}")).concat();
        let words = refusal(&format!("printf '{octal}' >&0; exec sleep 60")).await;
        let sentence =
            "the process that the component ran in said what no call says: a frame of 65537 bytes, where at most 65536";
        assert_eq!(words, format!("{sentence} are read"));
    }

    #[tokio::test(start_paused = true)]
    async fn limits_workers_one_that_does_not_get_ready_is_given_up() {
        assert_eq!(refusal("exec sleep 60").await, "it was not ready within 20 s");
    }
}
