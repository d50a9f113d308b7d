//! Files that stand beside those of Go's own library, and what they have changed in it.
//!
//! An addition says in lines such as `// In nat.go, func (n *Nat) Exp( is func (n *Nat) expHere(` what it takes the place of.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{collect, toolchain::Go, unwritten};
use crate::Error;

/// The files that are laid over the library, with their texts: additions, and what they change.
pub(super) fn edited(folder: &Path, go: &Go) -> Result<BTreeMap<PathBuf, String>, Error> {
    let mut additions = Vec::new();
    collect(folder, &mut additions)?;
    let read = |path: &Path| fs::read_to_string(path).map_err(|source| unwritten(path, source));
    let mut laid = BTreeMap::new();
    for addition in additions {
        let place = go.library.join(addition.strip_prefix(folder).unwrap_or(&addition));
        let text = read(&addition)?;
        for (name, before, after) in text.lines().filter_map(change) {
            let file = place.with_file_name(name);
            let written = match laid.remove(&file) {
                Some(written) => written,
                None => read(&file)?,
            };
            let written = changed(&written, before, after).ok_or_else(|| Error::NoGo {
                reason: format!(
                    "{} does not have `{before}` once, which {} changes; this Go is {}, for which that file has to be adapted",
                    file.display(),
                    addition.display(),
                    go.version
                ),
            })?;
            laid.insert(file, written);
        }
        laid.insert(place, text);
    }
    Ok(laid)
}

/// The file, the text in it and the text in its place of a line of an addition.
fn change(line: &str) -> Option<(&str, &str, &str)> {
    let (file, texts) = line.strip_prefix("// In ")?.split_once(", ")?;
    let (before, after) = texts.split_once(" is ")?;
    file.ends_with(".go").then_some((file, before, after))
}

/// A text in which another stands once, with its replacement.
fn changed(text: &str, before: &str, after: &str) -> Option<String> {
    let (begin, end) = text.split_once(before)?;
    (!end.contains(before)).then(|| [begin, after, end].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_addition_changes_stands_once_in_the_library() {
        let line = "// In nat.go, func (n *Nat) Exp( is func (n *Nat) expHere(";
        assert_eq!(change(line), Some(("nat.go", "func (n *Nat) Exp(", "func (n *Nat) expHere(")));
        assert_eq!([change("// In general, it is so"), change("package bigmod")], [None; 2]);
        assert_eq!(changed("a f( b", "f(", "g("), Some("a g( b".to_owned()));
        assert_eq!([changed("a b", "f(", "g("), changed("f( f(", "f(", "g(")], [None, None]);
    }

    #[test]
    fn an_addition_and_what_it_changes_are_laid_over_the_library() {
        let folder = std::env::temp_dir().join(format!("orangery-additions-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/big/nat.go", "package big\nfunc Exp() {}\n");
        let addition = "// In nat.go, func Exp( is func expHere(\npackage big\n";
        write("additions/big/power.go", addition);
        let library = folder.join("src");
        let mut go = Go { program: PathBuf::new(), version: "go1.26.8".to_owned(), library: library.clone() };
        let laid = edited(&folder.join("additions"), &go).unwrap();
        let expected = [
            (library.join("big/nat.go"), "package big\nfunc expHere() {}\n".to_owned()),
            (library.join("big/power.go"), addition.to_owned()),
        ];
        assert_eq!(laid, expected.into());
        write("src/big/nat.go", "package big\n");
        go.version = "go1.99".to_owned();
        let why = edited(&folder.join("additions"), &go).unwrap_err();
        assert!(why.is_of_the_machine(), "another Go may have it: {why}");
        assert!(why.to_string().contains("does not have `func Exp(` once"), "{why}");
        fs::remove_dir_all(folder).unwrap();
    }
}
