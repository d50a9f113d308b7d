//! Where the expressions and statements of a template stand.

/// What stands between `{{` and `}}` or `{%` and `%}`.
pub(crate) struct Tag<'a> {
    /// The line that it begins in, from 1.
    pub(crate) line: u32,
    /// The column of its first brace, from 1, in characters.
    pub(crate) column: u32,
    /// Its content with the braces.
    text: &'a str,
    is_statement: bool,
}

/// A filter or a test that a tag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedFilter<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Whether it is a test.
    pub(crate) is_test: bool,
    /// Its line, from 1.
    pub(crate) line: u32,
    /// Its column, from 1, in characters.
    pub(crate) column: u32,
}

/// The tags of a template in their order. Comments and raw blocks have none.
pub(crate) fn tags(source: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let from = rest.get(start..).unwrap_or_default();
        let (length, is_statement) = match from.as_bytes().get(1) {
            Some(b'#') => (from.find("#}").map_or(from.len(), |end| end + 2), None),
            Some(b'{') => (length(from, "}}"), Some(false)),
            Some(b'%') => (length(from, "%}"), Some(true)),
            Some(_) | None => (1, None),
        };
        let text = from.get(..length).unwrap_or(from);
        if let Some(is_statement) = is_statement {
            let before = source.get(..source.len() - from.len()).unwrap_or_default();
            let (line, column) = place(before);
            tags.push(Tag { line, column, text, is_statement });
        }
        rest = from.get(length..).unwrap_or_default();
        if is_statement == Some(true) && tags.last().is_some_and(|tag| tag.words().next() == Some("raw")) {
            rest = rest.find("endraw").and_then(|end| rest.get(end..)).unwrap_or_default();
        }
    }
    tags
}

/// The length of a tag that ends with `end`, which its string literals may contain.
fn length(from: &str, end: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (index, character) in from.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if character == '\\' => escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '"' || character == '\'' => quote = Some(character),
            None if from.get(index..).is_some_and(|rest| rest.starts_with(end)) => return index + end.len(),
            None => {}
        }
    }
    from.len()
}

/// The closing quote of a string literal.
fn closing(literal: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (index, character) in literal.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Some(index),
            _ => {}
        }
    }
    None
}

