//! Whether the cluster of an item counts as removed, and what that means for the item's deletion (C-28, `docs/wire.md`
//! §6.5).
//!
//! Without a TargetSync the only sign is that the item's Target does not exist any more. Where an installation makes that
//! Target, its absence is no sign: a job deletes exports before it writes them again, and a deletion in the foreground takes
//! copies away before the items. So what counts is the Target that a user keeps.

use std::fmt;

use crate::binding::{ExportBindings, ImportBindings, TargetSource};
use orangery_core::{
    error::{Code, Failure},
    name::{ObjectName, element_key, entry_key, object_name},
};

/// Why the absence of a Target does not say that its cluster is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbsenceCause {
    /// It was a copy of this Target, which is there.
    CopyOf(String),
    /// This Installation exports it, and may do so again.
    ExportedBy(String),
    /// Nobody knows what it was a copy of.
    Unknown,
}

/// As the rest of a sentence about the Target.
impl fmt::Display for AbsenceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AbsenceCause::CopyOf(target) => write!(f, "it was a copy of Target {target}, which exists"),
            AbsenceCause::ExportedBy(installation) => write!(f, "Installation {installation} exports it"),
            AbsenceCause::Unknown => f.write_str("what it was a copy of is not known"),
        }
    }
}

/// Whether an item whose Target does not exist may go without being uninstalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UninstallSkip {
    /// It does not say `onDelete.skipUninstallIfClusterRemoved`.
    NotRequested,
    /// It says so, but its cluster does not count as removed.
    Inconclusive(AbsenceCause),
    /// It says so, and its cluster counts as removed.
    ClusterRemoved,
}

/// What the deletion of an item does whose Target does not exist: answers what an event has to tell of an item that goes
/// without being uninstalled. `target` is the Target's namespace and name.
///
/// # Errors
/// What the deletion fails with: nothing was uninstalled, and nobody has said that this is well.
pub fn without_target(item: &str, target: &str, skip: &UninstallSkip) -> Result<String, Failure> {
    const FLAG: &str = "onDelete.skipUninstallIfClusterRemoved";
    const ANNOTATION: &str = "annotate the DeployItem landscaper.gardener.cloud/delete-without-uninstall=true";
    let (why, leave) = match skip {
        UninstallSkip::ClusterRemoved => {
            return Ok(format!(
                "Target {target} does not exist any more, so its cluster counts as removed ({FLAG}): nothing was \
                 uninstalled, what DeployItem {item} had deployed was left where it was"
            ));
        }
        UninstallSkip::NotRequested => (String::new(), format!("set spec.{FLAG} or {ANNOTATION}")),
        UninstallSkip::Inconclusive(cause) => {
            (format!(", and {FLAG} does not count because {cause}"), ANNOTATION.to_owned())
        }
    };
    let message = format!(
        "DeployItem {item} cannot be uninstalled: Target {target} does not exist{why}; create it again, or, to leave what \
         was deployed where it is, {leave}; then reconcile again"
    );
    Err(Failure::new("ResolveTarget", "NoTargetFound", message).with_code(Code::ConfigurationProblem))
}

/// The name of the Target that an import copy stands for: `copy` is the name of the copy in the `inner` context of the
/// installation that keeps it, and the answer one in the `outer` context, where it imports from. `None` where none of its
/// imports says so.
pub fn original(copy: &str, imports: &ImportBindings, inner: &str, outer: &str) -> Option<ObjectName> {
    imports.targets.iter().find_map(|import| {
        let name = &import.name;
        let key = match import.source()? {
            TargetSource::Target(key) => (object_name(inner, name) == copy).then_some(key),
            TargetSource::List(keys) => {
                let element = |(index, _): &(usize, &String)| object_name(inner, &element_key(name, *index)) == copy;
                keys.iter().enumerate().find(element).map(|(_, key)| key.as_str())
            }
            TargetSource::Map(keys) => {
                let entry = |(map_key, _): &(&String, &String)| object_name(inner, &entry_key(name, map_key)) == copy;
                keys.iter().find(entry).map(|(_, key)| key.as_str())
            }
            // The imports of the installation above would have to be asked: the copy has the place of an element there.
            TargetSource::ListOf(_) | TargetSource::MapOf(_) => None,
        };
        key.map(|key| object_name(outer, key))
    })
}

