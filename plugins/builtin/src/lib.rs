//! The components that ship with the host, built from `plugins/` by the build script, each with its registration.
//!
//! A registration has the same form as one of somebody else in `--plugins DIR`; nothing is special about these.

/// One component that ships with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name of the registration.
    pub name: &'static str,
    /// The registration as YAML; its `component.file` names the file that `bytes` are the content of.
    pub registration: &'static str,
    /// The component.
    pub bytes: &'static [u8],
}

macro_rules! builtin {
    ($name:literal, $file:literal) => {
        Builtin {
            name: $name,
            registration: include_str!(concat!("../../", $name, "/plugin.yaml")),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $file)),
        }
    };
}

/// The components that ship with the host.
pub fn components() -> &'static [Builtin] {
    const {
        &[
            builtin!("manifest", "orangery_manifest.wasm"),
            builtin!("mock", "orangery_mock.wasm"),
            builtin!("jinja", "orangery_jinja.wasm"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_one_and_its_registration_names_it() {
        for builtin in components() {
            assert!(builtin.bytes.starts_with(b"\0asm\x0d\0\x01\0"), "{} is no component", builtin.name);
            let name = format!("metadata: {{name: {}}}", builtin.name);
            assert!(builtin.registration.contains(&name), "{} is registered as another", builtin.name);
            let file = format!("component: {{file: {}.wasm}}", builtin.name);
            assert!(builtin.registration.contains(&file), "{} has another file", builtin.name);
        }
    }

    #[test]
    fn a_component_is_small_and_imports_no_file_or_socket() {
        for builtin in components() {
            let text = String::from_utf8_lossy(builtin.bytes);
            for import in ["wasi:filesystem/", "wasi:sockets/", "wasi:http/"] {
                assert!(!text.contains(import), "{} imports {import}", builtin.name);
            }
        }
    }
}
