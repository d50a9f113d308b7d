//! Registries of the OCI distribution specification: pulling and pushing manifests and blobs, within limits and with credentials.
//!
//! Written on the HTTP client that the workspace has: `oci-client` 0.18 reads a manifest of any size into memory, follows
//! the proxies of the environment and hides `Retry-After`, and a registry is not to be trusted.

mod auth;
mod client;
mod connection;
mod content;
mod documents;
mod fetch_memory;
mod fetched;
mod file;
mod flight;
mod keyring;
pub mod manifest;
mod pause;
mod push;
mod reference;
mod referrers;
mod refusal;
mod settings;
mod versions;

pub(crate) use client::NoAnswer;
pub use client::{Client, Pull};
pub use content::{HeldMemory, ReservedContent};
pub use file::{FileRequest, ReceivedFile};
pub use flight::Flights;
pub use keyring::{Consumer, CredentialsOwner, DockerConfig, Keyring, OcmConfig, Resolver};
pub(crate) use manifest::read as manifest_document;
pub use manifest::{CHART, IMAGE_MANIFEST, Manifest, ManifestDocument, OciDescriptor, PROVENANCE};
pub use push::PushedManifest;
pub use reference::{ArtifactReference, ArtifactSelector, NotAReference, OciRepository, Registry, Scheme};
pub use referrers::Referrer;
pub use settings::{PullLimits, RegistrySettings};
pub(crate) use versions::{DescriptorLayer, component_repository, tag_of_version};
pub use versions::{FoundArtifact, RegistryVersions};
