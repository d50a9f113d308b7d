//! `orangery plugin sign`: a signature beside a component in a registry.

use std::path::PathBuf;

use clap::Args;
use orangery_registry::oci::ArtifactReference;

use super::push::signing_key;
use crate::{command_error::CommandError, exit::Exit, registries::RegistryFlags, terminal::Terminal};

const HELP: &str = "\
Examples:
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out plugin.key
  openssl pkey -in plugin.key -pubout -out plugin.pub
  orangery plugin sign registry.example/team/mine@sha256:… --key plugin.key
  cosign verify --key plugin.pub --insecure-ignore-tlog registry.example/team/mine@sha256:…

The signature is what `cosign sign --key` makes, under the tag sha256-….sig; nothing is written to a log. A tag is asked for
once, and what it stands for then is signed: name the digest that `orangery plugin push` has printed, and nobody can put
something else under the tag before.";

/// Signs a component in a registry with a private key, and prints its reference by digest.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginSign {
    /// Which one, such as registry.example/team/mine@sha256:…
    pub reference: String,
    /// The private key: ECDSA on P-256, PKCS #8 in PEM
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryFlags,
}

impl PluginSign {
    /// Signs.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let reference: ArtifactReference = self.reference.parse()?;
        let (key, registry) = (signing_key(&self.key)?, self.registry.open()?);
        let components = registry.components();
        let found = components.find(&reference).await.map_err(CommandError::Registry)?;
        components.sign(&found, &key).await.map_err(CommandError::Registry)?;
        terminal.line(found.reference())?;
        Ok(Exit::Ok)
    }
}
