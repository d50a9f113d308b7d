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

/// A component's bytes, which are read from the disk when they are first looked at, and their digest (`sha256:…`), which
/// was computed when they were embedded.
pub type Embedded = (&'static [u8], &'static str);

/// The components that ship with the host: those in Rust by name, then those in Go.
///
/// The list is written in this function, which is never inlined: what constants and statics hold is copied into the metadata of
/// the crate, and from there into each unit that names it, and these are seventy megabytes.
#[inline(never)]
pub fn components() -> &'static [Builtin] {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_one_and_its_registration_names_it() {
        for builtin in components() {
            if let Ok((bytes, _)) = builtin.component {
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
        for name in ["manifest", "mock", "jinja"] {
            let builtin = components().iter().find(|builtin| builtin.name == name).expect("it ships");
            let text = String::from_utf8_lossy(builtin.component.expect("it is built").0);
            for import in ["wasi:filesystem/", "wasi:sockets/", "wasi:http/"] {
                assert!(!text.contains(import), "{name} imports {import}");
            }
        }
    }
}
