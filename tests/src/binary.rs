//! The binary under test, run as a user runs it: in a folder of its own, without a kubeconfig, without colours.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::OnceCell,
    time::timeout,
};

use crate::{canary::ShownText, fail};

/// How long a command may take before the test fails.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The binary and the folder it runs in.
pub struct Binary {
    program: PathBuf,
    cache: PathBuf,
    folder: TempDir,
    /// What its commands have answered.
    answers: Answers,
}

/// What commands have answered. Clones know the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Arc<Mutex<Vec<ShownText>>>);

impl Answers {
    fn add(&self, text: ShownText) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<ShownText> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// A command that stays until it is told to end; killed when dropped.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Where it logs, if that is a file.
    log: Option<PathBuf>,
}

impl Binary {
    /// The program, and a folder for compiled components that the tests share.
    pub fn new(program: &str, shared: &str) -> Binary {
        Binary {
            program: PathBuf::from(program),
            cache: Path::new(shared).join("cache"),
            folder: TempDir::new().expect("a temporary folder"),
            answers: Answers::default(),
        }
    }

    /// The same; the first one of this process compiles the components, once for all.
    pub async fn prepared(program: &str, shared: &str) -> Binary {
        static PREPARED: OnceCell<()> = OnceCell::const_new();
        let binary = Binary::new(program, shared);
        PREPARED.get_or_init(async || binary.prepare().await).await;
        binary
    }

    /// The same program, which a shell starts after it has done this; the script lies in the folder of this one.
    pub fn after(&self, line: &str) -> Binary {
        let script = self.folder().join("started");
        let text = format!("#!/bin/sh\n{line}\nexec '{}' \"$@\"\n", self.program.display());
        fs::write(&script, text).expect("a script can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        let folder = TempDir::new().expect("a temporary folder");
        Binary { program: script, cache: self.cache.clone(), folder, answers: Answers::default() }
    }

    /// The folder it runs in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles the components that ship with it into the shared folder, where they are not yet.
    pub async fn prepare(&self) {
        // Its output is read to the end: a command whose lines nobody reads stops at the first, and says nothing of it.
        let compiled = self.command(&["plugin", "compile"]).output().await.expect("the binary starts");
        let message = String::from_utf8_lossy(&compiled.stdout);
        let names: Vec<&str> = message.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let built = orangery_builtin::components().iter().filter(|builtin| builtin.component.is_ok());
        let expected: Vec<&str> = built.map(|builtin| builtin.name).collect();
        assert_eq!(names, expected, "the components do not compile: {}", String::from_utf8_lossy(&compiled.stderr));
    }

    /// Runs the command to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ended {
        let output = timeout(DEADLINE, self.command(arguments).output()).await;
        let output = output.unwrap_or_else(|_| timed_out(arguments)).expect("the binary starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), without_lacks(&text(&output.stderr)));
        if let Some(answer) = ShownText::of_command(arguments, format!("{stdout}{stderr}")) {
            self.answers.add(answer);
        }
        Ended { code: output.status.code(), stdout, stderr }
    }

    /// Starts the command and leaves it running.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut child = self.command(arguments).spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("its output is piped");
        Running { child, lines: BufReader::new(stdout).lines(), log: None }
    }

    /// The same with its log in a file of its own in its folder.
    pub fn start_logging(&self, arguments: &[&str]) -> Running {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let log = self.folder().join(format!("started-{}.log", STARTED.fetch_add(1, Ordering::Relaxed)));
        let file = File::options().create(true).append(true).open(&log).expect("the file can be written");
        let mut child = self.command(arguments).stderr(file).spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("its output is piped");
        Running { child, lines: BufReader::new(stdout).lines(), log: Some(log) }
    }

    /// What its commands have answered.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Starts the command and leaves it running, with all that it writes at the end of a file: nobody has to read along.
    pub fn start_into(&self, arguments: &[&str], file: &Path) -> Child {
        Binary::spawn_into(self.command(arguments), file)
    }

    /// The same of another program, run as this one is.
    pub fn start_other_into(&self, program: &Path, arguments: &[&str], file: &Path) -> Child {
        Binary::spawn_into(self.command_of(program, arguments), file)
    }

