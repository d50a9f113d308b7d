//! Which component version an installation asks for (`spec.componentDescriptor`).

use std::fmt;

use serde_json::Value;

/// A component version by name (`spec.componentDescriptor.ref`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionReference {
    /// Where it is; `None` leaves it to the Context.
    pub repository_context: Option<Value>,
    /// The component's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl fmt::Display for VersionReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.version)
    }
}

/// `spec.componentDescriptor` of an installation.
#[derive(Clone, Debug, PartialEq)]
pub enum ComponentSource {
    /// By name.
    Reference(VersionReference),
    /// Written in the installation.
    Inline(Value),
}