/// Line and column, from 1, of what follows a text.
fn place(before: &str) -> (u32, u32) {
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

fn is_of_a_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

impl Tag<'_> {
    /// The names and string literals in it; a literal stands with its opening quote.
    fn words(&self) -> impl Iterator<Item = &str> {
        let wanted = |word: &str| word.starts_with(|c: char| is_of_a_name(c) || c == '"' || c == '\'');
        self.parts().map(|(_, part)| part).filter(move |part| wanted(part))
    }

    /// Its names, string literals (without their closing quote) and signs, each with the byte that it begins at.
    fn parts(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let rest = self.text.get(start..)?;
            start += rest.len() - rest.trim_start().len();
            let rest = rest.trim_start();
            let first = rest.chars().next()?;
            let (length, skipped) = match first {
                '"' | '\'' => match closing(rest, first) {
                    Some(end) => (end, first.len_utf8()),
                    None => (rest.len(), 0),
                },
                _ if is_of_a_name(first) => (rest.find(|c| !is_of_a_name(c)).unwrap_or(rest.len()), 0),
                _ => (first.len_utf8(), 0),
            };
            let part = (start, rest.get(..length)?);
            start += length + skipped;
            Some(part)
        })
    }

    /// The filters and tests that it names, in their order.
    pub(crate) fn asked(&self) -> Vec<NamedFilter<'_>> {
        let parts: Vec<(usize, &str)> = self.parts().collect();
        let mut asked = Vec::new();
        for (index, (_, part)) in parts.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| parts.get(index)).map(|(_, part)| *part);
            let next =
                |ahead: usize| parts.get(index + ahead).filter(|(_, name)| name.starts_with(is_of_a_name)).copied();
            let is_first = || parts.iter().take(index).all(|(_, part)| !part.starts_with(is_of_a_name));
            let is_filter = *part == "|" || *part == "filter" && self.is_statement && is_first();
            let is_test = *part == "is" && before != Some(".");
            let (named, is_test) = match (is_filter, is_test) {
                (true, _) => (next(1), false),
                (false, true) if next(1).is_some_and(|(_, name)| name == "not") => (next(2), true),
                (false, true) => (next(1), true),
                (false, false) => continue,
            };
            let Some((at, name)) = named else { continue };
            let (line, column) = self.at(at);
            asked.push(NamedFilter { name, is_test, line, column });
        }
        asked
    }

    /// The templates that it names: what is included, imported from, or extended.
    pub(crate) fn templates(&self) -> Vec<String> {
        let mut words = self.words();
        let is_of_templates = self.is_statement
            && words.next().is_some_and(|word| ["include", "import", "from", "extends"].contains(&word));
        if !is_of_templates {
            return Vec::new();
        }
        let literals = words.map_while(|word| word.strip_prefix(['"', '\'']));
        literals.filter(|name| !name.contains('\\')).map(str::to_owned).collect()
    }

    /// Whether what it names need not be there.
    pub(crate) fn may_be_missing(&self) -> bool {
        let words: Vec<&str> = self.words().collect();
        words.windows(2).any(|pair| pair == ["ignore", "missing"]) || self.templates().len() > 1
    }

    /// Where a path such as `imports.host` stands in it, outside of string literals.
    pub(crate) fn occurrences(&self, path: &str) -> Vec<(u32, u32)> {
        let mut places = Vec::new();
        let mut quote = None;
        let mut before = ' ';
        for (index, character) in self.text.char_indices() {
            match quote {
                Some(open) if character == open && before != '\\' => quote = None,
                Some(_) => {}
                None if character == '"' || character == '\'' => quote = Some(character),
                None => {
                    let rest = self.text.get(index..).and_then(|rest| rest.strip_prefix(path));
                    let follows = |rest: &str| rest.starts_with(|c: char| is_of_a_name(c) || c == '.');
                    if rest.is_some_and(|rest| !follows(rest)) && !is_of_a_name(before) && before != '.' {
                        places.push(self.at(index));
                    }
                }
            }
            before = character;
        }
        places
    }

    /// The place of a byte of it.
    fn at(&self, index: usize) -> (u32, u32) {
        let (line, column) = place(self.text.get(..index).unwrap_or_default());
        if line == 1 { (self.line, self.column + column - 1) } else { (self.line + line - 1, column) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(u32, u32, &str)> {
        tags(source).into_iter().map(|tag| (tag.line, tag.column, tag.text)).collect()
    }

    #[test]
    fn tags_are_found_where_they_stand_and_comments_and_raw_blocks_are_none() {
        assert_eq!(
            texts("a: {{ b }}\n{# {{ c }} #}{% if d %}\nü {{ '}}' }}{"),
            [(1, 4, "{{ b }}"), (2, 14, "{% if d %}"), (3, 3, "{{ '}}' }}")]
        );
        assert_eq!(texts("{%- raw %}{{ x }}{% endraw %}{{ y }}"), [(1, 1, "{%- raw %}"), (1, 30, "{{ y }}")]);
        assert_eq!(texts("{{ open"), [(1, 1, "{{ open")]);
    }

    #[test]
    fn a_path_is_found_as_a_whole_and_outside_of_literals() {
        let source = "{{ imports.a ~ 'imports.a'\n ~ imports.ab ~ imports.a.b ~ my.imports.a ~\timports.a }}";
        assert_eq!(tags(source)[0].occurrences("imports.a"), [(1, 4), (2, 46)]);
    }

    #[test]
    fn templates_are_named_by_literals_only() {
        let named = |source: &str| tags(source)[0].templates();
        assert_eq!(named(r#"{% include "a.yaml" %}"#), ["a.yaml"]);
        assert_eq!(named("{%- from 'm.j2' import thing, 'other' %}"), ["m.j2"]);
        assert_eq!(named("{% include ['a', 'b'] %}"), ["a", "b"]);
        assert_eq!(named("{% include name %}"), [""; 0]);
        assert_eq!(named("{{ include 'a' }}"), [""; 0]);
    }

    fn asked(source: &str) -> Vec<String> {
        let message = |of: NamedFilter<'_>| {
            format!("{}:{} {} {}", of.line, of.column, if of.is_test { "is" } else { "|" }, of.name)
        };
        tags(source).iter().flat_map(|tag| tag.asked().into_iter().map(message).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn filters_and_tests_are_named_outside_of_literals() {
        assert_eq!(
            asked("{{ a|one | two('| x') ~ \"\\\"| y\" }}\n{%- filter three(1) | four -%}{% set x | five %}"),
            ["1:6 | one", "1:12 | two", "2:12 | three", "2:23 | four", "2:42 | five"]
        );
        assert_eq!(
            asked("{% if a is one and b is not two(3) or c.is %}{{ is | three }}"),
            ["1:12 is one", "1:29 is two", "1:54 | three"]
        );
        assert_eq!(asked("{{ filter | x }}{% if filter and y %}{{ filter }}"), ["1:13 | x"]);
        assert_eq!(asked("{# a | x #}{% raw %}{{ a | y }}{% endraw %}"), [""; 0]);
    }

    #[test]
    fn what_may_be_missing_says_so_or_has_an_alternative() {
        let may = |source: &str| tags(source)[0].may_be_missing();
        assert!(may("{% include 'a' ignore missing %}") && may("{% include ['a', 'b'] %}"));
        assert!(!may("{% include 'a' %}"));
    }
}
