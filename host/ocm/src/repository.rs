//! Repository contexts: where component versions are stored (`docs/wire.md` §10).

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use orangery_core::lenient::{self, DecodeError};

/// A repository of component versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repository {
    /// An OCI registry (`OCIRegistry`).
    Oci {
        /// Host and path, without a trailing slash, as written: `https://`, `http://` or nothing stands before it.
        base_url: String,
        /// What component names become in it.
        mapping: NameMapping,
    },
    /// A transport archive: a folder, a tar or a compressed tar archive (`CommonTransportFormat`).
    TransportArchive {
        /// The path.
        path: String,
    },
    /// One component version: a folder with `component-descriptor.yaml` and `blobs` (`ComponentArchive`).
    ComponentArchive {
        /// The path.
        path: String,
    },
    /// Landscaper's own: every file of a folder is a descriptor, `blobs` has their content (`local`).
    Local {
        /// The path.
        path: String,
    },
}

/// How the name of a component becomes the path of an OCI repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum NameMapping {
    /// The name itself.
    #[default]
    #[serde(rename = "urlPath")]
    UrlPath,
    /// The SHA-256 digest of the name.
    #[serde(rename = "sha256-digest")]
    Sha256Digest,
}

/// Why a repository context cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// A type that is not known.
    #[error(
        "the repository context has the type {found:?}; known are OCIRegistry, CommonTransportFormat, ComponentArchive and local"
    )]
    Type {
        /// The type.
        found: String,
    },
    /// Another form.
    #[error("the repository context has a wrong form: {0}")]
    Form(#[from] DecodeError),
    /// A field that must be there.
    #[error("the repository context of type {type_} has no {field}; set it")]
    Missing {
        /// The type.
        type_: String,
        /// The field.
        field: &'static str,
    },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RepositoryFields {
    #[serde(rename = "type")]
    type_: String,
    base_url: String,
    sub_path: String,
    component_name_mapping: Option<NameMapping>,
    file_path: String,
}

impl Repository {
    /// Reads a repository context.
    pub fn parse(context: &Value) -> Result<Self, RepositoryError> {
        let form: RepositoryFields = lenient::decode(context)?;
        let required = |value: String, field| {
            if value.is_empty() {
                Err(RepositoryError::Missing { type_: form.type_.clone(), field })
            } else {
                Ok(value)
            }
        };
        // The version of a type, as in `OCIRegistry/v1`, says nothing: there is one.
        match form.type_.split('/').next().unwrap_or_default() {
            "OCIRegistry" | "ociRegistry" | "oci" => {
                let base = required(form.base_url.clone(), "baseUrl")?;
                let path = form.sub_path.trim_matches('/');
                let base = base.trim_end_matches('/');
                let base_url = if path.is_empty() { base.to_owned() } else { format!("{base}/{path}") };
                Ok(Repository::Oci { base_url, mapping: form.component_name_mapping.unwrap_or_default() })
            }
            "CommonTransportFormat" | "ctf" => {
                Ok(Repository::TransportArchive { path: required(form.file_path.clone(), "filePath")? })
            }
            "ComponentArchive" => {
                Ok(Repository::ComponentArchive { path: required(form.file_path.clone(), "filePath")? })
            }
            // Without a path it is the configured folder itself.
            "local" => Ok(Repository::Local { path: form.file_path }),
            _ => Err(RepositoryError::Type { found: form.type_ }),
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repository::Oci { base_url, .. } => f.write_str(base_url),
            Repository::TransportArchive { path } => write!(f, "the transport archive {path}"),
            Repository::ComponentArchive { path } => write!(f, "the component archive {path}"),
            Repository::Local { path } => write!(f, "the local repository {path}"),
        }
    }
}
