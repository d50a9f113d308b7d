//! The rules that the fields of a blueprint keep, and what is said of one that is broken.

use std::fmt;

use orangery_core::workflow::FailurePolicy;
use orangery_ocm::ComponentReferenceError;

/// A rule of a blueprint that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlueprintFault {
    /// Must be set.
    Empty,
    /// Stands twice.
    Duplicate(String),
    /// Neither or both of `schema` and `targetType`, and no `type`.
    SchemaOrTargetType,
    /// `targetType` on data.
    OnlyForTargets,
    /// `schema` on targets.
    OnlyForData,
    /// A `type` that does not exist.
    UnknownType {
        /// The type.
        found: String,
        /// The types there are.
        known: &'static str,
    },
    /// `imports` under an import that is always there.
    ConditionalOnRequired,
    /// Not exactly one of `file` and `template`, or `file` and an inline template.
    FileOrTemplate,
    /// `file` beside other fields of a sub-installation.
    FileOrInline,
    /// A failure policy that does not exist.
    UnknownPolicy(String),
    /// No item may be under way.
    NoneParallel,
    /// No component stands where an execution of type `Wasm` names one.
    Component(ComponentReferenceError),
}

impl fmt::Display for BlueprintFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlueprintFault::Empty => f.write_str("is missing; set it"),
            BlueprintFault::Duplicate(name) => write!(f, "{name:?} stands twice; give every entry its own name"),
            BlueprintFault::SchemaOrTargetType => {
                f.write_str("has no type: set `schema` for data or `targetType` for targets, or write `type`")
            }
            BlueprintFault::OnlyForTargets => {
                f.write_str("belongs to targets, but the type is data; remove it or set type: target")
            }
            BlueprintFault::OnlyForData => {
                f.write_str("belongs to data, but the type is a target's; remove it or set type: data")
            }
            BlueprintFault::UnknownType { found, known } => {
                write!(f, "{found:?} does not exist; known types are {known}")
            }
            BlueprintFault::ConditionalOnRequired => {
                f.write_str("are conditional imports, which an import has only under required: false")
            }
            BlueprintFault::FileOrTemplate => f.write_str("needs exactly one of `file` and `template`"),
            BlueprintFault::UnknownPolicy(found) => {
                let known = FailurePolicy::ALL.map(FailurePolicy::name).join(" or ");
                write!(f, "{found:?} does not exist; write {known}")
            }
            BlueprintFault::NoneParallel => f.write_str("has to be 1 or more; leave it out for any number"),
            BlueprintFault::Component(error) => error.fmt(f),
            BlueprintFault::FileOrInline => {
                f.write_str("needs either `file` alone or an installation template written out")
            }
        }
    }
}
