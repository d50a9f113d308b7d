//! `orangery plugin compile`: fills the cache of compiled components.

use std::path::PathBuf;

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
    /// The cache's folder [default: $XDG_CACHE_HOME/orangery or ~/.cache/orangery]
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

impl Compile {
    /// Compiles what the cache lacks, and prints the files.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let cache = self.into.or_else(cache::folder).ok_or(CommandError::NoCache)?;
        let worker = WorkerCommand::current_exe().map_err(CommandError::Program)?;
        let config = SandboxConfig { notice: terminal::notice, ..SandboxConfig::new(worker, Some(cache)) };
        let sandbox = Sandbox::start(config)?;
        for builtin in orangery_builtin::components() {
            match builtin.component {
                Ok((packed, size, _)) => {
                    let file = sandbox.fill_cache(builtin.name, &unpack(packed, size)?).await?;
                    terminal.line(format_args!("{}  {}", builtin.name, file.display()))?;
                }
                Err(sentence) => terminal.warning(sentence),
            }
        }
        Ok(Exit::Ok)
    }
}
