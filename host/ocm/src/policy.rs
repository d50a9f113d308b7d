//! Whether component versions have to be signed, whatever an installation asks for (`docs/wire.md` §10).

use std::fmt;

/// What holds for all installations, in the words of the original's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignaturePolicy {
    /// Every installation has a component version whose signature is verified.
    Enforce,
    /// Those that ask for it have.
    #[default]
    DoNotEnforce,
    /// None is verified, whatever is asked for.
    Disabled,
}

/// Why an installation is refused: one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    /// No component version at all.
    #[error(
        "this host runs only what is signed (--signature-policy Enforce), but the installation has no component version; set \
         spec.componentDescriptor and spec.verification"
    )]
    NoComponent,
    /// No signature is named.
    #[error(
        "this host runs only what is signed (--signature-policy Enforce), but the installation names no signature; set \
         spec.verification.signatureName"
    )]
    NotAsked,
}

impl SignaturePolicy {
    /// All, the default in the middle.
    pub const ALL: [Self; 3] = [SignaturePolicy::Enforce, SignaturePolicy::DoNotEnforce, SignaturePolicy::Disabled];

    /// The word of the original's configuration.
    pub fn name(self) -> &'static str {
        match self {
            SignaturePolicy::Enforce => "Enforce",
            SignaturePolicy::DoNotEnforce => "DoNotEnforce",
            SignaturePolicy::Disabled => "Disabled",
        }
    }

    /// Whether an installation's component version is verified.
    pub fn verifies(self, has_component: bool, is_asked: bool) -> Result<bool, NotSigned> {
        match (self, has_component, is_asked) {
            (SignaturePolicy::Enforce, false, _) => Err(NotSigned::NoComponent),
            (SignaturePolicy::Enforce, true, false) => Err(NotSigned::NotAsked),
            (SignaturePolicy::Disabled, _, _) => Ok(false),
            (SignaturePolicy::Enforce | SignaturePolicy::DoNotEnforce, _, _) => Ok(has_component && is_asked),
        }
    }
}

impl fmt::Display for SignaturePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_verified_by_policy_component_and_wish() {
        use SignaturePolicy::{Disabled, DoNotEnforce, Enforce};
        let cases = [(true, true), (true, false), (false, true), (false, false)];
        let of = |policy: SignaturePolicy| cases.map(|(component, asked)| policy.verifies(component, asked));
        let none = NotSigned::NoComponent;
        assert_eq!(of(Enforce), [Ok(true), Err(NotSigned::NotAsked), Err(none), Err(none)]);
        assert_eq!(of(DoNotEnforce), [Ok(true), Ok(false), Ok(false), Ok(false)]);
        assert_eq!(of(Disabled), [Ok(false); 4]);
        assert_eq!(SignaturePolicy::ALL.map(SignaturePolicy::name), ["Enforce", "DoNotEnforce", "Disabled"]);
    }
}
