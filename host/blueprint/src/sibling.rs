//! Which installations come before which: whoever exports what another one imports (`docs/wire.md` §5.7).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use crate::{
    ImportDefinition, ImportKind,
    binding::{DataSource, ExportBindings, ImportBindings, TargetSource},
};
use orangery_core::dag::{Dag, DagError};

/// Something that is exported and imported under a key of one context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SiblingReference {
    /// A DataObject.
    Data(String),
    /// A Target.
    Target(String),
    /// A target list import of the parent.
    TargetList(String),
    /// A target map import of the parent.
    TargetMap(String),
}

impl SiblingReference {
    /// Its key.
    pub fn key(&self) -> &str {
        match self {
            SiblingReference::Data(key)
            | SiblingReference::Target(key)
            | SiblingReference::TargetList(key)
            | SiblingReference::TargetMap(key) => key,
        }
    }

    /// The list or map import that `x[0]` or `x[red]` is an element of.
    pub fn container(&self) -> Option<SiblingReference> {
        let SiblingReference::Target(key) = self else { return None };
        let (name, element) = key.strip_suffix(']')?.split_once('[')?;
        Some(if element.parse::<usize>().is_ok() {
            SiblingReference::TargetList(name.to_owned())
        } else {
            SiblingReference::TargetMap(name.to_owned())
        })
    }
}

/// As messages name it, and as an index key: `data x`, `target x`.
impl fmt::Display for SiblingReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SiblingReference::Data(key) => write!(f, "data {key}"),
            SiblingReference::Target(key) => write!(f, "target {key}"),
            SiblingReference::TargetList(key) => write!(f, "target list {key}"),
            SiblingReference::TargetMap(key) => write!(f, "target map {key}"),
        }
    }
}

/// An installation or template among its siblings.
#[derive(Clone, Copy, Debug)]
pub struct Sibling<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it imports.
    pub imports: &'a ImportBindings,
    /// What it exports.
    pub exports: &'a ExportBindings,
}

/// What an installation exports; keys for an index.
pub fn exported(exports: &ExportBindings) -> BTreeSet<SiblingReference> {
    let data = exports.data.iter().map(|export| SiblingReference::Data(export.data_ref.clone()));
    let targets = exports.targets.iter().map(|export| SiblingReference::Target(export.target.clone()));
    data.chain(targets).collect()
}

/// What an installation imports that a sibling may export; keys for an index. Target maps count, which the original
/// forgets (`docs/wire.md` §16).
pub fn imported(imports: &ImportBindings) -> BTreeSet<SiblingReference> {
    let mut references = BTreeSet::new();
    for import in &imports.data {
        if let Some(DataSource::DataObject(key)) = import.source() {
            references.insert(SiblingReference::Data(key.to_owned()));
        }
    }
    for import in &imports.targets {
        match import.source() {
            Some(TargetSource::Target(key)) => {
                references.insert(SiblingReference::Target(key.to_owned()));
            }
            Some(TargetSource::List(keys)) => references.extend(keys.iter().cloned().map(SiblingReference::Target)),
            Some(TargetSource::Map(keys)) => references.extend(keys.values().cloned().map(SiblingReference::Target)),
            Some(TargetSource::ListOf(_) | TargetSource::MapOf(_)) | None => {}
        }
    }
    references
}

/// What the imports of a blueprint are to its sub-installations.
pub fn defined(imports: &[ImportDefinition]) -> BTreeSet<SiblingReference> {
    let mut references = BTreeSet::new();
    for import in imports {
        let name = import.name.clone();
        references.insert(match import.kind {
            ImportKind::Data { .. } => SiblingReference::Data(name),
            ImportKind::Target { .. } => SiblingReference::Target(name),
            ImportKind::TargetList { .. } => SiblingReference::TargetList(name),
            ImportKind::TargetMap { .. } => SiblingReference::TargetMap(name),
        });
        references.extend(defined(&import.conditional));
    }
    references
}

/// What each one exports, in the order given.
pub fn exporters<'a>(siblings: &[Sibling<'a>]) -> BTreeMap<SiblingReference, Vec<&'a str>> {
    let mut exporters: BTreeMap<SiblingReference, Vec<&'a str>> = BTreeMap::new();
    for sibling in siblings {
        for reference in exported(sibling.exports) {
            exporters.entry(reference).or_default().push(sibling.name);
        }
    }
    exporters
}

/// The siblings that `of` imports from, sorted (INS-21). Of all of them see [`edges`].
pub fn predecessors<'a>(of: Sibling<'_>, siblings: &[Sibling<'a>]) -> Vec<&'a str> {
    let wanted = imported(of.imports);
    others(of, siblings, |sibling| !exported(sibling.exports).is_disjoint(&wanted))
}

/// The siblings, each with its [`predecessors`]. What is exported is looked at once (C-291).
pub fn edges<'a>(siblings: &[Sibling<'a>]) -> Vec<(&'a str, Vec<&'a str>)> {
    let exporters = exporters(siblings);
    let before = |of: &Sibling<'a>| named(of, &exporters).into_iter().filter(|name| *name != of.name).collect();
    siblings.iter().map(|of| (of.name, before(of))).collect()
}

/// Whoever exports what `of` imports, itself included.
fn named<'a>(of: &Sibling<'_>, exporters: &BTreeMap<SiblingReference, Vec<&'a str>>) -> BTreeSet<&'a str> {
    imported(of.imports).iter().filter_map(|reference| exporters.get(reference)).flatten().copied().collect()
}

/// The siblings that import from `of`, sorted (INS-43, INS-61).
pub fn successors<'a>(of: Sibling<'_>, siblings: &[Sibling<'a>]) -> Vec<&'a str> {
    let offered = exported(of.exports);
    others(of, siblings, |sibling| !imported(sibling.imports).is_disjoint(&offered))
}

fn others<'a>(of: Sibling<'_>, siblings: &[Sibling<'a>], keep: impl Fn(&Sibling<'a>) -> bool) -> Vec<&'a str> {
    let names: BTreeSet<&'a str> = siblings
        .iter()
        .filter(|sibling| sibling.name != of.name && keep(sibling))
        .map(|sibling| sibling.name)
        .collect();
    names.into_iter().collect()
}

/// All that comes before `of`, however far, each with the one that it comes right before; `of` itself is among them where
/// it is part of a circle.
pub fn ancestors(of: &str, mut before: impl FnMut(&str) -> Vec<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = VecDeque::from([of.to_owned()]);
    while let Some(name) = open.pop_front() {
        for earlier in before(&name) {
            if !found.contains_key(&earlier) {
                found.insert(earlier.clone(), name.clone());
                open.push_back(earlier);
            }
        }
    }
    found
}

/// The circle that `of` is part of, in the order of who needs whom; `of` stands at both ends (C-17).
pub fn circle(of: &str, ancestors: &BTreeMap<String, String>) -> Option<DagError> {
    let mut members = vec![of.to_owned()];
    let mut name = of;
    loop {
        name = ancestors.get(name)?;
        members.push(name.to_owned());
        if name == of {
            members.reverse();
            return Some(DagError::Cycle { members });
        }
    }
}

/// The graph of all siblings; a circle is reported with its members (C-17).
pub fn order(siblings: &[Sibling<'_>]) -> Result<Dag, DagError> {
    let exporters = exporters(siblings);
    Dag::new(siblings.iter().map(|of| (of.name, named(of, &exporters).into_iter().collect())))
}

#[cfg(test)]
mod tests;
