//! Where a server keeps what it keeps, and where its kubeconfig lies.

use std::{
    env, fmt, fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{self, Path, PathBuf},
};

use orangery_cli::Up;
use orangery_embedded::Storage;
use tempfile::TempDir;

use super::{UpError, planted};

/// The data folder of an `up` that names none, in the current folder.
const DATA: &str = ".orangery";

/// Where a server keeps what it keeps.
#[derive(Debug)]
pub(super) enum ServerLocation {
    /// Everything is in this folder, and stays.
    Data(PathBuf),
    /// Everything is in memory; the folder has the kubeconfig, and goes with the value.
    Private(TempDir),
}

impl ServerLocation {
    /// The data folder, or memory. The kubeconfig lies in the data folder; for a server in memory, in a private folder
    /// under `XDG_RUNTIME_DIR` or the folder for temporary files, removed with the value.
    pub(super) fn choose(arguments: &Up) -> Result<Self, UpError> {
        if arguments.ephemeral {
            let base = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
            return Self::in_memory(&base);
        }
        let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from(DATA));
        let data = path::absolute(&data).map_err(|source| UpError::Write { path: data, source })?;
        planted::check(&data)?;
        private(&data)?;
        Ok(Self::Data(data))
    }

    /// A folder of its own below this one, for a server in memory. Nobody knows its name before, and what somebody else has laid
    /// there is never taken.
    fn in_memory(base: &Path) -> Result<Self, UpError> {
        let made = tempfile::Builder::new().prefix("orangery-").permissions(owner_only()).tempdir_in(base);
        made.map(Self::Private).map_err(|source| UpError::Write { path: base.to_owned(), source })
    }

    /// The folder that is still there after the process.
    pub(super) fn lasting(&self) -> Option<PathBuf> {
        match self {
            Self::Data(data) => Some(data.clone()),
            Self::Private(_) => None,
        }
    }

    pub(super) fn storage(&self) -> Storage {
        match self {
            Self::Data(data) => Storage::Folder(data.clone()),
            Self::Private(_) => Storage::Memory,
        }
    }

    /// The file that `kubectl` needs.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        let folder = match self {
            Self::Data(data) => data,
            Self::Private(folder) => folder.path(),
        };
        folder.join("kubeconfig")
    }

    /// Writes the kubeconfig, for this user only.
    pub(super) fn write_kubeconfig(&self, text: &str) -> Result<(), UpError> {
        let kubeconfig = self.kubeconfig();
        let unwritable = |source| UpError::Write { path: kubeconfig.clone(), source };
        // Written beside and renamed: the mode of an older file does not matter, and nobody reads half of it.
        let beside = kubeconfig.with_extension("new");
        remove(&beside).map_err(unwritable)?;
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(unwritable)?;
        file.write_all(text.as_bytes()).map_err(unwritable)?;
        fs::rename(&beside, &kubeconfig).map_err(unwritable)
    }
}

impl fmt::Display for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(data) => write!(f, "data in {}", data.display()),
            Self::Private(_) => f.write_str("everything in memory"),
        }
    }
}

/// A folder for this user only: made where it is absent, closed to others where it is open to them.
fn private(folder: &Path) -> Result<(), UpError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let closed = made.and_then(|()| fs::metadata(folder)).and_then(|found| {
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(format!("it belongs to user {}, not to you", found.uid())));
        }
        if found.mode() & 0o077 == 0 { Ok(()) } else { fs::set_permissions(folder, owner_only()) }
    });
    closed.map_err(|source| UpError::Write { path: folder.to_owned(), source })
}

fn owner_only() -> fs::Permissions {
    fs::Permissions::from_mode(0o700)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use orangery_cli::{Cli, Command};

    use super::*;

    fn place(arguments: &[&str]) -> ServerLocation {
        match Cli::try_parse_from([&["orangery", "up"], arguments].concat()).unwrap().command {
            Command::Up(up) => ServerLocation::choose(&up).unwrap(),
            Command::Run(_)
            | Command::Plan(_)
            | Command::Rollback(_)
            | Command::Explain(_)
            | Command::Drift(_)
            | Command::Container(_)
            | Command::Tool(_) => {
                unreachable!("the command is up")
            }
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
        assert_eq!((mode(&place.kubeconfig()), mode(&data)), (0o600, 0o700));
        drop(place);
        assert!(data.join("kubeconfig").exists());
    }

    #[test]
    fn the_kubeconfig_of_a_server_in_memory_goes_with_it() {
        let place = place(&["--ephemeral"]);
        place.write_kubeconfig("text").unwrap();
        let file = place.kubeconfig();
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        drop(place);
        assert!(!file.parent().unwrap().exists());
    }

    #[test]
    fn a_data_folder_that_is_open_to_others_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("state");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
        let _place = place(&["--data", data.to_str().unwrap()]);
        assert_eq!(mode(&data), 0o700);
    }

    /// Whoever can write to the same folder lays folders and links there, under every name that could be guessed.
    #[test]
    fn a_server_in_memory_writes_to_nothing_that_somebody_has_laid_there() {
        let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let process = format!("orangery-{}", std::process::id());
        std::os::unix::fs::symlink(elsewhere.path(), base.path().join("orangery")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), base.path().join(&process)).unwrap();
        fs::create_dir(base.path().join("orangery-0")).unwrap();
        let laid = |folder: &Path| fs::read_dir(folder).unwrap().count();
        let place = ServerLocation::in_memory(base.path()).unwrap();
        place.write_kubeconfig("text").unwrap();
        assert_eq!((laid(elsewhere.path()), laid(&base.path().join("orangery-0"))), (0, 0));
        let folder = place.kubeconfig().parent().unwrap().to_owned();
        assert_eq!((folder.parent(), mode(&folder)), (Some(base.path()), 0o700));
        assert!(!fs::symlink_metadata(&folder).unwrap().is_symlink());
        // One that could not be guessed by counting either.
        let name = folder.file_name().unwrap().to_str().unwrap().trim_start_matches("orangery-").to_owned();
        assert!(name.len() >= 6 && name.parse::<u32>().is_err(), "{name}");
    }

    #[test]
    fn two_servers_in_memory_share_no_folder_and_take_none_that_is_there() {
        let (one, two) = (place(&["--ephemeral"]), place(&["--ephemeral"]));
        assert_ne!(one.kubeconfig(), two.kubeconfig());
        let folder = one.kubeconfig().parent().unwrap().file_name().unwrap().to_owned();
        assert_ne!(folder.to_str(), Some(format!("orangery-{}", std::process::id()).as_str()));
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
