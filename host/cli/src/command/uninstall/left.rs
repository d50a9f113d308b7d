//! What an operator leaves in a cluster, and what that means.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use orangery_core::name::{Kind, Namespace, ObjectName};

use crate::operators::{OperatorHolder, OperatorLease};

/// How many objects of a namespace are named.
const MOST_NAMED: usize = 3;

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftObject {
    pub(super) kind: Kind,
    pub(super) namespace: Namespace,
    pub(super) name: ObjectName,
}

/// An object with the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuardedObject {
    pub(super) object: LeftObject,
    /// All of its finalizers.
    pub(super) finalizers: Vec<String>,
    /// Its resource version.
    pub(super) version: String,
    /// Whether it is being deleted.
    pub(super) is_deleting: bool,
}

/// What there is of an operator's in a cluster.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// The Leases of operators.
    pub(super) leases: Vec<OperatorLease>,
    /// Installations, Executions and DeployItems with the finalizer that an operator takes away.
    pub(super) at_work: Vec<LeftObject>,
    /// What has the guard.
    pub(super) guarded: Vec<GuardedObject>,
    /// How many definitions of ours there are.
    pub(super) definitions: usize,
    /// The Secrets with keys of operators.
    pub(super) seeds: BTreeSet<String>,
}

impl fmt::Display for LeftObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

impl LeftObject {
    /// Whether it may need another one. A Plugin is of no namespace, and deploy items are what needs it.
    fn may_need(&self, other: &Self) -> bool {
        match other.namespace.as_str() {
            "" => self.kind.as_str() == "DeployItem",
            namespace => self.namespace.as_str() == namespace,
        }
    }
}

impl fmt::Display for GuardedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

impl Leftovers {
    /// Whether the deletion of something would not end without an operator.
    pub(super) fn hangs(&self) -> bool {
        !self.at_work.is_empty() || !self.guarded.is_empty()
    }

    /// An operator that is active.
    pub(super) fn holder(&self, named: Option<&str>) -> Option<(&OperatorLease, &OperatorHolder)> {
        let alive = |lease: &OperatorLease| lease.holder.as_ref().is_some_and(|holder| holder.is_alive);
        let is_meant = |lease: &OperatorLease| named.is_none_or(|named| lease.place() == named);
        let lease = self.leases.iter().find(|lease| alive(lease) && is_meant(lease))?;
        Some((lease, lease.holder.as_ref()?))
    }

    /// What may need a guarded object; nothing of another namespace can, unless that is of no namespace.
    pub(super) fn user_of(&self, guarded: &GuardedObject) -> String {
        let user = self.at_work.iter().find(|object| object.may_need(&guarded.object));
        user.map(ToString::to_string).unwrap_or_default()
    }

    pub(super) fn is_needed(&self, guarded: &GuardedObject) -> bool {
        self.at_work.iter().any(|object| object.may_need(&guarded.object))
    }

    /// What follows where the guard of an object goes.
    pub(super) fn consequence(&self, guarded: &GuardedObject) -> String {
        let goes = if guarded.is_deleting { ", and goes, as it is being deleted" } else { "" };
        match self.is_needed(guarded) {
            true => format!("{goes}; {} may need it to remove what was deployed", self.user_of(guarded)),
            false => goes.to_owned(),
        }
    }

    /// What would hang, what would be left, and what to do about each.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut namespaces: BTreeMap<&Namespace, Vec<&LeftObject>> = BTreeMap::new();
        for object in &self.at_work {
            namespaces.entry(&object.namespace).or_default().push(object);
        }
        for (namespace, objects) in namespaces {
            lines.push(format!(
                "namespace {namespace}: {} would hang, as only an operator takes their finalizer away; while one runs, delete the \
                 Installations and wait until they are gone: kubectl -n {namespace} delete installations --all",
                named(&objects)
            ));
        }
        let needed = self.guarded.iter().filter(|guarded| self.is_needed(guarded));
        lines.extend(needed.map(|guarded| format!("{guarded} would hang: it is guarded as long as these are there")));
        let free = self.guarded.iter().filter(|guarded| !self.is_needed(guarded));
        lines.extend(free.map(|guarded| {
            format!(
                "{guarded} would hang: it is guarded, and nothing is left that uses it; while an operator runs, delete it if it is \
                 not needed, and without one take the guard off: orangery uninstall --release-guards"
            )
        }));
        for lease in &self.leases {
            let place = lease.place();
            lines.push(match &lease.holder {
                Some(OperatorHolder { name, renewed, is_alive: true }) => {
                    format!("Lease {place} is held by {name}, renewed last at {renewed}: uninstall that operator")
                }
                Some(_) | None => {
                    format!("Lease {place} would be left: kubectl -n {} delete lease {}", lease.namespace, lease.name)
                }
            });
        }
        let seeds = self.seeds.iter().map(|seed| {
            format!("Secret {seed} would be left: without it an operator that comes later cannot read what this one has encrypted")
        });
        lines.extend(seeds);
        if self.definitions > 0 {
            lines.push(format!(
                "{} definitions would be left; with them go all objects of their kinds: helm show crds CHART | kubectl delete -f -",
                self.definitions
            ));
        }
        if !self.hangs() {
            lines.push("nothing would hang".to_owned());
        }
        lines
    }
}

