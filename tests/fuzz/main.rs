//! The corpus of `fuzz/`, run over its parsers: what a fuzzer has found once is found no more.

#[cfg(test)]
#[expect(unreachable_pub, reason = "targets of the fuzzer import it from a library")]
#[path = "../../fuzz/src/parsers.rs"]
mod parsers;

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        env, fs,
        path::{Path, PathBuf},
        sync::mpsc,
        thread,
        time::{Duration, Instant},
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
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let built =
            manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
        assert_eq!(built.map(str::to_owned).collect::<BTreeSet<_>>(), parsers);
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

    /// Numbers that follow from a seed.
    struct Dice(u64);

    impl Dice {
        /// A number below another one.
        fn below(&mut self, most: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % (most.max(1) as u64)).unwrap_or_default()
        }
    }

    /// A file of the corpus with a few changes: bytes that are others, parts that are left out, repeated, or of another file.
    fn changed(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
        const WORDS: [&[u8]; 12] = [
            b"{",
            b"[",
            b"\"",
            b"null",
            b"-1",
            b"1e999",
            b"\xff\xff\xff\xff",
            b"\0",
            b"../",
            b"*",
            b"(a{1,100})",
            b"\n",
        ];
        let mut bytes = corpus[dice.below(corpus.len())].clone();
        for _ in 0..=dice.below(6) {
            let (from, to) = (dice.below(bytes.len() + 1), dice.below(bytes.len() + 1));
            let part = from.min(to)..from.max(to);
            match dice.below(6) {
                0 => {
                    if let Some(byte) = bytes.get_mut(from) {
                        *byte = u8::try_from(dice.below(256)).unwrap_or_default();
                    }
                }
                1 => drop(bytes.drain(part.start..part.end.min(part.start + 64))),
                2 => {
                    let copy = bytes[part].to_vec();
                    bytes.splice(to..to, copy.into_iter().take(1 << 12));
                }
                3 => {
                    let other = &corpus[dice.below(corpus.len())];
                    let begin = dice.below(other.len() + 1);
                    bytes.splice(from..from, other[begin..].iter().copied().take(1 << 12));
                }
                _ => drop(bytes.splice(from..from, WORDS[dice.below(WORDS.len())].iter().copied())),
            }
        }
        bytes.truncate(1 << 18);
        bytes
    }

    /// What a fuzzer does, without one: for `FUZZ` seconds for each parser, of those that `TARGETS` names with commas, else all. A
    /// failure leaves its bytes in a file.
    #[test]
    fn the_corpus_changed_at_random_is_read_in_time_and_without_a_panic() {
        let seconds = env::var("FUZZ").ok().and_then(|seconds| seconds.parse().ok());
        let lasts = seconds.map_or(Duration::from_millis(100), Duration::from_secs);
        let targets = env::var("TARGETS").unwrap_or_default();
        let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4711);
        for (name, _) in parsers::ALL {
            if !targets.is_empty() && !targets.split(',').any(|target| target == name) {
                continue;
            }
            let folder = repository().join("fuzz/corpus").join(name);
            let mut files: Vec<PathBuf> =
                fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
            files.sort();
            let corpus: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).expect("a file")).collect();
            let (tries, begin) = (mpsc::channel::<Vec<u8>>(), Instant::now());
            let (told, asked) = tries;
            let work = move || {
                let (mut dice, mut count, mut longest) = (Dice(seed), 0_u64, Duration::ZERO);
                while begin.elapsed() < lasts {
                    let bytes = changed(&mut dice, &corpus);
                    told.send(bytes.clone()).expect("the test waits");
                    let began = Instant::now();
                    parsers::run(name, &bytes);
                    longest = longest.max(began.elapsed());
                    count += 1;
                }
                (count, longest)
            };
            let thread = thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread");
            let mut last = Vec::new();
            let is_in_time = loop {
                match asked.recv_timeout(DEADLINE) {
                    Ok(bytes) => last = bytes,
                    Err(ended) => break ended == mpsc::RecvTimeoutError::Disconnected,
                }
            };
            let ended = if is_in_time { thread.join().ok() } else { None };
            let Some((count, longest)) = ended else {
                let file = env::temp_dir().join(format!("found-{name}"));
                fs::write(&file, &last).expect("the file can be written");
                panic!("{name} panics or takes more than {DEADLINE:?}; its bytes are in {}", file.display());
            };
            println!("{name}: {count} texts, {longest:?} for the longest");
        }
    }
}
