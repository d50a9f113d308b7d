//! `orangery plugin verify`: who has signed a component in a registry.

use std::path::PathBuf;

use clap::Args;
use orangery_registry::oci::ArtifactReference;

use crate::{
    command_error::CommandError,
    exit::Exit,
    registries::{RegistryFlags, public_keys},
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery plugin verify registry.example/team/mine:1.0.0 --key plugin.pub

Reads the signatures under the tag sha256-….sig and those that refer to the artifact, as `orangery plugin sign` and
`cosign sign --key` make them; no log is asked. Use the reference that is printed, which names what was verified: a tag may
move. The exit code is 1 where no key has signed it.";

/// Checks that one of the keys has signed a component, and prints its reference by digest.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginVerify {
    /// Which one, such as registry.example/team/mine:1.0.0
    pub reference: String,
    /// A public key (PEM) that has to have signed it; of several one is enough
    #[arg(long, value_name = "FILE", required = true)]
    pub key: Vec<PathBuf>,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryFlags,
}

impl PluginVerify {
    /// Verifies.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let reference: ArtifactReference = self.reference.parse()?;
        let (keys, registry) = (public_keys(&self.key)?, self.registry.open()?);
        let components = registry.components();
        let found = components.find(&reference).await.map_err(CommandError::Registry)?;
        components.verify(&found, &keys).await.map_err(CommandError::Registry)?;
        terminal.line(found.reference())?;
        Ok(Exit::Ok)
    }
}
