//! Component versions and charts in registries and archives: where they are found, with which credentials and signatures.

mod chart_sources;
mod plugins;
mod pushed_later;
// A fixture of another crate, whose own suites have it as a module.
#[path = "../../../host/registry/tests/oci/registry.rs"]
#[expect(dead_code, reason = "the suite of the crate reads the same fixture in more ways")]
mod real_registry;
pub(super) mod registry;
mod signatures;

pub(super) use real_registry::{PASSWORD, RealRegistry};
