//! The list of `cargo mutants`, and the plan that is drawn of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// An entry of `cargo mutants --list --json`.
#[derive(Deserialize)]
struct Listed {
    /// `FILE:LINE:COLUMN: CHANGE`
    name: String,
    file: PathBuf,
    span: Span,
    replacement: String,
    genre: Genre,
}

#[derive(Deserialize)]
struct Span {
    start: Place,
}

/// Counted from one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Mutant {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) start: Place,
    pub(crate) replacement: String,
    pub(crate) genre: Genre,
    /// Why it is not played.
    pub(crate) refused: Option<String>,
}

pub(crate) fn draw(list: &Path, seed: &str, count: usize, conditions: bool, plan: &Path) {
    let listed: Vec<Listed> = serde_json::from_str(&text(list)).expect("the list of cargo mutants");
    let mut seen = BTreeMap::<(PathBuf, String), usize>::new();
    let mut keyed: Vec<_> = listed
        .into_iter()
        .filter(|listed| !conditions || is_condition(listed))
        .map(|listed| {
            let nth = seen.entry((listed.file.clone(), change(&listed.name).to_owned())).or_default();
            *nth += 1;
            let key = format!("{seed} {} {} {nth}", listed.file.display(), change(&listed.name));
            (Sha256::digest(key.as_bytes()), listed)
        })
        .collect();
    keyed.sort_by_key(|(left, _)| *left);
    let mut mutants = if plan.exists() { read(plan) } else { Vec::new() };
    let first = mutants.len() + 1;
    mutants.extend(keyed.into_iter().take(count).enumerate().map(|(index, (_, listed))| Mutant {
        number: first + index,
        name: listed.name,
        file: listed.file,
        start: listed.span.start,
        replacement: listed.replacement,
        genre: listed.genre,
        refused: None,
    }));
    write(plan, &mutants);
}

/// The name without its line and column, so that what changes elsewhere in the file draws nothing else.
fn change(name: &str) -> &str {
    name.splitn(4, ':').last().expect("a name has a last part").trim()
}

fn is_condition(listed: &Listed) -> bool {
    let compares = ["==", "!=", "<", ">", "<=", ">=", "&&", "||"].contains(&listed.replacement.as_str());
    match listed.genre {
        Genre::BinaryOperator => compares,
        Genre::UnaryOperator | Genre::MatchArmGuard => true,
        Genre::FnValue => ["true", "false"].contains(&listed.replacement.as_str()),
        Genre::MatchArm | Genre::StructField => false,
    }
}

pub(crate) fn read(plan: &Path) -> Vec<Mutant> {
    serde_json::from_str(&text(plan)).expect("a plan")
}

pub(crate) fn write(plan: &Path, mutants: &[Mutant]) {
    let text = serde_json::to_string_pretty(mutants).expect("a plan is JSON");
    fs::write(plan, text).unwrap_or_else(|error| panic!("{}: {error}", plan.display()));
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
