//! What a case has rendered before, word for word, in a file of the folder `snapshots` beside the cases.

use std::{fs, path::Path};

use crate::folder;

/// The folder of the snapshots, in that of the cases.
const FOLDER: &str = "snapshots";

/// As many lines of each side are shown where they differ.
const LINES: usize = 10;

/// What is done where something else is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotUse {
    /// The case fails.
    Holds,
    /// The snapshot is written anew.
    IsUpdated,
}

/// What came of it: problems, or the file that was written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SnapshotOutcome {
    pub(super) problems: Vec<String>,
    pub(super) updated: Option<String>,
}

/// Compares a text with the snapshot of a case, or writes it.
///
/// # Errors
/// One sentence about a snapshot that cannot be read or written.
pub(super) fn compare(cases: &Path, case: &str, found: &str, used: SnapshotUse) -> Result<SnapshotOutcome, String> {
    let name = format!("{FOLDER}/{case}.yaml");
    let expected = folder::content_within(cases, &name).map_err(|error| error.to_string())?;
    if expected.as_deref() == Some(found.as_bytes()) {
        return Ok(SnapshotOutcome::default());
    }
    if used == SnapshotUse::IsUpdated {
        write(cases, &name, found)?;
        return Ok(SnapshotOutcome { updated: Some(name), ..SnapshotOutcome::default() });
    }
    let problems = match expected {
        None => vec![format!("there is no {name}; write it with --update, and read what it wrote")],
        Some(expected) => differing(&name, &String::from_utf8_lossy(&expected), found),
    };
    Ok(SnapshotOutcome { problems, updated: None })
}

fn write(cases: &Path, name: &str, text: &str) -> Result<(), String> {
    let folder = cases.join(FOLDER);
    match fs::symlink_metadata(&folder) {
        Ok(there) if there.is_dir() => {}
        Ok(_) => return Err(format!("{} is no folder; remove it", folder.display())),
        Err(_) => fs::create_dir(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?,
    }
    folder::write_within(cases, name, text).map_err(|error| error.to_string())
}

/// The lines from the first that differs to the last, as far as they are shown.
fn differing(name: &str, expected: &str, found: &str) -> Vec<String> {
    let (mut expected, mut found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let same = expected.iter().zip(&found).take_while(|(one, other)| one == other).count();
    (expected, found) = (expected.split_off(same), found.split_off(same));
    while expected.last().is_some_and(|last| found.last() == Some(last)) {
        expected.pop();
        found.pop();
    }
    let place = same + 1;
    let mut problems =
        vec![format!("{name}:{place}: something else is rendered; correct it, or accept it with --update")];
    for (sign, lines) in [('-', expected), ('+', found)] {
        problems.extend(lines.iter().take(LINES).map(|line| format!("{sign} {line}")));
        let more = lines.len().saturating_sub(LINES);
        problems.extend((more > 0).then(|| format!("{sign} and {more} more lines")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_304_a_snapshot_is_held_and_written_with_update_alone() {
        let folder = tempfile::tempdir().unwrap();
        let compare = |found, used| compare(folder.path(), "a", found, used);
        let problems = |problems: &[&str]| SnapshotOutcome {
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            updated: None,
        };
        let none = ["there is no snapshots/a.yaml; write it with --update, and read what it wrote"];
        assert_eq!(compare("a\nb\nc\n", SnapshotUse::Holds), Ok(problems(&none)));
        let written = SnapshotOutcome { updated: Some("snapshots/a.yaml".to_owned()), ..SnapshotOutcome::default() };
        assert_eq!(compare("a\nb\nc\n", SnapshotUse::IsUpdated), Ok(written));
        assert_eq!(compare("a\nb\nc\n", SnapshotUse::IsUpdated), Ok(SnapshotOutcome::default()));
        assert_eq!(compare("a\nb\nc\n", SnapshotUse::Holds), Ok(SnapshotOutcome::default()));
        let other = [
            "snapshots/a.yaml:2: something else is rendered; correct it, or accept it with --update",
            "- b",
            "+ x",
            "+ y",
        ];
        assert_eq!(compare("a\nx\ny\nc\n", SnapshotUse::Holds), Ok(problems(&other)));
        assert_eq!(fs::read_to_string(folder.path().join("snapshots/a.yaml")).unwrap(), "a\nb\nc\n");
        let long: Vec<String> = differing("s", "", &"x\n".repeat(12));
        assert_eq!((long.len(), long.last().map(String::as_str)), (12, Some("+ and 2 more lines")));
    }

    #[test]
    fn c_166_no_snapshot_is_read_or_written_through_a_link() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), folder.path().join(FOLDER)).unwrap();
        assert!(
            compare(folder.path(), "a", "x", SnapshotUse::IsUpdated).unwrap_err().ends_with("is no folder; remove it")
        );
        fs::write(other.path().join("a.yaml"), "theirs").unwrap();
        for used in [SnapshotUse::Holds, SnapshotUse::IsUpdated] {
            assert!(compare(folder.path(), "a", "x", used).unwrap_err().contains("leads out of its folder"));
        }
        assert_eq!(fs::read_to_string(other.path().join("a.yaml")).unwrap(), "theirs");
    }
}
