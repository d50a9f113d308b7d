//! What kind of objects are served, and how: the same description for built-in kinds and for custom ones.

use std::sync::Arc;

use crate::{present::Column, schema::OpenApiSchema};

/// One resource of one API group, in all its versions.
#[derive(Debug)]
pub(crate) struct ServedResource {
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
    pub(crate) collection: Arc<str>,
    /// Served versions, the preferred one first.
    pub(crate) versions: Vec<ServedVersion>,
    pub(crate) origin: ResourceOrigin,
    /// Objects up to this revision were written under another form of their definition, and may lack its defaults.
    pub(crate) since: u64,
}

/// Where a resource comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceOrigin {
    /// The table of built-in kinds.
    Builtin,
    /// A CustomResourceDefinition.
    Custom,
    /// A CustomResourceDefinition that is being deleted: nothing new is created.
    Terminating,
    /// Answers without storing anything, such as an access review.
    GateResult,
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct ServedVersion {
    pub(crate) name: String,
    /// Whether `/status` is its own subresource.
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    /// When `metadata.generation` grows.
    pub(crate) generation: Generation,
    pub(crate) columns: Arc<[Column]>,
    pub(crate) schema: Option<Arc<OpenApiSchema>>,
    /// The fields of a custom kind that field selectors may name beside name and namespace: dotted paths.
    pub(crate) selectable: Vec<String>,
}

/// When `metadata.generation` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    Never,
    /// With every change of `spec`.
    Spec,
    /// With every change of `spec` or of annotations.
    SpecOrAnnotations,
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
    pub(crate) resource: Arc<ServedResource>,
    index: usize,
}

impl Served {
    /// The resource at a version; none if that is not served.
    pub(crate) fn new(resource: &Arc<ServedResource>, version: &str) -> Option<Self> {
        let index = resource.versions.iter().position(|candidate| candidate.name == version)?;
        Some(Self { resource: Arc::clone(resource), index })
    }

    pub(crate) fn version(&self) -> &ServedVersion {
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
        &self.resource.collection
    }

    /// The schema whose defaults an object of a revision may lack.
    pub(crate) fn fills_in(&self, revision: u64) -> Option<&OpenApiSchema> {
        let older = self.is_custom() && revision <= self.resource.since;
        self.version().schema.as_deref().filter(|schema| older && schema.has_defaults())
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.resource.origin, ResourceOrigin::Custom | ResourceOrigin::Terminating)
    }
}

impl ServedResource {
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// What clients may do with it, for discovery.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.origin {
            ResourceOrigin::GateResult => &["create"],
            ResourceOrigin::Builtin | ResourceOrigin::Custom | ResourceOrigin::Terminating => {
                &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            }
        }
    }
}

/// The collection of a resource.
pub(crate) fn collection_of(plural: &str, group: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
