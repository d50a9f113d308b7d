//! Plays mutants with the tests that reach them.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
    time::Duration,
};

use crate::{
    draw::{self, Mutant},
    outcome::Outcome,
    reach::{self, TestReach},
    several,
    suite::{End, Suite, Switch},
};

/// What is not played for longer: a test that takes a second has this long.
const LEAST: Duration = Duration::from_secs(60);

/// The first mutants of the plan that compile, or those of these numbers.
pub(crate) fn chosen(plan: &Path, count: usize, only: &[usize]) -> Vec<Mutant> {
    let compile = draw::read(plan).into_iter().filter(|mutant| mutant.refused.is_none());
    compile.filter(|mutant| only.is_empty() || only.contains(&mutant.number)).take(count).collect()
}

/// What the table has already is not played again.
pub(crate) fn play(mutants: Vec<Mutant>, reached: &Path, table: &Path) {
    let played = fs::read_to_string(table).unwrap_or_default();
    let is_played = |mutant: &Mutant| played.lines().any(|line| line.starts_with(&format!("{} | ", mutant.number)));
    let left: Vec<Mutant> = mutants.into_iter().filter(|mutant| !is_played(mutant)).collect();
    let mut reached = reach::read(reached);
    reached.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let mut suites = BTreeMap::new();
    for TestReach { suite, .. } in &reached {
        suites.entry(suite.clone()).or_insert_with(|| Suite::of(suite));
    }
    let table = Mutex::new(OpenOptions::new().create(true).append(true).open(table).expect("a table to write to"));
    several::each(left, |mutant| {
        let tests = reached.iter().filter(|test| test.numbers.contains(&mutant.number));
        let outcome = outcome(&mutant, tests, &suites);
        let line = format!("{} | {} | {outcome}", mutant.number, mutant.name);
        println!("{line}");
        writeln!(table.lock().expect("no thread panics with it"), "{line}").expect("a line of the table");
    });
}

fn outcome<'a>(
    mutant: &Mutant,
    tests: impl Iterator<Item = &'a TestReach>,
    suites: &BTreeMap<String, Suite>,
) -> Outcome {
    let mut passed = 0;
    for TestReach { suite: name, test, seconds, .. } in tests {
        let suite = &suites[name];
        let limit = LEAST.max(Duration::from_secs_f64(seconds * 3.0));
        let with = || suite.play(test, &Switch::On(mutant.number), limit);
        let end = with();
        // Once more, and without the mutant: it is no chance.
        if end != End::Passed && with() != End::Passed && suite.play(test, &Switch::Nothing, limit) == End::Passed {
            let (suite, test) = (name.clone(), test.clone());
            return Outcome::Caught { suite, test, in_time: end == End::Failed };
        }
        passed += 1;
    }
    Outcome::Survived { passed }
}
