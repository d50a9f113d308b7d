//! The corpus of `fuzz/`, run over its parsers: what a fuzzer has found once is found no more.

#[cfg(test)]
#[expect(unreachable_pub, reason = "targets of the fuzzer import it from a library")]
#[path = "../../fuzz/src/parsers.rs"]
mod parsers;

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
        sync::mpsc,
        thread,
        time::Duration,
    };

    use orangery_tests::repository;

    use super::parsers;

    /// How long a parser may take for one file: more than any of them takes, on the slowest machine.
    const DEADLINE: Duration = Duration::from_secs(60);

    /// The stack of a thread that serves requests.
    const STACK: usize = 2 << 20;

    /// The names in a folder, without their endings.
    fn names(folder: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(folder).expect("the folder is there");
        let name = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
        entries.map(|entry| name(entry.expect("an entry").path())).collect()
    }

    #[test]
    fn every_parser_has_a_target_and_a_corpus() {
        let folder = repository().join("fuzz");
        let parsers: BTreeSet<String> = parsers::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names(&folder.join("fuzz_targets")), parsers);
        assert_eq!(names(&folder.join("corpus")), parsers);
    }

    #[test]
    fn the_corpus_is_read_in_time_and_without_a_panic() {
        for (name, _) in parsers::ALL {
            let folder = repository().join("fuzz/corpus").join(name);
            for entry in fs::read_dir(folder).expect("a corpus") {
                let path = entry.expect("an entry").path();
                let bytes = fs::read(&path).expect("a file");
                let (done, waits) = mpsc::channel();
                let work = move || {
                    parsers::run(name, &bytes);
                    done.send(()).expect("the test waits");
                };
                let thread = thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread");
                if waits.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    panic!("{} takes more than {DEADLINE:?}", path.display());
                }
                assert!(thread.join().is_ok(), "{} makes its parser panic", path.display());
            }
        }
    }
}
