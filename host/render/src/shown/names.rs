//! What the names in a line of a template stand for: fields of the inputs, also by way of variables, of the dot of
//! GoTemplate, and of loops, as far as they are simple. What is computed, or assigned in more than one place, is not followed.

mod gotemplate;
mod jinja;

use std::collections::BTreeSet;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field of an object.
    Field(String),
    /// The items of a list.
    Item,
    /// The items of a list, or the values of an object.
    Entry,
}

/// A way from the inputs down.
pub(super) type Path = Vec<Step>;

/// The inputs whose fields are told.
const ROOTS: [&str; 2] = ["imports", "values"];

/// The parts of the inputs that a line of a template reads, in the order of the text. The line counts from 1.
pub(super) fn read(engine: &str, template: &str, line: usize) -> Vec<Path> {
    let paths = match engine {
        "GoTemplate" => gotemplate::read(template, line),
        "Jinja" => jinja::read(template, line),
        _ => template.lines().nth(line - 1).map(mentioned).unwrap_or_default(),
    };
    let is_told = |path: &Path| {
        path.len() > 1 && matches!(path.first(), Some(Step::Field(root)) if ROOTS.contains(&root.as_str()))
    };
    paths.into_iter().filter(is_told).collect()
}

/// What looks like a path, in a text of any form.
fn mentioned(text: &str) -> Vec<Path> {
    text.split(|c| !is_of_a_path(c)).filter_map(|path| fields(path.trim_matches('.'))).collect()
}

fn is_of_a_path(character: char) -> bool {
    character.is_alphanumeric() || ['_', '.', '$'].contains(&character)
}

/// A path of names with dots between them.
fn fields(text: &str) -> Option<Path> {
    let names: Vec<&str> = text.split('.').collect();
    names
        .iter()
        .all(|name| !name.is_empty())
        .then(|| names.into_iter().map(|name| Step::Field(name.to_owned())).collect())
}

/// What stands between `{{` and `}}` or `{%` and `%}`, without these and without signs that trim.
struct Tag<'a> {
    text: &'a str,
    /// The line that the text begins in, from 1.
    line: usize,
    is_statement: bool,
}

/// The tags of a template in their order, without comments.
fn tags(template: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut start = 0;
    while let Some(found) = template.get(start..).and_then(|rest| rest.find('{')) {
        let open = start + found;
        let rest = template.get(open..).unwrap_or_default();
        let (end, is_statement) = match rest.as_bytes().get(1) {
            Some(b'{') => ("}}", false),
            Some(b'%') => ("%}", true),
            Some(b'#') => {
                start = open + rest.find("#}").map_or(rest.len(), |end| end + 2);
                continue;
            }
            Some(_) | None => {
                start = open + 1;
                continue;
            }
        };
        let inner = rest.get(2..).unwrap_or_default();
        if inner.trim_start_matches('-').trim_start().starts_with("/*") {
            start = open + inner.find("*/").unwrap_or(inner.len());
            continue;
        }
        let length = close(inner, end);
        let text = inner.get(..length).unwrap_or(inner);
        let line = template.get(..open).unwrap_or_default().matches('\n').count() + 1;
        let text = text.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']);
        tags.push(Tag { text, line, is_statement });
        start = open + 2 + (length + end.len()).min(inner.len());
    }
    tags
}

/// The length of a tag's text; its string literals may contain its end.
fn close(inner: &str, end: &str) -> usize {
    let mut rest = inner.char_indices();
    while let Some((index, character)) = rest.next() {
        if inner.get(index..).is_some_and(|rest| rest.starts_with(end)) {
            return index;
        }
        if matches!(character, '"' | '\'' | '`') {
            skip(&mut rest, character);
        }
    }
    inner.len()
}

/// Goes behind the closing quote of a literal.
fn skip(rest: &mut std::str::CharIndices<'_>, quote: char) {
    while let Some((_, character)) = rest.next() {
        if character == '\\' && quote != '`' {
            rest.next();
        } else if character == quote {
            return;
        }
    }
}

/// Something in a text that may name a value, such as `$x.y`, `.a.b` or `a.b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operand {
    start: usize,
    end: usize,
}

