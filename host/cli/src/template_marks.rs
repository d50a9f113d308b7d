//! Marks in the text of a template: its output has them where the lines were rendered, which tells which lines were, and what
//! each has made. Neither language is parsed here; where its tags stand is enough to put a mark where text is.

use std::collections::BTreeSet;

use orangery_core::yaml::SourcePosition;

/// What a mark begins with, and what it ends with: characters that stand for nothing. Between them is its number.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// A language whose templates are text with tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagSyntax {
    GoTemplate,
    Jinja,
}

impl TagSyntax {
    /// The language of a template type.
    pub(crate) fn of(template_type: &str) -> Option<Self> {
        match template_type {
            "GoTemplate" => Some(Self::GoTemplate),
            "Jinja" => Some(Self::Jinja),
            _ => None,
        }
    }
}

/// A place in a template where a line is to be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineMark {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The byte before which the mark stands.
    at: usize,
    /// Whether what is made there may become a value that the template computes with, as the body of a macro.
    pub(crate) is_captured: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TagEffect {
    /// A comment.
    Nothing,
    /// Something that is rendered, or what begins a part that may be.
    Rendered,
    /// Ends one part, and begins another, as `else`.
    Branches,
    /// Ends a part.
    Ends,
}

struct TemplateTag<'a> {
    start: usize,
    end: usize,
    /// Its first word; empty where it begins with none.
    word: &'a str,
    text: &'a str,
    effect: TagEffect,
}

/// Where the lines of a template are marked: before the first thing of the line that is rendered, and behind `else` and the like,
/// so that such a line counts where its branch was taken. Lines that are blank, or have comments and ends of parts alone, count
/// for nothing, and neither do those that begin within a tag.
pub(crate) fn marks(syntax: TagSyntax, text: &str) -> Vec<LineMark> {
    let tags = tags(syntax, text);
    let captured = captured(syntax, &tags);
    let is_captured = |at: usize| captured.iter().rev().find(|(end, _)| *end <= at).is_some_and(|(_, is)| *is);
    let (mut marks, mut start) = (Vec::new(), 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = start + line.len();
        let at = place(text, &tags, start, end);
        marks.extend(at.map(|at| LineMark { line: index + 1, at, is_captured: is_captured(at) }));
        start = end;
    }
    marks
}

/// Where a line from `start` to `end` is marked.
fn place(text: &str, tags: &[TemplateTag<'_>], start: usize, end: usize) -> Option<usize> {
    let mut at = start;
    if tags.iter().any(|tag| tag.start < at && at < tag.end) {
        return None;
    }
    loop {
        let rest = text.get(at..end)?;
        at += rest.len() - rest.trim_start().len();
        if at >= end {
            return None;
        }
        let Some(tag) = tags.iter().find(|tag| tag.start == at) else { return Some(at) };
        match tag.effect {
            TagEffect::Rendered => return Some(at),
            TagEffect::Branches => return Some(tag.end),
            TagEffect::Nothing | TagEffect::Ends => at = tag.end,
        }
    }
}

/// Whether what is rendered behind each tag may become a value: the place behind it, and the answer.
fn captured(syntax: TagSyntax, tags: &[TemplateTag<'_>]) -> Vec<(usize, bool)> {
    let mut open: usize = 0;
    let mut answers = Vec::new();
    for tag in tags {
        match (syntax, tag.word) {
            (TagSyntax::Jinja, "macro" | "call" | "filter") => open += 1,
            (TagSyntax::Jinja, "set") if !tag.text.contains('=') => open += 1,
            (TagSyntax::Jinja, "endmacro" | "endcall" | "endfilter" | "endset") => open = open.saturating_sub(1),
            // What a GoTemplate defines goes to the output wherever it is named.
            _ => {}
        }
        answers.push((tag.end, open > 0));
    }
    answers
}

fn tags(syntax: TagSyntax, text: &str) -> Vec<TemplateTag<'_>> {
    let (mut tags, mut at) = (Vec::new(), 0);
    while let Some(tag) = next_tag(syntax, text, at) {
        at = tag.end;
        if syntax == TagSyntax::Jinja && tag.word == "raw" {
            let raw = text.get(at..).unwrap_or_default();
            let end = raw.find("endraw").and_then(|end| raw.get(..end)?.rfind("{%"));
            at = end.map_or(text.len(), |end| at + end);
        }
        tags.push(tag);
    }
    tags
}

fn next_tag(syntax: TagSyntax, text: &str, from: usize) -> Option<TemplateTag<'_>> {
    let mut search = from;
    loop {
        let start = search + text.get(search..)?.find('{')?;
        let rest = text.get(start..)?;
        let inner = rest.get(2..).unwrap_or_default().trim_start_matches(['-', '+']).trim_start();
        let (length, word) = match (syntax, rest.as_bytes().get(1)) {
            (TagSyntax::GoTemplate, Some(b'{')) if inner.starts_with("/*") => {
                let closed = rest.find("*/").map(|end| end + 2);
                (closed.and_then(|at| Some(at + rest.get(at..)?.find("}}")? + 2)), "/*")
            }
            (TagSyntax::Jinja, Some(b'#')) => (rest.find("#}").map(|end| end + 2), "/*"),
            (_, Some(b'{')) => (length(rest, "}}"), word(inner)),
            (TagSyntax::Jinja, Some(b'%')) => (length(rest, "%}"), word(inner)),
            _ => {
                search = start + 1;
                continue;
            }
        };
        let end = length.map_or(text.len(), |length| start + length);
        let text = text.get(start..end)?;
        let is_statement = syntax == TagSyntax::GoTemplate || rest.starts_with("{%");
        let word = if is_statement || word == "/*" { word } else { "" };
        return Some(TemplateTag { start, end, word, text, effect: effect(syntax, word) });
    }
}

