//! Registries of the OCI distribution specification: pulling manifests and blobs, within limits and with credentials.
//!
//! Written on the HTTP client that the workspace has: `oci-client` 0.18 reads a manifest of any size into memory, follows
//! the proxies of the environment and hides `Retry-After`, and a registry is not to be trusted.

mod auth;
mod client;
mod connection;
mod file;
mod flight;
mod keyring;
pub mod manifest;
mod pause;
mod reference;
mod refusal;
mod settings;
mod versions;

pub use client::{Client, Pull};
pub use file::{File, Got};
pub use flight::Flights;
pub use keyring::{Consumer, DockerConfig, Keyring, OcmConfig, Resolver};
pub(crate) use manifest::read as manifest_document;
pub use manifest::{CHART, Descriptor, Document, Manifest, PROVENANCE};
pub use reference::{NotAReference, Reference, Registry, Repository, Scheme, Selector};
pub use settings::{Limits, Settings};
pub use versions::{Found, Versions};
pub(crate) use versions::{Layer, tag_of_version};