/// What may name a value in a text, outside of its string literals.
fn operands(text: &str) -> Vec<Operand> {
    let mut found = Vec::new();
    let mut rest = text.char_indices();
    let mut before = ' ';
    let mut end = 0;
    while let Some((start, character)) = rest.next() {
        if start < end {
            continue;
        }
        if matches!(character, '"' | '\'' | '`') {
            skip(&mut rest, character);
        } else if is_of_a_path(character) {
            let whole = text.get(start..).unwrap_or_default();
            end = start + whole.find(|c| !is_of_a_path(c)).unwrap_or(whole.len());
            // The field of a computed value is not known.
            if before != ')' && before != ']' {
                found.push(Operand { start, end });
            }
        }
        before = character;
    }
    found
}

/// The names that are known somewhere in a template: blocks within blocks.
#[derive(Debug)]
struct Scope {
    blocks: Vec<Block>,
    /// Names that are assigned in more than one place: what they stand for is not followed.
    unsure: BTreeSet<String>,
}

/// A block of a template. `None` stands for a value that is not known.
#[derive(Clone, Debug, Default)]
struct Block {
    names: Vec<(String, Option<Path>)>,
    /// The dot of GoTemplate, inside and behind `else`.
    dot: Option<Path>,
    dot_of_else: Option<Path>,
    /// Whether names of the blocks around it are not known in it.
    is_closed: bool,
}

impl Scope {
    fn new(unsure: BTreeSet<String>) -> Self {
        Self { blocks: vec![Block { dot: Some(Path::new()), ..Block::default() }], unsure }
    }

    /// What a name stands for; `None` where nobody has defined it, `Some(None)` where it is not known.
    fn name(&self, name: &str) -> Option<Option<Path>> {
        if self.unsure.contains(name) {
            return Some(None);
        }
        for block in self.blocks.iter().rev() {
            if let Some((_, path)) = block.names.iter().rev().find(|(known, _)| known == name) {
                return Some(path.clone());
            }
            if block.is_closed {
                return None;
            }
        }
        None
    }

    fn dot(&self) -> Option<Path> {
        self.blocks.last().and_then(|block| block.dot.clone())
    }

    fn define(&mut self, name: &str, path: Option<Path>) {
        if let Some(block) = self.blocks.last_mut() {
            block.names.push((name.to_owned(), path));
        }
    }

    /// A block begins, with this dot in it.
    fn open(&mut self, dot: Option<Path>) {
        let dot_of_else = self.dot();
        self.blocks.push(Block { dot, dot_of_else, ..Block::default() });
    }

    /// A block begins that sees no names of those around it.
    fn open_closed(&mut self, dot: Option<Path>) {
        self.blocks.push(Block { dot, is_closed: true, ..Block::default() });
    }

    /// The other branch of the block begins.
    fn turn(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.dot = block.dot_of_else.clone();
            block.names.clear();
        }
    }

    fn end(&mut self) {
        if self.blocks.len() > 1 {
            self.blocks.pop();
        }
    }
}

/// The names that stand more than once.
fn twice<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).map(str::to_owned).collect()
}

fn below(path: Option<Path>, step: Step) -> Option<Path> {
    path.map(|mut path| {
        path.push(step);
        path
    })
}

/// The parts of the inputs that are read in a line by the tags of a template. `name` answers what an operand stands for,
/// `enter` is told of each tag once it is over.
fn follow<'a>(
    tags: &[Tag<'a>],
    line: usize,
    scope: &mut Scope,
    name: impl Fn(&Scope, &'a str, Operand) -> Option<Path>,
    enter: impl Fn(&mut Scope, &Tag<'a>),
) -> Vec<Path> {
    let mut read = Vec::new();
    for tag in tags.iter().take_while(|tag| tag.line <= line) {
        for operand in operands(tag.text) {
            let before = tag.text.get(..operand.start).unwrap_or_default();
            if tag.line + before.matches('\n').count() == line {
                read.extend(name(scope, tag.text, operand));
            }
        }
        enter(scope, tag);
    }
    read
}

#[cfg(test)]
mod tests;
