//! Which signatures hold: whether everything needs one, and the keys of the administrator (C-47, C-75).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// What has to be signed, and by whose keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignatureRules {
    /// Whether everything needs a signature that holds by one of `trustedKeys`: blueprints, deploy items, which have to come out
    /// of such a blueprint, and what items read in registries, which is named by the signed component version or by its
    /// digest. Of components of the operator the registration has to name the digest. Else a signature counts where an
    /// Installation asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Keys of signatures. Where there are any, keys that Contexts name do not count. The first entry that matches counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_keys: Option<Vec<TrustedKey>>,
}

/// A key that an administrator trusts. It stands in the policy itself: it is no secret, and nobody else can change it there
/// or between check and use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustedKey {
    /// Names of the component versions that it counts for, such as `github.com/acme/*`.
    #[serde(default = "any")]
    pub components: Vec<Pattern>,
    /// Names of the signatures that it counts for.
    #[serde(default = "Pattern::any")]
    pub signature: Pattern,
    /// The public key, in PEM.
    #[schemars(length(max = 16_384))]
    pub public_key: String,
}

fn any() -> Vec<Pattern> {
    vec![Pattern::any()]
}

impl TrustedKey {
    /// Whether it counts for a signature of a component version.
    pub(crate) fn counts_for(&self, component: &str, signature: &str) -> bool {
        self.signature.matches(signature) && self.components.iter().any(|pattern| pattern.matches(component))
    }

    /// Why it cannot be used: the end of a sentence that begins with its place.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.public_key.contains("PRIVATE KEY-----") {
            return Some("has a private key in publicKey; put the public one there, and replace the pair".to_owned());
        }
        let is_pem = self.public_key.trim_start().starts_with("-----BEGIN ");
        (!is_pem).then(|| "has no PEM in publicKey; put a public key there, from -----BEGIN to END".to_owned())
    }
}
