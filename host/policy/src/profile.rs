//! The profiles that are built in, by name.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A profile: a policy that says every line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// For tenants that do not trust each other.
    #[default]
    Restricted,
    /// For one team that may do all that the operator may: as Landscaper behaves.
    Compatible,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Restricted, Self::Compatible];

    /// Its word in policies, and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Restricted => "restricted",
            Self::Compatible => "compatible",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no profile of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {0:?}; there are restricted and compatible")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_known_by_its_name() {
        let read = |text: &str| text.parse::<Profile>();
        assert_eq!(Profile::ALL.map(|profile| read(profile.name())), Profile::ALL.map(Ok));
        assert_eq!(
            read("Restricted").unwrap_err().to_string(),
            "there is no profile \"Restricted\"; there are restricted and compatible"
        );
    }
}
