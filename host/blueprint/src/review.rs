//! What can be said of a blueprint without rendering it: its structure, its schemas, the data flow of its
//! sub-installations, and how an installation binds it. Each finding has its place in a file of the user.
//!
//! Templates are collected, for whoever has the engines to look at them.

mod binding;
mod blueprint;
mod installation;
mod origin;
mod schemas;
mod templates;

use std::fmt;

pub use self::{
    blueprint::review,
    installation::{is_installation, review_installation},
    origin::{BlueprintOrigin, FilePosition, Text},
    templates::{ToCheck, classify},
};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The blueprint would fail.
    Error,
    /// It would work, and perhaps not as it is meant.
    Warning,
    /// Something could not be looked at.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// One thing that is to be said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Where.
    pub position: FilePosition,
    /// How grave.
    pub severity: Severity,
    /// One sentence: what, and after `;` how to mend it.
    pub message: String,
}

/// As a compiler prints it: `file:line:column: severity: sentence`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilePosition { file, place } = &self.position;
        write!(f, "{file}:{}:{}: {}: {}", place.line, place.column, self.severity, self.message)
    }
}

/// What came of looking at a blueprint.
#[derive(Debug, Default)]
pub struct Review {
    /// What is to be said, in the order found.
    pub findings: Vec<Finding>,
    /// The templates, for their engines.
    pub templates: Vec<ToCheck>,
}

impl Review {
    fn say(&mut self, severity: Severity, position: FilePosition, message: impl Into<String>) {
        self.findings.push(Finding { position, severity, message: message.into() });
    }
}

#[cfg(test)]
mod tests;
