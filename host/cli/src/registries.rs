//! Registries as commands reach them: the flags, the credentials of whoever runs a command, and the keys of signatures.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use orangery_registry::{
    oci::{Client, CredentialsOwner, DockerConfig, Keyring},
    wasm::{ArtifactKey, WasmArtifacts},
};

use crate::{command_error::CommandError, repositories::registry_settings};

/// The flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Registry")]
pub struct RegistryFlags {
    /// File with credentials, as `docker login` writes it; programs that it names are not run [default:
    /// $DOCKER_CONFIG/config.json or ~/.docker/config.json, where there is one]
    #[arg(long = "registry-config", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// File with certificate authorities (PEM) of registries, beside those of this machine; may be given several times
    #[arg(long = "registry-ca", value_name = "FILE")]
    pub certificates: Vec<PathBuf>,
    /// Registry that may be asked without TLS, as HOST or HOST:PORT; may be given several times
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub plain_http: Vec<String>,
}

/// A client of registries with the credentials of whoever runs the command.
pub struct CommandRegistry {
    client: Client,
    keyring: Keyring,
}

impl CommandRegistry {
    /// The components of its registries.
    pub fn components(&self) -> WasmArtifacts<'_> {
        WasmArtifacts { client: &self.client, keyring: &self.keyring }
    }
}

impl RegistryFlags {
    /// Reads the files that the flags name. Nothing is asked yet.
    ///
    /// # Errors
    /// A file that cannot be read or used.
    pub fn open(&self) -> Result<CommandRegistry, CommandError> {
        let client = Client::new(registry_settings(&self.certificates, &self.plain_http)?);
        let client = client.map_err(CommandError::Registry)?;
        let usual = usual_config(env::var_os("DOCKER_CONFIG").as_deref(), env::var_os("HOME").as_deref());
        let keyring = match (&self.config, usual) {
            (Some(path), _) => with_config(path)?,
            (None, Some(path)) if path.is_file() => with_config(&path)?,
            (None, _) => Keyring::default(),
        };
        Ok(CommandRegistry { client, keyring: keyring.owned_by(CredentialsOwner::Command) })
    }
}

fn with_config(path: &Path) -> Result<Keyring, CommandError> {
    let text = fs::read_to_string(path).map_err(|cause| unread(path, cause))?;
    let config = DockerConfig::read(&text, &path.display().to_string()).map_err(CommandError::Registry)?;
    Ok(Keyring::default().with_docker_config(config))
}

/// Where docker keeps what `docker login` was told.
fn usual_config(folder: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let folder = folder.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Some(folder.or_else(|| Some(PathBuf::from(home?).join(".docker")))?.join("config.json"))
}

fn unread(path: &Path, cause: io::Error) -> CommandError {
    CommandError::Read { path: path.to_owned(), cause }
}

/// Reads public keys.
///
/// # Errors
/// A file that cannot be read, or has no public key that can be used.
pub fn public_keys(paths: &[PathBuf]) -> Result<Vec<ArtifactKey>, CommandError> {
    let read = |path: &PathBuf| {
        let pem = fs::read(path).map_err(|cause| unread(path, cause))?;
        ArtifactKey::read(&pem, &path.display().to_string()).map_err(CommandError::PublicKey)
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_258_credentials_are_those_of_docker() {
        let usual = |folder: &str, home: &str| usual_config(Some(folder.as_ref()), Some(home.as_ref()));
        assert_eq!(usual("/d", "/h"), Some(PathBuf::from("/d/config.json")));
        assert_eq!(usual("", "/h"), Some(PathBuf::from("/h/.docker/config.json")));
        assert_eq!(usual_config(None, None), None);
    }
}
