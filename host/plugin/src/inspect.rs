//! What a component is, read from its bytes without compiling it: exports, imports, contract level, size.

mod scan;

use std::fmt;

use orangery_core::digest;
use orangery_proposal::grant::Grants;

pub(crate) use scan::MOST_BYTES;

use crate::{
    contract::{CAPABILITIES, EXPORTS, InterfaceName, LEVEL, Offered},
    error::Error,
    export::Interface,
    transcript::escaped,
    wasi::SLICES,
};

/// What is known of a component's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// `sha256:…` of the bytes.
    pub digest: String,
    /// Bytes.
    pub size: u64,
    /// Functions of all its modules.
    pub functions: u64,
    /// The content of the custom section `orangery:contract`; `None` where there is none.
    pub level: Option<String>,
    /// Names of imports, as written, sorted.
    pub imports: Vec<String>,
    /// Names of exports, as written, sorted.
    pub exports: Vec<String>,
}

/// A world of `wit/` that a component's exports make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// Plans deploy items.
    Deployer,
    /// Renders template executions.
    Templater,
    /// Answers gate expressions.
    Gate,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            World::Deployer => "deployer",
            World::Templater => "templater",
            World::Gate => "gate",
        })
    }
}

/// One import of a component, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The import, as written.
    pub interface: String,
    /// What the host does about it.
    pub offer: Offer,
}

/// What the host does about an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Free of grants: words, logs, and slices of WASI that reach nothing.
    Harmless,
    /// Granted, at least in part.
    Granted,
    /// Every call of it is denied; the text names the field of `grants` that is missing.
    NotGranted(&'static str),
    /// There is no backend behind it yet.
    Unserved,
    /// Not offered: the component cannot be loaded.
    Unknown,
}

impl Offer {
    /// The word of documents, and the field of the grants that is missing.
    pub fn words(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Offer::Harmless => ("harmless", None),
            Offer::Granted => ("granted", None),
            Offer::NotGranted(field) => ("notGranted", Some(field)),
            Offer::Unserved => ("unserved", None),
            Offer::Unknown => ("unknown", None),
        }
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offer::Harmless => f.write_str("free"),
            Offer::Granted => f.write_str("granted"),
            Offer::NotGranted(field) => write!(f, "not granted: add `{field}` to its grants"),
            Offer::Unserved => f.write_str("not served yet"),
            Offer::Unknown => f.write_str("not offered"),
        }
    }
}

/// Reads what a component is. Nothing is compiled and nothing of it runs.
///
/// # Errors
///
/// [`Error::NotAComponent`], and [`Error::TooLarge`] for what would never be compiled.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, Error> {
    let found = scan::scan(bytes)?;
    let digest = digest::sha256(bytes);
    let scan::Scan { functions, level, mut imports, mut exports } = found;
    imports.sort();
    exports.sort();
    Ok(Inspection { digest, size: bytes.len() as u64, functions, level, imports, exports })
}

impl Inspection {
    /// The worlds that its exports make, sorted.
    pub fn worlds(&self) -> Vec<World> {
        let mut worlds = Vec::new();
        if self.exports_interface("orangery:deployer/deploy") {
            worlds.push(World::Deployer);
        }
        if self.exports_interface("orangery:template/template") {
            worlds.push(World::Templater);
        }
        if self.exports_interface("orangery:gate/gate") {
            worlds.push(World::Gate);
        }
        worlds
    }

    /// Its imports, and what the host does about each under these grants.
    pub fn needs(&self, grants: &Grants) -> Vec<Need> {
        let need = |interface: &String| Need { interface: interface.clone(), offer: offer(interface, grants) };
        self.imports.iter().map(need).collect()
    }

    /// Whether this host would compile and link it, as far as its names tell.
    ///
    /// # Errors
    ///
    /// [`Error::Level`], [`Error::Version`], [`Error::Import`], [`Error::Export`].
    pub fn check(&self) -> Result<(), Error> {
        if let Some(level) = &self.level
            && level.trim().parse() != Ok(LEVEL)
        {
            return Err(Error::Level { found: escaped(level, 64) });
        }
        for import in &self.imports {
            check_import(import)?;
        }
        for export in &self.exports {
            let name = InterfaceName::parse(export);
            if let Some(offered) = EXPORTS.iter().find(|offered| offered.name == name.name) {
                check_version(&name, export, offered)?;
            }
        }
        match self.worlds().is_empty() {
            true => Err(Error::Export {
                interface: "orangery:deployer/deploy, orangery:template/template or orangery:gate/gate",
            }),
            false => Ok(()),
        }
    }

    /// Those of its exports that the host calls.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        Interface::ALL.into_iter().filter(|interface| self.exports_interface(interface.name())).collect()
    }

    /// Whether it exports this interface, in a version that is served.
    pub(crate) fn exports_interface(&self, interface: &str) -> bool {
        let Some(offered) = EXPORTS.iter().find(|offered| offered.name == interface) else { return false };
        self.exports
            .iter()
            .map(|export| InterfaceName::parse(export))
            .any(|name| name.name == interface && name.lies_in(offered.line))
    }
}

