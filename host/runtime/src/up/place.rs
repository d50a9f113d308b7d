//! Where a server keeps what it keeps, and where its kubeconfig lies.

use std::{
    env, fmt, fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{self, Path, PathBuf},
    process,
};

use orangery_cli::Up;
use orangery_embedded::Storage;

use super::UpError;

/// The data folder of an `up` that names none, in the current folder.
const DATA: &str = ".orangery";

/// Where a server keeps what it keeps.
#[derive(Debug)]
pub(super) struct ServerLocation {
    /// `None` keeps everything in memory.
    data: Option<PathBuf>,
    kubeconfig: PathBuf,
}

impl ServerLocation {
    /// The data folder, or memory. The kubeconfig lies in the data folder; for a server in memory, in a private folder
    /// under `XDG_RUNTIME_DIR` or the folder for temporary files, removed with the value.
    pub(super) fn choose(arguments: &Up) -> Result<Self, UpError> {
        if arguments.ephemeral {
            let base = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
            let folder = base.join(format!("orangery-{}", process::id()));
            private(&folder)?;
            return Ok(Self { data: None, kubeconfig: folder.join("kubeconfig") });
        }
        let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from(DATA));
        let data = path::absolute(&data).map_err(|source| UpError::Write { path: data, source })?;
        private(&data)?;
        Ok(Self { kubeconfig: data.join("kubeconfig"), data: Some(data) })
    }

    pub(super) fn storage(&self) -> Storage {
        self.data.clone().map_or(Storage::Memory, Storage::Folder)
    }

    /// The file that `kubectl` needs.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Writes the kubeconfig, for this user only.
    pub(super) fn write_kubeconfig(&self, text: &str) -> Result<(), UpError> {
        let unwritable = |source| UpError::Write { path: self.kubeconfig.clone(), source };
        // Written beside and renamed: the mode of an older file does not matter, and nobody reads half of it.
        let beside = self.kubeconfig.with_extension("new");
        remove(&beside).map_err(unwritable)?;
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(unwritable)?;
        file.write_all(text.as_bytes()).map_err(unwritable)?;
        fs::rename(&beside, &self.kubeconfig).map_err(unwritable)
    }
}

impl fmt::Display for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            Some(data) => write!(f, "data in {}", data.display()),
            None => f.write_str("everything in memory"),
        }
    }
}

impl Drop for ServerLocation {
    fn drop(&mut self) {
        if self.data.is_none()
            && let Some(folder) = self.kubeconfig.parent()
        {
            // A leftover in a folder for temporary files; its token is worth nothing by now.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// A folder for this user only, where it does not exist yet.
fn private(folder: &Path) -> Result<(), UpError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| UpError::Write { path: folder.to_owned(), source })
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;
    use orangery_cli::{Cli, Command};

    use super::*;

    fn place(arguments: &[&str]) -> ServerLocation {
        match Cli::try_parse_from([&["orangery", "up"], arguments].concat()).unwrap().command {
            Command::Up(up) => ServerLocation::choose(&up).unwrap(),
            Command::Run(_) | Command::Plan(_) | Command::Tool(_) => unreachable!("the command is up"),
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_kubeconfig_is_for_this_user_only_and_lies_in_the_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("state");
        let place = place(&["--data", data.to_str().unwrap()]);
        fs::write(data.join("kubeconfig"), "older").unwrap();
        place.write_kubeconfig("newer").unwrap();
        assert_eq!(place.kubeconfig(), data.join("kubeconfig"));
        assert_eq!(fs::read_to_string(place.kubeconfig()).unwrap(), "newer");
        assert_eq!((mode(place.kubeconfig()), mode(&data)), (0o600, 0o700));
        drop(place);
        assert!(data.join("kubeconfig").exists());
    }

    #[test]
    fn the_kubeconfig_of_a_server_in_memory_goes_with_it() {
        let place = place(&["--ephemeral"]);
        place.write_kubeconfig("text").unwrap();
        let file = place.kubeconfig().to_owned();
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        drop(place);
        assert!(!file.parent().unwrap().exists());
    }

    #[test]
    fn a_data_folder_that_cannot_be_made_is_named_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let message = private(&file.join("state")).unwrap_err();
        let path = file.join("state");
        let expected = format!(
            "{} cannot be written: Not a directory (os error 20); choose another --data folder, or make room and permissions",
            path.display()
        );
        assert_eq!((message.to_string(), message.exit()), (expected, orangery_cli::Exit::Usage));
    }
}
