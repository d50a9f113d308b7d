//! `docs/limits.md` has every limit of what is read of others, as the code has it.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::repository::{display, files_ending, none, root, text};

    /// The crates that read what others wrote.
    const READERS: [&str; 12] = [
        "core",
        "ocm",
        "expression",
        "blueprint",
        "policy",
        "api",
        "cluster",
        "apply",
        "plugin",
        "registry",
        "controllers",
        "egress",
    ];
    /// What the names of limits begin with.
    const NAMES: [&str; 6] = ["MOST_", "LONGEST", "DEEPEST", "COST_LIMIT", "SCOPE_COST_LIMIT", "MEMORY_OF_OUTPUT"];

    /// A limit: the file that it stands in, and its name.
    type Limit = (String, String);

    /// The limits of these crates with their values as written.
    fn in_code(crates: &[&str]) -> BTreeMap<Limit, String> {
        let mut limits = BTreeMap::new();
        for path in files_ending(&[".rs"]) {
            let file = display(&path);
            let is_reader = crates.iter().any(|name| file.starts_with(&format!("host/{name}/src/")));
            if !is_reader || file.contains("/tests") {
                continue;
            }
            for line in text(&path).lines().map(str::trim_start) {
                let Some((_, rest)) = line
                    .split_once("const ")
                    .filter(|(before, _)| ["", "pub ", "pub(crate) ", "pub(super) "].contains(before))
                else {
                    continue;
                };
                let Some((name, rest)) = rest.split_once(':') else { continue };
                let Some((_, value)) = rest.split_once('=') else { continue };
                if NAMES.iter().any(|begin| name.starts_with(begin)) {
                    limits.insert((file.clone(), name.to_owned()), value.trim().trim_end_matches(';').to_owned());
                }
            }
        }
        limits
    }

    /// The rows of a document: what is limited, the constant, its value, its file, and in the one of all limits the test that meets it.
    fn rows_of(document: &str) -> Vec<Vec<String>> {
        let document = text(&root().join(document));
        let rows = document.lines().filter(|line| line.starts_with('|') && line.contains(".rs`"));
        rows.map(|row| {
            let cells = row.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
        })
        .collect()
    }

    fn rows() -> Vec<Vec<String>> {
        rows_of("docs/limits.md")
    }

    #[test]
    fn the_page_for_authors_of_components_has_limits_as_the_code_has_them() {
        let (page, code) = ("docs/plugins/limits.md", in_code(&["plugin", "proposal"]));
        let rows = rows_of(page);
        assert!(rows.len() > 15, "the page has limits");
        let is_so = |row: &Vec<String>| match row.as_slice() {
            [_, name, value, file] => code.get(&(file.clone(), name.clone())) == Some(value),
            _ => false,
        };
        let mut wrong: Vec<String> = rows.iter().filter(|row| !is_so(row)).map(|row| row.join(" | ")).collect();
        let budget = serde_json::to_value(orangery_plugin::Budget::default()).expect("a budget is JSON");
        let text = text(&root().join(page));
        let told = |(field, value): (&String, &serde_json::Value)| format!("| `{field}` | {value} |");
        let fields = budget.as_object().expect("a budget has fields").iter();
        wrong.extend(fields.map(told).filter(|row| !text.contains(row.as_str())));
        none("docs/plugins/limits.md and the code have the same limits", wrong);
    }

    #[test]
    fn the_document_has_every_limit_as_the_code_has_it() {
        let code = in_code(&READERS);
        let mut violations = Vec::new();
        let mut told = BTreeSet::new();
        for row in rows() {
            let [_, name, value, file, ..] = row.as_slice() else {
                violations.push(format!("a row has too few cells: {row:?}"));
                continue;
            };
            let limit = (file.clone(), name.clone());
            match code.get(&limit) {
                Some(found) if found == value => {}
                Some(found) => violations.push(format!("{file}: {name} is {found}, told is {value}")),
                None => violations.push(format!("{file} has no limit {name}")),
            }
            told.insert(limit);
        }
        let untold = code.iter().filter(|(limit, _)| !told.contains(*limit));
        violations.extend(untold.map(|((file, name), value)| format!("{file}: {name} = {value} is not told")));
        none("docs/limits.md and the code have the same limits", violations);
    }

    #[test]
    fn every_test_that_the_document_names_is_there() {
        let sources: Vec<String> = files_ending(&[".rs"]).iter().map(|path| text(path)).collect();
        let named = rows().into_iter().filter_map(|row| row.get(4).filter(|name| !name.is_empty()).cloned());
        let is_there = |name: &String| sources.iter().any(|source| source.contains(&format!("fn {name}(")));
        let missing = named.filter(|name| !is_there(name)).collect();
        none("each limit names a test that meets it", missing);
    }
}