fn offered(name: &str) -> Option<&'static Offered> {
    CAPABILITIES.iter().chain(SLICES).find(|offered| offered.name == name)
}

fn check_import(import: &str) -> Result<(), Error> {
    let name = InterfaceName::parse(import);
    match offered(name.name) {
        Some(offered) => check_version(&name, import, offered),
        None => Err(Error::Import { interface: escaped(import, 256) }),
    }
}

fn check_version(name: &InterfaceName<'_>, written: &str, offered: &Offered) -> Result<(), Error> {
    if name.lies_in(offered.line) {
        return Ok(());
    }
    let (major, minor) = offered.line;
    Err(Error::Version { interface: escaped(written, 256), served: format!("{major}.{minor}") })
}

fn offer(import: &str, grants: &Grants) -> Offer {
    let name = InterfaceName::parse(import);
    let clusters = &grants.clusters;
    match name.name {
        _ if check_import(import).is_err() => Offer::Unknown,
        "orangery:deployer/cluster" if !(clusters.target || clusters.host || !clusters.named.is_empty()) => {
            Offer::NotGranted("clusters")
        }
        "orangery:deployer/cluster" if grants.reads.is_empty() => Offer::NotGranted("reads"),
        "orangery:template/kubeconfigs" if grants.kubeconfigs.is_empty() => Offer::NotGranted("kubeconfigs"),
        "orangery:deployer/cluster"
        | "orangery:template/files"
        | "orangery:template/components"
        | "orangery:template/kubeconfigs" => Offer::Granted,
        "orangery:deployer/artifacts" if grants.artifacts.is_empty() && grants.hosts.is_empty() => {
            Offer::NotGranted("artifacts")
        }
        "orangery:deployer/artifacts" => Offer::Unserved,
        _ => Offer::Harmless,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspection(imports: &[&str], exports: &[&str], level: Option<&str>) -> Inspection {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Inspection {
            digest: "sha256:0".into(),
            size: 1,
            functions: 1,
            level: level.map(str::to_owned),
            imports: texts(imports),
            exports: texts(exports),
        }
    }

    const DEPLOY: &str = "orangery:deployer/deploy@0.1.0";

    #[track_caller]
    fn check(imports: &[&str], exports: &[&str], level: Option<&str>, message: &str) {
        let error = inspection(imports, exports, level).check().unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn what_the_host_offers_is_accepted() {
        inspection(&["wasi:cli/stderr@0.2.6", "orangery:deployer/cluster@0.1.7"], &[DEPLOY], Some("1"))
            .check()
            .unwrap();
        inspection(&[], &["orangery:template/template@0.1.0"], None).check().unwrap();
    }

    #[test]
    fn what_the_host_does_not_offer_is_named() {
        check(
            &["wasi:http/outgoing-handler@0.2.0"],
            &[DEPLOY],
            None,
            "the component imports wasi:http/outgoing-handler@0.2.0, which is not offered to components; build it against the contracts that `orangery wit` prints",
        );
        check(
            &["orangery:deployer/cluster@0.2.0"],
            &[DEPLOY],
            None,
            "the component uses orangery:deployer/cluster@0.2.0, but this host serves version 0.1; build it against the contracts that `orangery wit` prints",
        );
        check(
            &[],
            &["orangery:deployer/deploy@0.3.0"],
            None,
            "the component uses orangery:deployer/deploy@0.3.0, but this host serves version 0.1; build it against the contracts that `orangery wit` prints",
        );
        check(
            &[],
            &["run"],
            None,
            "the component does not export orangery:deployer/deploy, orangery:template/template or orangery:gate/gate; build it against the world of `orangery wit` that has it",
        );
        check(
            &[],
            &[DEPLOY],
            Some("2"),
            "the component was built for contract level 2, but this host serves level 1; build it again with the SDK of this host",
        );
    }

    #[test]
    fn each_import_is_held_against_the_grants() {
        let one = inspection(
            &[
                "orangery:deployer/artifacts@0.1.0",
                "orangery:deployer/cluster@0.1.0",
                "orangery:deployer/log@0.1.0",
                "wasi:http/types@0.2.0",
            ],
            &[DEPLOY],
            None,
        );
        let offers = |grants: serde_json::Value| -> Vec<Offer> {
            let grants: Grants = serde_json::from_value(grants).unwrap();
            one.needs(&grants).into_iter().map(|need| need.offer).collect()
        };
        use Offer::{Granted, Harmless, NotGranted, Unknown, Unserved};
        assert_eq!(offers(serde_json::json!({})), [NotGranted("artifacts"), NotGranted("clusters"), Harmless, Unknown]);
        let cluster = serde_json::json!({"clusters": {"target": true}, "hosts": ["a"]});
        assert_eq!(offers(cluster), [Unserved, NotGranted("reads"), Harmless, Unknown]);
        let reads = serde_json::json!({"clusters": {"target": true}, "reads": [{}]});
        assert_eq!(offers(reads), [NotGranted("artifacts"), Granted, Harmless, Unknown]);
    }
}
