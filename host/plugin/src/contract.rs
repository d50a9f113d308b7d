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

/// The contracts: path below `wit/` and text, in reading order.
pub const WIT: &[(&str, &str)] = texts![
    "deployer/world.wit",
    "deployer/types.wit",
    "deployer/deploy.wit",
    "deployer/plan.wit",
    "deployer/uninstall.wit",
    "deployer/tests.wit",
    "deployer/validate.wit",
    "deployer/cluster.wit",
    "deployer/artifacts.wit",
    "deployer/log.wit",
    "template/world.wit",
    "template/template.wit",
    "template/check.wit",
    "template/files.wit",
    "template/components.wit",
    "template/kubeconfigs.wit",
    "template/randomness.wit",
    "gate/world.wit",
    "gate/gate.wit",
];

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
    ours("orangery:template/files"),
    ours("orangery:template/components"),
    ours("orangery:template/kubeconfigs"),
    ours("orangery:template/randomness"),
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
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_contract_file_is_printed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut found = BTreeSet::new();
        for package in ["deployer", "template", "gate"] {
            for entry in fs::read_dir(root.join(package)).unwrap() {
                found.insert(format!("{package}/{}", entry.unwrap().file_name().to_string_lossy()));
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
