//! Whether content is what a digest of a component descriptor names.
//!
//! Signatures cover the digest of a resource and not its access: whoever can write where a descriptor is kept chooses the
//! access. So a digest is compared with what the access gives, and where the two do not fit, nothing was compared.

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    lenient,
};
use orangery_ocm::{Digest, Resource};

use super::{Fetched, kind::Access};
use crate::image;

const GENERIC_BLOB: &str = "genericBlobDigest/v1";
const OCI_ARTIFACT: &str = "ociArtifactDigest/v1";
const EXCLUDED: &str = "EXCLUDE-FROM-SIGNATURE";

/// What comparing content with a digest ends with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// It is the content that the digest names.
    Same,
    /// It is another one, with this digest in hexadecimal digits.
    Other(String),
    /// Nothing was compared. The text is the end of a sentence that begins with the resource.
    NotCompared(String),
    /// It is said to be an archive of an artifact, and is none. The text is a sentence without its stop.
    Broken(String),
}

/// Compares content with the digest of its resource.
pub(super) fn compare(digest: Option<&Digest>, fetched: &Fetched) -> Comparison {
    let Some(digest) = digest else {
        return Comparison::NotCompared("has no digest in its component descriptor".to_owned());
    };
    let Some(algorithm) = algorithm(&digest.hash_algorithm) else {
        return Comparison::NotCompared(unknown(digest));
    };
    let found = match (digest.normalisation_algorithm.as_str(), fetched) {
        (GENERIC_BLOB, Fetched::Blob(content, _)) => Ok(ContentDigest::of(algorithm, &content.bytes)),
        (OCI_ARTIFACT, Fetched::Artifact { manifest, .. }) => Ok(manifest.artifact.clone()),
        (OCI_ARTIFACT, Fetched::Blob(content, _)) if image::is_archive(&content.media_type) => {
            match image::main_digest(&content.bytes) {
                Ok(main) => Ok(main),
                Err(why) => return Comparison::Broken(why),
            }
        }
        (GENERIC_BLOB, Fetched::Artifact { .. }) => Err(misfit(digest, "an artifact of a registry")),
        (OCI_ARTIFACT, Fetched::Blob(..)) => Err(misfit(digest, "a blob that is no archive of an artifact")),
        _ => Err(unknown(digest)),
    };
    match found {
        Ok(found) if found.algorithm() != algorithm => {
            let (own, other) = (algorithm.name(), found.algorithm().name());
            Comparison::NotCompared(format!("has a digest by {own}, but its access gives an artifact by {other}"))
        }
        Ok(found) if found.hex() == digest.value => Comparison::Same,
        Ok(found) => Comparison::Other(found.hex().to_owned()),
        Err(why) => Comparison::NotCompared(why),
    }
}

fn misfit(digest: &Digest, given: &str) -> String {
    format!("has a digest of kind {:?}, but its access gives {given}", digest.normalisation_algorithm)
}

fn unknown(digest: &Digest) -> String {
    format!("has a digest of kind {:?} by {:?}", digest.normalisation_algorithm, digest.hash_algorithm)
}

/// Whether its maker left the content of a resource out of signatures.
pub(crate) fn is_excluded(digest: &Digest) -> bool {
    digest.normalisation_algorithm == EXCLUDED
}

/// Whether the access itself names the content by this digest, of the kind that it gives: it cannot be another one.
pub(crate) fn is_told_by_access(resource: &Resource, digest: &Digest) -> bool {
    let Some(Ok(access)) = resource.access.as_ref().map(lenient::decode::<Access>) else { return false };
    let (Some(kind), Some(reference)) = (access.kind(), access.reference()) else { return false };
    let Some(algorithm) = algorithm(&digest.hash_algorithm) else { return false };
    let expected = format!("{}:{}", algorithm.name(), digest.value);
    match digest.normalisation_algorithm.as_str() {
        GENERIC_BLOB => !kind.is_artifact() && reference == expected,
        OCI_ARTIFACT => kind.is_artifact() && reference.ends_with(&format!("@{expected}")),
        _ => false,
    }
}

/// The hash of a name, as descriptors write it.
pub(crate) fn algorithm(name: &str) -> Option<Algorithm> {
    match name.to_ascii_lowercase().replace('-', "").as_str() {
        "sha256" => Some(Algorithm::Sha256),
        "sha512" => Some(Algorithm::Sha512),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
