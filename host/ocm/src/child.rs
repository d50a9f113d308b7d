//! Where the blueprint of a sub-installation comes from (`docs/wire.md` §5.8).

use orangery_core::memory;
use serde_json::Value;

use super::{ComponentSource, Descriptor, VersionReference};

/// The label of a component reference that holds the descriptor it refers to, for descriptors written inline.
pub const INLINE_LABEL: &str = "landscaper.gardener.cloud/component-descriptor";

/// What a sub-installation's `blueprint.ref` becomes in the sub-installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its `spec.componentDescriptor`.
    pub component: ComponentSource,
    /// Its `spec.blueprint.ref.resourceName`.
    pub resource: String,
}

impl Child {
    /// Bytes of memory that it takes beside others with the same descriptor, which they share.
    pub fn bytes(&self) -> u64 {
        let ComponentSource::Reference(VersionReference { repository_context, name, version }) = &self.component else {
            return memory::of_text(self.resource.len());
        };
        let texts: u64 = [&self.resource, name, version].into_iter().map(|text| memory::of_text(text.len())).sum();
        texts.saturating_add(repository_context.as_deref().map_or(0, memory::of))
    }
}

impl Descriptor {
    /// The descriptors that its references carry in the label [`INLINE_LABEL`], as written: one level.
    pub fn nested(&self) -> impl Iterator<Item = &Value> {
        let labels = self.references.iter().flat_map(|reference| &reference.element.labels);
        labels.filter(|label| label.name == INLINE_LABEL).map(|label| &label.value)
    }

    /// The descriptor of a component version, where a reference carries it.
    pub fn nested_of(&self, name: &str, version: &str) -> Option<&Value> {
        let found = self.references.iter().find(|reference| {
            reference.component == name
                && reference.element.version == version
                && reference.element.labels.iter().any(|label| label.name == INLINE_LABEL)
        });
        found?.element.labels.iter().find(|label| label.name == INLINE_LABEL).map(|label| &label.value)
    }
}
