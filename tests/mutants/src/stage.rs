//! A suite, or the unit tests of the crate that a mutant is in, played with one mutant on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::draw::Mutant;

/// What is not played for longer: a suite that takes a second has this long.
const LEAST: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stage {
    pub(crate) name: String,
    folder: PathBuf,
    program: PathBuf,
    filters: Vec<String>,
}

/// How a stage ends where no mutant is on.
pub(crate) struct Ordinary {
    pub(crate) failed: BTreeSet<String>,
    pub(crate) limit: Duration,
}

pub(crate) enum End {
    Failed(BTreeSet<String>),
    Crashed,
    NotInTime,
}

impl Stage {
    /// `lib`, or `FOLDER:SUITE[:FILTER,…]`.
    pub(crate) fn of(words: &str, mutant: &Mutant) -> Stage {
        let parts: Vec<&str> = words.splitn(3, ':').collect();
        let crate_folder: PathBuf = mutant.file.iter().take_while(|part| *part != "src").collect();
        let (folder, target) = match parts[..] {
            ["lib"] => {
                let name = crate_folder.file_name().expect("a crate has a folder").to_string_lossy().into_owned();
                (crate_folder, format!("orangery_{}", name.replace('-', "_")))
            }
            [folder, suite, ..] => (PathBuf::from(folder), suite.to_owned()),
            _ => panic!("{words:?} is no stage: lib, or FOLDER:SUITE[:FILTER,…]"),
        };
        let filters = parts.get(2).into_iter().flat_map(|filters| filters.split(',')).map(str::to_owned).collect();
        Stage { name: words.to_owned(), program: newest(&target), folder, filters }
    }

    pub(crate) fn ordinary(&self) -> Ordinary {
        let began = Instant::now();
        let failed = match self.run(None, &self.filters, Duration::MAX) {
            End::Failed(failed) => failed,
            End::Crashed | End::NotInTime => panic!("{} does not end without a mutant", self.name),
        };
        Ordinary { failed, limit: LEAST.max(began.elapsed() * 3) }
    }

    pub(crate) fn with(&self, mutant: &Mutant, limit: Duration) -> End {
        self.run(Some(mutant.number), &self.filters, limit)
    }

    /// Whether this test fails alone with the mutant, and passes without it.
    pub(crate) fn tells(&self, mutant: &Mutant, test: &str, limit: Duration) -> bool {
        let alone = ["--exact".to_owned(), test.to_owned()];
        let passes = |number| matches!(self.run(number, &alone, limit), End::Failed(failed) if failed.is_empty());
        passes(None) && !passes(Some(mutant.number))
    }

    fn run(&self, number: Option<usize>, arguments: &[String], limit: Duration) -> End {
        let output = tempfile::NamedTempFile::new().expect("a file for what tests print");
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--test-threads=2").current_dir(&self.folder).process_group(0);
        command.env("CARGO_MANIFEST_DIR", fs::canonicalize(&self.folder).expect("a folder of a crate"));
        command.env_remove("ORANGERY_MUTANT").envs(number.map(|number| ("ORANGERY_MUTANT", number.to_string())));
        let file = File::create(output.path()).expect("the file for what tests print");
        let errors = file.try_clone().expect("the file for what tests print");
        let mut child = command.stdout(file).stderr(errors).spawn().expect("a suite that was built");
        let Some(status) = ended(&mut child, limit) else {
            return End::NotInTime;
        };
        let failed = failed(&String::from_utf8_lossy(&fs::read(output.path()).expect("what tests printed")));
        // 101 is what a suite ends with where tests fail.
        if status.signal().is_some() || (!status.success() && failed.is_empty()) {
            End::Crashed
        } else {
            End::Failed(failed)
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
        thread::sleep(Duration::from_millis(100));
    };
    // Also what its tests have started, of which nothing may stay.
    let group = Pid::from_raw(i32::try_from(child.id()).expect("an id of a process")).expect("a child has an id");
    _ = kill_process_group(group, Signal::KILL);
    _ = child.wait();
    ended
}

/// The tests in `test NAME ... FAILED`.
fn failed(output: &str) -> BTreeSet<String> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    lines.map(str::to_owned).collect()
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

/// How the stages end without mutants, each played once.
pub(crate) fn ordinary(stages: BTreeSet<Stage>) -> BTreeMap<Stage, Ordinary> {
    let play = |stage: Stage| {
        let ordinary = stage.ordinary();
        println!(
            "{}: {} fail without a mutant, {:?} at most",
            stage.program.display(),
            ordinary.failed.len(),
            ordinary.limit
        );
        (stage, ordinary)
    };
    stages.into_iter().map(play).collect()
}
