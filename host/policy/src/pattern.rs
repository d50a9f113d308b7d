//! Patterns of names and addresses.

use std::{borrow::Cow, fmt};

use orangery_core::pattern::matches;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The most letters of a pattern.
const LONGEST_PATTERN: usize = 512;

/// A pattern of names: `*` stands for any letters, also for none; everything else for itself. The whole name has to match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern that everything matches.
    pub fn any() -> Self {
        Self("*".to_owned())
    }

    /// Whether everything matches.
    pub fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.0, name)
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Why it is no pattern.
    pub(crate) fn fault(&self) -> Option<String> {
        let long = self.0.len() > LONGEST_PATTERN;
        if self.0.is_empty() || long {
            return Some(format!("has a pattern of {} letters; it has to have 1 to {LONGEST_PATTERN}", self.0.len()));
        }
        None
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Pattern {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": LONGEST_PATTERN})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_letters_and_not_too_many() {
        assert_eq!(Pattern::from("a*").fault(), None);
        assert_eq!(Pattern::from("").fault().as_deref(), Some("has a pattern of 0 letters; it has to have 1 to 512"));
        assert!(Pattern("a".repeat(513)).fault().is_some());
    }
}
