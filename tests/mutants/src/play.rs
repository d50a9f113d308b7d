//! Plays mutants one by one, two at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
    thread,
};

use crate::{
    draw::{self, Mutant},
    outcome::Outcome,
    stage::{self, End, Ordinary, Stage},
};

/// How many tests that fail are played alone, before the failures are taken for chance.
const ALONE: usize = 5;

/// The first mutants of the plan that compile, or those of these numbers.
pub(crate) fn chosen(plan: &Path, count: usize, only: &[usize]) -> Vec<Mutant> {
    let compile = draw::read(plan).into_iter().filter(|mutant| mutant.refused.is_none());
    compile.filter(|mutant| only.is_empty() || only.contains(&mutant.number)).take(count).collect()
}

/// What the table has already is not played again.
pub(crate) fn play(mutants: Vec<Mutant>, table: &Path, stages: &[String]) {
    let played = fs::read_to_string(table).unwrap_or_default();
    let is_played = |mutant: &Mutant| played.lines().any(|line| line.starts_with(&format!("{} | ", mutant.number)));
    let left: Vec<Mutant> = mutants.into_iter().filter(|mutant| !is_played(mutant)).collect();
    let of = |mutant: &Mutant| stages.iter().map(|words| Stage::of(words, mutant)).collect::<Vec<_>>();
    let ordinary = stage::ordinary(left.iter().flat_map(of).collect::<BTreeSet<_>>());
    let table = OpenOptions::new().create(true).append(true).open(table).expect("a table to write to");
    let (queue, table) = (Mutex::new(left.into_iter()), Mutex::new(table));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(mutant) = next(&queue) {
                    let outcome = outcome(&mutant, of(&mutant), &ordinary);
                    note(&table, &mutant, &outcome);
                }
            });
        }
    });
}

fn next(queue: &Mutex<impl Iterator<Item = Mutant>>) -> Option<Mutant> {
    queue.lock().expect("no thread panics with it").next()
}

fn note(table: &Mutex<File>, mutant: &Mutant, outcome: &Outcome) {
    let line = format!("{} | {} | {outcome}", mutant.number, mutant.name);
    println!("{line}");
    writeln!(table.lock().expect("no thread panics with it"), "{line}").expect("a line of the table");
}

fn outcome(mutant: &Mutant, stages: Vec<Stage>, ordinary: &BTreeMap<Stage, Ordinary>) -> Outcome {
    for stage in stages {
        let Ordinary { failed: before, limit } = &ordinary[&stage];
        match stage.with(mutant, *limit) {
            End::NotInTime => return Outcome::NotInTime { stage: stage.name },
            End::Crashed => return Outcome::Crashed { stage: stage.name },
            End::Failed(failed) => {
                let told = failed.difference(before).take(ALONE).find(|test| stage.tells(mutant, test, *limit));
                if let Some(test) = told {
                    return Outcome::Test { stage: stage.name, test: test.clone() };
                }
            }
        }
    }
    Outcome::Survived
}
