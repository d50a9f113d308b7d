//! Which switches do not compile.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::{
    draw::{self, Genre, Mutant},
    switch,
};

/// Fails where an error lies in no switch: then the sources do not compile without mutants either.
pub(crate) fn refused(plan: &Path, messages: &Path) {
    let mut mutants = draw::read(plan);
    let mut why = BTreeMap::<usize, String>::new();
    let mut others = Vec::new();
    for error in draw::text(messages).lines().filter_map(error) {
        let number = spans(&error).find_map(|place| around(&mutants, place));
        // A value that is returned early decides what an `impl Trait` is, and the rest of the function is of another type.
        let number = number.or_else(|| spans(&error).find_map(|place| before(&mutants, place)));
        match number {
            Some(number) => _ = why.entry(number).or_insert_with(|| message(&error)),
            None if spans(&error).next().is_some() => others.push(message(&error)),
            None => {}
        }
    }
    assert!(!why.is_empty() || others.is_empty(), "errors outside of switches:\n{}", others.join("\n"));
    for mutant in &mut mutants {
        if let Some(why) = why.get(&mutant.number) {
            mutant.refused = Some(format!("does not compile: {why}"));
        }
    }
    draw::write(plan, &mutants);
    println!("{} do not compile", why.len());
}

fn error(line: &str) -> Option<Value> {
    let mut message: Value = serde_json::from_str(line).ok()?;
    (message["reason"] == "compiler-message" && message["message"]["level"] == "error")
        .then(|| message["message"].take())
}

/// Files and bytes that an error is about.
fn spans(error: &Value) -> impl Iterator<Item = (&str, usize)> {
    let all = error["spans"].as_array().into_iter().flatten();
    all.filter_map(|span| Some((span["file_name"].as_str()?, usize::try_from(span["byte_start"].as_u64()?).ok()?)))
}

/// The innermost switch that a place lies in.
fn around(mutants: &[Mutant], (file, byte): (&str, usize)) -> Option<usize> {
    let text = draw::text(Path::new(file));
    let of_file = mutants.iter().filter(|mutant| Path::new(file) == mutant.file);
    let around = of_file.filter_map(|mutant| {
        let (begin, end) = place_of(&text, mutant.number)?;
        (begin..=end).contains(&byte).then_some((end - begin, mutant.number))
    });
    around.min().map(|(_, number)| number)
}

/// The value of a function that stands before a place, nearest to it.
fn before(mutants: &[Mutant], (file, byte): (&str, usize)) -> Option<usize> {
    let text = draw::text(Path::new(file));
    let of_file = mutants.iter().filter(|mutant| Path::new(file) == mutant.file && mutant.genre == Genre::FnValue);
    let before = of_file.filter_map(|mutant| {
        let (_, end) = place_of(&text, mutant.number)?;
        Some((byte.checked_sub(end)?, mutant.number))
    });
    before.min().map(|(_, number)| number)
}

fn place_of(text: &str, number: usize) -> Option<(usize, usize)> {
    let (begin, end) = switch::marks(number);
    text.find(&begin).zip(text.find(&end))
}

fn message(error: &Value) -> String {
    error["message"].as_str().unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}
