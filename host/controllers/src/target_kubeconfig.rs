//! Kubeconfigs of Targets, and whose they are.

use orangery_api::{convert::original, target::Target};
use orangery_core::name::ObjectName;
use orangery_reconcile::Key;

/// A kubeconfig by which a cluster is reached.
#[derive(Clone)]
pub(crate) struct TargetKubeconfig {
    /// As a client takes it.
    pub(crate) text: String,
    /// Whether the operator itself made it for the cluster that it runs in: that one is where it is, and nobody else chose its
    /// address (C-103).
    pub(crate) is_own: bool,
    /// Where it stands, as far as that is known.
    pub(crate) source: Option<KubeconfigSource>,
}

impl From<String> for TargetKubeconfig {
    /// One that others have written, whatever it names.
    fn from(text: String) -> Self {
        Self { text, is_own: false, source: None }
    }
}

/// Where a kubeconfig stands that may be written anew there.
#[derive(Clone, PartialEq)]
pub(crate) struct KubeconfigSource {
    /// The Target; of a copy, what it is a copy of (C-171).
    pub(crate) target: Key,
    /// The Secret behind it, and the key in that, which is empty for all of it.
    pub(crate) secret: Option<(Key, String)>,
}

impl KubeconfigSource {
    pub(crate) fn of(target: &Target) -> Self {
        let key = Key::of(target);
        let beside = |name: ObjectName| Key { name, ..key.clone() };
        let secret = target.spec.secret_ref.as_ref().filter(|_| !has_config(target));
        Self {
            target: original(target).map_or_else(|| key.clone(), |original| beside(original.into())),
            secret: secret.map(|secret| (beside(secret.name.as_str().into()), secret.key.clone())),
        }
    }
}

/// A cluster that has objects which are deleted, whatever has become of its Target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LeftCluster {
    /// Its uid, as the operator vouches for it.
    pub(crate) uid: String,
    /// The Secret with the kubeconfig that was kept of it, where that may be used.
    pub(crate) kept: Option<String>,
}

/// Whether a Target is what stands in it: a reference beside that counts for nothing.
pub(crate) fn has_config(target: &Target) -> bool {
    target.spec.config.as_ref().is_some_and(|config| !config.is_null())
}
