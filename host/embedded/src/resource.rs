//! What kind of objects are served, and how: the same description for built-in kinds and for custom ones.

use std::sync::Arc;

use crate::{crd::Schema, present::Column};

/// One resource of one API group, in all its versions.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Where its objects lie: `plural.group`, as messages name it too.
    pub(crate) shelf: Arc<str>,
    /// Served versions, the preferred one first.
    pub(crate) versions: Vec<Version>,
    pub(crate) origin: Origin,
}

/// Where a resource comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The table of built-in kinds.
    Builtin,
    /// A CustomResourceDefinition.
    Custom,
    /// A CustomResourceDefinition that is being deleted: nothing new is created.
    Terminating,
    /// Answers without storing anything, such as an access review.
    Answered,
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// Whether `/status` is its own subresource.
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    /// When `metadata.generation` grows.
    pub(crate) generation: Generation,
    pub(crate) columns: Arc<[Column]>,
    pub(crate) schema: Option<Arc<Schema>>,
}

/// When `metadata.generation` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    Never,
    /// With every change of `spec`.
    Spec,
    /// With every change outside of `metadata`, and outside of `status` where that is a subresource.
    Content,
}

/// Where a scalable kind keeps its numbers, as dotted paths with a leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: String,
}

/// A resource at one of its versions: what a request path names.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) resource: Arc<Resource>,
    index: usize,
}

impl Served {
    /// The resource at a version; none if that is not served.
    pub(crate) fn new(resource: &Arc<Resource>, version: &str) -> Option<Self> {
        let index = resource.versions.iter().position(|candidate| candidate.name == version)?;
        Some(Self { resource: Arc::clone(resource), index })
    }

    pub(crate) fn version(&self) -> &Version {
        self.resource.versions.get(self.index).expect("`new` found the version at this place")
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(&self.version().name)
    }

    pub(crate) fn kind(&self) -> &str {
        &self.resource.kind
    }

    /// The plural with the group, as messages name it.
    pub(crate) fn label(&self) -> &str {
        &self.resource.shelf
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.resource.origin, Origin::Custom | Origin::Terminating)
    }
}

impl Resource {
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// What clients may do with it, for discovery.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.origin {
            Origin::Answered => &["create"],
            Origin::Builtin | Origin::Custom | Origin::Terminating => {
                &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            }
        }
    }
}

/// The shelf of a resource.
pub(crate) fn shelf_of(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
