//! Results of steps, kept by what they were made of: `<name>.<step>.wasm`, and beside it the digest of its making.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use sha2::{Digest, Sha256};

use crate::Error;

/// The results of one component.
pub(super) struct CachedBuild<'a> {
    pub(super) folder: &'a Path,
    pub(super) name: &'a str,
}

impl CachedBuild<'_> {
    /// Where the result of a step lies.
    pub(super) fn place(&self, step: &str) -> PathBuf {
        self.folder.join(format!("{}.{step}.wasm", self.name))
    }

    /// The result of a step: the one that is kept, or a new one where it was made of something else.
    pub(super) fn step(
        &self,
        step: &str,
        of: &[&[u8]],
        make: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        let mut hasher = Sha256::new();
        for part in of {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let made_of: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let place = self.place(step);
        let note = place.with_extension("made-of");
        if fs::read_to_string(&note).is_ok_and(|kept| kept == made_of)
            && let Ok(kept) = fs::read(&place)
        {
            return Ok(kept);
        }
        let made = make()?;
        // Without its note a result counts for nothing, so it is the first to go and the last to come.
        let _absent = fs::remove_file(&note);
        replace(&place, &made)?;
        replace(&note, made_of.as_bytes())?;
        Ok(made)
    }
}

/// Writes a file beside the place and moves it there: two builds may run at once.
fn replace(place: &Path, content: &[u8]) -> Result<(), Error> {
    let draft = place.with_extension(format!("{}.draft", process::id()));
    let moved = fs::write(&draft, content).and_then(|()| fs::rename(&draft, place));
    moved.map_err(|source| Error::File { path: place.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_step_is_made_again_when_it_is_made_of_something_else() {
        let folder = std::env::temp_dir().join(format!("orangery-kept-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let kept = CachedBuild { folder: &folder, name: "a" };
        let made = Cell::new(0);
        let step = |of: &[&[u8]]| {
            let result = kept.step("core", of, || {
                made.set(made.get() + 1);
                Ok(of.concat())
            });
            result.expect("it is made")
        };
        assert_eq!(step(&[b"ab", b"c"]), b"abc");
        assert_eq!(step(&[b"ab", b"c"]), b"abc");
        assert_eq!(made.get(), 1);
        // The same bytes in other parts are something else.
        assert_eq!(step(&[b"a", b"bc"]), b"abc");
        assert_eq!(made.get(), 2);
        fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
