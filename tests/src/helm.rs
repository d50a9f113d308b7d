//! The stock Helm CLI, as `tests/helm/build.sh` builds it, against one server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::{
    binary::{DEADLINE, Ended},
    fail, machine, repository,
};

/// How long `helm` waits for what it is told to wait for.
const PATIENCE: &str = "60s";

/// The program with a home of its own, for one server. It runs where the charts of the tests are.
pub struct Helm {
    program: PathBuf,
    home: TempDir,
}

impl Helm {
    /// The program for the server of this kubeconfig.
    ///
    /// # Panics
    /// It is not built: a test that needs it says so, and is ignored then (`machine`).
    pub fn of(kubeconfig: &str) -> Helm {
        let folder = machine::built(repository(), "helm").unwrap_or_else(|why| fail(&why));
        let home = TempDir::new().expect("a temporary folder");
        fs::write(home.path().join("kubeconfig"), kubeconfig).expect("the kubeconfig can be written");
        Helm { program: folder.join("helm"), home }
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
