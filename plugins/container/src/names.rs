//! What objects of a run are called, and the labels by which they are found.

use std::fmt::Write as _;

use orangery_sdk::Item;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::configuration::{DeployerConfiguration, GROUP};

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// The longest part of a pod's name that is the item's, so that what is named after the pod has room.
const LONGEST_ITEM: usize = 180;

/// How many letters of a hash make a name one of its own.
pub(crate) const HASH: usize = 10;

/// The first letters of the digest of a text.
pub(crate) fn hash(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()).iter().take(HASH / 2) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// A text of at most so many letters, with a hash of the whole at the end of one that was longer.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let begin: String = text.chars().take(longest - HASH - 1).collect();
    format!("{}-{}", begin.trim_end_matches(['-', '.', '_']), hash(text))
}

/// A value of a label.
pub(crate) fn label(text: &str) -> String {
    shortened(text, LONGEST_LABEL)
}

/// The label of the item's name.
pub(crate) fn item_name() -> String {
    format!("deployitem.{GROUP}/name")
}

/// The label of the item's namespace.
pub(crate) fn item_namespace() -> String {
    format!("deployitem.{GROUP}/namespace")
}

/// The label of the item's generation.
pub(crate) fn item_generation() -> String {
    format!("deployitem.{GROUP}/generation")
}

/// A label or an annotation of the deployer.
pub(crate) fn deployer_label(name: &str) -> String {
    format!("{GROUP}/{name}")
}

/// The name of the pod of a job. Another job, and the deletion, have another one.
pub(crate) fn pod(item: &Item, operation: &str) -> String {
    let hash = hash(&format!("{}/{}/{operation}", item.uid, item.job));
    format!("{}-{hash}", shortened(&item.name, LONGEST_ITEM))
}

/// The name of a Secret for a piece of the state that this job leaves.
pub(crate) fn state(item: &Item, operation: &str, number: u64) -> String {
    let hash = hash(&format!("{}/{}/{operation}", item.uid, item.job));
    format!("state-{}-{hash}-{number}", shortened(&format!("{}-{}", item.namespace, item.name), LONGEST_ITEM))
}

/// The labels of all that belongs to an item.
pub(crate) fn labels(item: &Item, deployer: &DeployerConfiguration) -> Map<String, Value> {
    Map::from_iter([
        (deployer_label("deployer-id"), json!(label(&deployer.identity))),
        (deployer_label("name"), json!(label(&item.name))),
        (item_name(), json!(label(&item.name))),
        (item_namespace(), json!(label(&item.namespace))),
    ])
}

/// What selects all that belongs to an item.
pub(crate) fn selector(item: &Item) -> String {
    format!("{}={},{}={}", item_name(), label(&item.name), item_namespace(), label(&item.namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn con_03_long_names_make_labels_and_stay_different() {
        let (a, b) = ("a".repeat(80), format!("{}b", "a".repeat(79)));
        assert_eq!((label(&a).len(), label("short")), (LONGEST_LABEL, "short".to_owned()));
        assert_ne!(label(&a), label(&b));
        assert_eq!(
            shortened(&format!("{}-x", "a".repeat(52)), 53),
            format!("{}-{}", "a".repeat(42), hash(&format!("{}-x", "a".repeat(52))))
        );
    }
}
