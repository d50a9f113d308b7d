//! A suite, of which tests are played one by one.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// The unit tests of a crate, or a suite beside them.
pub(crate) struct Suite {
    /// `FOLDER`, or `FOLDER:SUITE`.
    pub(crate) name: String,
    folder: PathBuf,
    program: PathBuf,
}

/// What is on while a test is played.
pub(crate) enum Switch<'a> {
    Nothing,
    /// The mutant of this number.
    On(usize),
    /// Nothing, and the numbers that are reached are written to this file.
    Reached(&'a Path),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    Failed,
    NotInTime,
}

impl Suite {
    pub(crate) fn of(name: &str) -> Suite {
        let (folder, target) = match name.split_once(':') {
            Some((folder, suite)) => (PathBuf::from(folder), suite.to_owned()),
            None => {
                let folder = PathBuf::from(name);
                let last = folder.file_name().expect("a crate has a folder").to_string_lossy().replace('-', "_");
                (folder, format!("orangery_{last}"))
            }
        };
        Suite { name: name.to_owned(), program: newest(&target), folder }
    }

    /// The names of its tests.
    pub(crate) fn tests(&self) -> Vec<String> {
        let listed = Command::new(&self.program).args(["--list", "--format", "terse"]).output().expect("a suite");
        assert!(listed.status.success(), "{} lists no tests", self.program.display());
        let listed = String::from_utf8(listed.stdout).expect("names are text");
        listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
    }

    pub(crate) fn play(&self, test: &str, switch: &Switch<'_>, limit: Duration) -> End {
        let output = tempfile::NamedTempFile::new().expect("a file for what tests print");
        let mut command = Command::new(&self.program);
        command.args(["--exact", test]).current_dir(&self.folder).process_group(0);
        command.env("CARGO_MANIFEST_DIR", fs::canonicalize(&self.folder).expect("a folder of a crate"));
        command.env_remove("ORANGERY_MUTANT").env_remove("ORANGERY_MUTANTS_REACHED");
        match switch {
            Switch::Nothing => {}
            Switch::On(number) => _ = command.env("ORANGERY_MUTANT", number.to_string()),
            Switch::Reached(file) => _ = command.env("ORANGERY_MUTANTS_REACHED", file),
        }
        let file = File::create(output.path()).expect("the file for what tests print");
        let errors = file.try_clone().expect("the file for what tests print");
        let mut child = command.stdout(file).stderr(errors).spawn().expect("a suite that was built");
        match ended(&mut child, limit) {
            None => End::NotInTime,
            Some(status) if status.success() => End::Passed,
            Some(_) => End::Failed,
        }
    }
}

fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            break Some(status);
        }
        if began.elapsed() > limit {
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    // Also what the test has started, of which nothing may stay.
    let group = Pid::from_raw(i32::try_from(child.id()).expect("an id of a process")).expect("a child has an id");
    _ = kill_process_group(group, Signal::KILL);
    _ = child.wait();
    ended
}

/// The suite that was built last.
fn newest(target: &str) -> PathBuf {
    let folder = fs::canonicalize("target/debug/deps").expect("a build");
    let built = fs::read_dir(folder).expect("a build").filter_map(Result::ok).map(|entry| entry.path());
    let suites = built.filter(|path| is_suite(path, target));
    let newest = suites.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    newest.unwrap_or_else(|| panic!("{target} is not built"))
}

fn is_suite(path: &Path, target: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hash = name.strip_prefix(target).and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|hash| hash.len() == 16 && hash.chars().all(|digit| digit.is_ascii_hexdigit()))
}
