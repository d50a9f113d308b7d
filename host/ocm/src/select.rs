//! Identities, and choosing resources and references by them.

use std::{collections::BTreeMap, fmt};

use super::{ComponentVersionReference, Descriptor, Element, Resource};
use crate::Identity;
use orangery_core::listing;

impl Element {
    /// What templates select by: the extra identity and `name`.
    pub fn identity(&self) -> BTreeMap<String, String> {
        let mut identity = self.extra_identity.clone();
        identity.insert("name".to_owned(), self.name.clone());
        identity
    }

    /// What tells the element from all others of its list: also `version`, where an earlier one has the same name and
    /// extra identity.
    pub fn identity_among<'a>(&self, all: impl Iterator<Item = &'a Element>) -> BTreeMap<String, String> {
        let alike = all.filter(|other| other.name == self.name && other.extra_identity == self.extra_identity);
        let mut identity = self.identity();
        if alike.count() > 1 {
            identity.insert("version".to_owned(), self.version.clone());
        }
        identity
    }
}

/// Whether an identity has all pairs of a selection.
pub fn matches(identity: &BTreeMap<String, String>, select: &Identity) -> bool {
    select.iter().all(|(name, value)| identity.get(name) == Some(value))
}

/// Why nothing is selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the component {component} has no {what} with {select}; it has {known}")]
pub struct SelectError {
    /// Name and version of the component.
    pub component: String,
    /// `resource` or `component reference`.
    pub what: &'static str,
    /// What was asked for.
    pub select: String,
    /// What there is.
    pub known: String,
}

/// The resources that match, in the descriptor's order; at least one.
pub fn resources<'a>(descriptor: &'a Descriptor, select: &Identity) -> Result<Vec<&'a Resource>, SelectError> {
    choose(descriptor, "resource", &descriptor.resources, |resource| &resource.element, select)
}

/// The references that match, in the descriptor's order; at least one.
pub fn references<'a>(
    descriptor: &'a Descriptor,
    select: &Identity,
) -> Result<Vec<&'a ComponentVersionReference>, SelectError> {
    choose(descriptor, "component reference", &descriptor.references, |reference| &reference.element, select)
}

fn choose<'a, T>(
    descriptor: &Descriptor,
    what: &'static str,
    all: &'a [T],
    element: impl Fn(&'a T) -> &'a Element,
    select: &Identity,
) -> Result<Vec<&'a T>, SelectError> {
    let found: Vec<&T> = all.iter().filter(|item| matches(&element(item).identity(), select)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known = listing::listed(all.iter().map(|item| DisplayedElement(element(item))));
    let select = select.iter().cloned().collect();
    Err(SelectError { component: descriptor.to_string(), what, select: DisplayedIdentity(&select).to_string(), known })
}

/// The identity of an element for messages.
struct DisplayedElement<'a>(&'a Element);

impl fmt::Display for DisplayedElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DisplayedIdentity(&self.0.identity()).fmt(f)
    }
}

/// An identity for messages: `name=web` or `name=web,arch=arm64`; the name first.
pub(super) struct DisplayedIdentity<'a>(pub(super) &'a BTreeMap<String, String>);

impl fmt::Display for DisplayedIdentity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.get_key_value("name");
        let rest = self.0.iter().filter(|(key, _)| *key != "name");
        for (index, (key, value)) in name.into_iter().chain(rest).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{key}={value}")?;
        }
        Ok(())
    }
}
