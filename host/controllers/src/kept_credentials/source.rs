//! Where kept credentials stand as their users write them: in a Target, or in the Secret behind it. By both they are found when these
//! go (C-190).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use orangery_api::marks::Marks as _;
use orangery_reconcile::Key;

use crate::{index::Index, stores::SecretMeta, target_kubeconfig::KubeconfigSource};

/// On a Secret with what was kept: namespace and name of the Target; of a copy, those of its original.
const TARGET: &str = "orangery.dev/kept-of-target";
/// The same of the Secret behind it.
const SECRET: &str = "orangery.dev/kept-of-secret";
/// The key in that one; empty for all of it.
const SECRET_KEY: &str = "orangery.dev/kept-of-secret-key";

/// What was kept, by the Target.
pub(super) static OF_TARGET: Index<SecretMeta> = Index { name: "kept-of-target", values: |kept| value(kept, TARGET) };
/// The same by the Secret.
pub(super) static OF_SECRET: Index<SecretMeta> = Index { name: "kept-of-secret", values: |kept| value(kept, SECRET) };

fn value(kept: &SecretMeta, annotation: &str) -> Vec<String> {
    kept.annotation(annotation).map(str::to_owned).into_iter().collect()
}

/// The annotations of what was kept; `None` for one that it has not.
pub(super) type Annotations = BTreeMap<&'static str, Option<String>>;

pub(super) fn annotations(source: &KubeconfigSource) -> Annotations {
    let secret = source.secret.as_ref();
    BTreeMap::from([
        (TARGET, Some(source.target.to_string())),
        (SECRET, secret.map(|(secret, _)| secret.to_string())),
        (SECRET_KEY, secret.map(|(_, key)| key.clone())),
    ])
}

/// Those that it has.
pub(super) fn present(annotations: Annotations) -> BTreeMap<String, String> {
    annotations.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Where what was kept stands, as far as its Secret says so.
pub(super) fn read(kept: &Secret) -> Option<KubeconfigSource> {
    let key = |annotation| {
        let (namespace, name) = kept.annotation(annotation)?.split_once('/')?;
        Some(Key::new(namespace, name))
    };
    let in_secret = kept.annotation(SECRET_KEY).map(str::to_owned);
    Some(KubeconfigSource { target: key(TARGET)?, secret: key(SECRET).zip(in_secret) })
}
