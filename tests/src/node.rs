//! A cluster of one node that runs pods, by `tests/node/up.sh`: one for all tests of a process, and one at a time on a machine.

use std::{
    env, fs,
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

use crate::{binary::signal, fail, repository};

/// The image of the binary under test, as pods name it, and another tag of the same one.
pub const IMAGE: (&str, &str, &str) = ("local/orangery", "1", "2");

/// The variable that names the folder of a release (`release/build`), whose image and chart are tested in place of these.
const RELEASE: &str = "ORANGERY_RELEASE";

/// Waits for its turn, says so, and ends the node when whoever has started it is gone, however that ended.
const KEEPER: &str = "exec 9>/tmp/orangery-node.lock; flock 9; echo turn; cat >/dev/null; WIPE=1 \"$1/down.sh\" 9>&-";

/// The chart that is installed on a node, and what it is told of the image there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// A folder or an archive.
    pub path: PathBuf,
    /// Values, as `--set-json` takes them.
    pub values: Vec<String>,
}

/// A running node.
pub struct Node {
    kubeconfig: String,
    folder: PathBuf,
    chart: Chart,
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
        let chart = image(&scripts, program, cache, &archive);
        let mut up = Command::new(scripts.join("up.sh"));
        let kubeconfig = run(up.arg(&archive).env("RUN", &folder));
        let kubeconfig = fs::read_to_string(kubeconfig.trim()).expect("the node has a kubeconfig");
        let node = Node { kubeconfig, folder, chart, _keeper: (keeper, input.expect("it is piped")) };
        let [name, other] = [IMAGE.1, IMAGE.2].map(|tag| format!("docker.io/{}:{tag}", IMAGE.0));
        run(node.ctr().args(["images", "tag", "--force", &name, &other]));
        node
    }

    /// That of a user who may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The chart of the operator for this node.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Whether a release is tested.
    pub fn is_of_release(&self) -> bool {
        env::var_os(RELEASE).is_some()
    }

    /// Sends a signal (`SIGKILL`, as the kernel does where memory ends) to the first process of a container.
    pub async fn signal(&self, container: &str, name: &str) {
        let mut ctr = self.ctr();
        ctr.args(["tasks", "kill", "--signal", name, container.trim_start_matches("containerd://")]);
        spawn_blocking(move || run(&mut ctr)).await.expect("the signal is sent");
    }

    /// The MiB that the first process of a container has had resident at most since this was asked before, or since its start.
    pub fn resident(&self, container: &str) -> u64 {
        let container = container.trim_start_matches("containerd://");
        let tasks = run(self.ctr().args(["tasks", "list"]));
        let task = tasks.lines().find(|line| line.starts_with(container)).expect("it runs");
        let process = Path::new("/proc").join(task.split_whitespace().nth(1).expect("its process"));
        let status = fs::read_to_string(process.join("status")).expect("its process runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        fs::write(process.join("clear_refs"), "5").expect("its peak can be forgotten");
        peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
    }

    /// The node answers nobody any more, and somebody says so, as an administrator does: until what is answered is dropped.
    pub async fn goes(&self) -> GoneNode {
        let folder = self.folder.clone();
        let gone = spawn_blocking(move || {
            let kubelet = fs::read_to_string(folder.join("pids/kubelet")).expect("the kubelet runs");
            let gone = GoneNode { kubelet: kubelet.trim().parse().ok(), folder };
            signal(gone.kubelet, "-STOP");
            run(&mut gone.taint("node.kubernetes.io/out-of-service=gone:NoExecute"));
            gone
        });
        gone.await.expect("the node is told to be gone")
    }

    fn ctr(&self) -> Command {
        let mut ctr = Command::new("ctr");
        ctr.arg("--address").arg(self.folder.join("containerd/containerd.sock")).args(["--namespace", "k8s.io"]);
        ctr
    }
}

/// A node that answers nobody; dropped, it is as before.
pub struct GoneNode {
    kubelet: Option<u32>,
    folder: PathBuf,
}

impl GoneNode {
    fn taint(&self, taint: &str) -> Command {
        let mut kubectl = Command::new("kubectl");
        kubectl.arg("--kubeconfig").arg(self.folder.join("admin.kubeconfig"));
        kubectl.args(["taint", "nodes", "--all", taint]);
        kubectl
    }
}

impl Drop for GoneNode {
    fn drop(&mut self) {
        run(&mut self.taint("node.kubernetes.io/out-of-service:NoExecute-"));
        signal(self.kubelet, "-CONT");
    }
}

/// The value of the chart for the image of the binary under test with this tag.
pub fn tagged(tag: &str) -> String {
    format!(r#"image={{"repository":"{}","tag":"{tag}","digest":""}}"#, IMAGE.0)
}

/// Writes the archive of the image, of the release or of the program, and answers the chart for it.
fn image(scripts: &Path, program: &str, cache: &Path, archive: &Path) -> Chart {
    let name = format!("{}:{}", IMAGE.0, IMAGE.1);
    if let Some(release) = env::var_os(RELEASE) {
        let charts = fs::read_dir(&release).expect("the folder of the release is there");
        let mut paths = charts.map(|entry| entry.expect("an entry").path());
        let path = paths.find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
        run(Command::new(scripts.join("of-release.sh")).arg(release).arg(name).arg(archive));
        return Chart { path: path.expect("the release has a chart"), values: Vec::new() };
    }
    let mut pack = Command::new(scripts.join("pack.sh"));
    run(pack.arg(program).arg(name).arg(archive).env("XDG_CACHE_HOME", cache));
    Chart { path: repository().join("charts/orangery"), values: vec![tagged(IMAGE.1), "cache.inImage=true".to_owned()] }
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
