//! What a comment cites can be read: files of this repository, and rules of `docs/rules.md`.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::repository::{display, files, files_ending, none, root, text};

    /// The documents that number rules and decisions.
    const DOCUMENTS: [&str; 2] = ["docs/rules.md", "docs/wire.md"];
    /// The families of rules.
    const FAMILIES: [&str; 7] = ["EXE", "INS", "WF", "ORC", "FLX", "CON", "C"];
    /// Endings of files that a comment may cite.
    const ENDINGS: [&str; 3] = [".md", ".rs", ".wit"];

    /// The comments of a text with their lines, counted from one. In a document every line counts.
    fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
        let lines = text.lines().enumerate();
        lines.filter(|(_, line)| line.trim_start().starts_with("//")).map(|(number, line)| (number + 1, line))
    }

    /// The files that a comment names: words that end as a file does.
    fn cited_files(comment: &str) -> Vec<&str> {
        let words = comment.split(|c: char| !(c.is_ascii_alphanumeric() || "._-/*".contains(c)));
        let words = words.map(|word| word.trim_matches(['.', '/']));
        words.filter(|word| ENDINGS.iter().any(|ending| word.ends_with(ending)) && !word.contains('*')).collect()
    }

    /// The rules that a text names, such as `EXE-25` or `C-01`; of a range both ends.
    fn cited_rules(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let rules = words.filter(|word| {
            word.split_once('-').is_some_and(|(family, number)| {
                let is_number = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
                FAMILIES.contains(&family) && is_number
            })
        });
        rules.map(str::to_owned).collect()
    }

    /// Whether a cited file exists: documents by their path in the repository or beside the file that cites them, code also
    /// by the end of its path.
    fn exists(cited: &str, folder: &str, known: &BTreeSet<String>) -> bool {
        let is_document = cited.ends_with(".md");
        let beside = if folder.is_empty() { cited.to_owned() } else { format!("{folder}/{cited}") };
        known.contains(cited)
            || known.contains(&beside)
            || !is_document && known.iter().any(|file| file.ends_with(&format!("/{cited}")))
    }

    #[test]
    fn files_and_rules_are_found_in_a_comment() {
        let comment =
            "// As `docs/rules.md` (EXE-16 … EXE-30, C-01) and (host/core/src/dag.rs) say, not UTF-8 or WF-123.";
        assert_eq!(cited_files(comment), ["docs/rules.md", "host/core/src/dag.rs"]);
        assert_eq!(cited_rules(comment).into_iter().collect::<Vec<_>>(), ["C-01", "EXE-16", "EXE-30"]);
    }

    #[test]
    fn a_document_is_cited_by_its_path_and_code_by_the_end_of_its_path() {
        let known = BTreeSet::from(["docs/rules.md", "host/core/README.md", "host/core/src/dag.rs"].map(str::to_owned));
        assert!(exists("docs/rules.md", "host/core/src", &known));
        assert!(exists("README.md", "host/core", &known));
        assert!(exists("src/dag.rs", "tests", &known));
        assert!(!exists("rules.md", "host/core/src", &known));
        assert!(!exists("walk.rs", "host/core/src", &known));
    }

    #[test]
    fn every_cited_file_is_in_the_repository() {
        let known: BTreeSet<String> = files().iter().map(|file| display(file)).collect();
        let mut violations = Vec::new();
        for path in files_ending(&[".rs", ".go", ".wit"]) {
            let display = display(&path);
            let folder = display.rsplit_once('/').map_or("", |(folder, _)| folder);
            for (number, comment) in comments(&text(&path)) {
                let missing = cited_files(comment).into_iter().filter(|cited| !exists(cited, folder, &known));
                violations.extend(missing.map(|cited| format!("{display}:{number}: {cited}")));
            }
        }
        none("cite what readers have: a path of this repository", violations);
    }

    #[test]
    fn every_cited_rule_stands_in_the_documents() {
        let documents = DOCUMENTS.map(|document| {
            let path = root().join(document);
            assert!(path.is_file(), "{document} has the rules that comments cite");
            text(&path)
        });
        let known = cited_rules(&documents.join("\n"));
        let mut violations = Vec::new();
        for path in files_ending(&[".rs", ".go", ".wit"]) {
            for (number, comment) in comments(&text(&path)) {
                let missing = cited_rules(comment).into_iter().filter(|rule| !known.contains(rule));
                violations.extend(missing.map(|rule| format!("{}:{number}: {rule}", display(&path))));
            }
        }
        none("no document of the repository has the rule", violations);
    }
}
