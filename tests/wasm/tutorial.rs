//! The pages of `docs/plugins` that go from nothing to a deploy item, done as they are written: commands, files and changes in their
//! order.
//!
//! Of a page count the blocks in fences: `sh` is run, in the folder to which it has gone before; `text` has lines that the commands
//! before it have printed; `diff` is laid over the project; one with a path after its language is saved there.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use orangery_cli::authoring::project::Language;
use orangery_tests::repository;

use crate::inside::fixtures::cache;

/// What a page says to do.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Run these.
    Run(String),
    /// They have printed this, line by line.
    Printed(String),
    /// Lay this over the project.
    Change(String),
    /// Save it.
    Save(PathBuf, String),
}

/// The steps of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        match kind.split_once(' ') {
            Some((_, path)) => steps.push(Step::Save(PathBuf::from(path), block)),
            None if kind == "sh" => steps.push(Step::Run(block)),
            None if kind == "text" => steps.push(Step::Printed(block)),
            None if kind == "diff" => steps.push(Step::Change(block)),
            // An excerpt, to be read.
            None => {}
        }
    }
    steps
}

/// Where the pages of one language are done, and how far.
pub(super) struct Tutorial {
    language: Language,
    /// The folder that nothing is left of but what the tools have fetched: its name stays, as that has it in it.
    folder: PathBuf,
    at: PathBuf,
    printed: String,
}

/// What tools fetch for a project in its folder.
const FETCHED: [&str; 2] = ["node_modules", "venv"];

impl Tutorial {
    /// In a folder in which nothing has been done yet.
    pub(super) fn begin(language: Language, below: &Path) -> Self {
        let folder = below.join(format!("tutorial-{language:?}").to_lowercase());
        let kept = folder.join("kept");
        fs::create_dir_all(&kept).unwrap();
        for name in FETCHED {
            let before = folder.join("lemonade").join(name);
            if before.is_dir() && !kept.join(name).exists() {
                fs::rename(before, kept.join(name)).unwrap();
            }
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path != kept {
                fs::remove_dir_all(path).unwrap();
            }
        }
        let programs = folder.join("programs");
        fs::create_dir_all(&programs).unwrap();
        symlink(env!("CARGO_BIN_EXE_orangery-under-test"), programs.join("orangery")).unwrap();
        Self { language, at: folder.clone(), folder, printed: String::new() }
    }

    /// The folder of the project.
    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("lemonade")
    }

    /// What the tools have fetched, by its name in the project; none for languages whose tools share that.
    pub(super) fn fetched(&self) -> Option<PathBuf> {
        FETCHED.into_iter().map(|name| self.project().join(name)).find(|path| path.is_dir())
    }

    /// Does all that a page says.
    pub(super) fn follow(&mut self) {
        let page = repository().join(format!("docs/plugins/{:?}.md", self.language).to_lowercase());
        let steps = steps(&fs::read_to_string(page).unwrap());
        assert!(steps.len() > 6, "the page says what to do");
        for step in steps {
            match step {
                Step::Run(commands) => self.run(&commands),
                Step::Printed(text) => {
                    let missing = text.lines().find(|line| !self.printed.lines().any(|printed| printed == *line));
                    assert_eq!(missing, None, "it is not among what was printed:\n{}", self.printed);
                }
                Step::Change(change) => {
                    fs::write(self.at.join("change.diff"), change).unwrap();
                    self.run("git apply change.diff");
                }
                Step::Save(path, text) => {
                    let path = self.at.join(path);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
            }
        }
    }

    fn run(&mut self, commands: &str) {
        let program = format!("{commands}\npwd > '{}'\n", self.folder.join("at").display());
        let mut shell = Command::new("sh");
        shell.args(["-euc", &program]).current_dir(&self.at);
        let path = env::var_os("PATH").unwrap_or_default();
        let go = orangery_tests::machine::go();
        let folders = [self.folder.join("programs")].into_iter().chain(env::split_paths(&path)).chain(go);
        shell.env("PATH", env::join_paths(folders).unwrap());
        // Components are compiled once for all tests; the rest is as of a user whom nobody else has any part in.
        shell.env("XDG_CACHE_HOME", cache().parent().unwrap()).env("XDG_RUNTIME_DIR", &self.folder);
        shell.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", self.folder.parent().unwrap().join("target"));
        shell.env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1").env("GIT_CEILING_DIRECTORIES", &self.folder);
        shell.env_remove("RUSTFLAGS").env_remove("KUBECONFIG").env_remove("ORANGERY_LOG");
        let done = shell.output().expect("a shell runs");
        self.printed = String::from_utf8_lossy(&done.stdout).into_owned();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{commands}: {said}{}", self.printed);
        self.at = PathBuf::from(fs::read_to_string(self.folder.join("at")).unwrap().trim_end());
        self.prepare();
    }

    /// Puts into a project that was just written what the machine has for it.
    fn prepare(&self) {
        let project = self.project();
        if !project.is_dir() {
            return;
        }
        if self.language == Language::Rust && !project.join("Cargo.lock").is_file() {
            fs::copy(repository().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
        }
        for name in FETCHED {
            let kept = self.folder.join("kept").join(name);
            if kept.is_dir() {
                fs::rename(kept, project.join(name)).unwrap();
            }
        }
    }
}

#[test]
fn c_222_a_page_is_what_its_blocks_say() {
    let page = "Do it:\n\n```sh\na\nb\n```\n\n```text\nc\n```\n\n```python\nread\n```\n\n```json cases/x.json\n{}\n```\n\n```diff\n-a\n```\n";
    let expected = [
        Step::Run("a\nb\n".to_owned()),
        Step::Printed("c\n".to_owned()),
        Step::Save("cases/x.json".into(), "{}\n".to_owned()),
        Step::Change("-a\n".to_owned()),
    ];
    assert_eq!(steps(page), expected);
}
