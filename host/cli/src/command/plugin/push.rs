//! `orangery plugin push`: a component into a registry.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use jiff::Timestamp;
use orangery_registry::{
    oci::ArtifactReference,
    wasm::{ComponentFacts, SigningKey},
};

use crate::{command_error::CommandError, exit::Exit, registries::RegistryFlags, terminal::Terminal};

const HELP: &str = "\
Examples:
  orangery plugin push mine.wasm registry.example/team/mine:1.0.0
  orangery plugin push mine.wasm registry.example/team/mine:1.0.0 --sbom mine.spdx.json --sign plugin.key

What is no component that this host would load is not pushed. It is laid out as the CNCF has it for Wasm, so wkg and oras read
it: a config application/vnd.wasm.config.v0+json and one layer application/wasm. Documents refer to it. Pushing the same file
again makes the same artifact.
The reference by digest is printed: name it in a Plugin, and no tag that moves changes what runs.";

/// Pushes a component to a registry, and prints its reference by digest.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginPush {
    /// The component (.wasm)
    pub file: PathBuf,
    /// Where to, with a tag, such as registry.example/team/mine:1.0.0
    pub reference: String,
    /// A bill of materials: SPDX or CycloneDX in JSON; may be given several times
    #[arg(long, value_name = "FILE")]
    pub sbom: Vec<PathBuf>,
    /// A statement of where it comes from: in-toto in JSON, or in an envelope; may be given several times
    #[arg(long, value_name = "FILE")]
    pub provenance: Vec<PathBuf>,
    /// What is said about it, such as org.opencontainers.image.version=1.0.0; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = annotation)]
    pub annotation: Vec<(String, String)>,
    /// A private key to sign it with, as `orangery plugin sign` does
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryFlags,
}

fn annotation(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl PluginPush {
    /// Reads all files before anything is pushed.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let reference: ArtifactReference = self.reference.parse()?;
        let component = read(&self.file)?;
        let refused = |cause| CommandError::Component { path: self.file.clone(), cause };
        let inspection = orangery_plugin::inspect(&component).map_err(refused)?;
        inspection.check().map_err(refused)?;
        let facts = ComponentFacts {
            imports: inspection.imports,
            exports: inspection.exports,
            created: created(&self.file)?,
            annotations: self.annotation,
        };
        let documents: Vec<Vec<u8>> =
            self.sbom.iter().chain(&self.provenance).map(|path| read(path)).collect::<Result<_, _>>()?;
        let key = self.sign.as_deref().map(signing_key).transpose()?;
        let registry = self.registry.open()?;
        let components = registry.components();
        let pushed = components.push(&reference, component, &facts).await.map_err(CommandError::Registry)?;
        for document in documents {
            components.attach(&pushed, document).await.map_err(CommandError::Registry)?;
        }
        if let Some(key) = key {
            components.sign(&pushed, &key).await.map_err(CommandError::Registry)?;
        }
        terminal.line(pushed.reference())?;
        Ok(Exit::Ok)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|cause| CommandError::Read { path: path.to_owned(), cause })
}

/// When a file was made: what is pushed of it again is the same.
fn created(path: &Path) -> Result<String, CommandError> {
    let unread = |cause| CommandError::Read { path: path.to_owned(), cause };
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(unread)?;
    let modified = Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(Timestamp::from_second(modified.as_second()).unwrap_or(Timestamp::UNIX_EPOCH).to_string())
}

/// Reads a private key. Nothing of it is shown.
pub(in crate::command) fn signing_key(path: &Path) -> Result<SigningKey, CommandError> {
    let refused = |why| CommandError::Key { path: path.to_owned(), why };
    SigningKey::read(&read(path)?).map_err(refused)
}
