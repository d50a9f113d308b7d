//! Which mutants a test reaches, and how long it takes: a mutant is played with those alone that reach it.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    several,
    suite::{End, Suite, Switch},
};

/// What a test does without a mutant. One that does not pass alone is none of these.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TestReach {
    pub(crate) suite: String,
    pub(crate) test: String,
    pub(crate) seconds: f64,
    pub(crate) numbers: BTreeSet<usize>,
}

/// No test that is worth playing takes longer.
const LONGEST: Duration = Duration::from_secs(180);

/// Plays each test of the suites alone, and adds a line to the file for each that passes. What it has already is not played again.
pub(crate) fn reach(suites: &[String], skipped: &[String], file: &Path) {
    let known: BTreeSet<_> = read(file).into_iter().map(|reached| (reached.suite, reached.test)).collect();
    let suites: Vec<Suite> = suites.iter().map(|name| Suite::of(name)).collect();
    let is_wanted = |suite: &Suite, test: &String| {
        !known.contains(&(suite.name.clone(), test.clone())) && !skipped.iter().any(|part| test.contains(part))
    };
    let tests = suites.iter().flat_map(|suite| suite.tests().into_iter().map(move |test| (suite, test)));
    let left: Vec<(&Suite, String)> = tests.filter(|(suite, test)| is_wanted(suite, test)).collect();
    let file = OpenOptions::new().create(true).append(true).open(file).expect("a file to write to");
    let file = Mutex::new(file);
    several::each(left, |(suite, test)| {
        let numbers = tempfile::NamedTempFile::new().expect("a file for numbers");
        let began = Instant::now();
        let end = suite.play(&test, &Switch::Reached(numbers.path()), LONGEST);
        let seconds = began.elapsed().as_secs_f64();
        if end != End::Passed {
            println!("{} {test} does not pass alone", suite.name);
            return;
        }
        let numbers = fs::read_to_string(numbers.path()).expect("numbers");
        let numbers = numbers.lines().map(|number| number.parse().expect("a number")).collect();
        let reached = TestReach { suite: suite.name.clone(), test, seconds, numbers };
        let line = serde_json::to_string(&reached).expect("a test is JSON");
        writeln!(file.lock().expect("no thread panics with it"), "{line}").expect("a line of the file");
    });
}

pub(crate) fn read(file: &Path) -> Vec<TestReach> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    lines.lines().map(|line| serde_json::from_str(line).expect("a line that was written here")).collect()
}