/// Whether an installation exports the Target of this name into a context.
pub fn exports_target(exports: &ExportBindings, context: &str, target: &str) -> bool {
    exports.targets.iter().any(|export| object_name(context, &export.target) == target)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn fails(skip: &UninstallSkip, expected: &str) {
        let failure = Failure::new("ResolveTarget", "NoTargetFound", expected);
        assert_eq!(without_target("i", "ns/t", skip), Err(failure.with_code(Code::ConfigurationProblem)));
    }

    #[test]
    fn c_28_an_item_without_its_target_fails_and_says_both_ways_out() {
        fails(
            &UninstallSkip::NotRequested,
            "DeployItem i cannot be uninstalled: Target ns/t does not exist; create it again, or, to leave what was \
             deployed where it is, set spec.onDelete.skipUninstallIfClusterRemoved or annotate the DeployItem \
             landscaper.gardener.cloud/delete-without-uninstall=true; then reconcile again",
        );
    }

    #[test]
    fn c_28_a_doubt_is_told_and_the_flag_is_no_way_out() {
        let message = |doubt: &str| {
            format!(
                "DeployItem i cannot be uninstalled: Target ns/t does not exist, and \
                 onDelete.skipUninstallIfClusterRemoved does not count because {doubt}; create it again, or, to leave \
                 what was deployed where it is, annotate the DeployItem \
                 landscaper.gardener.cloud/delete-without-uninstall=true; then reconcile again"
            )
        };
        let copy = AbsenceCause::CopyOf("ns/cluster".into());
        fails(&UninstallSkip::Inconclusive(copy), &message("it was a copy of Target ns/cluster, which exists"));
        fails(
            &UninstallSkip::Inconclusive(AbsenceCause::ExportedBy("ns/up".into())),
            &message("Installation ns/up exports it"),
        );
        fails(&UninstallSkip::Inconclusive(AbsenceCause::Unknown), &message("what it was a copy of is not known"));
    }

    #[test]
    fn c_28_an_item_of_a_removed_cluster_goes_and_says_what_was_left() {
        let note = "Target ns/t does not exist any more, so its cluster counts as removed \
                    (onDelete.skipUninstallIfClusterRemoved): nothing was uninstalled, what DeployItem i had deployed was \
                    left where it was";
        assert_eq!(without_target("i", "ns/t", &UninstallSkip::ClusterRemoved), Ok(note.to_owned()));
    }

    fn imports(targets: Value) -> ImportBindings {
        serde_json::from_value(json!({"targets": targets})).unwrap()
    }

    #[track_caller]
    fn check(import: Value, copy: &str, outer: &str, expected: Option<&str>) {
        let mut import = import;
        import["name"] = json!("t");
        let imports = imports(json!([{"name": "other", "target": "another"}, import]));
        let copy = object_name("Inst.x", copy);
        assert_eq!(original(&copy, &imports, "Inst.x", outer).as_deref(), expected, "{imports:?}");
    }

    #[test]
    fn a_copy_stands_for_what_its_import_names() {
        check(json!({"target": "k"}), "t", "", Some("k"));
        check(json!({"target": "#k"}), "t", "Inst.up", Some("k"));
        check(json!({"target": "k"}), "t", "Inst.up", Some(&object_name("Inst.up", "k")));
        check(json!({"targets": ["k", "l"]}), "t[1]", "", Some("l"));
        check(json!({"targetMap": {"red": "k", "blue": "l"}}), "t[blue]", "", Some("l"));
        check(json!({"target": "k"}), "other", "", Some("another"));
    }

    #[test]
    fn what_no_import_names_is_not_known() {
        check(json!({"target": "k"}), "u", "", None);
        check(json!({"targets": ["k"]}), "t[1]", "", None);
        check(json!({"targetMap": {"red": "k"}}), "t[blue]", "", None);
        check(json!({"targetListRef": "up"}), "t[0]", "", None);
        check(json!({"targetMapRef": "up"}), "t[red]", "", None);
        check(json!({}), "t", "", None);
    }

    #[test]
    fn an_export_is_known_by_the_name_of_its_object() {
        let exports: ExportBindings =
            serde_json::from_value(json!({"targets": [{"name": "t", "target": "k"}]})).unwrap();
        assert!(exports_target(&exports, "", "k"));
        assert!(exports_target(&exports, "Inst.up", &object_name("Inst.up", "k")));
        assert!(!exports_target(&exports, "", "t"));
        assert!(!exports_target(&exports, "Inst.up", "k"));
    }
}
