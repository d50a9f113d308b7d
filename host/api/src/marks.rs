//! Reading annotations, labels and owners of any object.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use orangery_core::name::{NAME_LENGTH, label_value};

use crate::{GROUP, annotation, label};

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
    /// The data reference that a DataObject or Target stands for.
    fn data_key(&self) -> Option<&str> {
        whole(self.label(label::KEY), self.annotation(annotation::WHOLE_KEY))
    }
    /// The name that the item of a DeployItem has in its Execution.
    fn item_name(&self) -> Option<&str> {
        whole(self.label(label::ITEM_NAME), self.annotation(annotation::WHOLE_ITEM_NAME))
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
        // A server takes any name of an owner; where it is too long for one there is no such object (C-296).
        let is_ours = |owner: &&OwnerReference| {
            owner.api_version.split('/').next() == Some(GROUP) && owner.name.len() <= NAME_LENGTH
        };
        self.owner_references().iter().filter(move |owner| owner.kind == "Installation" && is_ours(owner))
    }

    fn parent_installation(&self) -> Option<&str> {
        self.owner_installations().next().map(|owner| owner.name.as_str())
    }
}

/// What a label stands for, and the annotation beside it, where the label has only the begin of it.
fn whole<'a>(label: Option<&'a str>, annotation: Option<&'a str>) -> Option<&'a str> {
    annotation.filter(|whole| label == Some(label_value(whole).as_str())).or(label)
}

/// Writes a name as a label, and beside it as an annotation where it cannot be the value of one (C-150); an empty one is
/// taken away.
pub fn set_name(metadata: &mut ObjectMeta, (label, annotation): (&str, &str), name: &str) {
    let value = label_value(name);
    if value != name {
        metadata.annotations.get_or_insert_default().insert(annotation.to_owned(), name.to_owned());
    } else if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(annotation);
    }
    let labels = metadata.labels.get_or_insert_default();
    if value.is_empty() {
        labels.remove(label);
    } else {
        labels.insert(label.to_owned(), value);
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
    fn c_150_a_name_that_can_be_no_label_is_read_as_it_was_written() {
        let (mut object, long) = (installation(json!({})), "x".repeat(64));
        for name in [long.as_str(), "short", "#odd", ""] {
            set_name(&mut object.metadata, (label::KEY, annotation::WHOLE_KEY), name);
            assert_eq!(object.data_key(), Some(name).filter(|name| !name.is_empty()));
            let is_whole = object.annotation(annotation::WHOLE_KEY).is_none();
            assert_eq!(is_whole, matches!(name, "short" | ""), "{name}");
        }
        // An annotation that somebody left beside another label says nothing; an object of the original has none.
        let odd = json!({"labels": {(label::ITEM_NAME): "a"}, "annotations": {(annotation::WHOLE_ITEM_NAME): "b"}});
        assert_eq!(installation(odd).item_name(), Some("a"));
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
