//! What tests need of a machine besides Rust, looked for in this one place.
//!
//! The build script of this package asks it, and compiles with `without_go` and the like for what is missing. A test that
//! needs it says `#[cfg_attr(without_go, ignore = "…")]` with the words of [`NEEDS`], so that it is counted as ignored, with
//! what it needs and how to get that; no test looks by itself, and none passes without having tested. The suite `without`
//! tells what was left out, and fails where `CI` is set and `WITHOUT` does not name it.

use std::{
    env, fs,
    net::{Ipv6Addr, TcpListener},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Something that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What `WITHOUT` calls it; the condition of compilation is this after `without_`.
    pub name: &'static str,
    /// Why a test is ignored without it: what the test needs, and how to get it.
    pub reason: &'static str,
}

/// All of them.
pub const NEEDS: [Need; 9] = [
    Need { name: "go", reason: "needs Go 1.26 or later: https://go.dev/dl" },
    Need { name: "kube", reason: "needs kube-apiserver: tests/kube/build.sh" },
    Need { name: "helm", reason: "needs the stock helm: tests/helm/build.sh" },
    Need { name: "docker_registry", reason: "needs docker-registry: apt-get install docker-registry" },
    Need { name: "npm", reason: "needs node and npm: apt-get install npm" },
    Need { name: "python", reason: "needs python3 with venv: apt-get install python3-venv" },
    Need { name: "node", reason: "needs root, containerd and runc: tests/node/build.sh" },
    Need { name: "ipv6", reason: "needs the address ::1 of IPv6" },
    Need { name: "recordings", reason: "needs what the recorder of Landscaper wrote: tests/golden/README.md" },
];

/// What decides where these are looked for; and what is to be left out although it is there, or counts as there although it is made
/// only while the tests are compiled.
pub const VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "XDG_CACHE_HOME",
    "ORANGERY_KUBE",
    "ORANGERY_HELM",
    "ORANGERY_NODE",
    "ORANGERY_RECORDINGS",
    "WITHOUT",
    "WITH",
];

/// The programs that a node needs besides what is built for it.
pub const OF_NODE: [&str; 9] = ["containerd", "runc", "ctr", "iptables", "ip", "openssl", "jq", "kubectl", "busybox"];

impl Need {
    /// Whether the machine has it. Of Go this is the program only: whether it builds a component the build script tries.
    pub fn is_met(&self, repository: &Path) -> bool {
        match self.name {
            "kube" | "helm" => built(repository, self.name).is_ok(),
            "node" => {
                let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
                let has_network = Path::new("/usr/lib/cni/bridge").is_file();
                let is_built = ["kube", "helm", "node"].iter().all(|name| built(repository, name).is_ok());
                is_root && has_network && is_built && OF_NODE.iter().all(|program| on_path(program).is_some())
            }
            "docker_registry" => on_path("docker-registry").is_some(),
            "npm" => on_path("node").and(on_path("npm")).is_some(),
            "ipv6" => TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok(),
            "recordings" => raw_recordings(repository).is_dir(),
            "python" => runs(Command::new("python3").args(["-c", "import ensurepip, venv"])),
            _ => go().is_some(),
        }
    }

    /// Whether `WITHOUT` or `WITH`, a list with commas, names it.
    pub fn is_named(&self, names: &str) -> bool {
        names.split(',').any(|name| name.trim().replace('-', "_") == self.name)
    }
}

/// The folder of the programs that `tests/kube/build.sh` or `tests/helm/build.sh` has built.
///
/// # Errors
/// They are not built; what to do about it.
pub fn built(repository: &Path, name: &str) -> Result<PathBuf, String> {
    let script = repository.join("tests").join(name).join("build.sh");
    let answer = Command::new(&script).arg("--folder").output();
    let answer = answer.map_err(|error| format!("{} cannot be run ({error}); it needs bash", script.display()))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    match folder.join("complete").is_file() {
        true => Ok(folder),
        false => Err(format!("{} has no programs; run tests/{name}/build.sh", folder.display())),
    }
}

/// What the recorder of the original wrote, a folder for each case of `tests/golden`.
pub fn raw_recordings(repository: &Path) -> PathBuf {
    let named = env::var_os("ORANGERY_RECORDINGS").map(PathBuf::from);
    named.unwrap_or_else(|| repository.join("../shared/golden"))
}

/// The folder of Go's programs; it lies outside of the path on some machines.
pub fn go() -> Option<PathBuf> {
    let usual = PathBuf::from("/usr/local/go/bin/go");
    let go = on_path("go").or_else(|| Some(usual).filter(|file| file.is_file()))?;
    go.parent().map(Path::to_path_buf)
}

/// Where the path has a program.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// What to say of what is missing, with how many tests each leaves out; nothing where nothing is.
///
/// # Errors
/// Everything has to be tested, and `without` does not name all that is missing.
pub fn verdict(missing: &[(Need, usize)], everything: bool, without: &str) -> Result<String, String> {
    let unwanted: Vec<&Need> = missing.iter().map(|(need, _)| need).filter(|need| !need.is_named(without)).collect();
    if everything && !unwanted.is_empty() {
        let reasons: Vec<&str> = unwanted.iter().map(|need| need.reason).collect();
        let names: Vec<&str> = unwanted.iter().map(|need| need.name).collect();
        return Err(format!(
            "with CI set nothing is left out, and this machine does not have what a test {}; get it, or say WITHOUT={}",
            reasons.join(", what a test "),
            names.join(","),
        ));
    }
    let lines: String = missing.iter().map(|(need, count)| format!("  {count} × {}\n", need.reason)).collect();
    let all: usize = missing.iter().map(|(_, count)| count).sum();
    Ok(if lines.is_empty() { lines } else { format!("LEFT OUT here, and counted as ignored: {all} tests\n{lines}") })
}
