//! Variables, and the dot, of text/template.

use super::{Operand, Path, Scope, Step, Tag, below, fields, follow, tags};

pub(super) fn read(template: &str, line: usize) -> Vec<Path> {
    let tags = tags(template);
    let assigned = tags.iter().filter_map(|tag| match declared(tag.text.trim()) {
        Some((names, _, false)) => Some(names.into_iter().map(str::to_owned)),
        Some(_) | None => None,
    });
    let mut scope = Scope::new(assigned.flatten().collect());
    scope.define("$", Some(Path::new()));
    follow(&tags, line, &mut scope, named, enter)
}

/// What an operand of an action stands for. That of an `else` is read outside of the branch before it.
fn named(scope: &Scope, text: &str, of: Operand) -> Option<Path> {
    let is_else = text.trim_start().starts_with("else");
    (!is_else).then(|| value(scope, text.get(of.start..of.end)?))?
}

/// What an operand stands for.
fn value(scope: &Scope, operand: &str) -> Option<Path> {
    let (mut path, rest) = match operand.strip_prefix('.') {
        Some(rest) => match scope.dot() {
            Some(dot) => (dot, rest),
            // A template that is called is mostly given all inputs.
            None if ["imports.", "values."].iter().any(|root| rest.starts_with(root)) => (Path::new(), rest),
            None => return None,
        },
        None => {
            let (name, rest) = operand.split_once('.').unwrap_or((operand, ""));
            let path = name.starts_with('$').then(|| scope.name(name))?;
            (path??, rest)
        }
    };
    if !rest.is_empty() {
        path.extend(fields(rest)?);
    }
    Some(path)
}

/// What a pipeline stands for, where it is nothing but an operand.
fn pipeline(scope: &Scope, text: &str) -> Option<Path> {
    let text = text.trim();
    let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text).trim();
    let is_operand = text.starts_with(['.', '$']) && text.chars().all(|c| c.is_alphanumeric() || "_.$".contains(c));
    is_operand.then(|| value(scope, text))?
}

/// `$x := pipeline`, `$i, $x := pipeline` (declared) and `$x = pipeline` (assigned).
fn declared(text: &str) -> Option<(Vec<&str>, &str, bool)> {
    let text = ["if ", "with ", "range ", "else if ", "else with "]
        .iter()
        .find_map(|keyword| text.strip_prefix(keyword))
        .unwrap_or(text)
        .trim_start();
    let (names, pipeline) = text.starts_with('$').then(|| text.split_once('='))??;
    let (names, is_new) = names.strip_suffix(':').map_or((names, false), |names| (names, true));
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let are_names = names.iter().all(|name| name.starts_with('$') && !name.contains(['.', ' ', '"', '(', '|']));
    are_names.then_some((names, pipeline, is_new))
}

fn enter(scope: &mut Scope, tag: &Tag<'_>) {
    let text = tag.text.trim();
    let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if keyword == "else" {
        scope.turn();
    }
    let branch = rest.trim_start();
    let operand = branch.strip_prefix("with ").filter(|_| keyword == "else").unwrap_or(rest);
    let (names, operand) = declared(text).map_or((Vec::new(), operand), |(names, operand, _)| (names, operand));
    let path = pipeline(scope, operand);
    match keyword {
        "end" => return scope.end(),
        "else" => {
            if let Some(block) = scope.blocks.last_mut().filter(|_| branch.starts_with("with ")) {
                block.dot = path.clone();
            }
        }
        "if" => scope.open(scope.dot()),
        "with" => scope.open(path.clone()),
        "range" => {
            let entry = below(path, Step::Entry);
            scope.open(entry.clone());
            if let Some((last, keys)) = names.split_last() {
                keys.iter().for_each(|name| scope.define(name, None));
                scope.define(last, entry);
            }
            return;
        }
        "define" => scope.open_closed(None),
        "block" => {
            let dot = pipeline(scope, rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest));
            scope.open_closed(dot.clone());
            scope.define("$", dot);
        }
        _ => {}
    }
    names.iter().for_each(|name| scope.define(name, path.clone()));
}
