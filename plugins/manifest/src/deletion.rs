//! Deletion groups (`docs/wire.md` §8.1): what is deleted together, one group after the other.

use orangery_sdk::{ClusterRef, DeletionGroup, DeletionScope, Problem, Selection, lenient::Place};

use crate::readiness::cluster;

/// The groups of a field; empty where it is absent, which means the default ones.
pub(crate) fn order(config: &Place<'_>, field: &str) -> Result<Vec<DeletionGroup>, Problem> {
    config.items_of(field)?.iter().map(group).collect()
}

fn group(place: &Place<'_>) -> Result<DeletionGroup, Problem> {
    match (place.field("predefinedResourceGroup")?, place.field("customResourceGroup")?) {
        (Some(group), None) => predefined(&group),
        (None, Some(group)) => custom(&group),
        (Some(_), Some(_)) => Err(place
            .problem("a deletion group is either predefinedResourceGroup or customResourceGroup; write two groups")),
        (None, None) => {
            Err(place.problem("the deletion group is empty; add predefinedResourceGroup or customResourceGroup"))
        }
    }
}

fn predefined(group: &Place<'_>) -> Result<DeletionGroup, Problem> {
    let known = [
        ("namespaced-resources", Some(&DeletionScope::Namespaced)),
        ("cluster-scoped-resources", Some(&DeletionScope::ClusterScoped)),
        ("crds", Some(&DeletionScope::CustomResourceDefinitions)),
        // Deletes nothing: the way to switch the default groups off.
        ("empty", None),
    ];
    let scope = group.required("type")?.one_of(&known)?;
    Ok(DeletionGroup {
        on: ClusterRef::Target,
        what: scope.into_iter().cloned().collect(),
        force: group.flag_of("forceDelete")?,
    })
}

fn custom(group: &Place<'_>) -> Result<DeletionGroup, Problem> {
    let everything = group.flag_of("deleteAllResources")?;
    let on = cluster(group)?;
    if on != ClusterRef::Target && !everything {
        return Err(group
            .required("targetName")?
            .problem("targetName is for groups with deleteAllResources: true; add that or drop targetName"));
    }
    let resources = group.required("resources")?.items()?;
    if resources.is_empty() {
        return Err(group.required("resources")?.problem("resources is empty; name at least one apiVersion and kind"));
    }
    let mut what = Vec::new();
    for resource in resources {
        for selection in selections(&resource)? {
            what.push(if everything { DeletionScope::Matching(selection) } else { DeletionScope::Managed(selection) });
        }
    }
    Ok(DeletionGroup { on, what, force: group.flag_of("forceDelete")? })
}

/// One selection for each namespace, or one for all namespaces.
fn selections(resource: &Place<'_>) -> Result<Vec<Selection>, Problem> {
    let texts = |name: &str| {
        let items = resource.items_of(name)?;
        items.iter().map(|item| Ok(item.name()?.to_owned())).collect::<Result<Vec<String>, Problem>>()
    };
    let namespaces = texts("namespaces")?;
    let everywhere = Selection {
        api_version: resource.required("apiVersion")?.name()?.to_owned(),
        kind: resource.required("kind")?.name()?.to_owned(),
        namespace: None,
        names: texts("names")?,
        labels: None,
        fields: None,
    };
    if namespaces.is_empty() {
        return Ok(vec![everywhere]);
    }
    let within = |namespace| Selection { namespace: Some(namespace), ..everywhere.clone() };
    Ok(namespaces.into_iter().map(within).collect())
}
