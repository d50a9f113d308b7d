//! WIT as the files of `wit/` write it: a declaration or a word on each line, with its meaning above it.

use std::{fmt::Write as _, mem};

/// What is declared in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WitFile {
    /// `orangery:deployer@0.1.0`
    pub(crate) package: String,
    /// What stands above the package.
    pub(crate) about: String,
    /// In the order of the file.
    pub(crate) declared: Vec<Declared>,
}

/// What a declaration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its words are imports, exports, and worlds that it includes.
    World,
    /// An interface or a resource, whose words are functions.
    Functions,
    /// Its words are fields.
    Record,
    /// Its words are cases, which may carry a value.
    Variant,
    /// Its words are cases.
    Enumeration,
    /// Another name of a type.
    Alias,
}

/// A type, an interface or a world.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    /// What it is.
    pub(crate) part: Part,
    /// The word that declares it: `record`.
    pub(crate) keyword: String,
    /// Its name, without the `%` of names that WIT uses itself.
    pub(crate) name: String,
    /// What it means.
    pub(crate) about: String,
    /// Fields, cases, functions; of an alias none.
    pub(crate) words: Vec<Word>,
    /// How many declarations it lies in.
    depth: usize,
    /// Of an alias what it stands for.
    stands_for: String,
}

/// A field, a case or a function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its name.
    pub(crate) name: String,
    /// Its type, the value of a case, or what a function takes and answers; empty for a case without a value.
    pub(crate) of: String,
    /// What it means.
    about: String,
}

/// Reads a file.
///
/// # Panics
///
/// Where a line is none of those that the contracts are written in.
pub(crate) fn parse(text: &str) -> WitFile {
    let mut file = WitFile::default();
    // The declarations that are open, by their place; what is written above the next line.
    let (mut open, mut about) = (Vec::<usize>::new(), Vec::<&str>::new());
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            about.push(comment.trim());
        } else if let Some(package) = line.strip_prefix("package ") {
            file.package = package.trim_end_matches(';').to_owned();
            file.about = paragraphs(&mem::take(&mut about));
        } else if line == "}" {
            open.pop().expect("a brace closes a declaration");
        } else if !(line.is_empty() || line.starts_with("@since(") || line.starts_with("use ")) {
            let meaning = paragraphs(&mem::take(&mut about));
            if let Some(mut declared) = declaration(line) {
                (declared.about, declared.depth) = (meaning, open.len());
                if declared.part != Part::Alias {
                    open.push(file.declared.len());
                }
                file.declared.push(declared);
            } else {
                let of = open
                    .last()
                    .and_then(|place| file.declared.get_mut(*place))
                    .expect("a word is declared by something");
                of.words.push(word(line, meaning));
            }
        }
    }
    file
}

/// Lines of a comment, of which empty ones part paragraphs.
fn paragraphs(lines: &[&str]) -> String {
    lines.iter().map(|line| if line.is_empty() { "\n\n" } else { *line }).fold(String::new(), |text, line| {
        let apart = if text.is_empty() || text.ends_with('\n') || line == "\n\n" { "" } else { " " };
        text + apart + line
    })
}

/// What a line declares; none where it is a word of what is open.
fn declaration(line: &str) -> Option<Declared> {
    let (keyword, rest) = line.split_once(' ')?;
    let part = match keyword {
        "world" => Part::World,
        "interface" | "resource" => Part::Functions,
        "record" => Part::Record,
        "variant" => Part::Variant,
        "enum" => Part::Enumeration,
        "type" => Part::Alias,
        _ => return None,
    };
    let (name, stands_for) = match rest.split_once(" = ") {
        Some((name, of)) => (name, of.trim_end_matches(';')),
        None => (rest.trim_end_matches('{').trim(), ""),
    };
    Some(Declared {
        part,
        keyword: keyword.to_owned(),
        name: name.trim_start_matches('%').to_owned(),
        about: String::new(),
        words: Vec::new(),
        depth: 0,
        stands_for: stands_for.to_owned(),
    })
}

fn word(line: &str, about: String) -> Word {
    let line = line.trim_end_matches([',', ';']);
    let (name, of) = match (line.split_once(": "), line.split_once('(')) {
        (Some((name, of)), _) => (name, of),
        (None, Some((name, of))) => (name, of.trim_end_matches(')')),
        (None, None) => match line.split_once(' ') {
            // Of a world: `import log`.
            Some((how, what)) => (what, how),
            None => (line, ""),
        },
    };
    Word { name: name.trim_start_matches('%').to_owned(), of: of.to_owned(), about }
}

impl Declared {
    /// As the reference has it.
    pub(crate) fn page(&self) -> String {
        let marks = "#".repeat(3 + self.depth.min(2));
        let mut page = format!("\n{marks} {} `{}`\n", self.keyword, self.name);
        let stands_for = if self.stands_for.is_empty() { String::new() } else { format!("`{}`. ", self.stands_for) };
        if !self.about.is_empty() || !stands_for.is_empty() {
            page += &format!("\n{stands_for}{}\n", self.about);
        }
        match self.part {
            Part::World => {
                let words = self.words.iter().map(|word| format!("{}s `{}`", word.of, word.name));
                page += &format!("\nIt {}.\n", words.collect::<Vec<_>>().join(", "));
            }
            Part::Functions => {
                for word in &self.words {
                    let _ = write!(
                        page,
                        "\n- `{}: {}`\n\n  {}\n",
                        word.name,
                        word.of,
                        word.about.replace("\n\n", "\n\n  ")
                    );
                }
            }
            Part::Record | Part::Variant | Part::Enumeration => {
                page += match self.part {
                    Part::Record => "\n| field | type | means |\n|---|---|---|\n",
                    _ => "\n| case | carries | means |\n|---|---|---|\n",
                };
                for Word { name, of, about } in &self.words {
                    let of = if of.is_empty() { String::new() } else { format!("`{of}`") };
                    let _ = writeln!(page, "| `{name}` | {of} | {} |", about.replace('|', "\\|"));
                }
            }
            Part::Alias => {}
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_with_the_meaning_of_every_word() {
        let text = "/// All.\n///\n/// More.\npackage a:b@0.1.0;\n\n/// It\n/// reads.\n@since(version = 0.1.0)\ninterface c {\n    use t.{json};\n\n    \
                    /// A.\n    record d {\n        /// F.\n        e-f: option<u8>,\n    }\n\n    /// V.\n    variant g {\n        /// H.\n        \
                    h,\n        /// I.\n        i(json),\n    }\n\n    /// Lists.\n    %list: func(of: d) -> g;\n}\n\n/// W.\nworld w \
                    {\n    import c;\n}\n";
        let file = parse(text);
        assert_eq!((file.package.as_str(), file.about.as_str()), ("a:b@0.1.0", "All.\n\nMore."));
        let page: String = file.declared.iter().map(Declared::page).collect();
        let expected = "\n### interface `c`\n\nIt reads.\n\n- `list: func(of: d) -> g`\n\n  Lists.\n\n#### record `d`\n\nA.\n\n| field | \
                        type | means |\n|---|---|---|\n| `e-f` | `option<u8>` | F. |\n\n#### variant `g`\n\nV.\n\n| case | carries | \
                        means |\n|---|---|---|\n| `h` |  | H. |\n| `i` | `json` | I. |\n\n### world `w`\n\nW.\n\nIt imports `c`.\n";
        assert_eq!(page, expected);
    }
}
