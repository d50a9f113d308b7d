//! Words: names say what a thing is, lints are silenced with a reason, nothing is left unfinished.

#[cfg(test)]
mod tests {
    use crate::{
        modules,
        repository::{display, files_ending, none, text},
    };

    /// A name that ends in one of these says a role instead of a thing.
    const ROLES: &[&str] =
        &["manager", "helper", "helpers", "util", "utils", "handler", "handlers", "processor", "wrapper"];
    /// A name that has one of these says nothing.
    const VAGUE: &[&str] = &["common", "misc"];

    /// The words of an identifier: `FooBar`, `foo_bar` and `FOO_BAR` are all foo and bar.
    fn words(name: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut was_lower = false;
        for c in name.chars() {
            if c == '_' || c.is_uppercase() && was_lower {
                words.push(String::new());
            }
            was_lower = c.is_lowercase();
            if c != '_' {
                words.last_mut().expect("there is always a word").extend(c.to_lowercase());
            }
        }
        words
    }

    #[test]
    fn an_identifier_splits_into_its_words() {
        assert_eq!(words("PhaseTable"), ["phase", "table"]);
        assert_eq!(words("FIELD_MANAGER"), ["field", "manager"]);
        assert_eq!(words("run_item"), ["run", "item"]);
    }

    /// The field's own word: a field manager is what server-side apply calls the writer.
    fn is_a_term_of_the_field(words: &[String]) -> bool {
        words.windows(2).any(|pair| pair[0] == "field" && pair[1].starts_with("manager"))
    }

    #[test]
    fn no_name_is_a_banned_word() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            for named in &file.source.names {
                let words = words(&named.name);
                let role = words.last().is_some_and(|word| ROLES.contains(&word.as_str()));
                let vague = words.iter().any(|word| VAGUE.contains(&word.as_str())) || named.name == "Data";
                if (role || vague) && !is_a_term_of_the_field(&words) {
                    violations.push(format!("{}:{} {}", display(path), named.line, named.name));
                }
            }
        }
        none("say what the thing is, not which role it plays", violations);
    }

    #[test]
    fn lints_are_expected_with_a_reason_and_never_allowed() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            for attribute in &file.source.attributes {
                let text = attribute.text.replace(' ', "");
                let allows = text.starts_with("allow(") || text.contains(",allow(");
                let expects = (text.starts_with("expect(") || text.contains(",expect(")) && !text.contains("reason=");
                if allows || expects {
                    violations.push(format!("{}:{} #[{text}]", display(path), attribute.line));
                }
            }
        }
        none("write #[expect(lint, reason = \"…\")]", violations);
    }

    #[test]
    fn suites_wait_on_conditions_and_not_on_the_clock() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            // A guest that waits is what a suite calls, and what plays mutants is no suite.
            let is_none = ["tests/guests/", "tests/mutants/"].iter().any(|folder| display(path).starts_with(folder));
            let is_suite = (file.for_tests || display(path).starts_with("tests/")) && !is_none;
            for (index, line) in text(path).lines().enumerate() {
                if (is_suite || file.source.is_test(index + 1)) && line.contains(concat!("sle", "ep(")) {
                    violations.push(format!("{}:{}", display(path), index + 1));
                }
            }
        }
        none("wait for a condition with a deadline", violations);
    }

    #[test]
    fn nothing_is_left_unfinished() {
        let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("unimplemented", "!(")];
        let endings = [".rs", ".wit", ".md", ".yaml", ".toml", ".txt", ".json", "/run"];
        let mut violations = Vec::new();
        for path in files_ending(&endings) {
            for (number, line) in text(&path).lines().enumerate() {
                if marks.iter().any(|mark| line.contains(mark)) {
                    violations.push(format!("{}:{} {}", display(&path), number + 1, line.trim()));
                }
            }
        }
        none("finish it, or open an issue", violations);
    }

    #[test]
    fn text_files_end_in_one_newline_and_lines_end_in_no_blank() {
        let mut violations = Vec::new();
        for path in files_ending(&[".rs", ".wit", ".md", ".yaml", ".toml"]) {
            let text = text(&path);
            if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
                violations.push(format!("{}: does not end in one newline", display(&path)));
            }
            let blank = text.lines().enumerate().filter(|(_, line)| line.ends_with([' ', '\t', '\r']));
            violations.extend(blank.map(|(number, _)| format!("{}:{}: ends in a blank", display(&path), number + 1)));
        }
        none("clean up white space", violations);
    }
}
