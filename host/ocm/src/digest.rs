//! Digests in descriptors, and those of component versions below (`nestedDigests`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A digest and how it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Digest {
    /// `SHA-256` or `SHA-512`.
    pub hash_algorithm: String,
    /// Such as `genericBlobDigest/v1`.
    pub normalisation_algorithm: String,
    /// In hexadecimal digits.
    pub value: String,
}

/// The digests of one component version below.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NestedDigests {
    /// The component.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Of its descriptor, all digests in it filled in.
    pub digest: Option<Digest>,
    /// Of its resources.
    pub resource_digests: Vec<ResourceDigest>,
}

/// The digest of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDigest {
    /// The resource.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What tells resources of one name apart.
    pub extra_identity: BTreeMap<String, String>,
    /// Of its content.
    pub digest: Digest,
}

impl NestedDigests {
    /// The digest of the resource with this identity.
    pub(super) fn of(&self, name: &str, version: &str, extra_identity: &BTreeMap<String, String>) -> Option<&Digest> {
        let is_same =
            |one: &&ResourceDigest| one.name == name && one.version == version && one.extra_identity == *extra_identity;
        self.resource_digests.iter().find(is_same).map(|one| &one.digest)
    }
}
