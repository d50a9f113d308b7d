//! What this host offers to components: the contracts, their level, their versions.

/// The level of the contract that components of this host are built against: the custom section `orangery:contract`.
///
/// Versions inside a minor line match whatever their last number, so an older host would not notice a newer guest;
/// the level does (`docs/sandbox.md`). A component without the section counts as level 1.
pub const LEVEL: u32 = 1;

/// The custom section that holds the level as decimal digits.
pub(crate) const LEVEL_SECTION: &str = "orangery:contract";

macro_rules! texts {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../wit/", $path)))),+]
    };
}

/// The contracts: path below `wit/` (package, version, file) and text, in reading order. A version that was released stays as it was
/// (C-225).
pub const WIT: &[(&str, &str)] = texts![
    "deployer/0.1.0/world.wit",
    "deployer/0.1.0/types.wit",
    "deployer/0.1.0/deploy.wit",
    "deployer/0.1.0/plan.wit",
    "deployer/0.1.0/uninstall.wit",
    "deployer/0.1.0/tests.wit",
    "deployer/0.1.0/validate.wit",
    "deployer/0.1.0/cluster.wit",
    "deployer/0.1.0/artifacts.wit",
    "deployer/0.1.0/log.wit",
    "deployer/0.1.0/big-integers.wit",
    "template/0.1.0/world.wit",
    "template/0.1.0/template.wit",
    "template/0.1.0/check.wit",
    "template/0.1.0/files.wit",
    "template/0.1.0/components.wit",
    "template/0.1.0/kubeconfigs.wit",
    "template/0.1.0/randomness.wit",
    "template/0.1.0/big-integers.wit",
    "gate/0.1.0/world.wit",
    "gate/0.1.0/gate.wit",
];

/// The versions of the contracts: the package as WIT names it, such as `orangery:deployer`, and the version.
pub fn contract_versions() -> Vec<(String, &'static str)> {
    let mut versions = Vec::new();
    for (path, _) in WIT {
        let mut parts = path.split('/');
        let version = parts.next().zip(parts.next()).map(|(package, version)| (format!("orangery:{package}"), version));
        if versions.last() != version.as_ref() {
            versions.extend(version);
        }
    }
    versions
}

/// One interface that a component may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Name without version, such as `orangery:deployer/cluster`.
    pub(crate) name: &'static str,
    /// Major and minor version.
    pub(crate) line: (u64, u64),
}

const fn ours(name: &'static str) -> Offered {
    Offered { name, line: (0, 1) }
}

/// Our own interfaces that a component may import.
pub(crate) const CAPABILITIES: &[Offered] = &[
    ours("orangery:deployer/types"),
    ours("orangery:deployer/plan"),
    ours("orangery:deployer/deploy"),
    ours("orangery:deployer/log"),
    ours("orangery:deployer/cluster"),
    ours("orangery:deployer/artifacts"),
    ours("orangery:deployer/big-integers"),
    ours("orangery:template/files"),
    ours("orangery:template/components"),
    ours("orangery:template/kubeconfigs"),
    ours("orangery:template/randomness"),
    ours("orangery:template/big-integers"),
];

/// The interfaces that make a component something that this host calls.
pub(crate) const EXPORTS: &[Offered] = &[
    ours("orangery:deployer/deploy"),
    ours("orangery:deployer/uninstall"),
    ours("orangery:deployer/tests"),
    ours("orangery:deployer/validate"),
    ours("orangery:template/template"),
    ours("orangery:template/check"),
    ours("orangery:gate/gate"),
];

/// An interface name as a component writes it: `namespace:package/interface@version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceName<'a> {
    /// Without the version.
    pub(crate) name: &'a str,
    /// As written; empty where there is none.
    pub(crate) version: &'a str,
}

impl<'a> InterfaceName<'a> {
    /// Splits at the last `@`.
    pub(crate) fn parse(text: &'a str) -> Self {
        match text.rsplit_once('@') {
            Some((name, version)) => Self { name, version },
            None => Self { name: text, version: "" },
        }
    }

    /// Whether the version lies in this line: `0.1.7` and `0.1` lie in (0, 1).
    pub(crate) fn lies_in(&self, line: (u64, u64)) -> bool {
        let mut numbers = self.version.split('.').map(str::parse::<u64>);
        matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) == line)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    use super::*;

    /// What a folder has in it: folders, or else files.
    fn names(folder: &Path, folders: bool) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let entries = entries.filter(|entry| entry.path().is_dir() == folders);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn c_227_a_file_is_of_the_version_that_its_folder_is_called_by() {
        let versions = contract_versions();
        let expected =
            ["orangery:deployer", "orangery:template", "orangery:gate"].map(|name| (name.to_owned(), "0.1.0"));
        assert_eq!(versions, expected);
        for (path, text) in WIT {
            let [package, version, _]: [&str; 3] = path.split('/').collect::<Vec<_>>().try_into().unwrap();
            let declared = text.lines().find(|line| line.starts_with("package "));
            assert_eq!(declared, Some(format!("package orangery:{package}@{version};").as_str()), "{path}");
        }
    }

    /// What is built of the contracts: each of these names the folders of their packages.
    const BUILT: [&str; 8] = [
        "host/plugin/src/bindings.rs",
        "plugins/sdk/src/bindings/deployer.rs",
        "plugins/sdk/src/bindings/template.rs",
        "plugins/sdk/src/bindings/gate.rs",
        "plugins/container/src/bindings.rs",
        "plugins/builtin/build.rs",
        "plugins/build/src/bin/go_component.rs",
        "tests/guests/src/lib.rs",
    ];

    #[test]
    fn c_227_what_is_built_of_the_contracts_is_built_of_the_newest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let newest: BTreeMap<String, &str> = contract_versions().into_iter().collect();
        for file in BUILT {
            let text = fs::read_to_string(root.join(file)).unwrap();
            let mut named = 0;
            for (package, version) in &newest {
                let folder = format!("{}/", package.trim_start_matches("orangery:"));
                for (at, _) in text.match_indices(&folder) {
                    let rest = text.get(at + folder.len()..).unwrap_or_default();
                    let found: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
                    if !found.is_empty() {
                        assert_eq!(found, *version, "{file} is built of another version of {package}");
                        named += 1;
                    }
                }
            }
            assert!(named > 0, "{file} names no version of a contract");
        }
        // Links are no files on every system.
        for package in newest.keys() {
            let folder = root.join("wit").join(package.trim_start_matches("orangery:"));
            assert_eq!(names(&folder, false), Vec::<String>::new(), "{package}");
        }
    }

    #[test]
    fn every_contract_file_is_printed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut found = BTreeSet::new();
        for package in ["deployer", "template", "gate"] {
            for version in names(&root.join(package), true) {
                let files = names(&root.join(package).join(&version), false);
                found.extend(files.into_iter().map(|file| format!("{package}/{version}/{file}")));
            }
        }
        let printed: BTreeSet<String> = WIT.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(printed, found);
    }

    #[test]
    fn a_version_lies_in_a_line_whatever_its_last_number() {
        let lies = |text: &str| InterfaceName::parse(text).lies_in((0, 1));
        assert!(lies("a:b/c@0.1.0") && lies("a:b/c@0.1.99") && lies("a:b/c@0.1"));
        assert!(!lies("a:b/c@0.2.0") && !lies("a:b/c@1.1.0") && !lies("a:b/c") && !lies("a:b/c@x.y"));
    }
}
