//! Reading annotations, labels and owners of any object.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use crate::{GROUP, annotation};

/// The value of the annotation [`annotation::OPERATION`] (`docs/wire.md` §2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Start a job at a root.
    Reconcile,
    /// End the running job.
    Interrupt,
    /// On a DeployItem: process it once, without an Execution.
    TestReconcile,
    /// A value without effect, such as the legacy `force-reconcile` and `abort`.
    Other(String),
}

impl From<&str> for Operation {
    fn from(text: &str) -> Self {
        match text {
            "reconcile" => Operation::Reconcile,
            "interrupt" => Operation::Interrupt,
            "test-reconcile" => Operation::TestReconcile,
            other => Operation::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Reconcile => "reconcile",
            Operation::Interrupt => "interrupt",
            Operation::TestReconcile => "test-reconcile",
            Operation::Other(text) => text,
        })
    }
}

/// What stands in an object's metadata for the controllers.
pub trait Marks: Resource {
    /// An annotation's value.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// A label's value.
    fn label(&self, key: &str) -> Option<&str>;
    /// Whether an annotation is `"true"`.
    fn flag(&self, key: &str) -> bool {
        self.annotation(key) == Some("true")
    }
    /// What is asked of the object.
    fn operation(&self) -> Option<Operation> {
        self.annotation(annotation::OPERATION).map(Operation::from)
    }
    /// The owners that are Installations, in the order in which they came.
    fn owner_installations(&self) -> impl Iterator<Item = &OwnerReference>;
    /// The name of the first of them, if any: the parent.
    fn parent_installation(&self) -> Option<&str>;
    /// Whether its deletion was asked for.
    fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }
    /// Whether it carries a finalizer.
    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.meta().finalizers.iter().flatten().any(|name| name == finalizer)
    }
}

impl<K: Resource> Marks for K {
    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations().get(key).map(String::as_str)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).map(String::as_str)
    }

    fn owner_installations(&self) -> impl Iterator<Item = &OwnerReference> {
        let of_group = |owner: &&OwnerReference| owner.api_version.split('/').next() == Some(GROUP);
        self.owner_references().iter().filter(move |owner| owner.kind == "Installation" && of_group(owner))
    }

    fn parent_installation(&self) -> Option<&str> {
        self.owner_installations().next().map(|owner| owner.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::installation::Installation;

    fn installation(metadata: serde_json::Value) -> Installation {
        serde_json::from_value(json!({"metadata": metadata, "spec": {"blueprint": {}}})).unwrap()
    }

    #[test]
    fn operations_keep_their_wire_form() {
        for text in ["reconcile", "interrupt", "test-reconcile", "force-reconcile"] {
            assert_eq!(Operation::from(text).to_string(), text);
        }
        assert_eq!(Operation::from("abort"), Operation::Other("abort".to_owned()));
    }

    #[test]
    fn a_root_is_an_installation_that_no_installation_owns() {
        let owner = |kind: &str, group: &str| {
            installation(json!({"ownerReferences": [
                {"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "name": "up", "uid": "u"}]}))
        };
        assert_eq!(owner("Installation", GROUP).parent_installation(), Some("up"));
        assert!(!owner("Installation", GROUP).is_root());
        assert!(owner("Installation", "example.org").is_root());
        assert!(owner("Application", GROUP).is_root());
        assert!(installation(json!({})).is_root());
    }

    #[test]
    fn only_the_text_true_sets_a_flag() {
        let marked = |value: &str| {
            installation(json!({"annotations": {(annotation::DELETE_WITHOUT_UNINSTALL): value}}))
                .flag(annotation::DELETE_WITHOUT_UNINSTALL)
        };
        assert!(marked("true"));
        assert!(!marked("false") && !marked(""));
    }
}
