//! The stock Helm CLI, as `tests/helm/build.sh` builds it, against one server.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{self, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::{
    binary::{DEADLINE, Ended},
    fail, repository,
};

/// How long `helm` waits for what it is told to wait for.
const PATIENCE: &str = "60s";

/// The program with a home of its own, for one server. It runs where the charts of the tests are.
pub struct Helm {
    program: PathBuf,
    home: TempDir,
}

impl Helm {
    /// The program for the server of this kubeconfig. None where it is not built, which is said on standard error, past what
    /// the test runner captures; and a failure where everything has to be tested.
    pub fn find(kubeconfig: &str) -> Option<Helm> {
        let script = repository().join("tests/helm/build.sh");
        let answer = process::Command::new(&script).arg("--folder").output().expect("the script can be run");
        let folder = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
        if folder.join("complete").exists() {
            let home = TempDir::new().expect("a temporary folder");
            fs::write(home.path().join("kubeconfig"), kubeconfig).expect("the kubeconfig can be written");
            return Some(Helm { program: folder.join("helm"), home });
        }
        let why = format!("there is no helm in {}: run tests/helm/build.sh", folder.display());
        if env::var_os("CI").is_some() {
            fail(&why);
        }
        // A broken pipe changes nothing.
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: {why}\n");
        None
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The folder for what it keeps, and for files of the test.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs it to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ended {
        let waits = arguments.contains(&"--wait") || arguments.first() == Some(&"test");
        let patience: &[&str] = if waits { &["--timeout", PATIENCE] } else { &[] };
        let mut command = Command::new(&self.program);
        command.args(arguments).args(patience).current_dir(repository().join("tests/charts")).env_clear();
        command.env("HOME", self.home()).env("KUBECONFIG", self.home().join("kubeconfig"));
        let output = timeout(DEADLINE, command.stdin(Stdio::null()).kill_on_drop(true).output()).await;
        let output = output.unwrap_or_else(|_| fail(&format!("helm {arguments:?} did not end within {DEADLINE:?}")));
        let output = output.expect("helm starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Runs it, and answers what it writes. It has to end well.
    pub async fn does(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments).await;
        assert_eq!(ended.code, Some(0), "helm {arguments:?}: {}\n{}", ended.stderr, ended.stdout);
        ended.stdout
    }

    /// Runs it, and answers what it complains of. It has to end badly.
    pub async fn refuses(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments).await;
        assert_eq!(ended.code, Some(1), "helm {arguments:?}: {}\n{}", ended.stderr, ended.stdout);
        ended.stderr
    }

    /// Runs it, and answers the JSON that it writes.
    pub async fn tells(&self, arguments: &[&str]) -> Value {
        let text = self.does(&[arguments, &["-o", "json"]].concat()).await;
        serde_json::from_str(&text)
            .unwrap_or_else(|error| fail(&format!("helm {arguments:?} wrote no JSON ({error}): {text}")))
    }

    /// The revisions of a release with their states, the first one first.
    pub async fn history(&self, release: &str, namespace: &str) -> Vec<(u64, String)> {
        let history = self.tells(&["history", release, "-n", namespace]).await;
        let revisions = history.as_array().cloned().unwrap_or_default();
        let message = |revision: &Value| {
            let number = revision.get("revision").and_then(Value::as_u64).unwrap_or_default();
            (number, revision.get("status").and_then(Value::as_str).unwrap_or_default().to_owned())
        };
        revisions.iter().map(message).collect()
    }
}
