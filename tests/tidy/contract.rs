//! The contract: what was released stays, every word of it is used, and the reference for authors is made of it. `UPDATE=1 cargo test
//! --workspace --test tidy` writes the reference anew.

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        env, fs,
    };

    use orangery_core::digest;
    use orangery_plugin::WIT;

    use crate::{
        repository::{display, files_ending, none, root, text},
        wit::{Declared, Part, Word, parse},
    };

    const REFERENCE: &str = "docs/plugins/reference.md";
    const RELEASED: &str = "wit/released";

    /// The sum of the files of a version.
    fn sum(files: &BTreeMap<String, String>) -> String {
        let parts = files.iter().map(|(name, content)| format!("{name} {}\n{content}", content.len()));
        digest::sha256(parts.collect::<String>().as_bytes())
    }

    /// The versions of the contracts: folder below `wit`, and the files in it.
    fn versions() -> BTreeMap<String, BTreeMap<String, String>> {
        let mut versions: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (path, content) in WIT {
            let (folder, name) = path.rsplit_once('/').expect("a file lies in the folder of its version");
            versions.entry(folder.to_owned()).or_default().insert(name.to_owned(), (*content).to_owned());
        }
        versions
    }

    /// What is not as it was released.
    fn changed(released: &str, versions: &BTreeMap<String, BTreeMap<String, String>>) -> Vec<String> {
        let lines = released.lines().filter(|line| !line.starts_with('#'));
        let of = |line: &str| {
            let Some((folder, expected)) = line.split_once(' ') else { return Some(format!("{line}: no sum")) };
            match versions.get(folder).map(sum) {
                Some(sum) if sum == expected => None,
                Some(sum) => Some(format!("{folder} was {expected} and is {sum}")),
                None => Some(format!("{folder} is gone")),
            }
        };
        lines.filter_map(of).collect()
    }

    #[test]
    fn c_225_a_released_version_of_the_contract_is_as_it_was() {
        none(
            "a released contract never changes: make a folder for a new version",
            changed(&text(&root().join(RELEASED)), &versions()),
        );
        let files = |content: &str| BTreeMap::from([("a.wit".to_owned(), content.to_owned())]);
        let of = |content: &str| BTreeMap::from([("deployer/0.1.0".to_owned(), files(content))]);
        let released = format!("# told\ndeployer/0.1.0 {}\n", sum(&files("record a {}")));
        assert_eq!(changed(&released, &of("record a {}")), Vec::<String>::new());
        let longer = changed(&released, &of("record a { b: u8 }"));
        assert!(matches!(longer.as_slice(), [told] if told.starts_with("deployer/0.1.0 was sha256:")), "{longer:?}");
        assert_eq!(changed(&released, &BTreeMap::new()), ["deployer/0.1.0 is gone"]);
    }

    /// The sources of what ships, and of the components that the tests call.
    fn of_components() -> String {
        let folders = [
            "plugins/manifest/src",
            "plugins/mock/src",
            "plugins/container/src",
            "plugins/jinja/src",
            "plugins/go/",
            "plugins/helm/",
            "tests/guests/",
            "tests/contracts/examples/",
        ];
        let files = files_ending(&[".rs", ".go"]).into_iter();
        let files = files.filter(|path| folders.iter().any(|folder| display(path).starts_with(folder)));
        files.map(|path| text(&path)).collect()
    }

    /// A word as types are named: `apply-as` as `ApplyAs`.
    fn as_type(word: &str) -> String {
        let capital = |part: &str| {
            let (first, rest) = part.split_at_checked(1).unwrap_or(("", part));
            first.to_uppercase() + rest
        };
        word.split('-').map(capital).collect()
    }

    /// The forms in which components in Rust and in Go use a word.
    fn forms(declared: &Declared, word: &Word) -> Vec<String> {
        let (of, name) = (as_type(&declared.name), as_type(&word.name));
        match declared.part {
            Part::Variant | Part::Enumeration => {
                vec![format!("{of}::{name}"), format!("{of}{name}"), format!("{of}_{name}")]
            }
            Part::Record => vec![word.name.replace('-', "_"), name],
            Part::Functions | Part::World => vec![format!("{}(", word.name.replace('-', "_")), format!("{name}(")],
            Part::Alias => Vec::new(),
        }
    }

    #[test]
    fn c_226_every_word_of_the_contract_is_used_by_a_component_that_ships_or_is_tested() {
        let sources = of_components();
        let mut unused = BTreeSet::new();
        for (path, content) in WIT {
            for declared in parse(content).declared {
                for word in declared.words.iter().filter(|_| declared.part != Part::World) {
                    let forms = forms(&declared, word);
                    if !forms.is_empty() && !forms.iter().any(|form| sources.contains(form.as_str())) {
                        unused.insert(format!("{path}: {} of {}", word.name, declared.name));
                    }
                }
            }
        }
        none("use it in a component of tests/contracts, or take it out of the contract", unused.into_iter().collect());
    }

    /// The reference, as it is made of the contracts.
    fn reference() -> String {
        let mut page = "# Reference of the contract\n\nMade of `wit/` by `UPDATE=1 cargo test --workspace --test tidy`: do not edit it. \
                        `orangery wit` prints the same\nin the words of WIT. What the host does with a proposal: \
                        [contract.md](../contract.md).\n"
            .to_owned();
        let mut package = String::new();
        for (path, content) in WIT {
            let file = parse(content);
            if file.package != package {
                page += &format!("\n## {}\n", file.package);
                package = file.package;
            }
            if !file.about.is_empty() {
                page += &format!("\n{}\n", file.about);
            }
            file.declared.iter().for_each(|declared| page += &declared.page());
            assert!(!file.declared.is_empty(), "{path} declares nothing");
        }
        page
    }

    #[test]
    fn c_224_the_reference_is_made_of_the_contract() {
        let (path, wanted) = (root().join(REFERENCE), reference());
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &wanted).expect("the file can be written");
        } else if fs::read_to_string(&path).unwrap_or_default() != wanted {
            none("the reference is made of wit/ by UPDATE=1", vec![REFERENCE.to_owned()]);
        }
        for (_, content) in WIT {
            let told = parse(content).declared;
            let undocumented =
                told.iter().filter(|declared| declared.about.is_empty() && declared.part != Part::Functions);
            none("say what it means", undocumented.map(|declared| declared.name.clone()).collect());
        }
    }
}
