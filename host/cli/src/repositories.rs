//! Where component versions come from: the flags of `up`, `run` and `render`, and what is opened with them.

use std::{fs, io, path::PathBuf, sync::Arc};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orangery_core::{error::Fault, port::BoxFuture};
use orangery_ocm::{
    Artifacts, ComponentRequest, ComponentVersion, ComponentVersions, Credentials, RegistryComponent,
    RegistryComponentRequest, SignaturePolicy,
};
use orangery_plugin::{CacheShares, MemoryShares};
use orangery_registry::{Repositories, RepositorySettings, oci};
use tempfile::TempDir;

use crate::cache;

/// The flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Component versions")]
pub struct RepositoryFlags {
    /// Folder with the archives and folders that repository contexts may name; may be given several times
    #[arg(long = "components", value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// File with certificate authorities (PEM) of registries, beside those of this machine; may be given several times
    #[arg(long = "registry-ca", value_name = "FILE")]
    pub certificates: Vec<PathBuf>,
    /// Registry that may be asked without TLS, as HOST or HOST:PORT; may be given several times
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub plain_http: Vec<String>,
    /// Folder that keeps fetched content [default: in the cache of this user, else as long as the process]
    #[arg(long = "components-cache", value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// How much it keeps, in mebibytes; what was used longest ago makes room
    #[arg(long = "components-cache-size", value_name = "MIB", default_value_t = 2048)]
    pub cache_size: u64,
    /// Whether component versions have to be signed: every installation's, those that ask for it, or none
    #[arg(long, value_name = "POLICY", default_value = "DoNotEnforce", value_parser = signature_policy())]
    pub signature_policy: SignaturePolicy,
}

/// The three words, as the original's configuration has them.
fn signature_policy() -> impl TypedValueParser<Value = SignaturePolicy> {
    PossibleValuesParser::new(SignaturePolicy::ALL.map(SignaturePolicy::name)).map(|name| {
        let found = SignaturePolicy::ALL.into_iter().find(|policy| policy.name() == name);
        found.unwrap_or_default()
    })
}

/// Why component versions cannot be opened as the flags say.
#[derive(Debug, thiserror::Error)]
pub enum RepositoriesError {
    /// A file with certificate authorities.
    #[error("--registry-ca {}: {cause}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// A registry's name.
    #[error("--plain-http-registry {0}")]
    Registry(#[from] oci::NotAReference),
    /// No folder for the cache.
    #[error("there is no folder to keep fetched components in: {0}; name one with --components-cache FOLDER")]
    NoCache(#[source] io::Error),
    /// What is opened says it.
    #[error("{0}")]
    Unusable(Fault),
}

impl RepositoryFlags {
    /// Opens all repositories; `beside` are folders that count like those of `--components`, behind them.
    ///
    /// # Errors
    /// [`RepositoriesError`]
    pub fn open(&self, beside: &[PathBuf]) -> Result<Arc<dyn ComponentVersions>, RepositoriesError> {
        let (cache, temporary) = self.cache_folder()?;
        let folders = self.folders.iter().chain(beside).cloned().collect();
        let cache_bytes = self.cache_size.saturating_mul(1 << 20);
        let (oci, signatures) = (self.registries()?, self.signature_policy);
        let settings = RepositorySettings { folders, cache, cache_bytes, oci, signatures };
        let repositories = Repositories::new(settings).map_err(RepositoriesError::Unusable)?;
        Ok(Arc::new(OpenedRepositories { repositories, _temporary: temporary }))
    }

    /// The folder of the cache, and what removes it again where it is for now only.
    fn cache_folder(&self) -> Result<(PathBuf, Option<TempDir>), RepositoriesError> {
        if let Some(folder) = &self.cache {
            return Ok((folder.clone(), None));
        }
        let usual = cache::folder().map(|folder| folder.join("components"));
        if let Some(folder) = usual.filter(|folder| is_writable(folder)) {
            return Ok((folder, None));
        }
        let temporary = tempfile::Builder::new().prefix("orangery-components-").tempdir();
        let temporary = temporary.map_err(RepositoriesError::NoCache)?;
        Ok((temporary.path().to_owned(), Some(temporary)))
    }

    fn registries(&self) -> Result<oci::RegistrySettings, RepositoriesError> {
        let mut settings = registry_settings(&self.certificates, &self.plain_http)?;
        let CacheShares { blobs, component_versions, .. } = MemoryShares::of_machine().caches;
        (settings.limits.at_once, settings.limits.component_versions) = (blobs, component_versions);
        Ok(settings)
    }
}

/// How registries are reached, as flags say it.
///
/// # Errors
/// [`RepositoriesError::Certificates`] and [`RepositoriesError::Registry`]
pub(crate) fn registry_settings(
    certificates: &[PathBuf],
    plain_http: &[String],
) -> Result<oci::RegistrySettings, RepositoriesError> {
    let mut settings = oci::RegistrySettings::default();
    for path in certificates {
        let refused = |cause: String| RepositoriesError::Certificates { path: path.clone(), cause };
        let pem = fs::read(path).map_err(|error| refused(format!("it cannot be read: {error}")))?;
        settings = settings.with_certificates(&pem).map_err(refused)?;
    }
    for name in plain_http {
        settings.plain_http.insert(name.parse::<oci::Registry>()?.authority());
    }
    Ok(settings)
}

/// The folders of these paths: themselves, and those that files lie in. What they name may lie beside them.
pub fn folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let folder = |path: &PathBuf| {
        if path.is_dir() { Some(path.clone()) } else { path.parent().map(|parent| parent.join(".")) }
    };
    paths.iter().filter_map(folder).collect()
}

/// Whether files can be made in a folder, which is made where it is missing.
fn is_writable(folder: &std::path::Path) -> bool {
    fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).is_ok()
}

