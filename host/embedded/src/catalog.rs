//! Everything that is served at the moment. A value: a changed definition makes a new catalog.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    builtin,
    resource::{ResourceOrigin, Served, ServedResource},
};

/// The served resources by group and plural.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    resources: BTreeMap<(String, String), Arc<ServedResource>>,
}

impl Catalog {
    /// The built-in resources.
    pub(crate) fn builtin() -> Self {
        let keyed = |resource: ServedResource| ((resource.group.clone(), resource.plural.clone()), Arc::new(resource));
        Self { resources: builtin::resources().into_iter().map(keyed).collect() }
    }

    /// The catalog with a custom resource added, or put in the place of its earlier form.
    pub(crate) fn with(&self, resource: ServedResource) -> Self {
        let mut catalog = self.clone();
        catalog.resources.insert((resource.group.clone(), resource.plural.clone()), Arc::new(resource));
        catalog
    }

    /// The catalog without a custom resource.
    pub(crate) fn without(&self, collection: &str) -> Self {
        let mut catalog = self.clone();
        catalog
            .resources
            .retain(|_, resource| resource.origin == ResourceOrigin::Builtin || &*resource.collection != collection);
        catalog
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<ServedResource>> {
        self.resources.values()
    }

    /// The resource that a path names.
    pub(crate) fn served(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        let resource = self.resources.get(&(group.to_owned(), plural.to_owned()))?;
        Served::new(resource, version)
    }

    /// The resource whose objects lie on a collection, at its preferred version.
    pub(crate) fn in_collection(&self, collection: &str) -> Option<Served> {
        let (plural, group) = collection.split_once('.').unwrap_or((collection, ""));
        let resource = self.resources.get(&(group.to_owned(), plural.to_owned()))?;
        Served::new(resource, &resource.versions.first()?.name)
    }

    /// Whether a kind of any version of a group is served.
    pub(crate) fn has_kind(&self, group: &str, kind: &str) -> bool {
        self.resources().any(|resource| resource.group == group && resource.kind == kind)
    }

    /// Why the names of a custom resource are not free, if they are not.
    pub(crate) fn taken(&self, wanted: &ServedResource) -> Option<String> {
        let rivals = self.resources().filter(|other| other.group == wanted.group && other.plural != wanted.plural);
        for other in rivals {
            if other.kind == wanted.kind || other.list_kind == wanted.list_kind {
                return Some(format!("\"{}\" is already in use", wanted.kind));
            }
            let names = |of: &ServedResource| [vec![of.singular.clone()], of.short_names.clone()].concat();
            let taken = names(other);
            if let Some(name) = names(wanted).into_iter().find(|name| taken.contains(name) || *name == other.plural) {
                return Some(format!("\"{name}\" is already in use"));
            }
        }
        let group = self.resources.get(&(wanted.group.clone(), wanted.plural.clone()));
        group
            .filter(|same| same.origin == ResourceOrigin::Builtin)
            .map(|_| format!("\"{}\" is already in use", wanted.plural))
    }
}
