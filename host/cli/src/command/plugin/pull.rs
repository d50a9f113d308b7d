//! `orangery plugin pull`: a component out of a registry.

use std::{fs, path::PathBuf};

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
  orangery plugin pull registry.example/team/mine:1.0.0 mine.wasm
  orangery plugin pull registry.example/team/mine:1.0.0 mine.wasm --key plugin.pub

With --key, one of the keys has to have signed it, else nothing is written. A tag is asked for once: what was verified is what
is written, also where the tag moves meanwhile. Artifacts in the older layout, with one layer
application/vnd.wasm.content.layer.v1+wasm, are read as well.";

/// Pulls a component from a registry, and prints its reference by digest.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginPull {
    /// Which one, such as registry.example/team/mine:1.0.0 or registry.example/team/mine@sha256:…
    pub reference: String,
    /// The file that is written (.wasm)
    pub file: PathBuf,
    /// A public key (PEM) that has to have signed it; of several one is enough
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryFlags,
}

impl PluginPull {
    /// Writes the file when all of it is checked.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let reference: ArtifactReference = self.reference.parse()?;
        let (keys, registry) = (public_keys(&self.key)?, self.registry.open()?);
        let components = registry.components();
        let found = components.find(&reference).await.map_err(CommandError::Registry)?;
        if !keys.is_empty() {
            components.verify(&found, &keys).await.map_err(CommandError::Registry)?;
        }
        let bytes = components.read(&found).await.map_err(CommandError::Registry)?;
        let of = PathBuf::from(found.reference().to_string());
        orangery_plugin::inspect(&bytes).map_err(|cause| CommandError::Component { path: of, cause })?;
        fs::write(&self.file, bytes).map_err(|cause| CommandError::Write { path: self.file.clone(), cause })?;
        terminal.line(found.reference())?;
        Ok(Exit::Ok)
    }
}
