//! References to WebAssembly components in OCI registries, each with the digest that decides.

use std::{fmt, str::FromStr};

const SCHEME: &str = "oci://";
const DIGEST: &str = "sha256:";

/// An artifact of an OCI registry that cannot change: `oci://registry/repository@sha256:…`, with or without a tag before
/// the digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentReference {
    /// The registry's host, with its port where one is given, such as `ghcr.io` or `localhost:5000`.
    pub registry: String,
    /// The path below the registry, such as `acme/render`.
    pub repository: String,
    /// The tag. It is for people: the digest decides.
    pub tag: Option<String>,
    /// `sha256:` and 64 hexadecimal digits, of the artifact's manifest.
    pub digest: String,
}

impl fmt::Display for ComponentReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, tag, digest } = self;
        let tag = tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        write!(f, "{SCHEME}{registry}/{repository}{tag}@{digest}")
    }
}

/// Why a text names no component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentReferenceError {
    /// Another form.
    #[error(
        "{0:?} names no component; write `oci://registry/repository@sha256:…`, or name a file of the blueprint with `file`"
    )]
    Form(String),
    /// What stands behind it may change.
    #[error(
        "{0:?} has no digest; append `@sha256:…` of the artifact's manifest, so that nobody can change the component behind it"
    )]
    NoDigest(String),
    /// The digest is none.
    #[error(
        "{0:?} has a digest that is not `sha256:` and 64 hexadecimal digits in lower case; copy it from the registry"
    )]
    Digest(String),
}

impl FromStr for ComponentReference {
    type Err = ComponentReferenceError;

    fn from_str(text: &str) -> Result<Self, ComponentReferenceError> {
        let display = || text.chars().take(300).collect::<String>();
        let form = || ComponentReferenceError::Form(display());
        let rest = text.trim().strip_prefix(SCHEME).ok_or_else(form)?;
        let (place, digest) = rest.split_once('@').ok_or_else(|| ComponentReferenceError::NoDigest(display()))?;
        let hex = digest.strip_prefix(DIGEST).unwrap_or_default();
        if hex.len() != 64 || !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(ComponentReferenceError::Digest(display()));
        }
        let (registry, path) = place.split_once('/').ok_or_else(form)?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !is_registry(registry) || !repository.split('/').all(is_path_part) || !tag.is_none_or(is_tag) {
            return Err(form());
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.to_owned(),
        })
    }
}

/// A host name or address, with or without a port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.trim_start_matches(':'))),
            None => return false,
        },
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let in_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    let is_host = !host.is_empty() && !host.starts_with(['.', '-']) && host.bytes().all(in_host);
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// A part of a repository's path: lower case, digits, and single separators between them.
fn is_path_part(part: &str) -> bool {
    let ends = [part.bytes().next(), part.bytes().next_back()];
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    ends.iter().all(|end| end.is_some_and(is_word))
        && part.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'_' | b'-'))
        && !part.contains("..")
}

fn is_tag(tag: &str) -> bool {
    let begins = tag.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    begins
        && tag.len() <= 128
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}
