//! A cluster of one node that runs pods, by `tests/node/up.sh`: one for all tests of a process, and one at a time on a machine.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use tempfile::TempDir;
use tokio::{
    sync::{Mutex, MutexGuard, OnceCell},
    task::spawn_blocking,
};

use crate::{fail, repository};

/// The image of the binary under test, as pods name it.
pub const IMAGE: (&str, &str) = ("local/orangery", "1");

/// Waits for its turn, says so, and ends the node when whoever has started it is gone, however that ended.
const KEEPER: &str = "exec 9>/tmp/orangery-node.lock; flock 9; echo turn; cat >/dev/null; WIPE=1 \"$1/down.sh\" 9>&-";

/// A running node.
pub struct Node {
    kubeconfig: String,
    folder: PathBuf,
    /// The end of this ends the node.
    _keeper: (Child, ChildStdin),
}

impl Node {
    /// The node, for one test at a time: what is installed is of the whole cluster. The program is packed into its image.
    pub async fn taken(program: &'static str, cache: &Path) -> MutexGuard<'static, Node> {
        static NODE: OnceCell<Mutex<Node>> = OnceCell::const_new();
        let cache = cache.to_path_buf();
        let start = async || {
            let started = spawn_blocking(move || Node::start(program, &cache)).await;
            Mutex::new(started.expect("the node starts"))
        };
        NODE.get_or_init(start).await.lock().await
    }

    fn start(program: &str, cache: &Path) -> Node {
        let scripts = repository().join("tests/node");
        // It goes with the node, by its keeper. Sockets lie in it, whose paths are short.
        let folder = TempDir::with_prefix_in("node-", "/tmp").expect("a temporary folder").keep();
        let mut keeper = Command::new("bash");
        keeper.args(["-c", KEEPER, "keeper"]).arg(&scripts).env("RUN", &folder).process_group(0);
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = keeper.spawn().expect("bash starts");
        let (input, output) = (keeper.stdin.take(), keeper.stdout.take());
        let mut turn = String::new();
        BufReader::new(output.expect("it is piped")).read_line(&mut turn).expect("the keeper says when");
        let archive = folder.join("orangery.tar");
        let image = format!("{}:{}", IMAGE.0, IMAGE.1);
        let mut pack = Command::new(scripts.join("pack.sh"));
        pack.arg(program).arg(image).arg(&archive).env("XDG_CACHE_HOME", cache);
        run(&mut pack);
        let mut up = Command::new(scripts.join("up.sh"));
        let kubeconfig = run(up.arg(&archive).env("RUN", &folder));
        let kubeconfig = fs::read_to_string(kubeconfig.trim()).expect("the node has a kubeconfig");
        Node { kubeconfig, folder, _keeper: (keeper, input.expect("it is piped")) }
    }

    /// That of a user who may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Kills the first process of a container of the operator's image, as the kernel does where memory ends.
    pub async fn kill_container(&self, id: &str) {
        let socket = self.folder.join("containerd/containerd.sock");
        let id = id.trim_start_matches("containerd://").to_owned();
        let killed = spawn_blocking(move || {
            let mut ctr = Command::new("ctr");
            ctr.arg("--address").arg(socket).args(["--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL"]);
            run(ctr.arg(id))
        });
        killed.await.expect("it is killed");
    }
}

/// Runs a command to its end, which has to be a good one, and answers what it writes.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        fail(&format!("{command:?} ended with {}: {}", output.status, text(&output.stderr)));
    }
    text(&output.stdout)
}