fn effect(syntax: TagSyntax, word: &str) -> TagEffect {
    match (syntax, word) {
        (_, "/*") => TagEffect::Nothing,
        (_, "else") | (TagSyntax::Jinja, "elif") => TagEffect::Branches,
        (TagSyntax::GoTemplate, "end") => TagEffect::Ends,
        (TagSyntax::Jinja, word) if word.starts_with("end") => TagEffect::Ends,
        _ => TagEffect::Rendered,
    }
}

fn word(inner: &str) -> &str {
    let end = inner.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(inner.len());
    inner.get(..end).unwrap_or_default()
}

/// The length of a tag that ends with `end`, which its texts may contain. Those in backquotes know no escapes.
fn length(from: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (index, character) in from.char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(open) if character == '\\' && open != '`' => is_escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if matches!(character, '"' | '\'' | '`') => quote = Some(character),
            None if from.get(index..).is_some_and(|rest| rest.starts_with(end)) => return Some(index + end.len()),
            None => {}
        }
    }
    None
}

/// The template with these marks in it, in the order of their places.
pub(crate) fn marked<'m>(text: &str, marks: impl Iterator<Item = &'m LineMark>) -> String {
    let (mut written, mut from) = (String::with_capacity(text.len()), 0);
    for mark in marks {
        written.push_str(text.get(from..mark.at).unwrap_or_default());
        written.push_str(&format!("{OPEN}{}{CLOSE}", mark.line));
        from = mark.at;
    }
    written.push_str(text.get(from..).unwrap_or_default());
    written
}

/// Words by which a tag makes nothing where it stands.
const CONTROLS: [&str; 8] = ["if", "range", "with", "define", "block", "break", "continue", ""];

/// A template of YAML with a mark as a comment behind each line that makes something. Lines that end within a tag, or in one that takes
/// the blanks behind it away, have none, and neither have those of parts that are named, which others may compute with.
pub(crate) fn comments(syntax: TagSyntax, text: &str) -> String {
    let tags = tags(syntax, text);
    let (mut written, mut start, mut named) = (String::with_capacity(text.len() * 2), 0, Vec::new());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        let here: Vec<&TemplateTag<'_>> =
            tags.iter().filter(|tag| start <= tag.start && tag.start < end.max(start + 1)).collect();
        let was_named = named.contains(&true);
        for tag in &here {
            match tag.word {
                "define" | "block" => named.push(tag.word == "define"),
                "if" | "range" | "with" => named.push(false),
                "end" => drop(named.pop()),
                _ => {}
            }
        }
        let is_within = tags.iter().any(|tag| tag.start < end && end < tag.end);
        let trims = here.last().is_some_and(|tag| tag.end == end && tag.text.ends_with("-}}"));
        let makes = makes_something(text, &here, (start, end));
        written.push_str(text.get(start..end).unwrap_or_default());
        if makes && !is_within && !trims && !was_named && !named.contains(&true) {
            written.push_str(&format!(" #{OPEN}{}{CLOSE}", index + 1));
        }
        written.push_str(text.get(end..start + line.len()).unwrap_or_default());
        start += line.len();
    }
    written
}

