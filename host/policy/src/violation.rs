//! What a policy refuses.

use std::fmt;

use orangery_core::error::{Code, Failure, Fault, Problem};

use crate::{profile::Profile, read::PolicyOrigin};

/// Something that a policy refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    /// Which policy.
    pub policy: PolicyOrigin,
    /// The line of it, as a path of fields: `spec.targets.clusterScoped`. `spec` for a policy that cannot be used.
    pub line: String,
    /// The profile that the line comes from; `None` where the policy says it itself.
    pub of_profile: Option<Profile>,
    /// What was asked.
    pub asked: String,
    /// Why, where it is not just the line.
    pub why: Option<Box<str>>,
    /// What a NamespacePolicy would have to say, as one line of YAML; `None` where that does not help.
    pub remedy: Option<String>,
}

impl Violation {
    /// Its error code.
    pub const CODE: Code = Code::PolicyViolation;
    /// The reason of failures that come of it.
    pub const REASON: &'static str = "PolicyViolation";

    /// As the failure of an operation.
    pub fn failure(&self, operation: &str) -> Failure {
        Failure::new(operation, Self::REASON, self.to_string()).with_code(Self::CODE)
    }

    /// As the answer to a component that asked.
    pub fn fault(&self) -> Fault {
        Fault::Denied(Problem { code: Self::CODE, message: self.to_string(), at: None })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, line, of_profile, asked, why, remedy } = self;
        write!(f, "{asked} is refused by {policy}, line {line}")?;
        if let Some(profile) = of_profile {
            write!(f, " of its profile {profile}")?;
        }
        if let Some(why) = why {
            write!(f, " ({why})")?;
        }
        match (remedy, policy) {
            (Some(remedy), PolicyOrigin::Named(_)) => {
                write!(f, "; leave it out, or have an administrator set {remedy} there")
            }
            (Some(remedy), PolicyOrigin::Default | PolicyOrigin::Command) => write!(
                f,
                "; leave it out, or have an administrator set {remedy} in a NamespacePolicy for the namespace"
            ),
            (None, _) => f.write_str("; have an administrator correct that policy"),
        }
    }
}
