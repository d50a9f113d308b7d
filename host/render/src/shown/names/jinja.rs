//! Variables of Jinja.

use super::{Operand, Path, ROOTS, Scope, Step, Tag, below, fields, follow, tags, twice};

/// The statements that an `end…` follows.
const BLOCKS: [&str; 8] = ["if", "for", "with", "macro", "call", "filter", "block", "autoescape"];

pub(super) fn read(template: &str, line: usize) -> Vec<Path> {
    let tags = tags(template);
    let statements = tags.iter().filter(|tag| tag.is_statement);
    let assigned = statements.filter_map(|tag| tag.text.trim().strip_prefix("set ")).flat_map(|set| {
        let names = set.split_once('=').map_or(set, |(names, _)| names);
        names.split(',').map(str::trim)
    });
    let mut scope = Scope::new(twice(assigned));
    follow(&tags, line, &mut scope, named, enter)
}

/// What an operand of an expression stands for. Names of filters, tests and arguments stand for nothing.
fn named(scope: &Scope, text: &str, of: Operand) -> Option<Path> {
    let before = text.get(..of.start)?.trim_end();
    let after = text.get(of.end..)?.trim_start();
    let is_argument = after.starts_with('=') && !after.starts_with("==");
    if before.ends_with('|') || is_argument {
        return None;
    }
    let operand = text.get(of.start..of.end)?;
    // What is called is a method of the value.
    let operand = if after.starts_with('(') { operand.rsplit_once('.')?.0 } else { operand };
    value(scope, operand)
}

fn value(scope: &Scope, operand: &str) -> Option<Path> {
    let (name, rest) = operand.split_once('.').unwrap_or((operand, ""));
    let mut path = match scope.name(name) {
        Some(known) => known?,
        None if ROOTS.contains(&name) => vec![Step::Field(name.to_owned())],
        None => return None,
    };
    if !rest.is_empty() {
        path.extend(fields(rest)?);
    }
    Some(path)
}

/// What an expression stands for, where it is nothing but an operand.
fn expression(scope: &Scope, text: &str) -> Option<Path> {
    let text = text.trim();
    text.chars().all(|c| c.is_alphanumeric() || "_.".contains(c)).then(|| value(scope, text))?
}

fn enter(scope: &mut Scope, tag: &Tag<'_>) {
    if !tag.is_statement {
        return;
    }
    let text = tag.text.trim();
    let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if BLOCKS.contains(&keyword) {
        scope.open(None);
    }
    match keyword {
        "else" | "elif" => scope.turn(),
        "for" => each(scope, rest),
        "set" if !rest.contains('=') => {
            scope.define(rest.split('|').next().unwrap_or(rest).trim(), None);
            scope.open(None);
        }
        "set" | "with" => assign(scope, rest),
        "macro" => {
            let (_, arguments) = rest.split_once('(').unwrap_or_default();
            let names = arguments.split([',', ')']).map(|name| name.split('=').next().unwrap_or(name).trim());
            names.for_each(|name| scope.define(name, None));
        }
        _ => {
            let ended = keyword.strip_prefix("end").is_some_and(|of| of == "set" || BLOCKS.contains(&of));
            if ended {
                scope.end();
            }
        }
    }
}

/// `a = expression`; of several assignments in one statement only the names are taken.
fn assign(scope: &mut Scope, text: &str) {
    let Some((names, value)) = text.split_once('=') else { return };
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let path = if let [_] = names.as_slice() { expression(scope, value) } else { None };
    names.iter().for_each(|name| scope.define(name, path.clone()));
    value.split(',').filter_map(|part| part.split_once('=')).for_each(|(name, _)| {
        let name = name.rsplit(char::is_whitespace).find(|word| !word.is_empty()).unwrap_or_default();
        scope.define(name, None);
    });
}

/// `x in expression`, and `key, value in expression | items`.
fn each(scope: &mut Scope, text: &str) {
    let Some((names, of)) = text.split_once(" in ") else { return };
    let of = of.split_once(" if ").map_or(of, |(of, _)| of).trim_end_matches(" recursive");
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let path = match names.as_slice() {
        [_] => below(expression(scope, of), Step::Item),
        [_, _] => {
            let items = of.split_once('|').filter(|(_, filter)| filter.trim() == "items");
            items.and_then(|(of, _)| below(expression(scope, of), Step::Entry))
        }
        _ => None,
    };
    if let Some((last, keys)) = names.split_last() {
        keys.iter().for_each(|name| scope.define(name, None));
        scope.define(last, path);
    }
    scope.define("loop", None);
}
