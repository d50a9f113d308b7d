//! `docs/how-to-add.md` and the table of README say where each task begins, and no task touches more files than it may.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::repository::{none, root, text};

    /// The most files of a task, by the heading of its section.
    const MOST_FILES: [(&str, usize); 4] =
        [("A field of the contract", 8), ("A deployer", 6), ("A command", 4), ("A dependency", 5)];

    /// The sections of the document, each with its text.
    fn sections() -> BTreeMap<String, String> {
        let document = text(&root().join("docs/how-to-add.md"));
        let sections = document.split("\n## ").skip(1);
        sections
            .filter_map(|section| section.split_once('\n'))
            .map(|(title, text)| (title.into(), text.into()))
            .collect()
    }

    /// The first cell of each row of the tables of a text, where it is a task.
    fn tasks(text: &str) -> Vec<(String, String)> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| a")?.split_once(" | "));
        let rows = text.lines().filter_map(|line| line.strip_prefix("| [a")?.split_once(" | ")).chain(rows);
        rows.map(|(task, begin)| (format!("A{}", task.split(']').next().unwrap_or(task)), begin.to_owned())).collect()
    }

    /// What a text names between backticks that is a path without a part to fill in.
    fn paths(text: &str) -> Vec<String> {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted.filter(|path| path.contains('/') && !path.contains(['{', ' '])).map(str::to_owned).collect()
    }

    #[test]
    fn tasks_are_read_from_rows_with_and_without_a_link() {
        let rows = ["| to add | begin in |", "|---|---|", "| a command | `host/cli/` |"];
        let table = [rows.as_slice(), &["| [a deployer](#a-deployer) | `plugins/`, after `x` |"]].concat().join("\n");
        let told = |task: &str, begin: &str| (task.to_owned(), begin.to_owned());
        assert_eq!(tasks(&table), [told("A deployer", "`plugins/`, after `x` |"), told("A command", "`host/cli/` |")]);
        assert_eq!(paths("`plugins/`, after `x`, `a/{kind}` and `b/c.rs`"), ["plugins/", "b/c.rs"]);
    }

    #[test]
    fn readme_says_of_each_task_where_it_begins() {
        let readme = tasks(&text(&root().join("README.md")));
        let mut wrong = Vec::new();
        for title in sections().keys() {
            match readme.iter().find(|(task, _)| task.split(',').next() == Some(title)) {
                None => wrong.push(format!("README.md has no row for {title:?}")),
                Some((_, begin)) => {
                    let absent = paths(begin).into_iter().filter(|path| !root().join(path).exists());
                    wrong.extend(absent.map(|path| format!("{title}: there is no {path}")));
                }
            }
        }
        let untold = readme.iter().filter(|(task, _)| !sections().contains_key(task.split(',').next().unwrap_or(task)));
        wrong.extend(untold.map(|(task, _)| format!("docs/how-to-add.md has no section {task:?}")));
        none("a stranger finds from README where each task begins", wrong);
    }

    #[test]
    fn no_task_touches_more_files_than_it_may() {
        let sections = sections();
        let mut wrong = Vec::new();
        for (title, most) in MOST_FILES {
            let steps = sections.get(title).into_iter().flat_map(|text| text.lines()).filter(|line| {
                line.split_once(". ")
                    .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
            });
            let count = steps.count();
            if count == 0 || count > most {
                wrong.push(format!("{title}: {count} files, allowed are {most}"));
            }
        }
        none("a task that touches many files has its knowledge spread", wrong);
    }
}
