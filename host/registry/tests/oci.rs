//! The client of OCI registries against servers on this machine: hostile ones of our own, and a real one.

#[path = "oci/artifacts.rs"]
mod artifacts;
#[cfg(test)]
#[path = "oci/broken.rs"]
mod broken;
#[cfg(test)]
#[path = "oci/components.rs"]
mod components;
#[cfg(test)]
#[path = "oci/files.rs"]
mod files;
#[path = "oci/filled_registry.rs"]
mod filled_registry;
#[path = "oci/hostile.rs"]
mod hostile;
#[path = "oci/keeping.rs"]
mod keeping;
#[path = "oci/limits.rs"]
mod limits;
#[path = "oci/logins.rs"]
mod logins;
#[cfg(test)]
#[path = "oci/networks.rs"]
mod networks;
#[path = "oci/real.rs"]
mod real;
#[cfg(test)]
#[path = "oci/redirects.rs"]
mod redirects;
#[path = "oci/registry.rs"]
mod registry;
#[path = "oci/release.rs"]
mod release;
#[path = "oci/server.rs"]
mod server;
#[path = "oci/shared_memory.rs"]
mod shared_memory;
#[path = "oci/signatures.rs"]
mod signatures;
#[cfg(test)]
#[path = "oci/slots.rs"]
mod slots;
#[cfg(test)]
#[path = "oci/wasm.rs"]
mod wasm;
#[cfg(test)]
#[path = "oci/wasm_commands.rs"]
mod wasm_commands;
