//! `orangery plugin compile`: fills the cache of compiled components.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use orangery_plugin::{Sandbox, SandboxConfig, WorkerCommand, unpack};

use crate::{
    cache,
    command_error::CommandError,
    exit::Exit,
    terminal::{self, Terminal},
};

const EXAMPLES: &str = "\
Examples:
  orangery plugin compile                               into the cache of this user
  orangery plugin compile --into /var/cache/orangery    into that of an image

The host compiles what the cache lacks at first use, so this only moves work: to the build of an image. The engines
GoTemplate and Spiff are the large ones.
A cache serves the host that filled it, on every processor of the same architecture.";

/// Compiles the components that ship with the host into the cache, so that their first use need not.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Compile {
    /// The cache's folder, which everybody may read then [default: $XDG_CACHE_HOME/orangery or ~/.cache/orangery]
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
    /// Compile in this process, which nothing bounds then: where an emulator runs it, which starts no program of another processor
    #[arg(long)]
    pub in_process: bool,
}

impl Compile {
    /// Compiles what the cache lacks, and prints the files.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        // That of a user is for that user alone; one that is named is filled for an operator that runs as somebody else.
        let is_for_others = self.into.is_some();
        let cache = self.into.or_else(cache::folder).ok_or(CommandError::NoCache)?;
        if is_for_others {
            fs::create_dir_all(&cache).map_err(|cause| CommandError::Write { path: cache.clone(), cause })?;
        }
        let worker = WorkerCommand::current_exe().map_err(CommandError::Program)?;
        let config = SandboxConfig { notice: terminal::notice, ..SandboxConfig::new(worker, Some(cache.clone())) };
        let sandbox = Sandbox::start(config)?;
        for builtin in orangery_builtin::components() {
            match builtin.component {
                Ok((packed, size, _)) => {
                    let bytes = unpack(packed, size)?;
                    let file = match self.in_process {
                        true => sandbox.fill_cache_in_process(&bytes).await?,
                        false => sandbox.fill_cache(builtin.name, &bytes).await?,
                    };
                    terminal.line(format_args!("{}  {}", builtin.name, file.display()))?;
                }
                Err(sentence) => terminal.warning(sentence),
            }
        }
        if is_for_others {
            readable(&cache).map_err(|cause| CommandError::Write { path: cache, cause })?;
        }
        Ok(Exit::Ok)
    }
}

/// Lets everybody read a folder and the files in it, and nobody but its owner write to it (C-235).
fn readable(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o644))?;
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_235_what_is_compiled_for_an_image_is_read_by_everybody_and_written_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.cwasm");
        fs::write(&file, "code").unwrap();
        for (path, mode) in [(file.as_path(), 0o600), (folder.path(), 0o700)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        readable(folder.path()).unwrap();
        let modes =
            [file.as_path(), folder.path()].map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
        assert_eq!(modes, [0o644, 0o755]);
    }
}
