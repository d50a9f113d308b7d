//! A contract as registries keep it: a package of WIT in binary form, which is a component that only has types.

use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;

use crate::Error;

/// The package that lies in a folder.
///
/// # Errors
///
/// [`Error::Component`] where the contract cannot be read.
pub fn wit_package(wit: &Path) -> Result<Vec<u8>, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::Component { why: format!("{}: {error:#}", wit.display()) };
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).map_err(|error| broken(&error))?;
    wit_component::encode(&resolve, package, false).map_err(|error| broken(&error))
}