/// How many objects there are of each kind, and the names of the first.
fn named(objects: &[&LeftObject]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for object in objects {
        *kinds.entry(object.kind.as_str()).or_default() += 1;
    }
    let counts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
    let mut names: Vec<String> =
        objects.iter().take(MOST_NAMED).map(|object| format!("{} {}", object.kind, object.name)).collect();
    if objects.len() > MOST_NAMED {
        names.push("…".to_owned());
    }
    format!("{} ({})", counts.join(", "), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &'static str, namespace: &str, name: &str) -> LeftObject {
        LeftObject { kind: Kind::from_static(kind), namespace: namespace.into(), name: name.into() }
    }

    fn guarded(kind: &'static str, namespace: &str, is_deleting: bool) -> GuardedObject {
        let finalizers = vec!["orangery.dev/in-use".to_owned()];
        GuardedObject { object: object(kind, namespace, "x"), finalizers, version: "7".to_owned(), is_deleting }
    }

    #[test]
    fn c_236_what_would_hang_and_what_would_be_left_is_named_with_what_to_do() {
        let lease = |name: &str, holder: Option<OperatorHolder>| OperatorLease {
            namespace: "orangery".into(),
            name: name.into(),
            holder,
        };
        let holder =
            OperatorHolder { name: "pod_1".to_owned(), renewed: "2026-11-21T08:00:00Z".to_owned(), is_alive: true };
        let gone = OperatorHolder { is_alive: false, ..holder.clone() };
        let left = Leftovers {
            leases: vec![lease("orangery", Some(holder)), lease("old", Some(gone)), lease("free", None)],
            at_work: vec![
                object("Installation", "team-a", "hello"),
                object("Execution", "team-a", "hello"),
                object("DeployItem", "team-a", "a"),
                object("DeployItem", "team-a", "b"),
            ],
            guarded: vec![guarded("Target", "team-a", false), guarded("Secret", "team-b", true)],
            definitions: 12,
            seeds: BTreeSet::from(["orangery/orangery-seed".to_owned()]),
        };
        assert!(left.hangs());
        assert_eq!(
            left.lines(),
            [
                "namespace team-a: 2 × DeployItem, 1 × Execution, 1 × Installation (Installation hello, Execution hello, \
                 DeployItem a, …) would hang, as only an operator takes their finalizer away; while one runs, delete the \
                 Installations and wait until they are gone: kubectl -n team-a delete installations --all",
                "Target team-a/x would hang: it is guarded as long as these are there",
                "Secret team-b/x would hang: it is guarded, and nothing is left that uses it; while an operator runs, delete it if it \
                 is not needed, and without one take the guard off: orangery uninstall --release-guards",
                "Lease orangery/orangery is held by pod_1, renewed last at 2026-11-21T08:00:00Z: uninstall that operator",
                "Lease orangery/old would be left: kubectl -n orangery delete lease old",
                "Lease orangery/free would be left: kubectl -n orangery delete lease free",
                "Secret orangery/orangery-seed would be left: without it an operator that comes later cannot read what this one has \
                 encrypted",
                "12 definitions would be left; with them go all objects of their kinds: helm show crds CHART | kubectl delete -f -",
            ]
        );
        assert_eq!(Leftovers::default().lines(), ["nothing would hang"]);
    }

    #[test]
    fn c_237_what_follows_where_a_guard_goes_is_said() {
        let left = Leftovers { at_work: vec![object("DeployItem", "team-a", "a")], ..Leftovers::default() };
        let says = |namespace, is_deleting| left.consequence(&guarded("Target", namespace, is_deleting));
        assert_eq!(says("team-b", false), "");
        assert_eq!(says("team-b", true), ", and goes, as it is being deleted");
        assert_eq!(
            says("team-a", true),
            ", and goes, as it is being deleted; DeployItem team-a/a may need it to remove what was deployed"
        );
    }
}