/// Whether a line has text outside of its tags, or a tag that makes text.
fn makes_something(text: &str, tags: &[&TemplateTag<'_>], (start, end): (usize, usize)) -> bool {
    let mut from = start;
    for tag in tags {
        let is_blank = text.get(from..tag.start).is_none_or(|before| before.trim().is_empty());
        let makes = tag.effect == TagEffect::Rendered && !CONTROLS.contains(&tag.word);
        // A tag without a word begins with a value, as `.Values.x`, or with a variable, which may be set.
        let writes = tag.effect == TagEffect::Rendered
            && tag.word.is_empty()
            && !tag.text.contains(":=")
            && !tag.text.contains(" = ");
        if !is_blank || makes || writes {
            return true;
        }
        from = tag.end;
    }
    let rest = text.get(from.min(end)..end).map(str::trim).unwrap_or_default();
    !rest.is_empty() && !rest.starts_with('#') && rest != "---"
}

/// What a marked template has made, without its marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmarked {
    /// The text.
    pub(crate) text: String,
    /// Where the marks stood in it, in its order, each with the line of the template.
    pub(crate) marks: Vec<(SourcePosition, usize)>,
}

impl Unmarked {
    /// Takes the marks out of a text. `None` where one is not whole.
    pub(crate) fn of(marked: &str) -> Option<Self> {
        let mut marks = Vec::new();
        let mut rest = marked;
        let mut text = String::with_capacity(marked.len());
        let mut place = SourcePosition::START;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (line, after) = after.split_once(CLOSE)?;
            text.push_str(before);
            match before.rsplit_once('\n') {
                Some((lines, last)) => {
                    place.line += 1 + lines.matches('\n').count();
                    place.column = 1 + last.chars().count();
                }
                None => place.column += before.chars().count(),
            }
            marks.push((place, line.parse().ok()?));
            rest = after;
        }
        text.push_str(rest);
        Some(Self { text, marks })
    }

    /// The line of the template that made what stands at a place, where marks stand behind what lines have made: that of the first one
    /// from its line on.
    pub(crate) fn line_behind(&self, place: SourcePosition) -> Option<usize> {
        let begin = self.marks.partition_point(|(mark, _)| mark.line < place.line);
        self.marks.get(begin).map(|(_, line)| *line)
    }

    /// The line of the template that made what stands at a place: that of the last mark up to there.
    pub(crate) fn line_at(&self, place: SourcePosition) -> Option<usize> {
        let end = self.marks.partition_point(|(mark, _)| *mark <= place);
        self.marks.get(end.checked_sub(1)?).map(|(_, line)| *line)
    }
}

