//! What stands beside code: examples, cluster cases, hostile guests, generated files, documents.

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        path::{Path, PathBuf},
    };

    use crate::repository::{display, files, files_ending, none, root, text};

    /// The folders below this one that directly hold a file with one of these endings.
    fn folders(below: &str, endings: &[&str]) -> BTreeSet<PathBuf> {
        let below = root().join(below);
        let inside = files_ending(endings).into_iter().filter(|file| file.starts_with(&below));
        inside.filter_map(|file| file.parent().map(Path::to_owned)).collect()
    }

    /// The text of every Rust file of the suites below this prefix, joined.
    fn suites(prefix: &str) -> String {
        let inside = files_ending(&[".rs"]).into_iter().filter(|file| display(file).starts_with(prefix));
        inside.map(|file| text(&file)).collect()
    }

    /// The folders that are applied; registrations of components lie in folders called `plugins`.
    fn examples() -> BTreeSet<PathBuf> {
        let folders = folders("examples", &[".yaml"]).into_iter().filter(|folder| !folder.ends_with("plugins"));
        // The example is the folder around its blueprint, or its chart.
        let around = |folder: PathBuf| {
            let is_part = |above: &&Path| above.ends_with("blueprint") || above.ends_with("chart");
            let part = folder.ancestors().filter(is_part).last();
            part.and_then(Path::parent).map(Path::to_path_buf).unwrap_or(folder)
        };
        folders.map(around).collect()
    }

    fn without_readme(folders: &BTreeSet<PathBuf>) -> Vec<String> {
        let missing = folders.iter().filter(|folder| {
            let readme = folder.join("README.md");
            !readme.is_file() || text(&readme).split_whitespace().count() < 20
        });
        missing.map(|folder| display(folder)).collect()
    }

    #[test]
    fn every_example_has_a_readme_paragraph() {
        let examples = examples();
        assert!(examples.len() >= 5, "examples are missing");
        none("say in README.md what the example shows", without_readme(&examples));
    }

    #[test]
    fn every_example_is_run_by_a_test() {
        let suites = suites("tests/cluster");
        let missing = examples().into_iter().map(|folder| display(&folder)).filter(|folder| {
            let name = folder.trim_start_matches("examples/");
            !suites.contains(&format!("\"{name}\""))
        });
        none("no suite of tests/cluster* names the example", missing.collect());
    }

    #[test]
    fn every_cluster_case_has_a_readme() {
        let cases = folders("tests/cluster", &[".yaml"]);
        none("say in README.md what the case proves", without_readme(&cases));
    }

    #[test]
    fn every_cluster_case_is_run_by_a_test() {
        let suites = suites("tests/cluster");
        let cases = folders("tests/cluster", &[".yaml"]).into_iter();
        let names = cases.filter_map(|case| Some(case.file_name()?.to_str()?.to_owned()));
        none("no suite runs the case", names.filter(|name| !suites.contains(&name.replace('-', "_"))).collect());
    }

    #[test]
    fn every_hostile_guest_has_a_test() {
        let suite = suites("tests/wasm");
        let guests = files_ending(&[".rs"]).into_iter();
        let guests = guests.filter(|file| display(file).starts_with("tests/guests/examples/"));
        let names = guests.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()));
        let missing = names.filter(|name| !suite.contains(&format!("\"{name}\"")));
        none("no test of tests/wasm calls the guest", missing.collect());
    }

    #[test]
    fn relative_links_of_documents_lead_somewhere() {
        let mut broken = Vec::new();
        for document in files_ending(&[".md"]) {
            let folder = document.parent().expect("a file lies in a folder");
            for link in links(&text(&document)) {
                if !folder.join(&link).exists() {
                    broken.push(format!("{}: {link}", display(&document)));
                }
            }
        }
        none("a link leads nowhere", broken);
    }

    /// The targets of `[text](target)` that are paths of this repository.
    fn links(text: &str) -> Vec<String> {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let paths = targets.filter(|target| !target.contains("://") && !target.starts_with(['#', '<']));
        paths.map(|target| target.split('#').next().unwrap_or_default().to_owned()).filter(|p| !p.is_empty()).collect()
    }

    #[test]
    fn no_file_is_large() {
        let large = files().into_iter().filter(|file| {
            let size = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
            size > 200_000 && !display(file).ends_with("Cargo.lock")
        });
        none("keep build output and recordings out of the repository", large.map(|file| display(&file)).collect());
    }
}
