//! The cases of `tests/golden` are what is made of the recorder's own folders: nothing in them is written by hand.

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    use orangery_tests::{
        machine::raw_recordings,
        recording::{cases, folder, raw::convert},
    };

    use crate::repository::{none, root};

    /// The files below a folder, by their path in it.
    fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                let below = self::files(&path).into_iter();
                files.extend(below.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
            } else {
                files.insert(name, fs::read(&path).expect("the file can be read"));
            }
        }
        files
    }

    #[test]
    #[cfg_attr(without_recordings, ignore = "needs what the recorder of Landscaper wrote: tests/golden/README.md")]
    fn each_recording_is_what_is_made_of_its_raw_one() {
        let made = tempfile::tempdir().expect("a folder can be made");
        let mut raw = BTreeSet::new();
        let mut violations = Vec::new();
        for entry in fs::read_dir(raw_recordings(&root())).expect("the folder can be read") {
            let path = entry.expect("an entry").path();
            if !path.is_dir() {
                continue;
            }
            let case = path.file_name().expect("a name").to_string_lossy().into_owned();
            let again = made.path().join(&case);
            convert(&path, &again).expect("the case can be written");
            let (made, kept) =
                (files(&again), if folder(&case).is_dir() { files(&folder(&case)) } else { BTreeMap::new() });
            let names: BTreeSet<&String> = made.keys().chain(kept.keys()).collect();
            let differing = names.into_iter().filter(|name| made.get(*name) != kept.get(*name));
            violations.extend(differing.map(|name| format!("tests/golden/{case}/{name}")));
            raw.insert(case);
        }
        let unknown = cases().into_iter().filter(|case| !raw.contains(case));
        violations.extend(unknown.map(|case| format!("tests/golden/{case}: nobody has recorded it")));
        none("make the cases anew with --bin recordings, and edit none (tests/golden/README.md)", violations);
    }
}