/// Repositories, and their cache as long as they live.
struct OpenedRepositories {
    repositories: Repositories,
    _temporary: Option<TempDir>,
}

impl ComponentVersions for OpenedRepositories {
    fn open<'a>(&'a self, request: &'a ComponentRequest) -> BoxFuture<'a, Result<Arc<dyn ComponentVersion>, Fault>> {
        self.repositories.open(request)
    }

    fn artifacts(&self, credentials: &Credentials) -> Result<Arc<dyn Artifacts>, Fault> {
        self.repositories.artifacts(credentials)
    }

    fn registry_component<'a>(
        &'a self,
        request: &'a RegistryComponentRequest,
    ) -> BoxFuture<'a, Result<RegistryComponent, Fault>> {
        self.repositories.registry_component(request)
    }

    fn signature_policy(&self) -> SignaturePolicy {
        self.repositories.signature_policy()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: RepositoryFlags,
    }

    fn opened(flags: &[&str]) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let cache = format!("--components-cache={}", folder.path().display());
        let line = ["x", &cache].into_iter().chain(flags.iter().copied());
        let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        line.flags.open(&[]).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn the_policy_of_signatures_reaches_the_client_of_requests() {
        let folder = tempfile::tempdir().unwrap();
        let cache = format!("--components-cache={}", folder.path().display());
        let policy = |flags: &[&str]| {
            let line = ["x", &cache].into_iter().chain(flags.iter().copied());
            let line = Line::try_parse_from(line).map_err(|error| error.kind())?;
            Ok(line.flags.open(&[]).expect("repositories").signature_policy())
        };
        assert_eq!(policy(&[]), Ok(SignaturePolicy::DoNotEnforce));
        assert_eq!(policy(&["--signature-policy", "Enforce"]), Ok(SignaturePolicy::Enforce));
        assert_eq!(policy(&["--signature-policy", "Disabled"]), Ok(SignaturePolicy::Disabled));
        assert_eq!(policy(&["--signature-policy", "never"]), Err(clap::error::ErrorKind::InvalidValue));
    }

    #[test]
    fn what_the_flags_name_must_be_usable() {
        let folder = tempfile::tempdir().unwrap();
        let (missing, empty) = (folder.path().join("missing.pem"), folder.path().join("empty.pem"));
        fs::write(&empty, "").unwrap();
        let ca = |path: &std::path::Path| opened(&["--registry-ca", path.to_str().unwrap()]).unwrap_err();
        assert!(ca(&missing).starts_with(&format!("--registry-ca {}: it cannot be read: ", missing.display())));
        let expected = format!("--registry-ca {}: there is no certificate in it; ", empty.display());
        assert!(ca(&empty).starts_with(&expected), "{}", ca(&empty));
        let refused = opened(&["--plain-http-registry", "a/b"]).unwrap_err();
        assert!(refused.starts_with("--plain-http-registry \"a/b\" is no reference to an OCI registry: "), "{refused}");
        assert!(opened(&["--components", missing.to_str().unwrap()]).is_err());
        assert_eq!(opened(&["--plain-http-registry", "R.example:5000"]), Ok(()));
    }
}
