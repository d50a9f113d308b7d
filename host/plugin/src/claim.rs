//! What components claim types of.

use crate::export::Interface;

/// What types are claimed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaimKind {
    /// Deploy items.
    Deployer,
    /// Template executions.
    Template,
    /// Gate expressions.
    Gate,
}

impl ClaimKind {
    /// What a component of such claims exports.
    pub(crate) fn interface(self) -> Interface {
        match self {
            ClaimKind::Deployer => Interface::Deploy,
            ClaimKind::Template => Interface::Template,
            ClaimKind::Gate => Interface::Gate,
        }
    }

    /// What a component of such claims is.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ClaimKind::Deployer => "deployer",
            ClaimKind::Template => "template engine",
            ClaimKind::Gate => "gate engine",
        }
    }
}
