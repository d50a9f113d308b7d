//! The Go of this machine.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Error;

/// The oldest Go that builds the engines. One of 1.21 or later that may download toolchains gets it by itself.
pub(super) const OLDEST: &str = "1.26.0";

/// Where Go lies on machines whose path does not have it.
const USUAL: &str = "/usr/local/go/bin/go";

/// Variables by which a user's settings would change what is made. (Proxies and caches stay.)
const LEFT_OUT: &[&str] = &["CGO_ENABLED", "GOARCH", "GOEXPERIMENT", "GOFLAGS", "GOOS", "GOWASM", "GO111MODULE"];

/// A Go that is new enough.
pub(super) struct Go {
    pub(super) program: PathBuf,
    /// As `go env GOVERSION` says it.
    pub(super) version: String,
    /// The sources of its library.
    pub(super) library: PathBuf,
}

impl Go {
    /// Looks in the path and in the usual place. Asked from a module's folder, an older Go downloads the one it needs.
    pub(super) fn find(module: &Path) -> Result<Self, Error> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut places: Vec<PathBuf> = env::split_paths(&path).map(|folder| folder.join("go")).collect();
        places.push(USUAL.into());
        let Some(program) = places.into_iter().find(|place| place.is_file()) else {
            return Err(Error::NoGo { reason: "this machine has no Go".to_owned() });
        };
        let mut command = Command::new(&program);
        let done = command.current_dir(module).env("GOWORK", "off").args(["env", "GOVERSION", "GOROOT"]).output();
        let did_not_start = |source| Error::NoGo { reason: format!("{} did not start: {source}", program.display()) };
        let done = done.map_err(did_not_start)?;
        let message = String::from_utf8_lossy(&done.stdout).into_owned();
        let mut lines = message.lines().map(str::trim);
        let version = lines.next().unwrap_or_default().to_owned();
        let library = Path::new(lines.next().unwrap_or_default()).join("src");
        match minor(&version) {
            Some(26..) => Ok(Self { program, version, library }),
            Some(_) | None => Err(Error::NoGo { reason: format!("{} is {version}", program.display()) }),
        }
    }

    /// A command in a workspace.
    pub(super) fn command(&self, workspace: &Path) -> Command {
        let mut command = Command::new(&self.program);
        for name in LEFT_OUT {
            command.env_remove(name);
        }
        command.env("GOWORK", workspace);
        command
    }

    /// Downloads what the modules are made of, so that a machine without a network is told apart from a mistake.
    pub(super) fn download(&self, workspace: &Path, from: &Path) -> Result<(), Error> {
        let mut command = self.command(workspace);
        let done = command.current_dir(from).args(["mod", "download"]).output();
        let done = done.map_err(|source| Error::Start { program: self.program.clone(), source })?;
        if done.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&done.stderr);
        let reason = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("go said nothing");
        Err(Error::NoGo { reason: format!("the modules of Go could not be downloaded: {}", reason.trim()) })
    }
}

/// The 26 of `go1.26.8`.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("go1.")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_go_is_read_as_it_is_written() {
        let read = |version| minor(version);
        assert_eq!([read("go1.26.8"), read("go1.27rc1"), read("go1.21")], [Some(26), Some(27), Some(21)]);
        assert_eq!([read("devel +abc"), read(""), read("go2.0")], [None, None, None]);
    }
}