    fn spawn_into(mut command: Command, file: &Path) -> Child {
        let file = File::options().create(true).append(true).open(file).expect("the file can be written");
        let both = file.try_clone().expect("a second handle of the file");
        command.stdout(file).stderr(both).spawn().expect("the binary starts")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&self.program, arguments)
    }

    fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path());
        command.env_remove("KUBECONFIG").env("NO_COLOR", "1").env("HOME", self.folder.path());
        command
            .env("XDG_CACHE_HOME", &self.cache)
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env_remove("ORANGERY_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// Sends a signal, such as `-STOP`, to the process of this id.
pub fn signal(id: Option<u32>, name: &str) {
    let id = id.expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args([name, &id]).status().expect("kill can be run");
    assert!(sent.success());
}

/// The next line that contains this text.
async fn find(lines: &mut Lines<BufReader<impl AsyncRead + Unpin>>, text: &str) -> Option<String> {
    while let Some(line) = lines.next_line().await.expect("what it writes is text") {
        if line.contains(text) {
            return Some(line);
        }
    }
    None
}

impl Running {
    /// Waits for a line of standard output that contains this text, and answers the line.
    pub async fn line_with(&mut self, text: &str) -> String {
        match timeout(DEADLINE, self.find(text)).await {
            Ok(Some(line)) => line,
            ended => {
                let stderr = self.errors().await;
                fail(&format!("no line with {text:?} ({ended:?}); on standard error:\n{stderr}"))
            }
        }
    }

    /// Waits until it has logged a line that contains this text. What it logs afterwards is read by nobody.
    pub async fn logged(&mut self, text: &str) {
        let mut log = BufReader::new(self.child.stderr.take().expect("nobody reads its log yet")).lines();
        let found = timeout(DEADLINE, find(&mut log, text)).await;
        assert!(matches!(found, Ok(Some(_))), "it has not logged {text:?} ({found:?})");
        self.child.stderr = Some(log.into_inner().into_inner());
    }

    /// The file that it logs into.
    pub(crate) fn log_file(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// What it has logged into its file so far.
    pub fn log(&self) -> String {
        logged(self.log.as_deref())
    }

    async fn find(&mut self, text: &str) -> Option<String> {
        find(&mut self.lines, text).await
    }

    async fn errors(&mut self) -> String {
        drop(self.child.start_kill());
        let mut text = self.log();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).await.expect("its errors are text");
        }
        text
    }

    /// Ends it as a power cut does, and waits until it is gone.
    pub async fn kill(mut self) {
        self.end().await;
    }

    /// The same of one that is only borrowed.
    pub(crate) async fn end(&mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// Waits until it ends by itself.
    pub async fn ended(mut self) -> ExitStatus {
        let ended = timeout(DEADLINE, self.child.wait()).await;
        ended.unwrap_or_else(|_| timed_out(&[])).expect("it can be waited for")
    }

    /// Waits until it ends by itself, and answers what it said that nobody has read.
    pub async fn finished(self) -> Ended {
        let output = timeout(DEADLINE, async {
            let Running { mut child, mut lines, log } = self;
            let mut stderr = String::new();
            let errors = child.stderr.take();
            let read = async {
                match errors {
                    Some(mut errors) => errors.read_to_string(&mut stderr).await.map(drop),
                    None => Ok(()),
                }
            };
            let (read, stdout) = tokio::join!(read, async {
                let mut stdout = String::new();
                while let Some(line) = lines.next_line().await.expect("its output is text") {
                    stdout += &format!("{line}\n");
                }
                stdout
            });
            read.expect("its errors are text");
            let status = child.wait().await.expect("it can be waited for");
            Ended { code: status.code(), stdout, stderr: stderr + &logged(log.as_deref()) }
        });
        output.await.unwrap_or_else(|_| timed_out(&[]))
    }

    /// Whether it does not run any more.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

fn logged(file: Option<&Path>) -> String {
    let log = file.map(fs::read).and_then(Result::ok);
    log.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn timed_out<T>(arguments: &[&str]) -> T {
    fail(&format!("{arguments:?} did not end within {DEADLINE:?}"))
}

/// What was told, but for the lines that say what this build lacks: that is a matter of the machine that made it.
fn without_lacks(told: &str) -> String {
    let lacks: Vec<&str> =
        orangery_builtin::components().iter().filter_map(|builtin| builtin.component.err()).collect();
    told.split_inclusive('\n').filter(|line| !lacks.iter().any(|lack| line.contains(lack))).collect()
}
