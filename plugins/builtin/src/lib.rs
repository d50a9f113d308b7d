//! The components that ship with the host, built from `plugins/` by the build script, each with its registration.
//! One in Rust ships because its folder has a package and a registration; one in Go stands in a table of the script.
//!
//! A registration has the same form as one of somebody else in `--plugins DIR`; nothing is special about these.

/// One component that ships with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name of the registration.
    pub name: &'static str,
    /// The registration as YAML; its `component.file` names the file that the component is the content of.
    pub registration: &'static str,
    /// The component.
    pub component: Component,
}

/// A component, or a sentence that says why this build has none and what to do. The engines in Go need Go to be built.
pub type Component = Result<Embedded, &'static str>;

/// A component as it is embedded: packed with zlib, how many bytes it has unpacked, and the digest (`sha256:…`) of these.
/// `orangery_plugin::unpack` makes the component of it.
pub type Embedded = (&'static [u8], usize, &'static str);

/// The components that ship with the host: those in Rust by name, then those in Go.
///
/// The list is written in this function, which is never inlined: what constants and statics hold is copied into the metadata of
/// the crate, and from there into each unit that names it, and these are fifteen megabytes.
#[inline(never)]
pub fn components() -> &'static [Builtin] {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"))
}

/// What projects in Go of one world are built with. Go makes a module; what stands around it in a component depends on the
/// contract alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedGoKit {
    /// The world of the contract.
    pub world: &'static str,
    /// The bindings, by their path in the module `wit_component`.
    pub bindings: &'static [(&'static str, &'static str)],
    /// What stands in a component before its module.
    pub before: &'static [u8],
    /// What stands behind it.
    pub after: &'static [u8],
}

/// What projects in Go of a world are built with.
#[inline(never)]
pub fn go_kit(world: &str) -> Option<&'static EmbeddedGoKit> {
    let kits: &'static [EmbeddedGoKit] = include!(concat!(env!("OUT_DIR"), "/go_kits.rs"));
    kits.iter().find(|kit| kit.world == world)
}

/// The contracts as packages of WIT in binary form, by their folder: `deployer/0.1.0`.
#[inline(never)]
pub fn wit_packages() -> &'static [(&'static str, &'static [u8])] {
    include!(concat!(env!("OUT_DIR"), "/wit_packages.rs"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// Of 75 MB that the binary of a release may have, what its code leaves.
    const MOST_PACKED: usize = 18_000_000;

    fn unpacked((packed, _, _): Embedded) -> Vec<u8> {
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn c_185_what_ships_is_packed_and_its_digest_is_that_of_the_component() {
        let embedded: Vec<Embedded> = components().iter().filter_map(|builtin| builtin.component.ok()).collect();
        for component in &embedded {
            let bytes = unpacked(*component);
            let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((component.1, component.2), (bytes.len(), format!("sha256:{hex}").as_str()));
        }
        let sum: usize = embedded.iter().map(|(packed, _, _)| packed.len()).sum();
        assert!(
            sum <= MOST_PACKED,
            "the components have {sum} bytes in the binary, and at most {MOST_PACKED} are meant"
        );
    }

    #[test]
    fn every_component_is_one_and_its_registration_names_it() {
        for builtin in components() {
            if let Ok(component) = builtin.component {
                let bytes = unpacked(component);
                assert!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "{} is no component", builtin.name);
            }
            let name = format!("metadata: {{name: {}}}", builtin.name);
            assert!(builtin.registration.contains(&name), "{} is registered as another", builtin.name);
            let file = format!("component: {{file: {}.wasm}}", builtin.name);
            assert!(builtin.registration.contains(&file), "{} has another file", builtin.name);
        }
    }

    #[test]
    fn a_component_that_was_not_built_says_how_to_get_it() {
        for builtin in components() {
            if let Err(sentence) = builtin.component {
                assert!(["gotemplate", "spiff", "helm"].contains(&builtin.name), "{} needs Rust alone", builtin.name);
                assert!(sentence.contains("install Go"), "{sentence}");
            }
        }
    }

    #[test]
    fn what_is_written_in_rust_imports_no_file_or_socket() {
        for name in ["container", "manifest", "mock", "jinja"] {
            let builtin = components().iter().find(|builtin| builtin.name == name).expect("it ships");
            let text = unpacked(builtin.component.expect("it is built"));
            let text = String::from_utf8_lossy(&text);
            for import in ["wasi:filesystem/", "wasi:sockets/", "wasi:http/"] {
                assert!(!text.contains(import), "{name} imports {import}");
            }
        }
    }
}
