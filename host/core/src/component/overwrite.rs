//! ComponentVersionOverwrites: component references replaced by others (`landscaper.md` §10).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VersionReference;

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overwrite {
    /// What is replaced.
    pub source: OverwriteSide,
    /// By what.
    pub substitution: OverwriteSide,
}

/// One side of a rule; what is absent matches all, or stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverwriteSide {
    /// The repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_context: Option<Value>,
    /// The component's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub component_name: String,
    /// The component's version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// What the rules made of a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaced {
    /// The reference to open.
    pub reference: VersionReference,
    /// Whether any rule matched (condition `ComponentReferenceOverwrite`).
    pub matched: bool,
}

/// Applies the rules, in their order, to a reference. A rule matches by the original reference; it gives what it has,
/// unless an earlier rule gave one of the same: then it gives nothing.
pub fn replace(rules: &[Overwrite], original: &VersionReference) -> Replaced {
    let mut given = OverwriteSide::default();
    let mut matched = false;
    for rule in rules.iter().filter(|rule| rule.source.matches(original)) {
        matched = true;
        given.take(&rule.substitution);
        if given.repository_context.is_some() && !given.component_name.is_empty() && !given.version.is_empty() {
            break;
        }
    }
    let or = |given: String, original: &str| if given.is_empty() { original.to_owned() } else { given };
    Replaced {
        reference: VersionReference {
            repository_context: given.repository_context.or_else(|| original.repository_context.clone()),
            name: or(given.component_name, &original.name),
            version: or(given.version, &original.version),
        },
        matched,
    }
}

impl OverwriteSide {
    fn matches(&self, reference: &VersionReference) -> bool {
        (self.component_name.is_empty() || self.component_name == reference.name)
            && (self.version.is_empty() || self.version == reference.version)
            && (self.repository_context.is_none() || self.repository_context == reference.repository_context)
    }

    fn take(&mut self, other: &OverwriteSide) {
        let conflict = !other.component_name.is_empty() && !self.component_name.is_empty()
            || !other.version.is_empty() && !self.version.is_empty()
            || other.repository_context.is_some() && self.repository_context.is_some();
        if conflict {
            return;
        }
        if !other.component_name.is_empty() {
            self.component_name.clone_from(&other.component_name);
        }
        if !other.version.is_empty() {
            self.version.clone_from(&other.version);
        }
        if other.repository_context.is_some() {
            self.repository_context.clone_from(&other.repository_context);
        }
    }
}
