//! Which signatures hold: whether everything needs one, and the keys and identities that the administrator trusts (C-47, C-48,
//! C-75).

use std::borrow::Cow;

use orangery_ocm::{KeylessSigner, SignerIdentity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pattern::Pattern;

/// The most bytes of a trusted root; that of the public instance has 7 KiB.
const MOST_OF_A_TRUSTED_ROOT: usize = 65_536;

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
    /// Keys of signatures, and signers without a key. Where there are any, keys that Contexts name do not count. The first entry
    /// that matches counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_keys: Option<Vec<TrustedKey>>,
}

/// A key that an administrator trusts, or an identity that signs without one: exactly one of `publicKey` and `keyless`. It stands
/// in the policy itself: it is no secret, and nobody else can change it there or between check and use.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16_384))]
    pub public_key: Option<String>,
    /// A signer without a key of its own, by Sigstore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyless: Option<KeylessRule>,
}

/// A signer without a key of its own: an identity that got a certificate of an authority of Sigstore. Exactly one of `identity`
/// and `identityExpression`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeylessRule {
    /// The OpenID Connect issuer that knows the identity, exactly, such as `https://token.actions.githubusercontent.com`.
    #[schemars(length(min = 1, max = 512))]
    pub issuer: String,
    /// The identity: a URI, such as that of a workflow with its ref, or an email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Pattern>,
    /// The same as a regular expression, which the whole identity has to match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub identity_expression: Option<String>,
    /// The trusted root of the instance of Sigstore, in JSON (`application/vnd.dev.sigstore.trustedroot+json`). Nobody is asked
    /// for another one: what it does not have does not count.
    #[schemars(length(max = MOST_OF_A_TRUSTED_ROOT))]
    pub trusted_root: String,
}

/// By what a signature is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedSigner<'p> {
    /// By a public key in PEM.
    PublicKey(&'p str),
    /// By the identity that made it.
    Keyless(&'p KeylessRule),
}

impl TrustedSigner<'_> {
    /// What is the same for the same signer alone.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::PublicKey(pem) => Cow::Borrowed(pem.trim()),
            Self::Keyless(rule) => Cow::Owned(serde_json::to_string(rule).unwrap_or_default()),
        }
    }
}

fn any() -> Vec<Pattern> {
    vec![Pattern::any()]
}

impl TrustedKey {
    /// Whether it counts for a signature of a component version.
    pub(crate) fn counts_for(&self, component: &str, signature: &str) -> bool {
        self.signature.matches(signature) && self.components.iter().any(|pattern| pattern.matches(component))
    }

    /// By what it is verified; `None` where it is not said, or twice.
    pub(crate) fn signer(&self) -> Option<TrustedSigner<'_>> {
        match (&self.public_key, &self.keyless) {
            (Some(pem), None) => Some(TrustedSigner::PublicKey(pem)),
            (None, Some(rule)) => Some(TrustedSigner::Keyless(rule)),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// Its patterns.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        let identity = self.keyless.iter().filter_map(|rule| rule.identity.as_ref());
        self.components.iter().chain([&self.signature]).chain(identity)
    }

    /// Why it cannot be used: the end of a sentence that begins with its place.
    pub(crate) fn fault(&self) -> Option<String> {
        match self.signer() {
            None => Some("has to have exactly one of publicKey and keyless".to_owned()),
            Some(TrustedSigner::Keyless(rule)) => rule.fault(),
            Some(TrustedSigner::PublicKey(pem)) if pem.contains("PRIVATE KEY-----") => {
                Some("has a private key in publicKey; put the public one there, and replace the pair".to_owned())
            }
            Some(TrustedSigner::PublicKey(pem)) => {
                let is_pem = pem.trim_start().starts_with("-----BEGIN ");
                (!is_pem).then(|| "has no PEM in publicKey; put a public key there, from -----BEGIN to END".to_owned())
            }
        }
    }
}

impl KeylessRule {
    /// The signer that is trusted; `None` where that is not said, or twice.
    pub fn signer(&self) -> Option<KeylessSigner> {
        let identity = match (&self.identity, &self.identity_expression) {
            (Some(pattern), None) => SignerIdentity::Pattern(pattern.as_str().to_owned()),
            (None, Some(expression)) => SignerIdentity::Expression(expression.clone()),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(KeylessSigner { issuer: self.issuer.clone(), identity, trusted_root: self.trusted_root.clone() })
    }

    fn fault(&self) -> Option<String> {
        let Some(signer) = self.signer() else {
            return Some("has to have exactly one of keyless.identity and keyless.identityExpression".to_owned());
        };
        if self.issuer.is_empty() {
            return Some(
                "has no keyless.issuer; name who knows the identity, such as https://accounts.google.com".to_owned(),
            );
        }
        if let Some(why) = signer.identity.fault() {
            return Some(format!("has a keyless.identityExpression that {why}"));
        }
        if self.trusted_root.len() > MOST_OF_A_TRUSTED_ROOT {
            let size = self.trusted_root.len();
            return Some(format!("has a keyless.trustedRoot of {size} bytes; it may have {MOST_OF_A_TRUSTED_ROOT}"));
        }
        let root: Value = serde_json::from_str(&self.trusted_root).unwrap_or_default();
        let has_any = |field: &str| root.get(field).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let missing = ["certificateAuthorities", "ctlogs", "tlogs"].into_iter().find(|field| !has_any(field))?;
        Some(format!(
            "has a keyless.trustedRoot without {missing}; put the content of a trusted_root.json there, as `cosign trusted-root \
             create` makes it"
        ))
    }
}
