//! Roots under the policy `OnChange`: which of them start a job by what has changed (C-05, ORC-33, WF-26).

use std::collections::{BTreeMap, BTreeSet};

use super::installation::{Changes, RelatedObject, changes_start};

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
    /// Whether there is anything new. Where there is nothing, the roots before this one do not matter.
    pub fn tells(&self) -> bool {
        self.borrowed().tell()
    }

    fn borrowed(&self) -> Changes<'_> {
        Changes {
            marked: &self.marked,
            imports: self.imports.as_deref(),
            marked_answers: &self.marked_answers,
            answers: &self.answers,
        }
    }
}

/// A root, as it is observed.
#[derive(Clone, Debug, Default)]
pub struct ObservedRoot {
    /// What it may start a job by; `None` where it starts none by changes, or where what it imports is not known yet.
    pub changes: Option<RootChanges>,
    /// The roots that it imports from.
    pub predecessors: Vec<RelatedObject>,
    /// Whether one of these is about to ask it for a job (INS-43).
    pub is_about_to_be_asked: bool,
}

/// Roots of a namespace by their names: one that may start, and those before it as far as [`tells`](RootChanges::tells) goes.
pub type ObservedRoots = BTreeMap<String, ObservedRoot>;

/// Whether a root at rest starts a job by what has changed.
///
/// It waits for a root that it imports from and that is about to start one: of one change that both import, the one that comes
/// first would else read the other one's old exports.
pub fn starts(roots: &ObservedRoots, root: &str) -> bool {
    starts_beside(roots, root, &mut BTreeSet::new(), DEEPEST)
}

/// Roots that import from each other in a row, as far as it is asked which of them is about to start.
const DEEPEST: usize = 256;

/// `seen` are the roots for which that was asked already.
fn starts_beside(roots: &ObservedRoots, root: &str, seen: &mut BTreeSet<String>, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    let Some(observed) = roots.get(root) else { return false };
    let Some(changes) = observed.changes.as_ref().filter(|changes| changes.tells()) else { return false };
    if !seen.insert(root.to_owned()) {
        return false;
    }
    let is_about_to_start = |related_object: &RelatedObject| {
        related_object.ids.running().is_none()
            && (related_object.requested || starts_beside(roots, &related_object.name, seen, left))
    };
    let asked = observed.is_about_to_be_asked || observed.predecessors.iter().any(is_about_to_start);
    changes_start(changes.borrowed(), &observed.predecessors, asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job::JobIds, plan::installation::ChildState};

    /// Each root with whether its imports changed and what it imports from; `c!` is a root that is about to be asked.
    fn started(roots: &[(&str, bool, &str)]) -> bool {
        let related_object = |name: &str| RelatedObject {
            kind: "Installation".into(),
            name: name.to_owned(),
            ids: JobIds::new("a", if name.starts_with("busy") { "" } else { "a" }),
            standing: ChildState::Succeeded,
            failure: None,
            requested: name.starts_with("requested"),
            deleting: false,
        };
        let observed = |(name, changed, before): &(&str, bool, &str)| {
            let imports = Some(if *changed { "new" } else { "old" }.to_owned());
            let changes = RootChanges { marked: "old".to_owned(), imports, ..RootChanges::default() };
            let predecessors = before.split_whitespace().map(related_object).collect();
            let is_about_to_be_asked = name.ends_with('!');
            ((*name).to_owned(), ObservedRoot { changes: Some(changes), predecessors, is_about_to_be_asked })
        };
        starts(&roots.iter().map(observed).collect(), roots.first().unwrap().0)
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
    fn limits_changes_a_row_of_roots_is_followed_so_far() {
        let names: Vec<String> = (0..=100_000).map(|number| format!("r{number}")).collect();
        let row = |length: usize| {
            let pairs = names.iter().zip(names.iter().skip(1)).take(length);
            started(&pairs.map(|(name, before)| (name.as_str(), true, before.as_str())).collect::<Vec<_>>())
        };
        // Of a row each second one starts, from its end; beyond the limit nothing is about to.
        assert_eq!([row(1), row(2), row(DEEPEST - 1), row(DEEPEST)], [true, false, true, false]);
        assert_eq!([row(DEEPEST + 1), row(100_000)], [false, false]);
    }

    #[test]
    fn orc_33_what_is_not_known_starts_nothing() {
        assert!(!starts(&ObservedRoots::new(), "a"));
        let unknown = ObservedRoots::from([("a".to_owned(), ObservedRoot::default())]);
        assert!(!starts(&unknown, "a"));
    }
}
