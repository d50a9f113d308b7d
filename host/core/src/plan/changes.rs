//! Roots under the policy `OnChange`: which of them start a job by what has changed (C-05, ORC-33, WF-26).

use std::collections::BTreeSet;

use super::installation::{Changes, Peer, changes_start};

/// What a root may start a job by, and what its last job began with: [`Changes`], owned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootChanges {
    /// The hash of its imports when its last job began or read them.
    pub marked: String,
    /// The same of now; `None` where they are not all there.
    pub imports: Option<String>,
    /// Hashes of the answers that were others when its last job began.
    pub marked_answers: Vec<String>,
    /// The same of now.
    pub answers: Vec<String>,
}

impl RootChanges {
    fn borrowed(&self) -> Changes<'_> {
        Changes {
            marked: &self.marked,
            imports: self.imports.as_deref(),
            marked_answers: &self.marked_answers,
            answers: &self.answers,
        }
    }
}

/// The roots of a namespace.
pub trait ObservedRoots {
    /// What a root may start a job by; `None` where it starts none by changes, or where what it imports is not known yet.
    fn changes(&self, root: &str) -> Option<RootChanges>;
    /// The roots that it imports from.
    fn predecessors(&self, root: &str) -> Vec<Peer>;
    /// Whether one of these is about to ask it for a job (INS-43).
    fn is_about_to_be_asked(&self, root: &str) -> bool;
}

/// Whether a root at rest starts a job by what has changed.
///
/// It waits for a root that it imports from and that is about to start one: of one change that both import, the one that comes
/// first would else read the other one's old exports.
pub fn starts(roots: &impl ObservedRoots, root: &str) -> bool {
    starts_beside(roots, root, &mut BTreeSet::new())
}

/// `seen` are the roots for which that was asked already.
fn starts_beside(roots: &impl ObservedRoots, root: &str, seen: &mut BTreeSet<String>) -> bool {
    let Some(changes) = roots.changes(root) else { return false };
    if !changes.borrowed().tell() || !seen.insert(root.to_owned()) {
        return false;
    }
    let before = roots.predecessors(root);
    let is_about_to_start =
        |peer: &Peer| peer.ids.running().is_none() && (peer.requested || starts_beside(roots, &peer.name, seen));
    let asked = roots.is_about_to_be_asked(root) || before.iter().any(is_about_to_start);
    changes_start(changes.borrowed(), &before, asked)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{job::JobIds, plan::installation::ChildState};

    /// Each root with whether its imports changed and what it imports from; `c!` is a root that is about to be asked.
    struct Roots(BTreeMap<&'static str, (bool, &'static str)>);

    impl ObservedRoots for Roots {
        fn changes(&self, root: &str) -> Option<RootChanges> {
            let (changed, _) = self.0.get(root)?;
            let imports = Some(if *changed { "new" } else { "old" }.to_owned());
            Some(RootChanges { marked: "old".to_owned(), imports, ..RootChanges::default() })
        }

        fn predecessors(&self, root: &str) -> Vec<Peer> {
            let (_, before) = self.0[root];
            let peer = |name: &str| Peer {
                kind: "Installation",
                name: name.to_owned(),
                ids: JobIds::new("a", if name.starts_with("busy") { "" } else { "a" }),
                standing: ChildState::Succeeded,
                failure: None,
                requested: name.starts_with("requested"),
                deleting: false,
            };
            before.split_whitespace().map(peer).collect()
        }

        fn is_about_to_be_asked(&self, root: &str) -> bool {
            root.ends_with('!')
        }
    }

    fn started(roots: &[(&'static str, bool, &'static str)]) -> bool {
        let root = roots.first().unwrap().0;
        starts(&Roots(roots.iter().map(|(name, changed, before)| (*name, (*changed, *before))).collect()), root)
    }

    #[test]
    fn orc_33_a_root_starts_by_its_own_changes() {
        assert!(started(&[("a", true, "")]));
        assert!(!started(&[("a", false, "")]));
        assert!(!started(&[("a!", true, "")]), "one that it imports from asks it anyway");
    }

    #[test]
    fn orc_33_of_one_change_the_root_that_others_import_from_starts_first() {
        assert!(!started(&[("a", true, "b"), ("b", true, "")]));
        assert!(started(&[("a", true, "b"), ("b", false, "")]));
        assert!(!started(&[("a", true, "requested")]));
        assert!(!started(&[("a", true, "busy")]));
    }

    #[test]
    fn orc_33_roots_that_import_from_each_other_are_asked_once() {
        assert!(!started(&[("a", true, "b"), ("b", true, "a")]), "each of them waits for the other one");
        assert!(started(&[("a", true, "a")]));
    }

    #[test]
    fn orc_33_what_is_not_known_starts_nothing() {
        let none = Roots(BTreeMap::new());
        assert!(!starts(&none, "a"));
    }
}