/// The lines whose marks are in what a marked template has made; `None` where the marks have changed something else than blanks
/// of what it makes without them.
pub(crate) fn reached(marked: &str, unmarked: &str) -> Option<BTreeSet<usize>> {
    let without = Unmarked::of(marked)?;
    let letters = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
    (letters(&without.text) == letters(unmarked)).then(|| without.marks.iter().map(|(_, line)| *line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The template with a `@` for each mark, `!` where it is captured.
    fn with_signs(syntax: TagSyntax, text: &str) -> String {
        let mut written = text.to_owned();
        for mark in marks(syntax, text).iter().rev() {
            written.insert(mark.at, if mark.is_captured { '!' } else { '@' });
        }
        written
    }

    #[test]
    fn c_303_each_line_of_jinja_that_makes_something_is_marked_once() {
        let text = "a: 1\n\n{# a comment\n of two lines #}\n  {%- if x == '%}' %}\nb: {{ y }}\n{% elif z %}\n{% else %}c: 2\n\
                    {% endif %}\n{% raw %}{{ d }}\n{% if %}\n{% endraw %}\n{% set m %}e\nf{% endset %}\n{% set n = 1 %}\n\
                    {% endfor %}{{ g\n}}\n";
        let expected = "@a: 1\n\n{# a comment\n of two lines #}\n  @{%- if x == '%}' %}\n@b: {{ y }}\n{% elif z %}@\n{% else %}@c: 2\n\
                        {% endif %}\n@{% raw %}{{ d }}\n@{% if %}\n{% endraw %}\n@{% set m %}e\n!f{% endset %}\n@{% set n = 1 %}\n\
                        {% endfor %}@{{ g\n}}\n";
        assert_eq!(with_signs(TagSyntax::Jinja, text), expected);
    }

    #[test]
    fn c_303_each_line_of_a_go_template_that_makes_something_is_marked_once() {
        let text = "{{- /* }} no end\n */ -}}\n{{ define \"x\" }}\na\n{{ if .b }}c{{ end }}\n{{ end }}\n{{ $y := dict\n \"k\" `}}\\` }}\n\
                    {{- range .z }}\n{ d\n{{- else }}\n{{ end -}}\n{% if %}\n";
        let expected = "{{- /* }} no end\n */ -}}\n@{{ define \"x\" }}\n@a\n@{{ if .b }}c{{ end }}\n{{ end }}\n@{{ $y := dict\n \"k\" `}}\\` }}\n\
                        @{{- range .z }}\n@{ d\n{{- else }}@\n{{ end -}}\n@{% if %}\n";
        assert_eq!(with_signs(TagSyntax::GoTemplate, text), expected);
    }

    #[test]
    fn c_303_marks_are_read_back_where_they_change_nothing_else() {
        let text = "a\n b\n";
        let marks = marks(TagSyntax::Jinja, text);
        let made = marked(text, marks.iter());
        assert_eq!(made, "\u{e000}1\u{e001}a\n \u{e000}2\u{e001}b\n");
        assert_eq!(reached(&made, "a\nb"), Some(BTreeSet::from([1, 2])));
        assert_eq!(reached("\u{e000}2\u{e001}b", "b"), Some(BTreeSet::from([2])));
        assert_eq!(reached(&made, "a\nc"), None, "the marks have changed a letter");
        assert_eq!(reached("\u{e000}2", ""), None, "half a mark");
    }

    #[test]
    fn c_243_what_stands_behind_a_mark_was_made_by_its_line() {
        let made = Unmarked::of("\u{e000}1\u{e001}a:\n  \u{e000}7\u{e001}b: é\u{e000}9\u{e001}c\nd\n").unwrap();
        assert_eq!(made.text, "a:\n  b: éc\nd\n");
        let line = |line, column| made.line_at(SourcePosition { line, column });
        assert_eq!(
            [line(1, 1), line(2, 2), line(2, 3), line(2, 6), line(2, 7), line(3, 1)].map(Option::unwrap),
            [1, 1, 7, 7, 9, 9]
        );
        assert_eq!(Unmarked::of("a").unwrap().line_at(SourcePosition::START), None);
    }

    #[test]
    fn c_247_each_line_of_yaml_that_makes_something_gets_a_comment_behind_it() {
        let text = "---\n# a comment\na: {{ .x }}\n{{- if .y }}\nb: |\n  {{ .z -}}\n{{- end }}\n{{ $v := 1 }}\n{{ include \"l\" . | nindent 2 }}\n\
                    {{- define \"n\" }}\nc: 1\n{{ if .d }}e{{ end }}\n{{- end }}\nf: {{ printf\n \"x\" }}\n{{ .Values.g }}\n\n";
        let commented = comments(TagSyntax::GoTemplate, text);
        let lines: Vec<String> =
            commented.lines().filter_map(|line| Some(line.split_once(OPEN)?.1.replace(CLOSE, ""))).collect();
        assert_eq!(lines, ["3", "5", "9", "15", "16"]);
        let without: String = commented
            .lines()
            .map(|line| line.split(" #\u{e000}").next().unwrap_or_default().to_owned() + "\n")
            .collect();
        assert_eq!(without, text, "nothing else is changed");
        let made = Unmarked::of("a: 1 #\u{e000}3\u{e001}\nb:\n  c: 2 #\u{e000}9\u{e001}\n").unwrap();
        let behind = |line| made.line_behind(SourcePosition { line, column: 1 });
        assert_eq!([behind(1), behind(2), behind(3), behind(4)], [Some(3), Some(9), Some(9), None]);
    }

    #[test]
    fn c_303_what_is_cut_off_has_no_marks_behind_it() {
        for text in ["{{ \"}}", "{% raw %}{{", "{#", "{", "{{/* }}", "\u{e000}{{"] {
            for syntax in [TagSyntax::GoTemplate, TagSyntax::Jinja] {
                assert!(marks(syntax, text).len() <= 1, "{text}");
            }
        }
    }
}
