//! A chart with no more of its templates than an object is made from, so that it is rendered sooner when it is rendered again and again
//! (C-365). What comes of it has to be held against what the whole chart makes before anything is said of it.

use crate::{
    chart_marks::ChartPlace,
    packed_chart::{self, ChartFile, unpacked},
};

/// Words of templates that reach beyond the text they stand in: named templates, and changes of values that all templates share.
const SHARED_WORDS: [&str; 7] =
    ["define", "set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite"];

/// Actions that have an end.
const BLOCKS: [&str; 5] = ["if", "range", "with", "define", "block"];

impl ChartFile {
    /// The text of a template that makes objects, or notes; `None` of anything else.
    fn template(&self) -> Option<&str> {
        let path = self.path.to_str()?;
        let is_template =
            path.contains("/templates/") && [".yaml", ".yml", ".txt"].iter().any(|end| path.ends_with(end));
        std::str::from_utf8(&self.content).ok().filter(|_| is_template)
    }

    fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// A packed chart with the documents around a place, what they may need, and nothing else of its templates; `None` where it is no chart, or
/// too large, or has no such template.
pub fn narrowed_chart(packed: &[u8], place: &ChartPlace) -> Option<Vec<u8>> {
    let mut files = unpacked(packed)?;
    let narrow = |file: &mut ChartFile| {
        let text = file.template().filter(|_| file.path.to_str() == Some(place.file.as_str()))?;
        file.content = documents_around(text, place.line).into_bytes();
        Some(())
    };
    files.iter_mut().find_map(narrow)?;
    let mut kept: Vec<bool> = files
        .iter()
        .map(|file| file.path.to_str() == Some(place.file.as_str()) || file.template().is_none_or(has_shared_words))
        .collect();
    // What is named in what is kept may be included by its name.
    loop {
        let is_named = |of: &ChartFile| {
            let name = of.name().as_bytes();
            let names = |(file, kept): (&ChartFile, &bool)| *kept && contains(&file.content, name);
            files.iter().zip(&kept).any(names)
        };
        let more: Vec<bool> = files.iter().zip(&kept).map(|(file, kept)| *kept || is_named(file)).collect();
        if more == kept {
            break;
        }
        kept = more;
    }
    packed_chart::packed(files.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(file, _)| file))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// The words of the actions of a template.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let actions = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or_default());
    actions.flat_map(|action| {
        action.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '.')
    })
}

fn has_shared_words(text: &str) -> bool {
    words(text).any(|word| SHARED_WORDS.contains(&word))
}

/// The documents of a template around a line, and those that others may need. Documents are told apart outside of blocks alone: what is in
/// one depends on it. Without a line, all of them.
fn documents_around(text: &str, line: Option<usize>) -> String {
    let Some(line) = line else { return text.to_owned() };
    let (mut documents, mut depth) = (vec![(1_usize, String::new())], 0_usize);
    for (number, of) in (1_usize..).zip(text.split_inclusive('\n')) {
        if depth == 0 && of.trim_end() == "---" {
            documents.push((number, String::new()));
        }
        if let Some((_, document)) = documents.last_mut() {
            document.push_str(of);
        }
        let blocks = words(of).filter(|word| BLOCKS.contains(word)).count();
        depth = (depth + blocks).saturating_sub(words(of).filter(|word| *word == "end").count());
    }
    let around = documents.iter().rposition(|(begin, _)| *begin <= line);
    let is_kept =
        |(number, (_, document)): &(usize, (usize, String))| Some(*number) == around || has_shared_words(document);
    documents.into_iter().enumerate().filter(is_kept).map(|(_, (_, document))| document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed_chart::{
        MOST_UNPACKED_BYTES,
        tests::{chart, texts},
    };

    fn narrowed(files: &[(&str, &str)], line: Option<usize>) -> Option<Vec<(String, String)>> {
        let place = ChartPlace { file: "app/templates/a.yaml".to_owned(), line };
        narrowed_chart(&chart(files), &place).map(|narrowed| texts(&narrowed))
    }

    #[test]
    fn c_365_a_chart_keeps_what_an_object_is_made_from_and_what_that_may_need() {
        let needs = "sum: {{ include (print $.Template.BasePath \"/b.yaml\") . }}\n";
        let files = [
            ("app/Chart.yaml", "name: app\n"),
            ("app/values.yaml", "x: 1\n"),
            ("app/templates/_h.tpl", "{{ define \"h\" }}h{{ end }}"),
            ("app/templates/a.yaml", needs),
            ("app/templates/b.yaml", "b: see c.yaml\n"),
            ("app/templates/c.yaml", "c: 1\n"),
            ("app/templates/d.yaml", "d: {{ .Values.defined }}\n"),
            ("app/templates/e.yaml", "{{- define \"e\" }}e{{ end }}\n"),
            ("app/templates/f.yaml", "{{- $_ := set .Values \"x\" 2 }}\n"),
            ("app/templates/NOTES.txt", "{{ fail \"no\" }}"),
        ];
        let kept = narrowed(&files, None).unwrap();
        let expected = files.iter().filter(|(path, _)| !["d.yaml", "NOTES.txt"].iter().any(|end| path.ends_with(end)));
        let expected: Vec<_> = expected.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(kept, expected);
        assert_eq!(narrowed(&files[..3], None), None, "there is no such template");
        let place = ChartPlace { file: "app/templates/a.yaml".to_owned(), line: None };
        assert_eq!(narrowed_chart(b"no chart", &place), None);
    }

    #[test]
    fn c_365_documents_are_told_apart_outside_of_blocks_alone() {
        let text = "{{ $_ := set .Values \"x\" 1 }}\n---\na: 1\n---\nb: {{ if .x }}1{{ end }}\n{{- if .Values.on }}\n---\nc: 1\n---\nd: 1\n{{- end }}\n---\ne: 1\n";
        let around = |line| documents_around(text, Some(line));
        let first = "{{ $_ := set .Values \"x\" 1 }}\n";
        assert_eq!(around(3), format!("{first}---\na: 1\n"));
        let block = "---\nb: {{ if .x }}1{{ end }}\n{{- if .Values.on }}\n---\nc: 1\n---\nd: 1\n{{- end }}\n";
        for line in 4..=10 {
            assert_eq!(around(line), format!("{first}{block}"), "{line}");
        }
        assert_eq!(around(12), format!("{first}---\ne: 1\n"));
        assert_eq!(documents_around(text, None), text);
    }

    #[test]
    fn c_365_limits_a_chart_is_narrowed_as_far_as_it_may_be_unpacked() {
        let large = " ".repeat(MOST_UNPACKED_BYTES as usize);
        assert_eq!(narrowed(&[("app/templates/a.yaml", &large)], None), None);
    }
}
